"""A table: bad call of a function or a term -> the whole message, carets under the place."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ahofm_keras.errors import FormulaError

DEGREE = "The degree of `poly()` must be a whole number from 1 to 10."
NESTED = "`poly()` and `C()` cannot stand inside another function or in arithmetic."
SIGNS = "Known: `+`, `-`, `*`, `/`, `**`."

# Each row: the formula, its carets, the message above them.
Row = tuple[str, str, str]

FUNCTIONS: list[Row] = [
    ("y ~ s(x + z)",
     "      ^^^^^",
     "Arithmetic stands in `I(...)`: write `I(x + z)`."),
    ("y ~ s(-µ)",
     "      ^^",
     "Arithmetic stands in `I(...)`: write `I(-µ)`."),
    ("y ~ log(x, 2)",
     "    ^^^^^^^^^",
     "`log()` takes 1 argument, received 2."),
    ("y ~ poly(x)",
     "    ^^^^^^^",
     "`poly()` takes 2 arguments, received 1."),
    ("y ~ poly(x, degree=2)",
     "    ^^^^^^^^^^^^^^^^^",
     "`poly()` takes no keyword arguments."),
    ("y ~ poly(x, 0)",
     "            ^",
     DEGREE),
    ("y ~ poly(x, 2.0)",
     "            ^^^",
     DEGREE),
    ("y ~ poly(x, z)",
     "            ^",
     DEGREE),
    ("y ~ log(poly(x, 2))",
     "        ^^^^^^^^^^",
     NESTED),
    ("y ~ scale(C(g))",
     "          ^^^^",
     NESTED),
    ("y ~ I(C(g) + 1)",
     "      ^^^^",
     NESTED),
    ("y ~ I(-C(g))",
     "       ^^^^",
     NESTED),
    ("y ~ s(I(poly(x, 2) * z))",
     "        ^^^^^^^^^^",
     NESTED),
    ("y ~ C(log(g))",
     "    ^^^^^^^^^",
     "`C()` takes one column, e.g. `C(group)`."),
    ("y ~ C(x + z)",
     "    ^^^^^^^^",
     "`C()` takes one column, e.g. `C(group)`."),
    ("y ~ np.log(x)",
     "    ^^^^^^",
     "`np.log` cannot be called in a formula: write `log(x)`."),
    ("y ~ I(x // 2)",
     "      ^^^^^^",
     f"`//` is not known here. {SIGNS}"),
    ("y ~ s(x % 2)",
     "      ^^^^^",
     f"`%` is not known here. {SIGNS}"),
    ("y ~ I(not x)",
     "      ^^^^^",
     f"`not` is not known here. {SIGNS}"),
    ("y ~ I(x > 2)",
     "      ^^^^^",
     f"`>` is not known here. {SIGNS}"),
    ("y ~ log(*x)",
     "        ^^",
     "`*` cannot stand before an argument."),
    ("y ~ log(**x)",
     "        ^^^",
     "`**` cannot stand before an argument."),
    ("y ~ I(x * scale(2))",
     "          ^^^^^^^^",
     "`scale(2)` uses no column."),
    ("y ~ I(2)",
     "    ^^^^",
     "`I(2)` uses no column."),
    ("y ~ I(x * log(0))",
     "          ^^^^^^",
     "`log(0)` is no finite number."),
    ("y ~ I(x * (1 / 0))",
     "           ^^^^^",
     "`1 / 0` is no finite number."),
    ("y ~ I(x + 9**9**9)",
     "          ^^^^^^^",
     "`9**9**9` is no finite number."),
    ("y ~ x + log(2)",
     "        ^^^^^^",
     "`log(2)` uses no column."),
    ("y ~ I(x * 1e999)",
     "          ^^^^^",
     "This number is too large."),
]  # fmt: skip

TERMS: list[Row] = [
    ("y ~ s(x, z)",
     "    ^^^^^^^",
     "`s()` takes 1 feature, received 2. Interactions are written `ahofm(x1, x2)`."),
    ("y ~ s()",
     "    ^^^",
     "`s()` takes 1 feature, received 0."),
    ("y ~ ahofm(x)",
     "    ^^^^^^^^",
     "`ahofm()` takes at least 2 features, received 1."),
    ("y ~ x + offset(x, z)",
     "        ^^^^^^^^^^^^",
     "`offset()` takes 1 feature, received 2."),
    ("y ~ afm(x, x)",
     "           ^",
     "`x` stands twice in `afm()`."),
    ("y ~ s(x) + s(x, k=3)",
     "           ^^^^^^^^^",
     "`s(x)` stands twice in the formula."),
    ("y ~ s(x) + s(I(x))",
     "           ^^^^^^^",
     "`s(x)` stands twice in the formula."),
    ("y ~ z + offset(x) + offset(I(x))",
     "                    ^^^^^^^^^^^^",
     "`offset(x)` stands twice in the formula."),
    ("y ~ afm(x, z) + ahofm(z, x)",
     "                ^^^^^^^^^^^",
     "`ahofm(z, x)` stands twice in the formula."),
    ("y ~ hofm(x, z, g, D=3) + hofm(g, z, x, orders=3)",
     "                         ^^^^^^^^^^^^^^^^^^^^^^^",
     "`hofm(g, z, x)` stands twice in the formula."),
    ("y ~ x + offset(C(g))",
     "               ^^^^",
     "`C()` holds categories and cannot stand in `offset()`."),
    ("y ~ offset(x):z",
     "    ^^^^^^^^^^^",
     "`offset()` cannot be multiplied with `:` or `*`."),
    ("y ~ s(k=3, x)",
     "    ^^^^^^^^^",
     "`s(k=3, x)` has an option before a feature: options come last, as in `s(x, k=10)`."),
    ("y ~ s(**x)",
     "      ^^^",
     "`**` cannot stand before an argument."),
    ("y ~ s(x):z",
     "    ^^^^^^",
     "`s()` cannot be multiplied with `:` or `*`. "
     "Interactions of smooths are written `ahofm(x1, x2)`."),
    ("y ~ s(s(x))",
     "      ^^^^",
     "`s()` cannot stand inside another call."),
    ("y ~ s(poly(x, 2))",
     "      ^^^^^^^^^^",
     "`poly()` has several columns and cannot stand in `s()`."),
]  # fmt: skip

OPTIONS: list[Row] = [
    ("y ~ s(x, foo=3)",
     "         ^^^^^",
     "Unknown argument `foo` of `s()`. Known: `bs`, `df`, `k`, `knots`, `sp`."),
    ("y ~ afm(x, z, D=3)",
     "              ^^^",
     "Unknown argument `D` of `afm()`. Known: `F`, `center`, `df`, `k`, `knots`, `main`."),
    ("y ~ s(x, k=1)",
     "         ^^^",
     "`k` of `s()` must be a whole number of at least 2.\n    Received: k=1."),
    ("y ~ s(x, k=True)",
     "         ^^^^^^",
     "`k` of `s()` must be a whole number of at least 2.\n    Received: k=True."),
    ("y ~ s(x, df=0)",
     "         ^^^^",
     "`df` of `s()` must be a number above 0.\n    Received: df=0."),
    ("y ~ s(x, sp=-1)",
     "         ^^^^^",
     "`sp` of `s()` must be a number of at least 0.\n    Received: sp=-1."),
    ('y ~ s(x, bs="tp")',
     '         ^^^^^^^',
     "`bs` of `s()` must be one of 'ps', 'cp', 're'.\n    Received: bs=\"tp\"."),
    ("y ~ s(x, knots=(24, 0))",
     "         ^^^^^^^^^^^^^",
     "`knots` of `s()` must be the two ends of the axis in rising order, e.g. (0, 24).\n"
     "    Received: knots=(24, 0)."),
    ("y ~ s(x, knots=odd)",
     "         ^^^^^^^^^",
     "`knots` of `s()` must be one of 'adaptive', 'even', 'quantile', "
     "or the two ends of the axis, e.g. (0, 24).\n    Received: knots=odd."),
    ("y ~ s(x, df=3, sp=1)",
     "    ^^^^^^^^^^^^^^^^",
     "`s()` takes `df` or `sp`, not both."),
    ('y ~ s(g, bs="re", k=3)',
     '    ^^^^^^^^^^^^^^^^^^',
     '`k` has no meaning with bs="re".'),
    ('y ~ s(C(g), bs="ps")',
     '    ^^^^^^^^^^^^^^^^',
     '`C(g)` is a category: leave out `bs`, or use bs="re".'),
    ("y ~ ahofm(x, z, D=4)",
     "    ^^^^^^^^^^^^^^^^",
     "`D` of `ahofm()` must lie between 2 and its number of features.\n"
     "    Received: D=4 with 2 features (`x`, `z`)."),
    ("y ~ ahofm(x, z, D=2, orders=2)",
     "    ^^^^^^^^^^^^^^^^^^^^^^^^^^",
     "`ahofm()` takes `D` or `orders`, not both."),
    ("y ~ hofm(x, z, orders=(2, 3))",
     "    ^^^^^^^^^^^^^^^^^^^^^^^^^",
     "`orders` of `hofm()` must not exceed its number of features.\n"
     "    Received: orders=(2, 3) with 2 features (`x`, `z`)."),
    ("y ~ ahofm(x, z, orders=(2, 2))",
     "                ^^^^^^^^^^^^^",
     "`orders` of `ahofm()` must be a tuple of different whole numbers of at least 2, "
     "e.g. (2, 3).\n    Received: orders=(2, 2)."),
    ("y ~ ahofm(x, z, F=0)",
     "                ^^^",
     "`F` of `ahofm()` must be a whole number of at least 1, or a tuple of them, one an order.\n"
     "    Received: F=0."),
    ("y ~ ahofm(x, z, F=(10, 5))",
     "    ^^^^^^^^^^^^^^^^^^^^^^",
     "`F` of `ahofm()` needs one number an order of interaction (1: order 2).\n"
     "    Received: F=(10, 5)."),
    ("y ~ ahofm(x, z, g, D=3, df=(9, 5))",
     "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
     "`df` of `ahofm()` needs one number an order (3: order 1, order 2, order 3).\n"
     "    Received: df=(9, 5)."),
    ("y ~ ahofm(x, z, main=1)",
     "                ^^^^^^",
     "`main` of `ahofm()` must be one of True, False.\n    Received: main=1."),
    ("y ~ ahofm(x, z, k={x: 1})",
     "                ^^^^^^^^",
     "`k` of `ahofm()` must be a dict from feature to a whole number of at least 2.\n"
     "    Received: k={x: 1}."),
    ("y ~ ahofm(x, z, df={1: 3})",
     "                    ^",
     "A dict here goes from a feature's name to its value."),
    ("y ~ ahofm(x, z, k={g: 5})",
     "                   ^",
     "`k` of `ahofm()` names `g`, which is not one of its features (`x`, `z`)."),
    ('y ~ ahofm(x, z, df={"x": 3, "q": 3})',
     '                            ^^^',
     "`df` of `ahofm()` names `q`, which is not one of its features (`x`, `z`)."),
    ("y ~ ahofm(x, z, k={x: 5, x: 6})",
     "                         ^",
     "`k` of `ahofm()` names `x` twice."),
    ("y ~ s(x, k=5, k=6)",
     "              ^^^",
     "`k` stands twice in `s()`."),
    ("y ~ s(x, ｋ=5)",
     "         ^^^",
     "Unknown argument `ｋ` of `s()`. Known: `bs`, `df`, `k`, `knots`, `sp`."),
    ("y ~ s(x, df=1e999)",
     "         ^^^^^^^^",
     "`df` of `s()` must be a finite number above 0.\n    Received: df=1e999."),
    ("y ~ s(x, knots=(0, 1e999))",
     "         ^^^^^^^^^^^^^^^^",
     "`knots` of `s()` must be the two ends of the axis in rising order, e.g. (0, 24).\n"
     "    Received: knots=(0, 1e999)."),
    ("y ~ s(C(g), k=4)",
     "    ^^^^^^^^^^^^",
     "`k` has no meaning for the category `C(g)`."),
    ("y ~ ahofm(x, z, g, orders=(3, 2), F=(9, 5, 1))",
     "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
     "`F` of `ahofm()` needs one number an order of interaction (2: order 3, order 2).\n"
     "    Received: F=(9, 5, 1)."),
    ("y ~ s(x, k=5 + 5)",
     "           ^^^^^",
     "`5 + 5` is no plain value: a number, text, tuple, dict, True, False or None was expected."),
]  # fmt: skip

TABLE = [*FUNCTIONS, *TERMS, *OPTIONS]


@pytest.mark.parametrize(("text", "carets", "message"), TABLE, ids=[row[0] for row in TABLE])
def test_bad_call_gives_the_whole_message(
    text: str, carets: str, message: str, check_message: Callable[[str, str, str], None]
) -> None:
    check_message(text, carets, message)


@pytest.mark.parametrize("option", ["df", "sp"])
def test_number_of_four_hundred_digits_is_too_large_for_an_option(
    option: str, formula_error: Callable[[str], FormulaError]
) -> None:
    error = formula_error(f"y ~ s(x, {option}=1{'0' * 400})")
    assert error.message.startswith(f"`{option}` of `s()` must be a finite number")
    assert error.span == (9, 413)


def test_number_of_four_hundred_digits_is_too_large_for_arithmetic(
    formula_error: Callable[[str], FormulaError],
) -> None:
    assert formula_error(f"y ~ I(x * 1{'0' * 400})").message == "This number is too large."
