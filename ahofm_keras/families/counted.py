"""What families of counts with several parameters have in common."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import ClassVar

import numpy as np
from scipy import special, stats

from ahofm_keras.families.base import Array, Family, Links, Namespace, Parameters
from ahofm_keras.families.counts import Poisson
from ahofm_keras.families.links import MEANS, SCALES

_LEAST_MEAN = 1e-300


class Counted(Family):
    """Whole numbers from 0 on."""

    support_text = "whole numbers from 0 on"
    bounds = (0, inf)
    discrete = True
    predicts = "the expected count"
    result_label = "Expected"

    def support(self, y: np.ndarray) -> np.ndarray:
        return super().support(y) & (y == np.floor(y))

    def log_constant(self, y: np.ndarray) -> np.ndarray:
        """Minus log y!."""
        return -special.gammaln(np.asarray(y, float) + 1)

    def absolute_error(self, y: np.ndarray, parameters: Parameters) -> np.ndarray:
        """Expected distance of a new count from y."""
        raise NotImplementedError

    def mean_difference(self, parameters: Parameters) -> np.ndarray:
        """Expected distance of two new counts from each other."""
        raise NotImplementedError

    def crps(self, y: np.ndarray, parameters: Parameters) -> np.ndarray:
        return self.absolute_error(y, parameters) - self.mean_difference(parameters) / 2


class Dispersed(Counted):
    """Counts by their mean, and by how much more they vary than those of a Poisson distribution."""

    links: ClassVar[Links] = {"mean": MEANS, "dispersion": SCALES}
    meanings: ClassVar[Mapping[str, str]] = {
        "dispersion": "how much more counts vary than those of a Poisson distribution, which has 0",
    }
    aliases: ClassVar[Mapping[str, str]] = {
        "mu": "mean",
        "location": "mean",
        "sigma": "dispersion",
        "alpha": "dispersion",
        "delta": "dispersion",
        "phi": "dispersion",
    }

    def mean_of(self, parameters: Parameters, xp: Namespace = np) -> Array:
        return parameters["mean"] + 0 * parameters["dispersion"]

    def first_fit(self, y: np.ndarray) -> tuple[Family, np.ndarray] | None:
        if self.link not in Poisson.links["mean"]:
            return None
        return Poisson(self.link).with_free_dispersion(), y


class PoissonCounts(Counted):
    """The poisson part of a family that has zeros of its own."""

    name = "poisson counts"
    links = {"mean": ("log", "sqrt")}  # noqa: RUF012

    def log_density(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        mean = parameters["mean"]
        return y * xp.log(xp.maximum(mean, _LEAST_MEAN)) - mean

    def distribution_of(self, parameters: Parameters) -> object:
        return stats.poisson(parameters["mean"])

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        mean = np.maximum(parameters["mean"], _LEAST_MEAN)
        return {"mean": (y - mean) / mean}

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        return {"mean": 1 / np.maximum(parameters["mean"], _LEAST_MEAN)}

    def absolute_error(self, y: np.ndarray, parameters: Parameters) -> np.ndarray:
        mean, own = parameters["mean"], stats.poisson(parameters["mean"])
        return np.asarray((y - mean) * (2 * own.cdf(y) - 1) + 2 * mean * own.pmf(y))

    def mean_difference(self, parameters: Parameters) -> np.ndarray:
        mean = parameters["mean"]
        return np.asarray(2 * mean * (special.ive(0, 2 * mean) + special.ive(1, 2 * mean)))
