"""A formula's text -> response, intercept and term specifications."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from ahofm_keras.formula.algebra import Factor, Factors, has_intercept, multiply_out
from ahofm_keras.formula.calls import read_call
from ahofm_keras.formula.dots import Dots, find_columns, taken_away
from ahofm_keras.formula.expressions import ExpressionReader
from ahofm_keras.formula.options import TERM_CALLS
from ahofm_keras.formula.orders import interaction_orders
from ahofm_keras.formula.source import Snippet, Source, read_source
from ahofm_keras.formula.spec import Formula, TermSpec
from ahofm_keras.formula.tokens import read_tokens, split_sides
from ahofm_keras.formula.tree import Atom, Node, atoms, read_tree
from ahofm_keras.transforms import Expression


def parse_formula(text: str, columns: Sequence[Any] | None = None) -> Formula:
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
    source = read_source(text)
    left, right = split_sides(source, read_tokens(source))
    response = _read_response(source, read_tree(source, left))
    tree = read_tree(source, right)
    away = taken_away(tree, lambda atom: _column_of(source, atom))
    dotted = find_columns(source, right, columns, away | set(response.columns()))
    dots = Dots(source, dotted)
    terms = _read_terms(source, tree, _read_factors(tree, dots))
    if all(term.kind == "offset" for term in terms) and not has_intercept(tree):
        message = "The formula has neither an intercept nor a term. Add one, e.g. `s(x1)`."
        raise source.error(message, right[0].start, right[-1].end)
    _check_response(response, terms)
    _check_repeated(terms)
    return Formula(dots.text(tree), response, terms, has_intercept(tree), tuple(dotted))


def _read_response(source: Source, tree: Node) -> Expression:
    if not isinstance(tree, Atom) or tree.is_number:
        message = "A formula has one response, a column or an expression such as `log(y)`."
        raise source.error(message, tree.start, tree.end)
    if tree.has_dot:
        raise source.error("`.` cannot stand for the response.", tree.start, tree.end)
    if tree.called in TERM_CALLS:
        message = f"`{tree.called}()` is a term and cannot be the response."
        raise source.error(message, tree.start, tree.end)
    reader = ExpressionReader(source.snippet(tree.start, tree.end))
    response = reader.response()
    if response.function in ("C", "poly"):
        message = f"`{response.function}()` cannot be the response, which is one column of numbers."
        raise reader.error(message, reader.root)
    return response


def _column_of(source: Source, atom: Atom) -> str | None:
    """Name of the column that an atom is, None where it is something else."""
    if atom.is_number or atom.has_dot or atom.stands_for or atom.called in TERM_CALLS:
        return None
    reader = ExpressionReader(source.snippet(atom.start, atom.end))
    expression = reader.feature(reader.root)
    return expression.arguments[0] if expression.is_column else None


def _read_factors(tree: Node, dots: Dots) -> Factors:
    """The factors of each atom; expressions are the same however they are written, calls are not."""
    keys: dict[Any, int] = {}
    factors: dict[int, list[Factor]] = {}
    for atom in atoms(tree):
        for snippet in dots.write_out(atom):
            value, same = _read_value(snippet)
            key = keys.setdefault(same, len(keys))
            factors.setdefault(atom.start, []).append(Factor(value, key, snippet.span))
    return factors


def _read_value(snippet: Snippet) -> tuple[Expression | TermSpec, Any]:
    """What an atom is, and a key that equals that of the same written twice."""
    reader = ExpressionReader(snippet)
    if reader.called not in TERM_CALLS:
        expression = reader.feature(reader.root)
        return expression, expression
    spec = read_call(reader)
    return spec, (ast.dump(reader.root), spec.features)


def _read_terms(source: Source, tree: Node, factors: Factors) -> tuple[TermSpec, ...]:
    return tuple(_read_term(source, term) for term in multiply_out(source, tree, factors))


def _read_term(source: Source, factors: list[Factor]) -> TermSpec:
    span = min(factor.span[0] for factor in factors), max(factor.span[1] for factor in factors)
    called = [factor.value for factor in factors if isinstance(factor.value, TermSpec)]
    if not called:
        features = tuple(factor.value for factor in factors if isinstance(factor.value, Expression))
        return TermSpec("linear", features, source=source, span=span)
    if len(factors) == 1:
        return called[0]
    smooth = called[0].kind != "offset"
    hint = " Interactions of smooths are written `ti(x1, x2)` or `ahofm(x1, x2)`." if smooth else ""
    message = f"`{called[0].call}()` cannot be multiplied with `:` or `*`.{hint}"
    raise source.error(message, *span)


def _check_response(response: Expression, terms: tuple[TermSpec, ...]) -> None:
    of_response = set(response.columns())
    for term in terms:
        for name in (name for feature in term.inputs for name in feature.columns()):
            if name in of_response:
                raise term.error(f"The response `{name}` cannot stand among the terms too.")


def _check_repeated(terms: tuple[TermSpec, ...]) -> None:
    """A smooth, an offset, an order of interaction of the same features stands once."""
    seen: dict[tuple[Any, ...], TermSpec] = {}
    for term in terms:
        orders: tuple[int, ...] = (1,)
        if term.kind in ("ahofm", "hofm"):
            orders = interaction_orders(term.options, len(term.features))
        for order in orders if term.kind != "linear" else ():
            # A curve per level, deviations and random slopes of the same features are different terms.
            basis = term.options["bs"] if term.kind == "s" and len(term.features) > 1 else None
            one = (term.kind, _same(term), order, term.by, basis)
            if one in seen:
                hint = _beside(term, seen[one])
                raise term.error(f"`{term.label}` stands twice in the formula.{hint}")
            seen[one] = term


def _same(term: TermSpec) -> frozenset[Any]:
    """The features in no order: a point as its coordinates, beside others a category without `C()`."""
    several = len(term.features) > 1 and term.kind == "s"
    of = (own.arguments[0] if several and own.is_category else own for own in term.features)
    return frozenset(coordinate for own in of for coordinate in own.coordinates)


def _beside(term: TermSpec, other: TermSpec) -> str:
    if term.kind == "te":
        return " A `te()` holds the `ti()` of the same features."
    if (
        term.kind == "s"
        and "re" in (first := term.options.get("bs"), other.options.get("bs"))
        and (first != other.options.get("bs"))
    ):
        return f" Beside a smooth of a number the levels are those of `(1 | C({term.features[0]}))`."
    return ""


__all__ = ["Formula", "TermSpec", "parse_formula"]
