"""Sums by cell against products with the dense basis."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ahofm_keras.bands import read_band, transform_band
from ahofm_keras.bases import (
    ATOM_PLACE,
    Basis,
    evaluate_basis,
    locate,
    locate_levels,
    make_levels,
    make_linear,
    make_spline,
)
from ahofm_keras.solvers.gram import CellBasis
from ahofm_keras.solvers.kernels import get_kernels
from tests.reference import basis_functions

pytestmark = pytest.mark.usefixtures("kernels")


def read_basis(basis: Basis, places: np.ndarray) -> CellBasis:
    return get_kernels().read_basis(basis, np.asarray(places, float))


def spline(degree: int, intervals: int, extrapolation: str = "clip") -> Basis:
    """B-splines on an axis where a raw value is its own place."""
    ends = np.array([0.0, intervals])
    return make_spline(
        ends, intervals + degree, degree=degree, knots="even", extrapolation=extrapolation
    )


def circle(degree: int, size: int, extrapolation: str = "clip") -> Basis:
    ends = np.array([0.0, size])
    return make_spline(ends, size, degree=degree, knots="even", cyclic=True, extrapolation=extrapolation)


BASES = {
    **{
        f"ps{degree} {intervals} {extrapolation}": spline(degree, intervals, extrapolation)
        for degree in (1, 2, 3)
        for intervals in (1, 7)
        for extrapolation in ("clip", "linear")
    },
    **{
        f"cp{degree} {size}": circle(degree, size)
        for degree, size in [(1, 4), (2, 5), (3, 4), (3, 5), (3, 11)]
    },
    "ps3 7 atoms": replace(spline(3, 7), size=13, atoms=(0.0, 2.5, 7.0)),
    "ps1 7 atoms linear": replace(spline(1, 7, "linear"), size=9, atoms=(3.0,)),
    "cp3 6 linear": circle(3, 6, "linear"),
    "re 1": make_levels((0.0,)),
    "re 6": make_levels(tuple(float(level) for level in range(6))),
    "linear": make_linear(np.array([-1.0, 1.0])),
}
LAYOUTS = ["scattered", "ends", "gaps", "ties", "knots", "first row", "last row", "beyond row"]
COUNTS = [1, 2, 5]

every_basis = pytest.mark.parametrize("name", BASES)
every_layout = pytest.mark.parametrize("layout", LAYOUTS)


def lay_out(basis: Basis, layout: str) -> np.ndarray:
    """Places of rows, in no order."""
    rng = np.random.default_rng([LAYOUTS.index(layout), basis.size, basis.degree])
    high = float(
        basis.size - 1 if basis.kind == "re" else 3 if basis.kind == "linear" else basis.intervals
    )
    beyond = np.array([-4.25, -0.5, -1e-9, high + 1e-9, high + 0.75, high + 3.0])
    if basis.kind == "re":
        beyond = np.array([-1.0, -1.0])
    elif basis.kind == "linear":
        beyond = -beyond
    elif basis.period or basis.extrapolation != "linear":
        beyond = np.array([0.0, high])  # `locate` leaves no others
    if basis.atoms:
        beyond = np.append(beyond, ATOM_PLACE * np.arange(1.0, len(basis.atoms) + 1))
    inside = rng.uniform(0, high, 40)
    places = {
        "scattered": np.concatenate([inside, beyond, [0.0, high]]),
        "ends": np.array([high, 0.0, 0.0, high, high, *beyond]),
        "gaps": high - 0.2 * rng.uniform(0, 1, 7) if basis.is_spline else np.array([high, high]),
        "ties": np.repeat(inside[:3], [5, 1, 4]),
        "knots": np.tile(np.arange(high + 1), 2),
        "first row": np.zeros(1),
        "last row": np.array([high]),
        "beyond row": beyond[:1],
    }[layout]
    return rng.permutation(np.round(places) if basis.kind == "re" else places)


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).normal(size=shape)


def symmetric(count: int, size: int) -> np.ndarray:
    forms = draw(count, size, size)
    return forms + forms.swapaxes(1, 2)


def draw_places(basis: Basis, rows: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).choice(lay_out(basis, "scattered"), rows)


def dense_gram(found: CellBasis, weights: np.ndarray) -> np.ndarray:
    return transform_band(found.gram(weights), np.eye(found.basis.size))


def assert_equal(found: np.ndarray, wanted: np.ndarray) -> None:
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


def assert_all_equal(found: CellBasis, B: np.ndarray) -> None:
    """All that a basis on rows computes is what the dense `(n, M)` gives."""
    rows, size = B.shape
    assert len(found) == rows
    coefficients, forms, weights = draw(3, size), symmetric(2, size), draw(4, rows)
    assert_equal(found.evaluate(coefficients), coefficients @ B.T)
    assert_equal(found.quadratic(read_band(forms, found.width)), np.einsum("na,pab,nb->pn", B, forms, B))
    assert_equal(found.sums(weights), weights @ B)
    assert_equal(dense_gram(found, weights), np.einsum("pn,na,nb->pab", weights, B, B))


# One operation at a time


@every_layout
@every_basis
def test_functions_are_the_dense_products(name: str, layout: str) -> None:
    basis, places = BASES[name], lay_out(BASES[name], layout)
    found, B = read_basis(basis, places), basis_functions(basis, places)
    for count in COUNTS:
        coefficients = draw(count, basis.size)
        assert_equal(found.evaluate(coefficients), coefficients @ B.T)


@every_layout
@every_basis
def test_quadratic_forms_are_the_dense_products(name: str, layout: str) -> None:
    basis, places = BASES[name], lay_out(BASES[name], layout)
    found, B = read_basis(basis, places), basis_functions(basis, places)
    for count in COUNTS:
        forms = symmetric(count, basis.size)
        assert_equal(
            found.quadratic(read_band(forms, basis.width)), np.einsum("na,pab,nb->pn", B, forms, B)
        )


@every_layout
@every_basis
def test_sums_are_the_dense_products(name: str, layout: str) -> None:
    basis, places = BASES[name], lay_out(BASES[name], layout)
    found, B = read_basis(basis, places), basis_functions(basis, places)
    for count in COUNTS:
        weights = draw(count, len(places))
        assert_equal(found.sums(weights), weights @ B)


@every_layout
@every_basis
def test_gram_matrices_are_the_dense_products(name: str, layout: str) -> None:
    basis, places = BASES[name], lay_out(BASES[name], layout)
    found, B = read_basis(basis, places), basis_functions(basis, places)
    for count in COUNTS:
        weights = draw(count, len(places))
        assert_equal(dense_gram(found, weights), np.einsum("pn,na,nb->pab", weights, B, B))


@pytest.mark.parametrize("other", ["ps3 7 clip", "cp3 5", "re 6", "linear"])
@every_basis
def test_products_of_two_bases_are_the_dense_ones(name: str, other: str) -> None:
    rows = 50
    places = [draw_places(BASES[own], rows, seed) for seed, own in enumerate((name, other))]
    one, two = (read_basis(BASES[own], at) for own, at in zip((name, other), places, strict=True))
    weights = draw(rows)
    B, C = (basis_functions(BASES[own], at) for own, at in zip((name, other), places, strict=True))
    assert_equal(one.cross(two, weights), (B.T * weights) @ C)


# Rows


@pytest.mark.parametrize("chunk_rows", [1, 7, 30])
@every_basis
def test_sums_of_chunks_add_up(name: str, chunk_rows: int) -> None:
    basis, places = BASES[name], lay_out(BASES[name], "scattered")
    weights = draw(3, len(places))
    parts = [slice(start, start + chunk_rows) for start in range(0, len(places), chunk_rows)]
    assert len(parts) > 1
    chunks = [read_basis(basis, places[part]) for part in parts]
    whole = read_basis(basis, places)
    for total in ("sums", "gram"):
        added = sum(
            getattr(chunk, total)(weights[:, part]) for chunk, part in zip(chunks, parts, strict=True)
        )
        assert_equal(added, getattr(whole, total)(weights))


@pytest.mark.parametrize("rows", [[0], [5, 3, 3, 20, 0], list(range(9, 30)), list(range(40))[::-1]])
@every_basis
def test_taken_rows_are_a_basis_of_their_own(name: str, rows: list[int]) -> None:
    basis, places = BASES[name], lay_out(BASES[name], "scattered")
    taken = read_basis(basis, places).take(np.array(rows))
    assert_all_equal(taken, basis_functions(basis, places)[rows])


@every_basis
def test_no_rows_sum_to_nothing(name: str) -> None:
    basis, places = BASES[name], lay_out(BASES[name], "scattered")
    taken = read_basis(basis, places).take(np.zeros(0, int))
    assert_all_equal(taken, np.zeros((0, basis.size)))


@every_basis
def test_arguments_are_left_as_they_are(name: str) -> None:
    basis, places = BASES[name], lay_out(BASES[name], "scattered")
    before, weights, forms = places.copy(), draw(3, len(places)), draw(3, basis.size, basis.width)
    found = read_basis(basis, places)
    found.evaluate(forms[:, :, 0])
    found.quadratic(forms)
    found.sums(weights)
    found.gram(weights)
    np.testing.assert_array_equal(places, before)
    np.testing.assert_array_equal(weights, draw(3, len(places)))
    np.testing.assert_array_equal(forms, draw(3, basis.size, basis.width))


# Raw values


@pytest.mark.parametrize("knots", ["adaptive", "quantile", "even"])
@pytest.mark.parametrize("extrapolation", ["clip", "linear"])
@pytest.mark.parametrize("cyclic", [False, True], ids=["line", "circle"])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_raw_values_beyond_the_axis_are_those_of_the_basis(
    degree: int, cyclic: bool, extrapolation: str, knots: str
) -> None:
    x = np.exp(draw(60))
    basis = make_spline(x, 8, degree=degree, knots=knots, cyclic=cyclic, extrapolation=extrapolation)
    x = np.concatenate([x, [x.min(), x.max(), x.min() - 2.5, x.max() + 2.5, x.max() + 40]])
    assert_all_equal(read_basis(basis, locate(basis, x)), evaluate_basis(basis, x))


def test_levels_that_are_texts_may_be_unknown() -> None:
    x = np.array(["b", "zebra", "d", "a", "b", "aa", "b"], dtype=object)
    basis = make_levels(("a", "b", "c", "d"))
    found = read_basis(basis, locate_levels(basis.levels, x))
    assert_all_equal(found, evaluate_basis(basis, x))
    np.testing.assert_array_equal(found.sums(np.ones((1, 7))), [[1, 3, 0, 1]])


def test_unknown_levels_alone_have_no_function() -> None:
    found = read_basis(make_levels(("a", "b")), np.array([-1, -1, -1]))
    assert_all_equal(found, np.zeros((3, 2)))


def test_a_linear_basis_is_the_standardised_column() -> None:
    x = 5 + 3 * draw(20)
    basis = make_linear(x)
    assert_all_equal(read_basis(basis, locate(basis, x)), evaluate_basis(basis, x))


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_functions_go_on_straight_far_beyond_the_ends(degree: int) -> None:
    basis = spline(degree, 6, "linear")
    coefficients = draw(3, basis.size)
    at = np.array([0.0, -1.0, -1e6, 6.0, 7.0, 6 + 1e6])
    found = read_basis(basis, at).evaluate(coefficients)
    np.testing.assert_allclose(found[:, 2] - found[:, 0], 1e6 * (found[:, 1] - found[:, 0]), rtol=1e-8)
    np.testing.assert_allclose(found[:, 5] - found[:, 3], 1e6 * (found[:, 4] - found[:, 3]), rtol=1e-8)
    assert np.abs(found[:, 1] - found[:, 0]).min() > 1e-3
    assert_all_equal(read_basis(basis, at), basis_functions(basis, at))
