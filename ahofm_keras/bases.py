"""Bases: knots, B-splines (plain and cyclic), levels of a category, one column as it is, distances.

Nearly every basis is a row of cardinal B-splines of one degree at the integers. What differs is how a
raw value finds its place on that axis: a number through a smooth, rising warp that spreads the knots, a
category as the index of its level (degree 0: one box a level). The functions take `numpy` or
`keras.ops` as `namespace`, so training, prediction and the exported graph share one code path.

Those of distances (`radial.py`) are of points with several coordinates, whose place are these, in one
unit. All of them are not zero at a point, as if the axis had one cell.

Values that many rows share, atoms, have places of their own, far beyond the axis, and functions of their
own after the splines: a row at an atom has that one function, which is 1 there, and no other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb, factorial
from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.radial import Radial
from ahofm_keras.warp import learn_warp

Array = Any
Namespace = Any

EXTRAPOLATIONS = ("clip", "linear", "error")
# Place of the first atom; the second is twice as far, and so on: single precision tells them apart.
ATOM_PLACE = 1e13
# Beyond any straight line's place; far enough for it, and still a number in float32.
_FURTHEST = 1e12
# Units in the last place by which a value may miss an atom: functions of a formula round differently in
# NumPy and in the graph.
_ULPS = 4
# Values up to this number are looked up one by one: pandas takes longer to begin.
_FEW = 1000


@dataclass(frozen=True)
class Basis:
    """A basis and everything that it learned from the training data.

    Args:
        kind: `"ps"` (P-spline), `"cp"` (cyclic P-spline), `"re"` (levels), `"mrf"` (regions with
            neighbours), `"linear"`, or of distances `"tp"`, `"ds"` and `"gp"`.
        size: number of functions M, those of atoms, which come last, among them.
        degree: of the B-splines; 0 for levels and steps, 1 for `"linear"`, where it is not used.
        axis: raw values of the warp's table, rising; for `"linear"` centre and spread.
        warped: values of the warp at `axis`, from 0 to 1.
        levels: the categories, sorted: texts, numbers or booleans.
        extrapolation: `"clip"`, `"linear"` or `"error"` for values outside the training range.
        line: for `"ps"`, the coefficients of the straight line: with them the functions add up to x,
            less some number; of steps they add up to the middles of these.
        difference: for splines, the order of the differences of coefficients that the penalty is of.
        atoms: values with functions of their own, rising; of `"ps"` alone.
        radial: the functions of distances; None of all other kinds.
        neighbours: of regions, the places of each two levels that are neighbours.
    """

    kind: str
    size: int
    degree: int
    axis: tuple[float, ...] = ()
    warped: tuple[float, ...] = ()
    levels: tuple[Any, ...] = ()
    extrapolation: str = "clip"
    line: tuple[float, ...] = ()
    difference: int = 2
    atoms: tuple[float, ...] = ()
    radial: Radial | None = None
    neighbours: tuple[tuple[int, int], ...] = ()

    @property
    def dimension(self) -> int:
        """Number of coordinates of a place."""
        return 1 if self.radial is None else self.radial.dimension

    @property
    def ends(self) -> tuple[tuple[float, float], ...]:
        """Smallest and largest training value of each coordinate; none of circles and levels."""
        if self.radial is not None:
            return tuple((float(low), float(high)) for low, high in self.radial.ends.T)
        return ((self.axis[0], self.axis[-1]),) if self.kind == "ps" else ()

    @property
    def splines(self) -> int:
        """Number of functions but for those of atoms."""
        return self.size - len(self.atoms)

    @property
    def intervals(self) -> int:
        """Number of knot intervals between the two ends of the axis."""
        return self.splines if self.kind == "cp" else self.splines - self.degree

    @property
    def period(self) -> int:
        """Length of the axis where it is a circle, else 0."""
        return self.size if self.kind == "cp" else 0

    @property
    def is_spline(self) -> bool:
        return self.kind in ("ps", "cp")

    @property
    def is_dense(self) -> bool:
        """Whether no function is zero at any place."""
        return self.radial is not None

    @property
    def is_sized(self) -> bool:
        """Whether the number of its functions is for the user to say."""
        return self.is_spline or self.radial is not None

    @property
    def width(self) -> int:
        """Number of functions, neighbours, that are not zero at a place."""
        if self.radial is not None:
            return self.size
        return self.degree + 1 if self.is_spline else 1

    @property
    def last_cell(self) -> int:
        """The last knot interval, or level."""
        return (self.intervals if self.is_spline else self.size) - 1

    @property
    def cells(self) -> int:
        """Number of cells, as functions count: atoms, which come after the splines, have one each."""
        if self.radial is not None:
            return 1
        return self.size if self.atoms else self.last_cell + 1

    @property
    def is_straight_beyond(self) -> bool:
        """Whether functions go on as straight lines beyond the ends of the axis."""
        return self.kind == "ps" and self.extrapolation == "linear" and not self.is_step

    @property
    def is_step(self) -> bool:
        """Whether functions are constant between knots: places are then the numbers of the steps."""
        return self.is_spline and self.degree == 0

    @property
    def jumps(self) -> np.ndarray:
        """Raw values at which functions jump: the inner knots of steps."""
        if not self.is_step:
            return np.zeros(0)
        return np.interp(np.arange(1, self.intervals) / self.intervals, self.warped, self.axis)

    @cached_property
    def table(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`axis`, `warped` and the slopes between them, as arrays."""
        axis, warped = np.asarray(self.axis), np.asarray(self.warped)
        return axis, warped, np.diff(warped) / np.diff(axis)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "size": self.size,
            "degree": self.degree,
            "axis": list(self.axis),
            "warped": list(self.warped),
            "levels": list(self.levels),
            "extrapolation": self.extrapolation,
            "line": list(self.line),
            "difference": self.difference,
            "atoms": list(self.atoms),
            **({} if self.radial is None else {"radial": self.radial.to_json()}),
            **({"neighbours": [list(pair) for pair in self.neighbours]} if self.neighbours else {}),
        }

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> Basis:
        return cls(
            config["kind"],
            config["size"],
            config["degree"],
            tuple(config["axis"]),
            tuple(config["warped"]),
            tuple(config["levels"]),
            config["extrapolation"],
            tuple(config["line"]),
            config["difference"],
            tuple(config["atoms"]),
            Radial.from_json(config["radial"]) if config.get("radial") else None,
            tuple((first, second) for first, second in config.get("neighbours", ())),
        )


