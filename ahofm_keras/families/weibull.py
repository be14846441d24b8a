"""Times until an event whose hazard rises or falls with time."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi, sqrt
from typing import Any, ClassVar

import numpy as np
from scipy import special, stats

from ahofm_keras.families.above_zero import AboveZero
from ahofm_keras.families.base import Array, Family, Links, Namespace, Parameters
from ahofm_keras.families.links import SCALES
from ahofm_keras.families.location_scale import moments
from ahofm_keras.families.log_gamma import exp
from ahofm_keras.families.positive import Gamma
from ahofm_keras.families.registry import register_family
from ahofm_keras.families.special import log_gamma

# From this power on the density is 0 in float64 by far, and its logarithm goes on as a straight line.
_LARGEST_LOG = 100.0
_SHAPES = (1e-60, 1e60)
# Between these shapes a fit starts.
_START = (0.05, 100.0)
# Expected square of the score of a shape of 1.
_SHAPE = pi**2 / 6 + (1 - np.euler_gamma) ** 2


@register_family
class Weibull(AboveZero):
    """Times whose hazard is a power of time: it falls where the shape is below 1, rises above 1."""

    name = "weibull"
    links: ClassVar[Links] = {"scale": SCALES, "shape": SCALES}
    variance_text = "what scale and shape say"
    meanings: ClassVar[Mapping[str, str]] = {
        "scale": "how large responses are: 63 % of them lie below it",
        "shape": "how even they are: above 1 they gather around a value, below 1 most are small",
    }
    aliases: ClassVar[Mapping[str, str]] = {
        "mu": "scale",
        "lambda": "scale",
        "sigma": "shape",
        "k": "shape",
    }

    def log_density(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        shape = parameters["shape"]
        power = _log_power(y, parameters, xp)
        return xp.log(shape) + power - _exp(power, xp)

    def log_constant(self, y: np.ndarray) -> np.ndarray:
        return -np.log(y)

    def distribution_of(self, parameters: Parameters) -> Any:
        return stats.weibull_min(parameters["shape"], scale=parameters["scale"])

    def mean_of(self, parameters: Parameters, xp: Namespace = np) -> Array:
        return parameters["scale"] * exp(log_gamma(1 + 1 / parameters["shape"], xp), xp)

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        scale, shape = parameters["scale"], parameters["shape"]
        power = _log_power(y, parameters)
        excess = np.expm1(np.minimum(power, _LARGEST_LOG))
        return {"scale": shape / scale * excess, "shape": (1 - power * excess) / shape}

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        scale, shape = parameters["scale"], parameters["shape"]
        return {"scale": (shape / scale) ** 2, "shape": _SHAPE / shape**2 + 0 * scale}

    def first_fit(self, y: np.ndarray) -> tuple[Family, np.ndarray] | None:
        return (Gamma(self.link), y) if self.link in Gamma.links["mean"] else None

    def start_values(self, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
        """The logarithm of a time has standard deviation pi / (sqrt(6) shape)."""
        mean, variance = moments(np.log(y), weight)
        shape = float(np.clip(pi / sqrt(6 * variance), *_START))
        return {"scale": float(np.exp(mean + np.euler_gamma / shape)), "shape": shape}

    def crps(self, y: np.ndarray, parameters: Parameters) -> np.ndarray:
        """The smaller of two times has the mean 2^(-1 / shape) times that of one."""
        shape, power = parameters["shape"], exp(_log_power(y, parameters))
        mean, below = self.mean_of(parameters), -np.expm1(-power)
        partial = special.gammainc(1 + 1 / shape, power)
        return np.asarray(y * (2 * below - 1) + mean * (2 ** (-1 / shape) - 2 * partial))


def _log_power(y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
    """Log of (y / scale)^shape."""
    return xp.clip(parameters["shape"], *_SHAPES) * (xp.log(y) - xp.log(parameters["scale"]))


def _exp(power: Array, xp: Namespace) -> Array:
    """Exp that goes on as a straight line far out."""
    return xp.exp(xp.clip(power, -700.0, _LARGEST_LOG)) * (1 + xp.maximum(power - _LARGEST_LOG, 0.0))
