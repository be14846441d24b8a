"""Difference penalties, Demmler-Reinsch coordinates, degrees of freedom against the dense hat matrix."""

from __future__ import annotations

import numpy as np
import pytest

from ahofm_keras.bases import center_basis, evaluate_basis, make_spline
from ahofm_keras.penalties import (
    DF_KINDS,
    DemmlerReinsch,
    degrees_of_freedom,
    difference_penalty,
    orthogonalise,
    solve_smoothing,
)
from tests.reference import hat_degrees_of_freedom

SIZES = [4, 5, 10, 23, 40]
ROWS = 400


# Penalties


@pytest.mark.parametrize("cyclic", [False, True], ids=["line", "circle"])
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("size", SIZES)
def test_penalty_is_symmetric_positive_and_of_known_rank(size: int, order: int, cyclic: bool) -> None:
    penalty = difference_penalty(size, order, cyclic)
    np.testing.assert_array_equal(penalty, penalty.T)
    values = np.linalg.eigvalsh(penalty)
    assert values.min() > -1e-12 * values.max()
    assert np.linalg.matrix_rank(penalty, hermitian=True) == size - (1 if cyclic else order)


@pytest.mark.parametrize("cyclic", [False, True], ids=["line", "circle"])
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("size", SIZES)
def test_penalty_is_the_sum_of_squared_differences(size: int, order: int, cyclic: bool) -> None:
    gamma = np.random.default_rng(size).normal(size=size)
    rows = gamma
    for _ in range(order):
        rows = np.diff(np.append(rows, rows[0])) if cyclic else np.diff(rows)
    found = gamma @ difference_penalty(size, order, cyclic) @ gamma
    assert found == pytest.approx(np.sum(rows**2), rel=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("size", SIZES)
def test_uneven_places_leave_their_own_polynomials_free(size: int, order: int) -> None:
    places = np.cumsum(np.random.default_rng(size).exponential(size=size) + 0.01)
    penalty = difference_penalty(size, order, at=places)
    values = np.linalg.eigvalsh(penalty)
    assert (values < 1e-12 * values.max()).sum() == order
    for power in range(order):
        assert np.abs(penalty @ places**power).max() < 1e-9 * np.abs(places**power).max()
    # Nothing is penalised more than it could be at equal distances, and scales do not matter.
    assert np.trace(penalty) <= 4.0**order * (size - order)
    again = difference_penalty(size, order, at=1e5 * places - 3)
    np.testing.assert_allclose(again, penalty, rtol=1e-9, atol=1e-12)


def test_uneven_differences_are_divided_ones_of_the_size_of_plain_ones() -> None:
    penalty = difference_penalty(3, at=np.array([0.0, 1.0, 4.0]))
    # Slopes over 1 and over 3: (b1 - b0) / 1 and (b2 - b1) / 3, times the harmonic mean 1.5.
    row = 1.5 * np.array([1.0, -1.0 - 1 / 3, 1 / 3])
    np.testing.assert_allclose(penalty, np.outer(row, row), rtol=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("size", SIZES)
def test_polynomials_below_the_order_are_free_on_a_line(size: int, order: int) -> None:
    penalty = difference_penalty(size, order)
    for power in range(4):
        reached = np.abs(penalty @ np.arange(size, dtype=float) ** power).max()
        if power < order:
            assert reached == 0
        else:
            assert reached > 0.5


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("size", SIZES)
def test_a_circle_has_the_eigenvalues_of_waves(size: int, order: int) -> None:
    waves = (2 - 2 * np.cos(2 * np.pi * np.arange(size) / size)) ** order
    found = np.linalg.eigvalsh(difference_penalty(size, order, cyclic=True))
    np.testing.assert_allclose(found, np.sort(waves), rtol=0, atol=1e-11)


@pytest.mark.parametrize(("size", "order"), [(1, 1), (2, 2), (1, 2), (3, 3), (2, 3)])
def test_too_few_functions_have_nothing_to_penalise(size: int, order: int) -> None:
    np.testing.assert_array_equal(difference_penalty(size, order), np.zeros((size, size)))


# Demmler-Reinsch coordinates


class Case:
    """A basis on data, its penalty with a root, and its Demmler-Reinsch coordinates."""

    def __init__(
        self,
        x: np.ndarray,
        size: int,
        *,
        degree: int = 3,
        knots: str = "adaptive",
        cyclic: bool = False,
        center: bool = True,
    ) -> None:
        basis = make_spline(x, size, degree=degree, knots=knots, cyclic=cyclic)
        self.rows = evaluate_basis(basis, x)
        self.penalty = difference_penalty(size, cyclic=cyclic)
        self.constraint = center_basis(self.rows.mean(axis=0)) if center else np.eye(size)
        differences = np.eye(size)
        for _ in range(2):
            rolled = np.roll(differences, -1, axis=0) - differences
            differences = rolled if cyclic else np.diff(differences, axis=0)
        self.root = differences @ self.constraint
        self.centred = self.rows @ self.constraint
        self.orthogonal: DemmlerReinsch = orthogonalise(
            self.rows.T @ self.rows, self.penalty, len(x), self.constraint if center else None
        )


def draw(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(size=ROWS) ** 1.2


def long_tailed(seed: int = 0) -> np.ndarray:
    return np.exp(1.5 * np.random.default_rng(seed).normal(size=ROWS))


CASES = {
    "10": Case(draw(), 10),
    "25": Case(draw(), 25),
    "40": Case(draw(), 40),
    "even": Case(np.random.default_rng(1).uniform(size=ROWS), 15, knots="even"),
    "quantile": Case(draw(), 15, knots="quantile"),
    "degree 2": Case(draw(), 3, degree=2),
    "circle": Case(draw(), 12, cyclic=True),
    "not centred": Case(draw(), 12, center=False),
    "circle, not centred": Case(draw(), 12, cyclic=True, center=False),
}
NULL = {"circle": 0, "not centred": 2}
DEFICIENT = {
    "even 20": Case(long_tailed(), 20, knots="even"),
    "even 40": Case(long_tailed(), 40, knots="even"),
    "adaptive 40": Case(long_tailed(), 40),
    "few values": Case(np.repeat(np.arange(6.0), 50), 15),
}


@pytest.mark.parametrize("case", CASES)
def test_coordinates_diagonalise_gram_and_penalty(case: str) -> None:
    given = CASES[case]
    transform, values = given.orthogonal.transform, given.orthogonal.eigenvalues
    functions = given.rows @ transform
    np.testing.assert_allclose(
        functions.T @ functions, ROWS * np.eye(len(values)), rtol=0, atol=1e-5 * ROWS
    )
    np.testing.assert_allclose(
        transform.T @ given.penalty @ transform / ROWS,
        np.diag(values),
        rtol=0,
        atol=1e-9 * values.max(),
    )
    assert (np.diff(values) >= 0).all()
    assert np.linalg.matrix_rank(transform) == given.constraint.shape[1]
    assert given.orthogonal.null_dimension == NULL.get(case, 1)
    assert (values == 0).sum() == NULL.get(case, 1)
    assert given.orthogonal.rank == pytest.approx(len(values), abs=1e-4)


@pytest.mark.parametrize("case", [case for case in CASES if "not centred" not in case])
def test_coordinates_stay_within_the_constraint(case: str) -> None:
    given = CASES[case]
    functions = given.rows @ given.orthogonal.transform
    np.testing.assert_allclose(functions.mean(axis=0), 0, rtol=0, atol=1e-8)


@pytest.mark.parametrize("size", [2, 3])
def test_a_basis_without_penalty_is_all_null_space(size: int) -> None:
    rows = evaluate_basis(make_spline(draw(), size, degree=size - 1), draw())
    found = orthogonalise(rows.T @ rows, np.zeros((size, size)), ROWS, center_basis(rows.mean(axis=0)))
    assert found.null_dimension == size - 1
    np.testing.assert_array_equal(found.eigenvalues, np.zeros(size - 1))


@pytest.mark.parametrize("case", DEFICIENT)
def test_rank_counts_only_what_the_rows_support(case: str) -> None:
    given = DEFICIENT[case]
    support = np.linalg.eigvalsh(given.centred.T @ given.centred)
    support /= support.mean()
    least, most = (support > 1e-7).sum(), (support > 1e-11).sum()
    assert least <= given.orthogonal.rank + 0.05
    assert given.orthogonal.rank <= most + 0.05
    assert most < given.centred.shape[1]
    assert given.orthogonal.null_dimension == 1
    functions = given.rows @ given.orthogonal.transform
    functions = functions[:, given.orthogonal.supported]
    np.testing.assert_allclose(
        functions.T @ functions / len(functions), np.eye(functions.shape[1]), rtol=0, atol=1e-5
    )


def test_null_space_of_very_many_functions_is_the_straight_line() -> None:
    size = 850
    found = orthogonalise(np.eye(size), difference_penalty(size), size)
    assert found.null_dimension == 2


# Degrees of freedom


@pytest.mark.parametrize("kind", DF_KINDS)
@pytest.mark.parametrize(
    ("case", "smoothing"),
    [
        (case, smoothing)
        for smoothing in (0.0, 1e-3, 0.1, 1.0, 50.0, 1e4)
        for case in (*CASES, *(DEFICIENT if smoothing else ()))
    ],
)
def test_degrees_of_freedom_are_those_of_the_hat_matrix(case: str, smoothing: float, kind: str) -> None:
    given = (CASES | DEFICIENT)[case]
    wanted = hat_degrees_of_freedom(given.centred, given.root, smoothing)[kind]
    found = degrees_of_freedom(smoothing, given.orthogonal, kind)
    assert found == pytest.approx(wanted, rel=2e-3 if case in DEFICIENT else 1e-5)


def test_degrees_of_freedom_hold_for_many_even_knots_on_long_tails() -> None:
    given = Case(long_tailed(), 100, knots="even")
    wanted = hat_degrees_of_freedom(given.centred, given.root, 1e6)["2H-HH"]
    assert degrees_of_freedom(1e6, given.orthogonal) == pytest.approx(wanted, rel=2e-3)


@pytest.mark.parametrize("kind", DF_KINDS)
@pytest.mark.parametrize("case", [*CASES, *DEFICIENT])
def test_smoothing_reaches_the_degrees_of_freedom(case: str, kind: str) -> None:
    given = (CASES | DEFICIENT)[case]
    null, rank = given.orthogonal.null_dimension, given.orthogonal.rank
    for share in (0.01, 0.2, 0.5, 0.9, 0.99):
        df = null + share * (rank - null)
        smoothing = solve_smoothing(df, given.orthogonal, kind)
        assert smoothing > 0
        assert degrees_of_freedom(smoothing, given.orthogonal, kind) == pytest.approx(df, rel=1e-8)
        dense = hat_degrees_of_freedom(given.centred, given.root, smoothing)[kind]
        assert dense == pytest.approx(df, rel=2e-3 if case in DEFICIENT else 1e-5)


@pytest.mark.parametrize("kind", DF_KINDS)
@pytest.mark.parametrize("case", [*CASES, *DEFICIENT])
def test_degrees_of_freedom_fall_with_the_smoothing(case: str, kind: str) -> None:
    given = (CASES | DEFICIENT)[case]
    found = [degrees_of_freedom(10.0**power, given.orthogonal, kind) for power in range(-6, 9)]
    assert (np.diff(found) < 0).all()
    assert found[-1] == pytest.approx(given.orthogonal.null_dimension, abs=0.1)


@pytest.mark.parametrize("case", CASES)
def test_the_two_definitions_differ(case: str) -> None:
    given = CASES[case]
    null, rank = given.orthogonal.null_dimension, given.orthogonal.rank
    df = (null + rank) / 2
    by_text = solve_smoothing(df, given.orthogonal, "2H-HH")
    by_algorithm = solve_smoothing(df, given.orthogonal, "H")
    # tr(2H - HH) is the larger of the two at one lambda, so it needs more smoothing for the same df.
    assert by_text > 1.5 * by_algorithm


def test_one_definition_is_the_default() -> None:
    given = CASES["10"].orthogonal
    assert solve_smoothing(4.0, given) == solve_smoothing(4.0, given, "2H-HH")
    assert degrees_of_freedom(2.0, given) == degrees_of_freedom(2.0, given, "2H-HH")


@pytest.mark.parametrize("kind", DF_KINDS)
def test_the_units_of_the_feature_do_not_matter(kind: str) -> None:
    here, there = Case(draw(), 15), Case(draw() / 50 + 3, 15)
    wanted = solve_smoothing(6.0, here.orthogonal, kind)
    assert solve_smoothing(6.0, there.orthogonal, kind) == pytest.approx(wanted, rel=1e-8)
