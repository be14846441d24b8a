"""The warp: a rising table, knots where the rows are, straight lines in the basis, hopeless spreads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ahofm_keras.bases import evaluate_basis, locate, make_spline
from ahofm_keras.penalties import difference_penalty
from tests.samples import SAMPLES


def wanted_knots(x: np.ndarray, intervals: int, knots: str, most: float = np.inf) -> np.ndarray:
    """At quantiles (ties count half, a value for so many rows at the most), or halfway to them."""
    values = np.unique(x)
    weights = np.array([min(np.sum(x == value), most) for value in values])
    below = np.concatenate([[0.0], np.cumsum((weights[1:] + weights[:-1]) / 2)])
    shares = below / below[-1]
    if knots == "adaptive":
        shares = (shares + (values - values[0]) / (values[-1] - values[0])) / 2
    return np.interp(np.linspace(0, 1, intervals + 1), shares, values)


KNOTS = ["adaptive", "quantile", "even"]


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("cyclic", [False, True], ids=["line", "circle"])
@pytest.mark.parametrize("knots", KNOTS)
def test_warp_is_a_short_rising_table_from_0_to_1(knots: str, cyclic: bool, sample: str) -> None:
    x = SAMPLES[sample]
    basis = make_spline(x, 10, knots=knots, cyclic=cyclic)
    axis, warped = np.asarray(basis.axis), np.asarray(basis.warped)
    assert len(axis) == len(warped) <= 16 * basis.intervals + 1
    assert (axis[0], axis[-1]) == (x.min(), x.max())
    assert (warped[0], warped[-1]) == (0.0, 1.0)
    assert (np.diff(axis) > 0).all()
    assert (np.diff(warped) > 0).all()


@pytest.mark.parametrize(("degree", "size"), [(1, 2), (1, 8), (2, 3), (2, 9), (3, 4), (3, 20), (3, 200)])
@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("knots", [*KNOTS, (-10.0, 2e9)])
def test_a_straight_line_is_in_the_basis(knots: Any, sample: str, degree: int, size: int) -> None:
    x = SAMPLES[sample]
    basis = make_spline(x, size, degree=degree, knots=knots)
    axis, reach = np.asarray(basis.axis), basis.axis[-1] - basis.axis[0]
    at_points = evaluate_basis(basis, axis) @ basis.line
    np.testing.assert_allclose(at_points - at_points[0], axis - axis[0], rtol=0, atol=1e-9 * reach)
    # Between its points the table is straight where the warp is not: by 1/8 of its bend over a step.
    some = np.sort(x)[:: max(1, len(x) // 10_000)]
    between = evaluate_basis(basis, some) @ basis.line
    bend = np.abs(np.diff(basis.line, n=2)).max(initial=0.0) / 16**2
    missed = (between - at_points[0]) - (some - axis[0])
    assert np.abs(missed).max() <= 1.01 * bend / 8 + 1e-9 * reach


def worst_ratio(lengths: np.ndarray) -> float:
    return float(np.maximum(lengths[1:] / lengths[:-1], lengths[:-1] / lengths[1:]).max(initial=1.0))


def knots_without_grading(x: np.ndarray, intervals: int, knots: str) -> tuple[str, np.ndarray | None]:
    """By all rows, else with ties counted for one interval at the most, else none."""
    for way, most in {"rows": np.inf, "fewer ties": len(x) / intervals}.items():
        wanted = wanted_knots(x, intervals, knots, most)
        if worst_ratio(np.diff(wanted)) <= 8:
            return way, wanted
    return "graded", None


@pytest.mark.parametrize("sample", [sample for sample in SAMPLES if sample != "many skewed"])
@pytest.mark.parametrize("size", [4, 10, 40])
@pytest.mark.parametrize("knots", ["adaptive", "quantile"])
def test_functions_stand_at_quantiles(knots: str, size: int, sample: str) -> None:
    x = SAMPLES[sample]
    basis = make_spline(x, size, knots=knots)
    line = np.asarray(basis.line)
    found = line[1:-1] - line[1] + x.min()
    _, wanted = knots_without_grading(x, basis.intervals, knots)
    if wanted is not None:
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * np.ptp(x))
    assert worst_ratio(np.diff(found)) < 10
    # One function lies beyond each end: as far as another lies before it.
    np.testing.assert_allclose(line[[0, -1]], 2 * line[[1, -2]] - line[[2, -3]], rtol=1e-9)


@pytest.mark.parametrize(
    ("sample", "knots", "way"),
    [
        ("skewed", "adaptive", "rows"),
        ("time stamps", "quantile", "rows"),
        ("half zeros", "adaptive", "fewer ties"),
        ("half zeros", "quantile", "graded"),
    ],
)
def test_the_samples_take_all_ways(sample: str, knots: str, way: str) -> None:
    """Else the test above would look at one of them only."""
    assert knots_without_grading(SAMPLES[sample], 17, knots)[0] == way


@pytest.mark.parametrize("sample", ["uniform", "skewed", "half zeros", "time stamps"])
def test_smooth_functions_of_x_are_smooth_in_the_basis(sample: str) -> None:
    """A map that followed every chance of the distribution left 0.002 to 0.01 of them."""
    x = SAMPLES[sample]
    basis = evaluate_basis(make_spline(x, 20), x)
    scaled = (x - x.min()) / np.ptp(x)
    for function in (scaled, scaled**2, np.exp(-3 * scaled)):
        coefficients, *_ = np.linalg.lstsq(basis, function, rcond=None)
        assert np.std(function - basis @ coefficients) < 5e-4 * np.std(function)


def test_values_that_differ_in_their_last_digits_have_a_warp() -> None:
    x = 2.0**52 + np.array([0.0, 1.0, 1.0, 2.0, 3.0, 7.0, 8.0])
    basis = make_spline(x, 6)
    assert (np.diff(basis.axis) > 0).all()
    assert (basis.warped[0], basis.warped[-1]) == (0.0, 1.0)
    assert np.isfinite(evaluate_basis(basis, x)).all()
    assert (np.diff(basis.line) > 0).all()


NORMAL = np.random.default_rng(6).normal(size=500)
FAR = {
    "one outlier": np.append(NORMAL, 1e4),
    "a large negative one": np.append(NORMAL, -1e9),
    "on both sides": np.append(NORMAL, [-100.0, 1e6]),
    "a sentinel": np.append(NORMAL, np.full(50, -9999.0)),
    "two clusters": np.concatenate([NORMAL, NORMAL + 1e4]),
    "cauchy": np.random.default_rng(7).standard_cauchy(2000),
}


@pytest.mark.parametrize("knots", ["adaptive", "quantile"])
@pytest.mark.parametrize("sample", FAR)
def test_far_values_leave_knots_to_the_rows(sample: str, knots: str) -> None:
    """Of 17 intervals, the middle nine tenths of close values have more than 4, or 2 in each cluster."""
    basis = make_spline(FAR[sample], 20, knots=knots)
    for centre in (0.0, 1e4) if sample == "two clusters" else (0.0,):
        low, high = locate(basis, centre + np.quantile(NORMAL, [0.05, 0.95]))
        assert high - low > (2 if sample == "two clusters" else 4)
    assert worst_ratio(np.diff(basis.line)) < (100 if np.ptp(FAR[sample]) > 1e5 else 10)


@pytest.mark.parametrize("knots", ["adaptive", "quantile"])
@pytest.mark.parametrize("cyclic", [False, True], ids=["line", "circle"])
@pytest.mark.parametrize("size", [4, 12, 300])
@pytest.mark.parametrize(
    "x",
    [
        np.append(NORMAL, -1e16),
        np.append(NORMAL, np.full(20, -1e20)),
        np.array([0.0, 1.0, np.nextafter(1, 2)] * 5),
        np.concatenate([1e-14 * NORMAL, 1 + 1e-14 * NORMAL]),
        1e-160 * NORMAL,
        1e150 * NORMAL,
    ],
    ids=["far", "many far", "last digit", "narrow clusters", "tiny", "huge"],
)
def test_hopeless_spreads_have_a_warp_all_the_same(
    x: np.ndarray, size: int, cyclic: bool, knots: str
) -> None:
    basis = make_spline(x, size, knots=knots, cyclic=cyclic)
    axis, warped = np.asarray(basis.axis), np.asarray(basis.warped)
    assert (np.diff(axis) > 0).all()
    assert (np.diff(warped) > 0).all()
    assert (axis[0], axis[-1], warped[0], warped[-1]) == (x.min(), x.max(), 0.0, 1.0)
    assert np.isfinite(evaluate_basis(basis, x)).all()
    assert (np.diff(basis.line) > 0).all()
    if not cyclic:
        assert np.isfinite(difference_penalty(size, at=np.asarray(basis.line))).all()


def test_an_atom_of_half_the_rows_takes_one_interval() -> None:
    x = np.concatenate([np.linspace(-1, 1, 500), np.zeros(500)])
    place = locate(make_spline(x, 103), np.array([-0.1, 0.0, 0.1]))
    # It counts for 10 rows; 25 others lie between 0 and 0.1, which is a twentieth of the range.
    np.testing.assert_allclose(np.diff(place), 50 * (25 + 5) / 510 + 50 / 20, rtol=0, atol=0.3)
