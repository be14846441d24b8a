"""Which stretch of an axis a picture shows: heavy tails would leave its best part to a few rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ahofm_keras.decomposition import Parts
from ahofm_keras.decomposition.grids import axes_of, beside_atoms
from ahofm_keras.terms import Margin, Variable
from ahofm_keras.texts import number, shorten

# A tail beyond the outer percentile is cut where it is longer than this share of what lies between the
# percentiles; an axis is logarithmic where its upper half is this many times as long as its lower one.
_LONGEST_TAIL = 0.5
_SKEWED = 8.0
_POINTS = {1: 160, 2: 70, 3: 70}
_LEVEL_POINTS = 120
_MANY_POINTS = 12


@dataclass(frozen=True)
class Stretch:
    """The part of a number's axis that is drawn.

    Args:
        low: its lower end.
        high: its upper end.
        log: whether the axis is logarithmic.
        note: what was cut off, in words; empty where nothing was.
    """

    low: float
    high: float
    log: bool
    note: str

    def points(self, count: int) -> np.ndarray:
        if self.log:
            inner = np.geomspace(self.low, self.high, count)[1:-1]
            return np.concatenate([[self.low], inner, [self.high]])
        return np.linspace(self.low, self.high, count)


def choose_stretch(margin: Margin, log: bool | None = None, trim: bool = True) -> Stretch:
    """What to show of the training range of a number.

    Args:
        margin: of the number.
        log: a logarithmic axis (of positive numbers); None chooses.
        trim: whether a long tail beyond the 1% or 99% quantile is cut off.
    """
    quantiles = margin.quantiles
    positive = margin.low > 0
    first, middle, last = (float(quantiles[k]) for k in (1, len(quantiles) // 2, -2))
    skewed = positive and middle > first and (last - middle) > _SKEWED * (middle - first)
    use_log = positive and (skewed if log is None else log)
    ends = np.array([margin.low, first, last, margin.high])
    low, q_low, q_high, high = np.log(ends) if use_log else ends
    width = q_high - q_low
    cut_low = trim and width > 0 and q_low - low > _LONGEST_TAIL * width
    cut_high = trim and width > 0 and high - q_high > _LONGEST_TAIL * width
    shown = (first if cut_low else margin.low, last if cut_high else margin.high)
    return Stretch(*shown, use_log, _describe(margin, cut_low, cut_high))


def _describe(margin: Margin, cut_low: bool, cut_high: bool) -> str:
    if not (cut_low or cut_high):
        return ""
    kept = "1% to 99%" if cut_low and cut_high else "from 1%" if cut_low else "up to 99%"
    span = f"{number(margin.low)} to {number(margin.high)}"
    return f"{shorten(margin.label, 24)}: {kept} of the rows shown (range {span})"


def levels_of(variable: Variable) -> np.ndarray:
    """All levels of a category."""
    return np.array(variable.levels, object if isinstance(variable.levels[0], str) else None)


@dataclass(frozen=True)
class Grid:
    """Values of the features of a picture, and how their axes look.

    Args:
        at: values of each number that an effect is evaluated at.
        stretches: of each number.
    """

    at: dict[str, Any]
    stretches: dict[str, Stretch]

    @property
    def notes(self) -> list[str]:
        return [stretch.note for stretch in self.stretches.values() if stretch.note]


def choose_grid(
    parts: Parts,
    subset: tuple[int, ...],
    at: Mapping[str, Any] | None = None,
    points: int | None = None,
    log: bool | None = None,
    trim: bool = True,
) -> Grid:
    """Values that fill the axes that are drawn; those that the user gave stay."""
    found: dict[str, Any] = dict(at or {})
    stretches = {}
    axes = axes_of(parts, subset)
    with_category = any(axis.is_category for axis in axes)
    count = points or (_LEVEL_POINTS if with_category else _POINTS.get(len(axes), _MANY_POINTS))
    for axis in axes:
        if axis.is_category or axis.name in found:
            continue
        # Distances have one unit along all coordinates: none of them is drawn by its logarithm.
        wanted = False if axis.variable.is_point and log is None else log
        stretch = choose_stretch(replace(axis.margin, label=axis.name), wanted, trim)
        stretches[axis.name] = stretch
        found[axis.name] = beside_atoms(axis.variable, stretch.points(count))
    return Grid(found, stretches)
