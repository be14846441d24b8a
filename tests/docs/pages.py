"""Pages of Markdown: their code blocks, what these print, draw and raise, and what the page shows of it.

What stands below a `python` block is checked against it:

- a `text` block is what it prints, the warnings of the package included, or the error that it raises;
  numbers may differ in their last digits, and `...` stands for anything;
- a picture is what it draws.

Blocks of other languages are not run; `json` must be JSON, and `py`, code for other packages, Python.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ahofm_keras as ak

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
# What a fence may be besides `json`, `py` and `{directives}` of Sphinx. A misspelt `python` would never run.
KINDS = {"", "python", "text", "console", "bash", "r", "picture"}

_FENCE = re.compile(r"^(`{3,})(.*)$")
_PICTURE = re.compile(r"^!\[[^\]]*\]\(([^)\s]+)\)$")
_ERROR = re.compile(r"^(\w+Error): ")
_NUMBER = re.compile(r"[+-]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$")
# Of numbers that a page shows: other versions of the libraries round and converge a little differently.
_TOLERANCE = 0.05
# A lambda beyond the first has done its work: the evidence hardly changes any more, the lambda does. A
# contribution below the second is what is left of a part that was switched off.
_HUGE, _TINY = 1e5, 1e-5
_DURATION = re.compile(r"\d+ (sweeps|epochs) in [\d.]+ s")


@dataclass(frozen=True)
class Piece:
    """A fenced block or a picture on a line of its own.

    Args:
        kind: language of the block, or `"picture"`.
        text: inside the fence; path of the picture.
        line: of its first line in the page, from 0.
        end: of the line behind it.
        follows: whether only blank lines lie between it and the piece before.
    """

    kind: str
    text: str
    line: int
    end: int
    follows: bool


@dataclass(frozen=True)
class Example:
    """A `python` block with what the page shows below it."""

    code: Piece
    shown: Piece | None = None
    picture: Piece | None = None


def read_pieces(page: Path) -> list[Piece]:
    """Fenced blocks and pictures of a page, in order."""
    lines = page.read_text().split("\n")
    pieces: list[Piece] = []
    place, follows = 0, False
    while place < len(lines):
        fence, picture = _FENCE.match(lines[place]), _PICTURE.match(lines[place])
        if fence:
            end = next(i for i in range(place + 1, len(lines)) if lines[i].strip() == fence[1])
            text = "".join(f"{line}\n" for line in lines[place + 1 : end])
            pieces.append(Piece(fence[2].strip(), text, place, end + 1, follows))
            place, follows = end + 1, True
            continue
        if picture:
            pieces.append(Piece("picture", picture[1], place, place + 1, follows))
        follows = (follows and not lines[place].strip()) or bool(picture)
        place += 1
    return pieces


def read_examples(page: Path) -> list[Example]:
    """The `python` blocks of a page."""
    pieces = read_pieces(page)
    found = []
    for place, piece in enumerate(pieces):
        if piece.kind != "python":
            continue
        below = list(itertools.takewhile(lambda after: after.follows, pieces[place + 1 : place + 3]))
        shown = below.pop(0) if below and below[0].kind == "text" else None
        picture = below[0] if below and below[0].kind == "picture" else None
        found.append(Example(piece, shown, picture))
    return found


@contextlib.contextmanager
def _warnings_printed() -> Iterator[None]:
    """Warnings of the package are output; others are errors."""

    def show(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        print(f"{category.__name__}: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=DeprecationWarning, module="(keras|tensorflow).*")
        warnings.simplefilter("always", ak.AhofmWarning)
        warnings.showwarning = show
        yield


def run_example(example: Example, page: Path, namespace: dict[str, Any]) -> str:
    """Run a block; what it printed, or the error that the page says it raises."""
    # Line numbers of errors are those of the page.
    code = "\n" * (example.code.line + 1) + example.code.text
    wanted = _ERROR.match(example.shown.text) if example.shown else None
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), _warnings_printed():
            # A reader's file has no imports from `__future__`, whatever this one has.
            exec(compile(code, str(page), "exec", dont_inherit=True), namespace)
    except Exception as error:
        if wanted is None or type(error).__name__ != wanted[1]:
            raise
        return f"{type(error).__name__}: {error}\n"
    if wanted:
        raise AssertionError(f"{page.name}, line {example.code.line + 1}: no {wanted[1]} was raised.")
    return printed.getvalue()


def difference(shown: str, printed: str) -> str:
    """Where a page shows something else than was printed, in words; empty where it does not.

    Example:
        >>> difference("edf 8.14, 0.3 s", "edf 8.15, 0.3 s")
        ''
        >>> difference("edf 8.14 in ... s", "edf 9.14 in 7 s")
        'the page shows `8.14`, printed was `9.14`'
    """
    expected, found = _words(shown), _words(printed)
    place = 0
    for number, word in enumerate(expected):
        if word == "...":
            after = expected[number + 1 : number + 2]
            while place < len(found) and not (after and _same(after[0], found[place])):
                place += 1
            continue
        if place >= len(found):
            return f"the page shows `{word}`, nothing more was printed"
        if not _same(word, found[place]):
            return f"the page shows `{word}`, printed was `{found[place]}`"
        place += 1
    return f"the page ends, printed was `{found[place]}`" if place < len(found) else ""


def _words(text: str) -> list[str]:
    """Words without the punctuation at their ends, so that numbers are words; durations are left out."""
    text = _DURATION.sub(r"\1", text)
    parts = (part for word in text.split() for part in re.split(r"(\.\.\.)|[()\[\],;:%`<>=]|\.$", word))
    return [part for part in parts if part]


def _same(shown: str, printed: str) -> bool:
    if shown == printed:
        return True
    if not (_NUMBER.match(shown) and _NUMBER.match(printed)):
        return False
    a, b = (float(text.replace(",", "")) for text in (shown, printed))
    if min(a, b) > _HUGE or max(abs(a), abs(b)) < _TINY:
        return True
    return abs(a - b) <= max(_TOLERANCE * abs(a), 1.1 * _last_digit(shown))


def _last_digit(number: str) -> float:
    """What one more in the last digit adds."""
    mantissa, _, exponent = number.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return float(10.0 ** (int(exponent or 0) - decimals)) if decimals or exponent else 1.0


def check_blocks(page: Path) -> None:
    """Blocks that are not run can be read by the language that they claim to be in."""
    for piece in read_pieces(page):
        if piece.kind == "json":
            json.loads(piece.text)
        elif piece.kind == "py":
            compile(piece.text, str(page), "exec")
        elif not piece.kind.startswith("{"):
            assert piece.kind in KINDS, f"{page.name}, line {piece.line + 1}: unknown `{piece.kind}`."
