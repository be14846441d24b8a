"""Published files -> frames: UCI's archives, downloaded once, and what scikit-learn ships."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import pandas as pd

from ahofm_keras.errors import DataError
from ahofm_keras.texts import truncate

_ADDRESS = "https://archive.ics.uci.edu/static/public/{number}/{name}.zip"
# The packages that pandas reads sheets with.
_SHEET_READERS: dict[str, Literal["xlrd", "openpyxl"]] = {".xls": "xlrd", ".xlsx": "openpyxl"}


class UnreachableError(Exception):
    """A file could not be fetched; says why."""


@dataclass(frozen=True)
class UciArchive:
    """A file in an archive of the UCI Machine Learning Repository.

    Args:
        number: of the data set at UCI.
        name: of the archive, as in its address.
        member: name of the file, in whatever folder of the archive it lies.
        header: whether the first line of a text holds names.
    """

    number: int
    name: str
    member: str
    header: bool = False

    @property
    def address(self) -> str:
        return _ADDRESS.format(number=self.number, name=self.name)

    def __call__(self, columns: tuple[str, ...]) -> pd.DataFrame:
        """The file as a frame; its columns get these names, whatever its own are."""
        suffix = PurePosixPath(self.member).suffix
        if suffix in _SHEET_READERS:
            # Before the download: it would be for nothing.
            _import_optional(_SHEET_READERS[suffix], f"to read {self.member}")
        archive = download(self.address)
        try:
            frame = read_table(read_member(archive, self.member), suffix, self.header)
        except DataError:
            raise
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            # pandas' own errors are ValueErrors. Without the file the next call fetches it anew.
            archive.unlink(missing_ok=True)
            reason = f"cannot be read ({_shown(error)}); it was removed"
            raise UnreachableError(f"what was downloaded as {archive.name} {reason}") from error
        if frame.shape[1] != len(columns):
            raise DataError(
                f"{self.member} of {self.address} has {frame.shape[1]} columns where {len(columns)} "
                "were expected: the published file has changed."
            )
        return frame.set_axis(list(columns), axis=1)


def from_scikit_learn(loader: str) -> Callable[[tuple[str, ...]], pd.DataFrame]:
    """A data set in raw units that comes with scikit-learn; its target is the last column."""

    def fetch(columns: tuple[str, ...]) -> pd.DataFrame:
        module = _import_optional("sklearn.datasets", "which this data set comes with", "scikit-learn")
        frame = getattr(module, loader)(as_frame=True, scaled=False).frame
        return frame.set_axis(list(columns), axis=1)

    return fetch


def download(address: str) -> Path:
    """Fetch a file once; later calls find it in Keras' cache (`~/.keras`, or `KERAS_HOME`)."""
    import keras  # takes seconds, and only a download needs it

    try:
        path = keras.utils.get_file(
            Path(address).name.replace("+", "_"), origin=address, cache_subdir="datasets/ahofm_keras"
        )
    except Exception as error:  # Keras raises a bare Exception where an address cannot be reached
        raise UnreachableError(f"{address} could not be downloaded ({_shown(error)})") from error
    return Path(path)


def read_member(archive: Path, member: str) -> bytes:
    """One file of an archive."""
    with zipfile.ZipFile(archive) as files:
        found = [name for name in files.namelist() if PurePosixPath(name).name == member]
        if not found:
            raise DataError(f"{archive} holds no file {member}, but {', '.join(files.namelist())}.")
        return files.read(found[0])


def read_table(content: bytes, suffix: str, header: bool) -> pd.DataFrame:
    """A sheet, a CSV, or numbers between blanks; empty rows and columns are left out."""
    stream = io.BytesIO(content)
    if suffix in _SHEET_READERS:
        frame = pd.read_excel(stream, engine=_SHEET_READERS[suffix])
    elif suffix == ".csv":
        frame = pd.read_csv(stream, header=0 if header else None)
    else:
        frame = pd.read_csv(stream, sep=r"\s+", header=0 if header else None)
    return frame.dropna(axis=0, how="all").dropna(axis=1, how="all").reset_index(drop=True)


def _import_optional(module: str, purpose: str, package: str | None = None) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise UnreachableError(
            f"{package or module}, {purpose}, is not installed: pip install 'ahofm_keras[data]'"
        ) from None


def _shown(error: Exception) -> str:
    return truncate(" ".join(str(error).split()), 160)
