"""Counts whose variance is a multiple of their mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from ahofm_keras.families.base import Array, Namespace, Parameters
from ahofm_keras.families.counted import Dispersed
from ahofm_keras.families.location_scale import moments
from ahofm_keras.families.negative_binomial import NegativeBinomial
from ahofm_keras.families.registry import register_family

_SQUARE = NegativeBinomial()
# Means of which the dispersion is a share that is still a number.
_MEANS = (1e-60, 1e60)
_DISPERSIONS = (1e-30, 1e30)
_START = (1e-3, 1e4)


@register_family
class NegativeBinomial1(Dispersed):
    """Counts whose variance is (1 + dispersion) mean, as a quasi-poisson model has it.

    They are those of `negative_binomial` with dispersion / mean in the place of the dispersion.
    """

    name = "negative_binomial_1"
    variance_text = "1 + dispersion times the mean"

    def log_density(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        return _SQUARE.log_density(y, _by_square(parameters, xp), xp)

    def distribution_of(self, parameters: Parameters) -> Any:
        return _SQUARE.distribution_of(_by_square(parameters))

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        own = _by_square(parameters)
        score = _SQUARE.score(y, own)
        by_share, mean = score["dispersion"], own["mean"]
        return {
            "mean": score["mean"] - by_share * own["dispersion"] / mean,
            "dispersion": by_share / mean,
        }

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        """Mean and dispersion of `negative_binomial` say nothing of each other."""
        own = _by_square(parameters)
        information = _SQUARE.information(y, own)
        by_share, mean = information["dispersion"], own["mean"]
        return {
            "mean": information["mean"] + by_share * (own["dispersion"] / mean) ** 2,
            "dispersion": by_share / mean**2,
        }

    def start_values(self, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
        mean, variance = moments(y, weight)
        mean = max(mean, 1e-3)
        return {"mean": mean, "dispersion": float(np.clip(variance / mean - 1, *_START))}

    def absolute_error(self, y: np.ndarray, parameters: Parameters) -> np.ndarray:
        return _SQUARE.absolute_error(y, _by_square(parameters))

    def mean_difference(self, parameters: Parameters) -> np.ndarray:
        return _SQUARE.mean_difference(_by_square(parameters))


def _by_square(parameters: Parameters, xp: Namespace = np) -> dict[str, Array]:
    """The parameters of `negative_binomial`."""
    mean = xp.clip(parameters["mean"], *_MEANS)
    return {"mean": mean, "dispersion": xp.clip(parameters["dispersion"], *_DISPERSIONS) / mean}
