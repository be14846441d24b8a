"""The words of a formula: names, numbers, texts and signs, with their brackets and places."""

from __future__ import annotations

import ast
import keyword
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ahofm_keras.errors import FormulaError
from ahofm_keras.formula.foreign_syntax import SIGNS, hint
from ahofm_keras.formula.source import QUOTED, Source
from ahofm_keras.texts import truncate
from ahofm_keras.transforms import is_number_word, quote_column

OPERATORS = ("+", "-", "*", "/", ":", "**")
_CLOSING = {")": "(", "]": "[", "}": "{"}
_OPENING = tuple(_CLOSING.values())
_DEEPEST = 50
_TILDE = "A formula needs one `~` between the response and the terms, e.g. `y ~ s(x1) + s(x2)`."
# Signs of Python that may stand somewhere, be it only to be told that they have no meaning there.
_SIGNS = {*"()[]{}+-*/:~.,=<>%@&|^;", "**", "//", ":=", "==", "!=", "<=", ">=", "->", "...", "<<", ">>"}
_TOKEN = re.compile(
    rf"(?P<text>{QUOTED})"
    r"|(?P<number>(?:[0-9]|\.[0-9])(?:[eE][+-](?=[0-9])|[\w.])*)"
    r"|(?P<name>[\w\u0080-\U0010ffff]+)"
    r"|(?P<sign>\*\*|//|:=|[=!<>]=|->|\.\.\.|<<|>>|[^ ])",
    re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    """A word of a formula.

    Args:
        text: as written.
        start: place of its first letter.
        kind: `"name"`, `"number"`, `"text"`, `"keyword"`, `"sign"`, or `"dot"` for a `.` that stands
            for columns.
        depth: number of brackets around it.
        inside: whether one of them is that of a call, a list or a dict.
    """

    text: str
    start: int
    kind: str
    depth: int = 0
    inside: bool = False

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def starts_a_noun(self) -> bool:
        return self.kind in ("name", "number", "text", "dot")

    @property
    def ends_a_noun(self) -> bool:
        return self.starts_a_noun or self.text in _CLOSING


def read_tokens(source: Source) -> list[Token]:
    """The words of a formula, checked as far as words and their neighbours tell.

    Raises:
        FormulaError: letters without meaning, brackets or quotes that do not match, names that are no
            names, a missing operator.
    """
    tokens = list(_with_brackets(source, list(_words(source))))
    for place in range(len(tokens)):
        _check_word(source, tokens, place)
    for before, token in pairwise(tokens):
        _check_neighbours(source, before, token)
    return tokens


def split_sides(source: Source, tokens: list[Token]) -> tuple[list[Token], list[Token]]:
    """What stands before and after the one `~`."""
    tildes = [place for place, token in enumerate(tokens) if token.text == "~"]
    if not tildes:
        raise source.error(_TILDE)
    tilde = tokens[tildes[-1]]
    if len(tildes) > 1 or tilde.depth:
        raise source.error(_TILDE, tilde.start, tilde.end)
    left, right = tokens[: tildes[0]], tokens[tildes[0] + 1 :]
    if not left:
        raise source.error("The response is missing before `~`.", tilde.start, tilde.end)
    if not right:
        raise source.error("There is no term after `~`.", tilde.start, tilde.end)
    return left, right


def split_arguments(tokens: Sequence[Token]) -> list[list[Token]]:
    """Tokens of each argument of a call, which is its name, brackets and what is between them."""
    depth = tokens[1].depth + 1
    arguments: list[list[Token]] = [[]]
    for token in tokens[2:-1]:
        if token.depth == depth and token.text == ",":
            arguments.append([])
        else:
            arguments[-1].append(token)
    return [argument for argument in arguments if argument]


def unknown_sign(source: Source, token: Token, known: Sequence[str] = OPERATORS) -> FormulaError:
    """The error for a sign that has a meaning in Python, but none at this place."""
    listed = ", ".join(f"`{sign}`" for sign in known)
    message = f"`{token.text}` is not known here. Known: {listed}.{hint(SIGNS, token.text)}"
    return source.error(message, token.start, token.end)


def _words(source: Source) -> Iterator[Token]:
    before: Token | None = None
    for match in _TOKEN.finditer(source.written):
        kind = str(match.lastgroup)
        token = Token(match.group(), match.start(), kind)
        _check_letters(source, token)
        if kind == "name" and _is_keyword(token.text):
            token = replace(token, kind="keyword")
        if token.text == "." and not (before and before.ends_a_noun and before.end == token.start):
            token = replace(token, kind="dot")
        before = token
        yield token


def _is_keyword(text: str) -> bool:
    return keyword.iskeyword(text) and text not in ("True", "False", "None")


def _check_letters(source: Source, token: Token) -> None:
    if token.text in ("'", '"'):
        raise source.error("This quote is never closed.", token.start, token.end)
    if token.text == "#":
        raise source.error("A formula has no comments: leave out `#`.", token.start, token.end)
    for place, letter in enumerate(token.text, token.start):
        in_name = token.kind != "name" or f"a{letter}".isidentifier()
        in_sign = token.kind != "sign" or token.text in _SIGNS
        if not (in_name and in_sign):
            raise source.error(_no_meaning(letter), place, place + 1)


def _no_meaning(letter: str) -> str:
    if letter == "`":
        hint = 'A column whose name is no identifier is written `Q("km/h")`.'
        return f"Backticks have no meaning in a formula. {hint}"
    shown = letter if letter.isprintable() else ascii(letter)[1:-1]
    return f"`{shown}` has no meaning in a formula."


def _with_brackets(source: Source, tokens: list[Token]) -> Iterator[Token]:
    """The same tokens with the brackets around them counted, each closed by its own kind."""
    opened: list[tuple[Token, bool]] = []
    for place, token in enumerate(tokens):
        if token.text in _CLOSING:
            _check_closing(source, token, opened[-1][0] if opened else None)
            opened.pop()
        inside = any(inside for _, inside in opened)
        yield replace(token, depth=len(opened), inside=inside)
        if token.text in _OPENING:
            called = place > 0 and tokens[place - 1].ends_a_noun
            opened.append((token, called or token.text != "("))
            if len(opened) > _DEEPEST:
                message = f"Brackets are nested more than {_DEEPEST} deep."
                raise source.error(message, token.start, token.end)
    if opened:
        token = opened[-1][0]
        raise source.error(f"`{token.text}` is never closed.", token.start, token.end)


def _check_closing(source: Source, token: Token, opening: Token | None) -> None:
    if opening is None:
        raise source.error(f"`{token.text}` closes nothing.", token.start, token.end)
    if opening.text != _CLOSING[token.text]:
        message = f"`{token.text}` does not close `{opening.text}`."
        raise source.error(message, token.start, token.end)


def _check_word(source: Source, tokens: list[Token], place: int) -> None:
    token = tokens[place]
    reason = _misread(tokens, place)
    if reason:
        shown, quoted = truncate(token.text), truncate(quote_column(token.text))
        message = f"`{shown}` {reason}. A column of that name is written `{quoted}`."
        raise source.error(message, token.start, token.end)


def _misread(tokens: list[Token], place: int) -> str:
    """Why Python reads a name or a number otherwise than it is meant, empty where it does not."""
    token = tokens[place]
    if token.kind == "number" and not _is_number(token.text):
        return "is no number"
    if token.kind == "name" and not token.text.isidentifier():
        return "is no name"
    if token.kind == "name" and is_number_word(token.text) and _stands_alone(tokens, place):
        return "is a number and no term"
    if token.kind == "keyword" and _stands_alone(tokens, place):
        return "cannot be read"
    return ""


def _is_number(text: str) -> bool:
    # Python refuses to read very long whole numbers.
    if text.isascii() and text.isdigit() and (text == "0" or text[0] != "0"):
        return True
    try:
        node = parse_python(text)
    except (SyntaxError, ValueError):
        return False
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float | complex)


