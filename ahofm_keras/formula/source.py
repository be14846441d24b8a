"""The text of a formula: brackets checked, `.` written out, places kept for the carets."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ahofm_keras.errors import FormulaError
from ahofm_keras.transforms import quote_column

_CLOSING = {")": "(", "]": "[", "}": "{"}
_LARGEST_POWER = 10
_LONGEST = 100_000
_TILDE = "A formula needs one `~` between the response and the terms, e.g. `y ~ s(x1) + s(x2)`."


@dataclass(frozen=True)
class Source:
    """What the user wrote and what patsy will see.

    Args:
        written: the user's text, on one line.
        expanded: the same with every `.` written out.
        shifts: `(start, end, from_start, from_end)`: a stretch of `expanded` and where it came from.
    """

    written: str
    expanded: str
    shifts: tuple[tuple[int, int, int, int], ...] = field(default=())

    def error(self, message: str, start: int = 0, end: int | None = None) -> FormulaError:
        """A `FormulaError` with carets below `expanded[start:end]`, shown in what was written."""
        if end is None:
            return FormulaError(message, self.written)
        return FormulaError(message, self.written, (self._origin(start, 0), self._origin(end, 1)))

    def _origin(self, place: int, side: int) -> int:
        moved = 0
        for start, end, from_start, from_end in self.shifts:
            if place < start or (place == start and side):
                break
            if place < end or (place == end and side):
                return (from_start, from_end)[side]
            moved = from_end - end
        return place + moved


@dataclass(frozen=True)
class _Token:
    text: str
    start: int
    end: int
    kind: int
    depth: int


def read_source(text: str, columns: Sequence[str] | None) -> Source:
    """Check the text's shape and write out its dots.

    Raises:
        FormulaError: no text, brackets or quotes that do not match, not exactly one `~`, a `.` with
            no columns to stand for.
    """
    if not isinstance(text, str):
        raise FormulaError(f"A formula must be text, e.g. `y ~ s(x1)`. Received: {type(text).__name__}.")
    written = re.sub(r"[\r\n\t\f\v]", " ", text).rstrip()
    source = Source(written, written)
    if not written.strip():
        raise FormulaError("The formula is empty. Write, for example, `y ~ s(x1) + s(x2)`.")
    if len(written) > _LONGEST:
        raise FormulaError(f"The formula is longer than {_LONGEST:,} characters.")
    _check_brackets(source)
    tokens = _tokens(source)
    _check_tilde(source, tokens)
    _check_powers(source, tokens)
    return _write_out_dots(source, tokens, columns)


def _check_brackets(source: Source) -> None:
    """Every bracket and quote closed by its own kind."""
    opened: list[tuple[str, int]] = []
    quote: tuple[str, int] | None = None
    escaped = False
    for place, letter in enumerate(source.written):
        if quote:
            if letter == quote[0] and not escaped:
                quote = None
            escaped = letter == "\\" and not escaped
        elif letter in "\"'":
            quote = (letter, place)
        elif letter == "#":
            raise source.error("A formula has no comments: leave out `#`.", place, place + 1)
        elif letter in _CLOSING.values():
            opened.append((letter, place))
        elif letter in _CLOSING:
            if not opened:
                raise source.error(f"`{letter}` closes nothing.", place, place + 1)
            if opened[-1][0] != _CLOSING[letter]:
                raise source.error(f"`{letter}` does not close `{opened[-1][0]}`.", place, place + 1)
            opened.pop()
    if quote:
        raise source.error("This quote is never closed.", quote[1], quote[1] + 1)
    if opened:
        letter, place = opened[-1]
        raise source.error(f"`{letter}` is never closed.", place, place + 1)


def _tokens(source: Source) -> list[_Token]:
    """Python's own tokens, with their bracket depth."""
    lead = len(source.written) - len(source.written.lstrip())
    reader = io.StringIO(source.written[lead:]).readline
    found, depth = [], 0
    try:
        for token in tokenize.generate_tokens(reader):
            if token.type in (tokenize.NEWLINE, tokenize.NL, tokenize.ENDMARKER):
                continue
            depth -= token.string in _CLOSING
            start = token.start[1] + lead
            found.append(_Token(token.string, start, start + len(token.string), token.type, depth))
            depth += token.string in _CLOSING.values()
    except (tokenize.TokenError, SyntaxError) as error:
        raise source.error(f"The formula cannot be read: {error.args[0]}.") from None
    return found


