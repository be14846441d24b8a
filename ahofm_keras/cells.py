"""Bases on rows without the dense matrix: the few functions that are not zero, by knot interval.

A row of a cubic B-spline basis has 4 functions that are not zero: those of its knot interval, here its
cell; a row of levels, or at an atom, has one. Sums over rows are sums over the rows of each cell, put
where the functions of the cell stand: a Gram matrix takes n 10 instead of n M^2 products.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ahofm_keras.bases import Basis, locate_cells, locate_raw


class Cells(NamedTuple):
    """Functions on rows, of which each row has few that are not zero.

    Args:
        cell: `(n,)` of each row.
        values: `(width, n)` of the functions that are not zero there.
        functions: `(cells, width)`, which ones these are in each cell.
        size: number of functions M.
    """

    cell: np.ndarray
    values: np.ndarray
    functions: np.ndarray
    size: int

    def sums(self, weights: np.ndarray) -> np.ndarray:
        """sum_i weights_i b_i of weights `(n,)`: `(M,)`."""
        total = np.zeros(self.size)
        for column, values in enumerate(self.values):
            total += self._collect(weights * values, self.functions[:, column], self.size)
        return total

    def gram(self, weights: np.ndarray) -> np.ndarray:
        """sum_i weights_i b_i b_i' of weights `(n,)`: `(M, M)`."""
        if len(self.functions) == 1:
            total = np.zeros((self.size, self.size))
            total[np.ix_(self.functions[0], self.functions[0])] = (weights * self.values) @ self.values.T
            return total
        upper = np.zeros(self.size**2)
        for a, first in enumerate(weights * self.values):
            for b in range(a, len(self.values)):
                places = self.functions[:, a] * self.size + self.functions[:, b]
                # What stands on the diagonal is added to its transpose below.
                share = first if a != b else first / 2
                upper += self._collect(share * self.values[b], places, self.size**2)
        half = upper.reshape(self.size, self.size)
        return half + half.T

    def _collect(self, summands: np.ndarray, places: np.ndarray, length: int) -> np.ndarray:
        """Sums over the rows of each cell, at the cells' places in an array of some length."""
        by_cell = np.bincount(self.cell, summands, minlength=len(places))
        return np.bincount(places, by_cell, minlength=length)


def basis_cells(basis: Basis, x: np.ndarray) -> Cells:
    """A basis at raw values."""
    cell, values = locate_cells(basis, np.asarray(locate_raw(basis, x), float))
    functions = (np.arange(basis.cells)[:, None] + np.arange(len(values))) % basis.size
    return Cells(cell, values, functions, basis.size)


def column_cells(columns: np.ndarray) -> Cells:
    """Columns `(m, n)` that are not zero anywhere: all rows are in one cell."""
    count, rows = columns.shape
    return Cells(np.zeros(rows, int), columns, np.arange(count)[None], count)


def join_cells(parts: Sequence[Cells]) -> Cells:
    """Functions of several kinds on the same rows, one after another: a cell is one of each."""
    joined, *others = parts
    for other in others:
        a, b = (np.arange(len(part.functions)) for part in (joined, other))
        joined = Cells(
            joined.cell * len(b) + other.cell,
            np.concatenate([joined.values, other.values]),
            np.concatenate(
                [
                    joined.functions[np.repeat(a, len(b))],
                    joined.size + other.functions[np.tile(b, len(a))],
                ],
                axis=1,
            ),
            joined.size + other.size,
        )
    return joined
