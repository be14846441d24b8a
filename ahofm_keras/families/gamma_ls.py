"""Amounts whose relative spread has a predictor of its own."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from scipy import special, stats

from ahofm_keras.families.above_zero import AboveZero
from ahofm_keras.families.base import Array, Family, Links, Namespace, Parameters
from ahofm_keras.families.links import SCALES
from ahofm_keras.families.location_scale import moments
from ahofm_keras.families.positive import Gamma
from ahofm_keras.families.registry import register_family
from ahofm_keras.families.special import (
    HALF_LOG_2_PI,
    gamma_rest,
    gamma_rest_curve,
    gamma_rest_slope,
    log1p_gap,
)

# Coefficients of variation between which the density is computed, and those that a fit starts from.
_SCALES = (1e-35, 1e35)
_START = (1e-3, 10.0)
_FARTHEST = 1e70


@register_family
class GammaLS(AboveZero):
    """Amounts by their mean and their coefficient of variation: the shape is 1 / scale^2."""

    name = "gamma_ls"
    links: ClassVar[Links] = {"mean": ("log", "softplus", "identity", "inverse"), "scale": SCALES}
    variance_text = "the square of scale times mean"
    meanings: ClassVar[Mapping[str, str]] = {
        "scale": "how far responses spread, as a share of their average (the coefficient of variation)",
    }
    aliases: ClassVar[Mapping[str, str]] = {
        "mu": "mean",
        "location": "mean",
        "sigma": "scale",
        "cv": "scale",
    }

    def log_density(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        shape = _shape(parameters, xp)
        gap = log1p_gap(_excess(y, parameters, xp), xp.log(y) - xp.log(parameters["mean"]), xp)
        return -shape * gap + xp.log(shape) / 2 - gamma_rest(shape, xp)

    def log_constant(self, y: np.ndarray) -> np.ndarray:
        return -HALF_LOG_2_PI - np.log(y)

    def distribution_of(self, parameters: Parameters) -> Any:
        square = parameters["scale"] ** 2
        return stats.gamma(1 / square, scale=parameters["mean"] * square)

    def mean_of(self, parameters: Parameters, xp: Namespace = np) -> Array:
        return parameters["mean"] + 0 * parameters["scale"]

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        mean, shape = parameters["mean"], _shape(parameters)
        excess = _excess(y, parameters)
        gap = log1p_gap(excess, np.log(y) - np.log(mean))
        by_shape = -gap + 0.5 / shape - gamma_rest_slope(shape)
        return {"mean": shape * excess / mean, "scale": -2 * by_shape * shape**1.5}

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        shape = _shape(parameters)
        scale = 2 * shape + 4 * shape**3 * gamma_rest_curve(shape)
        return {"mean": shape / parameters["mean"] ** 2, "scale": scale}

    def first_fit(self, y: np.ndarray) -> tuple[Family, np.ndarray] | None:
        return (Gamma(self.link), y) if self.link in Gamma.links["mean"] else None

    def start_values(self, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
        mean, variance = moments(y, weight)
        return {"mean": mean, "scale": float(np.clip(sqrt(variance) / mean, *_START))}

    def crps(self, y: np.ndarray, parameters: Parameters) -> np.ndarray:
        shape, mean = _shape(parameters), parameters["mean"]
        ratio = shape * y / mean
        below = y * (2 * special.gammainc(shape, ratio) - 1)
        above = mean * (2 * special.gammainc(shape + 1, ratio) - 1)
        return np.asarray(below - above - mean / shape * np.exp(-special.betaln(0.5, shape)))


def _shape(parameters: Parameters, xp: Namespace = np) -> Array:
    return 1 / xp.clip(parameters["scale"], *_SCALES) ** 2


def _excess(y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
    """Y / mean - 1."""
    return xp.clip((y - parameters["mean"]) / parameters["mean"], -_FARTHEST, _FARTHEST)
