"""Sums over rows of products of basis functions, without the dense basis.

A row of a cubic B-spline basis has 4 functions that are not zero: those of its knot interval, here its
cell. With the rows grouped by cell, every sum over rows is one small matrix product a cell: a Gram
matrix of P weights at once costs n 10 P instead of n M^2 P operations, and only its band of functions
that share a cell is kept, see `bands`. Centring and Demmler-Reinsch coordinates are applied afterwards.

All kernels return plain sums over the rows of one chunk, so sums of several chunks, or machines, add up.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from ahofm_keras.bands import quadratic_weights
from ahofm_keras.bases import Basis, locate_cells
from ahofm_keras.moments import triangle

# Rows times functions of a basis without zeros that are computed at once.
_DENSE_NUMBERS = 1_000_000


class CellBasis:
    """A basis on the rows of one chunk.

    Args:
        basis: the basis.
        places: `(n,)` places of the rows on its axis.
        located: `cells` and `values` at the places, where they are known already.

    Attributes:
        cells: `(n,)` knot interval, or level, of each row.
        values: `(n, width)` of the functions that are not zero there.
    """

    def __init__(
        self, basis: Basis, places: np.ndarray, located: tuple[np.ndarray, np.ndarray] | None = None
    ) -> None:
        self.basis = basis
        self.places = places
        if located is None:
            cells, values = locate_cells(basis, np.asarray(places, float))
            located = cells, np.ascontiguousarray(values.T)
        self.cells, self.values = located
        self.width = self.values.shape[1]

    def __len__(self) -> int:
        return len(self.cells)

    def take(self, rows: np.ndarray | slice) -> Self:
        """The basis on some of the rows."""
        parts = [np.ascontiguousarray(part[rows]) for part in (self.places, self.cells, self.values)]
        return type(self)(self.basis, parts[0], (parts[1], parts[2]))

    def evaluate(self, coefficients: np.ndarray) -> np.ndarray:
        """Functions of given coefficients `(F, M)` at the rows: `(F, n)`."""
        inner = np.take(coefficients, self._sorted.functions, axis=1)  # (F, cells, width)
        return self._spread(inner.transpose(1, 0, 2), self._sorted.values)

    def quadratic(self, forms: np.ndarray) -> np.ndarray:
        """b' V b at the rows, for the bands of P symmetric forms V `(P, M, width)`: `(P, n)`."""
        first, second = triangle(self.width)
        inner = forms[:, self._sorted.functions[:, first], second - first]  # (P, cells, pairs)
        inner = inner * quadratic_weights(self.width)[second - first]
        return self._spread(inner.transpose(1, 0, 2), self._pairs())

    def sums(self, weights: np.ndarray) -> np.ndarray:
        """sum_i weights_i b_i, for F weights `(F, n)`: `(F, M)`."""
        inner = self._collect(weights, self._sorted.values)
        total = np.zeros((len(weights), self.basis.size))
        for column in range(self.width):
            total[:, self._sorted.functions[:, column]] += inner[:, :, column].T
        return total

    def gram(self, weights: np.ndarray) -> np.ndarray:
        """sum_i weights_i b_i b_i', for P weights `(P, n)`: bands `(P, M, width)`, see `bands`."""
        inner, functions = self._collect(weights, self._pairs()), self._sorted.functions
        total = np.zeros((len(weights), self.basis.size, self.width))
        for pair, (a, b) in enumerate(zip(*triangle(self.width), strict=True)):
            total[:, functions[:, a], b - a] += inner[:, :, pair].T
        return total

    def cross(self, other: CellBasis, weights: np.ndarray) -> np.ndarray:
        """sum_i weights_i b_i c_i', c the functions of another basis at the same rows: `(M, M')`."""
        sizes = self.basis.size, other.basis.size
        total = np.zeros(sizes[0] * sizes[1])
        for a in range(self.width):
            own = (self.cells + a) % sizes[0] * sizes[1]
            weighted = weights * self.values[:, a]
            for b in range(other.width):
                places = own + (other.cells + b) % sizes[1]
                total += np.bincount(places, weighted * other.values[:, b], len(total))
        return total.reshape(sizes)

    @cached_property
    def _sorted(self) -> _SortedRows:
        order = np.argsort(self.cells, kind="stable")
        filled, starts = np.unique(self.cells[order], return_index=True)
        return _SortedRows(
            order,
            np.argsort(order, kind="stable"),
            np.ascontiguousarray(self.values[order].T),
            [*starts.tolist(), len(order)],
            (filled[:, None] + np.arange(self.width)) % self.basis.size,
        )

    def _pairs(self) -> np.ndarray:
        """Products of the functions that are not zero, `(pairs, n)`, rows by cell."""
        first, second = triangle(self.width)
        return self._sorted.values[first] * self._sorted.values[second]

    def _spread(self, inner: np.ndarray, values: np.ndarray) -> np.ndarray:
        """inner of each row's cell `(cells, P, width)` times the row's values `(width, n)`: `(P, n)`."""
        grouped = np.empty((inner.shape[1], len(self)))
        for cell, (start, stop) in enumerate(pairwise(self._sorted.bounds)):
            np.matmul(inner[cell], values[:, start:stop], out=grouped[:, start:stop])
        return np.take(grouped, self._sorted.place, axis=1)

    def _collect(self, weights: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Sum over the rows of each cell of weights `(P, n)` times values `(width, n)`."""
        bounds = self._sorted.bounds
        grouped = np.take(weights, self._sorted.order, axis=1)
        if len(values) == 1:
            return np.add.reduceat(grouped * values, bounds[:-1], axis=1).T[:, :, None]
        inner = np.empty((len(bounds) - 1, len(weights), len(values)))
        for cell, (start, stop) in enumerate(pairwise(bounds)):
            np.matmul(grouped[:, start:stop], values[:, start:stop].T, out=inner[cell])
        return inner


class DenseBasis:
    """A basis of which all functions count at every row of one chunk, such as those of distances.

    They are kept, or computed again, some rows at a time, whenever they are needed.

    Args:
        basis: the basis.
        places: `(n, d)` of the rows.
        keep: whether functions are kept.
    """

    def __init__(self, basis: Basis, places: np.ndarray, keep: bool) -> None:
        self.basis = basis
        self.places = places
        self.keep = keep
        self._step = max(1, _DENSE_NUMBERS // basis.size)

    def __len__(self) -> int:
        return len(self.places)

    def take(self, rows: np.ndarray | slice) -> Self:
        """The basis on some of the rows."""
        taken = type(self)(self.basis, self.places[rows], self.keep)
        if self.keep:
            taken.__dict__["_known"] = self._known[:, rows]
        return taken

    def evaluate(self, coefficients: np.ndarray) -> np.ndarray:
        """Functions of given coefficients `(F, M)` at the rows: `(F, n)`."""
        return np.concatenate([coefficients @ values for _, values in self._parts()], axis=1)

    def sums(self, weights: np.ndarray) -> np.ndarray:
        """sum_i weights_i b_i, for F weights `(F, n)`: `(F, M)`."""
        total = np.zeros((len(weights), self.basis.size))
        for part, values in self._parts():
            total += weights[:, part] @ values.T
        return total

    def _parts(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Some rows after another, and all functions there `(M, rows)`."""
        if self.keep:
            yield slice(0, len(self)), self._known
            return
        for start in range(0, len(self), self._step):
            part = slice(start, start + self._step)
            yield part, locate_cells(self.basis, self.places[part])[1]

    @cached_property
    def _known(self) -> np.ndarray:
        """All functions at all rows, `(M, n)`."""
        return locate_cells(self.basis, self.places)[1]


class _SortedRows(NamedTuple):
    """Rows grouped by cell.

    Args:
        order: `(n,)` rows by cell.
        place: `(n,)` where each row went.
        values: `(width, n)` of the functions that are not zero, rows by cell.
        bounds: where the rows of each cell that has any start, and where the last ends.
        functions: `(cells, width)` that are not zero there.
    """

    order: np.ndarray
    place: np.ndarray
    values: np.ndarray
    bounds: list[int]
    functions: np.ndarray
