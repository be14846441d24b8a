"""`compare`: several models of the same response on the same rows, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import combinations
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.decomposition.parts import check_readable
from ahofm_keras.diagnostics.checked_rows import check_density, read_rows
from ahofm_keras.errors import DataError
from ahofm_keras.model import AdditiveModel
from ahofm_keras.model.formulas import formula_text
from ahofm_keras.scores import mean_log_score
from ahofm_keras.summaries.figures import read_figures
from ahofm_keras.summaries.tables import WIDTH, Table
from ahofm_keras.texts import table_number, table_percent

# Weights in single precision give deviances of the same rows that differ by less than this.
_SAME = 1e-5


@dataclass(frozen=True, eq=False)
class Comparison:
    """Models side by side; prints itself, in a notebook as a table.

    Args:
        frame: one row per model, in the order given, with

            - `family`;
            - `aic`, -2 log-likelihood + 2 edf on the training rows, and `delta_aic`, its difference to
              the smallest, where the training rows are the same;
            - `edf`: effective degrees of freedom;
            - `deviance` and `deviance_explained` on the training rows; of several predictors the
              deviance is -2 log-likelihood, of which nothing is explained;
            - `log_score`: mean log-likelihood of a row, higher is better;
            - `rows`: number of training rows.

            NaN where a figure is not known.
        notes: what to know when reading the table.
    """

    frame: pd.DataFrame
    notes: tuple[str, ...]

    def __str__(self) -> str:
        notes = [fill(f"- {note}", WIDTH, subsequent_indent="  ") for note in self.notes]
        return "\n".join([self._table().to_text(), *notes])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return f"<div>{self._table().to_html()}<ul>{notes}</ul></div>"

    def _table(self) -> Table:
        head = ("", "family", "AIC", "difference", "edf", "deviance", "explained", "log score", "n")
        return Table("Models", head, tuple(map(_cells, self.frame.itertuples())))


def _cells(row: Any) -> tuple[str, ...]:
    return (
        str(row.Index),
        row.family,
        table_number(row.aic, 6),
        table_number(row.delta_aic),
        table_number(row.edf),
        table_number(row.deviance, 5),
        table_percent(row.deviance_explained),
        table_number(row.log_score),
        "" if np.isnan(row.rows) else f"{row.rows:,.0f}",
    )


def compare(*models: AdditiveModel, data: Any = None, names: Sequence[str] | None = None) -> Comparison:
    """Compare fitted models of the same response on the same rows.

    AIC and deviance favour what was fitted to the rows at hand: a difference in AIC below about 2 says
    little. The log score of rows held out (`data=`) is the fairer judge, for models of any solver.

    Args:
        models: two or more, fitted. They may differ in their terms, solver, family and number of
            predictors, as long as the families are all of whole numbers or all continuous: a probability
            and a density have no common scale.
        data: rows with their response that no model was fitted to, for the log score; by default it is
            that of the training rows, which favours large models. With `data=` the models may have
            been fitted to different rows (`"adam"` holds some out): AIC is then not compared.
        names: of the models, by default their formulas.

    Returns:
        `Comparison`, which prints as a table; its `frame` is a data frame.

    Raises:
        DataError: models of different responses, rows or weights, whose figures cannot be compared.
        NotFittedError: a model that was never fitted.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> data = pd.DataFrame({"x": rng.uniform(size=200)})
        >>> data["y"] = np.sin(6 * data.x) + 0.1 * rng.normal(size=200)
        >>> from ahofm_keras import fit
        >>> line, smooth = (fit(f"y ~ {term}", data, verbose=0) for term in ("x", "s(x)"))
        >>> compare(line, smooth).frame["delta_aic"].gt(0).to_dict()
        {'y ~ x': True, 'y ~ s(x)': False}
    """
    if len(models) < 2:
        raise DataError(f"Two or more models are needed: `compare(m1, m2)`. Received: {len(models)}.")
    for model in models:
        check_readable(model)
        if model.of_parameter is not None:
            raise DataError("Models are compared as a whole, not one of their predictors.")
    labels = _labels(models, names)
    different_rows = ""
    for (first, one), (second, other) in combinations(zip(labels, models, strict=True), 2):
        which = f"`{first}` and `{second}`"
        _check_scales(one, other, which)
        difference = _difference_in_rows(one, other)
        if difference:
            different_rows = different_rows or f"{which} were fitted to different rows: {difference}."
    if different_rows and data is None:
        raise DataError(
            f"{different_rows} Likelihoods of different rows cannot be compared. Fit all models to the "
            'same rows (of which `"adam"` holds some out unless `validation_split=0`), or give `data=` '
            "to compare log scores of rows held out."
        )
    frame = pd.DataFrame([_figures(model) for model in models], pd.Index(labels, name="model"))
    frame.insert(2, "delta_aic", np.nan if different_rows else frame["aic"] - frame["aic"].min())
    notes = []
    if different_rows:
        notes.append(f"{different_rows} AIC and deviance cannot be compared.")
    if data is None:
        notes.append("log score on the training rows; pass held-out rows as `data=` for a fairer one.")
    else:
        frame["log_score"], rows = _log_scores(models, data)
        notes.append(f"log score on the {rows:,} rows given.")
    lacking = [f"`{label}`" for label in frame.index[frame["aic"].isna()]]
    if lacking:
        notes.append(
            f"no AIC of {', '.join(lacking)}: only a fit to rows in memory, with the family's own loss "
            "and without networks, leaves degrees of freedom and a likelihood."
        )
    return Comparison(frame, tuple(notes))


def _labels(models: Sequence[AdditiveModel], names: Sequence[str] | None) -> list[str]:
    """One name per model, all different."""
    if names is None:
        formulas = [formula_text(model) for model in models]
        if len(set(formulas)) == len(formulas):
            return formulas
        return [f"{place}: {formula}" for place, formula in enumerate(formulas, 1)]
    given = [names] if isinstance(names, str) else [str(name) for name in names]
    if len(given) != len(models) or len(set(given)) != len(given):
        raise DataError(
            f"`names` must hold one name per model, all different. Received: {names!r} for "
            f"{len(models)} models."
        )
    return given


def _check_scales(one: AdditiveModel, other: AdditiveModel, which: str) -> None:
    """Raise where likelihoods of two models are on different scales."""
    if str(one.response) != str(other.response):
        raise DataError(
            f"{which} have different responses, `{one.response}` and `{other.response}`: their "
            "likelihoods are on different scales. Compare predictions in the same units instead."
        )
    if one.family.discrete != other.family.discrete:
        raise DataError(
            f"{which} have the families {one.family.name} and {other.family.name}: a probability and a "
            "density are on different scales. Compare `evaluate` or errors of predictions instead."
        )


def _difference_in_rows(one: AdditiveModel, other: AdditiveModel) -> str:
    """How the training rows of two models differ, as far as they remember them; empty if they do not."""
    first, second = one.fit_result, other.fit_result
    if first is None or second is None or first.rows is None or second.rows is None:
        return ""
    if first.rows != second.rows:
        return f"{first.rows:,} and {second.rows:,}"
    if (first.weighted, first.class_weight) != (second.weighted, second.class_weight):
        return "their weights differ"
    if one.sample is not None and other.sample is not None and one.sample.complete:
        same = np.array_equal(_sorted_rows(one), _sorted_rows(other))
        return "" if same else "their responses differ"
    alike = type(one.family) is type(other.family) and _is_plain(one) and _is_plain(other)
    if alike and not np.isclose(first.null_deviance or 0, second.null_deviance or 0, rtol=_SAME):
        return f"their null deviances are {first.null_deviance:.6g} and {second.null_deviance:.6g}"
    return ""


def _sorted_rows(model: AdditiveModel) -> np.ndarray:
    """Responses and weights of the training rows; their order says nothing."""
    assert model.sample is not None
    y, weight = model.sample.y, model.sample.weight
    # Beside a response of several columns stands, last, what a model has learned of it.
    columns = [y] if y.ndim == 1 else list(y.T[:-1])
    columns.append(np.ones(len(y)) if weight is None else weight)
    return np.stack(columns)[:, np.lexsort(columns[::-1])]


def _is_plain(model: AdditiveModel) -> bool:
    """Whether the model without terms is an intercept, so that its deviance tells rows apart."""
    return model.design.first.intercept and "offset(" not in formula_text(model)


def _figures(model: AdditiveModel) -> dict[str, Any]:
    """One row of the table; the log score is that of the training rows."""
    found = read_figures(model)
    row = {name: found[name] for name in ("aic", "edf", "deviance", "deviance_explained")}
    known = found["log_likelihood"] is not None and found["rows"]
    row["log_score"] = found["log_likelihood"] / found["rows"] if known else None
    row["rows"] = found["rows"]
    figures = {name: np.nan if value is None else float(value) for name, value in row.items()}
    return {"family": found["family"], **figures}


def _log_scores(models: Sequence[AdditiveModel], data: Any) -> tuple[list[float], int]:
    """Mean log-likelihood of given rows, of each model, and their number."""
    for model in models:
        check_density(model, "A log score")
    read = [read_rows(model, data, None, None) for model in models]
    return [mean_log_score(rows) for rows in read], len(read[0])
