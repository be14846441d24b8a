"""A tree of terms -> the terms it multiplies out to: patsy's algebra, kept from running away."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from math import comb
from typing import TypeVar

from patsy import ModelDesc

from ahofm_keras.errors import FormulaError
from ahofm_keras.formula.options import TERM_CALLS
from ahofm_keras.formula.source import Source
from ahofm_keras.formula.spec import TermSpec
from ahofm_keras.formula.tree import Atom, Chain, Node
from ahofm_keras.texts import truncate
from ahofm_keras.transforms import Expression

T = TypeVar("T")

_MOST_TERMS = 10_000
# patsy multiplies each term with each other one, and compares each with each that is taken away.
_MOST_PAIRS = 1_000_000


@dataclass(frozen=True)
class Factor:
    """What terms are products of.

    Args:
        value: an expression, or a term that was called.
        key: equal for factors that are the same.
        span: where it was written.
    """

    value: Expression | TermSpec
    key: int
    span: tuple[int, int]


# Factors of each atom, by the atom's start: one, or one per column for `.` and `s(.)`.
Factors = Mapping[int, Sequence[Factor]]


def has_intercept(tree: Node) -> bool:
    """Whether the model has an intercept: it has, unless the last that is said of it takes it away."""
    return _intercept(tree) is not False


def _intercept(node: Node) -> bool | None:
    """What a tree says of the intercept, None where it says nothing."""
    if isinstance(node, Atom):
        return node.tokens[0].text == "1" if node.is_number else None
    said: bool | None = None
    for operator, operand in node.items() if node.is_sum else ():
        value = _intercept(operand)
        if value is None:
            continue
        if operator == "+":
            said = value
        elif value or isinstance(operand, Atom):
            said = not value
    return said


def multiply_out(source: Source, tree: Node, factors: Factors) -> list[list[Factor]]:
    """The factors of each term, in patsy's order.

    Raises:
        FormulaError: more than 10,000 terms, a power of a single term.
    """
    tree = _without_idle(tree, factors, _added(tree, factors))
    _Sizes(source, factors).check(tree)
    writer = _Writer(factors)
    if writer.is_empty(tree):
        return []
    writer.write(tree)
    try:
        description = ModelDesc.from_formula(writer.text)
    except RecursionError:
        message = "The formula is nested too deeply: add terms first, take terms away last."
        raise source.error(message) from None
    terms = [term.factors for term in description.rhs_termlist if term.factors]
    return [[writer.factor_at(factor.origin.start) for factor in term] for term in terms]


@dataclass(frozen=True)
class _Size:
    """How many terms a tree has at most, and the factors that they are products of."""

    count: int
    keys: set[int]


class _Sizes:
    """Counts terms without multiplying them out."""

    def __init__(self, source: Source, factors: Factors) -> None:
        self.source = source
        self.factors = factors

    def check(self, tree: Node) -> None:
        """What is written term by term may be long, what is multiplied out may not."""
        written = sum(map(len, self.factors.values()))
        if self.size(tree).count - written > _MOST_TERMS:
            raise self._too_many(tree)

    def size(self, node: Node) -> _Size:
        if isinstance(node, Atom):
            keys = {factor.key for factor in self.factors.get(node.start, ())}
            return _Size(len(keys), keys)
        if node.is_power:
            return self._power(node)
        first, *others = [self.size(operand) for operand in node.operands]
        count, keys = first.count, set(first.keys)
        for operator, other in zip(node.operators[1:], others, strict=True):
            keys |= other.keys
            count = self._combined(node, operator, count, other.count)
            if not node.is_sum:
                count = self._bounded(node, count, len(keys))
        return _Size(count, keys)

    def _combined(self, node: Chain, operator: str, left: int, right: int) -> int:
        if operator != "+":
            self._check_pairs(node, left * right)
        return {
            "+": left + right,
            "-": left,
            ":": left * right,
            "/": left + right,
            "*": left + right + left * right,
        }[operator]

    def _power(self, node: Chain) -> _Size:
        base, *exponents = node.operands
        size = self.size(base)
        if size.count < 2:
            raise self._power_of_one(node)
        count = size.count
        for exponent in exponents:
            assert isinstance(exponent, Atom)
            once, pairs = count, 0
            for terms in range(2, int(exponent.tokens[0].text) + 1):
                pairs += once * count
                count = self._bounded(node, count + comb(once, terms), len(size.keys))
            self._check_pairs(node, pairs)
        return _Size(count, size.keys)

    def _power_of_one(self, node: Chain) -> FormulaError:
        base = node.operands[0]
        message = "A power multiplies out a sum of terms, e.g. `(x + z)**2`"
        if isinstance(base, Atom) and base.called not in TERM_CALLS:
            written = truncate(self.source.written[node.start : node.end])
            message += f"; for arithmetic write `I({written})`"
        return self.source.error(f"{message}.", node.start, node.end)

    def _check_pairs(self, node: Chain, pairs: int) -> None:
        if pairs > _MOST_PAIRS:
            message = f"This pairs terms with terms more than {_MOST_PAIRS:,} times."
            raise self.source.error(message, node.start, node.end)

    def _bounded(self, node: Chain, count: int, keys: int) -> int:
        # Terms are sets of factors, however often they are multiplied.
        count = min(count, 2 ** min(keys, 64) - 1)
        if count > _MOST_TERMS:
            raise self._too_many(node)
        return count

    def _too_many(self, node: Node) -> FormulaError:
        message = f"This multiplies out to more than {_MOST_TERMS:,} terms."
        return self.source.error(message, node.start, node.end)


def _added(node: Node, factors: Factors) -> set[int]:
    """Keys of the factors that a tree adds, whether or not it takes them away again."""
    if isinstance(node, Atom):
        return {factor.key for factor in factors.get(node.start, ())}
    added = (_added(operand, factors) for operator, operand in node.items() if operator != "-")
    return set[int]().union(*added)


def _without_idle(node: Node, factors: Factors, added: set[int]) -> Node:
    """The same tree without the `-` of terms that were never added, such as columns left out of `.`."""
    if isinstance(node, Atom):
        return node
    items = [
        (operator, _without_idle(operand, factors, added))
        for operator, operand in node.items()
        if operator != "-" or _intercept(operand) is not None or _added(operand, factors) & added
    ]
    return replace(node, operators=tuple(o for o, _ in items), operands=tuple(n for _, n in items))


class _Writer:
    """Writes a tree as patsy reads it: a short name a factor, long sums in balanced brackets.

    patsy works through nested operators recursively, so that a plain sum of 500 terms is too much
    for it.
    """

    def __init__(self, factors: Factors) -> None:
        self.factors = factors
        self._places: dict[int, Factor] = {}
        self._pieces: list[str] = []
        self._length = 0
        self._put("~ ")

    @cached_property
    def text(self) -> str:
        return "".join(self._pieces)

    def factor_at(self, place: int) -> Factor:
        """The factor whose name, or the brackets around it, start at a place of the text."""
        return self._places[self.text.index("t", place)]

    def is_empty(self, node: Node) -> bool:
        """Whether a tree speaks of the intercept only."""
        if isinstance(node, Atom):
            return node.is_number
        return node.is_sum and not self._runs(node)

    def write(self, node: Node) -> None:
        if isinstance(node, Atom):
            self._balanced(self.factors[node.start], "+", self._factor)
        elif node.is_sum:
            for place, (operator, operands) in enumerate(self._runs(node)):
                self._put(f" {operator} " if place else "")
                self._balanced(operands, "+", self.write)
        elif set(node.operators[1:]) == {":"}:
            self._balanced(node.operands, ":", self.write)
        else:
            self._product(node)

    def _put(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text)

    def _factor(self, factor: Factor) -> None:
        self._places[self._length] = factor
        self._put(f"t{factor.key}")

    def _runs(self, chain: Chain) -> list[tuple[str, list[Node]]]:
        """Operands of a sum by their signs: what is added, what is taken away, what is added again."""
        items = [item for item in chain.items() if not self.is_empty(item[1])]
        runs = [
            (sign, [operand for _, operand in run])
            for sign, run in groupby(items, key=lambda item: item[0])
        ]
        return runs[1:] if runs and runs[0][0] == "-" else runs

    def _balanced(self, items: Sequence[T], operator: str, write: Callable[[T], None]) -> None:
        self._put("(")
        if len(items) == 1:
            write(items[0])
        else:
            half = len(items) // 2
            self._balanced(items[:half], operator, write)
            self._put(f" {operator} ")
            self._balanced(items[half:], operator, write)
        self._put(")")

    def _product(self, chain: Chain) -> None:
        for operator, operand in chain.items():
            self._put(operator)
            if operator == "**":
                assert isinstance(operand, Atom)
                self._put(operand.tokens[0].text)
            else:
                self._put("(")
                self.write(operand)
                self._put(")")
