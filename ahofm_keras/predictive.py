"""Quantiles of a new response: a family's distribution, averaged over a gaussian predictor.

A new response is at most y where the predictor lies below a threshold T_y that has a distribution of
its own: P(Y <= y | eta) = P(T_y > eta). For a poisson response T_y = log G with G ~ Gamma(y + 1), for a
gamma response T_y = log y - log(dispersion G) with G ~ Gamma(1 / dispersion), for the 0 of a bernoulli
response it is logistic. So P(Y <= y) = P(eta < T_y) for any mean and any standard error, and as all of
these are logarithms nothing overflows before the quantile itself does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from ahofm_keras.families import LARGEST_LOG, Family

Array = np.ndarray

_ROWS = 8192
# Nodes of each of the two panels that the integral over the predictor is divided into.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
# Beyond the panels lies this share of the tail that is asked for, of predictors as of thresholds.
_LEFT_OUT = 1e-6
_LEAST_TAIL = 1e-16
# From this shape on the cube root of G is taken as gaussian (Wilson and Hilferty): within 5 standard
# deviations off by 1e-5 of one. SciPy stops early in the tails of larger shapes.
_CUBIC_SHAPE = 1e5
# From this shape on log G is taken as gaussian: a quantile is then off by 1e-8 of itself, where the
# standard deviation of G is 1e-4 of it.
_LARGE_SHAPE = 1e8
# Of smaller G, P(log G < l) is exp(shape l) / Gamma(shape + 1) to float64.
_SMALL_LOG = -37.0
# A standard error of 0, which nothing can be divided by.
_LEAST_ERROR = 1e-12
_STEPS = 100
_TOLERANCE = 1e-10


@dataclass(frozen=True)
class _Asked:
    """A quantile by the probability of the smaller tail beside it, which near 1 has more digits."""

    tail: float
    upper: bool

    @property
    def score(self) -> float:
        """The quantile of a standard normal variable."""
        return float(special.ndtri(self.tail)) * (-1 if self.upper else 1)

    def excess(self, chance: Array) -> Array:
        """How far a response is above the quantile, as a normal score, by its tail's probability.

        The scores are almost straight in the logarithm of the response, so that few steps find 0.
        """
        score: Array = special.ndtri(np.clip(chance, 1e-300, 1.0 - 1e-16)) * (-1 if self.upper else 1)
        return score - self.score

    @property
    def outside(self) -> tuple[float, float]:
        """Half of what lies below the quantile and half of what lies above."""
        below, above = (1 - self.tail, self.tail) if self.upper else (self.tail, 1 - self.tail)
        return below / 2, above / 2


@dataclass(frozen=True)
class _Threshold:
    """The distribution of T_y.

    Args:
        low, centre, high: between `low` and `high` lies all but a negligible part.
        chance: `(predictors (n, m), upper) -> P(T_y > eta)`, or P(T_y <= eta) for the upper tail.
    """

    low: Array | float
    centre: Array | float
    high: Array | float
    chance: Callable[[Array, bool], Array]


def predictive_quantile(
    family: Family, link: Array, error: Array, dispersion: float, probability: float
) -> Array:
    """Quantile of a new response whose predictor is gaussian.

    Args:
        family: of the response.
        link: mean of the predictor `(n,)`.
        error: its standard deviation `(n,)`.
        dispersion: of the response, in its own units.
        probability: between 0 and 1.

    Returns:
        `(n,)`; infinite where the quantile is beyond float64, 0 where it is below, never NaN.
    """
    tail = max(min(probability, 1 - probability), _LEAST_TAIL)
    asked = _Asked(tail, upper=probability > 0.5)
    if family.scaled:  # both parts are gaussian
        return np.asarray(link + asked.score * np.sqrt(error**2 + dispersion))
    quantile = _QUANTILES[family.name]
    link, error = np.clip(link, -LARGEST_LOG, LARGEST_LOG), np.maximum(error, _LEAST_ERROR)
    parts = [
        quantile(link[rows], error[rows], dispersion, asked)
        for rows in (slice(start, start + _ROWS) for start in range(0, len(link), _ROWS))
    ]
    return np.concatenate([np.zeros(0), *parts])


def _bernoulli(link: Array, error: Array, dispersion: float, asked: _Asked) -> Array:
    reach = -np.log(_LEFT_OUT * asked.tail)
    logistic = _Threshold(-reach, 0.0, reach, lambda eta, upper: special.expit(eta if upper else -eta))
    return np.where(asked.excess(_average(link, error, logistic, asked)) >= 0, 0.0, 1.0)


def _gamma(link: Array, error: Array, dispersion: float, asked: _Asked) -> Array:
    shape = 1 / dispersion
    if shape > _LARGE_SHAPE:
        return _exp(link - dispersion / 2 + asked.score * np.sqrt(error**2 + dispersion))
    unit, beyond, (below, above) = np.log(dispersion), _LEFT_OUT * asked.tail, asked.outside
    low, high = (unit + _log_gamma_quantile(shape, beyond, upper) for upper in (False, True))
    middle = unit + _log_gamma_quantile(shape, 0.5, False)

    def excess(log_y: Array, rows: Array) -> Array:
        threshold = _Threshold(
            log_y - high,
            log_y - middle,
            log_y - low,
            lambda eta, upper: _log_gamma_chance(shape, log_y[:, None] - unit - eta, not upper),
        )
        return asked.excess(_average(link[rows], error[rows], threshold, asked))

    start = link + error * special.ndtri(below) + unit + _log_gamma_quantile(shape, below, False)
    end = link - error * special.ndtri(above) + unit + _log_gamma_quantile(shape, above, True)
    return _exp(_root(excess, start, end))


def _poisson(link: Array, error: Array, dispersion: float, asked: _Asked) -> Array:
    """The least whole y with P(Y <= y) at least that asked for, found as log(y + 1) for any real y."""

    def excess(log_shape: Array, rows: Array) -> Array:
        shape = np.exp(np.minimum(log_shape, np.log(_LARGE_SHAPE)))
        threshold = _Threshold(
            *_log_gamma_ends(shape, _LEFT_OUT * asked.tail),
            lambda eta, upper: _log_gamma_chance(shape[:, None], eta, upper),
        )
        chance = _average(link[rows], error[rows], threshold, asked)
        spread = np.sqrt(error[rows] ** 2 + np.exp(-log_shape))
        gaussian = (log_shape - link[rows]) / spread - asked.score
        return np.where(log_shape < np.log(_LARGE_SHAPE), asked.excess(chance), gaussian)

    below, above = asked.outside
    start, _ = _poisson_ends(link + error * special.ndtri(below), -np.log(below))
    _, end = _poisson_ends(link - error * special.ndtri(above), -np.log(above))
    found = _root(excess, start, end)
    nearest = np.rint(np.expm1(np.minimum(found, np.log(_LARGE_SHAPE))))
    enough = excess(np.log1p(nearest), np.arange(len(link))) >= -_TOLERANCE
    exact = np.where(enough, nearest, nearest + 1)
    return np.where(found < np.log(_LARGE_SHAPE), exact, np.ceil(_exp(found)))


_QUANTILES = {"bernoulli": _bernoulli, "gamma": _gamma, "poisson": _poisson}


def _average(link: Array, error: Array, threshold: _Threshold, asked: _Asked) -> Array:
    """P(eta < T), or for an upper quantile P(eta >= T), by Gauss-Legendre rules on two panels.

    However narrow the threshold is beside the predictor, or the predictor beside the threshold, the
    panels end where one of them does and meet at the threshold's centre.
    """
    reach = -special.ndtri(_LEFT_OUT * asked.tail)
    marks = (threshold.low, threshold.centre, threshold.high)
    low, centre, high = (np.clip((mark - link) / error, -reach, reach)[:, None] for mark in marks)
    nodes, weights = [low], [special.ndtr(low)]
    for left, right in ((low, centre), (centre, high)):
        half = (right - left) / 2
        z = left + half * (1 + _NODES)
        nodes.append(z)
        weights.append(half * _WEIGHTS * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi))
    nodes.append(high)
    weights.append(special.ndtr(-high))
    z, weight = np.concatenate(nodes, axis=1), np.concatenate(weights, axis=1)
    chances = threshold.chance(link[:, None] + error[:, None] * z, asked.upper)
    return np.asarray(np.einsum("nm,nm->n", weight, chances) / weight.sum(axis=1))


def _log_gamma_chance(shape: Array | float, log: Array, below: bool) -> Array:
    """P(log G <= log) or P(log G > log), G ~ Gamma(shape)."""
    value = np.exp(np.minimum(log, LARGEST_LOG))
    large = shape > _CUBIC_SHAPE
    chance = (special.gammainc if below else special.gammaincc)(np.where(large, 1.0, shape), value)
    if np.any(large):
        cubic = np.exp((log - np.log(shape)) / 3) - 1 + 1 / (9 * shape)
        score = 3 * np.sqrt(shape) * cubic
        chance = np.where(large, special.ndtr(score if below else -score), chance)
    if np.min(shape) < 1:
        small = np.exp(shape * np.minimum(log, _SMALL_LOG) - special.gammaln(shape + 1))
        chance = np.where(log < _SMALL_LOG, small if below else 1 - small, chance)
    return np.asarray(chance)


def _log_gamma_quantile(shape: float, chance: float, upper: bool) -> float:
    """What log G, G ~ Gamma(shape), falls below or exceeds with a chance, also beyond float64's G."""
    small = (np.log1p(-chance) if upper else np.log(chance)) + special.gammaln(shape + 1)
    if small < _SMALL_LOG * shape:
        return float(small / shape)
    quantile = special.gammainccinv if upper else special.gammaincinv
    return float(np.log(quantile(shape, chance)))


