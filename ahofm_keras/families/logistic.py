"""Responses with tails a little heavier than normal ones."""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np
from scipy import stats

from ahofm_keras.families.base import Array, Namespace, Parameters
from ahofm_keras.families.location_scale import LocationScale, moments
from ahofm_keras.families.registry import register_family
from ahofm_keras.families.special import log1p_exp


@register_family
class Logistic(LocationScale):
    """Responses whose cumulative probability is a logistic curve; a class of two is `bernoulli`."""

    name = "logistic"
    variance_text = "pi^2 / 3 times the square of the scale"

    def log_density(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        z = self.standardised(y, parameters, xp)
        return -z - 2 * log1p_exp(-z, xp) - xp.log(parameters["scale"])

    def distribution_of(self, parameters: Parameters) -> Any:
        return stats.logistic(parameters["loc"], parameters["scale"])

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        z, scale = self.standardised(y, parameters), parameters["scale"]
        slope = np.tanh(z / 2)
        return {"loc": slope / scale, "scale": (z * slope - 1) / scale}

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        once = 1 / parameters["scale"] ** 2
        return {"loc": once / 3, "scale": (3 + pi**2) / 9 * once}

    def start_values(self, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
        mean, variance = moments(y, weight)
        return {"loc": mean, "scale": sqrt(3 * variance) / pi}

    def crps(self, y: np.ndarray, parameters: Parameters) -> np.ndarray:
        z = self.standardised(y, parameters)
        return np.asarray(parameters["scale"] * (z + 2 * log1p_exp(-z) - 1))
