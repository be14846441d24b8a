"""Rows that a model is checked on, with what it says of them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.errors import AhofmWarning, DataError
from ahofm_keras.families import Family
from ahofm_keras.families.baseline import EVENT
from ahofm_keras.families.conditions import Condition
from ahofm_keras.model import AdditiveModel
from ahofm_keras.model.beside import in_row_order, response_of
from ahofm_keras.model.distributional import with_dispersion
from ahofm_keras.model.nuisance import bound_family, known_nuisance
from ahofm_keras.model.outputs import links_given_smoothing
from ahofm_keras.model.reading import read_weight
from ahofm_keras.terms import Variable
from ahofm_keras.terms.margins import Margin
from ahofm_keras.transforms import evaluate_expression


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """Rows and the model's predictions for them.

    Args:
        columns: raw columns of the model.
        y: response `(n,)`, of censored times `(n, 4)`.
        weight: of each row, 1 where none was given.
        index: what the rows are called.
        source: where they come from, in words.
        trained: whether the model was fitted to them.
        left_out: number of rows that were left out, because their weight is 0.
        family: of the response.
        links: each predictor `(n,)`, by parameter of the family.
        errors: standard errors of each `(n,)` at the smoothing as it is; None without a posterior.
        dispersion: of the response, in its own units.
    """

    columns: dict[str, np.ndarray]
    y: np.ndarray
    weight: np.ndarray
    index: np.ndarray
    source: str
    trained: bool
    left_out: int
    family: Family
    links: dict[str, np.ndarray]
    errors: dict[str, np.ndarray] | None
    dispersion: float

    def __len__(self) -> int:
        return len(self.y)

    @property
    def link(self) -> np.ndarray:
        """The first predictor."""
        return next(iter(self.links.values()))

    @cached_property
    def parameters(self) -> dict[str, np.ndarray]:
        """Of the response's distribution, at the means of the predictors; the dispersion too."""
        return with_dispersion(self.family, self.family.inverse_links(self.links), self.own_dispersion)

    @property
    def own_dispersion(self) -> np.ndarray | float:
        """Of each row: a weight divides it where the family has one."""
        return self.dispersion if self.family.dispersion_known else self.dispersion / self.weight

    @cached_property
    def mean(self) -> np.ndarray:
        """Of each response `(n,)`; of classes of their places 0, 1, ..., of censored times the ratio."""
        if self.family.labelled:
            return np.asarray(self.distribution.mean())
        if self.family.nuisance:
            return self.parameters[next(iter(self.family.parameters))]
        return np.asarray(self.family.mean_of(self.parameters))

    @property
    def observed(self) -> np.ndarray:
        """The response as one number a row `(n,)`: of a censored time whether it is that of an event."""
        return self.y[:, EVENT] if self.family.nuisance else self.y

    @cached_property
    def residual(self) -> np.ndarray:
        """Of the response `(n,)`: what was observed less what was expected of it."""
        if self.family.labelled:
            return self.y - self.mean
        return np.asarray(self.family.residual(self.y, self.mean))

    @property
    def has_chances(self) -> bool:
        """Whether it is predicted how likely responses are: by a distribution, or by levels."""
        return not self.family.is_loss or bool(self.family.levels)

    @cached_property
    def conditions(self) -> list[Condition]:
        """Of a loss, what holds on any rows where its predictions are right."""
        return self.family.conditions(self.y, self.parameters)

    # What was drawn is another number than the response where weights are a part of it, as trials are.

    @cached_property
    def _drawn(self) -> tuple[Family, np.ndarray]:
        return self.family.counted(self.y, self.weight)

    @property
    def drawn(self) -> Family:
        """The family of what was drawn."""
        return self._drawn[0]

    @property
    def drawn_y(self) -> np.ndarray:
        """What was drawn `(n,)`, such as a number of successes."""
        return self._drawn[1]

    @cached_property
    def distribution(self) -> Any:
        """Of what was drawn in each row, with SciPy's methods."""
        return self.drawn.distribution_of(self.parameters)

    @property
    def counts(self) -> np.ndarray:
        """How often a row counts: by its weight where that says nothing of the distribution."""
        own = self.family.dispersion_known and self.drawn_y is self.y
        return self.weight if own else np.ones(len(self))

    @property
    def variance(self) -> np.ndarray:
        """Of each response `(n,)`, in its own unit."""
        unit = 1.0 if self.drawn_y is self.y else self.weight
        return np.asarray(self.distribution.var()) / unit**2

    def take(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Raw columns of some of the rows."""
        return {name: values[rows] for name, values in self.columns.items()}


def check_density(model: AdditiveModel, purpose: str) -> None:
    """Raise a `DataError` where the family is a loss, and predicts no distribution."""
    if model.family.nuisance:
        raise DataError(
            f"{purpose} needs the density of each response, and those of the {model.family.name} family "
            "are censored, its likelihood compares rows. `ak.concordance(model, data)` says how well it "
            "ranks, `ak.check` whether it is calibrated."
        )
    if model.family.is_loss:
        raise DataError(
            f"{purpose} needs a predicted distribution, and the {model.family.name} family is a loss: "
            "it assumes none. `evaluate` has the mean loss of rows."
        )


def read_rows(model: AdditiveModel, data: Any, y: Any, sample_weight: Any) -> CheckedRows:
    """The rows given, else those of the fit that the model still knows.

    Raises:
        DataError: no rows, no response, columns that do not fit the model.
    """
    columns, response, weight, index = _find_rows(model, data, y, sample_weight)
    used = np.flatnonzero(weight > 0)
    columns = {name: values[used] for name, values in columns.items()}
    response, weight = response[used], weight[used]
    family = bound_family(model)
    if family.nuisance:
        response = family.given(response, known_nuisance(model))
    links, errors = _predict_links(model, columns)
    return CheckedRows(
        columns,
        response,
        weight,
        index[used],
        _source(model, data, len(index)),
        data is None,
        len(index) - len(used),
        family,
        links,
        errors,
        _dispersion(model, response, links, weight),
    )


def quietly_predict(model: AdditiveModel, columns: dict[str, np.ndarray], **kwargs: Any) -> Any:
    """Predictions for rows that were read before: what they warn of was said then."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AhofmWarning)
        return model.predict(columns, **kwargs)


def _predict_links(
    model: AdditiveModel, columns: dict[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray] | None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AhofmWarning)
        found = links_given_smoothing(model, columns)
    links = {name: link for name, (link, _) in found.items()}
    return links, {name: error for name, (_, error) in found.items()} if model.has_posterior else None


def rows_outside(model: AdditiveModel, rows: CheckedRows) -> dict[str, int]:
    """How many values of each number lie outside the range that its terms know."""
    found = {}
    assert model.design.margins is not None
    for variable, margin in zip(model.design.variables(), model.design.margins.single, strict=True):
        known = variable.expression.coordinates
        for coordinate, name in enumerate(variable.coordinates):
            ends = _known_range(variable, margin, coordinate)
            if ends is not None:
                values = np.asarray(evaluate_expression(known[coordinate], rows.columns))
                count = int(np.sum((values < ends[0]) | (values > ends[1])))
                if count:
                    found[name] = count
    return found


def _known_range(variable: Variable, margin: Margin, coordinate: int) -> tuple[float, float] | None:
    """The ends of its knots, which may be given, or of the training rows; none of a circle."""
    bases = [feature.basis for feature in variable.features]
    if variable.is_category or (not variable.products and all(basis.period for basis in bases)):
        return None
    ends = [basis.ends[coordinate] for basis in bases if basis.ends]
    if variable.products or not ends:
        return margin.axes[coordinate].low, margin.axes[coordinate].high
    return max(low for low, _ in ends), min(high for _, high in ends)


def _find_rows(
    model: AdditiveModel, data: Any, y: Any, sample_weight: Any
) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray]:
    if data is None:
        for name, value in (("y", y), ("sample_weight", sample_weight)):
            if value is not None:
                raise DataError(f"`{name}` goes with `data=`: without it the rows of the fit are taken.")
        sample = model.sample
        if sample is None:
            raise DataError(
                "`check` needs rows, and the model knows none of its training data (it was loaded, or "
                "fitted to a dataset): pass `data=`."
            )
        weight = np.ones(len(sample.y)) if sample.weight is None else sample.weight
        return dict(sample.columns), sample.y, weight, np.arange(len(sample.y))
    columns = model.read_inputs(data)
    count = len(next(iter(columns.values())))
    response = response_of(data, y, model.response, model.family)
    if len(response) != count:
        raise DataError(f"The response has {len(response)} values, the data {count} rows.")
    found = read_weight(data, in_row_order(data, sample_weight, "sample_weight"), count)
    response, found = model.family.as_weighted(response, found)
    weight = np.ones(count) if found is None else found
    index = data.index.to_numpy() if isinstance(data, pd.DataFrame) else np.arange(count)
    return columns, response, weight, index


def _source(model: AdditiveModel, data: Any, count: int) -> str:
    if data is not None:
        return f"{count:,} rows given"
    trained = model.fit_result.rows if model.fit_result is not None else None
    if trained is not None and trained > count:
        return f"{count:,} of {trained:,} training rows"
    return f"{count:,} training rows"


def _dispersion(
    model: AdditiveModel, y: np.ndarray, links: dict[str, np.ndarray], weight: np.ndarray
) -> float:
    """The fit's, else the mean of Pearson's squared residuals on the rows."""
    if model.family.dispersion_known:
        return 1.0
    if model.fit_result is not None and model.fit_result.dispersion is not None:
        return float(model.fit_result.dispersion)
    if model.posterior is not None and model.has_posterior:
        return float(model.posterior.dispersion) * model.dispersion_unit
    mean = model.family.mean_of(model.family.inverse_links(links))
    return float(np.mean(weight * (y - mean) ** 2 / model.family.variance(mean)))
