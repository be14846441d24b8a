"""Formulas of thousands of terms are read; those that multiply out without end are refused."""

from __future__ import annotations

import pytest

from ahofm_keras.errors import FormulaError
from ahofm_keras.formula import parse_formula

NAMES = [f"x{number}" for number in range(5000)]


def added(count: int) -> str:
    return " + ".join(NAMES[:count])


@pytest.mark.parametrize("text", ["y ~ .", "y ~ s(.)", "y ~ s(., k=8)", "y ~ ahofm(.)", "y ~ (.)"])
def test_dot_stands_for_five_thousand_columns(text: str) -> None:
    formula = parse_formula(text, ["y", *NAMES])
    assert formula.columns() == NAMES
    assert parse_formula(formula.text) == formula


@pytest.mark.parametrize(
    "text",
    [
        f"y ~ {added(5000)}",
        f"y ~ {' + '.join(f's({name}, k=5)' for name in NAMES)}",
        f"y ~ ({added(2500)}) + ({' + '.join(NAMES[2500:])})",
        f"y ~ 0 + {added(5000)}",
        f"y ~ {':'.join(NAMES)}",
    ],
    ids=["columns", "smooths", "brackets", "no intercept", "one interaction"],
)
def test_five_thousand_terms_are_read_in_their_order(text: str) -> None:
    assert parse_formula(text).columns() == NAMES


@pytest.mark.parametrize(
    "away", [" - ".join(NAMES[:2500]), f"({added(2500)})"], ids=["one by one", "in brackets"]
)
def test_thousands_of_columns_are_taken_away(away: str) -> None:
    assert parse_formula(f"y ~ . - {away}", ["y", *NAMES]).columns() == NAMES[2500:]


def test_carets_in_a_sum_of_thousands_stand_under_the_term() -> None:
    text = f"y ~ {added(3000)} + s(x1):z + {' + '.join(NAMES[3000:])}"
    with pytest.raises(FormulaError) as caught:
        parse_formula(text)
    assert caught.value.span is not None
    assert text[slice(*caught.value.span)] == "s(x1):z"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (f"y ~ ({added(140)})**2", 140 + 140 * 139 // 2),
        (f"y ~ ({added(30)})**3", 30 + 435 + 4060),
        (f"y ~ {'*'.join(NAMES[:12])}", 2**12 - 1),
        (f"y ~ ({added(99)}):({' + '.join(NAMES[100:199])})", 99 * 99),
        ("y ~ ((((x + z + g)**10)**10)**10)**10", 7),
        (f"y ~ {added(5000)} + ({added(99)})**2", 5000 + 99 * 98 // 2),
    ],
    ids=["square", "cube", "product", "interaction", "power of a power", "beside a long sum"],
)
def test_up_to_ten_thousand_terms_are_multiplied_out(text: str, count: int) -> None:
    assert len(parse_formula(text).terms) == count


@pytest.mark.parametrize(
    "part",
    [
        f"({added(14)})**10",
        f"({added(30)})**5",
        f"({added(142)})**2",
        "*".join(NAMES[:20]),
        "*".join(NAMES[:5000]),
        f"({added(101)}):({' + '.join(NAMES[200:300])})",
        f"({added(101)})*({' + '.join(NAMES[200:300])})",
    ],
    ids=["tenth power", "fifth power", "square", "product", "long product", "interaction", "crossed"],
)
@pytest.mark.parametrize("frame", ["{}", "z + ({})", "z + (({}) - x1)"])
def test_more_than_ten_thousand_terms_are_refused(part: str, frame: str) -> None:
    text = f"y ~ {frame.format(part)}"
    with pytest.raises(FormulaError) as caught:
        parse_formula(text)
    assert caught.value.message == "This multiplies out to more than 10,000 terms."
    assert caught.value.span == (text.index(part), text.index(part) + len(part))


def test_terms_of_all_products_together_are_counted() -> None:
    squares = [f"({' + '.join(NAMES[start : start + 99])})**2" for start in (0, 99, 198)]
    with pytest.raises(FormulaError, match=r"more than 10,000 terms"):
        parse_formula(f"y ~ {' + '.join(squares)}")


@pytest.mark.parametrize(
    "text",
    [
        f"y ~ ({added(99)})**2 - ({added(99)})**2",
        f"y ~ (({added(12)})**10)**10",
        f"y ~ {added(5000)} - ({added(2500)})",
    ],
    ids=["taken away", "power of a power", "long sums"],
)
def test_what_patsy_would_pair_for_minutes_is_refused(text: str) -> None:
    with pytest.raises(FormulaError, match=r"pairs terms with terms more than 1,000,000 times"):
        parse_formula(text)


@pytest.mark.parametrize("count", [1, 50, 90])
def test_long_arithmetic_is_read(count: int) -> None:
    assert parse_formula(f"y ~ I({' + '.join(['x'] * count)})").columns() == ["x"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"y ~ I({' + '.join(['x'] * 900)})", "is nested more than 100 deep"),
        (f"y ~ I({'-' * 900}x)", "is nested more than 100 deep"),
        (f"y ~ {'(' * 51}x{')' * 51}", "Brackets are nested more than 50 deep."),
        (f"y ~ {'log(' * 51}x{')' * 51}", "Brackets are nested more than 50 deep."),
        (f"y ~ x{' + z - z' * 1000}", "nested too deeply"),
        (f"y ~ {'*'.join(['x'] * 1000)}", "nested too deeply"),
    ],
    ids=["sum", "signs", "brackets", "calls", "changing signs", "repeated product"],
)
def test_what_is_nested_too_deeply_is_refused(text: str, reason: str) -> None:
    with pytest.raises(FormulaError) as caught:
        parse_formula(text)
    assert reason in caught.value.message
