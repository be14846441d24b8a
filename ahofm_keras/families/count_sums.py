"""Sums over all counts that a response can be, in a fixed number of places."""

from __future__ import annotations

import numpy as np

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
