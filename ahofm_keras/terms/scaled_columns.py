"""Columns of a term that is multiplied with a number, or with the levels of a category."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from ahofm_keras.bases import evaluate_basis
from ahofm_keras.tensors import with_constant
from ahofm_keras.terms.blocks import Columns, RowsOfTerms, UserCoefficients
from ahofm_keras.terms.by_features import unit_of
from ahofm_keras.terms.features import Feature
from ahofm_keras.transforms import evaluate_expression


class ScaledColumns(Columns):
    """All products of the columns of another term, and of a constant where there is one, with others.

    Coefficients are `(R, K)`: R columns of the term, the constant first, K functions of the by-variable:
    a number, one level, or all levels, which then share their smoothing.

    Args:
        inner: columns of the term.
        position: of the by-variable in the design.
        by: the by-variable.
        constant: whether the constant is among the columns.
        ridge: of levels that are random effects, what a unit of lambda adds to the precision of the
            constant, and of what the penalty of the term leaves free; None where nothing is added.
        smoothing: lambda of each penalty.
        df: degrees of freedom of the term at its own lambda.
        fixed: whether the user gave the lambdas.
    """

    remedy = "Choose a smaller k or merge levels"
    inner: Columns

    def __init__(
        self,
        inner: Columns,
        position: int,
        by: Feature,
        constant: bool,
        ridge: float | None,
        smoothing: tuple[float, ...],
        df: tuple[float, ...],
        fixed: bool,
    ) -> None:
        self.inner, self.by, self.position = inner, by, position
        self.constant, self.ridge = constant, ridge
        self.smoothing, self.df, self.fixed = smoothing, df, fixed
        self.features, self.positions = inner.features, (*inner.positions, position)
        self.width = len(by.eigenvalues)
        self.rank = inner.size + constant
        self.size = self.rank * self.width
        self.atoms, self.pure = inner.atoms, inner.pure

    @property
    def order(self) -> int:
        return self.inner.order + 1

    @property
    def unit(self) -> float:
        """What a coefficient of 1 multiplies the user's own number, or indicator, with."""
        return unit_of(self.by.basis, self.by.transform)

    @cached_property
    def _penalties(self) -> np.ndarray:
        """Of the columns of the term and the constant, `(d, R)`, in the user's own units."""
        own = np.pad(self.inner.penalties, ((0, 0), (int(self.constant), 0)))
        if self.ridge is None:
            return own
        free = np.flatnonzero(~own.any(axis=0))
        return np.concatenate([own, self.ridge * np.eye(self.rank)[free]])

    @cached_property
    def penalties(self) -> np.ndarray:  # type: ignore[override]
        return np.repeat(self.unit**2 * self._penalties, self.width, axis=1)

    @property
    def is_shrunk(self) -> np.ndarray:
        """tau does not reach constants, which are linear effects, unless they are random effects."""
        own = self.inner.is_shrunk
        if self.constant:
            own = np.append(self.ridge is not None, own)
        return np.repeat(own, self.width)

    @property
    def is_random_effect(self) -> bool:
        return self.ridge is not None

    # Rows ----------------------------------------------------------------------------------------

    def multipliers(self, rows: RowsOfTerms) -> np.ndarray:
        """Functions of the by-variable at the rows, `(K, n)`."""
        return rows.bases[self.position].evaluate(self.by.transform.T)

    def _functions(self, rows: RowsOfTerms) -> np.ndarray:
        """Columns of the term, and the constant, at the rows, `(R, n)`."""
        own = self.inner.dense(rows)
        return with_constant(own) if self.constant else own

    def dense(self, rows: RowsOfTerms) -> np.ndarray:
        functions, by = self._functions(rows), self.multipliers(rows)
        return (functions[:, None] * by).reshape(self.size, -1)

    def sums(self, rows: RowsOfTerms, weights: np.ndarray) -> np.ndarray:
        by = self.multipliers(rows) * weights
        if self.width > 1:
            return np.asarray(self._functions(rows) @ by.T).reshape(-1)
        own = self.inner.sums(rows, by[0])
        return np.append(by.sum(), own) if self.constant else own

    def evaluate(self, rows: RowsOfTerms, coefficients: np.ndarray) -> np.ndarray:
        by, table = self.multipliers(rows), coefficients.reshape(self.rank, self.width)
        if self.width > 1:
            return np.einsum("rn,rn->n", self._functions(rows), table @ by)
        constant = table[0, 0] if self.constant else 0.0
        own = self.inner.evaluate(rows, table[int(self.constant) :, 0])
        return np.asarray((own + constant) * by[0])

    # Readers -------------------------------------------------------------------------------------

    def user(self, label: str) -> UserCoefficients:
        """Of each level, or of the number, the constant and the coefficients of the term."""
        own, linear = self.inner.user(label), self.by.basis.kind == "linear"
        transform, labels = own.transform, own.labels
        if self.constant:
            transform = np.pad(transform, ((1, 0), (1, 0)))
            transform[0, 0] = 1.0
            labels = [f"{label}.constant", *labels]
        by = np.eye(1) / self.by.basis.axis[1] if linear else self.by.transform
        levels = [""] if linear else [f"[{level}]" for level in self.by.basis.levels]
        used = by.any(axis=1)
        # A term of one level has that in its label.
        names = [levels[place] if self.width > 1 else "" for place in np.flatnonzero(used)]
        return UserCoefficients(
            [f"{label}{name}{own[len(label) :]}" for own in labels for name in names],
            np.kron(transform, by[used]),
            np.zeros(self.size),
        )

    def on_columns(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        own = self.inner.on_columns(columns)
        if self.constant:
            own = np.column_stack([np.ones(len(own)), own])
        values = np.asarray(evaluate_expression(self.by.expression, columns))
        by = evaluate_basis(self.by.basis, values) @ self.by.transform
        return (own[:, :, None] * by[:, None]).reshape(len(own), -1)

    def edf_along(self, margin: int, edf: np.ndarray) -> float:
        """At the level where it has most."""
        table = edf.reshape(self.rank, self.width)[int(self.constant) :]
        return max(self.inner.edf_along(margin, own) for own in table.T)

    def describe(self, places: Mapping[int, tuple[int, int]]) -> dict[str, Any]:
        return {
            **super().describe(places),
            "inner": self.inner.describe(places),
            "features": [list(places[self.position])],
            "transforms": [self.by.transform],
            "constant": self.constant,
            "new_level": (self.unit**2 * self._penalties).tolist() if self.ridge is not None else None,
        }
