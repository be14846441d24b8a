"""Formula and data -> terms: sizes, degrees of freedom, sharing, messages, JSON."""

from __future__ import annotations

import json
import warnings
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from ahofm_keras.bases import evaluate_basis
from ahofm_keras.data import kind_of, read_columns
from ahofm_keras.errors import AhofmWarning, DataError, FormulaError
from ahofm_keras.formula import parse_formula
from ahofm_keras.model.graph import build_graph
from ahofm_keras.penalties import difference_penalty
from ahofm_keras.terms import (
    TERMS,
    Design,
    Feature,
    InteractionTerm,
    LinearTerm,
    OffsetTerm,
    SmoothTerm,
    TensorTerm,
    features,
    fit_terms,
)
from tests.reference import hat_degrees_of_freedom

ROWS = 240


def make_data() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    data = {name: rng.uniform(size=ROWS) for name in ("x", "z", "w", "v")}
    data |= {f"d{count}": np.arange(ROWS) % float(count) for count in (2, 3, 4, 5, 6, 12)}
    data |= {
        "skewed": np.exp(1.5 * rng.normal(size=ROWS)),
        "hour": rng.uniform(0, 24, ROWS),
        "g": rng.choice(["a", "b", "c", "d"], ROWS),
        "two": rng.choice(["u", "v"], ROWS),
        "flag": rng.uniform(size=ROWS) < 0.4,
        "same": np.full(ROWS, 2.5),
        "same text": np.full(ROWS, "a"),
        "never": np.zeros(ROWS, bool),
        "y": rng.normal(size=ROWS),
    }
    return pd.DataFrame(data)


DATA = make_data()


def fit(formula: str, data: pd.DataFrame = DATA, **options: Any) -> Design:
    parsed = parse_formula(f"y ~ {formula}")
    columns = read_columns(data, parsed.columns())
    kinds = {name: kind_of(values) for name, values in columns.items()}
    return fit_terms(parsed, columns, kinds, **options)


def values_of(feature: Feature, data: pd.DataFrame = DATA) -> np.ndarray:
    name = next(iter(feature.expression.columns()))
    return read_columns(data, [name])[name]


def dense_df(feature: Feature, smoothing: float, kind: str = "2H-HH") -> float:
    """Degrees of freedom of the hat matrix of the centred basis."""
    rows = evaluate_basis(feature.basis, values_of(feature))
    size = feature.basis.size
    if feature.basis.kind == "re":
        root = np.eye(size)
    else:
        values, vectors = np.linalg.eigh(difference_penalty(size, cyclic=feature.basis.kind == "cp"))
        root = (vectors * np.sqrt(np.maximum(values, 0))).T
    means = rows.mean(axis=0)
    _, _, right = np.linalg.svd(means[None])
    constraint = right[1:].T
    return hat_degrees_of_freedom(rows @ constraint, root @ constraint, smoothing)[kind]


def smooth(formula: str, **options: Any) -> tuple[SmoothTerm, Feature]:
    design = fit(formula, **options)
    (term,) = design.of_kind(SmoothTerm)
    return term, design.features[term.feature]


def labels(design: Design) -> list[str]:
    return [term.label for term in design.terms]


# Size and degree


