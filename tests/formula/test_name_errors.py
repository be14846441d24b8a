"""A table: names and dots that stand for no column -> the whole message, carets under the place."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ahofm_keras.errors import FormulaError
from ahofm_keras.formula import parse_formula

KNOWN = (
    "    Known terms: `afm`, `ahofm`, `deep`, `fm`, `grouplasso`, `hofm`, `lasso`, `offset`, `ridge`, "
    "`s`, `te`, `ti`.\n"
    "    Known functions: `C`, `I`, `Q`, `abs`, `center`, `cos`, `exp`, `expm1`, `log`, `log10`, "
    "`log1p`, `log2`, `poly`, `scale`, `sin`, `sqrt`, `tanh`."
)
DOT = (
    "`.` cannot stand here: it is a term, or a feature of `afm()`, `ahofm()`, `deep()`, `fm()`, "
    "`grouplasso()`, `hofm()`, `lasso()`, `ridge()`, `s()`, `te()`, `ti()`."
)
QUOTE = '`Q()` takes a column\'s name as text, e.g. `Q("a b")`.'

# Each row: the formula, its carets, the message above them.
Row = tuple[str, str, str]

NAMES: list[Row] = [
    ("y ~ class",
     "    ^^^^^",
     '`class` cannot be read. A column of that name is written `Q("class")`.'),
    ("y ~ x + s(class, k=3)",
     "          ^^^^^",
     '`class` cannot be read. A column of that name is written `Q("class")`.'),
    ("y ~ lambda + x",
     "    ^^^^^^",
     '`lambda` cannot be read. A column of that name is written `Q("lambda")`.'),
    ("y ~ nan",
     "    ^^^",
     '`nan` is a number and no term. A column of that name is written `Q("nan")`.'),
    ("y ~ s(Infinity)",
     "      ^^^^^^^^",
     '`Infinity` is a number and no term. A column of that name is written `Q("Infinity")`.'),
    ("y ~ x + 1st",
     "        ^^^",
     '`1st` is no number. A column of that name is written `Q("1st")`.'),
    ("y ~ ٣",
     "    ^",
     '`٣` is no name. A column of that name is written `Q("٣")`.'),
    ("y ~ a.class",
     "    ^^^^^^^",
     "`a.class` cannot be read."),
    ("y ~ s(a.b)",
     "      ^^^",
     '`a.b` is no column name: write `Q("a.b")`.'),
    ("y ~ Q(x)",
     "    ^^^^",
     QUOTE),
    ('y ~ Q("x", "z")',
     '    ^^^^^^^^^^^',
     QUOTE),
    ('y ~ Q("")',
     '    ^^^^^',
     QUOTE),
    ('y ~ "x"',
     '    ^^^',
     '`"x"` is text and no column. Write `x`, or `Q("x")`.'),
    ('y ~ s("x")',
     '      ^^^',
     '`"x"` is text and no column. Write `x`, or `Q("x")`.'),
    ('y ~ C("a b")',
     '      ^^^^^',
     '`"a b"` is text and no column. Write `Q("a b")`.'),
    ("y ~ ｌｏｇ(x)",
     "    ^^^",
     f"Unknown term `ｌｏｇ`.\n{KNOWN}"),
    ("y ~ smo(x)",
     "    ^^^",
     f"Unknown term `smo`.\n{KNOWN}"),
    ("y ~ x + ahofn(x, z)",
     "        ^^^^^",
     f"Unknown term `ahofn`. Did you mean `ahofm`?\n{KNOWN}"),
    ("y ~ µ + 日本 + logg(x)",
     "             ^^^^",
     f"Unknown term `logg`. Did you mean `log`?\n{KNOWN}"),
    ("y ~ ahofm(., D=2) + . + logg(x)",
     "                        ^^^^",
     f"Unknown term `logg`. Did you mean `log`?\n{KNOWN}"),
]  # fmt: skip

DOTS: list[Row] = [
    (". ~ x",
     "^",
     "`.` cannot stand for the response."),
    ("log(.) ~ x",
     "^^^^^^",
     "`.` cannot stand for the response."),
    ("y ~ z .",
     "    ^^^",
     "An operator is missing before `.`."),
    ("y ~ x . z",
     "    ^^^",
     "An operator is missing before `.`."),
    ("y ~ . z",
     "    ^^^",
     "An operator is missing after `.`."),
    ("y ~ s(x, k=.)",
     "           ^",
     DOT),
    ("y ~ log(.)",
     "        ^",
     DOT),
    ("y ~ s(log(.))",
     "          ^",
     DOT),
    ("y ~ x + offset(.)",
     "               ^",
     DOT),
    ("y ~ ahofm(. + x)",
     "          ^",
     DOT),
    ("y ~ ahofm(. - x)",
     "          ^^^^^",
     "Write `ahofm(.) - x`."),
    ("y ~ s(. - x - z, k=5)",
     "      ^^^^^^^^^",
     "Write `s(.) - x - z`."),
    ("y ~ s(x, .)",
     "         ^",
     "`.` in `s()` must be its only feature: a term for each column."),
    ("y ~ s(., k=1)",
     "         ^^^",
     "`k` of `s()` must be a whole number of at least 2.\n    Received: k=1."),
    ("y ~ s(.):z",
     "    ^^^^^^",
     "`s()` cannot be multiplied with `:` or `*`. "
     "Interactions of smooths are written `ti(x1, x2)` or `ahofm(x1, x2)`."),
    ("y ~ z + s(.) + s(x, k=3)",
     "               ^^^^^^^^^",
     "`s(x)` stands twice in the formula."),
    ("y ~ ahofm(x, .)",
     "             ^",
     "`x` stands twice in `ahofm()`."),
]  # fmt: skip

TABLE = [*NAMES, *DOTS]


@pytest.mark.parametrize(("text", "carets", "message"), TABLE, ids=[row[0] for row in TABLE])
def test_bad_name_gives_the_whole_message(
    text: str, carets: str, message: str, check_message: Callable[[str, str, str], None]
) -> None:
    check_message(text, carets, message)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (None, "`.` needs data to take its columns from."),
        (["y"], "`.` stands for no column here."),
        (
            ["y", "x", ""],
            "`.` stands for a column without a name, which no formula can write: rename it.",
        ),
    ],
)
def test_dot_without_columns_gives_the_whole_message(columns: list[str] | None, message: str) -> None:
    with pytest.raises(FormulaError) as caught:
        parse_formula("y ~ s(x) + .", columns)
    assert str(caught.value) == f"{message}\n    y ~ s(x) + .\n               ^"
