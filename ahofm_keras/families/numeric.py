"""A distribution from nothing but its log-density: sums and integrals in a table of each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ahofm_keras.errors import DataError
from ahofm_keras.families.distributions import Distribution

Array = np.ndarray
LogDensity = Callable[[Array, Mapping[str, Array]], Array]

# Powers of 10 between which the mode is looked for, and distances from it at which a table has places.
_SIZES = np.concatenate([-np.geomspace(1e8, 1e-6, 113), [0.0], np.geomspace(1e-6, 1e8, 113)])
_PLACES = 600
# The first of these distances, of that at which the density has fallen by exp(1).
_NEAREST = 1e-3
# Distances that are tried are doubled from here on: this share of the mode, or this.
_FINEST = 1e-12
_LEAST = 1e-18
_GOLDEN = 40
# A density smaller than at its mode by exp of this is none.
_NEGLIGIBLE = 45.0
_DOUBLINGS = 150
# Counts of a table at first, and at most.
_COUNTS = 64
_MOST_COUNTS = 65_536
# A table that holds less, or more, than this of 1 is not that of a density.
_MISSED = 0.01


class NumericDistribution(Distribution):
    """The distribution of a density that is 0 outside of an interval and has no far-off second mode.

    Args:
        log_density: of responses and parameters of the same shape.
        parameters: by name, of any shape.
        bounds: of the support.
        discrete: whether the response is a whole number from 0 on.
        name: of the family, for messages.
    """

    def __init__(
        self,
        log_density: LogDensity,
        parameters: Mapping[str, Array],
        bounds: tuple[float, float],
        discrete: bool,
        name: str,
    ) -> None:
        arrays = np.broadcast_arrays(*(np.asarray(own, float) for own in parameters.values()))
        self.shape = arrays[0].shape
        self._log_density = log_density
        self._known = {key: own.ravel() for key, own in zip(parameters, arrays, strict=True)}
        self._bounds, self._discrete = bounds, discrete
        with np.errstate(all="ignore"):
            self._y, self._below = self._counts() if discrete else self._table()
        total = self._below[:, -1]
        if not (np.abs(total - 1) < _MISSED).all():
            worst = float(total[np.argmax(np.abs(np.nan_to_num(total, nan=np.inf) - 1))])
            raise DataError(
                f"The probabilities of the {name} family add up to {worst:.3g}, not to 1: is its "
                "log-probability complete, with all terms of its parameters and constants?"
            )
        self._below = self._below / total[:, None]

    # Tables -------------------------------------------------------------------------------------

    def _log(self, y: Array) -> Array:
        """Log-densities at places `(n, m)`; minus infinity outside."""
        inside = (y >= self._bounds[0]) & (y <= self._bounds[1]) & np.isfinite(y)
        known = {key: np.broadcast_to(own[:, None], y.shape).ravel() for key, own in self._known.items()}
        safe = np.where(inside, y, self._inside()).ravel()
        found = np.asarray(self._log_density(safe, known)).reshape(y.shape)
        return np.where(inside & np.isfinite(found), found, -np.inf)

    def _inside(self) -> float:
        """Some place of the support."""
        low, high = self._bounds
        if np.isfinite(low) and np.isfinite(high):
            return (low + high) / 2
        return low + 1.0 if np.isfinite(low) else high - 1.0 if np.isfinite(high) else 0.0

    def _counts(self) -> tuple[Array, Array]:
        """Whole numbers, and cumulative probabilities."""
        rows, size = len(next(iter(self._known.values()))), _COUNTS
        while True:
            y = np.broadcast_to(np.arange(float(size)), (rows, size))
            below = np.cumsum(np.exp(self._log(y)), axis=1)
            if (below[:, -1] > 1 - 1e-9).all() or size >= _MOST_COUNTS:
                return y, below
            size *= 4

    def _table(self) -> tuple[Array, Array]:
        """Places on both sides of the mode at growing distances, and cumulative probabilities."""
        mode = self._mode()
        sides = [self._side(mode, sign) for sign in (-1, 1)]
        y = np.concatenate([sides[0][:, ::-1], mode[:, None], sides[1]], axis=1)
        density = np.exp(self._log(y))
        parts = np.diff(y) * self._between(y, density)
        return y, np.concatenate([np.zeros((len(y), 1)), np.cumsum(parts, axis=1)], axis=1)

    def _between(self, y: Array, density: Array) -> Array:
        """Mean density between places, by Simpson's rule."""
        middle = np.exp(self._log((y[:, 1:] + y[:, :-1]) / 2))
        found = (density[:, 1:] + 4 * middle + density[:, :-1]) / 6
        return np.where(np.isfinite(found), found, 0.0)

    def _mode(self) -> Array:
        """Where the density is largest: among sizes and the parameters, then near by."""
        rows = len(next(iter(self._known.values())))
        own = np.stack(list(self._known.values()), axis=1)
        candidates = np.concatenate([np.broadcast_to(_SIZES, (rows, len(_SIZES))), own], axis=1)
        if np.isfinite(self._bounds).all():
            inner = np.linspace(*self._bounds, 203)[1:-1]
            candidates = np.concatenate([candidates, np.broadcast_to(inner, (rows, len(inner)))], axis=1)
        candidates = np.sort(candidates, axis=1)
        best = np.argmax(self._log(candidates), axis=1)
        every = np.arange(rows)
        low = candidates[every, np.maximum(best - 1, 0)]
        high = candidates[every, np.minimum(best + 1, candidates.shape[1] - 1)]
        low, high = (np.clip(end, *self._bounds) for end in (low, high))
        share = (np.sqrt(5) - 1) / 2
        for _ in range(_GOLDEN):
            left, right = high - share * (high - low), low + share * (high - low)
            both = self._log(np.stack([left, right], axis=1))
            falls = both[:, 0] >= both[:, 1]
            low, high = np.where(falls, low, left), np.where(falls, right, high)
        return (low + high) / 2

    def _side(self, mode: Array, sign: int) -> Array:
        """Places on one side of the mode, as far as there is any density."""
        top = self._log(mode[:, None])
        steps = np.maximum(np.abs(mode) * _FINEST, _LEAST)[:, None] * 2.0 ** np.arange(_DOUBLINGS)
        fallen = top - self._log(mode[:, None] + sign * steps)
        rows, last = np.arange(len(mode)), _DOUBLINGS - 1
        near = steps[rows, np.where((fallen > 1).any(axis=1), np.argmax(fallen > 1, axis=1), last)]
        beyond = _DOUBLINGS - np.argmax((fallen < _NEGLIGIBLE)[:, ::-1], axis=1)
        beyond = np.where((fallen < _NEGLIGIBLE).any(axis=1), beyond, 0)
        reach = steps[rows, np.minimum(beyond, last)]
        end = self._bounds[0] if sign < 0 else self._bounds[1]
        if np.isfinite(end):
            reach = np.minimum(reach, np.abs(end - mode))
        reach = np.maximum(reach, _LEAST)
        first = np.minimum(near * _NEAREST, reach / 2)[:, None]
        return mode[:, None] + sign * first * (reach[:, None] / first) ** np.linspace(0, 1, _PLACES)

    # Distribution ---------------------------------------------------------------------------------

    def logpdf(self, y: Any) -> Array:
        """Of responses of the shape of the parameters, or of a number."""
        y = np.broadcast_to(np.asarray(y, float), np.broadcast_shapes(np.shape(y), self.shape))
        known = {
            key: np.broadcast_to(own.reshape(self.shape), y.shape) for key, own in self._known.items()
        }
        inside = (y >= self._bounds[0]) & (y <= self._bounds[1])
        if self._discrete:
            inside = inside & (y == np.floor(y))
        found = self._log_density(np.where(inside, y, self._inside()), known)
        return np.where(inside, found, -np.inf)

    logpmf = logpdf

    def pdf(self, y: Any) -> Array:
        return np.exp(self.logpdf(y))

    pmf = pdf

    def _moment(self, centre: Array, power: int) -> Array:
        if self._discrete:
            chance = np.diff(self._below, axis=1, prepend=0.0)
            return np.sum(chance * (self._y - centre[:, None]) ** power, axis=1)
        middle = (self._y[:, 1:] + self._y[:, :-1]) / 2
        chance = np.diff(self._below, axis=1)
        return np.sum(chance * (middle - centre[:, None]) ** power, axis=1)

    def mean(self) -> Array:
        return self._moment(np.zeros(len(self._y)), 1).reshape(self.shape)

    def var(self) -> Array:
        return self._moment(self.mean().ravel(), 2).reshape(self.shape)

    def cdf(self, y: Any) -> Array:
        if self._discrete:  # the table has a place for each
            return self._look_up(np.floor(y), self._y, self._below)
        return self._look_up(y, self._y, self._below)

    def ppf(self, q: Any) -> Array:
        found = self._look_up(q, self._below, self._y, upwards=self._discrete)
        q = np.broadcast_to(np.asarray(q, float), found.shape)
        return np.where((q >= 0) & (q <= 1), found, np.nan)

    def _look_up(self, at: Any, xs: Array, ys: Array, upwards: bool = False) -> Array:
        """Between places of the tables; of whole numbers the least that is enough."""
        shape = np.broadcast_shapes(np.shape(at), self.shape)
        rows = np.broadcast_to(np.arange(len(xs)).reshape(self.shape), shape)
        at = np.broadcast_to(np.asarray(at, float), shape)
        low, high = np.full(shape, -1), np.full(shape, xs.shape[1])
        reached = at * (1 - 1e-13) if upwards else at
        while (high - low > 1).any():
            middle = (low + high) // 2
            below = xs[rows, np.clip(middle, 0, xs.shape[1] - 1)] < reached
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        right = np.clip(high, 0, xs.shape[1] - 1)
        if upwards:
            return ys[rows, right]
        left = np.maximum(low, 0)
        width = xs[rows, right] - xs[rows, left]
        share = np.clip((at - xs[rows, left]) / np.where(width > 0, width, 1.0), 0, 1)
        found = ys[rows, left] + np.where(width > 0, share, 0.0) * (ys[rows, right] - ys[rows, left])
        return np.where((at < xs[rows, 0]) & (ys is self._below), 0.0, found)
