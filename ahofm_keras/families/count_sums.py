"""Sums over all counts that a response can be, in a fixed number of places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ahofm_keras.families.distributions import DiscreteDistribution

# Counts that are summed one by one; beyond them a sum is an integral from half a count further down on,
# by Gauss and Legendre, and 1 / 24 of the slope there.
_EACH = np.arange(33.0)
_ONCE = np.append(np.ones(31), [23 / 24, 1 / 24])
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_FROM = 31.5
# How far the integral goes: standard deviations, and lengths over which a tail falls by e.
_DEVIATIONS = 12.0
_LENGTHS = 40.0


def count_nodes(mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places and weights whose sum is that over all counts of a distribution.

    Args:
        mean: `(n,)`.
        variance: `(n,)`, at least the mean.

    Returns:
        Counts `(n, m)`, the larger of them no whole numbers, and their weights.
    """
    mean, variance = np.broadcast_arrays(np.asarray(mean, float), np.asarray(variance, float))
    deviation = np.sqrt(variance)
    high = mean + _DEVIATIONS * deviation + _LENGTHS * variance / np.maximum(mean, 1e-300)
    low = np.log(np.maximum(mean - _DEVIATIONS * deviation, _FROM))[..., None]
    half = (np.log(np.maximum(high, _FROM))[..., None] - low) / 2
    counts = np.exp(low + half * (1 + _NODES))
    each = np.broadcast_to(_EACH, (*mean.shape, len(_EACH)))
    return (
        np.concatenate([each, counts], axis=-1),
        np.concatenate([np.broadcast_to(_ONCE, each.shape), half * _WEIGHTS * counts], axis=-1),
    )


class SummedCounts(DiscreteDistribution):
    """A distribution of counts by their log-probabilities alone, which are summed.

    Args:
        logpmf: of whole numbers, and smooth between them; of an array `(..., m)` whose last axis is that
            of counts, the others those of `mean`.
        mean: of any shape.
        variance: of the same shape.
        length: over which the tail falls by e, or more.
    """

    def __init__(
        self,
        logpmf: Callable[[np.ndarray], np.ndarray],
        mean: np.ndarray,
        variance: np.ndarray,
        length: np.ndarray,
    ) -> None:
        self._log, self._mean, self._variance = logpmf, np.asarray(mean), np.asarray(variance)
        self.shape = self._mean.shape
        deviation = np.sqrt(self._variance)
        self._low = np.maximum(self._mean - _DEVIATIONS * deviation, _FROM)
        self._high = np.maximum(self._mean + _DEVIATIONS * deviation + _LENGTHS * length, _FROM)

    def mean(self) -> np.ndarray:
        return self._mean

    def var(self) -> np.ndarray:
        return self._variance

    def logpmf(self, y: Any) -> np.ndarray:
        y = np.asarray(y, float)
        whole = (y >= 0) & (y == np.floor(y))
        found = self._log(np.where(whole, y, 0.0)[..., None])[..., 0]
        return np.where(whole, found, -np.inf)

    def cdf(self, y: Any) -> np.ndarray:
        y = np.floor(np.asarray(y, float))
        total = self._few(lambda count: count <= y[..., None])
        beyond = self._between(self._low, np.maximum(y + 0.5, self._low)) + self._edge(_FROM)
        found = total + np.where(y >= _EACH[-1], beyond - self._edge(y + 0.5), 0.0)
        return np.where(y < 0, 0.0, np.minimum(found, 1.0))

    def sf(self, y: Any) -> np.ndarray:
        y = np.floor(np.asarray(y, float))
        total = self._few(lambda count: count > y[..., None])
        start = np.clip(y + 0.5, self._low, self._high)
        found = total + self._between(start, self._high) + self._edge(y + 0.5)
        return np.where(y < 0, 1.0, np.clip(found, 0.0, 1.0))

    def _few(self, wanted: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """The probability of those that are wanted of the counts that are summed one by one."""
        each = _EACH[:-1]
        return np.asarray(np.sum(np.exp(self._log(each)) * wanted(each), axis=-1))

    def _edge(self, at: Any) -> np.ndarray:
        """What a sum from half a count further up on has beyond its integral."""
        ends = np.maximum(at, _FROM)[..., None] + np.array([-0.5, 0.5])
        low, high = np.moveaxis(np.exp(self._log(ends)), -1, 0)
        return np.asarray((high - low) / 24)

    def _between(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Integral of the probabilities between counts beyond the first ones."""
        low = np.log(low)[..., None]
        half = (np.log(high)[..., None] - low) / 2
        counts = np.exp(low + half * (1 + _NODES))
        return np.asarray(np.sum(half * _WEIGHTS * counts * np.exp(self._log(counts)), axis=-1))
