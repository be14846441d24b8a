"""One atom of a formula -> `Expression`, taken apart with `ast`."""

from __future__ import annotations

import ast
import math
from functools import cached_property
from typing import Any

import numpy as np

from ahofm_keras.errors import FormulaError, did_you_mean
from ahofm_keras.formula.foreign_syntax import SIGNS, TERMS, hint
from ahofm_keras.formula.options import TERM_CALLS
from ahofm_keras.formula.source import Snippet
from ahofm_keras.formula.tokens import parse_python
from ahofm_keras.texts import truncate
from ahofm_keras.transforms import (
    CALLABLE,
    FUNCTIONS,
    RESPONSES,
    Expression,
    column,
    evaluate_expression,
    quote_column,
)

_ARITHMETIC: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.Pow: "power",
}
_UNKNOWN_SIGNS: dict[type[ast.AST], str] = {
    ast.FloorDiv: "//", ast.Mod: "%", ast.MatMult: "@", ast.BitOr: "|", ast.BitXor: "^",
    ast.BitAnd: "&", ast.LShift: "<<", ast.RShift: ">>", ast.Not: "not", ast.And: "and",
    ast.Or: "or", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
    ast.GtE: ">=", ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
}  # fmt: skip
# Expressions are walked recursively, here and inside the graph.
_DEEPEST = 100
_SEVERAL_COLUMNS = ("C", "poly")


