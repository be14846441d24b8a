"""Sizes of bases, degrees of freedom and smoothing of terms."""

from __future__ import annotations

import numpy as np
import pytest

from ahofm_keras.bases import evaluate_basis
from tests.terms.common import ROWS, dense_df, smooth, values_of

# Size and degree


@pytest.mark.parametrize(
    ("formula", "size", "degree"),
    [
        ("s(x)", 20, 3),
        ("s(x, df=3)", 12, 3),
        ("s(x, df=7)", 12, 3),
        ("s(x, df=7.1)", 13, 3),
        ("s(x, df=30)", 35, 3),
        ("s(x, k=7)", 7, 3),
        ("s(x, k=4)", 4, 3),
        ("s(x, k=3)", 3, 2),
        ("s(x, k=2)", 2, 1),
        ("s(x, k=60, df=4)", 60, 3),
        ("s(d12)", 11, 3),
        ("s(d12, df=4)", 11, 3),
        ("s(d6)", 5, 3),
        ("s(d5)", 4, 3),
        ("s(d4)", 3, 2),
        ("s(d3)", 3, 2),
        ("s(d2)", 2, 1),
        ('s(hour, bs="cp")', 20, 3),
        ('s(d5, bs="cp")', 4, 3),
        ('s(d4, bs="cp")', 4, 3),
        ("s(g)", 4, 0),
        ('s(d3, bs="re")', 3, 0),
        ("s(flag)", 2, 0),
    ],
)
def test_size_and_degree_follow_df_and_distinct_values(formula: str, size: int, degree: int) -> None:
    _, feature = smooth(formula)
    assert (feature.basis.size, feature.basis.degree) == (size, degree)
    assert feature.transform.shape == (size, size - 1)


@pytest.mark.parametrize("kind", ["2H-HH", "H"])
@pytest.mark.parametrize(
    ("formula", "df"),
    [
        ("s(x)", 15.0),
        ("s(x, df=1.01)", 1.01),
        ("s(x, df=3)", 3.0),
        ("s(x, df=30)", 30.0),
        ("s(x, k=12, df=10.9)", 10.9),
        ("s(skewed, df=6)", 6.0),
        ('s(skewed, df=6, knots="quantile")', 6.0),
        ('s(hour, bs="cp", df=5)', 5.0),
        ('s(hour, bs="cp", df=0.5)', 0.5),
        ("s(g, df=2)", 2.0),
        # Where df is not given, the default or 0.9 of what lies between a line and no penalty.
        ("s(d6)", 1 + 0.9 * 3),
        ("s(d5)", 1 + 0.9 * 2),
        ("s(d4)", 1 + 0.9 * 1),
        ("s(d3)", 1 + 0.9 * 1),
        ("s(d2)", 1.0),
        ("s(x, k=5)", 1 + 0.9 * 3),
        ("s(x, k=2)", 1.0),
        ("s(g)", 0.9 * 3),
        ("s(flag)", 0.9),
    ],
)
def test_the_df_is_that_of_the_hat_matrix(formula: str, df: float, kind: str) -> None:
    term, feature = smooth(formula, df_kind=kind)
    assert term.df == pytest.approx(df, abs=1e-4)
    assert dense_df(feature, term.smoothing, kind) == pytest.approx(df, abs=2e-3)


def test_the_two_definitions_give_different_smoothing() -> None:
    text, _ = smooth("s(x, df=6)")
    algorithm, _ = smooth("s(x, df=6)", df_kind="H")
    assert text.smoothing > 1.5 * algorithm.smoothing


@pytest.mark.parametrize("value", [0.0, 0.3, 1e4])
def test_sp_is_the_smoothing_itself(value: float) -> None:
    term, feature = smooth(f"s(x, sp={value})")
    assert term.smoothing == value
    assert term.df == pytest.approx(dense_df(feature, value), abs=1e-3)


def test_coordinates_belong_to_the_training_data() -> None:
    for formula in ("s(x)", "s(skewed, df=4)", 's(hour, bs="cp")', "s(g)", "s(d3)"):
        _, feature = smooth(formula)
        functions = evaluate_basis(feature.basis, values_of(feature)) @ feature.transform
        np.testing.assert_allclose(functions.mean(axis=0), 0, rtol=0, atol=1e-7)
        gram = functions.T @ functions / ROWS
        np.testing.assert_allclose(gram, np.eye(len(gram)), rtol=0, atol=1e-3)
