"""How loops are compiled, and when those on disk are still what the source says."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba  # type: ignore[import-untyped,import-not-found]

# Sums in any order and fused products; NaN and infinity stay what they are.
FAST = {"contract", "reassoc", "nsz"}


def _digest_of_sources() -> str:
    """Of all files of this folder."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


_SOURCES = _digest_of_sources()


def compiled(function: Callable[..., Any], **further: Any) -> Callable[..., Any]:
    """Compiled at the first call; kept on disk where a folder can be written."""
    options = {"nogil": True, "fastmath": FAST, "error_model": "numpy", **further}
    try:
        kept = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder for the cache
        return numba.njit(**options)(function)
    return kept if _belongs_to_sources(kept) else numba.njit(**options)(function)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """For short loops, where a call would take as long."""
    return compiled(function, forceinline=True)


def _belongs_to_sources(function: Any) -> bool:
    """Make what is kept on disk that of all files here; whether this can be done.

    numba compares the file that a function stands in, not those of the functions that it calls, which
    are a part of the code that it keeps; and it has no public way to say which these are.
    """
    try:
        file = function._cache._cache_file
        file._source_stamp = file._source_stamp, _SOURCES
    except AttributeError:  # e.g. NUMBA_DISABLE_JIT
        return False
    return True
