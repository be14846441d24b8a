"""`.` written out: every column besides the response and what the formula takes away."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ahofm_keras.errors import FormulaError
from ahofm_keras.formula.options import TERM_CALLS
from ahofm_keras.formula.source import Piece, Snippet, Source
from ahofm_keras.formula.tokens import Token, split_arguments
from ahofm_keras.formula.tree import Atom, Node, atoms
from ahofm_keras.transforms import quote_column

# Name of the column that an atom is, None where it is something else.
ColumnOf = Callable[[Atom], str | None]


class Dots:
    """Writes out the dots of a formula.

    Args:
        source: the formula.
        names: columns that a `.` stands for.
    """

    def __init__(self, source: Source, names: Sequence[str]) -> None:
        self.source = source
        self.names = [quote_column(name) for name in names]

    def write_out(self, atom: Atom) -> list[Snippet]:
        """The atoms that an atom stands for: `.` and `s(.)` one per column, any other itself."""
        dots = [token for token in atom.tokens if token.kind == "dot"]
        if atom.stands_for:
            return [Snippet(self.source, (Piece(atom.stands_for, atom.start, atom.end, copied=False),))]
        if not dots:
            return [self.source.snippet(atom.start, atom.end)]
        if atom.is_dot:
            return [self._replace(atom, dots, name) for name in self.names]
        for dot in dots:
            self._check_call(atom, dot)
        if TERM_CALLS[atom.called].each:
            return [self._replace(atom, dots, name) for name in self.names]
        return [self._replace(atom, dots, ", ".join(self.names))]

    def text(self, tree: Node) -> str:
        """The formula with its dots written out."""
        pieces, done = [], 0
        for atom in atoms(tree):
            if atom.has_dot:
                texts = [snippet.text for snippet in self.write_out(atom)]
                one = len(texts) == 1 and not atom.is_dot
                pieces.append(self.source.written[done : atom.start])
                pieces += texts if one else [f"({' + '.join(texts)})"]
                done = atom.end
        return "".join([*pieces, self.source.written[done:]])

    def _copy(self, start: int, end: int) -> Piece:
        return Piece(self.source.written[start:end], start, end)

    def _replace(self, atom: Atom, dots: list[Token], text: str) -> Snippet:
        pieces, done = [], atom.start
        for dot in dots:
            pieces += [self._copy(done, dot.start), Piece(text, dot.start, dot.end, copied=False)]
            done = dot.end
        pieces.append(self._copy(done, atom.end))
        return Snippet(self.source, tuple(piece for piece in pieces if piece.text))

    def _check_call(self, atom: Atom, dot: Token) -> None:
        """A `.` among arguments is a feature of its own."""
        call = TERM_CALLS.get(atom.called)
        arguments = split_arguments(atom.tokens) if call else []
        features = [argument for argument in arguments if "=" not in [t.text for t in argument[1:2]]]
        if [dot] not in features or call is None or atom.called == "offset":
            raise self._misplaced(atom, dot, features)
        if call.each and len(features) > 1:
            message = f"`.` in `{atom.called}()` must be its only feature: a term for each column."
            raise self.source.error(message, dot.start, dot.end)

    def _misplaced(self, atom: Atom, dot: Token, features: list[list[Token]]) -> FormulaError:
        for feature in features:
            if feature[0] is dot and [token.text for token in feature[1:2]] == ["-"]:
                rest = self.source.written[feature[1].start : feature[-1].end]
                message = f"Write `{atom.called}(.) {rest}`."
                return self.source.error(message, dot.start, feature[-1].end)
        calls = ", ".join(f"`{name}()`" for name in sorted(TERM_CALLS) if name != "offset")
        message = f"`.` cannot stand here: it is a term, or a feature of {calls}."
        return self.source.error(message, dot.start, dot.end)


def find_columns(
    source: Source,
    tokens: Sequence[Token],
    columns: Sequence[object] | None,
    left_out: set[str],
) -> list[str]:
    """Names of the columns that a `.` among the tokens stands for; none without a `.`.

    Raises:
        FormulaError: a `.` without columns.
    """
    dot = next((token for token in tokens if token.kind == "dot"), None)
    if dot is None:
        return []
    if columns is None:
        raise source.error("`.` needs data to take its columns from.", dot.start, dot.end)
    names = [name for name in dict.fromkeys(map(str, columns)) if name not in left_out]
    if not names:
        raise source.error("`.` stands for no column here.", dot.start, dot.end)
    if "" in names:
        message = "`.` stands for a column without a name, which no formula can write: rename it."
        raise source.error(message, dot.start, dot.end)
    return names


def taken_away(tree: Node, column_of: ColumnOf) -> set[str]:
    """Columns after a `-` of the formula: `- x`, `- Q("a b")`, `- (x + z)`; not those of `- x:z`."""
    if isinstance(tree, Atom) or not tree.is_sum:
        return set()
    away = [operand for operator, operand in tree.items() if operator == "-"]
    return set[str]().union(*(_plain_columns(operand, column_of) for operand in away))


def _plain_columns(node: Node, column_of: ColumnOf) -> set[str]:
    """Columns that are terms of their own once a tree is multiplied out."""
    if isinstance(node, Atom):
        name = column_of(node)
        return set() if name is None else {name}
    names = _plain_columns(node.operands[0], column_of)
    for operator, operand in list(node.items())[1:]:
        if operator in ("+", "*"):
            names |= _plain_columns(operand, column_of)
        elif operator == "-":
            names -= _plain_columns(operand, column_of)
        elif operator == ":":
            return set()
    return names
