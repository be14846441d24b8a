"""Where the knots of a spline lie: a smooth, rising map between a feature and an axis with even knots.

Knots follow the rows, but what is a straight line in x has to be one in the basis: where the map is only
the distribution function, with all its chance, hardly any function of x is smooth on the warped axis. So
x is made a spline of the warped axis, x = sum_m c_m N(u - m) with rising c, and lies in the span of the
functions itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.interpolate import BSpline
from scipy.optimize import brentq

# Points of the map's table in one knot interval: straight lines between them miss the spline by 1/2000
# of the interval where the next one is twice as long.
_STEPS = 16
# An interval may be longer than its neighbour by this factor, where there are enough knots. If an
# outlier made the last interval a thousand times as long as that before, x as a smooth function of even
# knots would take the rows of both.
_GROWTH = 8.0
# Shortest interval, in shares of the longest.
_SHORTEST = 1e-13
# Where the length of intervals is looked at: at shares of each knot interval, finer towards its ends.
_CLOSE = 0.5 ** np.arange(45, 0, -1)
_LOOKED_AT = np.concatenate([[0.0], _CLOSE, 1 - _CLOSE[-2::-1]])


class Warp(NamedTuple):
    """The map as a table, and x in the basis.

    Args:
        axis: raw values, rising.
        warped: values of the map at `axis`, from 0 to 1.
        line: coefficients with which the functions add up to x, less some number; none on a circle.
    """

    axis: np.ndarray
    warped: np.ndarray
    line: np.ndarray


def learn_warp(
    x: np.ndarray,
    knots: str | tuple[float, float],
    size: int,
    degree: int,
    cyclic: bool,
    counts: np.ndarray | None = None,
) -> Warp:
    """The map that spreads the knots of a spline.

    Args:
        x: training values `(n,)`, not all equal.
        knots: `"even"`, `"quantile"`, `"adaptive"` or the two ends, as in `bases.make_spline`.
        size: number of functions.
        degree: of them.
        cyclic: whether the ends are joined.
        counts: how many rows have each value, where `x` has each once, rising.
    """
    intervals = size if cyclic else size - degree
    if degree == 0:
        return _learn_steps(x, knots, size, cyclic, counts)
    # Greville's abscissae: with these as coefficients the functions add up to the axis itself.
    middles = (np.arange(intervals + degree) - (degree - 1) / 2) / intervals
    if knots == "even" or not isinstance(knots, str):
        ends = np.array([np.min(x), np.max(x)] if isinstance(knots, str) else knots, float)
        return Warp(ends, np.array([0.0, 1.0]), _unless(cyclic, (ends[1] - ends[0]) * middles))
    values = np.asarray(x, float)
    if counts is None:
        values, counts = np.unique(values, return_counts=True)
    low, high = values[[0, -1]]
    # Beside a far outlier the values close to each other keep their digits only around one of them.
    anchor = values[np.searchsorted(np.cumsum(counts), counts.sum() / 2)]
    found = _place_knots(values - anchor, counts, intervals, halfway=knots == "adaptive")
    line = _beyond(middles, found, cyclic)
    place = np.linspace(0, intervals, _STEPS * intervals + 1)
    spline = BSpline(np.arange(-degree, intervals + degree + 1), line, degree)(place)
    # A circle may be cut elsewhere: its map starts at the smallest value all the same.
    axis = anchor + spline + (low - anchor - spline[0] if cyclic else 0.0)
    axis = np.maximum.accumulate(np.clip(axis, low, high))
    axis[0], axis[-1] = low, high
    axis, chosen = np.unique(axis, return_index=True)
    warped = place[chosen] / intervals
    warped[-1] = 1.0
    return Warp(axis, warped, _unless(cyclic, line))


def _learn_steps(
    x: np.ndarray, knots: str | tuple[float, float], size: int, cyclic: bool, counts: np.ndarray | None
) -> Warp:
    """The knots of straight pieces, or those between values where each may have a step of its own."""
    values = np.unique(x)
    if isinstance(knots, str) and size == len(values) and not cyclic:
        at = np.concatenate([values[:1], (values[1:] + values[:-1]) / 2, values[-1:]])
        return Warp(at, np.linspace(0, 1, size + 1), (at[1:] + at[:-1]) / 2)
    axis, warped, at = learn_warp(x, knots, size + (not cyclic), 1, cyclic, counts)
    return Warp(axis, warped, (at[1:] + at[:-1]) / 2)


def _unless(cyclic: bool, line: np.ndarray) -> np.ndarray:
    """On a circle no function is straight."""
    return line[:0] if cyclic else line


def _place_knots(values: np.ndarray, counts: np.ndarray, intervals: int, halfway: bool) -> np.ndarray:
    """Knots `(intervals + 1,)` at quantiles, or halfway from even ones to these.

    Where neighbouring intervals would differ too much, values that many rows share count for the rows of
    one interval: more knots would have nothing to tell apart there. If that does not help, as beside an
    outlier, where even knots would be lost on the gap before it, the rows alone decide.
    """
    shares, fewer = _shares(counts), _shares(np.minimum(counts, counts.sum() / intervals))
    ways = [shares, fewer]
    if halfway:
        range_below = (values - values[0]) / (values[-1] - values[0])
        ways = [(shares + range_below) / 2, (fewer + range_below) / 2, fewer]
    for way in ways:
        knots = np.interp(np.linspace(0, 1, intervals + 1), way, values)
        if _differ_little(np.diff(knots)):
            return knots
    return _grade(knots)


def _shares(counts: np.ndarray) -> np.ndarray:
    """The share of rows below each value, from 0 to 1; ties share the middle of their jump."""
    below = np.cumsum(counts) - counts / 2
    shares: np.ndarray = (below - below[0]) / (below[-1] - below[0])
    return shares


def _differ_little(lengths: np.ndarray) -> bool:
    """Whether no interval is much longer than its neighbour."""
    longer, shorter = np.maximum(lengths[1:], lengths[:-1]), np.minimum(lengths[1:], lengths[:-1])
    return bool((longer <= _GROWTH * shorter).all()) and bool((lengths > 0).all())


def _grade(knots: np.ndarray) -> np.ndarray:
    """Knots moved so that neighbouring intervals differ less.

    As in graded meshes: with h(x) the length of an interval at x, of which there are 1 / h(x), h may
    rise by log(growth) per unit of x. Short intervals stay where they are, among the rows; from there on
    they grow. That takes some, so all become longer by one factor, and their number is as it was. Where
    a third of them would not do to grow from the shortest to the longest, they grow faster.
    """
    lengths = np.diff(knots)
    lengths = np.maximum(lengths, _SHORTEST * lengths.max())
    intervals = len(lengths)
    growth = max(_GROWTH, (lengths.max() / lengths.min()) ** (3 / intervals))
    at = np.append((knots[:-1, None] + lengths[:, None] * _LOOKED_AT).reshape(-1), knots[-1])
    at = np.maximum.accumulate(np.minimum(at, knots[-1]))
    wanted = np.append(np.repeat(lengths, len(_LOOKED_AT)), lengths[-1])

    def excess(factor: float) -> float:
        return float(np.log(_count_intervals(at, factor * wanted, growth)[-1] / intervals))

    least = most = 1.0
    while excess(least) < 0:
        least /= 2
    while excess(most) > 0:
        most *= 2
    counts = _count_intervals(at, brentq(excess, least, most) * wanted, growth)
    moved = np.interp(np.linspace(0, counts[-1], intervals + 1), counts, at)
    moved[0], moved[-1] = knots[[0, -1]]
    return moved


def _count_intervals(at: np.ndarray, lengths: np.ndarray, growth: float) -> np.ndarray:
    """How many intervals there are up to each point, if none is longer than its neighbours allow."""
    rise = np.log(growth) * at
    lengths = np.minimum.accumulate(lengths - rise) + rise
    lengths = np.minimum.accumulate((lengths + rise)[::-1])[::-1] - rise
    return np.concatenate([[0.0], np.cumsum(np.diff(at) * 2 / (lengths[1:] + lengths[:-1]))])


def _beyond(middles: np.ndarray, knots: np.ndarray, cyclic: bool) -> np.ndarray:
    """Places between and, by one interval at most, beyond the knots.

    On a line they are mirrored at the ends, where the spline then is exactly the first and last value;
    a circle goes round.
    """
    even, reach = np.linspace(0, 1, len(knots)), knots[-1] - knots[0]
    below, above = middles < 0, middles > 1
    if cyclic:
        turns = above * 1.0 - below
        return np.interp(middles - turns, even, knots) + turns * reach
    mirrored = np.where(below, -middles, np.where(above, 2 - middles, middles))
    found = np.interp(mirrored, even, knots)
    return np.where(below, 2 * knots[0] - found, np.where(above, 2 * knots[-1] - found, found))
