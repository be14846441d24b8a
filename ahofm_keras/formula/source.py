"""A formula's text, and where each stretch of it was written, for the carets."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from ahofm_keras.errors import FormulaError
from ahofm_keras.texts import truncate

_LONGEST = 1_000_000
_LINE = 85
# Python's string literals; nothing inside them is taken for a part of the formula.
QUOTED = (
    r"(?:[rRbBuUfF]{1,2})?(?:"
    r"'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\"|'(?:\\.|[^\\'])*'|\"(?:\\.|[^\\\"])*\")"
)
_QUOTED_OR_BLANK = re.compile(rf"(?P<quoted>{QUOTED})|[\s\ufeff\u200b\u2060]", re.DOTALL)


@dataclass(frozen=True)
class Source:
    """What the user wrote.

    Args:
        written: the user's text, on one line.
    """

    written: str = ""

    def error(self, message: str, start: int | None = None, end: int = 0) -> FormulaError:
        """A `FormulaError` with carets below `written[start:end]`, or without carets."""
        if start is None:
            return FormulaError(message, truncate(self.written, _LINE))
        return FormulaError(message, self.written, (start, end))

    def snippet(self, start: int, end: int) -> Snippet:
        """A part of the formula as it was written."""
        return Snippet(self, (Piece(self.written[start:end], start, end),))


@dataclass(frozen=True)
class Piece:
    """A stretch of text and where it comes from.

    Args:
        text: e.g. `x1, x2`.
        start: of the place in what was written.
        end: of the place in what was written.
        copied: whether the text is that place letter by letter, or stands for it as a whole.
    """

    text: str
    start: int
    end: int
    copied: bool = True

    def place(self, letter: int) -> tuple[int, int]:
        """Where one of its letters was written."""
        return (self.start + letter, self.start + letter + 1) if self.copied else (self.start, self.end)


@dataclass(frozen=True)
class Snippet:
    """A part of a formula with its dots written out, that knows where its letters come from."""

    source: Source
    pieces: tuple[Piece, ...]

    @cached_property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)

    @property
    def span(self) -> tuple[int, int]:
        return self.pieces[0].start, self.pieces[-1].end

    def error(self, message: str, start: int, end: int) -> FormulaError:
        """A `FormulaError` with carets below the place that `text[start:end]` comes from."""
        return self.source.error(message, self._place(start)[0], self._place(end - 1)[1])

    def _place(self, letter: int) -> tuple[int, int]:
        for piece in self.pieces:
            if letter < len(piece.text):
                return piece.place(letter)
            letter -= len(piece.text)
        return self.span


def read_source(text: str) -> Source:
    """The text on one line, with plain blanks.

    Raises:
        FormulaError: no text, an empty one, one that is too long.
    """
    if not isinstance(text, str):
        raise FormulaError(f"A formula must be text, e.g. `y ~ s(x1)`. Received: {type(text).__name__}.")
    if len(text) > _LONGEST:
        raise FormulaError(f"The formula is longer than {_LONGEST:,} characters.")
    one_line = re.sub(r"[\r\n]", " ", text)
    written = _QUOTED_OR_BLANK.sub(lambda match: match["quoted"] or " ", one_line).strip()
    if not written:
        raise FormulaError("The formula is empty. Write, for example, `y ~ s(x1) + s(x2)`.")
    return Source(written)
