"""The terms of a formula as a tree: sums of products of interactions of powers, as patsy reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ahofm_keras.errors import FormulaError
from ahofm_keras.formula.source import Source
from ahofm_keras.formula.tokens import OPERATORS, Token, unknown_sign
from ahofm_keras.texts import truncate

_LEVELS = (("+", "-"), ("*", "/"), (":",), ("**",))
_LARGEST_POWER = 10
_COLUMNS = "Before `|` stand columns with `+` between them, or `1`, e.g. `(1 + x | g)`."


@dataclass(frozen=True)
class Atom:
    """What operators stand between: a name, a call, a number, a `.`.

    Args:
        tokens: of what was written.
        stands_for: the call that is meant, where something else was written.
    """

    tokens: tuple[Token, ...]
    stands_for: str = ""

    @property
    def start(self) -> int:
        return self.tokens[0].start

    @property
    def end(self) -> int:
        return self.tokens[-1].end

    @property
    def is_number(self) -> bool:
        return self.tokens[0].kind == "number"

    @property
    def is_dot(self) -> bool:
        return self.tokens[0].kind == "dot"

    @property
    def has_dot(self) -> bool:
        return any(token.kind == "dot" for token in self.tokens)

    @property
    def called(self) -> str:
        """Name of the function where the atom is a call, else empty."""
        closes = len(self.tokens) > 2 and self.tokens[-1].text == ")"
        opens = closes and self.tokens[1].text == "(" and self.tokens[0].kind == "name"
        depth = self.tokens[0].depth
        once = sum(token.text == "(" and token.depth == depth for token in self.tokens) == 1
        return self.tokens[0].text if opens and once else ""


@dataclass(frozen=True)
class Chain:
    """Operands of operators that bind equally, to be read from the left.

    Args:
        operators: one before each operand; the first is a sign for sums, else empty.
        operands: at least one.
        start: place of its first letter.
        end: of its last one.
    """

    operators: tuple[str, ...]
    operands: tuple[Node, ...]
    start: int
    end: int

    @property
    def is_sum(self) -> bool:
        return self.operators[-1] in ("+", "-")

    @property
    def is_power(self) -> bool:
        return self.operators[-1] == "**"

    def items(self) -> Iterator[tuple[str, Node]]:
        return zip(self.operators, self.operands, strict=True)


Node = Atom | Chain


def atoms(node: Node) -> Iterator[Atom]:
    """Every atom of a tree besides numbers, from the left."""
    if isinstance(node, Chain):
        for operand in node.operands:
            yield from atoms(operand)
    elif not node.is_number:
        yield node


def read_tree(source: Source, tokens: Sequence[Token]) -> Node:
    """The tree of one side of a formula.

    Raises:
        FormulaError: a missing term, an operator without meaning, arithmetic outside `I(...)`.
    """
    return _TreeReader(source, tokens).side()


class _TreeReader:
    def __init__(self, source: Source, tokens: Sequence[Token]) -> None:
        self.source = source
        self.tokens = tokens
        self.place = 0

    def side(self) -> Node:
        node = self._chain(0)
        if self.place < len(self.tokens):
            raise self._not_an_operator()
        return node

    def _next(self) -> Token | None:
        return self.tokens[self.place] if self.place < len(self.tokens) else None

    def _at(self, *texts: str) -> bool:
        token = self._next()
        return token is not None and token.kind == "sign" and token.text in texts

    def _take(self) -> Token:
        self.place += 1
        return self.tokens[self.place - 1]

    def _chain(self, level: int) -> Node:
        """Operands of the operators of a level, each of them a chain of the next."""
        if level == len(_LEVELS):
            return self._noun()
        first = self.place
        sign = self._take().text if level == 0 and self._at("+", "-") else ""
        operators, operands = [sign], [self._chain(level + 1)]
        while self._at(*_LEVELS[level]):
            operators.append(self._take().text)
            operands.append(self._exponent() if level == 3 else self._chain(level + 1))
        start, end = self.tokens[first].start, self.tokens[self.place - 1].end
        if level == 0:
            operators[0] = sign or "+"
        chain = Chain(tuple(operators), tuple(operands), start, end)
        check = _check_sum if level == 0 else _check_product
        check(self.source, chain)
        return operands[0] if len(operands) == 1 and sign != "-" else chain

    def _noun(self) -> Node:
        token = self._next()
        if token is None or not (token.starts_a_noun or token.text in ("(", "[", "{")):
            raise self._missing(token)
        if token.text != "(":
            return self._atom()
        opening = self._take()
        if self._at(")"):
            raise self.source.error("The brackets are empty.", opening.start, self._take().end)
        node = self._chain(0)
        group = self._group() if self._at("|") else None
        if not self._at(")"):
            raise self._not_an_operator()
        closing = self._take()
        if group is None:
            return node
        return _random_effects(self.source, opening, node, group, closing.end)

    def _group(self) -> Atom:
        """What stands after the `|`, or `||`, of random effects."""
        sign = self._take()
        if self._at("|"):
            self._take()
        token = self._next()
        if token is None or token.kind != "name":
            message = "A column is missing after `|`: random effects are written `(1 + x | g)`."
            raise self.source.error(message, sign.start, sign.end)
        group = self._atom()
        if not self._at(")"):
            message = "After `|` stands one column, whose levels have the effects: `(1 | g) + (1 | h)`. "
            message += 'An effect per pair of levels is `s(g, h, bs="re")`.'
            raise self.source.error(message, group.start, self.tokens[self.place].end)
        return group

    def _atom(self) -> Atom:
        """A word with its brackets and attributes, which are not the tree's business."""
        first = self.place
        token = self.tokens[first]
        if token.text in ("[", "{"):
            self._skip_bracket()
        else:
            self._take()
        while token.kind not in ("number", "dot") and self._at("(", "[", "."):
            if self._at("."):
                self._take()
                following = self._next()
                self.place += following is not None and following.kind in ("name", "keyword")
            else:
                self._skip_bracket()
        return Atom(tuple(self.tokens[first : self.place]))

    def _skip_bracket(self) -> None:
        depth = self._take().depth
        while self._take().depth > depth:
            pass

    def _exponent(self) -> Atom:
        token = self._next()
        if token is None or token.text not in map(str, range(1, _LARGEST_POWER + 1)):
            token = token or self.tokens[-1]
            raise self.source.error(
                f"A power of terms must be a whole number from 1 to {_LARGEST_POWER}; "
                "for arithmetic write `I(x**2)`.",
                token.start,
                token.end,
            )
        return Atom((self._take(),))

    def _missing(self, token: Token | None) -> FormulaError:
        """The error where a term should stand, but an operator or nothing does."""
        before = self.tokens[self.place - 1] if self.place else None
        if token and token.kind == "keyword":
            return unknown_sign(self.source, token)
        if before and before.text in OPERATORS:
            if before.text in "+-" and token and token.text in ("+", "-"):
                return self._two_signs(before, token)
            return self.source.error(
                f"A term is missing after `{before.text}`.", before.start, before.end
            )
        assert token is not None
        if token.text in OPERATORS:
            message = f"A term is missing before `{token.text}`."
            return self.source.error(message, token.start, token.end)
        return unknown_sign(self.source, token)

    def _two_signs(self, before: Token, token: Token) -> FormulaError:
        self._take()
        after = self._next()
        sign = "+" if before.text == token.text else "-"
        example = f"write `{sign} {after.text}`" if after and after.starts_a_noun else "leave one out"
        message = f"Two signs stand side by side: {example}."
        return self.source.error(message, before.start, token.end)

    def _not_an_operator(self) -> FormulaError:
        token, before = self.tokens[self.place], self.tokens[self.place - 1]
        if token.text in ("(", "[", "{", ".") or token.starts_a_noun:
            message = f"An operator is missing before `{truncate(token.text)}`, e.g. `+`."
            return self.source.error(message, token.start, token.end)
        if token.text == "^" and before.text == ")":
            return self.source.error("Powers are written `**`.", token.start, token.end)
        return unknown_sign(self.source, token)


