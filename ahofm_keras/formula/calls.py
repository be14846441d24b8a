"""The call of a term such as `s(...)` or `ahofm(...)` -> `TermSpec`."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from ahofm_keras.formula.checks import column_option, distance_form
from ahofm_keras.formula.expressions import ExpressionReader
from ahofm_keras.formula.foreign_syntax import ARGUMENTS, TERMS, hint, hint_for_value
from ahofm_keras.formula.options import (
    DISTANCES,
    TERM_CALLS,
    OptionError,
    TermCall,
    feature_name,
)
from ahofm_keras.formula.orders import list_features
from ahofm_keras.formula.spec import TermSpec
from ahofm_keras.texts import truncate
from ahofm_keras.transforms import Expression


def read_call(reader: ExpressionReader) -> TermSpec:
    """The term that an atom calls.

    Raises:
        FormulaError: features or options that the term does not take.
    """
    assert isinstance(reader.root, ast.Call)
    return _CallReader(reader, reader.root).term()


class _CallReader:
    def __init__(self, reader: ExpressionReader, node: ast.Call) -> None:
        self.reader = reader
        self.error = reader.error
        self.node = node
        self.name = reader.called
        self.call: TermCall = TERM_CALLS[self.name]

    def term(self) -> TermSpec:
        self.reader.check_stars(self.node)
        features = tuple(self._feature(argument) for argument in self.node.args)
        self._check_features(features)
        options = {**self._options(), **self.call.fixed}
        try:
            if self.call.join is not None:
                features = self.call.join(self.name, features, options)
            self._check_keys([feature_name(feature) for feature in features])
            if self.call.finish is not None:
                options = self.call.finish(self.name, features, options)
        except OptionError as error:
            raise self.error(str(error), self.node) from None
        snippet = self.reader.snippet
        return TermSpec(self.call.kind, features, options, self.name, snippet.source, snippet.span)

    def _feature(self, node: ast.expr) -> Expression:
        feature = self.reader.feature(node)
        if feature.function == "poly" and not self.call.columns:
            message = f"`poly()` has several columns and cannot stand in `{self.name}()`."
            raise self.error(message, node)
        if feature.is_category and self.name == "offset":
            raise self.error("`C()` holds categories and cannot stand in `offset()`.", node)
        return feature

    def _check_features(self, features: tuple[Expression, ...]) -> None:
        least, most = self.call.features
        if len(features) < least or (most is not None and len(features) > most):
            wanted = f"{least} or {most}" if most == least + 1 else f"at least {least}"
            wanted = f"{least}" if least == most else wanted
            plural = "feature" if least == 1 and most in (1, None) else "features"
            message = f"`{self.name}()` takes {wanted} {plural}, received {len(features)}."
            message += self.call.hint if features else ""
            raise self.error(message, self.node)
        seen: set[Expression] = set()
        for feature, node in zip(features, self.node.args, strict=True):
            if feature in seen:
                raise self.error(f"`{feature}` stands twice in `{self.name}()`.", node)
            seen.add(feature)

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {}
        for keyword in self.node.keywords:
            # Python folds look-alike letters in names; an option is what was written.
            option = self.reader.written(keyword).split("=")[0].strip()
            if option not in self.call.options:
                known = ", ".join(f"`{known}`" for known in sorted(self.call.options)) or "none"
                message = f"Unknown argument `{truncate(option)}` of `{self.name}()`. Known: {known}."
                raise self.error(message + hint(ARGUMENTS, option), keyword)
            if option in options:
                raise self.error(f"`{option}` stands twice in `{self.name}()`.", keyword)
            options[option] = self._value(option, keyword)
        return options

    def _value(self, option: str, keyword: ast.keyword) -> Any:
        if self.call.options[option] is column_option:
            return self._feature(keyword.value)
        value = self._literal(keyword.value)
        check = self.call.options[option]
        if option == "m" and self._distances() is not None:
            check = distance_form(str(self._distances()))
        expected = check(value)
        if expected:
            raise self.error(
                f"`{option}` of `{self.name}()` must be {expected}.{hint_for_value(option, value)}\n"
                f"    Received: {self.reader.shown(keyword)}.",
                keyword,
            )
        return value

    def _distances(self) -> str | None:
        """Which functions of distances a smooth has, None where it has others."""
        given = [keyword.value for keyword in self.node.keywords if keyword.arg == "bs"]
        bs = self._literal(given[0]) if given else "tp" if len(self.node.args) > 1 else None
        return bs if self.call.kind == "s" and bs in DISTANCES else None

    def _literal(self, node: ast.AST) -> Any:
        """The value of a keyword argument: a literal, or the name of a column as text."""
        if isinstance(node, ast.Constant) and not isinstance(node.value, bytes | complex):
            return node.value
        if isinstance(node, ast.Name):
            return self.reader.written(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self._literal(node.operand)
            if isinstance(value, int | float) and not isinstance(value, bool):
                return -value
        if isinstance(node, ast.Tuple | ast.List):
            return tuple(self._literal(item) for item in node.elts)
        if isinstance(node, ast.Dict):
            return {self._key(key): self._literal(value) for key, value in _pairs(node)}
        called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        raise self.error(
            f"`{self.reader.shown(node)}` is no plain value: a number, text, tuple, dict, "
            f"True, False or None was expected.{hint(TERMS, called)}",
            node,
        )

    def _key(self, node: ast.AST | None) -> Any:
        if node is None:
            raise self.error("`**` cannot stand in a dict here.", self.node)
        key = self._literal(node)
        if not isinstance(key, str):
            raise self.error("A dict here goes from a feature's name to its value.", node)
        return key

    def _check_keys(self, names: list[str]) -> None:
        """Dicts of options name the term's own features, each once."""
        for keyword in self.node.keywords:
            seen: set[str] = set()
            for node, _ in _pairs(keyword.value) if isinstance(keyword.value, ast.Dict) else ():
                key = self._key(node)
                if key not in names:
                    raise self.error(
                        f"`{keyword.arg}` of `{self.name}()` names `{truncate(key)}`, which is not one "
                        f"of its features ({list_features(names)}).",
                        node or keyword,
                    )
                if key in seen:
                    message = f"`{keyword.arg}` of `{self.name}()` names `{truncate(key)}` twice."
                    raise self.error(message, node or keyword)
                seen.add(key)


def _pairs(node: ast.Dict) -> Iterable[tuple[ast.expr | None, ast.expr]]:
    return zip(node.keys, node.values, strict=True)
