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

# Points of the map's table in one knot interval: straight lines between them miss the spline by 1/2000
# of the interval at most where neighbouring knots are twice as far apart.
_STEPS = 16


class Warp(NamedTuple):
    """The map as a table, and x in the basis.

    Args:
        axis: raw values, rising.
        warped: values of the map at `axis`, from 0 to 1.
        line: coefficients with which the functions add up to x - `axis[0]`; none on a circle.
    """

    axis: np.ndarray
    warped: np.ndarray
    line: np.ndarray


def learn_warp(
    x: np.ndarray, knots: str | tuple[float, float], size: int, degree: int, cyclic: bool
) -> Warp:
    """The map that spreads the knots of a spline.

    Args:
        x: training values `(n,)`, not all equal.
        knots: `"even"`, `"quantile"`, `"adaptive"` or the two ends, as in `bases.make_spline`.
        size: number of functions.
        degree: of them.
        cyclic: whether the ends are joined.
    """
    intervals = size if cyclic else size - degree
    # Greville's abscissae: with these as coefficients the functions add up to the axis itself.
    middles = (np.arange(intervals + degree) - (degree - 1) / 2) / intervals
    if knots == "even" or not isinstance(knots, str):
        ends = np.array([np.min(x), np.max(x)] if isinstance(knots, str) else knots, float)
        return Warp(ends, np.array([0.0, 1.0]), _unless(cyclic, (ends[1] - ends[0]) * middles))
    values, share = _distribution(x, halfway=knots == "adaptive")
    line = _quantiles(middles, values - values[0], share, cyclic)
    place = np.linspace(0, intervals, _STEPS * intervals + 1)
    spline = BSpline(np.arange(-degree, intervals + degree + 1), line, degree)
    axis = values[0] + spline(place) - spline(0.0)
    axis[0], axis[-1] = values[[0, -1]]
    # Where values differ in their last digits only, so do points of the table, if at all.
    axis, chosen = np.unique(axis, return_index=True)
    warped = place[chosen] / intervals
    warped[-1] = 1.0
    return Warp(axis, warped, _unless(cyclic, line))


def _unless(cyclic: bool, line: np.ndarray) -> np.ndarray:
    """On a circle no function is straight."""
    return line[:0] if cyclic else line


def _distribution(x: np.ndarray, halfway: bool) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values, and the share of rows below each, from 0 to 1; or halfway from their range to it.

    Ties share the middle of their jump, so that an atom of many equal values spreads to both sides.
    """
    values, counts = np.unique(np.asarray(x, float), return_counts=True)
    share = np.cumsum(counts) - counts / 2
    share = (share - share[0]) / (share[-1] - share[0])
    if halfway:
        share = (share + (values - values[0]) / (values[-1] - values[0])) / 2
    return values, share


def _quantiles(middles: np.ndarray, values: np.ndarray, share: np.ndarray, cyclic: bool) -> np.ndarray:
    """The values at shares of the rows, which may lie beyond 0 and 1, by 1 at most.

    On a line they are mirrored at the ends, where the spline then is exactly the first and last value;
    a circle goes round.
    """
    below, above = middles < 0, middles > 1
    if cyclic:
        turns = above * 1.0 - below
        return np.interp(middles - turns, share, values) + turns * values[-1]
    mirrored = np.where(below, -middles, np.where(above, 2 - middles, middles))
    found = np.interp(mirrored, share, values)
    return np.where(below, -found, np.where(above, 2 * values[-1] - found, found))
