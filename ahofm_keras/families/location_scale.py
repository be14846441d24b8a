"""What families of a location and a scale have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from ahofm_keras.families.base import Array, Family, Links, Namespace, Parameters
from ahofm_keras.families.gaussian import Gaussian
from ahofm_keras.families.links import SCALES

# Distances from the location, in scales, whose square is still a number.
FARTHEST = 1e70
# What is divided by, so that not even a gradient overflows.
LEAST_SCALE = 1e-80
# Of the size of the response: the least scale that a fit starts from, where all values are the same.
_LEAST_SHARE = 1e-6


class LocationScale(Family):
    """A response on the whole line whose location and scale have predictors."""

    links: ClassVar[Links] = {"loc": ("identity", "log", "softplus"), "scale": SCALES}
    support_text = "finite"
    remedies: ClassVar[Mapping[str, str]] = {
        "heavy tails": '`family="student_t"` has tails of a weight that is estimated.',
    }
    least_slope = 1e-150
    aliases: ClassVar[Mapping[str, str]] = {
        "mu": "loc",
        "mean": "loc",
        "location": "loc",
        "sigma": "scale",
        "sd": "scale",
        "std": "scale",
        "tau": "scale",
    }

    def mean_of(self, parameters: Parameters, xp: Namespace = np) -> Array:
        return parameters["loc"] + 0 * parameters["scale"]

    def first_fit(self, y: np.ndarray) -> tuple[Family, np.ndarray] | None:
        return (Gaussian(self.link), y) if self.link in Gaussian.links["mean"] else None

    def advice(self, y: np.ndarray) -> str | None:
        if ((y == 0) | (y == 1)).all():
            return 'is 0 or 1: `family="bernoulli"` models its probability.'
        return None

    def standardised(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        """(y - loc) / scale."""
        return standardise(y, parameters["loc"], parameters["scale"], xp)


def standardise(y: Array, loc: Array, scale: Array, xp: Namespace = np) -> Array:
    """(y - loc) / scale, whose square is a number."""
    return xp.clip((y - loc) / xp.maximum(scale, LEAST_SCALE), -FARTHEST, FARTHEST)


def moments(y: np.ndarray, weight: np.ndarray | None = None) -> tuple[float, float]:
    """Mean and variance, which is above 0."""
    mean = float(np.average(y, weights=weight))
    variance = float(np.average((y - mean) ** 2, weights=weight))
    return mean, max(variance, least_scale(y) ** 2)


def least_scale(y: np.ndarray) -> float:
    """What a scale starts from where all responses are the same."""
    return _LEAST_SHARE * max(float(np.max(np.abs(y))), 1e-100)


def quantiles(y: np.ndarray, chances: tuple[float, ...], weight: np.ndarray | None = None) -> np.ndarray:
    """Of rows that count by their weights."""
    order = np.argsort(y, kind="stable")
    counted = np.ones(len(y)) if weight is None else np.asarray(weight, float)[order]
    share = (np.cumsum(counted) - counted / 2) / counted.sum()
    return np.interp(chances, share, np.asarray(y, float)[order])
