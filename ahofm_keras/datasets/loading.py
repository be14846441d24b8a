"""The seven data sets of the paper, from a folder or from their owners, checked."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ahofm_keras.datasets.catalogue import CATALOGUE, Entry
from ahofm_keras.datasets.sources import UnreachableError
from ahofm_keras.errors import DataError, did_you_mean

FOLDER_VARIABLE = "AHOFM_DATA"
_DIGITS = 9


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set with what one needs to use and to cite it.

    Args:
        name: as in `load(name)`.
        data: features, and the target as the last column. Raw values, nothing dropped or scaled.
        target: name of the column to predict.
        title: the owner's name for the set.
        description: what a row is, units, oddities.
        citation: of its authors.
        licence: of the data.
        page: address of its description.
    """

    name: str
    data: pd.DataFrame
    target: str
    title: str
    description: str
    citation: str
    licence: str
    page: str

    @property
    def features(self) -> list[str]:
        """Names of all columns but the target."""
        return [str(column) for column in self.data if column != self.target]

    def __repr__(self) -> str:
        size = f"{len(self.data)} rows, {len(self.features)} features"
        return f"<Dataset {self.name}: {size} -> {self.target}>"


def load(name: str, target: str | None = None) -> Dataset:
    """One of the seven data sets of the paper.

    It is read from `<name>.csv` in the folder that the environment variable `AHOFM_DATA` names; else it
    is downloaded once from its owner (UCI; `"diabetes"` comes with scikit-learn) and kept in Keras'
    cache. Either way the values are held against a checksum. `"concrete"` and `"energy"` are published
    as sheets, so that their download needs the extra `data`.

    Args:
        name: `"airfoil"`, `"concrete"`, `"diabetes"`, `"energy"`, `"forest_fires"`, `"naval"` or
            `"yacht"`.
        target: of sets with two, which one; the other is left out, so that a formula with `.` does not
            see it. By default `heating_load` (energy) and `compressor_decay` (naval).

    Returns:
        The data frame as `.data`, with `.target`, `.features`, `.citation`...

    Raises:
        DataError: an unknown name or target, values that are not the published ones, or a set that can
            neither be found nor fetched.

    Example:
        `yacht = load("yacht")`, then `AdditiveModel(f"{yacht.target} ~ ahofm(.)", yacht.data)`.
    """
    entry = _find(name)
    target = _choose_target(name, entry, target)
    folder = _folder()
    path = folder / f"{name}.csv" if folder else None
    frame, origin = _read_copy(path, entry) if path else None, str(path)
    if frame is None:
        frame, origin = _fetch(name, entry, folder), f"the published copy of `{name}`"
    _check_values(frame, entry, origin)
    others = [column for column in entry.targets if column != target]
    data = frame.drop(columns=[*others, target]).assign(**{target: frame[target]})
    return Dataset(
        name, data, target, entry.title, entry.description, entry.citation, entry.licence, entry.page
    )


def checksum(frame: pd.DataFrame) -> str:
    """SHA-256 of the values of a frame, row by row, texts as they are, numbers to 9 significant digits.

    Of the values, not of a file: the same data comes in zip archives, sheets and CSV files, whose bytes
    change with every packing. Rounded, because a sheet stores computed numbers that differ from the
    printed ones in the 16th digit; at 9 digits no value of the seven sets lies near enough to the middle
    between two roundings for that to matter.
    """
    columns = [
        # 0.0 is added because -0.0 is written in another way than 0.0.
        [f"{value + 0.0:.{_DIGITS}g}" for value in frame[column].astype(float)]
        if pd.api.types.is_numeric_dtype(frame[column])
        else frame[column].astype(str).tolist()
        for column in frame
    ]
    lines = "\n".join(map(",".join, zip(*columns, strict=True)))
    return hashlib.sha256(lines.encode()).hexdigest()


def _find(name: str) -> Entry:
    if isinstance(name, str) and name in CATALOGUE:
        return CATALOGUE[name]
    known = ", ".join(f"`{own}`" for own in CATALOGUE)
    raise DataError(
        f"Unknown data set `{name}`.{did_you_mean(str(name), CATALOGUE)} Known data sets: {known}."
    )


def _choose_target(name: str, entry: Entry, target: str | None) -> str:
    if target is None:
        return entry.targets[0]
    if target not in entry.targets:
        known = ", ".join(f"`{own}`" for own in entry.targets)
        raise DataError(f"`{target}` is no target of `{name}`. Targets: {known}.")
    return target


def _folder() -> Path | None:
    """The folder of copies that the user named, if any."""
    given = os.environ.get(FOLDER_VARIABLE)
    if not given:
        return None
    try:
        folder = Path(given).expanduser()
        found = folder.is_dir()
    except (OSError, RuntimeError, ValueError):  # nobody's home, a loop of links
        found = False
    if not found:
        raise DataError(f"The environment variable {FOLDER_VARIABLE} names {given}, which is no folder.")
    return folder


def _read_copy(path: Path, entry: Entry) -> pd.DataFrame | None:
    """The columns of a data set in a file; None where there is no such file."""
    try:
        if not path.is_file():
            return None
        frame = pd.read_csv(path)
    except (OSError, ValueError) as error:  # pandas' own errors are ValueErrors
        raise DataError(f"{path} could not be read as a CSV file: {str(error).strip()}.") from error
    missing = [column for column in entry.columns if column not in frame]
    if missing:
        raise DataError(
            f"{path} has no column `{missing[0]}`. Expected a header with {', '.join(entry.columns)}."
        )
    return frame[list(entry.columns)]


def _fetch(name: str, entry: Entry, folder: Path | None) -> pd.DataFrame:
    try:
        return entry.fetch(entry.columns)
    except UnreachableError as reason:
        place = (
            f"in {folder}, the folder that {FOLDER_VARIABLE} names"
            if folder
            else f"in a folder of your choice and set the environment variable {FOLDER_VARIABLE} to it"
        )
        raise DataError(
            f"The data set `{name}` is not here: {reason}. To use a copy of your own, put {name}.csv, "
            f"with the header {','.join(entry.columns)}, {place}. The data is described at {entry.page}."
        ) from None  # what went wrong is said


def _check_values(frame: pd.DataFrame, entry: Entry, origin: str) -> None:
    if len(frame) != entry.rows:
        raise DataError(f"{origin} has {len(frame)} rows; {entry.title} has {entry.rows}.")
    if checksum(frame) != entry.checksum:
        raise DataError(
            f"{origin} does not hold the values of {entry.title}: the checksum of its rows differs. "
            "Copies with rounded values or in another order are in use; take the one from "
            f"{entry.page}."
        )
