"""Tails of weighted sums of chi-squares against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ahofm_keras.summaries.chisquares import _invert, tail_of_sum


@pytest.mark.parametrize("count", [1, 2, 7, 40, 400])
@pytest.mark.parametrize("ratio", [0.2, 0.9, 1.0, 1.3, 5.0, 40.0])
def test_equal_weights_are_chi_squared_or_f(count: int, ratio: float) -> None:
    weights, value = np.ones(count), ratio * count
    exact = stats.chi2.sf(value, count)
    assert tail_of_sum(value, weights) == pytest.approx(exact, rel=1e-12)
    if exact > 1e-290:
        assert _invert(value, weights, None) == pytest.approx(exact, rel=1e-9)
    for df in (3.5, 80.0):
        expected = stats.f.sf(ratio, count, df)
        assert _invert(value, weights, df) == pytest.approx(expected, rel=1e-9)
        assert tail_of_sum(value, weights, df) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("value", [0.1, 2.0, 30.0, 400.0])
def test_pairs_of_weights_are_sums_of_exponentials(value: float) -> None:
    pairs = np.array([3.0, 1.2, 0.5, 0.01])
    rates = 1 / (2 * pairs)
    others = [
        np.prod(np.delete(rates, i) / (np.delete(rates, i) - rate)) for i, rate in enumerate(rates)
    ]
    expected = float(others @ np.exp(-rates * value))
    assert tail_of_sum(value, np.repeat(pairs, 2)) == pytest.approx(expected, rel=1e-9)


def test_an_estimated_dispersion_against_draws() -> None:
    rng = np.random.default_rng(0)
    weights = np.array([1.0, 0.6, 0.2])
    draws = rng.chisquare(1, (400_000, 3)) @ weights / (rng.chisquare(6, 400_000) / 6)
    for value in (0.5, 2.0, 9.0):
        assert tail_of_sum(value, weights, 6.0) == pytest.approx(np.mean(draws > value), abs=3e-3)


def test_limits() -> None:
    assert tail_of_sum(0.0, np.array([1.0, 0.5])) == 1.0
    assert tail_of_sum(3.0, np.zeros(2)) == 1.0
    assert tail_of_sum(1e30, np.array([1.0, 0.5])) == 0.0
    assert tail_of_sum(2.0, np.array([1.0, 1e-14])) == pytest.approx(stats.chi2.sf(2.0, 1), rel=1e-9)
    assert tail_of_sum(20.0, np.array([10.0, 5.0])) == pytest.approx(
        tail_of_sum(2.0, np.array([1, 0.5]))
    )
