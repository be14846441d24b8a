"""Tables of texts that stand aligned in a terminal and in a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ahofm_keras.texts import plain, shorten, text_width

WIDTH = 100
_GAP = "  "
_LEAST_LABEL = 12
# Where the part that is left out may stand: first tried first.
_CUTS = (0.6, 0.25, 0.85)
_NAME = "text-align:left;font-weight:normal"
_FIGURE = "text-align:right;padding-left:1em;white-space:nowrap"


@dataclass(frozen=True)
class Table:
    """A table whose first column holds names and the others figures.

    Args:
        title: above it.
        head: of the columns.
        rows: texts of the cells, the first one a name of any length.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def to_text(self, width: int = WIDTH) -> str:
        """Lines of at most `width` columns; names that are too long are shortened in their middle."""
        figures = [
            max(text_width(row[column]) for row in (self.head, *self.rows))
            for column in range(1, len(self.head))
        ]
        room = width - sum(figures) - len(_GAP) * len(figures)
        names = shorten_all([row[0] for row in self.rows], max(room, _LEAST_LABEL))
        first = max(map(text_width, (self.head[0], *names)))
        lines = [self.title]
        for name, row in zip((self.head[0], *names), (self.head, *self.rows), strict=True):
            cells = [_pad(cell, size) for cell, size in zip(row[1:], figures, strict=True)]
            lines.append(_GAP.join([name + " " * (first - text_width(name)), *cells]).rstrip())
        return "\n".join(lines)

    def to_html(self) -> str:
        """The same, with whole names."""
        head = "".join(
            f'<th style="{_FIGURE if place else _NAME}">{escape(cell)}</th>'
            for place, cell in enumerate(self.head)
        )
        body = "".join(
            f'<tr><th style="{_NAME}">{escape(row[0])}</th>'
            + "".join(f'<td style="{_FIGURE}">{escape(cell)}</td>' for cell in row[1:])
            + "</tr>"
            for row in self.rows
        )
        return (
            f'<table style="margin:1em 0"><caption style="{_NAME}"><b>{escape(self.title)}</b></caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )


def shorten_all(texts: Sequence[str], width: int) -> list[str]:
    """The same for all names of a column; those that differ stay different."""
    texts = [plain(text) for text in texts]
    for cut in _CUTS:
        found = [shorten(text, width, round((width - 1) * cut)) for text in texts]
        if len(set(found)) == len(set(texts)):
            return found
    numbered = [f"#{place + 1} {text}" for place, text in enumerate(texts)]
    return [
        shorten(number, width, round((width - 1) * _CUTS[0])) if text_width(text) > width else text
        for text, number in zip(texts, numbered, strict=True)
    ]


def _pad(cell: str, width: int) -> str:
    return " " * (width - text_width(cell)) + cell
