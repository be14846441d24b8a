"""Tables of texts that stand aligned in a terminal and in a page."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import floor, isfinite, log10

WIDTH = 100
_GAP = "  "
_ELLIPSIS = "…"
_LEAST_LABEL = 12
# Where the part that is left out may stand: first tried first.
_CUTS = (0.6, 0.25, 0.85)
_LEAST_P = 1e-16
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


def text_width(text: str) -> int:
    """Columns of a terminal that a text takes."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def plain(text: str) -> str:
    """A text without characters that would move the cursor."""
    return "".join(c if c.isprintable() else "�" for c in text)


def shorten(text: str, width: int, cut: float = _CUTS[0]) -> str:
    """A text of at most `width` columns, an ellipsis in place of what is left out.

    Args:
        text: any.
        width: at least 3.
        cut: where the ellipsis stands, as a share of the width.
    """
    if text_width(text) <= width:
        return text
    head, tail = _take(text, round((width - 1) * cut)), ""
    for character in reversed(text[len(head) :]):
        if text_width(head + character + tail) > width - 1:
            break
        tail = character + tail
    return head + _ELLIPSIS + tail


def _take(text: str, width: int) -> str:
    taken = ""
    for character in text:
        if text_width(taken + character) > width:
            break
        taken += character
    return taken


def shorten_all(texts: Sequence[str], width: int) -> list[str]:
    """The same for all names of a column; those that differ stay different."""
    texts = [plain(text) for text in texts]
    for cut in _CUTS:
        found = [shorten(text, width, cut) for text in texts]
        if len(set(found)) == len(set(texts)):
            return found
    numbered = [f"#{place + 1} {text}" for place, text in enumerate(texts)]
    return [
        text if text_width(text) <= width else shorten(number, width)
        for text, number in zip(texts, numbered, strict=True)
    ]


def _pad(cell: str, width: int) -> str:
    return " " * (width - text_width(cell)) + cell


def number(value: float | None, digits: int = 4) -> str:
    """A figure with so many digits; empty where there is none."""
    if value is None or value != value:
        return ""
    if not isfinite(value):
        return "inf" if value > 0 else "-inf"
    if value == 0:
        return "0"
    size = floor(log10(abs(value)))
    if not -4 <= size < 7:
        return f"{value:.{max(digits - 2, 0)}e}"
    return f"{value:.{max(digits - 1 - size, 0)}f}"


def short(value: float, digits: int = 3) -> str:
    """A figure with at most so many digits; empty where there is none."""
    return "" if value != value else f"{value:.{digits}g}"


def short_range(low: float, high: float, digits: int) -> str:
    """Two figures as a range, or one where they look the same."""
    first, second = short(low, digits), short(high, digits)
    return first if first == second else f"{first}..{second}"


def percent(share: float) -> str:
    """A share with one digit."""
    if share != share:
        return ""
    return "<0.1 %" if 0 < share < 0.001 else f"{100 * share:.1f} %"


def p_value(value: float | None) -> str:
    """A p-value as tables print it."""
    if value is None or value != value:
        return ""
    if value < _LEAST_P:
        return f"<{_LEAST_P:g}"
    return f"{value:.1e}" if value < 1e-4 else f"{value:.4f}"
