"""TensorFlow imported without the lines that it writes to stderr whenever it starts.

`TF_CPP_MIN_LOG_LEVEL`, which TensorFlow reads when it is imported, is set to 3 where the user has not
set it: at 2 a machine without a GPU still gets an error about CUDA. Some libraries of TensorFlow write
before its log is set up and heed no variable, so lines below that level are also kept back while it is
imported, by whomever. Nothing is set that changes results. Where TensorFlow was imported before, all
stays as it is.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

LEVEL = "TF_CPP_MIN_LOG_LEVEL"
_STDERR = 2
# `I0000 00:00:1794959697.549740 7294 port.cc:153]`, or `2025-01-31 12:00:00.123456: I tensorflow/...`.
_LOGGED = re.compile(rb"([IWE])\d{4} \d\d:\d\d:|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: ([IWE]) ")
_HEADER = b"WARNING: All log messages before absl::InitializeLog()"


@contextmanager
def quietly() -> Iterator[None]:
    """TensorFlow is imported inside, with its log at the user's level, by default without it."""
    os.environ.setdefault(LEVEL, "3")
    with _held_back():
        yield


def is_wanted(line: bytes, level: str) -> bool:
    """Whether a line of stderr is none of TensorFlow's log, or of a level that the user asked for.

    Example:
        >>> is_wanted(b"I0000 00:00:1.2 77 port.cc:153] oneDNN custom operations are on.", "1")
        False
        >>> is_wanted(b"Indeed, a line of somebody else", "3")
        True
    """
    least = int(level) if level.isdigit() else 0
    if line.startswith(_HEADER):
        return not least
    logged = _LOGGED.match(line)
    return logged is None or b"IWE".index(logged[1] or logged[2]) >= least


@contextmanager
def _held_back() -> Iterator[None]:
    """What is written to stderr inside comes after it, without lines that are not wanted."""
    with ExitStack() as stack:
        try:
            caught = stack.enter_context(tempfile.TemporaryFile())
            shown = os.dup(_STDERR)
        except OSError:  # no stderr, or no place to hold it back
            yield
            return
        os.dup2(caught.fileno(), _STDERR)
        level = "0"  # of an import that failed every line may matter
        try:
            yield
            level = os.environ[LEVEL]
        finally:
            os.dup2(shown, _STDERR)
            os.close(shown)
            caught.seek(0)
            os.write(_STDERR, b"".join(line for line in caught if is_wanted(line, level)))
