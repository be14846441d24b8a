"""Grids that effects are evaluated on, and where on them training rows are near."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, eq=False)
class Axis:
    """An axis of an effect: a variable, or a coordinate of one whose values are points.

    Args:
        place: of the variable in the model.
        variable: the same.
        name: e.g. `x1`, or `lon` of `lon, lat`.
        margin: of the number or category along it.
    """

    place: int
    variable: Variable
    name: str
    margin: Margin

    @property
    def is_category(self) -> bool:
        return self.variable.is_category


def axes_of(parts: Parts, subset: Subset) -> list[Axis]:
    """The axes of the variables of a subset, one after another."""
    return [
        Axis(place, parts.variables[place], name, margin)
        for place in subset
        for name, margin in zip(
            parts.variables[place].coordinates, parts.margins.single[place].axes, strict=True
        )
    ]


def values_on(parts: Parts, subset: Subset, grid: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Values of each variable of a subset on the product of its own axes: `(n,)`, of points `(n, d)`."""
    found, start = [], 0
    for place in subset:
        own = grid[start : start + len(parts.variables[place].coordinates)]
        start += len(own)
        if parts.variables[place].is_point:
            mesh = np.meshgrid(*own, indexing="ij")
            found.append(np.stack([axis.reshape(-1) for axis in mesh], axis=1))
        else:
            found.append(own[0])
    return found


def make_axis(axis: Axis, points: int) -> np.ndarray:
    """All levels of a category, or even points over the training range of a number, none an atom."""
    if axis.is_category:
        return _as_levels(axis.variable, axis.variable.levels)
    return beside_atoms(axis.variable, np.linspace(axis.margin.low, axis.margin.high, points))


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


def read_at(parts: Parts, axes: Sequence[Axis], at: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Values to evaluate at, by name of the axis, checked."""
    if not isinstance(at, Mapping):
        raise DataError(f"`at` must go from features to values, e.g. {{'x1': 0.5}}. Received: {at!r}.")
    known, found = known_names(parts), {}
    by_name = {axis.name: axis for axis in axes}
    by_name |= {
        name: axis for name, place in known.items() for axis in axes
        if axis.place == place and not axis.variable.is_point
    }  # fmt: skip
    for name, values in at.items():
        if name not in by_name:
            raise unknown_feature(str(name), [axis.name for axis in axes], "effect")
        axis = by_name[name]
        found[axis.name] = _given(axis, values, parts.model.extrapolation)
    return found


def _given(axis: Axis, values: Any, extrapolation: str) -> np.ndarray:
    """Values that the user wants along an axis, checked."""
    variable = axis.variable
    values = np.atleast_1d(np.asarray(values, object)).reshape(-1)
    if not len(values):
        raise DataError(f"`at` has no values for `{axis.name}`.")
    if variable.is_category:
        unknown = [value for value in values.tolist() if value not in variable.levels]
        if unknown:
            shown = ", ".join(map(repr, variable.levels[:10]))
            raise DataError(f"{unknown[0]!r} is no level of `{variable.label}`; it has: {shown}.")
        return _as_levels(variable, values.tolist())
    try:
        numbers = values.astype(float)
    except (TypeError, ValueError):
        raise DataError(f"`at` must hold numbers for `{axis.name}`.") from None
    if not np.isfinite(numbers).all():
        raise DataError(f"`at` has values for `{axis.name}` that are not finite.")
    _check_range(axis, numbers, extrapolation)
    return numbers


def _check_range(axis: Axis, values: np.ndarray, extrapolation: str) -> None:
    """As `predict` does: values beyond the axis of a spline are clipped, with a warning, or refused."""
    coordinate = axis.variable.coordinates.index(axis.name)
    for basis in (feature.basis for feature in axis.variable.features if feature.basis.ends):
        low, high = basis.ends[coordinate]
        if extrapolation == "linear" or ((values >= low) & (values <= high)).all():
            continue
        shown = f"`at` has values for `{axis.name}` outside the training range [{low:g}, {high:g}]"
        if extrapolation == "error":
            raise DataError(f"{shown}.")
        warn(f"{shown}: its smooth functions are clipped to it.")
        return


def near_data(parts: Parts, axes: Sequence[Axis], grid: tuple[np.ndarray, ...]) -> np.ndarray | None:
    """Points with training rows near by, in the plane of each two of the axes."""
    shape = tuple(map(len, grid))
    near = np.ones(shape, bool)
    cells = [
        cell_of(axis.variable, axis.margin, values) for axis, values in zip(axes, grid, strict=True)
    ]
    for axis, own in enumerate(cells):
        near &= np.expand_dims(own >= 0, tuple(a for a in range(len(shape)) if a != axis))
    for (i, first), (j, second) in combinations(enumerate(axes), 2):
        occupied = parts.margins.occupancy(first.name, second.name)
        if occupied is None:
            return None
        plane = binary_dilation(occupied, _reach(first, second))[np.ix_(cells[i], cells[j])]
        near &= np.expand_dims(plane, tuple(axis for axis in range(len(shape)) if axis not in (i, j)))
    return near


def _reach(first: Axis, second: Axis) -> np.ndarray:
    """Cells around one that are near it: a disc, or no other level of a category."""
    steps = [np.zeros(1) if v.is_category else np.arange(-_NEAR, _NEAR + 1.0) for v in (first, second)]
    return np.add.outer(steps[0] ** 2, steps[1] ** 2) <= _NEAR**2 + 1