def _check_sum(source: Source, chain: Chain) -> None:
    """Numbers of a sum are 0 and 1, and nothing can be taken away from nothing."""
    for operand in chain.operands:
        if isinstance(operand, Atom) and operand.is_number and operand.tokens[0].text not in ("0", "1"):
            raise source.error(
                f"`{truncate(operand.tokens[0].text)}` is no term: `1` is the intercept, `0` none. "
                "Arithmetic stands in `I(...)`.",
                operand.start,
                operand.end,
            )
    first = chain.operands[0]
    if chain.operators[0] == "-" and not (isinstance(first, Atom) and first.is_number):
        name = isinstance(first, Atom) and first.tokens[0].kind == "name" and len(first.tokens) == 1
        written = truncate(source.written[first.start : first.end])
        hint = f"; for the negative write `I(-{written})`" if name else ""
        message = f"`-` takes a term away and needs one before it{hint}."
        raise source.error(message, chain.start, first.end)


def _check_product(source: Source, chain: Chain) -> None:
    """Terms are multiplied with terms, not with numbers."""
    if len(chain.operands) == 1:
        return
    written = truncate(source.written[chain.start : chain.end])
    for operand in chain.operands[: 1 if chain.is_power else None]:
        number = _number_in(operand)
        if number is None:
            continue
        if number is operand and ":" not in chain.operators:
            message = f"Arithmetic stands in `I(...)`: write `I({written})`."
            raise source.error(message, chain.start, chain.end)
        text = truncate(number.tokens[0].text)
        message = f"`{text}` cannot be multiplied with a term: leave it out."
        raise source.error(message, number.start, number.end)


