"""Quantiles of a new response: a family's distribution, averaged over a gaussian predictor.

A new response is at most y where the predictor lies on one side of a threshold T_y that has a
distribution of its own: with an increasing link, P(Y <= y | eta) = P(T_y > eta). So P(Y <= y) is
P(eta < T_y) for any mean and any standard error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from ahofm_keras.families.links import LINKS

if TYPE_CHECKING:
    from ahofm_keras.families.base import Family

Array = np.ndarray

# Nodes of each of the panels that the integral over the predictor is divided into.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
# Beyond the panels lies this share of the tail that is asked for, of predictors as of thresholds.
LEFT_OUT = 1e-6
_LEAST_TAIL = 1e-16
_STEPS = 100
TOLERANCE = 1e-10
# Standard deviations of a threshold, around its centre, at which panels meet; beyond the last of them a
# response is as good as certain.
_MARKS = (-40.0, -5.0, 0.0, 5.0, 40.0)

# How far inside the range of the link, in standard deviations, a response that no mean can be is taken.
_INSIDE = 1e-3
# A threshold without width, which nothing can be divided by.
_LEAST_WIDTH = 1e-12


@dataclass(frozen=True)
class Asked:
    """A quantile by the probability of the smaller tail beside it, which near 1 has more digits."""

    tail: float
    upper: bool

    @classmethod
    def at(cls, probability: float) -> Asked:
        """The quantile of a probability between 0 and 1."""
        return cls(max(min(probability, 1 - probability), _LEAST_TAIL), upper=probability > 0.5)

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
class Threshold:
    """The distribution of T_y.

    Args:
        marks: in rising order; between the first and the last lies all but a negligible part, and panels
            of the integral meet at those between.
        chance: `(predictors (n, m), upper) -> P(Y <= y | eta)`, or P(Y > y | eta) for the upper tail.
    """

    marks: tuple[Array | float, ...]
    chance: Callable[[Array, bool], Array]


def average(link: Array, error: Array, threshold: Threshold, asked: Asked) -> Array:
    """P(Y <= y), or for an upper quantile P(Y > y), by Gauss-Legendre rules on panels.

    However narrow the threshold is beside the predictor, or the predictor beside the threshold, the
    panels end where one of them does and meet at the threshold's marks.
    """
    reach = -special.ndtri(LEFT_OUT * asked.tail)
    ends = [np.clip((mark - link) / error, -reach, reach)[:, None] for mark in threshold.marks]
    nodes, weights = [ends[0]], [special.ndtr(ends[0])]
    for left, right in pairwise(ends):
        half = (right - left) / 2
        z = left + half * (1 + _NODES)
        nodes.append(z)
        weights.append(half * _WEIGHTS * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi))
    nodes.append(ends[-1])
    weights.append(special.ndtr(-ends[-1]))
    z, weight = np.concatenate(nodes, axis=1), np.concatenate(weights, axis=1)
    chances = threshold.chance(link[:, None] + error[:, None] * z, asked.upper)
    return np.asarray(np.einsum("nm,nm->n", weight, chances) / weight.sum(axis=1))


def quantile_by_distribution(
    family: Family, link: Array, error: Array, dispersion: float, asked: Asked
) -> Array:
    """The quantile from nothing but the family's distribution at each mean."""

    def distribution(eta: Array) -> Any:
        return family.distribution(np.asarray(family.inverse_link(eta, np)), dispersion)

    def excess(y: Array, rows: Array) -> Array:
        at = np.floor(y)[:, None] if family.discrete else y[:, None]

        def chance(eta: Array, upper: bool) -> Array:
            own = distribution(eta)
            return np.asarray(own.sf(at) if upper else own.cdf(at))

        centre, width = _threshold(family, y, dispersion)
        marks = tuple(centre + mark * width for mark in _MARKS)
        return asked.excess(average(link[rows], error[rows], Threshold(marks, chance), asked))

    # On one side of its quantile a predictor has the chance that is asked for; links may rise or fall.
    below, above = asked.outside
    sides = [sign * error * special.ndtri(share) for sign in (-1, 1) for share in (below, above)]
    ends = [distribution(link + side) for side in sides]
    low = np.min([end.ppf(below) for end in ends], axis=0)
    high = np.max([end.isf(above) for end in ends], axis=0)
    found = root(excess, low, high)
    if not family.discrete:
        return found
    least = np.floor(found + 1e-9 * (1 + np.abs(found)))
    enough = excess(least, np.arange(len(link))) >= -TOLERANCE
    return np.where(enough, least, least + 1)


def _threshold(family: Family, y: Array, dispersion: float) -> tuple[Array, Array]:
    """Around which predictor, and how far around it, a response turns from likely to unlikely."""
    low, high = LINKS[family.link].range
    centre, margin = y + 0.5 * family.discrete, _INSIDE * np.sqrt(dispersion)
    centre = np.where(centre > low, centre, low + margin)
    centre = np.where(centre < high, centre, high - margin)
    eta = np.asarray(family.link_function(centre))
    deviation = np.sqrt(dispersion * family.variance(centre))
    return eta, np.maximum(deviation / np.abs(family.slope(eta)), _LEAST_WIDTH)


def root(excess: Callable[[Array, Array], Array], low: Array, high: Array) -> Array:
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
        close = (np.abs(value) < TOLERANCE) | (
            high[active] - low[active] <= 1e-15 * (1 + np.abs(middle))
        )
        active = active[~close]
    return found
