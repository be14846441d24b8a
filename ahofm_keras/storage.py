"""Files and folders that are whole or not there: written aside, then put in place."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import re
import shutil
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ahofm_keras.errors import DataError

# Marks of what this process is writing at the moment.
_writing: set[str] = set()
# After so many seconds nobody writes on, where the writer itself cannot be asked for.
_ABANDONED = 86_400.0
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2  # RENAME_SWAP of macOS has the same number


@contextmanager
def written_whole(target: str | os.PathLike[str], folder_with: str | None = None) -> Iterator[Path]:
    """A temporary name beside `target` to write to; put in the target's place when all went well.

    Args:
        target: the file, or the folder where `folder_with` is given.
        folder_with: a file by which a folder is known as one that may be replaced.

    An interrupted save leaves either the old model or the new one, never half of one. What a process
    that was killed left beside the target is removed by the next call, or put back where the target
    itself is missing.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> with written_whole(folder / "a.txt") as path:
        ...     _ = path.write_text("whole")
        >>> (folder / "a.txt").read_text()
        'whole'
    """
    target = Path(target)
    if not target.name:
        raise DataError(f"{str(target)!r} is no name to write to.")
    target.parent.mkdir(parents=True, exist_ok=True)
    _recover(target)
    _check_replaceable(target, folder_with)
    mark = f"{os.getpid()}-{_host()}-{uuid.uuid4().hex[:8]}"
    fresh, aside = (target.with_name(_beside(target, mark, kind)) for kind in ("new", "old"))
    _writing.add(mark)
    try:
        yield fresh
        _put_in_place(fresh, target, aside)
    finally:
        _remove(fresh)
        _writing.discard(mark)


def _beside(target: Path, mark: str, kind: str) -> str:
    return f".{target.stem}.{mark}.{kind}{target.suffix}"  # Keras goes by the ending


def _host() -> str:
    """Folders may be shared by machines, whose processes have numbers of their own."""
    return hashlib.blake2b(platform.node().encode(), digest_size=3).hexdigest()


def _recover(target: Path) -> None:
    """Clear away what killed processes left; where one ended between two steps, put the old back."""
    mark = r"((?:\d+-[0-9a-f]{6}-)?[0-9a-f]{8})"
    name = re.compile(rf"\.{re.escape(target.stem)}\.{mark}\.(new|old){re.escape(target.suffix)}")
    with suppress(OSError):  # a folder that may not be read, or another process that was faster
        found = [(path, name.fullmatch(path.name)) for path in target.parent.iterdir()]
        left = [(path, match[2]) for path, match in found if match and not _is_written(path, match[1])]
        kept = sorted((path for path, kind in left if kind == "old"), key=_changed)
        if kept and not os.path.lexists(target):
            os.replace(kept[-1], target)
        for path, _ in left:
            _remove(path)


def _is_written(path: Path, mark: str) -> bool:
    """Whether somebody may still be writing here: a process that lives, or an unknown one of late."""
    if mark in _writing:
        return True
    process, _, rest = mark.partition("-")
    if rest.startswith(_host()) and (int(process) == os.getpid() or _is_dead(int(process))):
        return False
    return time.time() - _changed(path) < _ABANDONED


def _is_dead(process: int) -> bool:
    if os.name == "nt":  # signal 0 would end it there
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except OSError:  # it belongs to somebody else
        return False
    return False


def _changed(path: Path) -> float:
    return path.lstat().st_mtime


def _check_replaceable(target: Path, folder_with: str | None) -> None:
    """Only what was written here before is replaced: never somebody's folder, nor a file by a folder."""
    if folder_with is None:
        if target.is_dir():
            raise DataError(f"{str(target)!r} is a folder. Give a file name.")
        return
    if target.is_file():
        raise DataError(f"{str(target)!r} is a file. Give the name of a folder.")
    if target.is_dir() and any(target.iterdir()) and not (target / folder_with).exists():
        raise DataError(
            f"The folder {str(target)!r} holds other things than an exported model. Give another name."
        )


def _put_in_place(fresh: Path, target: Path, aside: Path) -> None:
    """A file replaces another in one step, a folder where the system can exchange two names.

    Elsewhere a folder is moved aside first, and back on failure.
    """
    if not target.is_dir():
        os.replace(fresh, target)
        return
    if _exchange(fresh, target):
        return  # the old one has the temporary name now
    os.replace(target, aside)
    try:
        os.replace(fresh, target)
    except BaseException:
        os.replace(aside, target)
        raise
    _remove(aside)


def _exchange(first: Path, second: Path) -> bool:
    """Let two names change places in one step; False where system or file system cannot."""
    names = os.fsencode(first), os.fsencode(second)
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            return bool(library.renamex_np(*names, ctypes.c_uint(_RENAME_EXCHANGE)) == 0)
        folder, flag = ctypes.c_int(_AT_FDCWD), ctypes.c_uint(_RENAME_EXCHANGE)
        return bool(library.renameat2(folder, names[0], folder, names[1], flag) == 0)
    except (AttributeError, OSError, TypeError):  # Windows, or a C library without it
        return False


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
