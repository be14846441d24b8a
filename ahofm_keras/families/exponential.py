"""Exponential dispersion models: what follows from a variance function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from ahofm_keras.families.base import Array, Family, Namespace, Parameters


class ExponentialFamily(Family):
    """An exponential dispersion model: its mean, a variance function, and one dispersion.

    A subclass has `variance`, `distribution`, and either `unit_deviance` or `log_density`.
    """

    aliases: ClassVar[Mapping[str, str]] = {"mu": "mean", "location": "mean"}

    def log_density(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        """Minus half the unit deviance: the rest is of y alone."""
        return -self.unit_deviance(y, parameters["mean"], xp) / 2

    def loss(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        """Half the unit deviance."""
        return self.unit_deviance(y, parameters["mean"], xp) / 2

    def mean_of(self, parameters: Parameters, xp: Namespace = np) -> Array:
        return parameters["mean"]

    def log_constant(self, y: np.ndarray) -> np.ndarray:
        """What SciPy's density at dispersion 1 has besides, where the mean is the response."""
        distribution = self.distribution(y, 1.0)
        log = distribution.logpmf if self.discrete else distribution.logpdf
        return np.asarray(log(y) - self.log_density(y, {"mean": y}, np))

    def with_free_dispersion(self) -> ExponentialFamily:
        """The family with its variance times a dispersion that is estimated: a quasi-likelihood."""
        own = type(self)({name: link.name for name, link in self.parameters.items()})
        own.dispersion_known = False  # type: ignore[misc]
        return own

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        """(y - mean) / variance."""
        mean = parameters["mean"]
        return {"mean": (y - mean) / self._held(self.variance(mean))}

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        """1 / variance."""
        return {"mean": 1 / self._held(self.variance(parameters["mean"]))}

    def working(self, y: np.ndarray, etas: Parameters) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Weight slope^2 / variance, response eta + (y - mean) / slope."""
        eta = etas["mean"]
        mean, slope = self.inverse_link(eta, np), self._held(self.slope(eta, np))
        weight = slope**2 / self._held(self.variance(mean))
        return {"mean": (weight, eta + (y - mean) / slope)}
