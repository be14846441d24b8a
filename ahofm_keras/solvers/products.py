"""The functions of a smooth or a tensor product on the rows of a chunk.

A term's functions are products of its margins' (see `tensors`). Only the Gram matrix of the linear block
needs them all at once; what they sum to is computed margin by margin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ahofm_keras.solvers.gram import CellBasis
from ahofm_keras.tensors import (
    flatten_coordinates,
    margin_penalties,
    row_products,
    shape_coordinates,
    with_constant,
)
from ahofm_keras.terms import Design, PenalisedTerm

# Of the features of a design, by position; those that a term uses at least.
Bases = Sequence[CellBasis] | Mapping[int, CellBasis]


class Products:
    """A smooth, which has one margin, or a tensor product.

    Args:
        term: of the design.
        design: with the features of its margins.

    Attributes:
        penalties: `(d, q)`, what a unit of each margin's lambda adds to the precisions.
        scales: number of scales that a tensor product pays for, one per margin; a smooth pays for none.
    """

    def __init__(self, term: PenalisedTerm, design: Design) -> None:
        self.term = term
        self.features = [design.features[place] for place in term.places]
        eigenvalues = [feature.eigenvalues for feature in self.features]
        self.penalties = margin_penalties(eigenvalues, term.pure)
        # A product of functions of d features costs what a factor of an `ahofm()` that has d would.
        self.scales = len(self.features) if len(self.features) > 1 and not term.fixed else 0
        self._widths = [len(values) for values in eigenvalues]

    def shaped(self, coefficients: np.ndarray) -> np.ndarray:
        """Coefficients `(q,)` as the term's layer holds them."""
        return shape_coordinates(coefficients, self._widths, self.term.pure)

    def dense(self, bases: Bases) -> np.ndarray:
        """All functions at the rows, `(q, n)`."""
        margins = [self._functions(bases, margin) for margin in range(len(self.features))]
        return row_products(margins, self.term.pure)

    def sums(self, bases: Bases, weights: np.ndarray) -> np.ndarray:
        """sum_i weights_i u_i, `(q,)`: the last margin's functions are summed cell by cell."""
        own, total = self.term, weights[None]
        for margin in range(len(self.features) - 1):
            functions = self._with_constant(self._functions(bases, margin))
            total = (total[:, None] * functions).reshape(-1, len(weights))
        feature = self.features[-1]
        sums = bases[own.places[-1]].sums(total) @ feature.transform
        if not own.pure:
            sums = np.concatenate([total.sum(axis=1, keepdims=True), sums], axis=1)
        return flatten_coordinates(sums, own.pure)

    def evaluate(self, bases: Bases, coefficients: np.ndarray) -> np.ndarray:
        """The term of given coefficients `(q,)` at the rows, `(n,)`."""
        own, inner = self.term, self.shaped(coefficients)
        inner = inner.reshape(-1, inner.shape[-1])
        constants, inner = (0.0, inner) if own.pure else (inner[:, :1], inner[:, 1:])
        feature = self.features[-1]
        total = bases[own.places[-1]].evaluate(inner @ feature.transform.T) + constants
        for margin in reversed(range(len(self.features) - 1)):
            functions = self._with_constant(self._functions(bases, margin))
            parts = total.reshape(-1, *functions.shape)
            total = np.einsum("akn,kn->an", parts, functions)
        return total[0]

    def _functions(self, bases: Bases, margin: int) -> np.ndarray:
        """Functions of one margin at the rows, `(r, n)`."""
        return bases[self.term.places[margin]].evaluate(self.features[margin].transform.T)

    def _with_constant(self, functions: np.ndarray) -> np.ndarray:
        return functions if self.term.pure else with_constant(functions)
