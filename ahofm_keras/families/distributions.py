"""Distributions that SciPy does not have, with the methods of those that it has."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

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
        """The value below which a probability lies."""
        q = np.asarray(q, float)
        return _checked(q, self._reached(lambda y: _score(self.cdf(y)) - _score(q), q), 0.0)

    def isf(self, q: Any) -> Array:
        q = np.asarray(q, float)
        return _checked(1 - q, self._reached(lambda y: _score(q) - _score(self.sf(y)), q), 0.0)

    def _reached(self, excess: Any, q: Array) -> Array:
        """Where a rising function is 0, by false position: scores are almost straight in log y."""
        shape = np.broadcast_shapes(self.shape, q.shape)
        heap = excess(np.zeros(shape)) >= 0
        valid = np.broadcast_to((q > 0) & (q < 1), shape) & ~heap
        centre = np.broadcast_to(np.log(np.maximum(self.mean(), 1e-300)), shape)
        low, high, step = centre - 1.0, centre + 1.0, 1.0
        below, above = excess(np.exp(low)), excess(np.exp(high))
        for _ in range(12):
            short, beyond = valid & (above < 0), valid & (below >= 0)
            if not (short.any() or beyond.any()):
                break
            step *= 2
            low = np.where(beyond, np.maximum(low - step, -690.0), low)
            high = np.where(short, np.minimum(high + step, 690.0), high)
            below, above = excess(np.exp(low)), excess(np.exp(high))
        last = np.zeros(shape)
        for count in range(_HALVINGS):
            if np.max(high - low, initial=0.0, where=valid) < 1e-14:
                break
            with np.errstate(invalid="ignore", divide="ignore"):
                middle = (low * above - high * below) / (above - below)
            # Every third step halves, so that no end stays for long.
            good = np.isfinite(middle) & (middle > low) & (middle < high)
            middle = np.where(good & (count % 3 < 2), middle, (low + high) / 2)
            value = excess(np.exp(middle))
            fits = value >= 0
            # Illinois: an end that stays twice counts half.
            below = np.where(fits, np.where(last > 0, below / 2, below), value)
            above = np.where(fits, value, np.where(last < 0, above / 2, above))
            close = np.abs(value) < _ROUNDING
            low = np.where(fits & ~close, low, middle)
            high = np.where(fits | close, middle, high)
            last = np.where(fits, 1.0, -1.0)
        return np.where(heap, 0.0, np.exp(high))


def _score(chance: Any) -> Array:
    """Of a standard normal variable, finite."""
    return np.asarray(special.ndtri(np.clip(chance, 1e-300, 1 - 1e-16)))


def _checked(q: Array, found: Array, least: float) -> Array:
    """NaN outside of probabilities, the ends of the support at 0 and 1."""
    found = np.where(q == 0, least, np.where(q == 1, np.inf, found))
    return np.where((q >= 0) & (q <= 1), found, np.nan)
