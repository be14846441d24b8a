"""What can go wrong, in words a user can act on."""

from __future__ import annotations

import difflib
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class AhofmError(Exception):
    """Base of every error that this package raises on purpose."""


class FormulaError(AhofmError, ValueError):
    """A formula that cannot be understood; shows the place with carets.

    Args:
        message: what was expected, what was received, what to do.
        text: the formula as the user wrote it.
        span: start and end of the offending part within `text`.

    Example:
        >>> print(FormulaError("Unknown term `sm`.", "y ~ sm(x)", (4, 6)))
        Unknown term `sm`.
            y ~ sm(x)
                ^^
    """

    def __init__(
        self, message: str, text: str | None = None, span: tuple[int, int] | None = None
    ) -> None:
        self.message = message
        self.text = text
        self.span = span
        super().__init__(message if text is None else f"{message}\n{_underline(text, span)}")


class DataError(AhofmError, ValueError):
    """Data that does not fit the formula, the family or the fitted model."""


class NotFittedError(AhofmError, RuntimeError):
    """Something was asked of a model that only a fitted model can answer."""


class AhofmWarning(UserWarning):
    """Something was changed, clipped, left unpenalised or did not converge; says how much."""


_notes: ContextVar[list[str] | None] = ContextVar("notes", default=None)


_silent: ContextVar[bool] = ContextVar("silent", default=False)


@contextmanager
def noting(silently: bool = False) -> Iterator[list[str]]:
    """Also keep what is warned of inside, for those who read the fit later.

    Args:
        silently: whether it is kept alone, to be told later.
    """
    notes: list[str] = []
    tokens = _notes.set(notes), _silent.set(silently)
    try:
        yield notes
    finally:
        _notes.reset(tokens[0])
        _silent.reset(tokens[1])


def warn(message: str) -> None:
    """An `AhofmWarning` that points at the user's line, however deep it was noticed."""
    notes = _notes.get()
    if notes is not None:
        notes.append(message)
    if _silent.get():
        return
    level = 1
    frame = sys._getframe(0)
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
        level += 1
    warnings.warn(message, AhofmWarning, stacklevel=level)


def _is_inside(module: str) -> bool:
    return module.partition(".")[0] in ("ahofm_keras", "keras", "tensorflow")


# Share of the letters of two names that are the same in the same order, from which on one is a typing
# error of the other: 0.75 lets two letters of four change places; `target` and `age` have 0.67.
_CLOSE = 0.75


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence that suggests the known name that was meant; empty where none is close.

    Example:
        >>> did_you_mean("gruop", ["age", "group"])
        ' Did you mean `group`?'
        >>> did_you_mean("target", ["age", "group"])
        ''
    """
    found = nearest(name, known)
    return "" if found is None else f" Did you mean `{found}`?"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was meant by one that is not known; None where none is close.

    Only typing errors are taken for close: another case, other signs between the letters, a letter too
    many or too few, two that changed places. Names that begin with another letter, or that differ in a
    number or a letter standing alone (`x1` and `x2`, `col_a` and `col_b`), are other names.
    """
    spoken = {word: _bare(word) for word in dict.fromkeys(known)}
    bare = _bare(name)
    if not bare:
        return None
    for word, other in spoken.items():
        if bare == other:
            return word
    alike = {
        other: word
        for word, other in spoken.items()
        if other[:1] == bare[:1] and _indices(word) == _indices(name)
    }
    close = [other for other in alike if sorted(other) == sorted(bare)]  # `aeg`: too short for a share
    close = close or difflib.get_close_matches(bare, alike, n=1, cutoff=_CLOSE)
    return alike[close[0]] if close else None


def _bare(name: str) -> str:
    """A name's letters and digits, without case; one that was typed twice counts once."""
    return re.sub(r"(.)\1+", r"\1", re.sub(r"[\W_]+", "", name.lower()))


def _indices(name: str) -> list[str]:
    """Numbers and single letters of a name: what tells `x1` from `x2`, `col_a` from `col_b`."""
    found = re.findall(r"\d+|(?<![^\W\d_])[^\W\d_](?![^\W\d_])", name.lower())
    return [re.sub(r"(.)\1+", r"\1", index) for index in found]


_WIDTH = 88


def _underline(text: str, span: tuple[int, int] | None) -> str:
    """The formula with carets below `span`, cut to a window when it is long."""
    if span is None:
        return f"    {text}"
    start, end = span
    first = max(0, start - _WIDTH // 2) if len(text) > _WIDTH else 0
    window = text[first : first + _WIDTH]
    lead = "..." if first else ""
    trail = "..." if first + _WIDTH < len(text) else ""
    carets = max(1, min(end, first + _WIDTH) - start)
    return f"    {lead}{window}{trail}\n    {' ' * (len(lead) + start - first)}{'^' * carets}"
