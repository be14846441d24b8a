"""Normal responses whose spread has a predictor of its own."""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np
from scipy import special, stats

from ahofm_keras.families.base import Array, Namespace, Parameters
from ahofm_keras.families.location_scale import LocationScale, moments
from ahofm_keras.families.registry import register_family
from ahofm_keras.families.special import HALF_LOG_2_PI


@register_family
class GaussianLS(LocationScale):
    """Normal responses by their mean and standard deviation."""

    name = "gaussian_ls"
    variance_text = "the square of the scale"

    def log_density(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        return -(self.standardised(y, parameters, xp) ** 2) / 2 - xp.log(parameters["scale"])

    def log_constant(self, y: np.ndarray) -> np.ndarray:
        return np.full_like(y, -HALF_LOG_2_PI, dtype=float)

    def distribution_of(self, parameters: Parameters) -> Any:
        return stats.norm(parameters["loc"], parameters["scale"])

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        z, scale = self.standardised(y, parameters), parameters["scale"]
        return {"loc": z / scale, "scale": (z**2 - 1) / scale}

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        once = 1 / parameters["scale"] ** 2
        return {"loc": once, "scale": 2 * once}

    def start_values(self, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
        mean, variance = moments(y, weight)
        return {"loc": mean, "scale": sqrt(variance)}

    def crps(self, y: np.ndarray, parameters: Parameters) -> np.ndarray:
        z = self.standardised(y, parameters)
        density = np.exp(-(z**2) / 2) / sqrt(2 * pi)
        inside = z * (2 * special.ndtr(z) - 1) + 2 * density - 1 / sqrt(pi)
        return np.asarray(parameters["scale"] * inside)