@pytest.mark.parametrize(
    ("formula", "size", "degree"),
    [
        ("s(x)", 20, 3),
        ("s(x, df=3)", 10, 3),
        ("s(x, df=5)", 10, 3),
        ("s(x, df=5.1)", 11, 3),
        ("s(x, df=30)", 35, 3),
        ("s(x, k=7)", 7, 3),
        ("s(x, k=4)", 4, 3),
        ("s(x, k=3)", 3, 2),
        ("s(x, k=2)", 2, 1),
        ("s(x, k=60, df=4)", 60, 3),
        ("s(d12)", 11, 3),
        ("s(d12, df=4)", 10, 3),
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


# What cannot be reached


def warned(formula: str) -> tuple[Design, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        design = fit(formula)
    assert all(issubclass(warning.category, AhofmWarning) for warning in caught)
    return design, [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        (
            "s(x, k=10, df=9)",
            "`s(x)`: df=9 of `x` is not below its rank 9, so it is not penalised at all. Raise `k`, or "
            "lower `df`.",
        ),
        (
            "s(x, k=5, df=7.5)",
            "`s(x)`: df=7.5 of `x` is not below its rank 4, so it is not penalised at all. Raise `k`, or "
            "lower `df`.",
        ),
        (
            'ahofm(x, z, main=False, df={"x": 6, "z": 4}, k={"x": 5})',
            "`ahofm(x, z)`: df=6 of `x` is not below its rank 4, so it is not penalised at all. Raise "
            "`k`, or lower `df`.",
        ),
    ],
)
def test_a_df_not_below_the_rank_of_a_given_k_is_warned_of(formula: str, message: str) -> None:
    design, messages = warned(formula)
    assert messages == [message]
    term = design.terms[0]
    assert (term.smoothing if isinstance(term, SmoothTerm) else term.orders[0].smoothing[0]) == 0


@pytest.mark.parametrize(
    ("formula", "message", "df"),
    [
        (
            "s(d5, df=6)",
            "`s(d5)`: df=6 cannot be reached by `d5` (5 distinct values, rank 3); df=2.8 is used.",
            2.8,
        ),
        (
            "s(d3, df=2)",
            "`s(d3)`: df=2 cannot be reached by `d3` (3 distinct values, rank 2); df=1.9 is used.",
            1.9,
        ),
        (
            "s(g, df=3)",
            "`s(g)`: df=3 cannot be reached by `g` (4 distinct values, rank 3); df=2.7 is used.",
            2.7,
        ),
    ],
)
def test_a_df_that_few_distinct_values_cannot_reach_is_warned_of(
    formula: str, message: str, df: float
) -> None:
    design, messages = warned(formula)
    assert messages == [message]
    term = design.terms[0]
    assert term.smoothing > 0
    assert term.df == pytest.approx(df, abs=1e-6)


def test_one_warning_names_all_features_of_a_term() -> None:
    _, messages = warned("ahofm(d5, x, d6, D=3, df=6, main=False)")
    assert messages == [
        "`ahofm(d5, x, d6)`:\n"
        "    df=6 cannot be reached by `d5` (5 distinct values, rank 3); df=2.8 is used.\n"
        "    df=6 cannot be reached by `d6` (6 distinct values, rank 4); df=3.7 is used."
    ]


@pytest.mark.parametrize("formula", ["s(d2, df=5)", "s(x, k=2, df=5)"])
def test_a_straight_line_that_cannot_reach_its_df_is_warned_of(formula: str) -> None:
    _, messages = warned(formula)
    assert len(messages) == 1
    assert "df=5" in messages[0]


def test_a_df_that_only_a_later_order_cannot_reach_is_warned_of() -> None:
    design, messages = warned("ahofm(x, z, w, D=3, k=8, df=(4, 4, 12))")
    assert [order.smoothing[0] > 0 for order in design.terms[-1].orders] == [True, False]
    assert len(messages) == 1
    assert "df=12" in messages[0]


def test_a_category_does_not_lose_its_penalty_to_the_k_of_the_splines() -> None:
    without, with_k = warned("ahofm(x, g, df=8)")[0], warned("ahofm(x, g, df=8, k=12)")[0]
    wanted = without.terms[-1].orders[0].smoothing[1]
    assert wanted > 0
    assert with_k.terms[-1].orders[0].smoothing[1] == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        (
            "s(x, df=1)",
            "`df` of `s(x)` must be above 1: the penalty of `x` leaves that many degrees of freedom "
            "free.\n    Received: df=1.\n    y ~ s(x, df=1)\n        ^^^^^^^^^^",
        ),
        (
            "s(z) + s(x, df=0.5)",
            "`df` of `s(x)` must be above 1: the penalty of `x` leaves that many degrees of freedom "
            "free.\n    Received: df=0.5.\n    y ~ s(z) + s(x, df=0.5)\n               ^^^^^^^^^^^^",
        ),
        (
            "ahofm(x, z, df=(5, 0.75))",
            "`df` of `ahofm(x, z)` must be above 1: the penalty of `x` leaves that many degrees of "
            "freedom free.\n    Received: df=0.75.\n    y ~ ahofm(x, z, df=(5, 0.75))\n        "
            "^^^^^^^^^^^^^^^^^^^^^^^^^",
        ),
        (
            "ahofm(x, z, center=False, df=2, main=False)",
            "`df` of `ahofm(x, z)` must be above 2: the penalty of `x` leaves that many degrees of "
            "freedom free.\n    Received: df=2.\n    y ~ ahofm(x, z, center=False, df=2, main=False)\n"
            "        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
        ),
        (
            's(d3, bs="cp")',
            "A cyclic smooth needs k of at least 4 and 4 distinct values; `s(d3)` has k=not given and 3 "
            'distinct values.\n    y ~ s(d3, bs="cp")\n        ^^^^^^^^^^^^^^',
        ),
        (
            's(hour, bs="cp", k=3)',
            "A cyclic smooth needs k of at least 4 and 4 distinct values; `s(hour)` has k=3 and 240 "
            'distinct values.\n    y ~ s(hour, bs="cp", k=3)\n        ^^^^^^^^^^^^^^^^^^^^^',
        ),
        (
            's(g, bs="ps")',
            'Column `g` holds categories: write `s(g, bs="re")` or `g`.\n    y ~ s(g, bs="ps")\n'
            "        ^^^^^^^^^^^^^",
        ),
        (
            "s(g, k=5)",
            "`k` has no meaning for the category `g`.\n    y ~ s(g, k=5)\n        ^^^^^^^^^",
        ),
    ],
)
def test_what_cannot_be_is_an_error_that_points_at_the_term(formula: str, message: str) -> None:
    with pytest.raises(FormulaError) as caught:
        fit(formula)
    assert str(caught.value) == message


