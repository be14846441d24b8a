"""Responses above 0: amounts, times, sizes."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import ClassVar

import numpy as np
from scipy import special, stats

from ahofm_keras.families.base import Array, Links, Namespace
from ahofm_keras.families.exponential import ExponentialFamily
from ahofm_keras.families.links import LARGEST_LOG
from ahofm_keras.families.log_gamma import LARGE_SHAPE, exp, log_gamma_chance, log_gamma_quantile
from ahofm_keras.families.predictive import LEFT_OUT, Asked, Threshold, average, root
from ahofm_keras.families.registry import register_family

# Between a mean and 0, so that logarithms stay finite.
_LEAST_MEAN = 1e-300


@register_family
class Gamma(ExponentialFamily):
    """Amounts whose standard deviation is proportional to their mean."""

    name = "gamma"
    links: ClassVar[Links] = {"mean": ("log", "inverse")}
    support_text = "above 0"
    bounds = (0, inf)
    dispersion_known = False
    least_slope = 0.0
    remedies: ClassVar[Mapping[str, str]] = {
        "heavy tails": '`family="lognormal"` and `family="inverse_gaussian"` have heavier tails.',
        "uneven spread": '`family="gamma_ls"` has a formula for the relative spread too.',
    }
    with_dispersion = "gamma_ls"
    result_label = "Expected"

    def unit_deviance(self, y: Array, mean: Array, xp: Namespace = np) -> Array:
        ratio = y / xp.maximum(mean, _LEAST_MEAN)
        return 2 * (ratio - 1 - xp.log(ratio))

    def variance(self, mean: np.ndarray) -> np.ndarray:
        return mean**2

    def distribution(self, mean: np.ndarray, dispersion: float | np.ndarray = 1.0) -> object:
        return stats.gamma(1 / dispersion, scale=mean * dispersion)

    def support(self, y: np.ndarray) -> np.ndarray:
        return super().support(y) & (y > 0)

    def rough_mean(self, y: np.ndarray, average: float) -> np.ndarray:
        # From a mean far above the response a step of the log link goes down by 1, no further.
        return y

    def rough_dispersion(self, y: np.ndarray, mean: np.ndarray) -> float:
        return 1.0  # it is the square of a coefficient of variation, whatever the unit

    def averaged_quantile(
        self, link: np.ndarray, error: np.ndarray, dispersion: float, asked: Asked
    ) -> np.ndarray:
        if self.link == "log":
            return _log_quantile(np.clip(link, -LARGEST_LOG, LARGEST_LOG), error, dispersion, asked)
        return super().averaged_quantile(link, error, dispersion, asked)


def _log_quantile(link: np.ndarray, error: np.ndarray, dispersion: float, asked: Asked) -> np.ndarray:
    """P(Y <= y | eta) is P(log G <= log y - log(dispersion) - eta), G ~ Gamma(1 / dispersion)."""
    shape = 1 / dispersion
    if shape > LARGE_SHAPE:
        return exp(link - dispersion / 2 + asked.score * np.sqrt(error**2 + dispersion))
    unit, beyond, (below, above) = np.log(dispersion), LEFT_OUT * asked.tail, asked.outside
    low, high = (unit + log_gamma_quantile(shape, beyond, upper) for upper in (False, True))
    middle = unit + log_gamma_quantile(shape, 0.5, False)

    def excess(log_y: np.ndarray, rows: np.ndarray) -> np.ndarray:
        threshold = Threshold(
            (log_y - high, log_y - middle, log_y - low),
            lambda eta, upper: log_gamma_chance(shape, log_y[:, None] - unit - eta, not upper),
        )
        return asked.excess(average(link[rows], error[rows], threshold, asked))

    start = link + error * special.ndtri(below) + unit + log_gamma_quantile(shape, below, False)
    end = link - error * special.ndtri(above) + unit + log_gamma_quantile(shape, above, True)
    return exp(root(excess, start, end))
