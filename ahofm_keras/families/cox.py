"""Proportional hazards: times until an event, some of them censored."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any, ClassVar

import numpy as np

from ahofm_keras.errors import DataError, NotFittedError, did_you_mean
from ahofm_keras.families.base import Array, Family, Links, Namespace, Parameters, listed
from ahofm_keras.families.baseline import (
    EVENT,
    EXPOSURE,
    START,
    STOP,
    TIES,
    Baseline,
    SurvivalTimes,
    baseline_hazard,
    events_of,
    partial_log_likelihood,
)
from ahofm_keras.families.chances import Chances
from ahofm_keras.families.registry import register_family

_LEAST_EXPOSURE = 1e-300
# Nodes of the average over a gaussian predictor, and halvings of the interval that holds a quantile.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
_HALVINGS = 60


@register_family
class Cox(Family):
    """Cox's proportional hazards: a baseline hazard of any shape times exp(predictor).

    Given the cumulative baseline hazard H the likelihood is that of a Poisson variable, the event, with
    the mean ratio x H(time). Breslow's estimate of H is its optimum given the ratios; both in turn end
    at the optimum of the partial likelihood. Efron's is that where events at one time are exposed to a
    part of the step there. H is a nuisance: it is learned from all rows together, and
    stands as an exposure beside each response.

    Args:
        link: of the hazard ratio.
        ties: how events at the same time are counted: `"breslow"`, or `"efron"`, which is nearer to what
            times with more digits would give where there are many.
        baseline: where it is known, of which `distribution_of` gives survival times.
    """

    name = "cox"
    links: ClassVar[Links] = {"ratio": ("log",)}
    forms: ClassVar[tuple[str, ...]] = ("Surv",)
    support_text = "times above 0 with an event of 0 or 1, `Surv(time, event)`"
    bounds = (0, inf)
    nuisance = True
    variance_text = "that of the event, its expected number"
    predicts = "the hazard ratio"
    result_label = "Hazard ratio"
    reader_note = (
        "At every time the risk of the event is so many times that of the average row, whose hazard "
        "ratio is 1."
    )

    def __init__(
        self, link: Any = None, *, ties: str = "breslow", baseline: Baseline | None = None
    ) -> None:
        super().__init__(link)
        if ties not in TIES:
            raise DataError(
                f"`ties` of the cox family must be {listed(TIES)}. Received: {ties!r}."
                f"{did_you_mean(str(ties), TIES)}"
            )
        self.ties = ties
        self.baseline = baseline

    def options(self) -> dict[str, Any]:
        return {} if self.ties == TIES[0] else {"ties": self.ties}

    def quantity(self, parameter: str, response: Any) -> str:
        return "hazard ratio"

    # Response -----------------------------------------------------------------------------------

    def encode(self, values: Any, label: str) -> np.ndarray:
        """Stop, event, start, and the exposure: the cumulative hazard, here that of equal ratios."""
        values = np.asarray(values, float)
        if values.shape[1] == 2:
            values = np.column_stack([np.zeros(len(values)), values])
        start, stop, event = values.T
        _check(label, "events", (event != 0) & (event != 1), event, "1 (event) or 0 (censored)")
        _check(label, "times", stop <= 0, stop, "above 0")
        _check(label, "start times", start < 0, start, "0 or above")
        _check(label, "start times", start >= stop, start, "before the stop times")
        y = np.column_stack([stop, event, start, np.zeros(len(stop))])
        equal = np.ones(len(y))
        return self.given(y, self._hazard(y, equal).to_json()) if event.any() else y

    def check_training(self, y: np.ndarray, label: str) -> None:
        """At least two times of events: their order is all that the ratios are learned from."""
        times = np.unique(y[y[:, EVENT] > 0, STOP])
        if not len(times):
            raise DataError(
                f"The response `{label}` has no events: all {len(y):,} times are censored, and nothing "
                "says who is at a higher risk."
            )
        if len(times) == 1:
            raise DataError(
                f"All {int(y[:, EVENT].sum()):,} events of `{label}` are at one time, {times[0]:g}: "
                "their order says nothing. For events within a fixed time take `bernoulli`."
            )

    def support(self, y: np.ndarray) -> np.ndarray:
        return np.isfinite(y).all(axis=-1)

    # What is learned from all rows together -----------------------------------------------------

    def learn_nuisance(
        self, y: np.ndarray, parameters: Parameters, weight: np.ndarray | None
    ) -> dict[str, Any]:
        return self._hazard(y, parameters["ratio"], weight).to_json()

    def _hazard(self, y: np.ndarray, ratio: np.ndarray, weight: np.ndarray | None = None) -> Baseline:
        return baseline_hazard(y, ratio, weight, self.ties)

    def given(self, y: np.ndarray, nuisance: Mapping[str, Any]) -> np.ndarray:
        """The response with its exposure, what the cumulative hazard gains while a row is at risk."""
        y = np.array(y, float)
        y[:, EXPOSURE] = Baseline.from_json(nuisance).exposure(y)
        return y

    def nuisance_information(
        self, y: np.ndarray, functions: np.ndarray, parameters: Parameters, weight: np.ndarray | None
    ) -> np.ndarray:
        """The sum over events of their weight times m m', m the functions' mean at risk."""
        weight = np.ones(len(y)) if weight is None else weight
        events = events_of(y, weight, self.ties)
        ratio = (weight * parameters["ratio"])[:, None]
        sums = events.sums_at_risk(np.column_stack([ratio * functions, ratio]), y)
        means = sums[:, :-1] / sums[:, -1:]
        return np.asarray(means.T @ (events.weight[:, None] * means))

    def bound(self, nuisance: Mapping[str, Any]) -> Cox:
        return type(self)(self.link, ties=self.ties, baseline=Baseline.from_json(nuisance))

    def mean_log_density(
        self, y: np.ndarray, parameters: Parameters, weight: np.ndarray | None
    ) -> float:
        """The partial log-likelihood, over the number of rows."""
        total = len(y) if weight is None else float(np.sum(weight))
        return partial_log_likelihood(y, np.log(parameters["ratio"]), weight, self.ties) / total

    # Likelihood ---------------------------------------------------------------------------------

    def log_density(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        ratio = parameters["ratio"]
        return y[..., EVENT] * xp.log(ratio) - y[..., EXPOSURE] * ratio

    def loss(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        """Half the unit deviance."""
        return self.unit_deviance(y, parameters["ratio"], xp) / 2

    def unit_deviance(self, y: Array, mean: Array, xp: Namespace = np) -> Array:
        """That of the Poisson variable: the square of the deviance residual."""
        event, expected = y[..., EVENT], mean * y[..., EXPOSURE]
        logarithm = xp.log(xp.maximum(expected, _LEAST_EXPOSURE))
        return 2 * (expected - event - event * logarithm)

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        return {"ratio": y[..., EVENT] / parameters["ratio"] - y[..., EXPOSURE]}

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        return {"ratio": y[..., EXPOSURE] / parameters["ratio"]}

    def log_likelihood(
        self, y: np.ndarray, mean: np.ndarray, dispersion: float, weight: np.ndarray
    ) -> float:
        """Cox's partial log-likelihood of the rows."""
        return partial_log_likelihood(y, np.log(mean), weight, self.ties)

    # Start --------------------------------------------------------------------------------------

    def average(self, y: np.ndarray) -> float:
        return 1.0

    def rough_mean(self, y: np.ndarray, average: float) -> np.ndarray:
        """Events over their expected number, drawn towards 1."""
        return (y[..., EVENT] + 1) / (y[..., EXPOSURE] + 1)

    def residual(self, y: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """The martingale residual: events less their expected number."""
        return y[..., EVENT] - y[..., EXPOSURE] * mean

    def start(
        self, y: np.ndarray, offset: np.ndarray | float = 0.0, weight: np.ndarray | None = None
    ) -> float:
        """No intercept is identified: the baseline takes it up."""
        return 0.0

    def start_values(self, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
        return {"ratio": 1.0}

    def null_mean(
        self,
        y: np.ndarray,
        offset: np.ndarray | float = 0.0,
        weight: np.ndarray | None = None,
        intercept: bool = True,
    ) -> np.ndarray:
        """Ratios that, with the exposures as they are, say what equal ratios and their own H do."""
        ratio = np.broadcast_to(np.exp(np.asarray(offset, float)), len(y))
        own = self.given(y, self._hazard(y, ratio, weight).to_json())[:, EXPOSURE]
        exposure = y[:, EXPOSURE]
        return np.where(exposure > 0, ratio * own / np.where(exposure > 0, exposure, 1.0), ratio)

    def chances(self, y: np.ndarray, parameters: Parameters) -> Chances:
        """Of the time, given its start: a step of the curve at an event, all below if censored."""
        known, ratio, event = self._known(), parameters["ratio"], y[:, EVENT] > 0
        hazards = known.at(np.nextafter(y[:, STOP], -np.inf)), known.at(y[:, STOP])
        before, after = (ratio * (own - known.at(y[:, START])) for own in hazards)
        low = np.where(event, before, after)
        high = np.where(event, after, np.inf)
        return Chances((-np.expm1(-low), -np.expm1(-high)), (np.exp(-low), np.exp(-high)))

    # Distribution of survival times -------------------------------------------------------------

    def variance(self, mean: np.ndarray) -> np.ndarray:
        return mean

    def distribution(self, mean: np.ndarray, dispersion: Any = 1.0) -> SurvivalTimes:
        return SurvivalTimes(mean, self._known())

    def _known(self) -> Baseline:
        if self.baseline is None:
            raise NotFittedError(
                "Survival times need the baseline hazard that `fit` leaves in the model."
            )
        return self.baseline

    def predictive_quantile(
        self, link: np.ndarray, error: np.ndarray, dispersion: float, probability: float
    ) -> np.ndarray:
        """Of the survival time, whose chance is averaged over the predictor; infinite if not reached."""
        known = self._known()
        eta = link[:, None] + np.maximum(error, 0.0)[:, None] * _NODES
        share = _WEIGHTS / _WEIGHTS.sum()
        low = np.full(len(link), -745.0) - eta.max(axis=1)
        high = np.full(len(link), 7.0) - eta.min(axis=1)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            chance = -np.expm1(-np.exp(np.minimum(eta + middle[:, None], 700.0))) @ share
            low, high = (
                np.where(chance < probability, middle, low),
                np.where(chance < probability, high, middle),
            )
        return known.reached(np.exp(high))


def _check(label: str, what: str, bad: np.ndarray, values: np.ndarray, wanted: str) -> None:
    """Raise a `DataError` naming the first bad row."""
    if not bad.any():
        return
    row = int(np.argmax(bad))
    hint = ""
    if what == "events" and np.isin(values, (1, 2)).all():
        hint = " Where 2 is an event and 1 is none, write the event as `event - 1`."
    raise DataError(
        f"The {what} of `{label}` must be {wanted}, but {int(bad.sum()):,} of {len(bad):,} are not; "
        f"first at row {row}: {values[row]:g}.{hint}"
    )