def test_ends_inside_the_data_are_an_error() -> None:
    data = pd.DataFrame({"x": [0.0, 1.0, 2.5, 24.5], "y": 0.0})
    with pytest.raises(FormulaError) as caught:
        fit("s(x, knots=(0, 24))", data)
    assert str(caught.value) == (
        "`knots` of `s(x)` must span the training values, from 0 to 24.5.\n"
        "    Received: knots=(0, 24).\n    y ~ s(x, knots=(0, 24))\n        ^^^^^^^^^^^^^^^^^^^"
    )


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("s(same)", "`same` is constant, so `s(same)` cannot learn anything from it. Leave it out."),
        ("s(x) + same", "`same` is constant, so `same` cannot learn anything from it. Leave it out."),
        ("x:same", "`same` is constant, so `x:same` cannot learn anything from it. Leave it out."),
        (
            "ahofm(x, same, main=False)",
            "`same` is constant, so `ahofm(x, same)` cannot learn anything from it. Leave it out.",
        ),
        ("hofm(x, same)", "`same` is constant, so `same` cannot learn anything from it. Leave it out."),
        (
            "s(exp(same))",
            "`exp(same)` is constant, so `s(exp(same))` cannot learn anything from it. Leave it out.",
        ),
        (
            's(Q("same text"))',
            '`Q("same text")` is constant, so `s(Q("same text"))` cannot learn anything from it. Leave it out.',
        ),
        ("never", "`never` is constant, so `never` cannot learn anything from it. Leave it out."),
        ("C(same)", "`C(same)` is constant, so `C(same)` cannot learn anything from it. Leave it out."),
        ("s(log(g))", "`log(g)` needs numbers, but column `g` holds texts."),
        ("s(log(flag))", "`log(flag)` needs numbers, but column `flag` holds booleans."),
        ("x + offset(g)", "`offset(g)` needs numbers."),
        ("s(log(d2))", "`log(d2)` is not finite in 120 of 240 rows, first at row 0 (d2 = 0)."),
    ],
)
def test_data_that_a_term_cannot_use_is_named(formula: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        fit(formula)
    assert str(caught.value) == message


def test_a_constant_column_is_an_intercept_where_there_is_none() -> None:
    (term,) = fit("0 + same").terms
    assert term.centre == (0.0,)
    assert term.scale == pytest.approx((2.5,))


def test_a_polynomial_of_too_few_distinct_values_is_an_error() -> None:
    with pytest.raises(DataError) as caught:
        fit("poly(d2, 3)")
    assert str(caught.value) == (
        "`poly(d2, 3)` needs more than 3 distinct values of `d2`, the data has 2. Lower the degree."
    )


def test_fewer_rows_than_coefficients_are_an_error() -> None:
    with pytest.raises(DataError) as caught:
        fit("x + z + w + v", DATA.head(5))
    assert str(caught.value) == (
        "The formula needs at least 6 rows (4 linear coefficients), the data has 5."
    )
    assert len(fit("x + z + w + v", DATA.head(6)).terms) == 4


def test_a_line_inside_a_smooth_is_warned_of() -> None:
    _, messages = warned("x + s(x)")
    assert messages == [
        "`x` stands as a linear term and inside `s(x)`, which holds the straight line already: the two "
        "cannot be told apart. Leave one out."
    ]


# Main effects and orders


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("ahofm(x, z)", ["s(x)", "s(z)", "ahofm(x, z)"]),
        ("s(x) + ahofm(x, z)", ["s(x)", "s(z)", "ahofm(x, z)"]),
        ("ahofm(x, z) + s(x)", ["s(z)", "ahofm(x, z)", "s(x)"]),
        ("ahofm(x, z) + ahofm(z, w)", ["s(x)", "s(z)", "ahofm(x, z)", "s(w)", "ahofm(z, w)"]),
        ("ahofm(x, z, main=False)", ["ahofm(x, z)"]),
        ("ahofm(x, z, main=False) + ahofm(x, w)", ["ahofm(x, z)", "s(x)", "s(w)", "ahofm(x, w)"]),
        ("x + ahofm(x, z)", ["x", "s(z)", "ahofm(x, z)"]),
        ("x:z + ahofm(x, z)", ["x:z", "s(x)", "s(z)", "ahofm(x, z)"]),
        ("s(log(x)) + ahofm(x, z)", ["s(log(x))", "s(x)", "s(z)", "ahofm(x, z)"]),
        ("afm(x, g)", ["s(x)", "s(g)", "afm(x, g)"]),
        ("hofm(x, z)", ["x", "z", "hofm(x, z)"]),
        ("x + fm(x, g)", ["x", "g", "fm(x, g)"]),
        ("hofm(x, z, main=False)", ["hofm(x, z)"]),
        ("ahofm(x, z, w, orders=(3,))", ["s(x)", "s(z)", "s(w)", "ahofm(x, z, w)"]),
    ],
)
def test_a_main_effect_stands_once(formula: str, expected: list[str]) -> None:
    design = fit(formula)
    assert labels(design) == expected
    names = [term.name for term in design.terms]
    assert len(set(names)) == len(names)
    assert not set(names) & set(design.columns)


