"""Amounts whose spread grows faster than their mean."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from scipy import stats

from ahofm_keras.families.above_zero import AboveZero, in_float
from ahofm_keras.families.base import Array, Family, Links, Namespace, Parameters
from ahofm_keras.families.distributions import ContinuousDistribution
from ahofm_keras.families.links import SCALES
from ahofm_keras.families.location_scale import FARTHEST, LEAST_SCALE, moments
from ahofm_keras.families.log_gamma import exp
from ahofm_keras.families.positive import Gamma
from ahofm_keras.families.registry import register_family
from ahofm_keras.families.special import HALF_LOG_2_PI

# Of scale times the root of the mean, a coefficient of variation: between which a fit starts.
_START = (1e-3, 10.0)


class _Distribution(ContinuousDistribution):
    """SciPy's, but for quantiles, which it does not find where the spread is large."""

    def __init__(self, own: Any) -> None:
        self._own, self.shape = own, np.shape(own.mean())

    def mean(self) -> np.ndarray:
        return np.asarray(self._own.mean())

    def var(self) -> np.ndarray:
        return np.asarray(self._own.var())

    def logpdf(self, y: Any) -> np.ndarray:
        return np.asarray(self._own.logpdf(y))

    def cdf(self, y: Any) -> np.ndarray:
        return np.asarray(self._own.cdf(y))

    def sf(self, y: Any) -> np.ndarray:
        return np.asarray(self._own.sf(y))

    def rvs(self, size: Any = None, random_state: Any = None) -> np.ndarray:
        size = self.shape if size is None else size
        return np.asarray(self._own.rvs(size=size, random_state=random_state))


@register_family
class InverseGaussian(AboveZero):
    """Times until a drifting sum of noise reaches a level: the variance is scale^2 mean^3."""

    name = "inverse_gaussian"
    links: ClassVar[Links] = {"mean": ("log", "softplus", "inverse", "inverse_square"), "scale": SCALES}
    variance_text = "scale^2 times the third power of the mean"
    meanings: ClassVar[Mapping[str, str]] = {
        "scale": "how much responses vary around their average: twice the scale is twice the variation",
    }
    aliases: ClassVar[Mapping[str, str]] = {"mu": "mean", "location": "mean", "sigma": "scale"}

    def log_density(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        return -(_standardised(y, parameters, xp) ** 2) / 2 - xp.log(parameters["scale"])

    def log_constant(self, y: np.ndarray) -> np.ndarray:
        return -HALF_LOG_2_PI - 1.5 * np.log(y)

    def distribution_of(self, parameters: Parameters) -> Any:
        square = parameters["scale"] ** 2
        return _Distribution(stats.invgauss(parameters["mean"] * square, scale=1 / square))

    def mean_of(self, parameters: Parameters, xp: Namespace = np) -> Array:
        return parameters["mean"] + 0 * parameters["scale"]

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        mean, scale = parameters["mean"], parameters["scale"]
        z = _standardised(y, parameters)
        by_mean = z / scale * (np.sqrt(y) / mean / mean)
        return {"mean": by_mean, "scale": (z**2 - 1) / scale}

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        mean, scale = parameters["mean"], parameters["scale"]
        once = exp(np.clip(-2 * np.log(scale) - 3 * np.log(mean), -650, 650))
        return {"mean": in_float(once), "scale": 2 / scale**2 + 0 * mean}

    def first_fit(self, y: np.ndarray) -> tuple[Family, np.ndarray] | None:
        return (Gamma(self.link), y) if self.link in Gamma.links["mean"] else None

    def start_values(self, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
        mean, variance = moments(y, weight)
        return {"mean": mean, "scale": float(np.clip(sqrt(variance) / mean, *_START)) / sqrt(mean)}


def _standardised(y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
    """(y - mean) / (scale mean sqrt(y))."""
    mean = parameters["mean"]
    ratio = xp.clip(y / mean - 1, -FARTHEST, FARTHEST)
    scale = xp.maximum(parameters["scale"], LEAST_SCALE)
    return xp.clip(ratio / xp.sqrt(y) / scale, -FARTHEST, FARTHEST)