def make_spline(
    x: np.ndarray,
    size: int,
    *,
    counts: np.ndarray | None = None,
    degree: int = 3,
    knots: str | tuple[float, float] = "adaptive",
    cyclic: bool = False,
    extrapolation: str = "clip",
    difference: int = 2,
    atoms: tuple[float, ...] = (),
) -> Basis:
    """B-splines on evenly spaced knots of a warped axis.

    Args:
        x: training values `(n,)`, not all equal.
        size: number of functions.
        counts: how many rows have each value, where `x` has each once, rising.
        degree: 0 to 3.
        knots: `"even"` keeps the axis, `"quantile"` takes the distribution function as the axis,
            `"adaptive"` lies halfway between; a pair gives the two ends of an even axis.
        cyclic: whether the ends are joined.
        extrapolation: what happens outside the axis (a cyclic axis goes round instead).
        difference: order of the differences that are penalised.
        atoms: values that get a function of their own beside these, rising.
    """
    warp = learn_warp(x, knots, size, degree, cyclic, counts)
    return Basis(
        "cp" if cyclic else "ps",
        size + len(atoms),
        degree,
        tuple(warp.axis.tolist()),
        tuple(warp.warped.tolist()),
        extrapolation=extrapolation,
        line=tuple(warp.line.tolist()),
        difference=difference,
        atoms=atoms,
    )


def make_levels(
    levels: tuple[Any, ...], kind: str = "re", neighbours: tuple[tuple[int, int], ...] = ()
) -> Basis:
    """One box a level; a level that is not listed has no function at all."""
    return Basis(kind, len(levels), 0, levels=levels, neighbours=neighbours)


def make_distances(kind: str, radial: Radial, extrapolation: str) -> Basis:
    """Functions of the distances to some knots."""
    return Basis(kind, radial.size, 0, extrapolation=extrapolation, radial=radial)


def make_linear(x: np.ndarray, counts: np.ndarray | None = None) -> Basis:
    """The standardised column itself, as in a factorization machine; `counts` as in `make_spline`."""
    mean = np.average(x, weights=counts)
    spread = np.sqrt(np.average((x - mean) ** 2, weights=counts))
    return Basis("linear", 1, 1, axis=(float(mean), float(spread)))


def locate(basis: Basis, x: Array, namespace: Namespace = np) -> Array:
    """Place of raw values on the basis' axis, where its functions stand at the integers.

    Args:
        basis: spline, `"linear"`, or levels that are numbers or booleans; indices of levels that are
            texts come from a lookup (`locate_levels`, or a StringLookup in the graph).
        x: raw values `(n,)`, of points `(n, d)`.
        namespace: `numpy` or `keras.ops`.

    Returns:
        `(n,)`: in [0, intervals] for splines (beyond it with `extrapolation="linear"`) or the place of
        an atom, the number of the step, the index of the level or -1, or the standardised value. Of
        functions of distances coordinates in one unit, `(n, d)`.
    """
    if basis.radial is not None:
        return basis.radial.locate(x, basis.extrapolation != "linear", namespace)
    if basis.kind == "linear":
        return (x - basis.axis[0]) / basis.axis[1]
    if basis.levels:
        return _locate_numbers(basis.levels, x, namespace)
    raw = x
    low, high = basis.axis[0], basis.axis[-1]
    if basis.period:
        # A plain float would be rounded to float32 by keras.ops.
        x = low + namespace.mod(x - low, np.float64(high - low))
    elif not basis.is_straight_beyond:
        x = namespace.clip(x, low, high)
    if basis.is_step:
        step = namespace.floor(_interpolate(basis, x, namespace) * basis.intervals)
        return namespace.minimum(step, basis.last_cell)
    places = namespace.clip(_interpolate(basis, x, namespace) * basis.intervals, -_FURTHEST, _FURTHEST)
    return _beside_atoms(basis.atoms, raw, places, namespace) if basis.atoms else places


