"""Probabilities between two thresholds, F(upper) - F(lower), by their logarithms and slopes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ahofm_keras.families.links import LARGEST_LOG
from ahofm_keras.families.special import log1p_exp

Array = Any
Namespace = Any

# Below a width that a difference of exponentials can be divided by.
_LEAST = 1e-300
# Squares of products of two of these are numbers.
_STEEPEST = 1e75


@dataclass(frozen=True)
class Cumulative:
    """A distribution F of what an ordered class is cut from.

    Args:
        name: of the link, the inverse of F.
        log_chance: `(lower, upper, width, first, last, xp)` -> log(F(upper) - F(lower)); below the first
            class F is 0 and above the last 1, whatever the threshold.
        slopes: `(lower, upper, width, first, last)` -> its derivatives by both thresholds.
    """

    name: str
    log_chance: Callable[[Array, Array, Array, Array, Array, Namespace], Array]
    slopes: Callable[[Array, Array, Array, Array, Array], tuple[Array, Array]]


def _logit(lower: Array, upper: Array, width: Array, first: Array, last: Array, xp: Namespace) -> Array:
    """F(b) - F(a) is F(b) F(-a) (1 - exp(a - b))."""
    middle = xp.where(first | last, 0.0, xp.log(-xp.expm1(-xp.maximum(width, _LEAST))))
    above = xp.where(last, 0.0, -log1p_exp(-upper, xp))
    return middle + above + xp.where(first, 0.0, -log1p_exp(lower, xp))


def _logit_slopes(
    lower: Array, upper: Array, width: Array, first: Array, last: Array
) -> tuple[Array, Array]:
    gap = np.where(first | last, 0.0, _over_expm1(width))
    by_upper = np.where(last, 0.0, np.exp(-log1p_exp(upper, np)) + gap)
    by_lower = np.where(first, 0.0, -np.exp(-log1p_exp(-lower, np)) - gap)
    return by_lower, by_upper


def _cloglog(
    lower: Array, upper: Array, width: Array, first: Array, last: Array, xp: Namespace
) -> Array:
    """F(b) - F(a) is exp(-exp(a)) (1 - exp(exp(a) - exp(b)))."""
    below = xp.exp(xp.clip(lower, -LARGEST_LOG, LARGEST_LOG))
    above = xp.exp(xp.clip(upper, -LARGEST_LOG, LARGEST_LOG))
    between = xp.where(first, above, _rise(below, above, width, xp))
    inside = xp.where(last, 1.0, xp.maximum(between, _LEAST))
    return xp.where(first, 0.0, -below) + xp.where(last, 0.0, xp.log(-xp.expm1(-inside)))


def _cloglog_slopes(
    lower: Array, upper: Array, width: Array, first: Array, last: Array
) -> tuple[Array, Array]:
    below = np.exp(np.clip(lower, -LARGEST_LOG, LARGEST_LOG))
    above = np.exp(np.clip(upper, -LARGEST_LOG, LARGEST_LOG))
    between = np.where(first, above, _rise(below, above, width, np))
    gap = np.where(last, 0.0, _over_expm1(between))
    by_lower = np.where(first, 0.0, -np.minimum(below, _STEEPEST) * (1 + gap))
    return by_lower, np.where(last, 0.0, np.minimum(above, _STEEPEST) * gap)


def _rise(below: Array, above: Array, width: Array, xp: Namespace) -> Array:
    """exp(b) - exp(a), which loses no digits where the width is small."""
    near = below * xp.expm1(xp.clip(width, _LEAST, 1.0))
    return xp.where(width < 1.0, near, above - below)


def _over_expm1(x: np.ndarray) -> np.ndarray:
    """1 / (exp(x) - 1), of numbers above 0."""
    return 1 / np.expm1(np.clip(x, 1 / _STEEPEST, LARGEST_LOG))


CUMULATIVE: dict[str, Cumulative] = {
    own.name: own
    for own in (
        Cumulative("logit", _logit, _logit_slopes),
        Cumulative("cloglog", _cloglog, _cloglog_slopes),
    )
}
