"""Distributions that SciPy does not have, with the methods of those that it has."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray

# Halvings of an interval, more than float64 has digits.
_HALVINGS = 80
_DOUBLINGS = 1030
# A cumulative probability reaches another one up to rounding.
_ROUNDING = 1e-13


class Distribution:
    """A distribution by its logarithmic density and its cumulative probabilities, of any shape.

    A subclass has `shape`, `mean`, `var`, `cdf`, `sf`, and `logpdf` or `logpmf`.
    """

    shape: tuple[int, ...] = ()

    def mean(self) -> Array:
        raise NotImplementedError

    def var(self) -> Array:
        raise NotImplementedError

    def std(self) -> Array:
        """The root of the variance."""
        return np.sqrt(self.var())

    def cdf(self, y: Any) -> Array:
        raise NotImplementedError

    def sf(self, y: Any) -> Array:
        return 1 - self.cdf(y)

    def ppf(self, q: Any) -> Array:
        raise NotImplementedError

    def isf(self, q: Any) -> Array:
        """The value that is exceeded with a probability."""
        return self.ppf(1 - np.asarray(q, float))

    def median(self) -> Array:
        """The value in the middle."""
        return self.ppf(0.5)

    def interval(self, confidence: Any) -> tuple[Array, Array]:
        """The quantiles that leave equal shares outside."""
        outside = (1 - np.asarray(confidence, float)) / 2
        return self.ppf(outside), self.isf(outside)

    def rvs(self, size: Any = None, random_state: Any = None) -> Array:
        """Draws, by quantiles of uniform ones."""
        rng = np.random.default_rng(random_state)
        return self.ppf(rng.uniform(size=self.shape if size is None else size))


class DiscreteDistribution(Distribution):
    """Of whole numbers from 0 on."""

    def logpmf(self, y: Any) -> Array:
        raise NotImplementedError

    def pmf(self, y: Any) -> Array:
        return np.exp(self.logpmf(y))

    def ppf(self, q: Any) -> Array:
        """The least whole number whose cumulative probability reaches q; -1 for 0, as in SciPy."""
        q = np.asarray(q, float)
        return _checked(q, self._least(lambda y: self.cdf(y) >= q * (1 - _ROUNDING), q), -1.0)

    def isf(self, q: Any) -> Array:
        """The least whole number that is exceeded with at most q."""
        q = np.asarray(q, float)
        return _checked(1 - q, self._least(lambda y: self.sf(y) <= q * (1 + _ROUNDING), q), -1.0)

    def _least(self, enough: Any, q: Array) -> Array:
        """The least whole number that is enough, by bisection."""
        shape = np.broadcast_shapes(self.shape, q.shape)
        low, high = np.full(shape, -1.0), np.zeros(shape)
        valid = np.broadcast_to((q > 0) & (q < 1), shape)
        for _ in range(_DOUBLINGS):
            short = valid & ~enough(high)
            if not short.any():
                break
            low, high = np.where(short, high, low), np.where(short, 2 * high + 1, high)
        while (high - low > np.maximum(1, 1e-15 * high)).any():
            middle = np.floor((low + high) / 2)
            fits = enough(middle)
            low, high = np.where(fits, low, middle), np.where(fits, middle, high)
        return high


class ContinuousDistribution(Distribution):
    """Of numbers from 0 on; at 0 there may be a probability of its own."""

    def logpdf(self, y: Any) -> Array:
        raise NotImplementedError

    def pdf(self, y: Any) -> Array:
        return np.exp(self.logpdf(y))

    def ppf(self, q: Any) -> Array:
        """The value below which a probability lies, by bisection of its logarithm."""
        q = np.asarray(q, float)
        return _checked(q, self._reached(lambda y: self.cdf(y) >= q, q), 0.0)

    def isf(self, q: Any) -> Array:
        q = np.asarray(q, float)
        return _checked(1 - q, self._reached(lambda y: self.sf(y) <= q, q), 0.0)

    def _reached(self, enough: Any, q: Array) -> Array:
        shape = np.broadcast_shapes(self.shape, q.shape)
        valid = np.broadcast_to((q > 0) & (q < 1), shape)
        centre = np.broadcast_to(np.log(np.maximum(self.mean(), 1e-300)), shape)
        low, high, step = centre - 1.0, centre + 1.0, 1.0
        for _ in range(12):
            short, beyond = valid & ~enough(np.exp(high)), valid & enough(np.exp(low))
            if not (short.any() or beyond.any()):
                break
            step *= 2
            low = np.where(beyond, np.maximum(low - step, -690.0), low)
            high = np.where(short, np.minimum(high + step, 690.0), high)
        for _ in range(_HALVINGS):
            if np.max(high - low, initial=0.0) < 1e-14:
                break
            middle = (low + high) / 2
            fits = enough(np.exp(middle))
            low, high = np.where(fits, low, middle), np.where(fits, middle, high)
        found = np.exp(high)
        return np.where(enough(np.zeros(shape)), 0.0, found)


def _checked(q: Array, found: Array, least: float) -> Array:
    """NaN outside of probabilities, the ends of the support at 0 and 1."""
    found = np.where(q == 0, least, np.where(q == 1, np.inf, found))
    return np.where((q >= 0) & (q <= 1), found, np.nan)
