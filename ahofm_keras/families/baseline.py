"""Breslow's cumulative baseline hazard: what a proportional hazards model says of time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ahofm_keras.families.distributions import Distribution

# Columns of a censored response as likelihoods take it.
STOP, EVENT, START, EXPOSURE = range(4)


@dataclass(frozen=True, eq=False)
class Baseline:
    """The cumulative hazard of a hazard ratio of 1: a step at each time of an event.

    Args:
        times: of events, in rising order `(T,)`.
        hazard: cumulative, from each time on `(T,)`.
        last: time until which somebody was observed; nothing is known beyond.
    """

    times: np.ndarray
    hazard: np.ndarray
    last: float

    def at(self, time: Any) -> np.ndarray:
        """The cumulative hazard at times."""
        place = np.searchsorted(self.times, time, side="right")
        return np.concatenate([[0.0], self.hazard])[place]

    def reached(self, hazard: np.ndarray) -> np.ndarray:
        """The first time at which the cumulative hazard is so large; infinite if it never is."""
        place = np.searchsorted(self.hazard * (1 + 1e-12), hazard, side="left")
        return np.concatenate([self.times, [np.inf]])[place]

    def to_json(self) -> dict[str, Any]:
        return {"times": self.times.tolist(), "hazard": self.hazard.tolist(), "last": self.last}

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> Baseline:
        return cls(np.array(config["times"], float), np.array(config["hazard"], float), config["last"])


def breslow(y: np.ndarray, ratio: np.ndarray, weight: np.ndarray | None = None) -> Baseline:
    """Breslow's estimate: at each time of events their number over the sum of ratios at risk.

    Args:
        y: censored times `(n, 3)` or more: stop, event, start.
        ratio: hazard ratio of each row `(n,)`.
        weight: of each row `(n,)`, or None.
    """
    weight = np.ones(len(y)) if weight is None else weight
    stop, start = y[:, STOP], y[:, START]
    times, place = np.unique(stop[(y[:, EVENT] > 0) & (weight > 0)], return_inverse=True)
    events = np.bincount(place, weight[(y[:, EVENT] > 0) & (weight > 0)], len(times))
    risk = sums_at_risk((weight * ratio)[:, None], stop, start, times)[:, 0]
    return Baseline(times, np.cumsum(events / risk), float(stop[weight > 0].max()))


def sums_at_risk(
    values: np.ndarray, stop: np.ndarray, start: np.ndarray, times: np.ndarray
) -> np.ndarray:
    """Sums of values `(n, k)` over the rows at risk, start < t <= stop, at each time `(T, k)`."""

    def from_on(ends: np.ndarray) -> np.ndarray:
        order = np.argsort(ends, kind="stable")
        sums = np.cumsum(values[order][::-1], axis=0)[::-1]
        sums = np.concatenate([sums, np.zeros((1, values.shape[1]))])
        return np.asarray(sums[np.searchsorted(ends[order], times, side="left")])

    return from_on(stop) - from_on(start) if np.any(start > 0) else from_on(stop)


def partial_log_likelihood(y: np.ndarray, eta: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Cox's partial log-likelihood, Breslow's for ties; arguments are those of `breslow`."""
    weight = np.ones(len(y)) if weight is None else weight
    highest = float(np.max(eta))
    rows = (y[:, EVENT] > 0) & (weight > 0)
    values = (weight * np.exp(eta - highest))[:, None]
    risk = sums_at_risk(values, y[:, STOP], y[:, START], y[rows, STOP])[:, 0]
    return float(weight[rows] @ (eta[rows] - highest - np.log(risk)))


class SurvivalTimes(Distribution):
    """Times until an event, of rows with a hazard ratio each: P(T > t) = exp(-ratio H(t)).

    Args:
        ratio: `(n,)`.
        baseline: H.
    """

    def __init__(self, ratio: np.ndarray, baseline: Baseline) -> None:
        self.ratio = np.asarray(ratio, float)
        self.baseline = baseline
        self.shape = self.ratio.shape

    def sf(self, y: Any) -> np.ndarray:
        return np.exp(-self.ratio * self.baseline.at(y))

    def cdf(self, y: Any) -> np.ndarray:
        return -np.expm1(-self.ratio * self.baseline.at(y))

    def ppf(self, q: Any) -> np.ndarray:
        """The first time that at least a share q of events comes before; infinite where none does."""
        with np.errstate(divide="ignore"):
            return self.baseline.reached(-np.log1p(-np.asarray(q, float)) / self.ratio)

    def mean(self) -> np.ndarray:
        """Restricted to the time that was observed: the area below the curve until then."""
        ends = np.concatenate([[0.0], self.baseline.times, [self.baseline.last]])
        survival = self.sf(ends[:-1][:, *[None] * self.ratio.ndim])
        return np.tensordot(np.diff(ends), survival, axes=1)

    def var(self) -> np.ndarray:
        """Restricted in the same way: of the time until the event, or until the end of observation."""
        ends = np.concatenate([[0.0], self.baseline.times, [self.baseline.last]])
        survival = self.sf(ends[:-1][:, *[None] * self.ratio.ndim])
        return np.asarray(np.tensordot(np.diff(ends**2), survival, axes=1) - self.mean() ** 2)