class ExpressionReader:
    """Takes one atom apart, with the places of its parts in the formula.

    Raises:
        FormulaError: what is no expression of columns, under the part that is not.
    """

    def __init__(self, snippet: Snippet) -> None:
        self.snippet = snippet
        self.root = self._parse()

    @property
    def called(self) -> str:
        """Name of the function where the atom is a call, else empty."""
        return self.called_by(self.root) if isinstance(self.root, ast.Call) else ""

    def called_by(self, node: ast.Call) -> str:
        # Python folds look-alike letters in names; here they keep their own.
        return self.written(node.func) if isinstance(node.func, ast.Name) else ""

    def error(self, message: str, node: ast.AST) -> FormulaError:
        return self.snippet.error(message, *self._place(node))

    def written(self, node: ast.AST) -> str:
        start, end = self._place(node)
        return self.snippet.text[start:end]

    def shown(self, node: ast.AST) -> str:
        """What was written, short enough to stand in a message."""
        return truncate(self.written(node))

    @cached_property
    def _bytes(self) -> bytes:
        return self.snippet.text.encode()

    def _place(self, node: Any) -> tuple[int, int]:
        if self.snippet.text.isascii():
            return node.col_offset, node.end_col_offset
        # ast counts bytes of UTF-8, carets count characters.
        start = len(self._bytes[: node.col_offset].decode(errors="ignore"))
        return start, len(self._bytes[: node.end_col_offset].decode(errors="ignore"))

    def _parse(self) -> ast.expr:
        text, reason = self.snippet.text, "cannot be read"
        try:
            root = parse_python(text)
            if _depth(root) <= _DEEPEST:
                return root
            reason = f"is nested more than {_DEEPEST} deep: compute it as a column of the data"
        except SyntaxError as error:
            if "positional argument follows keyword" in str(error.msg):
                reason = "has an option before a feature: options come last, as in `s(x, k=10)`"
        except (ValueError, RecursionError, MemoryError):
            pass
        raise self.snippet.error(f"`{truncate(text)}` {reason}.", 0, len(text)) from None

    def feature(self, node: ast.expr) -> Expression:
        """An expression that stands for itself: it uses a column, its arithmetic stands in `I(...)`."""
        expression = self._expression(node, arithmetic=False)
        if not _uses_column(expression):
            raise self.error(f"`{self.shown(node)}` uses no column.", node)
        return expression

    def response(self) -> Expression:
        """What stands left of `~`: an expression of one column, or the columns of `RESPONSES`."""
        if self.called not in RESPONSES:
            return self.feature(self.root)
        assert isinstance(self.root, ast.Call)
        self.check_stars(self.root)
        if self.root.keywords:
            raise self.error(f"`{self.called}()` takes no keyword arguments.", self.root)
        widths = RESPONSES[self.called]
        if len(self.root.args) not in widths:
            wanted = " or ".join(map(str, widths))
            message = f"`{self.called}()` takes {wanted} columns, received {len(self.root.args)}."
            raise self.error(message, self.root)
        columns = tuple(self._operand(argument) for argument in self.root.args)
        for expression, node in zip(columns, self.root.args, strict=True):
            if not _uses_column(expression):
                raise self.error(f"`{self.shown(node)}` uses no column.", node)
        return Expression(self.called, columns)

    def _expression(self, node: ast.expr, arithmetic: bool = True) -> Expression:
        """A column, a function of columns or, where `arithmetic` is allowed, a sum or product."""
        if isinstance(node, ast.Name):
            return column(self.written(node))
        if isinstance(node, ast.Call):
            return self._finite(self._function(node), node)
        if isinstance(node, ast.Constant) and type(node.value) in (int, float) and arithmetic:
            return self._number(node)
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC and arithmetic:
            sides = (self._operand(node.left), self._operand(node.right))
            return self._finite(Expression(_ARITHMETIC[type(node.op)], sides), node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and arithmetic:
            return Expression("negative", (self._operand(node.operand),))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd) and arithmetic:
            return self._operand(node.operand)
        raise self._not_an_expression(node)

    def _operand(self, node: ast.expr) -> Expression:
        """An expression of one column of numbers, with which arithmetic can go on."""
        expression = self._expression(node)
        if expression.function in _SEVERAL_COLUMNS:
            message = "`poly()` and `C()` cannot stand inside another function or in arithmetic."
            raise self.error(message, node)
        return expression

    def _number(self, node: ast.Constant) -> Expression:
        try:
            number = Expression("number", (float(node.value),))  # type: ignore[arg-type]
        except OverflowError:
            raise self.error("This number is too large.", node) from None
        return self._finite(number, node)

    def _finite(self, expression: Expression, node: ast.expr) -> Expression:
        """The expression, where it is no number that is infinite or undefined."""
        if _uses_column(expression):
            return expression
        with np.errstate(all="ignore"):
            value = evaluate_expression(expression, {})
        if math.isfinite(value):
            return expression
        if isinstance(node, ast.Constant):
            raise self.error("This number is too large.", node)
        raise self.error(f"`{self.shown(node)}` is no finite number.", node)

    def _not_an_expression(self, node: ast.expr) -> FormulaError:
        sign = _unknown_sign(node)
        if sign:
            message = f"`{sign}` is not known here. Known: `+`, `-`, `*`, `/`, `**`.{hint(SIGNS, sign)}"
            return self.error(message, node)
        if isinstance(node, ast.BinOp | ast.UnaryOp):
            quoted = truncate(quote_column(self.written(node)))
            message = f"Arithmetic stands in `I(...)`: write `I({self.shown(node)})`."
            return self.error(f"{message} A column of that name is written `{quoted}`.", node)
        if isinstance(node, ast.Attribute):
            quoted = quote_column(self.written(node))
            message = f"`{self.shown(node)}` is no column name: write `{truncate(quoted)}`."
            return self.error(message, node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
            return self._text_for_column(node.value, node)
        if isinstance(node, ast.Starred):
            return self.error("`*` cannot stand before an argument.", node)
        return self.error(
            f"`{self.shown(node)}` cannot stand here: a column or a function of columns was expected.",
            node,
        )

    def _text_for_column(self, name: str, node: ast.expr) -> FormulaError:
        written = truncate(quote_column(name))
        either = f'`{written}`, or `Q("{written}")`' if quote_column(name) == name else f"`{written}`"
        return self.error(f"`{self.shown(node)}` is text and no column. Write {either}.", node)

    def _function(self, node: ast.Call) -> Expression:
        name = self._known_name(node)
        if name == "Q":
            return column(self._quoted(node))
        self.check_stars(node)
        if node.keywords:
            raise self.error(f"`{name}()` takes no keyword arguments.", node)
        arity = 1 if name in ("I", "C") else FUNCTIONS[name].arity
        if len(node.args) != arity:
            plural = "argument" if arity == 1 else "arguments"
            raise self.error(f"`{name}()` takes {arity} {plural}, received {len(node.args)}.", node)
        if name == "C":
            return self._category(node)
        if name == "I":
            return self._expression(node.args[0])
        if name == "poly":
            self._check_degree(node.args[1])
        expression = Expression(name, tuple(self._operand(argument) for argument in node.args))
        if FUNCTIONS[name].learn and not _uses_column(expression):
            raise self.error(f"`{self.shown(node)}` uses no column.", node)
        return expression

    def check_stars(self, node: ast.Call) -> None:
        """Nothing is unpacked among the arguments of a call."""
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                raise self._not_an_expression(argument)
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.error("`**` cannot stand before an argument.", keyword)

    def _known_name(self, node: ast.Call) -> str:
        name = self.called_by(node)
        if not name:
            raise self._not_a_name(node)
        if name in TERM_CALLS:
            raise self.error(f"`{name}()` cannot stand inside another call.", node)
        if name in RESPONSES:
            message = f"`{name}()` is a response of several columns: it stands alone, left of `~`."
            raise self.error(message, node)
        if name not in ("C", "I", "Q", *CALLABLE):
            raise self._unknown(name, node.func)
        return name

    def _not_a_name(self, node: ast.Call) -> FormulaError:
        message = f"`{self.shown(node.func)}` cannot be called in a formula"
        if isinstance(node.func, ast.Attribute) and node.func.attr in CALLABLE:
            arguments = ", ".join(self.shown(argument) for argument in node.args)
            message += f": write `{node.func.attr}({arguments})`"
        return self.error(f"{message}.", node.func)

    def _unknown(self, name: str, node: ast.AST) -> FormulaError:
        known = sorted({*TERM_CALLS, *CALLABLE, "C", "I", "Q"})
        meant = did_you_mean(truncate(name), known)
        terms = ", ".join(f"`{term}`" for term in sorted(TERM_CALLS))
        functions = ", ".join(f"`{function}`" for function in ("C", "I", "Q", *CALLABLE))
        return self.error(
            f"Unknown term `{truncate(name)}`.{hint(TERMS, name) or meant}\n    Known terms: {terms}.\n"
            f"    Known functions: {functions}.",
            node,
        )

    def _quoted(self, node: ast.Call) -> str:
        argument = node.args[0] if len(node.args) == 1 and not node.keywords else None
        name = argument.value if isinstance(argument, ast.Constant) else None
        if not isinstance(name, str) or not name:
            raise self.error('`Q()` takes a column\'s name as text, e.g. `Q("a b")`.', node)
        return name

    def _category(self, node: ast.Call) -> Expression:
        argument = node.args[0]
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str) and argument.value:
            raise self._text_for_column(argument.value, argument)
        is_column = isinstance(argument, ast.Name) or (
            isinstance(argument, ast.Call) and self.called_by(argument) == "Q"
        )
        if not is_column:
            raise self.error("`C()` takes one column, e.g. `C(group)`.", node)
        return Expression("C", (self._expression(argument),))

    def _check_degree(self, node: ast.AST) -> None:
        value = node.value if isinstance(node, ast.Constant) else None
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 10:
            raise self.error("The degree of `poly()` must be a whole number from 1 to 10.", node)


def _uses_column(expression: Expression) -> bool:
    return next(expression.columns(), None) is not None


def _unknown_sign(node: ast.expr) -> str:
    """The operator of an operation that formulas do not have, else empty."""
    if isinstance(node, ast.BinOp | ast.UnaryOp | ast.BoolOp):
        return _UNKNOWN_SIGNS.get(type(node.op), "")
    if isinstance(node, ast.Compare):
        return _UNKNOWN_SIGNS[type(node.ops[0])]
    return ""


def _depth(root: ast.AST) -> int:
    """Levels of a syntax tree, counted without recursion, which very deep ones would exhaust."""
    depth, level = 0, [root]
    while level:
        depth += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return depth
