"""A table: bad formula -> the whole message, carets under the place; and nothing is ever run."""

from __future__ import annotations

import ast
import builtins
import os
import subprocess
from pathlib import Path

import pytest

import ahofm_keras.formula.parse
from ahofm_keras.errors import FormulaError
from ahofm_keras.formula.parse import parse_formula

COLUMNS = ("y", "x", "z", "g")

KNOWN = (
    "    Known terms: `afm`, `ahofm`, `fm`, `hofm`, `offset`, `s`.\n"
    "    Known functions: `C`, `I`, `Q`, `abs`, `center`, `cos`, `exp`, `expm1`, `log`, `log10`, "
    "`log1p`, `log2`, `poly`, `scale`, `sin`, `sqrt`, `tanh`."
)
TILDE = "A formula needs one `~` between the response and the terms, e.g. `y ~ s(x1) + s(x2)`."
EMPTY = "The formula has no term besides the intercept. Add one, e.g. `s(x1)`."
RESPONSE = "A formula has one response, a column or an expression such as `log(y)`."
POWER = "A power of terms must be a whole number up to 10; for arithmetic write `I(x**2)`."
QUOTE = '`Q()` takes a column\'s name as text, e.g. `Q("a b")`.'
DEGREE = "The degree of `poly()` must be a whole number from 1 to 10."
NESTED = "`poly()` and `C()` cannot stand inside another function."

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
    ("y ~ 1",
     "",
     EMPTY),
    ("y ~ x - x",
     "",
     EMPTY),
    ("y ~ offset(x)",
     "",
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
    (". ~ x",
     "^",
     "`.` cannot stand for the response."),
]  # fmt: skip

RESPONSES: list[Row] = [
    ("y + z ~ x",
     "",
     RESPONSE),
    ("1 ~ x",
     "",
     RESPONSE),
    ("y ~ x + y",
     "        ^",
     "The response `y` cannot stand among the terms too."),
    ("log(y) ~ x + s(I(y + x))",
     "             ^^^^^^^^^^^",
     "The response `y` cannot stand among the terms too."),
]  # fmt: skip

NAMES: list[Row] = [
    ("y ~ class",
     "    ^^^^^",
     '`class` cannot be read. A column of that name is written `Q("class")`.'),
    ("y ~ s(a.b)",
     "      ^^^",
     '`a.b` is no column name: write `Q("a.b")`.'),
    ("y ~ Q(x)",
     "    ^^^^",
     QUOTE),
    ('y ~ Q("x", "z")',
     '    ^^^^^^^^^^^',
     QUOTE),
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
     "    ^^^^^^^^^^^^^^^",
     NESTED),
    ("y ~ scale(C(g))",
     "    ^^^^^^^^^^^",
     NESTED),
    ("y ~ C(log(g))",
     "    ^^^^^^^^^",
     "`C()` takes one column, e.g. `C(group)`."),
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
     "    ^^^^^^^^^^^^^^^^^^^^^",
     "`k` of `ahofm()` names `g`, which is not one of its features."),
    ("y ~ s(x, k=5 + 5)",
     "           ^^^^^",
     "`5 + 5` is no plain value: a number, text, tuple, dict, True, False or None was expected."),
]  # fmt: skip


def no_expression(written: str) -> str:
    return f"`{written}` cannot stand here: a column or a function of columns was expected."


def no_value(written: str) -> str:
    return (
        f"`{written}` is no plain value: a number, text, tuple, dict, True, False or None was expected."
    )


INJECTIONS: list[Row] = [
    ('y ~ s(__import__("os").system("id"))',
     '      ^^^^^^^^^^^^^^^^^^^^^^^',
     '`__import__("os").system` cannot be called in a formula.'),
    ('y ~ __import__("os")',
     '    ^^^^^^^^^^',
     f"Unknown term `__import__`.\n{KNOWN}"),
    ('y ~ x + eval("1")',
     '        ^^^^',
     f"Unknown term `eval`.\n{KNOWN}"),
    ('exec("import os") ~ x',
     '^^^^',
     f"Unknown term `exec`.\n{KNOWN}"),
    ('y ~ os.system("id")',
     '    ^^^^^^^^^',
     "`os.system` cannot be called in a formula."),
    ("y ~ s((lambda: x)())",
     "       ^^^^^^^^^",
     "`lambda: x` cannot be called in a formula."),
    ("y ~ s(lambda: x)",
     "      ^^^^^^^^^",
     no_expression("lambda: x")),
    ("y ~ s([x for x in z])",
     "      ^^^^^^^^^^^^^^",
     no_expression("[x for x in z]")),
    ("y ~ I({x: z for x in z})",
     "      ^^^^^^^^^^^^^^^^^",
     no_expression("{x: z for x in z}")),
    ("y ~ s(x.__class__)",
     "      ^^^^^^^^^^^",
     '`x.__class__` is no column name: write `Q("x.__class__")`.'),
    ("y ~ s(().__class__.__bases__[0])",
     "      ^^^^^^^^^^^^^^^^^^^^^^^^^",
     no_expression("().__class__.__bases__[0]")),
    ("y ~ x[0]",
     "    ^^^^",
     no_expression("x[0]")),
    ('y ~ s(f"{x}")',
     '      ^^^^^^',
     no_expression('f"{x}"')),
    ('y ~ Q(f"{x}")',
     '    ^^^^^^^^^',
     QUOTE),
    ("y ~ s(x := z)",
     "      ^^^^^^",
     no_expression("x := z")),
    ("y ~ s(*x)",
     "      ^^",
     "`*` cannot stand before an argument."),
    ("y ~ log(*x)",
     "        ^^",
     no_expression("*x")),
    ('y ~ s(x, **{"k": 3})',
     '         ^^^^^^^^^^',
     "`**` cannot stand before an argument."),
    ("y ~ I(x if z else g)",
     "      ^^^^^^^^^^^^^",
     no_expression("x if z else g")),
    ("y ~ (yield)",
     "     ^^^^^",
     no_expression("yield")),
    ("y ~ s(x, k=(lambda: 3)())",
     "           ^^^^^^^^^^^^^",
     no_value("(lambda: 3)()")),
    ('y ~ s(x, k=open("f"))',
     '           ^^^^^^^^^',
     no_value('open("f")')),
    ('y ~ s(x, bs=f"{eval(1)}")',
     '            ^^^^^^^^^^^^',
     no_value('f"{eval(1)}"')),
    ("y ~ ahofm(x, z, k={x: exec(z)})",
     "                      ^^^^^^^",
     no_value("exec(z)")),
]  # fmt: skip

