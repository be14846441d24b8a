"""Amounts with exact zeros: sums of a poisson number of gamma amounts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import inf, log, pi
from typing import Any, ClassVar

import numpy as np
from scipy import special
from scipy.interpolate import RectBivariateSpline

from ahofm_keras.families.base import Array, Family, Links, Namespace, Parameters
from ahofm_keras.families.counts import Poisson
from ahofm_keras.families.distributions import ContinuousDistribution
from ahofm_keras.families.links import MEANS, SCALES
from ahofm_keras.families.location_scale import moments
from ahofm_keras.families.registry import register_family
from ahofm_keras.families.special import HALF_LOG_2_PI, gamma_rest, gamma_rest_slope, log1p_gap

# Means and dispersions between which the density is computed, and powers, as the link has them.
_SIZES = (1e-60, 1e60)
_POWERS = (1.01, 1.99)
_START = (1.1, 1.9)
# Numbers of amounts that are summed over, and how many standard deviations they reach to both sides.
_SIDE = 40
_NUMBERS = np.arange(2.0 * _SIDE + 1)
_REACH = 9.0
# Of the integral over amounts in the information, and of the grid on which it is computed.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(160)
_DISPERSIONS = (1e-6, 1e4)
_STEPS = (0.4, 0.05)


class _Distribution(ContinuousDistribution):
    """By sums over the number of amounts."""

    def __init__(self, family: Tweedie, parameters: Parameters) -> None:
        self._family = family
        self._mean, self._dispersion, self._power = np.broadcast_arrays(*_held(parameters))
        self.shape = self._mean.shape
        more = 2 - self._power
        self._rate = self._mean**more / self._dispersion / more
        self._amount = more / (self._power - 1)
        self._scale = self._dispersion * (self._power - 1) * self._mean ** (self._power - 1)

    def mean(self) -> np.ndarray:
        return np.asarray(self._mean)

    def var(self) -> np.ndarray:
        return np.asarray(self._dispersion * self._mean**self._power)

    def logpdf(self, y: Any) -> np.ndarray:
        """Of an amount; at 0 the logarithm of its probability."""
        y = np.asarray(y, float)
        parameters = {"mean": self._mean, "dispersion": self._dispersion, "power": self._power}
        found = self._family.log_density(np.maximum(y, 0.0), parameters)
        return np.where(y >= 0, found + self._family.log_constant(np.maximum(y, 0.0)), -inf)

    def cdf(self, y: Any) -> np.ndarray:
        y = np.asarray(y, float)
        return np.where(y < 0, 0.0, np.exp(-self._rate) + self._sum(y, special.gammainc))

    def sf(self, y: Any) -> np.ndarray:
        y = np.asarray(y, float)
        return np.where(y < 0, 1.0, self._sum(y, special.gammaincc))

    def _sum(self, y: np.ndarray, chance: Any) -> np.ndarray:
        numbers, step = _numbers(self._rate, np.sqrt(self._rate), np)
        rate = self._rate[..., None]
        gap = log1p_gap(rate / numbers - 1, np.log(rate / numbers))
        weight = np.exp(-numbers * gap - np.log(numbers) / 2 - HALF_LOG_2_PI - gamma_rest(numbers))
        size = np.maximum(y, 0.0)[..., None] / self._scale[..., None]
        chances = chance(numbers * self._amount[..., None], size)
        return np.minimum(step * np.sum(weight * chances, axis=-1), 1.0)

    def rvs(self, size: Any = None, random_state: Any = None) -> np.ndarray:
        rng = np.random.default_rng(random_state)
        numbers = rng.poisson(self._rate, self.shape if size is None else size)
        return np.asarray(rng.gamma(numbers * self._amount) * self._scale)


@register_family
class Tweedie(Family):
    """Amounts that can be 0: the variance is dispersion mean^power, power between 1 and 2."""

    name = "tweedie"
    links: ClassVar[Links] = {"mean": MEANS, "dispersion": SCALES, "power": ("logit_1_2",)}
    support_text = "0 or above"
    bounds = (0, inf)
    variance_text = "dispersion times a power of the mean"
    result_label = "Expected"
    aliases: ClassVar[Mapping[str, str]] = {
        "mu": "mean",
        "location": "mean",
        "sigma": "dispersion",
        "phi": "dispersion",
        "nu": "power",
        "p": "power",
    }

    def log_density(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        """That of the mean y, summed around its largest part, less half the deviance."""
        mean, dispersion, power = _held(parameters, xp)
        amount = xp.where(y > 0, y, xp.ones_like(y))
        terms, step, _ = _terms(amount, dispersion, power, xp)
        largest = xp.max(terms, axis=-1)
        saturated = largest + xp.log(step * xp.sum(xp.exp(terms - largest[..., None]), axis=-1))
        above = saturated - _half_deviance(amount, mean, power, xp) / dispersion
        zero = -(mean ** (2 - power)) / (2 - power) / dispersion
        return xp.where(y > 0, above, zero)

    def log_constant(self, y: np.ndarray) -> np.ndarray:
        return -np.log(np.where(y > 0, y, 1.0))

    def distribution_of(self, parameters: Parameters) -> Any:
        return _Distribution(self, parameters)

    def mean_of(self, parameters: Parameters, xp: Namespace = np) -> Array:
        return parameters["mean"] + 0 * parameters["dispersion"]

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        mean, dispersion, power = _held(parameters)
        by_dispersion, by_power = _scores(y, mean, dispersion, power)
        by_mean = (y - mean) / dispersion / mean**power
        return {"mean": by_mean, "dispersion": by_dispersion, "power": by_power}

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        """In units of the mean, where it is 1, all depends on a dispersion and the power only."""
        mean, dispersion, power = np.broadcast_arrays(*_held(parameters))
        unit = np.clip(dispersion * mean ** (power - 2), *_DISPERSIONS)
        one, both, two = _unit_information(np.log(unit), power)
        # By the power the dispersion in units of the mean changes too.
        change = np.log(mean)
        return {
            "mean": 1 / dispersion / mean**power,
            "dispersion": one / dispersion**2,
            "power": np.maximum(two + 2 * both * change + one * change**2, 0.0),
        }

    def first_fit(self, y: np.ndarray) -> tuple[Family, np.ndarray] | None:
        if self.link not in Poisson.links["mean"]:
            return None
        return Poisson(self.link).with_free_dispersion(), y

    def start_values(self, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
        """By mean, variance and the share of zeros."""
        mean, variance = moments(y, weight)
        mean = max(mean, 1e-12)
        variance = max(variance, 1e-6 * mean**2)
        none = float(np.clip(np.average(y == 0, weights=weight), 1e-6, 1 - 1e-6))
        power = float(np.clip(2 + mean**2 / variance / np.log(none), *_START))
        power = 1.5 if none == 1e-6 else power
        return {"mean": mean, "dispersion": variance / mean**power, "power": power}


def _held(parameters: Parameters, xp: Namespace = np) -> tuple[Array, Array, Array]:
    return (
        xp.clip(parameters["mean"], *_SIZES),
        xp.clip(parameters["dispersion"], *_SIZES),
        xp.clip(parameters["power"], *_POWERS),
    )


def _numbers(centre: Array, deviation: Array, xp: Namespace) -> tuple[Array, Array]:
    """Numbers of amounts, far enough around a centre, and their distance: 1, or part of a deviation."""
    step = xp.maximum(_REACH * deviation / _SIDE, 1.0)
    low = xp.maximum(xp.where(step > 1, centre, xp.round(centre)) - _SIDE * step, 1.0)
    return low[..., None] + step[..., None] * _NUMBERS, step


def _terms(y: Array, dispersion: Array, power: Array, xp: Namespace) -> tuple[Array, Array, Array]:
    """Logarithms of the density of y, but for 1 / y, with each number of amounts, where y is the mean.

    With r the poisson rate, n the number and a the shape of an amount, both a poisson chance and a gamma
    density are powers of (r / n) exp(1 - r / n), and rests of gamma functions.
    """
    log_rate = (2 - power) * xp.log(y) - xp.log(dispersion) - xp.log(2 - power)
    rate, shape = xp.exp(log_rate), (2 - power) / (power - 1)
    fixed = (rate, power) if xp is np else (xp.stop_gradient(rate), xp.stop_gradient(power))
    numbers, step = _numbers(fixed[0], xp.sqrt(fixed[0] * (fixed[1] - 1)), xp)
    gap = log1p_gap(rate[..., None] / numbers - 1, log_rate[..., None] - xp.log(numbers), xp)
    shapes = numbers * shape[..., None]
    rests = gamma_rest(numbers, xp) + gamma_rest(shapes, xp)
    terms = -numbers * gap / (power - 1)[..., None] - rests
    return terms + (xp.log(shape) / 2 - log(2 * pi))[..., None], step, numbers


def _half_deviance(y: Array, mean: Array, power: Array, xp: Namespace) -> Array:
    """Of amounts above 0."""
    ratio, less, more = xp.log(y) - xp.log(mean), 1 - power, 2 - power
    inside = xp.exp(ratio) * xp.expm1(less * ratio) / less - xp.expm1(more * ratio) / more
    return mean**more * inside


def _scores(
    y: np.ndarray, mean: np.ndarray, dispersion: np.ndarray, power: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """By dispersion and power."""
    y, mean, dispersion, power = np.broadcast_arrays(y, mean, dispersion, power)
    amount, less, more = np.where(y > 0, y, 1.0), 1 - power, 2 - power
    terms, _, numbers = _terms(amount, dispersion, power, np)
    weight = special.softmax(terms, axis=-1)
    rate, shape = amount**more / dispersion / more, more / (power - 1)
    excess = np.sum(weight * (numbers - rate[..., None]), axis=-1) / (power - 1)
    logs, logm = np.log(amount), np.log(mean)
    gap = log1p_gap(rate[..., None] / numbers - 1, np.log(rate)[..., None] - np.log(numbers))
    by_shape = -numbers * (gap + gamma_rest_slope(numbers * shape[..., None]))
    by_shape = np.sum(weight * by_shape, axis=-1) + 0.5 / shape
    half = _half_deviance(amount, mean, power, np)
    # Derivative of half the deviance by the power.
    first = amount * ((amount**less * logs - mean**less * logm) - (amount**less - mean**less) / less)
    second = (amount**more * logs - mean**more * logm) - (amount**more - mean**more) / more
    slope = second / more - first / less
    by_dispersion = (half / dispersion - excess) / dispersion
    by_power = excess * (1 / more - logs) - by_shape / (power - 1) ** 2 - slope / dispersion
    rate = mean**more / more / dispersion
    return (
        np.where(y > 0, by_dispersion, rate / dispersion),
        np.where(y > 0, by_power, rate * (logm - 1 / more)),
    )


def _unit_information(log_dispersion: np.ndarray, power: np.ndarray) -> tuple[np.ndarray, ...]:
    """Of log dispersion, of it and the power, of the power, at mean 1."""
    one, both, two = (table.ev(log_dispersion, power) for table in _tables())
    one, two = np.exp(one), np.exp(two)
    return one, both * np.sqrt(one * two), two


@cache
def _tables() -> tuple[RectBivariateSpline, ...]:
    """Their logarithms, and a correlation, on a grid: sums over amounts take too long for each row."""
    ends = tuple(np.log(_DISPERSIONS)), _POWERS
    axes = [
        np.linspace(low, high, int((high - low) / step) + 2)
        for (low, high), step in zip(ends, _STEPS, strict=True)
    ]
    logs, powers = np.meshgrid(*axes, indexing="ij")
    one, both, two = _summed(np.exp(logs), powers)
    found = np.log(one), both / np.sqrt(one * two), np.log(two)
    return tuple(RectBivariateSpline(axes[0], axes[1], table) for table in found)


def _summed(dispersion: np.ndarray, power: np.ndarray) -> tuple[np.ndarray, ...]:
    """The same by an integral over the logarithm of amounts."""
    shape, scale = (2 - power) / (power - 1), dispersion * (power - 1)
    deviation = np.sqrt(dispersion)
    high = np.log(1 + 12 * deviation + 40 * scale)
    # Below, an amount is too rare, or one of the normal kind too far away.
    low = np.log(scale) - np.minimum(12 / shape, 300) + np.minimum(np.log(shape), 0)
    low = np.maximum(low, np.log(np.maximum(1 - 12 * deviation, 1e-200)))
    half = ((high - low) / 2)[..., None]
    y = np.exp(low[..., None] + half * (1 + _NODES))
    y = np.concatenate([np.zeros_like(y[..., :1]), y], axis=-1)
    weight = np.concatenate([np.ones_like(half), half * _WEIGHTS + 0 * y[..., 1:]], axis=-1)
    mean, dispersion, power = np.ones_like(half), dispersion[..., None], power[..., None]
    log = Tweedie().log_density(y, {"mean": mean, "dispersion": dispersion, "power": power})
    chance = weight * np.exp(log)
    chance /= chance.sum(axis=-1, keepdims=True)
    by_dispersion, by_power = _scores(y, mean, dispersion, power)
    by_dispersion = by_dispersion * dispersion
    return (
        np.sum(chance * by_dispersion**2, axis=-1),
        np.sum(chance * by_dispersion * by_power, axis=-1),
        np.sum(chance * by_power**2, axis=-1),
    )
