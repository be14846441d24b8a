"""Probabilities between two thresholds, F(upper) - F(lower), by their logarithms and slopes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from ahofm_keras.families.links import LARGEST_LOG
from ahofm_keras.families.special import HALF_LOG_2_PI, log1p_exp, log_normal_cdf

Array = Any
Namespace = Any

# Below a width that a difference of exponentials can be divided by.
_LEAST = 1e-300
# Squares of products of two of these are numbers.
_STEEPEST = 1e75
# Thresholds whose normal density has a logarithm.
_FARTHEST = 1e70
# Of a width times the size of the thresholds: below, a normal probability is a series in both.
_NARROW = 0.05


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


def _probit(lower: Array, upper: Array, width: Array, first: Array, last: Array, xp: Namespace) -> Array:
    """F(b) - F(a) is F(b) (1 - F(a) / F(b)), or the same of -b and -a in the upper half."""
    _, inner, outer = _tails(lower, upper, first, last, xp)
    return log_normal_cdf(inner, xp) + _log_share(inner, outer, width, first | last, xp)


def _tails(
    lower: Array, upper: Array, first: Array, last: Array, xp: Namespace
) -> tuple[Array, Array, Array]:
    """Whether thresholds are mirrored, and then the one near the middle and the one further out."""
    lower, upper = xp.clip(lower, -_FARTHEST, _FARTHEST), xp.clip(upper, -_FARTHEST, _FARTHEST)
    mirrored = last | ((lower + upper > 0) & ~first)
    return mirrored, xp.where(mirrored, -lower, upper), xp.where(mirrored, -upper, lower)


def _log_share(inner: Array, outer: Array, width: Array, alone: Array, xp: Namespace) -> Array:
    """log(1 - F(outer) / F(inner)); 0 of a class at an end."""
    cdf = log_normal_cdf(inner, xp)
    fall = xp.maximum(cdf - log_normal_cdf(outer, xp), _LEAST)
    middle = (inner + outer) / 2
    narrow = _NARROW / (1 + xp.abs(middle))
    small = xp.clip(width, _LEAST, narrow)
    square, product = small**2, (middle * small) ** 2
    series = (product - square) / 24 + (product**2 - 6 * product * square + 3 * square**2) / 1920
    density = -(middle**2) / 2 - HALF_LOG_2_PI
    near = xp.log(small) + density + xp.log1p(series) - cdf
    found = xp.where(width < narrow, near, xp.log(-xp.expm1(-fall)))
    return xp.where(alone, 0.0, xp.minimum(found, 0.0))


def _probit_slopes(
    lower: Array, upper: Array, width: Array, first: Array, last: Array
) -> tuple[Array, Array]:
    mirrored, inner, outer = _tails(lower, upper, first, last, np)
    share = np.maximum(np.exp(_log_share(inner, outer, width, first | last, np)), 1 / _STEEPEST)
    by_inner = np.minimum(_mills(inner) / share, _STEEPEST)
    by_outer = np.where(first | last, 0.0, np.minimum(_mills(outer) * (1 - share) / share, _STEEPEST))
    return (
        np.where(first, 0.0, -np.where(mirrored, by_inner, by_outer)),
        np.where(last, 0.0, np.where(mirrored, by_outer, by_inner)),
    )


def _mills(x: np.ndarray) -> np.ndarray:
    """The normal density over the distribution function."""
    with np.errstate(over="ignore"):  # beyond, the ratio is 0
        return np.asarray(np.sqrt(2 / np.pi) / special.erfcx(-x / np.sqrt(2)))


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
        Cumulative("probit", _probit, _probit_slopes),
        Cumulative("cloglog", _cloglog, _cloglog_slopes),
    )
}