def _log_gamma_ends(shape: Array, beyond: float) -> tuple[Array, Array, Array]:
    """Between these lies log G but for twice `beyond`, with its centre; for shapes from 1 on.

    By Wilson and Hilferty, whose lower end lies too low, or below 0, where the shape is small.
    """
    reach = -special.ndtri(beyond)
    middle = 1 - 1 / (9 * shape)
    step = reach / (3 * np.sqrt(shape))
    bound = (np.log(beyond) + special.gammaln(shape + 1)) / shape
    cubic = np.log(shape) + 3 * np.log(np.maximum(middle - step, 1e-9))
    return np.maximum(bound, cubic), np.log(shape), np.log(shape) + 3 * np.log(middle + step)


def _poisson_ends(link: Array, exponent: float) -> tuple[Array, Array]:
    """Log(y + 1) of responses that a Poisson variable falls below, and exceeds, with exp(-exponent).

    Bernstein's bounds for a mean m: m - sqrt(2 m x) and m + sqrt(2 m x) + x.
    """
    root = np.sqrt(2 * exponent) * np.exp(-np.clip(link, -2 * LARGEST_LOG, None) / 2)
    high = np.logaddexp(link + np.log1p(root), np.log(exponent + 2))
    low = link + np.log(np.maximum(1 - root, np.exp(-2 * LARGEST_LOG)))
    return np.maximum(low, 0.0), high


