"""Counts with a longer tail than those of a negative binomial distribution (Consul and Jain 1973)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from ahofm_keras.families.base import Array, Family, Namespace, Parameters
from ahofm_keras.families.count_sums import SummedCounts
from ahofm_keras.families.counted import Dispersed
from ahofm_keras.families.location_scale import moments
from ahofm_keras.families.registry import register_family

# Means and dispersions between which the density is computed, and a fit starts.
_MEANS = (1e-100, 1e100)
_DISPERSIONS = (1e-30, 1e30)
_START = (1e-3, 1e4)


class _Distribution(SummedCounts):
    """All descendants of a Poisson number of founders, whose children are Poisson numbers too."""

    def __init__(self, mean: Array, dispersion: Array) -> None:
        mean, dispersion = np.broadcast_arrays(mean, dispersion)
        known = {"mean": mean[..., None], "dispersion": dispersion[..., None]}
        self._founders, self._children = _rates(mean, dispersion)

        def log_chance(y: Array) -> Array:
            return GeneralizedPoisson().log_density(y, known) - special.gammaln(y + 1)

        variance = (1 + dispersion) * mean
        super().__init__(log_chance, mean, variance, 2 * (1 + dispersion))

    def rvs(self, size: Any = None, random_state: Any = None) -> Array:
        """Generation by generation."""
        rng = np.random.default_rng(random_state)
        generation = rng.poisson(self._founders, size)
        total = np.array(generation, float)
        while np.any(generation):
            generation = rng.poisson(self._children * generation)
            total += generation
        return total


@register_family
class GeneralizedPoisson(Dispersed):
    """Counts whose variance is (1 + dispersion) mean, with a longer tail than `negative_binomial_1`.

    They are the descendants of a Poisson number of founders with the mean a = mean s, each of whom has a
    Poisson number of children with the mean b = 1 - s, s = (1 + dispersion)^(-1/2), and so on: P(y) is
    a (a + b y)^(y - 1) exp(-a - b y) / y!. Counts that vary less than their mean would have b below 0,
    where the formula ends at a largest count and does not add up to 1: they are not in the family.
    """

    name = "generalized_poisson"
    variance_text = "1 + dispersion times the mean"
    crps = Family.crps  # distances of counts have no closed form

    def log_density(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        founders, children = _rates(*_held(parameters, xp), xp)
        rate = founders + children * y
        return xp.log(founders) + (y - 1) * xp.log(rate) - rate

    def distribution_of(self, parameters: Parameters) -> Any:
        return _Distribution(*_held(parameters))

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        mean, dispersion = _held(parameters)
        founders, children = _rates(mean, dispersion)
        rate = founders + children * y
        by_founders = 1 / founders + (y - 1) / rate - 1
        by_children = (y - 1) * (y / rate) - y
        share = founders / mean
        slope = -share / (2 * (1 + dispersion))
        return {
            "mean": share * by_founders,
            "dispersion": slope * (mean * by_founders - by_children),
        }

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        mean, dispersion = _held(parameters)
        founders, children = _rates(mean, dispersion)
        share, both = founders / mean, founders + 2 * children
        return {
            "mean": share / mean * (founders * share + 2 * children) / both,
            "dispersion": founders / both / 2 / (1 + dispersion) ** 2,
        }

    def start_values(self, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
        mean, variance = moments(y, weight)
        mean = max(mean, 1e-3)
        return {"mean": mean, "dispersion": float(np.clip(variance / mean - 1, *_START))}


def _held(parameters: Parameters, xp: Namespace = np) -> tuple[Array, Array]:
    return xp.clip(parameters["mean"], *_MEANS), xp.clip(parameters["dispersion"], *_DISPERSIONS)


def _rates(mean: Array, dispersion: Array, xp: Namespace = np) -> tuple[Array, Array]:
    """Mean numbers of founders and of children."""
    log = -xp.log1p(dispersion) / 2
    return mean * xp.exp(log), -xp.expm1(log)
