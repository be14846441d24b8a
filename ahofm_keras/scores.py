"""Scores of predicted distributions on rows: `log_score` and `crps`."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from ahofm_keras.decomposition.parts import check_readable
from ahofm_keras.diagnostics.checked_rows import CheckedRows, check_density, read_rows
from ahofm_keras.errors import DataError
from ahofm_keras.families import Family
from ahofm_keras.model import AdditiveModel
from ahofm_keras.model.mixture import mixtures
from ahofm_keras.model.outputs import links_with_errors


def log_score(
    model: AdditiveModel,
    data: Any = None,
    *,
    y: Any = None,
    sample_weight: Any = None,
    by_row: bool = False,
    posterior: bool = False,
) -> Any:
    """Mean log-density of responses under the distributions that a model predicts; more is better.

    Of discrete responses it is a log-probability. Both are those of the response as the formula has it:
    models of `y` and of `log(y)` are on different scales.

    Args:
        model: fitted.
        data: rows with their response; by default those of the fit, which favours large models.
        y: response of `data`, where it is not one of its columns.
        sample_weight: of each row of `data`, or the name of a column. Where the family estimates its
            dispersion a weight divides it, and rows count alike; else a row counts by its weight.
        by_row: whether each row's own comes back `(n,)`, not the mean. Rows of weight 0 are left out.
        posterior: whether the density is averaged over the posterior of the predictors (three nodes for
            each), not taken at their means: it then holds the uncertainty of the fit too.

    Returns:
        A number, or `(n,)`.

    Raises:
        DataError: no rows, a response that the family cannot have, no posterior where it is asked for.
        NotFittedError: the model was never fitted.

    Example:
        >>> import numpy as np, pandas as pd
        >>> from ahofm_keras import fit
        >>> rng = np.random.default_rng(0)
        >>> data = pd.DataFrame({"x": np.r_[0, 1, rng.uniform(size=298)]})
        >>> data["y"] = data.x + (0.1 + data.x) * rng.normal(size=300)
        >>> even = fit("y ~ s(x)", data[:200], verbose=0)
        >>> uneven = fit({"loc": "y ~ s(x)", "scale": "~ s(x)"}, data[:200], verbose=0)
        >>> log_score(uneven, data[200:]) > log_score(even, data[200:])
        True
    """
    rows = _read(model, data, y, sample_weight, "The log score")
    if not posterior:
        return _collected(_log_densities(rows), rows, by_row)
    return _collected(_averaged_log_densities(model, rows), rows, by_row)


def crps(
    model: AdditiveModel,
    data: Any = None,
    *,
    y: Any = None,
    sample_weight: Any = None,
    by_row: bool = False,
) -> Any:
    """Mean continuous ranked probability score of predicted distributions; less is better.

    The integral of (F(t) - 1[y <= t])^2 over t, F being the predicted distribution function. It is in
    units of the response, is the absolute error of a prediction that is certain, and forgives a far
    response more than the log score does.

    Args:
        model: fitted.
        data: rows with their response; by default those of the fit, which favours large models.
        y: response of `data`, where it is not one of its columns.
        sample_weight: see `log_score`.
        by_row: whether each row's own comes back `(n,)`, not the mean. Rows of weight 0 are left out.

    Returns:
        A number, or `(n,)`.

    Raises:
        DataError: no rows, a response that the family cannot have, a family without such a score.
        NotFittedError: the model was never fitted.
    """
    rows = _read(model, data, y, sample_weight, "The CRPS")
    if rows.family.labelled and not rows.family.ordered:
        raise DataError(
            f"Classes of the {rows.family.name} family have no order, so no CRPS. Take `ak.log_score`, "
            'or `family="ordinal"` where they have one.'
        )
    try:
        found = rows.drawn.crps(rows.drawn_y, rows.parameters)
    except NotImplementedError as error:
        raise DataError(f"{error} `ak.log_score` has one of every family.") from error
    return _collected(np.asarray(found), rows, by_row)


def mean_log_score(rows: CheckedRows) -> float:
    """Of rows that were read before."""
    return float(_collected(_log_densities(rows), rows, False))


def _read(model: AdditiveModel, data: Any, y: Any, sample_weight: Any, score: str) -> CheckedRows:
    check_readable(model)
    check_density(model, score)
    return read_rows(model, data, y, sample_weight)


def _log_densities(rows: CheckedRows) -> np.ndarray:
    return _log_density(rows.family, rows.distribution, rows.drawn_y)


def _log_density(family: Family, distribution: Any, y: np.ndarray) -> np.ndarray:
    log = distribution.logpmf if family.discrete else distribution.logpdf
    return np.asarray(log(y))


def _averaged_log_densities(model: AdditiveModel, rows: CheckedRows) -> np.ndarray:
    if not model.has_posterior:
        raise DataError(
            "`posterior=True` needs the posterior that a fit to rows in memory leaves. Leave "
            "it out for the score at the means of the predictors."
        )
    links = links_with_errors(model, rows.columns)
    found = np.zeros(len(rows))
    for own in mixtures(rows.drawn, links, rows.own_dispersion):
        y = rows.drawn_y[own.rows]
        densities = [_log_density(rows.family, each, y) for each in own.components]
        found[own.rows] = special.logsumexp(densities, axis=0, b=np.array(own.weights)[:, None])
    return found


def _collected(scores: np.ndarray, rows: CheckedRows, by_row: bool) -> Any:
    return scores if by_row else float(np.average(scores, weights=rows.counts))
