"""Sums over rows of products of basis functions, without the dense basis.

A row of a cubic B-spline basis has 4 functions that are not zero: those of its knot interval, here its
cell. With the rows grouped by cell, every sum over rows is one small matrix product a cell: a Gram
matrix of P weights at once costs n 10 P instead of n M^2 P operations. Centring and Demmler-Reinsch
coordinates are applied afterwards, to matrices of M x M.

All kernels return plain sums over the rows of one chunk, so sums of several chunks, or machines, add up.
"""

from __future__ import annotations

import numpy as np

from ahofm_keras.bases import Basis, evaluate_places, spline_centres


class CellBasis:
    """A basis on the rows of one chunk.

    Args:
        basis: the basis.
        places: `(n,)` places of the rows on its axis.
    """

    def __init__(self, basis: Basis, places: np.ndarray) -> None:
        self.basis = basis
        self.places = places
        cells, values = _locate_cells(basis, np.asarray(places, float))
        self.width = len(values)
        self.order = np.argsort(cells, kind="stable")
        self._place = np.argsort(self.order, kind="stable")
        self._values = np.ascontiguousarray(values[:, self.order])
        filled, starts = np.unique(cells[self.order], return_index=True)
        self._bounds = [*starts.tolist(), len(cells)]
        # Functions that are not zero in each cell that has rows.
        self._functions = (filled[:, None] + np.arange(self.width)) % basis.size
        self._first, self._second = np.triu_indices(self.width)

    def __len__(self) -> int:
        return len(self.order)

    def take(self, rows: np.ndarray) -> CellBasis:
        """The basis on some of the rows."""
        return CellBasis(self.basis, self.places[rows])

    def evaluate(self, coefficients: np.ndarray) -> np.ndarray:
        """Functions of given coefficients `(F, M)` at the rows: `(F, n)`."""
        inner = np.take(coefficients, self._functions, axis=1)  # (F, cells, width)
        return self._spread(inner.transpose(1, 0, 2), self._values)

    def quadratic(self, forms: np.ndarray) -> np.ndarray:
        """b' V b at the rows, for P symmetric forms V `(P, M, M)`: `(P, n)`."""
        first, second = self._functions[:, self._first], self._functions[:, self._second]
        inner = forms[:, first, second]  # (P, cells, pairs)
        inner = inner * np.where(self._first == self._second, 1.0, 2.0)
        return self._spread(inner.transpose(1, 0, 2), self._pairs())

    def sums(self, weights: np.ndarray) -> np.ndarray:
        """sum_i weights_i b_i, for F weights `(F, n)`: `(F, M)`."""
        inner = self._collect(weights, self._values)
        total = np.zeros((len(weights), self.basis.size))
        for column in range(self.width):
            total[:, self._functions[:, column]] += inner[:, :, column].T
        return total

    def gram(self, weights: np.ndarray) -> np.ndarray:
        """sum_i weights_i b_i b_i', for P weights `(P, n)`: `(P, M, M)`."""
        inner = self._collect(weights, self._pairs())
        total = np.zeros((len(weights), self.basis.size, self.basis.size))
        for pair, (a, b) in enumerate(zip(self._first, self._second, strict=True)):
            first, second = self._functions[:, a], self._functions[:, b]
            total[:, first, second] += inner[:, :, pair].T
            if a != b:
                total[:, second, first] += inner[:, :, pair].T
        return total

    def _pairs(self) -> np.ndarray:
        """Products of the functions that are not zero, `(pairs, n)`, rows by cell."""
        return self._values[self._first] * self._values[self._second]

    def _spread(self, inner: np.ndarray, values: np.ndarray) -> np.ndarray:
        """inner of each row's cell `(cells, P, width)` times the row's values `(width, n)`: `(P, n)`."""
        grouped = np.empty((inner.shape[1], len(self)))
        for cell, (start, stop) in enumerate(zip(self._bounds, self._bounds[1:], strict=False)):
            np.matmul(inner[cell], values[:, start:stop], out=grouped[:, start:stop])
        return np.take(grouped, self._place, axis=1)

    def _collect(self, weights: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Sum over the rows of each cell of weights `(P, n)` times values `(width, n)`."""
        grouped = np.take(weights, self.order, axis=1)
        if len(values) == 1:
            sums = np.add.reduceat(grouped * values, self._bounds[:-1], axis=1)
            return sums.T[:, :, None]
        inner = np.empty((len(self._functions), len(weights), len(values)))
        for cell, (start, stop) in enumerate(zip(self._bounds, self._bounds[1:], strict=False)):
            np.matmul(grouped[:, start:stop], values[:, start:stop].T, out=inner[cell])
        return inner


def _locate_cells(basis: Basis, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cell of each row, and the values there of the functions that are not zero `(width, n)`."""
    if basis.kind == "linear":
        return np.zeros(len(places), int), places[None, :]
    if basis.kind == "re":  # a level that is not known has no function
        return np.maximum(places, 0).astype(int), (places >= 0).astype(float)[None, :]
    cells = np.clip(np.floor(places), 0, basis.intervals - 1).astype(int)
    local = (places - cells)[None, :]
    beyond = np.array(1.0) if basis.extrapolation == "linear" and not basis.period else None
    centres = spline_centres(basis.degree + 1, basis.degree)[:, None]
    return cells, evaluate_places(local, centres, basis.degree, straight_beyond=beyond)