def test_a_category_written_in_two_ways_is_one_main_effect() -> None:
    assert labels(fit("C(g) + ahofm(x, g)")) == ["C(g)", "s(x)", "ahofm(x, g)"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", [(2, 5), (3, 5)]),
        ("D=2", [(2, 5)]),
        ("D=4, F=2", [(2, 2), (3, 2), (4, 2)]),
        ("D=3, F=(10, 4)", [(2, 10), (3, 4)]),
        ("orders=(3,)", [(3, 5)]),
        ("orders=3, F=7", [(3, 7)]),
        ("orders=(2, 4), F=(3, 1)", [(2, 3), (4, 1)]),
    ],
)
@pytest.mark.parametrize("call", ["ahofm", "hofm"])
def test_orders_and_ranks(call: str, options: str, expected: list[tuple[int, int]]) -> None:
    term = fit(f"{call}(x, z, w, v{', ' + options if options else ''})").terms[-1]
    assert [(order.order, order.rank) for order in term.orders] == expected
    assert term.column_labels == tuple(f"{call}(x, z, w, v)[{order}]" for order, _ in expected)
    assert all(len(order.smoothing) == len(order.df) == 4 for order in term.orders)


def test_ranks_and_df_stay_beside_their_orders() -> None:
    term = fit("ahofm(x, z, w, orders=(3, 2), F=(10, 4), df=(12, 9, 6))").terms[-1]
    assert {order.order: order.rank for order in term.orders} == {3: 10, 2: 4}
    assert {order.order: round(order.df[0], 4) for order in term.orders} == {3: 9, 2: 6}