def _check_tilde(source: Source, tokens: list[_Token]) -> None:
    tildes = [token for token in tokens if token.text == "~"]
    if not tildes:
        raise source.error(_TILDE)
    if len(tildes) > 1 or tildes[0].depth:
        raise source.error(_TILDE, tildes[-1].start, tildes[-1].end)
    if tildes[0] is tokens[0]:
        raise source.error("The response is missing before `~`.", tildes[0].start, tildes[0].end)
    if tildes[0] is tokens[-1]:
        raise source.error("There is no term after `~`.", tildes[0].start, tildes[0].end)


def _check_powers(source: Source, tokens: list[_Token]) -> None:
    """`(a + b)**3` multiplies terms out: a large power would never end."""
    for before, token in pairwise(tokens):
        small = token.text.isdigit() and int(token.text[:9]) <= _LARGEST_POWER
        if before.text == "**" and not before.depth and not small:
            raise source.error(
                f"A power of terms must be a whole number up to {_LARGEST_POWER}; "
                f"for arithmetic write `I(x**2)`.",
                token.start,
                token.end,
            )


def _write_out_dots(source: Source, tokens: list[_Token], columns: Sequence[str] | None) -> Source:
    dots = [place for place in range(len(tokens)) if _is_dot(tokens, place)]
    if not dots:
        return source
    if columns is None:
        token = tokens[dots[0]]
        raise source.error("`.` needs data to take its columns from.", token.start, token.end)
    tilde = next(place for place, token in enumerate(tokens) if token.text == "~")
    if dots[0] < tilde:
        token = tokens[dots[0]]
        raise source.error("`.` cannot stand for the response.", token.start, token.end)
    left_out = _column_names(tokens[:tilde]) | _taken_away(tokens[tilde:])
    names = [quote_column(name) for name in columns if name not in left_out]
    if not names:
        token = tokens[dots[0]]
        raise source.error("`.` stands for no column here.", token.start, token.end)
    return _replace_dots(source, [tokens[place] for place in dots], names)


def _is_dot(tokens: list[_Token], place: int) -> bool:
    """A `.` of its own, not that of `a.b`."""
    token = tokens[place]
    before = tokens[place - 1] if place else None
    after = tokens[place + 1] if place + 1 < len(tokens) else None
    glued_left = before and before.end == token.start and before.kind == tokenize.NAME
    glued_right = after and after.start == token.end and after.kind == tokenize.NAME
    return token.text == "." and not glued_left and not glued_right


def _replace_dots(source: Source, dots: list[_Token], names: list[str]) -> Source:
    pieces: list[str] = []
    shifts: list[tuple[int, int, int, int]] = []
    done = length = 0
    for dot in dots:
        text = ", ".join(names) if dot.depth and _inside_call(source, dot) else " + ".join(names)
        text = text if dot.depth and _inside_call(source, dot) else f"({text})"
        pieces += [source.written[done : dot.start], text]
        length += dot.start - done
        shifts.append((length, length + len(text), dot.start, dot.end))
        length += len(text)
        done = dot.end
    pieces.append(source.written[done:])
    return Source(source.written, "".join(pieces), tuple(shifts))


def _inside_call(source: Source, dot: _Token) -> bool:
    """Whether the bracket around the dot is that of a call rather than one that groups terms."""
    depth = 0
    for place in range(dot.start - 1, -1, -1):
        letter = source.written[place]
        depth += letter == ")"
        if letter == "(":
            if not depth:
                before = source.written[:place].rstrip()
                return bool(before) and (before[-1].isalnum() or before[-1] == "_")
            depth -= 1
    return False


def _column_names(tokens: list[_Token]) -> set[str]:
    """Every name in a stretch of formula that may be a column: names, and texts of `Q("...")`."""
    names = set()
    for place, token in enumerate(tokens):
        called = place + 1 < len(tokens) and tokens[place + 1].text == "("
        if token.kind == tokenize.NAME and not called:
            names.add(token.text)
        elif token.kind == tokenize.STRING:
            names.add(token.text[1:-1].replace('\\"', '"').replace("\\\\", "\\"))
    return names


def _taken_away(tokens: list[_Token]) -> set[str]:
    """Columns after a `-`: `- x`, `- Q("a b")`, `- (x + z)`."""
    names: set[str] = set()
    for place, token in enumerate(tokens):
        if token.text != "-" or token.depth:
            continue
        stretch = []
        for following in tokens[place + 1 :]:
            if not following.depth and following.text in ("+", "-", "~"):
                break
            stretch.append(following)
        is_call = len(stretch) > 1 and stretch[1].text == "(" and stretch[0].text != "Q"
        if not is_call:
            names |= _column_names(stretch)
    return names
