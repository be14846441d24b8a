"""The logarithm of a gamma variable: what the predictor of a count or an amount is compared with.

P(Y <= y | eta) of a poisson response is P(log G > eta), G ~ Gamma(y + 1); of a gamma response it is
P(log G <= log y - log(dispersion) - eta), G ~ Gamma(1 / dispersion). As all of these are logarithms
nothing overflows before the quantile itself does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from ahofm_keras.families.links import LARGEST_LOG

Array = np.ndarray
Namespace = Any

# From this shape on the cube root of G is taken as gaussian (Wilson and Hilferty): within 5 standard
# deviations off by 1e-5 of one. SciPy stops early in the tails of larger shapes.
_CUBIC_SHAPE = 1e5
# From this shape on log G is taken as gaussian: a quantile is then off by 1e-8 of itself, where the
# standard deviation of G is 1e-4 of it.
LARGE_SHAPE = 1e8
# Of smaller G, P(log G < l) is exp(shape l) / Gamma(shape + 1) to float64.
_SMALL_LOG = -37.0


def log_gamma_chance(shape: Array | float, log: Array, below: bool) -> Array:
    """P(log G <= log) or P(log G > log), G ~ Gamma(shape)."""
    value = np.exp(np.minimum(log, LARGEST_LOG))
    large = shape > _CUBIC_SHAPE
    chance = (special.gammainc if below else special.gammaincc)(np.where(large, 1.0, shape), value)
    if np.any(large):
        cubic = np.exp((log - np.log(shape)) / 3) - 1 + 1 / (9 * shape)
        score = 3 * np.sqrt(shape) * cubic
        chance = np.where(large, special.ndtr(score if below else -score), chance)
    if np.min(shape) < 1:
        small = np.exp(shape * np.minimum(log, _SMALL_LOG) - special.gammaln(shape + 1))
        chance = np.where(log < _SMALL_LOG, small if below else 1 - small, chance)
    return np.asarray(chance)


def log_gamma_quantile(shape: float, chance: float, upper: bool) -> float:
    """What log G, G ~ Gamma(shape), falls below or exceeds with a chance, also beyond float64's G."""
    small = (np.log1p(-chance) if upper else np.log(chance)) + special.gammaln(shape + 1)
    if small < _SMALL_LOG * shape:
        return float(small / shape)
    quantile = special.gammainccinv if upper else special.gammaincinv
    return float(np.log(quantile(shape, chance)))


def log_gamma_ends(shape: Array, beyond: float) -> tuple[Array, Array, Array]:
    """Between these lies log G but for twice `beyond`, with its centre; for shapes from 1 on.

    By Wilson and Hilferty, whose lower end lies too low, or below 0, where the shape is small.
    """
    reach = -special.ndtri(beyond)
    middle = 1 - 1 / (9 * shape)
    step = reach / (3 * np.sqrt(shape))
    bound = (np.log(beyond) + special.gammaln(shape + 1)) / shape
    cubic = np.log(shape) + 3 * np.log(np.maximum(middle - step, 1e-9))
    return np.maximum(bound, cubic), np.log(shape), np.log(shape) + 3 * np.log(middle + step)


def exp(log: Array, xp: Namespace = np) -> Array:
    """Infinite, and no warning, where it is beyond float64."""
    with np.errstate(over="ignore"):
        return xp.exp(log)