def _number_in(node: Node) -> Atom | None:
    """The first number of a sum, which speaks of the intercept."""
    if isinstance(node, Atom):
        return node if node.is_number else None
    if not node.is_sum:
        return None
    return next(filter(None, map(_number_in, node.operands)), None)


def _random_effects(source: Source, opening: Token, effects: Node, group: Atom, end: int) -> Node:
    """lme4's `(effects | group)` as terms: an intercept per level, unless there is a 0, and slopes.

    Args:
        source: the formula.
        opening: the bracket.
        effects: what stands before `|`.
        group: what stands after it.
        end: of the closing bracket.

    Raises:
        FormulaError: other things than columns and numbers before `|`.
    """
    name = source.written[group.start : group.end]
    slopes, intercept = [], True
    for operator, atom in _summands(source, effects):
        if atom.is_number:
            intercept = (atom.tokens[0].text == "1") == (operator == "+")
        elif operator == "-" or atom.has_dot:
            raise source.error(_COLUMNS, atom.start, atom.end)
        else:
            slopes.append(atom)
    levels = name if group.called == "C" else f"C({name})"
    found = [
        Atom(atom.tokens, f's({levels}, {source.written[atom.start : atom.end]}, bs="re")')
        for atom in slopes
    ]
    if intercept:
        found = [Atom((opening,), f's({name}, bs="re")'), *found]
    if not found:
        raise source.error("`0` takes the intercept away, and nothing is left.", opening.start, end)
    return Chain(("+",) * len(found), tuple(found), opening.start, end)


def _summands(source: Source, node: Node) -> Iterator[tuple[str, Atom]]:
    if isinstance(node, Atom):
        yield "+", node
        return
    for operator, operand in node.items():
        if not (node.is_sum and isinstance(operand, Atom)):
            raise source.error(_COLUMNS, operand.start, operand.end)
        yield operator, operand
