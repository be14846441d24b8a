"""The columns of the linear block on the rows of a chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ahofm_keras.terms import PredictorLayout, RowsOfTerms

if TYPE_CHECKING:
    from ahofm_keras.solvers.chunks import Chunk


class LinearColumns:
    """Intercept, linear terms, smooths and tensor products, as the layout says.

    Args:
        layout: of the predictor.
        dense_numbers: see `Settings`.
    """

    def __init__(self, layout: PredictorLayout, dense_numbers: int) -> None:
        self.layout = layout
        self.size = layout.size
        self.intercept = int(layout.intercept)
        self._dense_numbers = dense_numbers

    def dense(self, chunk: Chunk, part: slice | None = None) -> np.ndarray:
        """All columns on the rows of a chunk, or on some of them, `(q, n)`."""
        rows: RowsOfTerms = chunk
        if part is not None:
            used = {position for span in self.layout.spans for position in span.block.positions}
            bases = {position: chunk.bases[position].take(part) for position in used}
            rows = _SomeRows(bases, chunk.columns[:, part])
        ones = np.ones((self.intercept, rows.columns.shape[1]))
        return np.concatenate([ones, *(span.block.dense(rows) for span in self.layout.spans)])

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
        intercept = np.full(self.intercept, weights.sum())
        parts = (span.block.sums(chunk, weights) for span in self.layout.spans)
        return np.concatenate([intercept, *parts])

    def evaluate(self, chunk: Chunk, mean: np.ndarray) -> np.ndarray:
        """The block's part of the predictor."""
        fit = np.full(len(chunk.y), mean[: self.intercept].sum())
        for span in self.layout.spans:
            fit += span.block.evaluate(chunk, mean[span.where])
        return fit


class _SomeRows(NamedTuple):
    """Some rows of a chunk."""

    bases: dict[int, Any]
    columns: np.ndarray
