"""Which groups of coefficients there are: one precision per group, and prior odds against each.

Each group b_g of a selection has a prior of a precision q_g of its own (automatic relevance
determination). With all others as they are the evidence is a function of q_g alone, whose maximum may be
infinite: then the group is 0. One of single coefficients in three is not although it has no effect, as
|t| > 1 is enough. So a group has to gain more than the logarithm of the prior odds against it, where
every number of groups is as probable as any other: k of p cost log C(p, k) (Scott and Berger, 2010,
Bayes and empirical-Bayes multiplicity adjustment). The odds are those that the data itself shows: among
fifty the first costs 3.9, the eleventh 1.3, and from half of all on another costs nothing.

`examples/benchmarks/lasso.py` holds this against a lasso whose lambda is chosen by cross-validation.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import NamedTuple, Protocol

import numpy as np

# Directions of a group of which the others leave less, by its own Gram matrix, hold rounding alone.
_LEAST_LEFT = 1e-10
# Logarithms of precisions that are tried of a group of several, and how often ever finer ones.
_GRID, _REFINEMENTS = np.linspace(-14.0, 14.0, 57), 4


class System(Protocol):
    """What the rows say of all coefficients of a block."""

    @property
    def gram(self) -> np.ndarray: ...
    @property
    def rhs(self) -> np.ndarray: ...
    @property
    def dispersion(self) -> float: ...


class Candidates(NamedTuple):
    """The groups of a selection.

    Args:
        members: the coefficients of each.
        precisions: q `(g,)`, infinite where a group is off.
        lowest, highest: between which they may be, `(g,)`.
    """

    members: Sequence[np.ndarray]
    precisions: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray


def selection_price(count: int, used: int) -> float:
    """What some groups of a selection have to gain together."""
    return sum(next_price(count, before) for before in range(used))


def next_price(count: int, used: int) -> float:
    """What one group has to gain beside others, the prior odds against it; never below 0."""
    return max(log((count - used) / (used + 1)), 0.0)


def select(candidates: Candidates, system: System, inverse: np.ndarray) -> np.ndarray:
    """The precisions after each group in turn has had its best one; the evidence never falls.

    Args:
        candidates: the groups.
        system: of the block.
        inverse: A^-1 `(m, m)` at the precisions given, 0 in rows and columns of groups that are off; it
            is overwritten.
    """
    gram, found = system.gram, candidates.precisions.copy()
    mean = inverse @ system.rhs
    count, used = len(found), int(np.isfinite(found).sum())
    for place, own in enumerate(candidates.members):
        if np.isfinite(found[place]):
            _take_out(inverse, mean, own)
            used -= 1
        beside = inverse @ gram[:, own]
        left = gram[np.ix_(own, own)] - gram[own] @ beside
        sums = system.rhs[own] - gram[own] @ mean
        ends = float(candidates.lowest[place]), float(candidates.highest[place])
        precision, gain = _best(left, gram[own, own], sums, system.dispersion, ends)
        found[place] = precision if gain > next_price(count, used) else np.inf
        if np.isfinite(found[place]):
            covariance = np.linalg.inv(left + precision * np.eye(len(own)))
            _put_in(inverse, mean, own, beside, covariance, covariance @ sums)
            used += 1
    return found


def _take_out(inverse: np.ndarray, mean: np.ndarray, own: np.ndarray) -> None:
    """Without a group: those that are left, as if it were 0."""
    regression = np.linalg.solve(inverse[np.ix_(own, own)], inverse[own]).T
    mean -= regression @ mean[own]
    inverse -= regression @ inverse[own]
    mean[own] = 0.0
    inverse[own] = 0.0
    inverse[:, own] = 0.0


def _put_in(
    inverse: np.ndarray,
    mean: np.ndarray,
    own: np.ndarray,
    beside: np.ndarray,
    covariance: np.ndarray,
    values: np.ndarray,
) -> None:
    """With a group of a given posterior."""
    cross = beside @ covariance
    mean -= beside @ values
    mean[own] = values
    inverse += cross @ beside.T
    inverse[:, own] = -cross
    inverse[own] = -cross.T
    inverse[np.ix_(own, own)] = covariance


def _best(
    left: np.ndarray,
    sizes: np.ndarray,
    sums: np.ndarray,
    dispersion: float,
    ends: tuple[float, float],
) -> tuple[float, float]:
    """The precision of most evidence, and what it gains over an infinite one.

    Args:
        left: what the others leave of the group's Gram matrix.
        sizes: the diagonal of that matrix itself.
        sums: what they leave of its sums over rows.
        dispersion: of the response.
        ends: between which the precision lies.
    """
    values, vectors = np.linalg.eigh((left + left.T) / 2)
    known = values > _LEAST_LEFT * max(float(sizes.max()), 0.0)
    if not known.any():
        return np.inf, 0.0
    values, squares = values[known], np.square(vectors[:, known].T @ sums) / dispersion

    def gain(precision: np.ndarray) -> np.ndarray:
        below = values + precision[:, None]
        found: np.ndarray = (np.log(precision[:, None] / below) + squares / below).sum(axis=1) / 2
        return found

    if len(values) == 1:
        # t^2 of the coefficient without shrinkage
        excess = float(squares[0] / values[0]) - 1
        if excess <= 0:
            return np.inf, 0.0
        best = np.array([np.clip(values[0] / excess, *ends)])
        return float(best[0]), float(gain(best)[0])
    tried, middle = _GRID, log(float(values.mean()))
    for _ in range(_REFINEMENTS):
        precisions = np.clip(np.exp(middle + tried), *ends)
        gains = gain(precisions)
        middle, tried = log(precisions[int(gains.argmax())]), tried / 20
    return float(precisions[int(gains.argmax())]), float(gains.max())
