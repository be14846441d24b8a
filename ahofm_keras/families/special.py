"""Functions that neither NumPy nor `keras.ops` has, without the digits that large arguments lose.

log Gamma(x) is (x - 1/2) log x - x + log(2 pi) / 2 + rest(x). In a density of several gamma functions
the large parts cancel on paper, so that only the rests, which vanish as x grows, are computed.
"""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np
from scipy import special

Array = Any
Namespace = Any

HALF_LOG_2_PI = log(2 * pi) / 2
# From here on the rests are Stirling's series, to the last digit of float64.
_SERIES_FROM = 10.0
_LEAST = 1e-300
# Powers of 1 / x^2 in the series of the rest, of its slope and of its curvature.
_REST = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_SLOPE = (-1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132, 691 / 32760, -1 / 12)
_CURVE = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
# Below this the normal distribution function is its density over |x|, times 1 - 1 / x^2 + 3 / x^4 - ...
_TAIL_TO = -10.0
_TAIL = (-1.0, 3.0, -15.0, 105.0, -945.0, 10395.0, -135135.0, 2027025.0, -34459425.0, 654729075.0)
# Of log(1 + u) = 2 (z + z^3 / 3 + ...), z = u / (2 + u), enough for |u| below this.
_SMALL = 0.1
_ODD = (1 / 3, 1 / 5, 1 / 7, 1 / 9, 1 / 11, 1 / 13)


def log_gamma(x: Array, xp: Namespace = np) -> Array:
    """The logarithm of the gamma function."""
    if xp is np:
        return special.gammaln(x)
    import tensorflow as tf

    return tf.math.lgamma(x)


def gamma_rest(x: Array, xp: Namespace = np) -> Array:
    """Log Gamma(x) less (x - 1/2) log x - x + log(2 pi) / 2, for x above 0."""
    small = xp.clip(x, _LEAST, _SERIES_FROM)
    direct = log_gamma(small, xp) - (small - 0.5) * xp.log(small) + small - HALF_LOG_2_PI
    inverse = 1 / xp.maximum(x, _SERIES_FROM)
    return xp.where(x < _SERIES_FROM, direct, inverse * _polynomial(_REST, inverse**2))


def gamma_rest_slope(x: np.ndarray) -> np.ndarray:
    """Derivative of `gamma_rest`: digamma(x) - log x + 1 / (2 x)."""
    small = np.clip(x, _LEAST, _SERIES_FROM)
    direct = special.digamma(small) - np.log(small) + 0.5 / small
    square = 1 / np.maximum(x, _SERIES_FROM) ** 2
    return np.where(x < _SERIES_FROM, direct, square * _polynomial(_SLOPE, square))


def gamma_rest_curve(x: np.ndarray) -> np.ndarray:
    """Second derivative of `gamma_rest`: trigamma(x) - 1 / x - 1 / (2 x^2)."""
    small = np.clip(x, 1e-140, _SERIES_FROM)
    direct = special.zeta(2, small) - 1 / small - 0.5 / small**2
    inverse = 1 / np.maximum(x, _SERIES_FROM)
    return np.where(x < _SERIES_FROM, direct, inverse**3 * _polynomial(_CURVE, inverse**2))


def log1p_exp(x: Array, xp: Namespace = np) -> Array:
    """Log(1 + exp(x)), which neither overflows nor loses small values."""
    return np.logaddexp(0.0, x) if xp is np else xp.softplus(x)


def log_normal_cdf(x: Array, xp: Namespace = np) -> Array:
    """The logarithm of the standard normal distribution function."""
    if xp is np:
        return special.log_ndtr(x)
    import tensorflow as tf

    near = xp.log(tf.math.erfc(-xp.maximum(x, _TAIL_TO) / 2**0.5) / 2)
    far = xp.minimum(x, _TAIL_TO)
    inverse = 1 / far**2
    tail = -(far**2) / 2 - xp.log(-far) - HALF_LOG_2_PI + xp.log1p(inverse * _polynomial(_TAIL, inverse))
    return xp.where(x < _TAIL_TO, tail, near)


def log1p_gap(u: Array, log1p: Array, xp: Namespace = np) -> Array:
    """u - log(1 + u), with all digits where u is small.

    Args:
        u: above -1.
        log1p: log(1 + u), which may be known better than from u.
    """
    small = xp.clip(u, -_SMALL, _SMALL)
    z = small / (2 + small)
    square = z * z  # a power of 3 takes ten times as long
    series = z * small - 2 * z * square * _polynomial(_ODD, square)
    return xp.where(xp.abs(u) < _SMALL, series, u - log1p)


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    found = coefficients[-1] + 0 * x
    for coefficient in coefficients[-2::-1]:
        found = found * x + coefficient
    return found