def interaction_dfs(design: Design) -> dict[int, tuple[float, ...]]:
    (term,) = design.of_kind(InteractionTerm)
    return {order.order: tuple(round(df, 4) for df in order.df) for order in term.orders}


@pytest.mark.parametrize(
    ("options", "main", "interactions"),
    [
        ("D=3, df=7", (7, 7, 7), {2: (7, 7, 7), 3: (7, 7, 7)}),
        ("D=3, df=(15, 8, 5)", (15, 15, 15), {2: (8, 8, 8), 3: (5, 5, 5)}),
        ('D=3, df={"x": 10}', (10, 15, 15), {2: (10, 15, 15), 3: (10, 15, 15)}),
        ('D=3, df={"x": 4, "z": (9, 6, 3)}', (4, 9, 15), {2: (4, 6, 15), 3: (4, 3, 15)}),
        ("orders=(3,), df=(6, 2.5)", (6, 6, 6), {3: (2.5, 2.5, 2.5)}),
        ("D=3, main=False, df=(8, 5)", (), {2: (8, 8, 8), 3: (5, 5, 5)}),
        ("D=3", (15, 15, 15), {2: (15, 15, 15), 3: (15, 15, 15)}),
    ],
)
def test_df_per_order_and_per_feature(
    options: str, main: tuple[float, ...], interactions: dict[int, tuple[float, ...]]
) -> None:
    design = fit(f"ahofm(x, z, w, {options})")
    assert tuple(round(term.df, 4) for term in design.of_kind(SmoothTerm)) == main
    assert interaction_dfs(design) == interactions
    (term,) = design.of_kind(InteractionTerm)
    for order in term.orders:
        for place, smoothing, df in zip(term.features, order.smoothing, order.df, strict=True):
            assert dense_df(design.features[place], smoothing) == pytest.approx(df, abs=2e-3)


def test_k_and_knots_per_feature() -> None:
    design = fit('ahofm(x, hour, z, k={"x": 8, "z": 6}, knots={"hour": (0, 24), "z": "even"}, df=4)')
    (term,) = design.of_kind(InteractionTerm)
    bases = [design.features[place].basis for place in term.features]
    assert [basis.size for basis in bases] == [8, 10, 6]
    assert [len(basis.axis) for basis in bases] == [ROWS, 2, 2]
    assert bases[1].axis == (0.0, 24.0)
    assert [term.feature for term in design.of_kind(SmoothTerm)] == list(term.features)


def test_a_cyclic_smooth_is_joined_at_the_given_ends() -> None:
    term, feature = smooth('s(hour, bs="cp", knots=(0, 24), df=6)')
    assert (feature.basis.kind, feature.basis.axis) == ("cp", (0.0, 24.0))
    assert feature.null_dimension == 0
    ends = evaluate_basis(feature.basis, np.array([0.0, 24.0, 48.0]))
    np.testing.assert_allclose(ends, ends[[0, 0, 0]], rtol=0, atol=1e-12)
    assert term.df == pytest.approx(6, abs=1e-6)


