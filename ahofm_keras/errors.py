"""What can go wrong, in words a user can act on."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
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


@contextmanager
def noting() -> Iterator[list[str]]:
    """Also keep what is warned of inside, for those who read the fit later."""
    notes: list[str] = []
    token = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(token)


def warn(message: str) -> None:
    """An `AhofmWarning` that points at the user's line, however deep it was noticed."""
    notes = _notes.get()
    if notes is not None:
        notes.append(message)
    level = 1
    frame = sys._getframe(0)
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
        level += 1
    warnings.warn(message, AhofmWarning, stacklevel=level)


def _is_inside(module: str) -> bool:
    return module.partition(".")[0] in ("ahofm_keras", "keras", "tensorflow")


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
