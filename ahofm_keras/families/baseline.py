"""Cumulative baseline hazard and partial likelihood: what a proportional hazards model says of time.

Of d events at one time nobody knows the order. Breslow's form leaves all of them at risk for each; with
Efron's the l-th of them, l = 0, ..., d - 1, is at a time when a share l / d of their hazards is gone. So
there is a list of events with their shares, which are 0 for Breslow, and all else is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ahofm_keras.families.distributions import Distribution

TIES = ("breslow", "efron")
# Columns of a censored response as likelihoods take it.
STOP, EVENT, START, EXPOSURE = range(4)


@dataclass(frozen=True, eq=False)
class Baseline:
    """The cumulative hazard of a hazard ratio of 1: a step at each time of an event.

    Args:
        times: of events, in rising order `(T,)`.
        hazard: cumulative, from each time on `(T,)`.
        last: time until which somebody was observed; nothing is known beyond.
        spared: of the step at each time, what an event at that time was not exposed to `(T,)`; None: to
            all of it.
    """

    times: np.ndarray
    hazard: np.ndarray
    last: float
    spared: np.ndarray | None = None

    def at(self, time: Any) -> np.ndarray:
        """The cumulative hazard at times."""
        place = np.searchsorted(self.times, time, side="right")
        return np.concatenate([[0.0], self.hazard])[place]

    def exposure(self, y: np.ndarray) -> np.ndarray:
        """What the cumulative hazard gains while each row of a censored response is at risk."""
        found = self.at(y[:, STOP]) - self.at(y[:, START])
        if self.spared is None:
            return found
        place = np.minimum(np.searchsorted(self.times, y[:, STOP]), len(self.times) - 1)
        tied = (y[:, EVENT] > 0) & (self.times[place] == y[:, STOP])
        return np.where(tied, found - self.spared[place], found)

    def reached(self, hazard: np.ndarray) -> np.ndarray:
        """The first time at which the cumulative hazard is so large; infinite if it never is."""
        place = np.searchsorted(self.hazard * (1 + 1e-12), hazard, side="left")
        return np.concatenate([self.times, [np.inf]])[place]

    def to_json(self) -> dict[str, Any]:
        spared = {} if self.spared is None else {"spared": self.spared.tolist()}
        known = {"times": self.times.tolist(), "hazard": self.hazard.tolist(), "last": self.last}
        return known | spared

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> Baseline:
        spared = None if "spared" not in config else np.array(config["spared"], float)
        times, hazard = (np.array(config[key], float) for key in ("times", "hazard"))
        return cls(times, hazard, config["last"], spared)


@dataclass(frozen=True, eq=False)
class Events:
    """All events, those at one time in an order that nobody knows.

    Args:
        times: of events, in rising order `(T,)`.
        place: of each event among them `(m,)`; Breslow's events at one time are one.
        weight: of each, for Efron the mean of those at its time `(m,)`.
        share: of the hazards of those at its time that is gone `(m,)`.
        rows: that have an event.
        at: place of the time of each of these rows.
    """

    times: np.ndarray
    place: np.ndarray
    weight: np.ndarray
    share: np.ndarray
    rows: np.ndarray
    at: np.ndarray

    def sums_at_risk(self, values: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Sums of values `(n, k)` over the rows at risk, at each event `(m, k)`."""
        found = sums_at_risk(values, y[:, STOP], y[:, START], self.times)[self.place]
        if not self.share.any():
            return found
        order = np.argsort(self.at, kind="stable")
        starts = np.searchsorted(self.at[order], np.arange(len(self.times)))
        tied = np.add.reduceat(values[self.rows[order]], starts, axis=0)
        return np.asarray(found - self.share[:, None] * tied[self.place])


def events_of(y: np.ndarray, weight: np.ndarray, ties: str = "breslow") -> Events:
    """The events of censored times; arguments are those of `baseline_hazard`."""
    rows = np.flatnonzero((y[:, EVENT] > 0) & (weight > 0))
    times, at, count = np.unique(y[rows, STOP], return_inverse=True, return_counts=True)
    total = np.bincount(at, weight[rows], len(times))
    if ties == "breslow":
        return Events(times, np.arange(len(times)), total, np.zeros(len(times)), rows, at)
    place = np.repeat(np.arange(len(times)), count)
    gone = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
    return Events(times, place, (total / count)[place], gone / count[place], rows, at)


def baseline_hazard(
    y: np.ndarray, ratio: np.ndarray, weight: np.ndarray | None = None, ties: str = "breslow"
) -> Baseline:
    """At each event its weight over the sum of ratios at risk.

    Args:
        y: censored times `(n, 3)` or more: stop, event, start.
        ratio: hazard ratio of each row `(n,)`.
        weight: of each row `(n,)`, or None.
        ties: `"breslow"` or `"efron"`.
    """
    weight = np.ones(len(y)) if weight is None else weight
    events = events_of(y, weight, ties)
    steps = events.weight / events.sums_at_risk((weight * ratio)[:, None], y)[:, 0]
    hazard = np.cumsum(np.bincount(events.place, steps, len(events.times)))
    spared = np.bincount(events.place, steps * events.share, len(events.times))
    last = float(y[weight > 0, STOP].max())
    return Baseline(events.times, hazard, last, None if ties == "breslow" else spared)


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


def partial_log_likelihood(
    y: np.ndarray, eta: np.ndarray, weight: np.ndarray | None = None, ties: str = "breslow"
) -> float:
    """Cox's partial log-likelihood; arguments are those of `baseline_hazard`."""
    weight = np.ones(len(y)) if weight is None else weight
    events, highest = events_of(y, weight, ties), float(np.max(eta))
    risk = events.sums_at_risk((weight * np.exp(eta - highest))[:, None], y)[:, 0]
    own = weight[events.rows] @ (eta[events.rows] - highest)
    return float(own - events.weight @ np.log(risk))


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
