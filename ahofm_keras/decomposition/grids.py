"""Grids that effects are evaluated on, and where on them training rows are near."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
from scipy.ndimage import binary_dilation

from ahofm_keras.decomposition.names import known_names, unknown_feature
from ahofm_keras.decomposition.parts import Parts
from ahofm_keras.errors import DataError, warn
from ahofm_keras.terms import Margin, Variable, cell_of
from ahofm_keras.terms.groups import Subset

# A point is near data if rows lie within this many cells of it.
_NEAR = 2
# How far from a jump or an atom its two sides are, in shares of the training range.
_BESIDE = 1e-6


def make_axis(variable: Variable, margin: Margin, points: int) -> np.ndarray:
    """All levels of a category, or even points over the training range of a number, none an atom."""
    if variable.is_category:
        return _as_levels(variable, variable.levels)
    return beside_atoms(variable, np.linspace(margin.low, margin.high, points))


def beside_atoms(variable: Variable, axis: np.ndarray) -> np.ndarray:
    """Rising points, those that are atoms moved a little: curves show what is around these."""
    beside = _BESIDE * (axis[-1] - axis[0])
    inwards = np.where(np.arange(len(axis)) < len(axis) - 1, beside, -beside)
    return np.where(np.isin(axis, variable.atoms), axis + inwards, axis)


def with_jumps(axis: np.ndarray, variable: Variable) -> np.ndarray:
    """An axis with points on either side of where functions jump: lines through all are steps."""
    jumps = np.concatenate([np.zeros(0), *(feature.basis.jumps for feature in variable.features)])
    if not len(jumps):
        return axis
    near = _BESIDE * (axis[-1] - axis[0])
    sides = np.concatenate([jumps - near, jumps + near])
    return np.union1d(axis, sides[(sides > axis[0]) & (sides < axis[-1])])


def _as_levels(variable: Variable, values: Any) -> np.ndarray:
    return np.array(values, object if isinstance(variable.levels[0], str) else None)


def read_at(parts: Parts, subset: Subset, at: Mapping[str, Any]) -> dict[int, np.ndarray]:
    """Values to evaluate at, by variable, checked."""
    if not isinstance(at, Mapping):
        raise DataError(f"`at` must go from features to values, e.g. {{'x1': 0.5}}. Received: {at!r}.")
    known = known_names(parts)
    found = {}
    for name, values in at.items():
        if known.get(name) not in subset:
            raise unknown_feature(str(name), [parts.variables[v].label for v in subset], "effect")
        found[known[name]] = _given(parts.variables[known[name]], values, parts.model.extrapolation)
    return found


def _given(variable: Variable, values: Any, extrapolation: str) -> np.ndarray:
    """Values that the user wants of a variable, checked."""
    values = np.atleast_1d(np.asarray(values, object)).reshape(-1)
    if not len(values):
        raise DataError(f"`at` has no values for `{variable.label}`.")
    if variable.is_category:
        unknown = [value for value in values.tolist() if value not in variable.levels]
        if unknown:
            shown = ", ".join(map(repr, variable.levels[:10]))
            raise DataError(f"{unknown[0]!r} is no level of `{variable.label}`; it has: {shown}.")
        return _as_levels(variable, values.tolist())
    try:
        numbers = values.astype(float)
    except (TypeError, ValueError):
        raise DataError(f"`at` must hold numbers for `{variable.label}`.") from None
    if not np.isfinite(numbers).all():
        raise DataError(f"`at` has values for `{variable.label}` that are not finite.")
    _check_range(variable, numbers, extrapolation)
    return numbers


def _check_range(variable: Variable, values: np.ndarray, extrapolation: str) -> None:
    """As `predict` does: values beyond the axis of a spline are clipped, with a warning, or refused."""
    for basis in (feature.basis for feature in variable.features if feature.basis.kind == "ps"):
        low, high = basis.axis[0], basis.axis[-1]
        if extrapolation == "linear" or ((values >= low) & (values <= high)).all():
            continue
        shown = f"`at` has values for `{variable.label}` outside the training range [{low:g}, {high:g}]"
        if extrapolation == "error":
            raise DataError(f"{shown}.")
        warn(f"{shown}: its smooth functions are clipped to it.")
        return


def near_data(parts: Parts, subset: Subset, grid: tuple[np.ndarray, ...]) -> np.ndarray | None:
    """Points with training rows near by, in the plane of each two of the features."""
    shape = tuple(map(len, grid))
    near = np.ones(shape, bool)
    cells = [
        cell_of(parts.variables[v], parts.margins.single[v], values)
        for v, values in zip(subset, grid, strict=True)
    ]
    for axis, own in enumerate(cells):
        near &= np.expand_dims(own >= 0, tuple(a for a in range(len(shape)) if a != axis))
    for (i, a), (j, b) in combinations(enumerate(subset), 2):
        first, second = parts.variables[a], parts.variables[b]
        occupied = parts.margins.occupancy(first.label, second.label)
        if occupied is None:
            return None
        plane = binary_dilation(occupied, _reach(first, second))[np.ix_(cells[i], cells[j])]
        near &= np.expand_dims(plane, tuple(axis for axis in range(len(shape)) if axis not in (i, j)))
    return near


def _reach(first: Variable, second: Variable) -> np.ndarray:
    """Cells around one that are near it: a disc, or no other level of a category."""
    steps = [np.zeros(1) if v.is_category else np.arange(-_NEAR, _NEAR + 1.0) for v in (first, second)]
    return np.add.outer(steps[0] ** 2, steps[1] ** 2) <= _NEAR**2 + 1