def parse_python(text: str) -> ast.expr:
    """Python's syntax tree of an expression; nothing of it is run."""
    # Python warns of what it finds odd in code, such as the escape in Q("\\d").
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, mode="eval").body


def _stands_alone(tokens: list[Token], place: int) -> bool:
    """Whether a word is used as a column: not called, not an operator, not the name of an option."""
    before = tokens[place - 1].text if place else "~"
    after = tokens[place + 1].text if place + 1 < len(tokens) else "~"
    if tokens[place].text == "lambda" and after == ":":
        return False
    around = (*OPERATORS, "~", ",")
    return before in (*around, *_OPENING) and after in (*around, *_CLOSING)


def _check_neighbours(source: Source, before: Token, token: Token) -> None:
    """Two nouns in a row lack an operator, or, among the arguments of a call, a comma."""
    both_texts = before.kind == token.kind == "text"
    if not before.ends_a_noun or not token.starts_a_noun or both_texts:
        return
    missing = "`,` or an operator is missing" if token.inside else "An operator is missing"
    example = "" if token.inside else ", e.g. `+`"
    first, second = truncate(before.text), truncate(token.text)
    if token.kind == "dot":
        message = f"{missing} before `.`."
    elif before.kind == "dot":
        message = f"{missing} after `.`."
    elif before.text in _CLOSING:
        message = f"{missing} before `{second}`{example}."
    else:
        message = f"{missing} between `{first}` and `{second}`{example}."
    raise source.error(message, before.start if before.text not in _CLOSING else token.start, token.end)
