"""Sums over rows by cell are those of the dense basis."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ahofm_keras.bases import Basis, evaluate_basis, make_levels, make_linear, make_spline
from ahofm_keras.cells import Cells, basis_cells, column_cells, join_cells

RNG = np.random.default_rng(0)
X = RNG.gamma(2.0, size=500)
WIDE = np.concatenate([X, [-3.0, X.min(), X.max(), 40.0]])  # beyond both ends, and exactly on them
TEXTS = RNG.choice(np.array(["a", "b", "c"], object), 500)

CASES = {
    "cubic": (make_spline(X, 12), WIDE),
    "one interval": (make_spline(X, 4), WIDE),
    "parabolas": (make_spline(X, 7, degree=2), WIDE),
    "straight pieces": (make_spline(X, 5, degree=1), WIDE),
    "one straight line": (make_spline(X, 2, degree=1), WIDE),
    "even knots": (make_spline(X, 9, knots="even"), WIDE),
    "straight beyond": (make_spline(X, 12, extrapolation="linear"), WIDE),
    "pieces straight beyond": (make_spline(X, 5, degree=1, extrapolation="linear"), WIDE),
    "one interval straight beyond": (make_spline(X, 4, extrapolation="linear"), WIDE),
    "atoms": (make_spline(X, 12, atoms=(-3.0, X[7], X.max())), WIDE),
    "atoms straight beyond": (make_spline(X, 9, extrapolation="linear", atoms=(40.0,)), WIDE),
    "cyclic": (make_spline(X, 10, cyclic=True), WIDE),
    "smallest circle": (make_spline(X, 4, cyclic=True), WIDE),
    "circle straight beyond": (make_spline(X, 6, cyclic=True, extrapolation="linear"), WIDE),
    "texts": (make_levels(("a", "b", "c")), TEXTS),
    "unseen texts": (make_levels(("a", "c")), TEXTS),
    "numbers as levels": (make_levels((1.0, 2.0, 5.0)), RNG.integers(0, 6, 500).astype(float)),
    "booleans": (make_levels((False, True)), X > 1),
    "linear": (make_linear(X), WIDE),
}


def assert_same(got: np.ndarray, dense: np.ndarray) -> None:
    np.testing.assert_allclose(got, dense, rtol=1e-10, atol=1e-12 * np.abs(dense).max())


def check(cells: Cells, dense: np.ndarray) -> None:
    weights = RNG.uniform(size=len(dense))
    assert_same(cells.sums(weights), weights @ dense)
    assert_same(cells.gram(weights), (dense.T * weights) @ dense)


@pytest.mark.parametrize(("basis", "x"), CASES.values(), ids=CASES)
def test_sums_are_those_of_the_dense_basis(basis: Basis, x: np.ndarray) -> None:
    check(basis_cells(basis, x), evaluate_basis(basis, x))


def test_several_bases_and_columns_on_the_same_rows() -> None:
    bases = [make_spline(X, 12), make_spline(X, 5, degree=1), make_spline(X, 7, cyclic=True)]
    columns = np.stack([X, X**2])
    cells = join_cells([*(basis_cells(basis, X) for basis in bases), column_cells(columns)])
    check(cells, np.concatenate([*(evaluate_basis(basis, X) for basis in bases), columns.T], axis=1))


@pytest.mark.parametrize("knots", ["even", "quantile", "adaptive", (-1.0, 30.0)])
@pytest.mark.parametrize("cyclic", [False, True])
def test_distinct_values_and_counts_teach_what_rows_teach(knots: str, cyclic: bool) -> None:
    x = np.round(X, 1)
    values, counts = np.unique(x, return_counts=True)
    rows = make_spline(x, 8, knots=knots, cyclic=cyclic)
    assert make_spline(values, 8, counts=counts, knots=knots, cyclic=cyclic) == rows


def test_the_linear_basis_from_counts() -> None:
    x = np.round(X, 1)
    values, counts = np.unique(x, return_counts=True)
    basis = make_linear(values, counts)
    np.testing.assert_allclose(basis.axis, [np.mean(x), np.std(x)], rtol=1e-12)
    assert replace(basis, axis=()) == replace(make_linear(x), axis=())
