"""Margins: what a reader must know of the training data once it is gone.

Ranges and quantiles of each variable, first and second moments of its functions, and which cells of a
grid of each two variables hold rows. Effects, their variances and pictures follow from them without any
row of the data.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from ahofm_keras.bases import locate_levels
from ahofm_keras.cells import basis_cells, column_cells, join_cells
from ahofm_keras.packing import pack_array, unpack_array
from ahofm_keras.terms.base import Term
from ahofm_keras.terms.variables import Variable, split_column, variables_by_key
from ahofm_keras.transforms import evaluate_expression

QUANTILES = 101
# Cells along an axis of the grid that tells where rows are, and rows that are looked at for it.
CELLS = 24
_OCCUPANCY_ROWS = 20_000
_MOST_LEVELS = 64
_CHUNK = 16_384
# A mean that is smaller than this share of the spread is rounding: the functions are centred.
CENTRED = 1e-7

# Means `(m,)` and second moments or covariances `(m, m)` of some functions.
Moments = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Margin:
    """The training distribution of one variable.

    Args:
        label: of the variable.
        quantiles: of a number, at `QUANTILES` even probabilities; empty for a category, of points
            `(QUANTILES, d)`, each coordinate by itself.
        frequencies: of the levels of a category; empty for a number.
        mean: of the variable's functions `(m,)`, which readers take from them; 0 of those that go
            through a point. Empty for a category, where they follow from the frequencies.
        covariance: of the functions, `(m, m)`.
    """

    label: str
    quantiles: np.ndarray
    frequencies: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray

    @property
    def axes(self) -> tuple[Margin, ...]:
        """Of a point a margin of each coordinate, which knows quantiles alone; else itself."""
        if self.quantiles.ndim == 1:
            return (self,)
        empty, none = np.zeros(0), np.zeros((0, 0))
        return tuple(Margin(self.label, own, empty, empty, none) for own in self.quantiles.T)

    @property
    def low(self) -> float:
        return float(self.quantiles[0])

    @property
    def high(self) -> float:
        return float(self.quantiles[-1])

    def to_json(self) -> dict[str, Any]:
        upper = self.covariance[np.triu_indices(len(self.mean))]
        return {
            "label": self.label,
            "quantiles": self.quantiles.tolist(),
            "frequencies": self.frequencies.tolist(),
            "mean": self.mean.tolist(),
            "covariance": pack_array(upper),
        }

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> Margin:
        mean = np.asarray(config["mean"], float)
        covariance = np.zeros((len(mean), len(mean)))
        covariance[np.triu_indices(len(mean))] = unpack_array(config["covariance"])
        covariance = covariance + np.triu(covariance, 1).T
        quantiles, frequencies = (np.asarray(config[key], float) for key in ("quantiles", "frequencies"))
        return cls(config["label"], quantiles, frequencies, mean, covariance)


@dataclass(frozen=True, eq=False)
class Margins:
    """Margins of all variables, and where rows are in the plane of each two that interact.

    Args:
        single: in the order of the variables.
        occupied: for each two labels, of points those of coordinates, the cells `(a, b)` that hold rows.
    """

    single: tuple[Margin, ...]
    occupied: dict[tuple[str, str], np.ndarray]

    def occupancy(self, first: str, second: str) -> np.ndarray | None:
        """Cells of the first along rows, of the second along columns; None where it is not known."""
        if (first, second) in self.occupied:
            return self.occupied[first, second]
        other = self.occupied.get((second, first))
        return None if other is None else other.T

    def to_json(self) -> dict[str, Any]:
        occupied = [
            [first, second, list(cells.shape), base64.b64encode(np.packbits(cells).tobytes()).decode()]
            for (first, second), cells in self.occupied.items()
        ]
        return {"single": [margin.to_json() for margin in self.single], "occupied": occupied}

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> Margins:
        occupied = {}
        for first, second, shape, text in config["occupied"]:
            bits = np.unpackbits(np.frombuffer(base64.b64decode(text), np.uint8))
            occupied[first, second] = bits[: shape[0] * shape[1]].astype(bool).reshape(shape)
        return cls(tuple(Margin.from_json(margin) for margin in config["single"]), occupied)


def function_means(variable: Variable, margin: Margin) -> np.ndarray:
    """Means of a variable's functions over its margin, `(m,)`."""
    if not variable.is_category:
        return margin.mean
    levels = np.array(variable.levels, object if isinstance(variable.levels[0], str) else None)
    return np.asarray(variable.functions(levels) @ margin.frequencies)


