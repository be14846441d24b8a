"""Responses of two classes."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy import stats

from ahofm_keras.families.base import Array, Links, Namespace, Parameters
from ahofm_keras.families.exponential import ExponentialFamily
from ahofm_keras.families.links import PROBABILITIES
from ahofm_keras.families.predictive import LEFT_OUT, Asked, Threshold, average
from ahofm_keras.families.registry import register_family

# Between a probability and 0 or 1, so that logarithms stay finite.
LEAST_PROBABILITY = 1e-15


@register_family
class Bernoulli(ExponentialFamily):
    """0 or 1, by the probability of a 1."""

    name = "bernoulli"
    links: ClassVar[Links] = {"mean": PROBABILITIES}
    support_text = "0 or 1"
    bounds = (0, 1)
    discrete = True
    binary = True
    ordered = True
    classes = (0, 1)
    predicts = "the probability"
    result_label = "Probability of a 1 in"

    def unit_deviance(self, y: Array, mean: Array, xp: Namespace = np) -> Array:
        mean = xp.clip(mean, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
        return -2 * (y * xp.log(mean) + (1 - y) * xp.log(1 - mean))

    def variance(self, mean: np.ndarray) -> np.ndarray:
        return mean * (1 - mean)

    def distribution(self, mean: np.ndarray, dispersion: float | np.ndarray = 1.0) -> object:
        return stats.bernoulli(mean)

    def probabilities(self, parameters: Parameters, xp: Namespace = np) -> Array:
        mean = parameters["mean"]
        return xp.stack([1 - mean, mean], axis=-1)

    def support(self, y: np.ndarray) -> np.ndarray:
        return (y == 0) | (y == 1)

    def averaged_quantile(
        self, link: np.ndarray, error: np.ndarray, dispersion: float, asked: Asked
    ) -> np.ndarray:
        """0 where a 0 is likely enough: P(Y <= 0 | eta) is 1 less the inverse link."""

        def chance(eta: np.ndarray, upper: bool) -> np.ndarray:
            mean = np.asarray(self.inverse_link(eta, np))
            return mean if upper else 1 - mean

        reach = -np.log(LEFT_OUT * asked.tail)
        zero = average(link, error, Threshold((-reach, 0.0, reach), chance), asked)
        return np.where(asked.excess(zero) >= 0, 0.0, 1.0)
