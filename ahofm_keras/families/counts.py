"""Responses that are counts."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import ClassVar

import numpy as np
from scipy import special, stats

from ahofm_keras.families.base import Array, Links, Namespace
from ahofm_keras.families.exponential import ExponentialFamily
from ahofm_keras.families.links import LARGEST_LOG
from ahofm_keras.families.log_gamma import LARGE_SHAPE, exp, log_gamma_chance, log_gamma_ends
from ahofm_keras.families.predictive import LEFT_OUT, TOLERANCE, Asked, Threshold, average, root
from ahofm_keras.families.registry import register_family

# Between a mean and 0, so that logarithms stay finite.
_LEAST_MEAN = 1e-300


@register_family
class Poisson(ExponentialFamily):
    """Counts whose variance is their mean."""

    name = "poisson"
    links: ClassVar[Links] = {"mean": ("log", "sqrt")}
    support_text = "whole numbers from 0 on"
    bounds = (0, inf)
    discrete = True
    variance_text = "the mean"
    remedies: ClassVar[Mapping[str, str]] = {
        "overdispersed": '`family="negative_binomial"` estimates by how much.',
        "more zeros": 'Where zeros have a cause of their own: `family="zero_inflated_poisson"`.',
        "fewer zeros": '`family="hurdle_poisson"` gives zeros a formula of their own.',
    }
    predicts = "the expected count"
    result_label = "Expected"

    def unit_deviance(self, y: Array, mean: Array, xp: Namespace = np) -> Array:
        mean = xp.maximum(mean, _LEAST_MEAN)
        counted = xp.where(y > 0, y, xp.ones_like(y))  # y log(y / mean) is 0 where y is
        ratio = xp.where(y > 0, y * xp.log(counted / mean), xp.zeros_like(y))
        return 2 * (ratio - (y - mean))

    def variance(self, mean: np.ndarray) -> np.ndarray:
        return mean

    def distribution(self, mean: np.ndarray, dispersion: float | np.ndarray = 1.0) -> object:
        return stats.poisson(mean)

    def support(self, y: np.ndarray) -> np.ndarray:
        return super().support(y) & (y == np.floor(y))

    def averaged_quantile(
        self, link: np.ndarray, error: np.ndarray, dispersion: float, asked: Asked
    ) -> np.ndarray:
        if self.link == "log":
            return _log_quantile(np.clip(link, -LARGEST_LOG, LARGEST_LOG), error, asked)
        return super().averaged_quantile(link, error, dispersion, asked)


def _log_quantile(link: np.ndarray, error: np.ndarray, asked: Asked) -> np.ndarray:
    """The least whole y with P(Y <= y) at least that asked for, found as log(y + 1) for any real y.

    P(Y <= y | eta) is P(log G > eta), G ~ Gamma(y + 1).
    """

    def excess(log_shape: np.ndarray, rows: np.ndarray) -> np.ndarray:
        shape = np.exp(np.minimum(log_shape, np.log(LARGE_SHAPE)))
        threshold = Threshold(
            log_gamma_ends(shape, LEFT_OUT * asked.tail),
            lambda eta, upper: log_gamma_chance(shape[:, None], eta, upper),
        )
        chance = average(link[rows], error[rows], threshold, asked)
        spread = np.sqrt(error[rows] ** 2 + np.exp(-log_shape))
        gaussian = (log_shape - link[rows]) / spread - asked.score
        return np.where(log_shape < np.log(LARGE_SHAPE), asked.excess(chance), gaussian)

    below, above = asked.outside
    start, _ = _poisson_ends(link + error * special.ndtri(below), -np.log(below))
    _, end = _poisson_ends(link - error * special.ndtri(above), -np.log(above))
    found = root(excess, start, end)
    nearest = np.rint(np.expm1(np.minimum(found, np.log(LARGE_SHAPE))))
    enough = excess(np.log1p(nearest), np.arange(len(link))) >= -TOLERANCE
    exact = np.where(enough, nearest, nearest + 1)
    return np.where(found < np.log(LARGE_SHAPE), exact, np.ceil(exp(found)))


def _poisson_ends(link: np.ndarray, exponent: float) -> tuple[np.ndarray, np.ndarray]:
    """Log(y + 1) of responses that a Poisson variable falls below, and exceeds, with exp(-exponent).

    Bernstein's bounds for a mean m: m - sqrt(2 m x) and m + sqrt(2 m x) + x.
    """
    root = np.sqrt(2 * exponent) * np.exp(-np.clip(link, -2 * LARGEST_LOG, None) / 2)
    high = np.logaddexp(link + np.log1p(root), np.log(exponent + 2))
    low = link + np.log(np.maximum(1 - root, np.exp(-2 * LARGEST_LOG)))
    return np.maximum(low, 0.0), high