def _beside_atoms(atoms: tuple[float, ...], x: Array, places: Array, namespace: Namespace) -> Array:
    """Places of values, those of atoms where a value is one."""
    known = np.asarray(atoms)
    nearest = namespace.searchsorted((known[1:] + known[:-1]) / 2, x)
    distance = namespace.abs(x - namespace.take(known, nearest))
    is_atom = distance <= namespace.take(_ULPS * np.spacing(np.abs(known)), nearest)
    own = ATOM_PLACE * np.arange(1.0, len(known) + 1)
    return namespace.where(is_atom, namespace.take(own, nearest), places)


def atom_indices(places: Array, namespace: Namespace = np) -> Array:
    """Index of the atom at places as `locate` gives them; -1 on the axis."""
    return namespace.round(namespace.maximum(places, 0.0) / ATOM_PLACE) - 1


def _interpolate(basis: Basis, x: Array, namespace: Namespace) -> Array:
    axis, warped, slopes = basis.table
    if len(axis) == 2:
        return (x - axis[0]) * slopes[0]
    cell = namespace.clip(namespace.searchsorted(axis, x, side="right") - 1, 0, len(axis) - 2)
    start, slope = namespace.take(axis[:-1], cell), namespace.take(slopes, cell)
    return namespace.take(warped[:-1], cell) + (x - start) * slope


def _locate_numbers(levels: tuple[Any, ...], x: Array, namespace: Namespace) -> Array:
    known = np.asarray(levels, float)
    place = namespace.clip(namespace.searchsorted(known, x), 0, len(known) - 1)
    return namespace.where(namespace.take(known, place) == x, place, -1)


def locate_levels(levels: tuple[Any, ...], values: np.ndarray) -> np.ndarray:
    """Index of each value among the levels, -1 where it is not one of them."""
    if values.dtype != object:
        return _locate_numbers(levels, values.astype(float), np)
    if len(values) <= _FEW:
        known = _level_positions(levels)
        return np.fromiter((known.get(value, -1) for value in values), int, len(values))
    return pd.Index(levels).get_indexer(values)


@lru_cache(maxsize=256)
def _level_positions(levels: tuple[Any, ...]) -> dict[Any, int]:
    return {level: position for position, level in enumerate(levels)}


