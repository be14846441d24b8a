"""Responses on the whole line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from scipy import stats

from ahofm_keras.families.base import Array, Links, Namespace
from ahofm_keras.families.exponential import ExponentialFamily
from ahofm_keras.families.predictive import Asked
from ahofm_keras.families.registry import register_family

# Of the average response: the least mean that a fit of a log or an inverse starts from.
_LEAST_SHARE = 0.1


@register_family
class Gaussian(ExponentialFamily):
    """Normal responses of one variance."""

    name = "gaussian"
    links: ClassVar[Links] = {"mean": ("identity", "log", "inverse")}
    support_text = "finite"
    dispersion_known = False
    constant_variance = True
    least_slope = 0.0
    with_dispersion = "gaussian_ls"
    remedies: ClassVar[Mapping[str, str]] = {
        "heavy tails": '`family="student_t"` has tails of a weight that is estimated.',
        "uneven spread": 'Consider log(y), or `family="gaussian_ls"`, whose scale has a formula too.',
    }

    def unit_deviance(self, y: Array, mean: Array, xp: Namespace = np) -> Array:
        return (y - mean) ** 2

    def variance(self, mean: np.ndarray) -> np.ndarray:
        return np.ones_like(mean)

    def distribution(self, mean: np.ndarray, dispersion: float | np.ndarray = 1.0) -> object:
        return stats.norm(mean, np.sqrt(dispersion))

    def rough_mean(self, y: np.ndarray, average: float) -> np.ndarray:
        return y if self.is_linear else np.maximum(y, _LEAST_SHARE * average)

    def advice(self, y: np.ndarray) -> str | None:
        if ((y == 0) | (y == 1)).all():
            return 'is 0 or 1: `family="bernoulli"` models its probability.'
        return None

    def averaged_quantile(
        self, link: np.ndarray, error: np.ndarray, dispersion: float, asked: Asked
    ) -> np.ndarray:
        if not self.is_linear:
            return super().averaged_quantile(link, error, dispersion, asked)
        return np.asarray(link + asked.score * np.sqrt(error**2 + dispersion))
