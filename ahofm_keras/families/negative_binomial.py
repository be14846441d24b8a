"""Counts that vary more than their mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from scipy import special, stats

from ahofm_keras.families.base import Array, Namespace, Parameters
from ahofm_keras.families.count_sums import count_nodes
from ahofm_keras.families.counted import Dispersed
from ahofm_keras.families.gridded import gridded
from ahofm_keras.families.location_scale import moments
from ahofm_keras.families.registry import register_family
from ahofm_keras.families.special import gamma_rest, gamma_rest_slope, log1p_gap

# Means and dispersions between which the density is computed; below, it is as good as that of a poisson.
_MEANS = (1e-100, 1e100)
_DISPERSIONS = (1e-35, 1e35)
# The same for SciPy's distribution, which needs 1 / (1 + dispersion mean) with all digits.
_LEAST_DISPERSION = 1e-9
_START = (1e-3, 100.0)
# Means and dispersions between which the information is summed: beyond, the share is that of the end.
_SUMMED = (1e-8, 1e6)
# Step of the logarithms of mean and dispersion between places where the information is summed.
_STEP = 0.2


@register_family
class NegativeBinomial(Dispersed):
    """Counts whose variance is mean + dispersion mean^2."""

    name = "negative_binomial"
    remedies: ClassVar[Mapping[str, str]] = {
        "more zeros": (
            'Where zeros have a cause of their own: `family="zero_inflated_negative_binomial"`.'
        ),
    }
    variance_text = "mean + dispersion times the square of the mean"

    def log_density(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        mean, dispersion = _held(parameters, xp)
        size, scale = 1 / dispersion, 1 + dispersion * mean
        excess, log = _excess(y, mean, dispersion, xp)
        # (size + y) log((1 + dispersion y) / (1 + dispersion mean)), which is log(1 + excess)
        power = (y - mean) / scale + y * excess - (size + y) * log1p_gap(excess, log, xp)
        rests = gamma_rest(size + y, xp) - gamma_rest(size, xp)
        return power - xp.log1p(dispersion * y) / 2 + rests + y * (xp.log(mean) - 1)

    def distribution_of(self, parameters: Parameters) -> Any:
        mean, dispersion = _held(parameters)
        dispersion = np.maximum(dispersion, _LEAST_DISPERSION)
        return stats.nbinom(1 / dispersion, 1 / (1 + dispersion * mean))

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        mean, dispersion = _held(parameters)
        return {
            "mean": (y - mean) / mean / (1 + dispersion * mean),
            "dispersion": _dispersion_score(y, mean, dispersion),
        }

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        mean, dispersion = np.broadcast_arrays(*_held(parameters))
        return {
            "mean": 1 / mean / (1 + dispersion * mean),
            "dispersion": _dispersion_information(mean, dispersion),
        }

    def start_values(self, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
        mean, variance = moments(y, weight)
        mean = max(mean, 1e-3)
        return {"mean": mean, "dispersion": float(np.clip((variance - mean) / mean**2, *_START))}

    def absolute_error(self, y: np.ndarray, parameters: Parameters) -> np.ndarray:
        mean, own = parameters["mean"], self.distribution_of(parameters)
        size, chance = own.args
        more = stats.nbinom(size + 1, chance)
        return np.asarray(y * (2 * own.cdf(y) - 1) - mean * (2 * more.cdf(y - 1) - 1))

    def mean_difference(self, parameters: Parameters) -> np.ndarray:
        mean, dispersion = np.broadcast_arrays(*_held(parameters))
        counts, weights = count_nodes(mean, mean + dispersion * mean**2)
        own = self.distribution_of({"mean": mean[..., None], "dispersion": dispersion[..., None]})
        size, chance = own.args
        below = _smooth_cdf(counts, size, chance)
        return np.asarray(2 * np.sum(weights * below * (1 - below), axis=-1))


def _smooth_cdf(counts: np.ndarray, size: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """The cumulative probability, between whole numbers too."""

    return np.asarray(special.betainc(size, counts + 1, chance))


def _held(parameters: Parameters, xp: Namespace = np) -> tuple[Array, Array]:
    return xp.clip(parameters["mean"], *_MEANS), xp.clip(parameters["dispersion"], *_DISPERSIONS)


def _excess(y: Array, mean: Array, dispersion: Array, xp: Namespace) -> tuple[Array, Array]:
    """(1 + dispersion y) / (1 + dispersion mean) less 1, and its logarithm before that."""
    excess = dispersion / (1 + dispersion * mean) * (y - mean)
    return excess, xp.log1p(dispersion * y) - xp.log1p(dispersion * mean)


def _dispersion_score(y: np.ndarray, mean: np.ndarray, dispersion: np.ndarray) -> np.ndarray:
    size = 1 / dispersion
    gap = log1p_gap(*_excess(y, mean, dispersion, np))
    rests = gamma_rest_slope(size + y) - gamma_rest_slope(size)
    return np.asarray(size**2 * (gap - rests) - y / (1 + dispersion * y) / 2)


def _dispersion_information(mean: np.ndarray, dispersion: np.ndarray) -> np.ndarray:
    """The share of what a normal response would say, summed over counts; of many rows on a grid."""
    logs = np.log(np.clip(mean, *_SUMMED)), np.log(np.clip(dispersion, *_SUMMED))
    normal = (mean / (1 + dispersion * mean)) ** 2 / 2
    (log_share,) = gridded(_log_share, *logs, step=_STEP)
    return np.asarray(normal * np.exp(log_share))


def _log_share(log_mean: np.ndarray, log_dispersion: np.ndarray) -> tuple[np.ndarray]:
    """Expected square of the dispersion's score, over that of a normal response of the same moments."""
    mean, dispersion = np.exp(log_mean), np.exp(log_dispersion)
    counts, weights = count_nodes(mean, mean + dispersion * mean**2)
    mean, dispersion = mean[..., None], dispersion[..., None]
    family, parameters = NegativeBinomial(), {"mean": mean, "dispersion": dispersion}
    log = family.log_density(counts, parameters) + family.log_constant(counts)
    chance = weights * np.exp(log - log.max(axis=-1, keepdims=True))
    squares = np.sum(chance * _dispersion_score(counts, mean, dispersion) ** 2, axis=-1)
    normal = (mean / (1 + dispersion * mean))[..., 0] ** 2 / 2
    return (np.log(squares / np.sum(chance, axis=-1) / normal),)
