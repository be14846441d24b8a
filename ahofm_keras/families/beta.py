"""Shares between 0 and 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from scipy import special, stats

from ahofm_keras.families.base import Array, Family, Links, Namespace, Parameters
from ahofm_keras.families.links import PROBABILITIES, SCALES
from ahofm_keras.families.location_scale import moments
from ahofm_keras.families.registry import register_family
from ahofm_keras.families.special import (
    HALF_LOG_2_PI,
    gamma_rest,
    gamma_rest_curve,
    gamma_rest_slope,
)

# Between a mean and 0 or 1, so that logarithms stay finite.
_LEAST_MEAN = 1e-15
_PRECISIONS = (1e-100, 1e100)
_START = (0.1, 1e6)


@register_family
class Beta(Family):
    """Shares by their mean and a precision: the variance is mean (1 - mean) / (1 + precision)."""

    name = "beta"
    links: ClassVar[Links] = {"mean": PROBABILITIES, "precision": SCALES}
    support_text = "between 0 and 1, without the ends"
    bounds = (0, 1)
    variance_text = "mean (1 - mean) / (1 + precision)"
    predicts = "the average share"
    result_label = "Expected"
    aliases: ClassVar[Mapping[str, str]] = {
        "mu": "mean",
        "location": "mean",
        "phi": "precision",
        "sigma": "precision",
        "kappa": "precision",
    }

    def log_density(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        mean, precision = _held(parameters, xp)
        a, b = mean * precision, (1 - mean) * precision
        gap = _divergence(y, mean, xp)
        rests = gamma_rest(precision, xp) - gamma_rest(a, xp) - gamma_rest(b, xp)
        return -precision * gap + (xp.log(mean) + xp.log1p(-mean) + xp.log(precision)) / 2 + rests

    def log_constant(self, y: np.ndarray) -> np.ndarray:
        return -HALF_LOG_2_PI - np.log(y) - np.log1p(-y)

    def distribution_of(self, parameters: Parameters) -> Any:
        mean, precision = _held(parameters)
        return stats.beta(mean * precision, (1 - mean) * precision)

    def mean_of(self, parameters: Parameters, xp: Namespace = np) -> Array:
        return parameters["mean"] + 0 * parameters["precision"]

    def support(self, y: np.ndarray) -> np.ndarray:
        return super().support(y) & (y > 0) & (y < 1)

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        mean, precision = _held(parameters)
        a, b = mean * precision, (1 - mean) * precision
        # digamma(a) - digamma(b) is log(a / b) - 1 / (2 a) + 1 / (2 b) and the rests.
        odds = np.log(y) - np.log(mean) - np.log1p(-y) + np.log1p(-mean)
        slopes = gamma_rest_slope(a), gamma_rest_slope(b)
        by_mean = precision * (odds + 0.5 / a - 0.5 / b - slopes[0] + slopes[1])
        by_precision = -_divergence(y, mean, np) + 0.5 / precision + gamma_rest_slope(precision)
        by_precision = by_precision - mean * slopes[0] - (1 - mean) * slopes[1]
        return {"mean": by_mean, "precision": by_precision}

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        mean, precision = _held(parameters)
        a, b = mean * precision, (1 - mean) * precision
        curves = gamma_rest_curve(a), gamma_rest_curve(b)
        trigammas = (curve + 1 / x + 0.5 / x**2 for x, curve in zip((a, b), curves, strict=True))
        by_precision = 0.5 / precision**2 - gamma_rest_curve(precision)
        by_precision = by_precision + mean**2 * curves[0] + (1 - mean) ** 2 * curves[1]
        return {"mean": precision**2 * sum(trigammas), "precision": np.maximum(by_precision, 0.0)}

    def start_values(self, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
        mean, variance = moments(y, weight)
        mean = float(np.clip(mean, 1e-6, 1 - 1e-6))
        return {
            "mean": mean,
            "precision": float(np.clip(mean * (1 - mean) / variance - 1, *_START)),
        }

    def crps(self, y: np.ndarray, parameters: Parameters) -> np.ndarray:
        mean, precision = _held(parameters)
        a, b = mean * precision, (1 - mean) * precision
        distance = y * (2 * special.betainc(a, b, y) - 1) + mean * (1 - 2 * special.betainc(a + 1, b, y))
        pairs = 2 / precision * np.exp(special.betaln(2 * a, 2 * b) - 2 * special.betaln(a, b))
        return np.asarray(distance - pairs)


def _held(parameters: Parameters, xp: Namespace = np) -> tuple[Array, Array]:
    mean = xp.clip(parameters["mean"], _LEAST_MEAN, 1 - _LEAST_MEAN)
    return mean, xp.clip(parameters["precision"], *_PRECISIONS)


def _divergence(y: Array, mean: Array, xp: Namespace) -> Array:
    """Of the mean from the response: mean log(mean / y) + (1 - mean) log((1 - mean) / (1 - y))."""
    one = mean * (xp.log(mean) - xp.log(y))
    return one + (1 - mean) * (xp.log1p(-mean) - xp.log1p(-y))