def cardinal_splines(place: Array, centres: np.ndarray, degree: int, namespace: Namespace = np) -> Array:
    """Cardinal B-splines N(place - centre) by truncated powers of the distance to the centre.

    N_d(v) = 1/d! sum_k (-1)^k C(d+1, k) max((d+1)/2 - k - |v|, 0)^d. Only the terms with a positive
    first part are needed because N is even in v, so no large powers cancel.

    Args:
        place: `(..., 1)` places on the axis, or offsets from the centres, `(..., M)`.
        centres: `(M,)`, the middles of the functions.
        degree: 0 gives boxes of width 1.
        namespace: `numpy` or `keras.ops`.

    Returns:
        `(..., M)`.
    """
    distance = namespace.abs(place - _like(place, centres))
    if degree == 0:
        # Not plainly 0: a place that is missing stays missing, as it does with splines.
        return namespace.where(distance < 0.5, _like(place, 1.0), 0 * distance)
    total = 0.0
    for k in range((degree + 2) // 2):
        reach = (degree + 1) / 2 - k
        weight = (-1) ** k * comb(degree + 1, k) / factorial(degree)
        total = total + weight * _power(namespace.maximum(reach - distance, 0.0), degree)
    return total


def _power(base: Array, degree: int) -> Array:
    """A small power, multiplied out: NumPy's takes ten times as long."""
    result = base
    for _ in range(degree - 1):
        result = result * base
    return result


def cardinal_slopes(place: Array, centres: np.ndarray, degree: int, namespace: Namespace = np) -> Array:
    """Derivative of `cardinal_splines` by the place: N_d'(v) = N_(d-1)(v + 1/2) - N_(d-1)(v - 1/2)."""
    before = cardinal_splines(place + 0.5, centres, degree - 1, namespace)
    return before - cardinal_splines(place - 0.5, centres, degree - 1, namespace)


def spline_centres(size: int, degree: int) -> np.ndarray:
    """Middles of the functions whose knots are the integers from -degree on."""
    return np.arange(size) - (degree - 1) / 2 if degree else np.arange(size, dtype=float)


def evaluate_cells(
    place: Array,
    last: Array,
    degree: int,
    straight: bool = False,
    namespace: Namespace = np,
    first_atom: Array | None = None,
) -> tuple[Array, Array]:
    """The functions that are not zero at places on the axis: degree + 1 neighbours.

    Args:
        place: `(..., 1, n)`; -1 for a level that is not known, which has no function.
        last: the last cell of each axis, broadcastable to `place`. Cells are the intervals between the
            integers, or the levels.
        degree: of the B-splines; 0 for levels.
        straight: whether functions go on as straight lines beyond the ends of the axis.
        namespace: `numpy` or `keras.ops`.
        first_atom: number of the function of the first atom, broadcastable to `place`; by default no
            place is that of an atom.

    Returns:
        The cell of each place `(..., 1, n)`, the number of the first of its functions, in the precision
        of places; and the values of its functions `(..., degree + 1, n)`. A place that is missing is in
        cell 0, where its values are missing. An atom has the first function of its cell; the others of
        the cell, whichever they are, are 0.
    """
    if first_atom is not None:
        atom = atom_indices(place, namespace)
        axis = namespace.where(atom >= 0, namespace.zeros_like(place), place)
        cell, values = evaluate_cells(axis, last, degree, straight, namespace)
        own = _like(place, (np.arange(degree + 1) == 0)[:, None])
        cell = namespace.where(atom >= 0, atom + _like(place, first_atom), cell)
        return cell, namespace.where(atom >= 0, own, values)
    start = namespace.where(place > 0, place, namespace.zeros_like(place))  # NaN is not a cell
    cell = namespace.floor(namespace.minimum(start, _like(place, last)))
    offset, centres = place - cell, spline_centres(degree + 1, degree)[:, None]
    if not straight:
        return cell, cardinal_splines(offset, centres, degree, namespace)
    inside = _within(offset, 0.0, 1.0, namespace)
    # The slope of straight pieces jumps at the knots: take it in the middle of the piece.
    at = _within(offset, 0.5, 0.5, namespace) if degree == 1 else inside
    values = cardinal_splines(inside, centres, degree, namespace)
    return cell, values + (offset - inside) * cardinal_slopes(at, centres, degree, namespace)


def _within(place: Array, low: float, high: float, namespace: Namespace) -> Array:
    return namespace.minimum(namespace.maximum(place, low), high)


def locate_cells(basis: Basis, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cell of each row `(n,)`, and the values there of the functions that are not zero `(width, n)`.

    Args:
        basis: of the functions.
        places: `(n,)` places of the rows on its axis, of points `(n, d)`.
    """
    if basis.radial is not None:
        return np.zeros(len(places), int), basis.radial.evaluate(places.reshape(len(places), -1).T)
    if basis.kind == "linear":
        return np.zeros(len(places), int), places[None]
    cell, values = evaluate_cells(
        places[None],
        basis.last_cell,
        basis.degree,
        basis.is_straight_beyond,
        first_atom=basis.splines if basis.atoms else None,
    )
    return cell[0].astype(int), values


def evaluate_at(basis: Basis, places: np.ndarray) -> np.ndarray:
    """Dense basis `(n, M)` at places `(n,)` on its axis, in NumPy."""
    cell, values = locate_cells(basis, places)
    functions = (cell + np.arange(len(values))[:, None]) % basis.size
    dense = np.zeros((len(places), basis.size))
    dense[np.arange(len(places)), functions] = values
    return dense


def locate_raw(basis: Basis, x: np.ndarray) -> np.ndarray:
    """Places of raw values of any kind, texts too, in NumPy."""
    return locate_levels(basis.levels, x) if basis.levels else locate(basis, x)


def evaluate_basis(basis: Basis, x: np.ndarray) -> np.ndarray:
    """Dense basis `(n, M)` of raw values, in NumPy."""
    return evaluate_at(basis, np.asarray(locate_raw(basis, x), float))


def center_basis(column_means: np.ndarray) -> np.ndarray:
    """Orthonormal basis Z `(M, M - 1)` of the coefficients whose function has mean zero.

    With c the column means of B, Z spans the null space of c', so B Z gamma has mean zero for
    every gamma.
    """
    orthonormal, _ = np.linalg.qr(column_means[:, None], mode="complete")
    return orthonormal[:, 1:]


def _like(place: Array, values: Any) -> np.ndarray:
    """Constants in the precision of `place`: TensorFlow does not mix precisions."""
    return np.asarray(values, dtype=getattr(place.dtype, "name", place.dtype))
