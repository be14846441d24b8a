"""The columns of the linear block on the rows of a chunk."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ahofm_keras.bands import transform_band
from ahofm_keras.terms import PredictorLayout, RowsOfTerms
from ahofm_keras.terms.blocks import Columns
from ahofm_keras.terms.layout import Span

if TYPE_CHECKING:
    from ahofm_keras.solvers.chunks import Chunk

# Of the columns that are no smooths `(o, o)`; of these and the basis functions of each smooth `(o, M)`;
# bands `(M, width)` of the functions of a smooth; of each pair of smooths `(M, M')`.
Arrays = tuple[np.ndarray, ...]
GramSums = tuple[np.ndarray, Arrays, Arrays, Arrays]


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
        self._smooths = [span for span in layout.spans if _has_few(span.block)]
        self._rest = [span for span in layout.spans if not _has_few(span.block)]
        self._positions = [span.block.positions[0] for span in self._smooths]
        smooth = np.zeros(self.size, bool)
        for span in self._smooths:
            smooth[span.where] = True
        self._others = np.flatnonzero(~smooth)

    def dense(self, chunk: Chunk) -> np.ndarray:
        """All columns on the rows of a chunk, `(q, n)`."""
        ones = np.ones((self.intercept, len(chunk.y)))
        return np.concatenate([ones, *(span.block.dense(chunk) for span in self.layout.spans)])

    def variances(self, chunk: Chunk, covariance: np.ndarray) -> np.ndarray:
        """Variance of the block's part of the predictor `(n,)`, where its coefficients covary."""
        found, step = np.empty(len(chunk.y)), max(1, self._dense_numbers // max(self.size, 1))
        for start in range(0, len(found), step):
            part = slice(start, start + step)
            rows = self._some_rows(chunk, part, self.layout.spans)
            ones = np.ones((self.intercept, rows.columns.shape[1]))
            dense = np.concatenate([ones, *(span.block.dense(rows) for span in self.layout.spans)])
            found[part] = np.einsum("qn,qn->n", dense, covariance @ dense)
        return found

    @staticmethod
    def _some_rows(chunk: Chunk, part: slice, spans: Sequence[Span]) -> RowsOfTerms:
        """Some rows of a chunk, as far as the columns of some terms need them."""
        if part.stop - part.start >= len(chunk.y):
            return chunk
        used = {position for span in spans for position in span.block.positions}
        bases = {position: chunk.bases[position].take(part) for position in used}
        return _SomeRows(bases, chunk.columns[:, part])

    def _dense_others(self, chunk: Chunk, part: slice) -> np.ndarray:
        """Intercept, design columns, tensor products and functions of distances on some rows."""
        rows = self._some_rows(chunk, part, self._rest)
        ones = np.ones((self.intercept, rows.columns.shape[1]))
        return np.concatenate([ones, *(span.block.dense(rows) for span in self._rest)])

    def gram(self, chunk: Chunk, weight: np.ndarray) -> GramSums:
        """Sums of sum_i w_i x_i x_i', with basis functions in the place of the columns of smooths.

        A row has few basis functions that are not zero, so a pair of smooths costs n 16 instead of
        n k^2. Only some rows at a time have all the other columns.
        """
        others = np.zeros((len(self._others), len(self._others)))
        bases = [chunk.bases[position] for position in self._positions]
        beside = [np.zeros((len(self._others), basis.basis.size)) for basis in bases]
        step = max(1, self._dense_numbers // max(len(self._others), 1))
        for start in range(0, len(weight), step) if len(self._others) else ():
            part = slice(start, start + step)
            dense = self._dense_others(chunk, part)
            weighted = dense * weight[part]
            others += weighted @ dense.T
            for total, basis in zip(beside, bases, strict=True):
                total += (basis if step >= len(weight) else basis.take(part)).sums(weighted)
        own = [basis.gram(weight[None])[0] for basis in bases]
        pairs = [one.cross(other, weight) for one, other in combinations(bases, 2)]
        return others, tuple(beside), tuple(own), tuple(pairs)

    def to_coordinates(self, sums: GramSums) -> np.ndarray:
        """The Gram matrix of all columns `(q, q)`, from its sums over rows."""
        others, beside, own, pairs = sums
        total = np.empty((self.size, self.size))
        total[np.ix_(self._others, self._others)] = others
        transforms = [np.asarray(span.block.transform) for span in self._smooths]
        for span, transform, cross, band in zip(self._smooths, transforms, beside, own, strict=True):
            total[span.where, span.where] = transform_band(band, transform)
            total[self._others, span.where] = cross @ transform
            total[span.where, self._others] = total[self._others, span.where].T
        for (i, j), cross in zip(combinations(range(len(transforms)), 2), pairs, strict=True):
            rows, columns = self._smooths[i].where, self._smooths[j].where
            total[rows, columns] = transforms[i].T @ cross @ transforms[j]
            total[columns, rows] = total[rows, columns].T
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


def _has_few(block: Columns) -> bool:
    """Whether columns are functions of one feature, of which few are not zero at a row."""
    return block.transform is not None and not block.features[0].basis.is_dense


class _SomeRows(NamedTuple):
    """Some rows of a chunk."""

    bases: dict[int, Any]
    columns: np.ndarray
