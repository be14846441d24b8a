"""Columns whose rows are arrays: images, vectors, sequences, as networks take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.errors import DataError

# Whole numbers of so few bits are exact in float32.
_SHORT = 2


def is_array_column(values: Any) -> bool:
    """Whether rows of a column are arrays, also of a frame, whose column then holds objects."""
    if isinstance(values, pd.Series):
        first = values.iloc[0] if len(values) and values.dtype == object else None
        return isinstance(first, np.ndarray | list | tuple)
    if isinstance(values, list | tuple):
        return bool(values) and np.ndim(_first(values)) > 0
    return len(np.shape(values)) > 1


def _first(values: Any) -> Any:
    first = values[0]
    return np.zeros(1) if isinstance(first, list | tuple) else first


def read_array(values: Any, name: str) -> np.ndarray:
    """A column as one array `(n, ...)` of finite numbers.

    Args:
        values: an array, a tensor, a list of arrays, or a column of a frame that holds arrays.
        name: of the column.

    Raises:
        DataError: rows without an array, of different shapes, of texts, or with missing values.
    """
    if isinstance(values, pd.Series):
        values = list(values)
    if isinstance(values, list | tuple):
        values = _stack([_checked(row, name, place) for place, row in enumerate(values)], name)
    array = np.asarray(values)
    if array.ndim < 2:
        raise DataError(
            f"Column `{name}` must hold an array per row: give one array whose first axis is the rows. "
            f"Received: one of the shape {array.shape}."
        )
    if array.dtype.kind not in "fiub":
        raise DataError(
            f"The arrays of column `{name}` must hold numbers. Received: {array.dtype}. Texts become "
            "vectors first, for example by `keras.layers.TextVectorization`."
        )
    if 0 in array.shape[1:]:
        raise DataError(f"The arrays of column `{name}` are empty: their shape is {array.shape[1:]}.")
    exact = array.dtype.kind == "b" or array.dtype.itemsize <= _SHORT or array.dtype == np.float32
    array = array.astype(np.float32 if exact else np.float64, copy=False)
    finite = np.isfinite(array).all(axis=tuple(range(1, array.ndim)))
    if not finite.all():
        count = int(np.sum(~finite))
        raise DataError(
            f"The arrays of column `{name}` have missing or infinite values in {count:,} "
            f"row{'' if count == 1 else 's'}, first at row {int(np.argmin(finite))}. Drop these rows, "
            "or impute the values."
        )
    return array


def _checked(row: Any, name: str, place: int) -> Any:
    """A row's array; a list inside that is ragged has no shape."""
    missing = row is None or (isinstance(row, float) and np.isnan(row))
    if missing:
        raise DataError(f"Column `{name}` has no array at row {place}. Drop the row, or fill it.")
    try:
        return np.asarray(row)
    except ValueError:
        raise DataError(f"The array of column `{name}` at row {place} is ragged.") from None


def _stack(rows: list[np.ndarray], name: str) -> np.ndarray:
    if not rows:
        return np.zeros((0, 1))
    for place, row in enumerate(rows):
        if row.shape != rows[0].shape:
            raise DataError(
                f"The arrays of column `{name}` must have one shape: that of row 0 is {rows[0].shape}, "
                f"that of row {place} is {row.shape}. Pad, crop or resize them."
            )
    return np.stack(rows)
