"""Tests of terms on posteriors that are written down."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ahofm_keras.summaries.wald import (
    REFERENCE_DF,
    coefficient_tests,
    function_test,
    joint_test,
    variance_test,
)

RNG = np.random.default_rng(0)
ROOT = RNG.normal(size=(5, 5))
COVARIANCE = ROOT @ ROOT.T
VALUES = RNG.normal(size=5)


def test_the_joint_test_is_walds() -> None:
    test = joint_test(VALUES, COVARIANCE, None)
    expected = VALUES @ np.linalg.solve(COVARIANCE, VALUES)
    assert test.statistic == pytest.approx(expected)
    assert test.reference_df == 5
    assert test.p_value == pytest.approx(stats.chi2.sf(expected, 5))
    assert joint_test(VALUES, COVARIANCE, 20.0).p_value == pytest.approx(stats.f.sf(expected / 5, 5, 20))


def test_equal_columns_are_tested_once() -> None:
    twice = np.array([[1.0, 1.0], [1.0, 1.0]])
    test = joint_test(np.array([2.0, 2.0]), twice, None)
    assert test.reference_df == 1
    assert test.p_value == pytest.approx(stats.chi2.sf(4.0, 1))


def test_one_coefficient_is_a_t_or_z_test() -> None:
    ratio, p = coefficient_tests(np.array([2.0, -3.0]), np.array([1.0, 2.0]), 10.0)
    np.testing.assert_allclose(ratio, [2.0, -1.5])
    np.testing.assert_allclose(p, 2 * stats.t.sf([2.0, 1.5], 10))
    assert joint_test(np.array([2.0]), np.eye(1), 10.0).p_value == pytest.approx(p[0])
    _, p = coefficient_tests(np.array([2.0]), np.array([1.0]), None)
    assert p[0] == pytest.approx(2 * stats.norm.sf(2.0))


@pytest.mark.parametrize("tall", [False, True])
def test_a_function_of_whole_rank(tall: bool) -> None:
    """At points it is what it is in coefficients; the covariance at points is singular."""
    design = RNG.normal(size=(40, 5)) if tall else np.eye(5)
    values, root = design @ VALUES, design @ ROOT
    pseudo_inverse = np.linalg.pinv(root @ root.T, 1e-10, hermitian=True)
    test = function_test(values, root, 5.0, None)
    assert test.statistic == pytest.approx(values @ pseudo_inverse @ values)
    assert test.reference_df == 5
    assert function_test(values, root, 9.3, None) == test  # no more than there is
    variances, vectors = np.linalg.eigh(root @ root.T)
    scores = (vectors[:, -2:].T @ values) ** 2 / variances[-2:]
    assert function_test(values, root, 2.0, None).statistic == pytest.approx(scores.sum())


@pytest.mark.parametrize("rank", [1.0, 1.4, 2.7, 3.95, 5.0])
def test_a_function_of_fractional_rank_is_uniform_without_an_effect(rank: float) -> None:
    draws = np.random.default_rng(1).normal(size=(400, 5)) @ ROOT.T
    for df in (None, 30.0):
        noise = 1.0 if df is None else np.sqrt(np.random.default_rng(2).chisquare(df, 400) / df)
        found = [function_test(d, ROOT, rank, df).p_value for d in (draws.T / noise).T]
        assert stats.kstest(found, "uniform").pvalue > 1e-3


def test_ranks_join_smoothly() -> None:
    below, above = (function_test(VALUES, ROOT, rank, None) for rank in (2.999999, 3.000001))
    assert below.p_value == pytest.approx(above.p_value, rel=1e-2)
    signs = np.array([1, -1, 1, -1, 1])
    flipped = function_test(signs * VALUES, signs[:, None] * ROOT, 2.6, None)
    assert flipped.p_value == pytest.approx(function_test(VALUES, ROOT, 2.6, None).p_value)


def ridge(estimates: np.ndarray, precisions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Posterior of coefficients whose estimates have the covariance `COVARIANCE`."""
    information = np.linalg.inv(COVARIANCE)
    covariance = np.linalg.inv(information + np.diag(precisions))
    return covariance @ information @ estimates, covariance


PENALTY = np.array([9.0, 3.0, 1.0, 0.1, 0.0])


@pytest.mark.parametrize("penalty", [None, PENALTY])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e4])
def test_shrunken_coefficients_are_uniform_without_an_effect(size: float, penalty: object) -> None:
    precisions = size * (PENALTY + 0.3)
    draws = np.random.default_rng(3).normal(size=(400, 5)) @ ROOT.T
    found = [
        variance_test(*ridge(draw, precisions), precisions, None, penalty).p_value for draw in draws
    ]
    assert stats.kstest(found, "uniform").pvalue > 1e-3


def test_the_statistic_is_that_of_wood() -> None:
    """b' V^-1 b with the eigenvalues of V^-1 V_e, V_e the frequentist covariance, as weights."""
    precisions = PENALTY + 0.3
    values, covariance = ridge(VALUES, precisions)
    test = variance_test(values, covariance, precisions, None)
    assert test.statistic == pytest.approx(values @ np.linalg.solve(covariance, values))
    frequentist = covariance @ np.linalg.inv(COVARIANCE) @ covariance
    weights = np.linalg.eigvals(np.linalg.solve(covariance, frequentist)).real
    assert test.reference_df == pytest.approx(weights.sum())


def test_a_smoothing_that_the_data_chose_does_not_matter() -> None:
    found = []
    for size in (1e-2, 1.0, 1e5):
        precisions = size * (PENALTY + 0.3)
        found.append(variance_test(*ridge(VALUES, precisions), precisions, 50.0, PENALTY))
    for test in found:
        assert test.p_value == pytest.approx(found[0].p_value, rel=1e-6)
    assert 1 < found[0].reference_df < REFERENCE_DF + 1


def test_nothing_to_test() -> None:
    assert joint_test(np.ones(2), np.zeros((2, 2)), None) is None
    assert function_test(np.zeros(3), np.zeros((3, 2)), 1.0, None) is None
    assert variance_test(np.zeros(2), np.diag([1e-3, 1e-3]), np.full(2, 1e3), None) is None