def learn_margins(
    variables: list[Variable],
    terms: Iterable[Term],
    columns: Mapping[str, np.ndarray],
    moments: Mapping[int, Moments] | None = None,
) -> Margins:
    """Margins of the training columns.

    Args:
        variables: of the design.
        terms: of the design.
        columns: raw training columns.
        moments: means of the basis functions, and B'B / n, of features of the design by position, where
            they are known already: they need not be computed again.
    """
    values = [np.asarray(evaluate_expression(v.expression, columns)) for v in variables]
    single = tuple(
        _learn_margin(variable, own, moments or {})
        for variable, own in zip(variables, values, strict=True)
    )
    axes: dict[int, list[tuple[str, tuple[np.ndarray, int]]]] = {
        place: _cells(*triple)
        for place, triple in enumerate(zip(variables, single, values, strict=True))
    }
    occupied = {}
    together = {
        tuple(sorted(_variables_of(term, variables)))
        for term in terms
        if term.features or term.parametric is None or not term.parametric.is_side_by_side
    }
    for places in sorted(together):
        every = [axis for place in places for axis in axes[place]]
        for (first, own), (second, other) in combinations(every, 2):
            occupied[first, second] = _occupied(own, other)
    return Margins(single, occupied)


def _learn_margin(variable: Variable, values: np.ndarray, moments: Mapping[int, Moments]) -> Margin:
    nothing = np.zeros(0)
    if variable.is_category:
        places = locate_levels(variable.levels, values)
        counts = np.bincount(places, minlength=len(variable.levels))
        return Margin(variable.label, nothing, counts / len(values), nothing, np.zeros((0, 0)))
    quantiles = np.quantile(values, np.linspace(0, 1, QUANTILES), axis=0)
    alone = len(variable.places) == 1 and not variable.products
    if alone and variable.places[0] in moments:
        mean, covariance = _in_coordinates(variable.features[0].transform, *moments[variable.places[0]])
    else:
        mean, covariance = _moments(variable, values)
    for place, feature in zip(variable.places, variable.features, strict=True):
        if feature.through is not None:  # its functions are read as they are: 0 there, not on average
            mean[variable.columns_of(place)] = 0.0
    return Margin(variable.label, quantiles, nothing, mean, covariance)


def _moments(variable: Variable, values: np.ndarray) -> Moments:
    """Means and covariances of all functions of a variable."""
    # Columns of linear terms as deviations from a value near their mean: of a year or a time stamp,
    # squares would leave no digits.
    start = variable.product_columns(values[:_CHUNK]).mean(axis=1)
    bases = [feature.basis for feature in variable.features]
    size = sum(basis.size for basis in bases) + len(start)
    total, squares = np.zeros(size), np.zeros((size, size))
    for first in range(0, len(values), _CHUNK):
        rows = values[first : first + _CHUNK]
        columns = variable.product_columns(rows) - start[:, None]
        cells = join_cells([*(basis_cells(basis, rows) for basis in bases), column_cells(columns)])
        weights = np.ones(len(rows))
        total += cells.sums(weights)
        squares += cells.gram(weights)
    transform = block_diag(*(feature.transform for feature in variable.features), np.eye(len(start)))
    mean, covariance = _in_coordinates(transform, total / len(values), squares / len(values))
    mean[variable.size - len(start) :] += start
    return mean, covariance


def _in_coordinates(transform: np.ndarray, mean: np.ndarray, gram: np.ndarray) -> Moments:
    """Mean and covariance of T'b from the mean and B'B / n of the functions b."""
    mean = transform.T @ mean
    covariance = transform.T @ gram @ transform - np.outer(mean, mean)
    return mean, (covariance + covariance.T) / 2


def _variables_of(term: Term, variables: list[Variable]) -> set[int]:
    """Positions of the variables that a term has functions of."""
    found = {i for i, v in enumerate(variables) for place in term.features if place in v.places}
    design = term.parametric
    if design is not None:
        columns = split_column(variables_by_key(variables), design, (0,) * len(design.factors))
        found |= {variables.index(variable) for variable, _ in columns}
    return found


def cell_of(variable: Variable, margin: Margin, values: np.ndarray) -> np.ndarray:
    """Cell of each value on the grid of `Margins.occupied`, -1 outside the training range.

    Args:
        variable: which one.
        margin: of it; where it is a point, of one of its coordinates.
        values: `(n,)`.
    """
    if variable.is_category:
        return locate_levels(variable.levels, values)
    values = np.asarray(values, float)
    width = (margin.high - margin.low) or 1.0
    share = np.clip((values - margin.low) / width, 0.0, 1.0)
    inside = (values >= margin.low) & (values <= margin.high)
    return np.where(inside, np.minimum((share * CELLS).astype(int), CELLS - 1), -1)


def _cells(
    variable: Variable, margin: Margin, values: np.ndarray
) -> list[tuple[str, tuple[np.ndarray, int]]]:
    """Name of each axis, cells of some rows and their number; none of too many levels to look at."""
    if len(variable.levels) > _MOST_LEVELS:
        return []
    rows = values[:: max(1, len(values) // _OCCUPANCY_ROWS)]
    columns = rows.T if variable.is_point else rows[None]
    return [
        (name, (cell_of(variable, axis, own), len(variable.levels) or CELLS))
        for name, axis, own in zip(variable.coordinates, margin.axes, columns, strict=True)
    ]


def _occupied(first: Any, second: Any) -> np.ndarray:
    (a, rows), (b, columns) = first, second
    grid = np.zeros((rows, columns), bool)
    grid[a, b] = True
    return grid
