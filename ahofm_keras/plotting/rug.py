"""Rows behind an effect: their values for a rug, their partial residuals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.decomposition import Parts
from ahofm_keras.decomposition.names import find_subset
from ahofm_keras.decomposition.purify import purify_parts
from ahofm_keras.decomposition.read_rows import find_rows
from ahofm_keras.errors import DataError
from ahofm_keras.model import AdditiveModel
from ahofm_keras.model.reading import read_response
from ahofm_keras.transforms import evaluate_expression

# Rows that a rug, a cloud of points or residuals show, at most: more would be a black bar.
_RUG_ROWS = 1000
_RESIDUAL_ROWS = 3000


def rug_data(
    model: AdditiveModel, *features: str, data: Any = None, parameter: str | None = None
) -> pd.DataFrame:
    """Values of features at rows: what a rug shows.

    Args:
        model: fitted.
        features: names.
        data: rows, by default those of the fit, as far as the model still knows them.
        parameter: of the family whose predictor is read, by default the first; only models with several
            predictors have a choice.

    Raises:
        DataError: an unknown feature; no rows.
    """
    parts = Parts(model, parameter)
    columns = find_rows(parts.model, data, "A rug")
    assert columns is not None
    axes = [
        pair
        for v in find_subset(parts, features)
        for pair in zip(
            parts.variables[v].coordinates, parts.variables[v].expression.coordinates, strict=True
        )
    ]
    return pd.DataFrame({name: _values(expression, columns) for name, expression in axes})


def residual_data(
    model: AdditiveModel,
    feature: str,
    data: Any = None,
    purify: bool = False,
    parameter: str | None = None,
) -> pd.DataFrame:
    """Partial residuals of a feature: its effect at each row plus what the whole model leaves there.

    What is left is the working residual (y - mean) / slope of the mean, in units of the link.

    Args:
        model: fitted.
        feature: name.
        data: rows with the response, by default those of the fit.
        purify: see `effect`.
        parameter: of the family whose predictor is read, by default the first; only models with several
            predictors have a choice.

    Returns:
        One row per data row: `value` of the feature, `fit`, `residual`, `partial_residual`: their sum.

    Raises:
        DataError: an unknown feature; no rows, or rows without the response.
    """
    parts = Parts(model, parameter)
    model = parts.model
    if model.family.nuisance:
        raise DataError(f"Partial residuals of the {model.family.name} family are not there yet.")
    subset = find_subset(parts, (feature,))
    if len(subset) != 1 or parts.variables[subset[0]].is_point:
        raise DataError(f"Partial residuals are those of one feature. Received: `{feature}`.")
    columns = find_rows(model, data, "A picture of partial residuals")
    assert columns is not None
    if data is not None:
        family = model.whole().family
        y, _ = family.as_weighted(read_response(data, model.response, family), None)
    else:
        assert model.sample is not None
        y = model.sample.y
    variable = parts.variables[subset[0]]
    values = _values(variable.expression, columns)
    functions = [variable.functions(values)]
    fit = parts.evaluate(subset, functions)
    if purify:
        fit = fit + purify_parts(parts, data).evaluate(subset, functions)
    residual = working_residuals(model, columns, y)
    return pd.DataFrame(
        {"value": values, "fit": fit, "residual": residual, "partial_residual": fit + residual}
    )


def working_residuals(
    model: AdditiveModel, columns: Mapping[str, np.ndarray], y: np.ndarray
) -> np.ndarray:
    """How far a step of Fisher scoring would move each row: (y - mean) / slope of the mean.

    Args:
        model: of one predictor, or a view of one of several.
        columns: raw.
        y: response.
    """
    whole = model.whole()
    names = list(whole.design.predictors)
    links = np.asarray(whole.predict(dict(columns), type="link"), float).reshape(len(y), len(names))
    etas = {name: links[:, place] for place, name in enumerate(names)}
    name = next(iter(model.design.predictors))
    return np.asarray(whole.family.working(y, etas)[name][1] - etas[name])


def thinned(frame: pd.DataFrame, residuals: bool = False) -> pd.DataFrame:
    """As many rows as a picture can show, evenly taken, so that the same picture comes out each time."""
    most = _RESIDUAL_ROWS if residuals else _RUG_ROWS
    if len(frame) <= most:
        return frame
    return frame.iloc[np.linspace(0, len(frame) - 1, most).astype(int)]


def _values(expression: Any, columns: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.asarray(evaluate_expression(expression, columns))
