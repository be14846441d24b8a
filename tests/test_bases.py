"""Bases against SciPy; the lookup of places, levels, centring, JSON."""

from __future__ import annotations

import json
from typing import Any

import keras
import numpy as np
import pytest
from scipy.interpolate import BSpline, make_interp_spline

from ahofm_keras.bases import (
    Basis,
    cardinal_slopes,
    center_basis,
    evaluate_at,
    evaluate_basis,
    evaluate_cells,
    locate,
    make_levels,
    make_linear,
    make_spline,
    spline_centres,
)
from tests.reference import integer_splines
from tests.samples import SAMPLES, skewed, time_stamps

DEGREES_AND_SIZES = [(degree, size) for degree in (1, 2, 3) for size in range(degree + 1, 41)]
LOW, HIGH = -2.5, 7.25


def functions_at(
    place: np.ndarray,
    size: int,
    degree: int,
    namespace: Any = np,
    dtype: str = "float64",
    straight: bool = False,
) -> np.ndarray:
    """Functions of a basis at places `(n,)` of its axis, `(n, size)`."""
    given = place[None].astype(dtype)
    if namespace is not np:
        given = keras.ops.convert_to_tensor(given)
    cell, values = evaluate_cells(given, size - degree - 1, degree, straight, namespace)
    for found in (cell, values):
        assert keras.backend.standardize_dtype(found.dtype) == dtype
    dense = np.zeros((len(place), size), dtype)
    for row, (first, own) in enumerate(zip(np.asarray(cell)[0], np.asarray(values).T, strict=True)):
        dense[row, int(first) : int(first) + degree + 1] = own
    return dense


def even_splines(x: np.ndarray, low: float, high: float, size: int, degree: int) -> np.ndarray:
    """SciPy's B-splines on knots evenly spaced over [low, high] and beyond."""
    step = (high - low) / (size - degree)
    knots = low + step * np.arange(-degree, size + 1)
    knots[degree], knots[size] = low, high
    return BSpline.design_matrix(x, knots, degree).toarray()


# Splines on a line


@pytest.mark.parametrize(("degree", "size"), DEGREES_AND_SIZES)
def test_even_splines_are_scipys(degree: int, size: int) -> None:
    basis = make_spline(np.array([LOW, HIGH]), size, degree=degree, knots="even")
    x = np.concatenate([[LOW, HIGH], np.linspace(LOW, HIGH, 10 * size + 3)])
    found = evaluate_basis(basis, x)
    np.testing.assert_allclose(found, even_splines(x, LOW, HIGH, size, degree), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("knots", ["adaptive", "quantile"])
@pytest.mark.parametrize(("degree", "size"), [(1, 2), (2, 3), (3, 4), (3, 20), (3, 40)])
@pytest.mark.parametrize("sample", SAMPLES)
def test_warped_splines_are_scipys_on_the_warped_axis(
    sample: str, degree: int, size: int, knots: str
) -> None:
    x = SAMPLES[sample]
    basis = make_spline(x, size, degree=degree, knots=knots)
    at = np.concatenate([[x.min(), x.max()], np.linspace(x.min(), x.max(), 101)])
    place = np.interp(at, basis.axis, basis.warped) * (size - degree)
    found = evaluate_basis(basis, at)
    np.testing.assert_allclose(found, integer_splines(place, size, degree), rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("degree", "size"), DEGREES_AND_SIZES)
def test_single_precision_keeps_its_digits(degree: int, size: int) -> None:
    place = np.linspace(0, size - degree, 200)
    found = functions_at(place, size, degree, keras.ops, "float32")
    wanted = integer_splines(place, size, degree)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=size * 5e-7)


@pytest.mark.parametrize(("degree", "size"), [(2, 3), (2, 9), (3, 4), (3, 20)])
def test_slopes_are_scipys(degree: int, size: int) -> None:
    place = np.linspace(0, size - degree, 57)
    knots = np.arange(-degree, size + 1, dtype=float)
    wanted = BSpline(knots, np.eye(size), degree).derivative()(place)
    found = cardinal_slopes(place[:, None], spline_centres(size, degree), degree)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