def test_a_linear_factor_has_a_ridge() -> None:
    design = fit("hofm(x, g, sp=3, F=2)")
    term = design.terms[-1]
    assert isinstance(term, InteractionTerm)
    assert [design.features[place].basis.kind for place in term.features] == ["linear", "re"]
    assert [order.smoothing for order in term.orders] == [(3.0, 3.0)]
    assert fit("hofm(x, z)").terms[-1].orders[0].smoothing == (1.0, 1.0)


# Shared features


@pytest.mark.parametrize(
    ("formula", "count"),
    [
        ("ahofm(x, z)", 2),
        ("s(x) + s(z) + ahofm(x, z, D=2)", 2),
        ("ahofm(x, z) + ahofm(x, w)", 3),
        ("ahofm(x, z, w, D=3, df=(15, 8, 5))", 3),
        ("ahofm(x, z, df=15) + s(x, df=6)", 2),
        ("s(x, k=8) + ahofm(x, z)", 2),  # another size is another basis
        ("s(x, k=8, df=4) + ahofm(x, z, k=8, df=4)", 2),
        ('s(x, knots="even") + ahofm(x, z)', 2),
        ("s(log(x)) + ahofm(log(x), z)", 2),
        ("s(g) + ahofm(x, g)", 2),
        ("hofm(x, z) + hofm(x, w)", 3),
        ("x + z + g", 0),
    ],
)
def test_a_basis_that_several_terms_use_is_there_once(formula: str, count: int) -> None:
    design = fit(formula)
    assert len(design.features) == count
    used = {place for term in design.of_kind(InteractionTerm) for place in term.features}
    used |= {term.feature for term in design.of_kind(SmoothTerm)}
    assert used == set(range(count))


# Categories


@pytest.mark.parametrize("intercept", ["", "0 + "])
@pytest.mark.parametrize(
    ("name", "levels"),
    [
        ("g", ("a", "b", "c", "d")),
        ("flag", (False, True)),
        ("C(d5)", (0.0, 1.0, 2.0, 3.0, 4.0)),
        ("C(g)", ("a", "b", "c", "d")),
    ],
)
def test_categories_stand_inside_an_interaction(
    name: str, levels: tuple[Any, ...], intercept: str
) -> None:
    design = fit(f"{intercept}ahofm(x, {name}, z, D=3)")
    (term,) = design.of_kind(InteractionTerm)
    feature = design.features[term.features[1]]
    assert feature.label == name
    assert (feature.basis.kind, feature.basis.levels) == ("re", levels)
    assert [type(level) for level in feature.basis.levels] == [type(level) for level in levels]
    wanted = 0.9 * (len(levels) - 1)
    assert [order.df[1] for order in term.orders] == pytest.approx([wanted, wanted], abs=1e-6)
    assert dense_df(feature, term.orders[0].smoothing[1]) == pytest.approx(wanted, abs=1e-4)
    mains = [design.features[main.feature].label for main in design.of_kind(SmoothTerm)]
    assert mains == ["x", name, "z"]


def test_linear_categories_leave_their_first_level_out_after_an_intercept() -> None:
    design = fit("g + x:two")
    assert design.intercept
    assert [term.coefficients for term in design.terms] == [
        ("g[b]", "g[c]", "g[d]"),
        ("x:two[u]", "x:two[v]"),
    ]
    design = fit("0 + g + two")
    assert not design.intercept
    assert [term.coefficients for term in design.terms] == [
        ("g[a]", "g[b]", "g[c]", "g[d]"),
        ("two[v]",),
    ]


# JSON