TABLE = [*SHAPE, *RESPONSES, *NAMES, *FUNCTIONS, *TERMS, *OPTIONS, *INJECTIONS]


def formula_error(text: str) -> FormulaError:
    with pytest.raises(FormulaError) as caught:
        parse_formula(text, COLUMNS)
    return caught.value


@pytest.mark.parametrize(("text", "carets", "message"), TABLE, ids=[row[0] for row in TABLE])
def test_bad_formula_gives_the_whole_message(text: str, carets: str, message: str) -> None:
    drawn = f"\n    {carets}" if carets else ""
    assert str(formula_error(text)) == f"{message}\n    {text}{drawn}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The formula is empty. Write, for example, `y ~ s(x1) + s(x2)`."),
        (" \n\t ", "The formula is empty. Write, for example, `y ~ s(x1) + s(x2)`."),
        (None, "A formula must be text, e.g. `y ~ s(x1)`. Received: NoneType."),
        (b"y ~ x", "A formula must be text, e.g. `y ~ s(x1)`. Received: bytes."),
        ("y ~ x" + " + x" * 25_000, "The formula is longer than 100,000 characters."),
    ],
    ids=["empty", "blank", "none", "bytes", "too long"],
)
def test_what_is_no_formula_gives_the_message_alone(text: str, message: str) -> None:
    assert str(formula_error(text)) == message


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (None, "`.` needs data to take its columns from."),
        (["y"], "`.` stands for no column here."),
    ],
)
def test_dot_without_columns_gives_the_whole_message(columns: list[str] | None, message: str) -> None:
    with pytest.raises(FormulaError) as caught:
        parse_formula("y ~ s(x) + .", columns)
    assert str(caught.value) == f"{message}\n    y ~ s(x) + .\n               ^"


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
def test_carets_are_drawn_under_the_unknown_term(text: str) -> None:
    *_, shown, carets = str(formula_error(text)).split("\n")
    start = carets.index("^")
    assert shown[start : start + carets.count("^")] == "smo"
    assert len(shown) <= 100


@pytest.mark.parametrize("letter", ["`", "$", "?", "!", "\\", "\0", "\ud800"])
def test_carets_start_at_a_letter_that_no_formula_has(letter: str) -> None:
    error = formula_error(f"y ~ x + {letter} + z")
    assert error.span is not None
    assert error.span[0] == 8


@pytest.mark.parametrize(
    "text",
    [
        "y ~ s(x, k=5, k=6)",
        "y ~ I(C(g) + 1)",
        "y ~ I(-C(g))",
        "y ~ s(I(poly(x, 2) + 1))",
        "y ~ x + offset(C(g))",
        "y ~ s(x, knots=(0, 1e999))",
        pytest.param(f"y ~ s(x, df=1{'0' * 400})", id="df too large for a float"),
        pytest.param(f"y ~ s(x, sp=1{'0' * 400})", id="sp too large for a float"),
    ],
)
def test_what_no_model_could_mean_is_rejected(text: str) -> None:
    assert formula_error(text).span is not None


@pytest.mark.parametrize("text", [row[0] for row in INJECTIONS])
def test_nothing_in_a_formula_is_run(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    with monkeypatch.context() as patch:
        for module, name in (
            (builtins, "eval"), (builtins, "exec"), (builtins, "open"),
            (os, "system"), (os, "popen"), (subprocess, "Popen"),
        ):  # fmt: skip
            patch.setattr(module, name, lambda *_, name=name, **__: ran.append(name))
        with pytest.raises(FormulaError):
            parse_formula(text, COLUMNS)
    assert ran == []


def forbidden_calls(source: str) -> list[str]:
    """Calls of `eval`, `exec`, `compile`, `__import__`, bare or by way of `builtins`."""
    calls = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    names = [call.id for call in calls if isinstance(call, ast.Name)]
    names += [
        call.attr
        for call in calls
        if isinstance(call, ast.Attribute) and ast.unparse(call.value).strip("_") == "builtins"
    ]
    return [name for name in names if name in ("eval", "exec", "compile", "__import__")]


def test_the_package_never_calls_eval_exec_compile_or_import() -> None:
    sources = sorted(Path(ahofm_keras.formula.parse.__file__).parents[1].rglob("*.py"))
    assert {"parse.py", "source.py", "transforms.py"} <= {path.name for path in sources}
    found = {path.name: forbidden_calls(path.read_text()) for path in sources}
    assert {name: calls for name, calls in found.items() if calls} == {}


def test_the_search_for_forbidden_calls_finds_them() -> None:
    assert forbidden_calls("eval(x)\nbuiltins.exec(x)\nmodel.compile()\nre.compile(x)") == [
        "eval",
        "exec",
    ]