# Splines on a circle


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("size", [4, 5, 12, 40])
def test_cyclic_splines_are_plain_ones_with_joined_ends(size: int, degree: int) -> None:
    basis = make_spline(np.array([0.0, size]), size, degree=degree, knots="even", cyclic=True)
    x = np.linspace(0, size, 211)
    open_ended = integer_splines(x, size + degree, degree)
    joined = open_ended[:, :size].copy()
    joined[:, :degree] += open_ended[:, size:]
    found = evaluate_basis(basis, x)
    np.testing.assert_allclose(found, joined, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [4, 5, 12, 40])
def test_cyclic_cubics_are_scipys_periodic_interpolants(size: int) -> None:
    basis = make_spline(np.array([0.0, size]), size, knots="even", cyclic=True)
    coefficients = np.random.default_rng(size).normal(size=size)
    nodes = np.arange(size + 1, dtype=float)
    values = evaluate_basis(basis, nodes) @ coefficients
    values[-1] = values[0]
    periodic = make_interp_spline(nodes, values, k=3, bc_type="periodic")
    x = np.linspace(-size, 2 * size, 301)
    found = evaluate_basis(basis, x) @ coefficients
    np.testing.assert_allclose(found, periodic(np.mod(x, size)), rtol=0, atol=1e-9)


@pytest.mark.parametrize("knots", ["even", "adaptive", (0.0, 24.0)])
@pytest.mark.parametrize("size", [4, 9, 20])
def test_cyclic_splines_join_in_value_slope_and_curvature(size: int, knots: Any) -> None:
    hours = np.random.default_rng(0).uniform(0, 24, 400)
    basis = make_spline(hours, size, knots=knots, cyclic=True)
    coefficients = np.random.default_rng(1).normal(size=size)
    low, high = basis.axis[0], basis.axis[-1]
    period = high - low
    x = np.linspace(low, high, 50)
    once = evaluate_basis(basis, x)
    for turns in (-3, 1, 2):
        again = evaluate_basis(basis, x + turns * period)
        np.testing.assert_allclose(again, once, rtol=0, atol=1e-9)
    # On the places' own axis (the warp may bend it) the last interval goes on into the first.
    place = np.linspace(0, 0.9, 4)
    after = evaluate_at(basis, place) @ coefficients
    before = evaluate_at(basis, size - place) @ coefficients
    right, left = np.polyfit(place, after, 3), np.polyfit(-place, before, 3)
    np.testing.assert_allclose(left[1:], right[1:], rtol=0, atol=1e-9)
    assert abs(left[0] - right[0]) > 1e-3  # the third derivative may jump: it is not one cubic


def test_a_pair_gives_the_ends_of_an_even_axis() -> None:
    hours = np.random.default_rng(0).uniform(3, 20, 100)
    basis = make_spline(hours, 8, knots=(0, 24))
    assert basis.axis == (0.0, 24.0)
    assert basis.warped == (0.0, 1.0)
    x = np.linspace(0, 24, 49)
    np.testing.assert_allclose(
        evaluate_basis(basis, x), even_splines(x, 0, 24, 8, 3), rtol=0, atol=1e-12
    )


# Places


def bases_to_locate() -> dict[str, tuple[Basis, np.ndarray]]:
    cases: dict[str, tuple[Basis, np.ndarray]] = {}
    for sample, x in SAMPLES.items():
        x = x[:2000]
        reach = np.ptp(x)
        at = np.concatenate([x, np.linspace(x.min() - reach, x.max() + reach, 500)])
        for knots in ("even", "adaptive", "quantile"):
            for extrapolation in ("clip", "linear", "error"):
                basis = make_spline(x, 17, knots=knots, extrapolation=extrapolation)
                cases[f"{sample}, {knots}, {extrapolation}"] = basis, at
            cases[f"{sample}, {knots}, cyclic"] = make_spline(x, 17, knots=knots, cyclic=True), at
        cases[f"{sample}, linear"] = make_linear(x), at
    numbers = np.array([3.0, -1.0, 0.0, 2.0, 2.5, 99.0, -99.0])
    cases["number levels"] = make_levels((-1.0, 0.0, 2.0, 3.0)), numbers
    cases["boolean levels"] = make_levels((False, True)), np.array([1.0, 0.0, 1.0])
    return cases


