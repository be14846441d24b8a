"""A table: bad formula -> the whole message, carets under the place."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ahofm_keras.errors import FormulaError
from ahofm_keras.formula import parse_formula

TILDE = "A formula needs one `~` between the response and the terms, e.g. `y ~ s(x1) + s(x2)`."
EMPTY = "The formula has neither an intercept nor a term. Add one, e.g. `s(x1)`."
RESPONSE = "A formula has one response, a column or an expression such as `log(y)`."
POWER = "A power of terms must be a whole number from 1 to 10; for arithmetic write `I(x**2)`."
SUM = "A power multiplies out a sum of terms, e.g. `(x + z)**2`"
KNOWN_SIGNS = "Known: `+`, `-`, `*`, `/`, `:`, `**`."
INTERCEPT = "is no term: `1` is the intercept, `0` none. Arithmetic stands in `I(...)`."
# Each row: the formula, its carets (empty: none are drawn), the message above them.
Row = tuple[str, str, str]

SHAPE: list[Row] = [
    ("y",
     "",
     TILDE),
    ("y == x",
     "",
     TILDE),
    ("y ~ x ~ z",
     "      ^",
     TILDE),
    ("y ~ s(x ~ z)",
     "        ^",
     TILDE),
    ("~ x",
     "^",
     "The response is missing before `~`."),
    ("y ~",
     "  ^",
     "There is no term after `~`."),
    ("y ~ x + s(z",
     "         ^",
     "`(` is never closed."),
    ("y ~ x) + z",
     "     ^",
     "`)` closes nothing."),
    ("y ~ s(x] + z",
     "       ^",
     "`]` does not close `(`."),
    ('y ~ Q("a b) + z',
     '      ^',
     "This quote is never closed."),
    ("y ~ x # all of it",
     "      ^",
     "A formula has no comments: leave out `#`."),
    ("y ~ 0",
     "    ^",
     EMPTY),
    ("y ~ x - x - 1",
     "    ^^^^^^^^^",
     EMPTY),
    ("y ~ 0 - x",
     "    ^^^^^",
     EMPTY),
    ("y ~ 0 + offset(x)",
     "    ^^^^^^^^^^^^^",
     EMPTY),
    ("y ~ (x + z)**11",
     "             ^^",
     POWER),
    ("y ~ ((x + z)**11)",
     "              ^^",
     POWER),
    ("y ~ (x + z)**g",
     "             ^",
     POWER),
    ("y ~ (x + z)**0",
     "             ^",
     POWER),
    ("y ~ (x + z)**-1",
     "             ^",
     POWER),
    ("y ~ (x + z)**",
     "           ^^",
     POWER),
    ("y ~ x**2",
     "    ^^^^",
     f"{SUM}; for arithmetic write `I(x**2)`."),
    ("y ~ z + x**2:z",
     "        ^^^^",
     f"{SUM}; for arithmetic write `I(x**2)`."),
    ("y ~ log(x)**2",
     "    ^^^^^^^^^",
     f"{SUM}; for arithmetic write `I(log(x)**2)`."),
    ("y ~ s(x)**2",
     "    ^^^^^^^",
     f"{SUM}."),
    ("y ~ (x:z)**2",
     "    ^^^^^^^^",
     f"{SUM}."),
]  # fmt: skip

OPERATORS: list[Row] = [
    ("y ~ x +",
     "      ^",
     "A term is missing after `+`."),
    ("y ~ (x + ) + z",
     "       ^",
     "A term is missing after `+`."),
    ("y ~ x + * z",
     "      ^",
     "A term is missing after `+`."),
    ("y ~ x:",
     "     ^",
     "A term is missing after `:`."),
    ("y ~ * x",
     "    ^",
     "A term is missing before `*`."),
    ("y ~ x + (/ z)",
     "         ^",
     "A term is missing before `/`."),
    ("y ~ ()",
     "    ^^",
     "The brackets are empty."),
    ("y ~ x + ( )",
     "        ^^^",
     "The brackets are empty."),
    ("y ~ - x",
     "    ^^^",
     "`-` takes a term away and needs one before it; for the negative write `I(-x)`."),
    ("y ~ z + (-x)",
     "         ^^",
     "`-` takes a term away and needs one before it; for the negative write `I(-x)`."),
    ("y ~ - s(x) + z",
     "    ^^^^^^",
     "`-` takes a term away and needs one before it."),
    ("y ~ x + -1",
     "      ^^^",
     "Two signs stand side by side: write `- 1`."),
    ("y ~ x - - z",
     "      ^^^",
     "Two signs stand side by side: write `+ z`."),
    ("y ~ x +++ z",
     "      ^^",
     "Two signs stand side by side: leave one out."),
    ("y ~ 2*x",
     "    ^^^",
     "Arithmetic stands in `I(...)`: write `I(2*x)`."),
    ("y ~ z + x/100",
     "        ^^^^^",
     "Arithmetic stands in `I(...)`: write `I(x/100)`."),
    ("y ~ x + 2",
     "        ^",
     f"`2` {INTERCEPT}"),
    ("y ~ x + 1.0",
     "        ^^^",
     f"`1.0` {INTERCEPT}"),
    ("y ~ x:1",
     "      ^",
     "`1` cannot be multiplied with a term: leave it out."),
    ("y ~ (x + 0):z",
     "         ^",
     "`0` cannot be multiplied with a term: leave it out."),
    ("y ~ (x - 1)**2",
     "         ^",
     "`1` cannot be multiplied with a term: leave it out."),
    ("y ~ (x + z)^2",
     "           ^",
     "Powers are written `**`."),
    ("y ~ x ^ 2",
     "      ^",
     f"`^` is not known here. {KNOWN_SIGNS} A power is written `**`."),
    ("y ~ x | z",
     "      ^",
     f"`|` is not known here. {KNOWN_SIGNS} A random intercept of `g` is `(1 | g)` in brackets, or `s(g)`."),
    ("y ~ (1 | g / h)",
     "         ^^^",
     "After `|` stands one column, whose levels have the effects: `(1 | g) + (1 | h)`. "
     'An effect per pair of levels is `s(g, h, bs="re")`.'),
    ("y ~ (x:z | g)",
     "     ^",
     "Before `|` stand columns with `+` between them, or `1`, e.g. `(1 + x | g)`."),
    ("y ~ (. | g)",
     "     ^",
     "Before `|` stand columns with `+` between them, or `1`, e.g. `(1 + x | g)`."),
    ("y ~ (1 | )",
     "       ^",
     "A column is missing after `|`: random effects are written `(1 + x | g)`."),
    ("y ~ (0 | g)",
     "    ^^^^^^^",
     "`0` takes the intercept away, and nothing is left."),
    ("y ~ x %in% z",
     "      ^",
     f"`%` is not known here. {KNOWN_SIGNS}"),
    ("y ~ x, z",
     "     ^",
     f"`,` is not known here. {KNOWN_SIGNS}"),
    ("y ~ (x == z)",
     "       ^^",
     f"`==` is not known here. {KNOWN_SIGNS}"),
    ("y ~ x and z",
     "      ^^^",
     f"`and` is not known here. {KNOWN_SIGNS}"),
    ("y ~ x + not z",
     "        ^^^",
     f"`not` is not known here. {KNOWN_SIGNS}"),
    ("y ~ lambda: x",
     "    ^^^^^^",
     f"`lambda` is not known here. {KNOWN_SIGNS}"),
    ("y ~ x z",
     "    ^^^",
     "An operator is missing between `x` and `z`, e.g. `+`."),
    ("y ~ x 2",
     "    ^^^",
     "An operator is missing between `x` and `2`, e.g. `+`."),
    ("y ~ s(x) s(z)",
     "         ^",
     "An operator is missing before `s`, e.g. `+`."),
    ("y ~ (x + z)(g)",
     "           ^",
     "An operator is missing before `(`, e.g. `+`."),
    ("y ~ s(x z)",
     "      ^^^",
     "`,` or an operator is missing between `x` and `z`."),
    ("y ~ s(x k=3)",
     "      ^^^",
     "`,` or an operator is missing between `x` and `k`."),
    ("y ~ x $ z",
     "      ^",
     "`$` has no meaning in a formula."),
    ("y ~ (x + z)**²",
     "             ^",
     "`²` has no meaning in a formula."),
    ("y ~ x²",
     "     ^",
     "`²` has no meaning in a formula."),
]  # fmt: skip

RESPONSES: list[Row] = [
    ("y + z ~ x",
     "^^^^^",
     RESPONSE),
    ("1 ~ x",
     "^",
     RESPONSE),
    ("y:z ~ x",
     "^^^",
     RESPONSE),
    ("y/100 ~ x",
     "^^^^^",
     "Arithmetic stands in `I(...)`: write `I(y/100)`."),
    ("s(y) ~ x",
     "^^^^",
     "`s()` is a term and cannot be the response."),
    ("C(y) ~ x",
     "^^^^",
     "`C()` cannot be the response, which is one column of numbers."),
    ("poly(y, 2) ~ x",
     "^^^^^^^^^^",
     "`poly()` cannot be the response, which is one column of numbers."),
    ("log(2) ~ x",
     "^^^^^^",
     "`log(2)` uses no column."),
    ("y ~ x + y",
     "        ^",
     "The response `y` cannot stand among the terms too."),
    ("cbind(y, 3) ~ x",
     "         ^",
     "`3` uses no column."),
    ("cbind(y) ~ x",
     "^^^^^^^^",
     "`cbind()` takes 2 columns, received 1."),
    ("Surv(y) ~ x",
     "^^^^^^^",
     "`Surv()` takes 2 or 3 columns, received 1."),
    ("Surv(y, event=d) ~ x",
     "^^^^^^^^^^^^^^^^",
     "`Surv()` takes no keyword arguments."),
    ("cbind(*y, z) ~ x",
     "      ^^",
     "`*` cannot stand before an argument."),
    ("cbind(C(y), z) ~ x",
     "      ^^^^",
     "`poly()` and `C()` cannot stand inside another function or in arithmetic."),
    ("log(cbind(y, z)) ~ x",
     "    ^^^^^^^^^^^",
     "`cbind()` is a response of several columns: it stands alone, left of `~`."),
    ("y ~ cbind(x, z)",
     "    ^^^^^^^^^^^",
     "`cbind()` is a response of several columns: it stands alone, left of `~`."),
    ("y ~ s(Surv(x, z))",
     "      ^^^^^^^^^^",
     "`Surv()` is a response of several columns: it stands alone, left of `~`."),
    ("cbind(k, m - k) ~ s(m)",
     "                  ^^^^",
     "The response `m` cannot stand among the terms too."),
    ("log(y) ~ x + s(I(y + x))",
     "             ^^^^^^^^^^^",
     "The response `y` cannot stand among the terms too."),
]  # fmt: skip

TABLE = [*SHAPE, *OPERATORS, *RESPONSES]


@pytest.mark.parametrize(("text", "carets", "message"), TABLE, ids=[row[0] for row in TABLE])
def test_bad_formula_gives_the_whole_message(
    text: str, carets: str, message: str, check_message: Callable[[str, str, str], None]
) -> None:
    check_message(text, carets, message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The formula is empty. Write, for example, `y ~ s(x1) + s(x2)`."),
        (" \n\t ", "The formula is empty. Write, for example, `y ~ s(x1) + s(x2)`."),
        (None, "A formula must be text, e.g. `y ~ s(x1)`. Received: NoneType."),
        (b"y ~ x", "A formula must be text, e.g. `y ~ s(x1)`. Received: bytes."),
        ("y ~ x" + " + x" * 250_000, "The formula is longer than 1,000,000 characters."),
    ],
    ids=["empty", "blank", "none", "bytes", "too long"],
)
def test_what_is_no_formula_gives_the_message_alone(
    text: str, message: str, formula_error: Callable[[str], FormulaError]
) -> None:
    assert str(formula_error(text)) == message


@pytest.mark.parametrize(
    "text",
    [
        "  y ~ x + smo(z)",
        "\n    y ~ x\n    + smo(z)\n",
        "y ~\n    x +\n    smo(z)",
        "y ~ " + "x + " * 40 + "smo(z)",
        "y ~ smo(z)" + " + x" * 40,
        "y ~ " + "x + " * 40 + "smo(z)" + " + x" * 40,
        "µ ~ . + ahofm(.) + smo(z)",
    ],
    ids=["indented", "triple-quoted", "lines", "end of long", "start of long", "amid long", "dots"],
)
def test_carets_are_drawn_under_the_unknown_term(
    text: str, formula_error: Callable[[str], FormulaError]
) -> None:
    *_, shown, carets = str(formula_error(text)).split("\n")
    start = carets.index("^")
    assert shown[start : start + carets.count("^")] == "smo"
    assert len(shown) <= 100


@pytest.mark.parametrize("letter", ["$", "?", "!", "\\", "\0", "\ud800"])
def test_carets_stand_below_a_letter_that_no_formula_has(
    letter: str, formula_error: Callable[[str], FormulaError]
) -> None:
    error = formula_error(f"y ~ x + {letter} + z")
    assert error.span == (8, 9)
    assert error.message.endswith("` has no meaning in a formula.")


@pytest.mark.parametrize(
    ("text", "place"), [("y ~ x + ` + z", 8), ("y ~ s(`km/h`)", 6), ("y ~ x + `a b`", 8)]
)
def test_backticks_are_answered_with_the_way_to_quote(
    text: str, place: int, formula_error: Callable[[str], FormulaError]
) -> None:
    error = formula_error(text)
    assert error.span == (place, place + 1)
    assert error.message == (
        "Backticks have no meaning in a formula. A column whose name is no identifier is written "
        '`Q("km/h")`.'
    )


def test_backticks_inside_a_quoted_name_are_letters() -> None:
    assert parse_formula('y ~ Q("a`b")').columns() == ["a`b"]


@pytest.mark.parametrize(
    "text",
    ["y + " * 500, "y ~ " + "x" * 5000 + "(z)", f"y ~ s({'x' * 5000} // z)", f"y ~ {'x' * 5000}.a"],
    ids=["no tilde", "unknown term", "arithmetic", "attribute"],
)
def test_message_of_a_long_formula_is_cut(
    text: str, formula_error: Callable[[str], FormulaError]
) -> None:
    assert max(map(len, str(formula_error(text)).split("\n"))) < 250
