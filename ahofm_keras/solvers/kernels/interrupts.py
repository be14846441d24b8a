"""Ctrl-C at a moment when it would leave something half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Within, Ctrl-C waits; it comes when the work is done.

    An interrupted import takes a package out of `sys.modules` and leaves those of its parts there that
    were done. Imported again the package does not know them, so that numba could compile nothing for the
    rest of the process.
    """
    previous = signal.getsignal(signal.SIGINT)
    # Only the main thread is interrupted, and only a handler in Python can be put back.
    if threading.current_thread() is not threading.main_thread() or not callable(previous):
        yield
        return
    came: list[tuple[int, Any]] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
        if came:
            previous(*came[-1])