LOCATED = bases_to_locate()


@pytest.mark.parametrize("case", LOCATED)
def test_places_are_the_same_in_numpy_and_keras(case: str) -> None:
    basis, x = LOCATED[case]
    found = locate(basis, keras.ops.convert_to_tensor(x, dtype="float64"), keras.ops)
    wanted = locate(basis, x)
    if basis.kind != "re":
        assert keras.backend.standardize_dtype(found.dtype) == "float64"
    difference = np.asarray(found) - wanted
    if basis.period:  # both ends are one point
        difference -= basis.period * np.round(difference / basis.period)
    np.testing.assert_allclose(difference, 0, rtol=0, atol=1e-12 * max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize("knots", ["even", "adaptive", "quantile"])
def test_time_stamps_keep_their_fractions(knots: str) -> None:
    x = time_stamps()
    shifted = make_spline(x - 1.7e9, 17, knots=knots)
    found = locate(make_spline(x, 17, knots=knots), x)
    np.testing.assert_allclose(found, locate(shifted, x - 1.7e9), rtol=0, atol=1e-9)
    wanted = np.interp(x - 1.7e9, shifted.axis, shifted.warped) * 14
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9)


def test_a_linear_basis_is_the_standardised_column() -> None:
    x = skewed()
    found = evaluate_basis(make_linear(x), x)
    assert found.shape == (len(x), 1)
    np.testing.assert_allclose(found[:, 0], (x - x.mean()) / x.std(), rtol=1e-12)


# Outside the range


@pytest.mark.parametrize("knots", ["even", "adaptive", "quantile"])
@pytest.mark.parametrize("extrapolation", ["clip", "error"])
@pytest.mark.parametrize(("degree", "size"), [(1, 2), (1, 5), (2, 3), (3, 12)])
def test_clipped_functions_stand_still_beyond_both_ends(
    degree: int, size: int, extrapolation: str, knots: str
) -> None:
    x = SAMPLES["uniform"]
    basis = make_spline(x, size, degree=degree, knots=knots, extrapolation=extrapolation)
    ends = evaluate_basis(basis, np.array([x.min(), x.max()]))
    far = evaluate_basis(basis, np.array([x.min() - 1e-3, x.min() - 50, x.max() + 1e-3, x.max() + 50]))
    np.testing.assert_array_equal(far, ends[[0, 0, 1, 1]])


