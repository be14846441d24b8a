"""Columns whose rows are arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from ahofm_keras.arrays import is_array_column
from ahofm_keras.data import read_columns
from ahofm_keras.errors import DataError

IMAGES = np.arange(24.0).reshape(4, 3, 2)
WAYS: dict[str, Any] = {
    "array": {"a": IMAGES},
    "list of arrays": {"a": list(IMAGES)},
    "nested lists": {"a": IMAGES.tolist()},
    "frame": pd.DataFrame({"a": list(IMAGES)}),
    "frame with an index": pd.DataFrame({"a": list(IMAGES)}, index=[3, 3, 1, 0]),
    "frame of lists": pd.DataFrame({"a": IMAGES.tolist()}),
}


@pytest.mark.parametrize("way", WAYS)
def test_all_ways_to_give_arrays(way: str) -> None:
    found = read_columns(WAYS[way], ["a"], arrays={"a"})["a"]
    np.testing.assert_array_equal(found, IMAGES)


@pytest.mark.parametrize(
    ("given", "kept"),
    [("uint8", "float32"), ("int16", "float32"), ("bool", "float32"), ("float16", "float32"),
     ("float32", "float32"), ("float64", "float64"), ("int64", "float64")],
)  # fmt: skip
def test_float32_is_kept_where_it_is_exact(given: str, kept: str) -> None:
    found = read_columns({"a": IMAGES.astype(given)}, ["a"], arrays={"a"})["a"]
    assert found.dtype == kept
    np.testing.assert_array_equal(found, IMAGES.astype(given))


def test_a_column_that_may_hold_arrays_may_hold_numbers() -> None:
    data = {"a": [1.0, 2.0], "b": ["u", "v"]}
    found = read_columns(data, ["a", "b"], arrays={"a", "b"})
    assert found["a"].tolist() == [1.0, 2.0]
    assert found["b"].tolist() == ["u", "v"]
    assert not is_array_column(pd.Series(["u", "v"]))
    assert not is_array_column([])


WITH_A_GAP = IMAGES.copy()
WITH_A_GAP[2, 1, 1] = np.nan
BAD: dict[str, tuple[Any, str]] = {
    "ragged rows": ({"a": [np.zeros(2), np.zeros(2), np.zeros(3)]}, r"one shape: that of row 0 is \(2,\), that of row 2 is \(3,\)"),
    "ragged inside": ({"a": [[[1, 2], [3, 4]], [[1], [2, 3]]]}, "of column `a` at row 1 is ragged"),
    "a row without": ({"a": [np.zeros(2), None]}, "no array at row 1"),
    "a missing row": (pd.DataFrame({"a": [np.zeros(2), np.nan]}), "no array at row 1"),
    "texts": ({"a": np.array([["u", "v"]])}, "must hold numbers. Received: <U1"),
    "complex": ({"a": np.ones((2, 2), complex)}, "must hold numbers. Received: complex128"),
    "missing values": ({"a": WITH_A_GAP}, "missing or infinite values in 1 row, first at row 2"),
    "empty": ({"a": np.zeros((3, 0))}, r"are empty: their shape is \(0,\)"),
    "numbers again": ({"a": [1.0, 2.0]}, r"an array per row.*shape \(2,\)"),
    "other lengths": ({"a": IMAGES, "x": [1.0]}, "`x` has 1 rows, `a` has 4"),
    "no rows": ({"a": IMAGES[:0], "x": []}, "The data has no rows"),
    "missing": ({"b": IMAGES}, "Column `a` is missing"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_said(name: str) -> None:
    data, message = BAD[name]
    names = [own for own in ("x", "a") if own in data or own == "a"]
    with pytest.raises(DataError, match=message):
        read_columns(data, names, {"a": "array", "x": "number"})


def test_arrays_stand_nowhere_else() -> None:
    with pytest.raises(
        DataError, match=r"`a` must have one dimension, has 3. Arrays stand in `s\(\)` and `deep\(\)`"
    ):
        read_columns({"a": IMAGES}, ["a"])
