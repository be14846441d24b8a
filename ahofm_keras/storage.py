"""Files and folders that are whole or not there: written aside, then put in place."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ahofm_keras.errors import DataError


@contextmanager
def written_whole(target: str | os.PathLike[str], folder_with: str | None = None) -> Iterator[Path]:
    """A temporary name beside `target` to write to; put in the target's place when all went well.

    Args:
        target: the file, or the folder where `folder_with` is given.
        folder_with: a file by which a folder is known as one that may be replaced.

    An interrupted save leaves either the old model or the new one, never half of one.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> with written_whole(folder / "a.txt") as path:
        ...     _ = path.write_text("whole")
        >>> (folder / "a.txt").read_text()
        'whole'
    """
    target = Path(target)
    _check_replaceable(target, folder_with)
    target.parent.mkdir(parents=True, exist_ok=True)
    mark = uuid.uuid4().hex[:8]
    fresh = target.with_name(f".{target.stem}.{mark}.new{target.suffix}")
    aside = target.with_name(f".{target.stem}.{mark}.old{target.suffix}")
    try:
        yield fresh
        _put_in_place(fresh, target, aside)
    finally:
        _remove(fresh)


def _check_replaceable(target: Path, folder_with: str | None) -> None:
    """Only what was written here before is replaced: never somebody's folder, nor a file by a folder."""
    if not target.name:
        raise DataError(f"{str(target)!r} is no name to write to.")
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
    """A file replaces another in one step; a folder is moved aside first, and back on failure."""
    if target.is_dir():
        os.replace(target, aside)
    try:
        os.replace(fresh, target)
    except BaseException:
        if aside.exists():
            os.replace(aside, target)
        raise
    _remove(aside)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
