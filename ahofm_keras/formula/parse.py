"""A formula's text -> response, intercept and term specifications."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from patsy import EvalFactor, ModelDesc, PatsyError
from patsy import Term as PatsyTerm

from ahofm_keras.errors import FormulaError
from ahofm_keras.formula.options import TERM_CALLS, check_orders
from ahofm_keras.formula.source import Source, read_source
from ahofm_keras.transforms import CALLABLE, FUNCTIONS, Expression, column

_ARITHMETIC: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.Pow: "power",
}


@dataclass(frozen=True)
class TermSpec:
    """A term as the formula asks for it, before any data is seen.

    Args:
        kind: `"linear"`, `"s"`, `"ahofm"`, `"hofm"` or `"offset"`.
        features: its expressions; for `"linear"` the factors of a product (`a:b`).
        options: keyword arguments that were given, checked.
        call: the name it was called by (`afm`), empty for linear terms.
    """

    kind: str
    features: tuple[Expression, ...]
    options: dict[str, Any] = field(default_factory=dict)
    call: str = ""
    source: Source = field(default=Source("", ""), repr=False, compare=False)
    span: tuple[int, int] = field(default=(0, 0), repr=False, compare=False)

    @property
    def label(self) -> str:
        """How tables name the term: `s(x1)`, `ahofm(x1, x2, x3)`, `a:b`."""
        names = [str(feature) for feature in self.features]
        if self.kind == "linear":
            return ":".join(names)
        if len(names) > 6:
            names = [*names[:2], "...", names[-1]]
        return f"{self.call}({', '.join(names)})"

    def error(self, message: str) -> FormulaError:
        """A `FormulaError` that points at this term."""
        return self.source.error(message, *self.span)


@dataclass(frozen=True)
class Formula:
    """A parsed formula.

    Args:
        text: as the user wrote it, with `.` written out.
        response: expression left of `~`.
        terms: term specifications, in the order of the formula.
        intercept: whether the model has one.
    """

    text: str
    response: Expression
    terms: tuple[TermSpec, ...]
    intercept: bool

    def columns(self) -> list[str]:
        """Raw columns that the right-hand side uses, each once."""
        features = (feature for term in self.terms for feature in term.features)
        return list(dict.fromkeys(name for feature in features for name in feature.columns()))


def parse_formula(text: str, columns: Sequence[str] | None = None) -> Formula:
    """Parse a formula; nothing in it is ever evaluated.

    Args:
        text: e.g. `"y ~ s(x1) + ahofm(x1, x2, x3, D=3, F=5, df=15)"`.
        columns: names of the data's columns, which `.` stands for.

    Returns:
        The parsed `Formula`.

    Raises:
        FormulaError: with carets under the place that could not be understood.

    Example:
        >>> parse_formula("y ~ s(x1) + a:b").terms[1].label
        'a:b'
    """
    source = read_source(text, columns)
    try:
        description = ModelDesc.from_formula(source.expanded)
    except PatsyError as error:
        origin = error.origin
        place = (origin.start, origin.end) if origin else ()
        raise source.error(f"{_sentence(error.message)}", *place) from None
    except (RecursionError, SyntaxError, ValueError, IndexError, AssertionError, OverflowError):
        raise source.error("The formula cannot be read.") from None
    response = _read_response(source, description.lhs_termlist)
    intercept, terms = _read_terms(source, description.rhs_termlist)
    _check_terms(source, response, terms)
    return Formula(source.expanded.strip(), response, terms, intercept)


def _sentence(message: str) -> str:
    message = message.strip()
    return message[:1].upper() + message[1:] + ("" if message.endswith((".", ")")) else ".")


def _read_response(source: Source, terms: list[PatsyTerm]) -> Expression:
    factors = [factor for term in terms for factor in term.factors]
    if len(terms) != 1 or len(factors) != 1:
        raise source.error("A formula has one response, a column or an expression such as `log(y)`.")
    reader = _Reader(source, factors[0])
    return reader.expression(reader.root, arithmetic=False)


def _read_terms(source: Source, terms: list[PatsyTerm]) -> tuple[bool, tuple[TermSpec, ...]]:
    specs = [_read_term(source, term) for term in terms if term.factors]
    return any(not term.factors for term in terms), tuple(specs)


def _read_term(source: Source, term: PatsyTerm) -> TermSpec:
    readers = [_Reader(source, factor) for factor in term.factors]
    span = min(reader.start for reader in readers), max(reader.end for reader in readers)
    calls = [reader for reader in readers if reader.called in TERM_CALLS]
    if not calls:
        factors = tuple(reader.expression(reader.root, arithmetic=False) for reader in readers)
        return TermSpec("linear", factors, source=source, span=span)
    if len(readers) > 1:
        raise source.error(
            f"`{calls[0].called}()` cannot be multiplied with `:` or `*`. "
            "Interactions of smooths are written `ahofm(x1, x2)`.",
            *span,
        )
    return calls[0].term()


def _check_terms(source: Source, response: Expression, terms: tuple[TermSpec, ...]) -> None:
    if all(term.kind == "offset" for term in terms):
        raise source.error("The formula has no term besides the intercept. Add one, e.g. `s(x1)`.")
    smoothed: set[Expression] = set()
    for term in terms:
        for name in (name for feature in term.features for name in feature.columns()):
            if name in response.columns():
                raise term.error(f"The response `{name}` cannot stand among the terms too.")
        if term.kind == "s":
            if term.features[0] in smoothed:
                raise term.error(f"`{term.label}` stands twice in the formula.")
            smoothed.add(term.features[0])


class _Reader:
    """Takes one factor of a term apart, with the places of its parts in the formula."""

    def __init__(self, source: Source, factor: EvalFactor) -> None:
        self.source = source
        self.start, self.end = factor.origin.start, factor.origin.end
        self.text = source.expanded[self.start : self.end]
        try:
            self.root = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            hint = f' A column of that name is written `Q("{self.text}")`.'
            message = f"`{self.text}` cannot be read." + (hint if self.text.isidentifier() else "")
            raise source.error(message, self.start, self.end) from None

    @property
    def called(self) -> str:
        """Name of the function where the factor is a call, else empty."""
        if isinstance(self.root, ast.Call) and isinstance(self.root.func, ast.Name):
            return self.root.func.id
        return ""

    def error(self, message: str, node: ast.AST) -> FormulaError:
        start, end = self._place(node)
        return self.source.error(message, self.start + start, self.start + end)

    def _place(self, node: Any) -> tuple[int, int]:
        # ast counts bytes of UTF-8, carets count characters.
        line = self.text.encode()
        start = len(line[: node.col_offset].decode(errors="ignore"))
        return start, len(line[: node.end_col_offset].decode(errors="ignore"))

    def _written(self, node: ast.AST) -> str:
        start, end = self._place(node)
        return self.text[start:end]

    def expression(self, node: ast.AST, arithmetic: bool) -> Expression:
        """A column, a function of columns or, where `arithmetic` is allowed, a sum or product."""
        if isinstance(node, ast.Name):
            # Python folds look-alike letters in identifiers; a column keeps its own.
            return column(self._written(node))
        if isinstance(node, ast.Call):
            return self._function(node)
        if isinstance(node, ast.Attribute):
            name = self._written(node)
            raise self.error(f'`{name}` is no column name: write `Q("{name}")`.', node)
        if not arithmetic:
            return self._not_an_expression(node)
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return Expression("number", (self._finite(node),))
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            sides = (self.expression(side, True) for side in (node.left, node.right))
            return Expression(_ARITHMETIC[type(node.op)], tuple(sides))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return Expression("negative", (self.expression(node.operand, True),))
        return self._not_an_expression(node)

    def _not_an_expression(self, node: ast.AST) -> Expression:
        written = self._written(node)
        if isinstance(node, ast.BinOp | ast.UnaryOp):
            raise self.error(f"Arithmetic stands in `I(...)`: write `I({written})`.", node)
        raise self.error(
            f"`{written}` cannot stand here: a column or a function of columns was expected.", node
        )

    def _finite(self, node: ast.Constant) -> float:
        try:
            return float(node.value)  # type: ignore[arg-type]
        except OverflowError:
            raise self.error("This number is too large.", node) from None

    def _function(self, node: ast.Call) -> Expression:
        if not isinstance(node.func, ast.Name):
            raise self.error(f"`{self._written(node.func)}` cannot be called in a formula.", node.func)
        name = node.func.id
        if name == "Q":
            return column(self._quoted(node))
        if name in TERM_CALLS:
            raise self.error(f"`{name}()` cannot stand inside another call.", node)
        if name not in ("I", "C") and name not in CALLABLE:
            raise self._unknown(name, node.func)
        if node.keywords:
            raise self.error(f"`{name}()` takes no keyword arguments.", node)
        arity = 1 if name in ("I", "C") else FUNCTIONS[name].arity
        if len(node.args) != arity:
            plural = "argument" if arity == 1 else "arguments"
            raise self.error(f"`{name}()` takes {arity} {plural}, received {len(node.args)}.", node)
        if name == "C":
            return self._category(node)
        if name == "poly":
            self._check_degree(node.args[1])
        arguments = tuple(self.expression(argument, True) for argument in node.args)
        if not any(True for argument in arguments for _ in argument.columns()):
            raise self.error(f"`{self._written(node)}` uses no column.", node)
        if name == "I":
            return arguments[0]
        self._check_nesting(arguments, node)
        return Expression(name, arguments)

    def _unknown(self, name: str, node: ast.AST) -> FormulaError:
        known = sorted({*TERM_CALLS, *CALLABLE, "C", "I", "Q"})
        close = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean `{close[0]}`?" if close else ""
        terms = ", ".join(f"`{term}`" for term in sorted(TERM_CALLS))
        functions = ", ".join(f"`{function}`" for function in ("C", "I", "Q", *CALLABLE))
        return self.error(
            f"Unknown term `{name}`.{hint}\n    Known terms: {terms}.\n"
            f"    Known functions: {functions}.",
            node,
        )

    def _quoted(self, node: ast.Call) -> str:
        argument = node.args[0] if len(node.args) == 1 and not node.keywords else None
        if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
            raise self.error('`Q()` takes a column\'s name as text, e.g. `Q("a b")`.', node)
        return argument.value

    def _category(self, node: ast.Call) -> Expression:
        argument = self.expression(node.args[0], False)
        if not argument.is_column:
            raise self.error("`C()` takes one column, e.g. `C(group)`.", node)
        return Expression("C", (argument,))

    def _check_degree(self, node: ast.AST) -> None:
        value = node.value if isinstance(node, ast.Constant) else None
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 10:
            raise self.error("The degree of `poly()` must be a whole number from 1 to 10.", node)

    def _check_nesting(self, arguments: Iterable[Expression], node: ast.AST) -> None:
        for argument in arguments:
            if any(part.function in ("poly", "C") for part in argument._walk()):
                raise self.error("`poly()` and `C()` cannot stand inside another function.", node)

    def term(self) -> TermSpec:
        """The call of a term such as `s(...)` or `ahofm(...)`."""
        node = self.root
        assert isinstance(node, ast.Call)
        name = self.called
        call = TERM_CALLS[name]
        features = tuple(self._feature(argument, name) for argument in node.args)
        self._check_features(name, features)
        options = {**self._options(node, name), **call.fixed}
        if call.kind in ("ahofm", "hofm"):
            reason = check_orders(name, options, [_plain(feature) for feature in features])
            if reason:
                raise self.error(reason, node)
        if call.kind == "s":
            self._check_smooth(node, features[0], options)
        span = (self.start, self.end)
        return TermSpec(call.kind, features, options, name, self.source, span)

    def _feature(self, node: ast.AST, name: str) -> Expression:
        if isinstance(node, ast.Starred):
            raise self.error("`*` cannot stand before an argument.", node)
        feature = self.expression(node, arithmetic=False)
        if feature.function == "poly":
            raise self.error(f"`poly()` has several columns and cannot stand in `{name}()`.", node)
        return feature

    def _check_features(self, name: str, features: tuple[Expression, ...]) -> None:
        least, most = TERM_CALLS[name].features
        if len(features) < least or (most is not None and len(features) > most):
            wanted = f"{least}" if least == most else f"at least {least}"
            plural = "feature" if wanted == "1" else "features"
            hint = " Interactions are written `ahofm(x1, x2)`." if name == "s" and features else ""
            raise self.error(
                f"`{name}()` takes {wanted} {plural}, received {len(features)}.{hint}", self.root
            )
        for place, feature in enumerate(features):
            if feature in features[:place]:
                assert isinstance(self.root, ast.Call)
                raise self.error(f"`{feature}` stands twice in `{name}()`.", self.root.args[place])

    def _check_smooth(self, node: ast.Call, feature: Expression, options: dict[str, Any]) -> None:
        if "df" in options and "sp" in options:
            raise self.error("`s()` takes `df` or `sp`, not both.", node)
        if options.get("bs") == "re":
            unused = sorted({"k", "knots"} & set(options))
            if unused:
                raise self.error(f'`{unused[0]}` has no meaning with bs="re".', node)
        if feature.is_category and options.get("bs", "re") != "re":
            raise self.error(f'`{feature}` is a category: leave out `bs`, or use bs="re".', node)

    def _options(self, node: ast.Call, name: str) -> dict[str, Any]:
        call = TERM_CALLS[name]
        options: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.error("`**` cannot stand before an argument.", keyword)
            check = call.options.get(keyword.arg)
            if check is None:
                known = ", ".join(f"`{option}`" for option in sorted(call.options)) or "none"
                raise self.error(
                    f"Unknown argument `{keyword.arg}` of `{name}()`. Known: {known}.", keyword
                )
            value = self._literal(keyword.value)
            expected = check(value)
            if expected:
                raise self.error(
                    f"`{keyword.arg}` of `{name}()` must be {expected}.\n"
                    f"    Received: {self._written(keyword)}.",
                    keyword,
                )
            options[keyword.arg] = value
        return options

    def _literal(self, node: ast.AST) -> Any:
        """The value of a keyword argument: a literal, or the name of a column as text."""
        if isinstance(node, ast.Constant) and not isinstance(node.value, bytes | complex):
            return node.value
        if isinstance(node, ast.Name):
            return self._written(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self._literal(node.operand)
            if isinstance(value, int | float) and not isinstance(value, bool):
                return -value
        if isinstance(node, ast.Tuple | ast.List):
            return tuple(self._literal(item) for item in node.elts)
        if isinstance(node, ast.Dict):
            return {self._key(key): self._literal(value) for key, value in _pairs(node)}
        raise self.error(
            f"`{self._written(node)}` is no plain value: a number, text, tuple, dict, "
            "True, False or None was expected.",
            node,
        )

    def _key(self, node: ast.AST | None) -> Any:
        if node is None:
            raise self.error("`**` cannot stand in a dict here.", self.root)
        key = self._literal(node)
        if not isinstance(key, str):
            raise self.error("A dict here goes from a feature's name to its value.", node)
        return key


def _pairs(node: ast.Dict) -> Iterable[tuple[ast.expr | None, ast.expr]]:
    return zip(node.keys, node.values, strict=True)


def _plain(feature: Expression) -> str:
    """A feature's name as dicts of options write it: the column's own name where it is one."""
    return feature.arguments[0] if feature.is_column else str(feature)
