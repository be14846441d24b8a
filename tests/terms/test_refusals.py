"""What terms cannot reach is warned of, what cannot be is an error."""

from __future__ import annotations

import warnings

import pandas as pd
import pytest

from ahofm_keras.errors import AhofmWarning, DataError, FormulaError
from ahofm_keras.terms import Design, features
from ahofm_keras.terms.smooth import SmoothTerm
from tests.terms.common import DATA, fit

TWICE = (
    "`s(x, z)` and `{other}` both hold functions of `x`: the two cannot be told apart. Leave one out."
)


@pytest.mark.parametrize("other", ["s(x)", "x", "lasso(x)"])
def test_a_coordinate_beside_its_place_is_warned_of(other: str) -> None:
    assert TWICE.format(other=other) in warned(f"s(x, z) + {other}")[1]


def test_products_with_a_place_are_other_functions() -> None:
    assert not warned("s(x, z) + g + s(x, by=g)")[1]


def test_measured_numbers_as_levels_are_warned_of() -> None:
    _, (message,) = warned("(1 | x)")
    assert message.startswith("`s(x)` takes each of the 240 different values of the number `x`")
    assert not warned("(1 | n)", DATA.assign(n=[row % 5 for row in range(len(DATA))]))[1]


# What cannot be reached


def warned(formula: str, data: pd.DataFrame = DATA) -> tuple[Design, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        design = fit(formula, data)
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


@pytest.mark.parametrize("term", ["s(x, k=1001)", "te(x, z, k=(5, 1000000))"])
def test_more_functions_than_any_smooth_needs_are_an_error(term: str) -> None:
    with pytest.raises(FormulaError) as caught:
        fit(term)
    assert str(caught.value).startswith("`k` must not exceed 1,000: ")
    assert term in str(caught.value)


@pytest.mark.parametrize("far", [1e20, -9.97e36])
def test_values_that_stand_for_missing_ones_are_warned_of(far: float) -> None:
    data = DATA.assign(x=DATA.x.where(DATA.index > 0, far))
    _, messages = warned("s(x) + ahofm(x, z, F=1)", data)
    assert len(messages) == 1
    assert messages[0].startswith(f"`x` goes to {far:g}, but nine tenths of its rows lie between ")
    assert not warned("s(x)", DATA.assign(x=DATA.x.where(DATA.index > 0, 1e6)))[1]


def test_thousands_of_levels_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "_MANY_LEVELS", 2)
    _, messages = warned("s(g)")
    assert [message.partition(" levels")[0] for message in messages] == ["`g` has 4"]


def test_fewer_rows_than_coefficients_are_an_error() -> None:
    with pytest.raises(DataError) as caught:
        fit("x + z + w + v", DATA.head(5))
    assert str(caught.value) == (
        "The formula needs at least 6 rows (4 linear coefficients), the data has 5."
    )
    assert len(fit("x + z + w + v", DATA.head(6)).terms) == 4


def test_linear_terms_that_explain_each_other_are_warned_of() -> None:
    data = DATA.assign(double=2 * DATA.x + 1, both=DATA.x - DATA.z)
    _, messages = warned("x + double + z + g + both", data)
    assert messages == [
        "Linear terms explain each other: `double`, `both` can be computed from those before. Their "
        "coefficients cannot be told apart. Leave one out."
    ]
    almost = data.double + 1e-3 * DATA.w
    assert not warned("z + g + g:z + poly(x, 3) + double", data.assign(double=almost))[1]
    assert not warned("0 + x + double", data)[1]


def test_a_line_inside_a_smooth_is_warned_of() -> None:
    _, messages = warned("x + s(x)")
    assert messages == [
        "`x` stands as a linear term and inside `s(x)`, which holds the straight line already: the two "
        "cannot be told apart. Leave one out."
    ]
