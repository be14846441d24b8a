"""Code in a formula is refused, and nothing of it is ever run."""

from __future__ import annotations

import ast
import builtins
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import ahofm_keras
from ahofm_keras.errors import FormulaError
from ahofm_keras.formula import parse_formula

# Each row: the formula, its carets, the first line of the message above them.
Row = tuple[str, str, str]


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
     "Unknown term `__import__`."),
    ('y ~ x + eval("1")',
     '        ^^^^',
     "Unknown term `eval`."),
    ('exec("import os") ~ x',
     '^^^^',
     "Unknown term `exec`."),
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
     '`Q()` takes a column\'s name as text, e.g. `Q("a b")`.'),
    ("y ~ s(x := z)",
     "      ^^^^^^",
     no_expression("x := z")),
    ("y ~ s(*x)",
     "      ^^",
     "`*` cannot stand before an argument."),
    ('y ~ s(x, **{"k": 3})',
     '         ^^^^^^^^^^',
     "`**` cannot stand before an argument."),
    ("y ~ I(x if z else g)",
     "      ^^^^^^^^^^^^^",
     no_expression("x if z else g")),
    ("y ~ (yield)",
     "     ^^^^^",
     '`yield` cannot be read. A column of that name is written `Q("yield")`.'),
    ("y ~ s((yield x))",
     "       ^^^^^^^",
     no_expression("yield x")),
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


@pytest.mark.parametrize(("text", "carets", "message"), INJECTIONS, ids=[row[0] for row in INJECTIONS])
def test_code_in_a_formula_is_refused(
    text: str, carets: str, message: str, formula_error: Callable[[str], FormulaError]
) -> None:
    error = formula_error(text)
    assert error.message.split("\n")[0] == message
    assert str(error).endswith(f"\n    {text}\n    {carets}")


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
            parse_formula(text, ["y", "x", "z", "g"])
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
    sources = sorted(Path(ahofm_keras.__file__).parent.rglob("*.py"))
    assert {"parse.py", "source.py", "transforms.py"} <= {path.name for path in sources}
    found = {path.name: forbidden_calls(path.read_text()) for path in sources}
    assert {name: calls for name, calls in found.items() if calls} == {}


def test_the_search_for_forbidden_calls_finds_them() -> None:
    assert forbidden_calls("eval(x)\nbuiltins.exec(x)\nmodel.compile()\nre.compile(x)") == [
        "eval",
        "exec",
    ]
