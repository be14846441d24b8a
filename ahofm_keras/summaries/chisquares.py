"""Tail probabilities of weighted sums of chi-squares, exact also far out in the tail."""

from __future__ import annotations

import numpy as np
from scipy import stats
from scipy.optimize import brentq

# Weights below this share of the largest do not change a probability that anybody reads.
_NOTHING = 1e-10
# Beyond it every probability is 0 to a reader.
_LARGEST = 1e12
# Points of the path of integration, and how much it bends at least.
_STEP = 1 / 32
_STEPS = 600
_LEAST_BEND = 0.02


def tail_of_sum(value: float, weights: np.ndarray, residual_df: float | None = None) -> float:
    """P(sum_i w_i X_i > value) with independent X_i ~ chi^2_1.

    With `residual_df` = k the value comes from an estimated dispersion: P(sum_i w_i X_i > value Y / k)
    with Y ~ chi^2_k, which for equal weights is the tail of an F distribution.

    The moment generating function is inverted along a parabola through the saddle point of the
    integrand, around which it falls fast: digits are relative to the probability, however small.

    Args:
        value: not negative.
        weights: w `(m,)`, positive.
        residual_df: k, or None where the dispersion is known.
    """
    weights = np.asarray(weights, float)
    weights = weights[weights > _NOTHING * weights.max(initial=0.0)]
    value = min(value, _LARGEST * weights.max(initial=0.0))
    if not value > 0:
        return 1.0
    if np.ptp(weights) < 1e-9 * weights[0]:
        count, ratio = len(weights), value / weights.mean()
        if residual_df is None:
            return float(stats.chi2.sf(ratio, count))
        return float(stats.f.sf(ratio / count, count, residual_df))
    # In units of the largest weight everything is near 1.
    return _invert(value / weights.max(), weights / weights.max(), residual_df)


def _invert(value: float, weights: np.ndarray, residual_df: float | None) -> float:
    """(1 / 2 pi i) times the integral of exp(K(s)) / s, K the generating function of what exceeds 0."""

    def exponent(s: np.ndarray) -> np.ndarray:
        total = -0.5 * np.sum(np.log(1 - 2 * s[:, None] * weights), axis=1)
        if residual_df is None:
            return total - s * value
        return total - 0.5 * residual_df * np.log(1 + 2 * s * value / residual_df)

    def slope(s: float) -> float:
        total = float(np.sum(weights / (1 - 2 * s * weights))) - 1 / s
        return total - value / (1.0 if residual_df is None else 1 + 2 * s * value / residual_df)

    # The generating function exists below 1/2, the largest weight being 1; the slope rises from -inf
    # to inf in between.
    saddle = float(brentq(slope, 1e-300, 0.5 * (1 - 1e-14)))
    near = weights / (1 - 2 * saddle * weights)
    curvature = 1 / saddle**2 + 2 * float(np.sum(near**2))
    # A branch cut runs from 1/2 to the right, where exp(-s value) falls: the path of steepest descent
    # bends around it. With an estimated dispersion a straight line does as well.
    third = -2 / saddle**3 + 8 * float(np.sum(near**3))
    bend = max(third / (6 * curvature), _LEAST_BEND / saddle) if residual_df is None else 0.0
    t = np.sinh(_STEP * np.arange(_STEPS)) / np.sqrt(curvature)
    path = saddle + bend * t**2 + 1j * t
    direction = 2 * bend * t + 1j
    height = exponent(np.array([saddle]))[0]
    values = np.exp(exponent(path) - height) / path * direction
    # The trapezoidal rule is exact to the last digits for what is smooth and falls to 0 at both ends.
    steps = _STEP * np.cosh(_STEP * np.arange(_STEPS)) / np.sqrt(curvature)
    steps[0] /= 2
    total = float(np.sum(np.imag(values) * steps)) / np.pi
    return float(np.clip(np.exp(height) * total, 0.0, 1.0))
