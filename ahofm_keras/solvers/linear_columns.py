"""The columns of the linear block on the rows of a chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ahofm_keras.solvers.products import Bases, Products
from ahofm_keras.terms import Design, LinearTerm

if TYPE_CHECKING:
    from ahofm_keras.solvers.chunks import Chunk


class LinearColumns:
    """Intercept, linear terms, all smooths and tensor products, in this order.

    Args:
        design: of the model.
        dense_numbers: see `Settings`.

    Attributes:
        flat: number of columns before those of the smooths and tensor products.
        slices: where the columns of each of these stand.
    """

    def __init__(self, design: Design, dense_numbers: int) -> None:
        self.intercept = int(design.intercept)
        self.terms = [Products(term, design) for term in design.penalised()]
        self.flat = self.intercept + sum(len(term.columns) for term in design.of_kind(LinearTerm))
        ends = self.flat + np.cumsum([own.penalties.shape[1] for own in self.terms])
        begins = [self.flat, *ends]
        self.slices = [slice(int(a), int(b)) for a, b in zip(begins, ends, strict=False)]
        self.size = int(begins[-1])
        self._dense_numbers = dense_numbers

    def dense(self, chunk: Chunk, part: slice | None = None) -> np.ndarray:
        """All columns on the rows of a chunk, or on some of them, `(q, n)`."""
        bases: Bases = chunk.bases
        if part is not None:
            used = {place for own in self.terms for place in own.term.places}
            bases = {place: chunk.bases[place].take(part) for place in used}
        columns = chunk.columns[:, part or slice(None)]
        parts = [np.ones((self.intercept, columns.shape[1])), columns]
        return np.concatenate([*parts, *(own.dense(bases) for own in self.terms)])

    def gram(self, chunk: Chunk, weight: np.ndarray) -> np.ndarray:
        """sum_i w_i x_i x_i', `(q, q)`; only some rows at a time have all their columns."""
        rows = len(weight)
        step = max(1, self._dense_numbers // max(self.size, 1))
        parts = [slice(at, at + step) for at in range(0, rows, step)] if rows > step else [None]
        total = np.zeros((self.size, self.size))
        for part in parts:
            dense = self.dense(chunk, part)
            dense *= np.sqrt(weight[part or slice(None)])
            total += dense @ dense.T
        return total

    def sums(self, chunk: Chunk, weights: np.ndarray) -> np.ndarray:
        """sum_i weights_i x_i, `(q,)`."""
        parts = [np.full(self.intercept, weights.sum()), chunk.columns @ weights]
        return np.concatenate([*parts, *(own.sums(chunk.bases, weights) for own in self.terms)])

    def evaluate(self, chunk: Chunk, mean: np.ndarray) -> np.ndarray:
        """The block's part of the predictor."""
        fit = np.full(len(chunk.y), mean[: self.intercept].sum())
        fit += mean[self.intercept : self.flat] @ chunk.columns
        for own, place in zip(self.terms, self.slices, strict=True):
            fit += own.evaluate(chunk.bases, mean[place])
        return fit