def _root(excess: Callable[[Array, Array], Array], low: Array, high: Array) -> Array:
    """Where an increasing function of each row is 0: false position, kept from standing still.

    Args:
        excess: `(values, rows) ->` the functions of some rows.
        low, high: on both sides of the roots; `low` is the answer where its value is above 0.
    """
    low, high, every = low.copy(), high.copy(), np.arange(len(low))
    at_low, at_high = excess(low, every), excess(high, every)
    high = np.where(at_low >= 0, low, high)
    found = high.copy()
    active = np.flatnonzero((at_low < 0) & (at_high > 0))
    last = np.zeros(len(low))
    for step in range(_STEPS):
        if not len(active):
            break
        a, b = low[active], high[active]
        below, above = at_low[active], at_high[active]
        middle = (a * above - b * below) / (above - below) if step % 4 < 3 else (a + b) / 2
        middle = np.clip(middle, a, b)
        value = excess(middle, active)
        found[active] = middle
        falls = value < 0
        # Illinois: an end that stays twice counts half, so that both ends move.
        at_high[active] = np.where(falls, np.where(last[active] < 0, above / 2, above), value)
        at_low[active] = np.where(falls, value, np.where(last[active] > 0, below / 2, below))
        low[active], high[active] = np.where(falls, middle, a), np.where(falls, b, middle)
        last[active] = np.where(falls, -1.0, 1.0)
        close = (np.abs(value) < _TOLERANCE) | (
            high[active] - low[active] <= 1e-15 * (1 + np.abs(middle))
        )
        active = active[~close]
    return found


def _exp(log: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.exp(log)
