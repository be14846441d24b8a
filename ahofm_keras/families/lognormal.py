"""Amounts whose logarithm is normal."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from scipy import special, stats

from ahofm_keras.families.above_zero import AboveZero
from ahofm_keras.families.base import Array, Family, Links, Namespace, Parameters
from ahofm_keras.families.gaussian import Gaussian
from ahofm_keras.families.links import SCALES
from ahofm_keras.families.location_scale import FARTHEST, LEAST_SCALE, moments
from ahofm_keras.families.log_gamma import exp
from ahofm_keras.families.registry import register_family
from ahofm_keras.families.special import HALF_LOG_2_PI


@register_family
class LogNormal(AboveZero):
    """Amounts by the mean and the standard deviation of their logarithm."""

    name = "lognormal"
    links: ClassVar[Links] = {"loc": ("identity",), "scale": SCALES}
    variance_text = "exp(scale^2) - 1 times the square of the mean"
    meanings: ClassVar[Mapping[str, str]] = {
        "loc": "where the middle of the logarithms of the responses lies",
        "scale": "how far these logarithms spread: 0.1 is about 10 % up or down",
    }
    aliases: ClassVar[Mapping[str, str]] = {
        "mu": "loc",
        "location": "loc",
        "meanlog": "loc",
        "sigma": "scale",
        "sd": "scale",
        "sdlog": "scale",
    }

    def log_density(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        return -(_standardised(y, parameters, xp) ** 2) / 2 - xp.log(parameters["scale"])

    def log_constant(self, y: np.ndarray) -> np.ndarray:
        return -HALF_LOG_2_PI - np.log(y)

    def distribution_of(self, parameters: Parameters) -> Any:
        return stats.lognorm(parameters["scale"], scale=exp(parameters["loc"]))

    def mean_of(self, parameters: Parameters, xp: Namespace = np) -> Array:
        return exp(parameters["loc"] + parameters["scale"] ** 2 / 2, xp)

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        z, scale = _standardised(y, parameters), parameters["scale"]
        return {"loc": z / scale, "scale": (z**2 - 1) / scale}

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        once = 1 / parameters["scale"] ** 2
        return {"loc": once, "scale": 2 * once}

    def first_fit(self, y: np.ndarray) -> tuple[Family, np.ndarray] | None:
        return Gaussian(), np.log(y)

    def start_values(self, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
        mean, variance = moments(np.log(y), weight)
        return {"loc": mean, "scale": sqrt(variance)}

    def crps(self, y: np.ndarray, parameters: Parameters) -> np.ndarray:
        z, scale = _standardised(y, parameters), parameters["scale"]
        shifted = special.ndtr(z - scale) + special.ndtr(scale / sqrt(2)) - 1
        return np.asarray(y * (2 * special.ndtr(z) - 1) - 2 * self.mean_of(parameters) * shifted)


def _standardised(y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
    scale = xp.maximum(parameters["scale"], LEAST_SCALE)
    return xp.clip((xp.log(y) - parameters["loc"]) / scale, -FARTHEST, FARTHEST)
