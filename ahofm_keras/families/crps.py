"""The continuous ranked probability score of any distribution: by cumulative probabilities alone."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray

# Tails at which panels of the integral meet: beyond the last one lies nothing that counts.
_TAILS = np.array([1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.15, 0.3, 0.5])
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
# Counts that are summed one by one: beyond, a sum is as good as an integral.
_MOST_COUNTS = 5000


def numeric_crps(distribution: Any, y: Array, discrete: bool) -> Array:
    """Integral of (F(x) - 1{x >= y})^2 over x.

    Args:
        distribution: of each row, with SciPy's methods; its parameters have the shape `(n,)`.
        y: responses `(n,)`.
        discrete: whether they are whole numbers from 0 on.
    """
    lower = [np.asarray(distribution.ppf(tail), float) for tail in _TAILS]
    upper = [np.asarray(distribution.isf(tail), float) for tail in _TAILS[::-1]]
    ends = np.stack([np.broadcast_to(end, y.shape) for end in (*lower, *upper)], axis=-1)
    found = _integral(distribution, y, ends)
    if discrete:
        few = np.maximum(ends[:, -1], y) < _MOST_COUNTS
        if few.any():
            found = np.where(few, _total(distribution, y, float(np.max(ends[few, -1]))), found)
    return found


def _integral(distribution: Any, y: Array, ends: Array) -> Array:
    """By Gauss and Legendre between the ends, below y and above it."""
    low, high = np.minimum(ends[:, :1], y[:, None]), np.maximum(ends[:, -1:], y[:, None])
    ends = np.concatenate([low, ends, high], axis=1)
    below = _squares(distribution.cdf, np.minimum(ends, y[:, None]))
    return below + _squares(distribution.sf, np.maximum(ends, y[:, None]))


def _squares(chance: Any, ends: Array) -> Array:
    """Integral of the square of a probability from the first end to the last."""
    total = np.zeros(len(ends))
    for place in range(ends.shape[1] - 1):
        start, half = ends[:, place], (ends[:, place + 1] - ends[:, place]) / 2
        if not np.any(half > 0):
            continue
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            total += weight * half * np.asarray(chance(start + half * (1 + node))) ** 2
    return total


def _total(distribution: Any, y: Array, most: float) -> Array:
    """The sum over whole numbers up to the last that counts."""
    total = np.maximum(y - most - 1, 0.0)  # of each of these the square is 1
    for count in range(int(most) + 1):
        below, above = distribution.cdf(float(count)), distribution.sf(float(count))
        total += np.where(count >= y, above, below) ** 2
    return total