FORMULAS = {
    "linear": "x + g + x:g + poly(z, 2) + C(d3) + flag + log(w)",
    "smooths": 's(x) + s(skewed, knots="quantile", df=5) + s(d3) + s(d2) + s(scale(z))',
    "cyclic": 's(hour, bs="cp", knots=(0, 24))',
    "levels": 's(g) + s(d5, bs="re") + s(flag) + s(C(d3))',
    "interactions": "ahofm(x, g, d4, w, D=3, F=(3, 2), df={'x': (8, 6, 4)})",
    "factorization machine": "hofm(x, g, z, flag, D=3, F=2)",
    "tensors": 'te(x, g, df=(4, 2)) + ti(hour, z, w, bs=("cp", "ps", "ps"), sp=2)',
    "offset": "s(x) + offset(log(z)) + offset(w)",
    "no intercept": "0 + g + s(x)",
}


@pytest.mark.parametrize("extrapolation", ["clip", "linear"])
@pytest.mark.parametrize("case", FORMULAS)
def test_json_brings_back_a_design_of_equal_predictions(case: str, extrapolation: str) -> None:
    design = fit(FORMULAS[case], extrapolation=extrapolation)
    again = Design.from_json(json.loads(json.dumps(design.to_json())))
    assert again.terms == design.terms
    assert (again.columns, again.intercept, again.rows) == (design.columns, design.intercept, ROWS)
    assert len(again.features) == len(design.features)
    for found, wanted in zip(again.features, design.features, strict=True):
        assert (found.expression, found.basis) == (wanted.expression, wanted.basis)
        np.testing.assert_array_equal(found.transform, wanted.transform)
        np.testing.assert_array_equal(found.eigenvalues, wanted.eigenvalues)
        assert (found.null_dimension, found.distinct, found.rank) == (
            wanted.null_dimension, wanted.distinct, wanted.rank,
        )  # fmt: skip
    new = DATA.assign(x=DATA["x"] * 1.3 - 0.2)  # leaves the range on both sides
    np.testing.assert_array_equal(predictions(again, new), predictions(design, new))


def predictions(design: Design, data: pd.DataFrame) -> np.ndarray:
    """Of a model with random weights, the same for equal designs."""
    graph = build_graph(design, "gaussian", 1.0, 2.0, seed=0)
    model = keras.Model(graph.inputs, graph.response)
    rng = np.random.default_rng(0)
    model.set_weights([rng.normal(size=weight.shape) for weight in model.weights])
    columns = read_columns(data, design.columns, design.columns)
    tensors = {
        name: tf.constant(values.tolist() if values.dtype == object else values)
        for name, values in columns.items()
    }
    found = np.asarray(model(tensors))
    assert np.isfinite(found).all()
    assert found.std() > 0
    return found


def test_json_is_tested_for_every_kind_of_term() -> None:
    kinds = {type(term) for formula in FORMULAS.values() for term in fit(formula).terms}
    assert kinds == set(TERMS.values())
    assert kinds == {LinearTerm, SmoothTerm, TensorTerm, InteractionTerm, OffsetTerm}


def test_an_offset_is_its_expression() -> None:
    design = fit("s(x) + offset(log(z))")
    (term,) = design.of_kind(OffsetTerm)
    columns = read_columns(DATA, design.columns)
    np.testing.assert_allclose(term.evaluate(columns), np.log(DATA["z"]))


def test_layer_names_are_ones_that_tensorflow_takes() -> None:
    data = DATA.rename(columns={"x": "größe", "z": "数"})
    design = fit("s(größe) + ahofm(größe, 数)", data)
    for term in design.terms:
        with tf.Graph().as_default(), tf.name_scope(term.name):
            pass


def test_rows_may_be_read_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    formula = 's(skewed, df=6) + s(g) + s(hour, bs="cp")'
    whole = fit(formula)
    monkeypatch.setattr(features, "_CHUNK", 37)
    chunked = fit(formula)
    for found, wanted in zip(chunked.features, whole.features, strict=True):
        gap = np.abs(found.eigenvalues - wanted.eigenvalues).max()
        assert gap <= 1e-8 * wanted.eigenvalues.max()
        assert found.rank == pytest.approx(wanted.rank, abs=1e-6)
