"""Responses with tails that fall like those of an exponential, on both sides."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from ahofm_keras.families.base import Array, Namespace, Parameters
from ahofm_keras.families.location_scale import LocationScale, least_scale, quantiles
from ahofm_keras.families.registry import register_family


@register_family
class Laplace(LocationScale):
    """Responses whose absolute distance from the median is exponential.

    The best location is a median, the best scale the mean distance from it.
    """

    name = "laplace"
    variance_text = "twice the square of the scale"

    def log_density(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        return -xp.abs(self.standardised(y, parameters, xp)) - xp.log(parameters["scale"])

    def log_constant(self, y: np.ndarray) -> np.ndarray:
        return np.full_like(y, -np.log(2), dtype=float)

    def distribution_of(self, parameters: Parameters) -> Any:
        return stats.laplace(parameters["loc"], parameters["scale"])

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        z, scale = self.standardised(y, parameters), parameters["scale"]
        return {"loc": np.sign(z) / scale, "scale": (np.abs(z) - 1) / scale}

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        once = 1 / parameters["scale"] ** 2
        return {"loc": once, "scale": once}

    def start_values(self, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
        median = float(quantiles(y, (0.5,), weight)[0])
        distance = float(np.average(np.abs(y - median), weights=weight))
        return {"loc": median, "scale": max(distance, least_scale(y))}

    def crps(self, y: np.ndarray, parameters: Parameters) -> np.ndarray:
        z = np.abs(self.standardised(y, parameters))
        return np.asarray(parameters["scale"] * (z + np.exp(-z) - 0.75))