@pytest.mark.parametrize("namespace", [np, keras.ops], ids=["numpy", "keras"])
@pytest.mark.parametrize("knots", ["even", "adaptive", "quantile"])
@pytest.mark.parametrize(
    ("degree", "size"),
    [
        (1, 2),
        (1, 5),
        (2, 3),
        (2, 8),
        (3, 4),
        (3, 12),
        (3, 40),
    ],
)
def test_linear_functions_go_straight_on_beyond_both_ends(
    degree: int, size: int, knots: str, namespace: Any
) -> None:
    x = SAMPLES["uniform"]
    basis = make_spline(x, size, degree=degree, knots=knots, extrapolation="linear")
    coefficients = np.random.default_rng(size).normal(size=size)
    spline = BSpline(np.arange(-degree, size + 1, dtype=float), coefficients, degree)
    axis, warped = np.asarray(basis.axis), np.asarray(basis.warped)
    warp_slopes = np.diff(warped)[[0, -1]] / np.diff(axis)[[0, -1]] * (size - degree)
    # One-sided derivatives from inside: degree 1 has a kink at every knot.
    inside = np.array([1e-9, size - degree - 1e-9])
    slopes = spline.derivative()(inside) * warp_slopes
    steps = np.array([0.0, 1e-3, 0.5, 3.0, 100.0])

    def evaluate(at: np.ndarray) -> np.ndarray:
        place = locate(basis, at)
        return functions_at(place, size, degree, namespace, straight=True) @ coefficients

    below, above = evaluate(axis[0] - steps), evaluate(axis[-1] + steps)
    np.testing.assert_allclose(below, spline(0.0) - steps * slopes[0], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(above, spline(size - degree) + steps * slopes[1], rtol=1e-6, atol=1e-8)
    if namespace is np:
        np.testing.assert_allclose(evaluate_basis(basis, axis[0] - steps) @ coefficients, below)
    within = np.linspace(axis[0], axis[-1], 50)
    clipped = make_spline(x, size, degree=degree, knots=knots)
    np.testing.assert_allclose(
        evaluate(within), evaluate_basis(clipped, within) @ coefficients, rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("namespace", [np, keras.ops], ids=["numpy", "keras"])
@pytest.mark.parametrize("straight", [False, True])
@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_missing_places_are_in_a_cell_and_have_missing_values(
    degree: int, straight: bool, namespace: Any
) -> None:
    place: Any = np.array([[np.nan, 2.25, np.nan]])
    if namespace is not np:
        place = keras.ops.convert_to_tensor(place)
    cell, values = evaluate_cells(place, 5, degree, straight and degree > 0, namespace)
    np.testing.assert_array_equal(np.asarray(cell), [[0, 2, 0]])
    np.testing.assert_array_equal(np.isnan(np.asarray(values)), (degree + 1) * [[True, False, True]])


# Levels

LEVELS = {
    "texts": (("", "Zürich", "a", "b c"), ["b c", "a", "", "Zürich", "A", "new"]),
    "numbers": ((-1.5, 0.0, 2.0, 1e9 + 0.5), [2.0, 1e9 + 0.5, -1.5, 0.0, 1e9, 1.9999999]),
    "one number": ((4.0,), [4.0, 5.0, 3.0]),
    "booleans": ((False, True), [True, False, True]),
}


@pytest.mark.parametrize("kind", LEVELS)
def test_levels_are_one_hot_and_unseen_ones_are_0(kind: str) -> None:
    levels, values = LEVELS[kind]
    column = np.array(values, dtype=object if kind == "texts" else None)
    found = evaluate_basis(make_levels(levels), column)
    np.testing.assert_array_equal(
        found, [[float(value == level) for level in levels] for value in values]
    )


# Centring


@pytest.mark.parametrize("size", [2, 3, 10, 40])
def test_centring_keeps_the_functions_of_mean_zero(size: int) -> None:
    rng = np.random.default_rng(size)
    x = rng.gamma(1.0, size=300)
    rows = evaluate_basis(make_spline(x, size, degree=min(3, size - 1)), x)
    means = rows.mean(axis=0)
    constraint = center_basis(means)
    assert constraint.shape == (size, size - 1)
    np.testing.assert_allclose(constraint.T @ constraint, np.eye(size - 1), rtol=0, atol=1e-12)
    np.testing.assert_allclose(means @ constraint, 0, rtol=0, atol=1e-14)
    centred = rows @ constraint @ rng.normal(size=(size - 1, 20))
    np.testing.assert_allclose(centred.mean(axis=0), 0, rtol=0, atol=1e-12)
    # Nothing but the constant is lost: with it, every function of the basis is there again.
    whole = np.column_stack([np.ones(300), rows @ constraint])
    assert np.linalg.matrix_rank(whole) == np.linalg.matrix_rank(rows)


# JSON

KINDS = {
    "ps": make_spline(skewed(), 12, extrapolation="linear"),
    "ps, degree 2": make_spline(skewed(), 5, degree=2, knots="even", extrapolation="error"),
    "cp": make_spline(time_stamps(), 8, cyclic=True),
    "re, texts": make_levels(("a", "b c")),
    "re, numbers": make_levels((1.0, 2.5)),
    "re, booleans": make_levels((False, True)),
    "linear": make_linear(skewed()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_json_brings_back_the_same_basis(kind: str) -> None:
    basis = KINDS[kind]
    again = Basis.from_json(json.loads(json.dumps(basis.to_json())))
    assert again == basis
    assert [type(level) for level in again.levels] == [type(level) for level in basis.levels]
    x = np.array(basis.levels, object) if "texts" in kind else np.linspace(0.1, 3, 20)
    np.testing.assert_array_equal(evaluate_basis(again, x), evaluate_basis(basis, x))
