"""Columns: what is read, as what kind, and how refusals are worded; batches: which rows, in which order."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from scipy import sparse

import ahofm_keras as ak
from ahofm_keras.batches import batch_rows, shuffle_rows
from ahofm_keras.data import (
    column_names,
    kind_of,
    read_columns,
    shuffled_split,
)

NAN = float("nan")

MISSING = "Drop them, or impute them."

# data, columns, kinds of training, message
REFUSED: dict[str, tuple[Any, list[str], dict[str, str] | None, str]] = {
    "array": (np.ones((3, 2)), ["x"], None, "Data must be a pandas data frame or a dict of columns. Received: numpy.ndarray. Pass `pandas.DataFrame(array, columns=[...])`, with the names that the formula has."),
    "series": (pd.Series([1.0]), ["x"], None, "Data must be a pandas data frame or a dict of columns. Received: pandas.Series. Pass a frame of one column, `series.to_frame()`; one row of a frame is `frame.iloc[[0]]`."),
    "nothing": (None, ["x"], None, "Data must be a pandas data frame or a dict of columns. Received: NoneType."),
    "missing column": ({"a": [1.0], "b": [2.0]}, ["x"], None, "Column `x` is missing. The data has: `a`, `b`."),
    "near name": ({"hours": [1.0]}, ["hour"], None, "Column `hour` is missing. Did you mean `hours`? The data has: `hours`."),
    "no columns": ({}, ["x"], None, "Column `x` is missing. The data has: no columns."),
    "many columns": (
        {f"c{i}": [1.0] for i in range(12)},
        ["x"],
        None,
        "Column `x` is missing. The data has: " + ", ".join(f"`c{i}`" for i in range(10)) + ", ....",
    ),
    "twice in a frame": (
        pd.DataFrame([[1.0, 2.0]], columns=["x", "x"]),
        ["x"],
        None,
        "Column `x` stands more than once in the data. Rename one of them.",
    ),
    "twice by its text": (
        {1: [1.0], "1": [2.0]},
        ["1"],
        None,
        "Column `1` stands more than once in the data. Rename one of them.",
    ),
    "two dimensions": ({"x": [[1.0, 2.0]]}, ["x"], None, "Column `x` must have one dimension, has 2. Arrays stand in `s()` and `deep()`, by their bare name."),
    "nan": ({"x": [1.0, NAN, NAN]}, ["x"], None, f"Column `x` has 2 missing values, first at row 1. {MISSING}"),
    "None": ({"x": [None, 1.0]}, ["x"], None, f"Column `x` has 1 missing value, first at row 0. {MISSING}"),
    "None among texts": ({"x": ["a", None]}, ["x"], None, f"Column `x` has 1 missing value, first at row 1. {MISSING}"),
    "nan among texts of a list": (
        {"x": ["a", NAN]},
        ["x"],
        None,
        f"Column `x` has 1 missing value, first at row 1. {MISSING}",
    ),
    "pd.NA": (
        pd.DataFrame({"x": pd.array([1, 2, None], dtype="Int64")}),
        ["x"],
        None,
        f"Column `x` has 1 missing value, first at row 2. {MISSING}",
    ),
    "NaT": ({"x": [pd.NaT]}, ["x"], None, f"Column `x` has 1 missing value, first at row 0. {MISSING}"),
    "thousands": ({"x": np.full(1500, NAN)}, ["x"], None, f"Column `x` has 1,500 missing values, first at row 0. {MISSING}"),
    "infinite": (
        {"x": [1.0, 2.0, -np.inf]},
        ["x"],
        None,
        "Column `x` has 1 infinite value, first at row 2. Drop them, or replace them.",
    ),
    "complex": ({"x": [1j]}, ["x"], None, "Column `x` holds complex numbers. Split it into real columns."),
    "complex objects": (
        {"x": np.array([1j, 2j], dtype=object)},
        ["x"],
        None,
        "Column `x` holds complex numbers. Split it into real columns.",
    ),
    "mixed": (
        {"x": np.array(["a", 1], dtype=object)},
        ["x"],
        None,
        "Column `x` mixes texts with other values, first at row 1 (1). Make them all numbers, or all texts.",
    ),
    "mixed in a list": (
        {"x": ["a", 1]},
        ["x"],
        None,
        "Column `x` mixes texts with other values, first at row 1 (1). Make them all numbers, or all texts.",
    ),
    "text for a number": (
        {"x": ["1", "two"]},
        ["x"],
        {"x": "number"},
        "Column `x` must be numeric, but row 1 holds 'two'. Convert it with `pandas.to_numeric`.",
    ),
    "numerals for a number": (
        {"x": ["1", "2"]},
        ["x"],
        {"x": "number"},
        "Column `x` must be numeric, but row 0 holds '1'. Convert it with `pandas.to_numeric`.",
    ),
    "categories for a number": (
        pd.DataFrame({"x": pd.Categorical([1, 2])}),
        ["x"],
        {"x": "number"},
        "Column `x` must be numeric, but row 0 holds '1'. Convert it with `pandas.to_numeric`.",
    ),
    "two for a boolean": (
        {"x": [1, 2]},
        ["x"],
        {"x": "boolean"},
        "Column `x` must be boolean (True or False, 1 or 0), as in training.",
    ),
    "text for a boolean": (
        {"x": ["True"]},
        ["x"],
        {"x": "boolean"},
        "Column `x` must be boolean (True or False, 1 or 0), as in training.",
    ),
    "no rows": ({"x": []}, ["x"], None, "The data has no rows."),
    "no rows in a frame": (pd.DataFrame({"x": [1.0]}).iloc[:0], ["x"], None, "The data has no rows."),
    "lengths": (
        {"a": [1.0, 2.0], "b": 3.0, "c": [1.0, 2.0, 3.0]},
        ["a", "b", "c"],
        None,
        "Columns must have one length: `a` has 2 rows, `c` has 3.",
    ),
    "a list of one is no scalar": (
        {"a": [1.0], "b": [1.0, 2.0]},
        ["a", "b"],
        None,
        "Columns must have one length: `a` has 1 rows, `b` has 2.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    data, names, kinds, message = REFUSED[case]
    with pytest.raises(ak.DataError) as caught:
        read_columns(data, names, kinds)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "values",
    [
        pd.date_range("2020", periods=3),
        pd.date_range("2020", periods=3, tz="UTC"),
        pd.to_timedelta([1, 2, 3], unit="s"),
        pd.period_range("2020", periods=3, freq="D"),
        np.array(pd.date_range("2020", periods=3).to_pydatetime(), dtype=object),
        np.array([day.date() for day in pd.date_range("2020", periods=3)], dtype=object),
    ],
    ids=["datetime", "with zone", "timedelta", "period", "datetime objects", "date objects"],
)
def test_dates_are_refused(values: Any) -> None:
    with pytest.raises(ak.DataError, match=r"^Column `x` holds dates or durations"):
        read_columns(pd.DataFrame({"x": values}), ["x"])


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_advice_for_dates_gives_seconds_in_any_unit(unit: str) -> None:
    data = pd.DataFrame({"x": pd.to_datetime(["2020-01-01", "2020-01-02"]).as_unit(unit)})
    with pytest.raises(ak.DataError) as caught:
        read_columns(data, ["x"])
    advice = str(caught.value).split("`")[3]
    seconds = eval(advice, {"data": data, "pd": pd})
    assert np.diff(np.asarray(seconds, float)) == pytest.approx([86400.0])


@pytest.mark.parametrize(
    "values",
    [[[1.0, 2.0], [3.0]], np.array([10**400, 1], dtype=object)],
    ids=["ragged lists", "a number beyond floats"],
)
def test_no_error_of_another_library(values: Any) -> None:
    with pytest.raises(ak.DataError, match="`x`"):
        read_columns({"x": values}, ["x"])


@pytest.mark.parametrize(
    "values",
    [[[1], [2]], [{"a": 1}, {"b": 2}], [pd.Interval(0, 1), pd.Interval(1, 2)]],
    ids=["lists", "dicts", "intervals"],
)
def test_things_that_are_neither_numbers_nor_texts_are_refused(values: list[Any]) -> None:
    column = pd.Series(np.empty(len(values)), dtype=object)
    column[:] = values
    with pytest.raises(ak.DataError, match="`x`"):
        read_columns(pd.DataFrame({"x": column}), ["x"])


NUMBERS = "int8 int16 int32 int64 uint8 uint64 float16 float32 float64 Int8 Int64 UInt64 Float32 Float64 object"


@pytest.mark.parametrize("dtype", NUMBERS.split())
def test_every_type_of_number_is_float64(dtype: str) -> None:
    data = pd.DataFrame({"x": pd.Series([3, 1, 2]).astype(dtype)}).set_axis([7, 7, 9])
    values = read_columns(data, ["x"])["x"]
    assert values.dtype == np.float64
    assert values.tolist() == [3.0, 1.0, 2.0]
    assert kind_of(values) == "number"


def test_decimals_and_sparse_numbers() -> None:
    columns = {
        "d": np.array([Decimal("0.5"), Decimal(2)], dtype=object),
        "s": pd.Series(pd.arrays.SparseArray([0.0, 3.0])),
    }
    values = read_columns(columns, ["d", "s"])
    assert values["d"].tolist() == [0.5, 2.0]
    assert values["s"].tolist() == [0.0, 3.0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pd.Series(["b", "a"], dtype="string"), ["b", "a"]),
        (pd.Series(["b", "a"], dtype=object), ["b", "a"]),
        (pd.Series(["b", "a"], dtype="category"), ["b", "a"]),
        (pd.Series(pd.Categorical([2, 1])), ["2", "1"]),
        (pd.Series(pd.Categorical([2.0, 1.5])), ["2", "1.5"]),
        (pd.Series(pd.Categorical([True, False])), ["True", "False"]),
        ([b"b", "ä".encode()], ["b", "ä"]),
        (tf.constant(["b", "a"]), ["b", "a"]),
    ],
    ids=["string", "object", "category", "ints", "floats", "booleans", "bytes", "tensor"],
)
def test_every_type_of_text_is_str(values: Any, expected: list[str]) -> None:
    read = read_columns({"x": values}, ["x"])["x"]
    assert read.dtype == object
    assert read.tolist() == expected
    assert all(type(value) is str for value in read)
    assert kind_of(read) == "text"


@pytest.mark.parametrize("dtype", ["bool", "boolean", "object"])
def test_every_type_of_boolean_is_bool(dtype: str) -> None:
    values = read_columns(pd.DataFrame({"x": pd.Series([True, False]).astype(dtype)}), ["x"])["x"]
    assert values.dtype == bool
    assert values.tolist() == [True, False]
    assert kind_of(values) == "boolean"


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, 2], "text", ["1", "2"]),
        ([1.0, 2.5], "text", ["1", "2.5"]),
        ([True, False], "text", ["True", "False"]),
        ([True, False], "number", [1.0, 0.0]),
        ([1, 0], "boolean", [True, False]),
        ([1.0, 0.0], "boolean", [True, False]),
    ],
)
def test_kind_of_training_decides(values: list[Any], kind: str, expected: list[Any]) -> None:
    read = read_columns({"x": values}, ["x"], {"x": kind})["x"]
    assert kind_of(read) == kind
    assert read.tolist() == expected


def test_scalars_are_repeated_and_other_columns_left_alone() -> None:
    data = {"a": [1.0, 2.0, 3.0], "g": "u", "f": True, "bad": [None, None]}
    columns = read_columns(data, ["g", "a", "f"])
    assert {name: values.tolist() for name, values in columns.items()} == {
        "g": ["u"] * 3,
        "a": [1.0, 2.0, 3.0],
        "f": [True] * 3,
    }
    assert list(columns) == ["g", "a", "f"]


def test_scalars_alone_are_one_row() -> None:
    columns = read_columns({"a": 1, "g": "u"}, ["a", "g"])
    assert columns["a"].tolist() == [1.0]
    assert columns["g"].tolist() == ["u"]


def test_names_that_are_no_texts() -> None:
    frame = pd.DataFrame(np.arange(6.0).reshape(3, 2))
    assert column_names(frame) == ["0", "1"]
    assert read_columns(frame, ["1"])["1"].tolist() == [1.0, 3.0, 5.0]
    frame.columns = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")])
    assert read_columns(frame, ["('a', 'y')"])["('a', 'y')"].tolist() == [1.0, 3.0, 5.0]


def test_the_frame_is_left_as_it_was() -> None:
    frame = pd.DataFrame({"x": pd.array([1, 2], dtype="Int64"), "g": ["a", "b"]}, index=[5, 3])
    before = frame.copy(deep=True)
    read_columns(frame, ["x", "g"])["x"][:] = 0
    pd.testing.assert_frame_equal(frame, before)


def test_changing_what_was_read_leaves_floats_as_they_were() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0]})
    try:
        read_columns(frame, ["x"])["x"][:] = 0
    except ValueError as error:
        assert "read-only" in str(error)
    assert frame.x.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(("rows", "size"), [(10, 3), (10, 5), (3, 10), (1, 1), (7, 7)])
def test_batches_hold_every_row_once_in_order(rows: int, size: int) -> None:
    a, b = np.arange(rows), np.arange(2.0 * rows).reshape(rows, 2)
    batches = list(batch_rows(((a,), b), size).as_numpy_iterator())
    lengths = [len(batch[1]) for batch in batches]
    assert all(length == size for length in lengths[:-1])
    assert 0 < lengths[-1] <= size
    np.testing.assert_array_equal(np.concatenate([batch[0][0] for batch in batches]), a)
    np.testing.assert_array_equal(np.concatenate([batch[1] for batch in batches]), b)
    again = list(batch_rows(((a,), b), size).as_numpy_iterator())
    assert len(again) == len(batches)


def drawn(rows: int, size: int, seed: int, batches: int) -> np.ndarray:
    taken = shuffle_rows((np.arange(rows),), size, seed).take(batches).as_numpy_iterator()
    return np.stack([batch[0] for batch in taken])


@pytest.mark.parametrize(("rows", "size"), [(12, 4), (12, 5), (7, 7), (5, 2)])
def test_shuffled_rows_come_equally_often(rows: int, size: int) -> None:
    sample = drawn(rows, size, 3, rows).reshape(-1)  # `size` permutations
    assert Counter(sample.tolist()) == dict.fromkeys(range(rows), size)
    for permutation in sample.reshape(size, rows):
        assert sorted(permutation) == list(range(rows))


def test_shuffled_batches_have_one_shape() -> None:
    (spec,) = shuffle_rows((np.arange(10),), 4, 0).element_spec
    assert spec.shape == (4,)


def test_shuffling_follows_the_seed_alone() -> None:
    first = drawn(50, 10, 1, 15)
    np.testing.assert_array_equal(first, drawn(50, 10, 1, 15))
    assert not np.array_equal(first, drawn(50, 10, 2, 15))


def test_shuffling_does_not_follow_the_global_seed() -> None:
    first = drawn(50, 10, 1, 15)
    tf.random.set_seed(99)
    try:
        second = drawn(50, 10, 1, 15)
    finally:
        tf.random.set_seed(87654321)  # what TensorFlow takes where none was set
    np.testing.assert_array_equal(second, first)


def test_epochs_differ_and_none_keeps_the_order() -> None:
    epochs = drawn(50, 10, 1, 20).reshape(4, 50)
    assert len({tuple(epoch) for epoch in epochs}) == 4
    assert tuple(range(50)) not in {tuple(epoch) for epoch in epochs}


def test_rows_stay_together_when_shuffled() -> None:
    a = np.arange(20)
    batches = shuffle_rows(((a, np.stack([a, -a], axis=1)), a / 2), 8, 0).take(5)
    for (numbers, pairs), halves in batches.as_numpy_iterator():
        np.testing.assert_array_equal(pairs, np.stack([numbers, -numbers], axis=1))
        np.testing.assert_array_equal(halves, numbers / 2)


@pytest.mark.parametrize(
    ("rows", "share", "held_out"), [(100, 0.15, 15), (10, 0.26, 3), (10, 0.0, 0), (3, 0.1, 0)]
)
def test_split_parts_the_rows(rows: int, share: float, held_out: int) -> None:
    kept, held = shuffled_split(rows, share, 0)
    assert len(held) == held_out
    np.testing.assert_array_equal(np.sort(np.concatenate([kept, held])), np.arange(rows))
    assert (np.diff(kept) > 0).all()
    assert (np.diff(held) > 0).all()


def test_split_is_shuffled_and_seeded() -> None:
    _, held = shuffled_split(200, 0.2, 5)
    np.testing.assert_array_equal(held, shuffled_split(200, 0.2, 5)[1])
    assert not np.array_equal(held, shuffled_split(200, 0.2, 6)[1])
    assert held[0] < 40 < 160 <= held[-1]


def table_of(library: str, name: str, **methods: object) -> object:
    """A stand-in for a table of a library that need not be installed."""
    return type(name, (), {"__module__": f"{library}.inner", **methods})()


FRAME = {"to_pandas": lambda self: None}


@pytest.mark.parametrize(
    ("data", "name", "way"),
    [
        (table_of("polars", "DataFrame", **FRAME), "polars.DataFrame", "`data.to_pandas()`, or a dict"),
        (table_of("polars", "LazyFrame"), "polars.LazyFrame", "`data.collect().to_pandas()`"),
        (table_of("pyarrow", "Table", **FRAME), "pyarrow.Table", "`data.to_pandas()`"),
        (table_of("cudf", "DataFrame", **FRAME), "cudf.DataFrame", "`data.to_pandas()`"),
        (table_of("dask", "DataFrame", **FRAME), "dask.DataFrame", "`data.compute()`"),
        (table_of("pyspark", "DataFrame"), "pyspark.DataFrame", "`data.toPandas()`"),
        (table_of("xarray", "Dataset"), "xarray.Dataset", "`data.to_dataframe().reset_index()`"),
        (np.ones((3, 2)), "numpy.ndarray", "`pandas.DataFrame(array, columns=[...])`"),
        (sparse.eye(3), "scipy.", "`pandas.DataFrame(data.toarray(), columns=[...])`"),
        (tf.ones((3, 2)), "tensorflow.EagerTensor", "`pandas.DataFrame(data.numpy(), columns=[...])`"),
        ([{"x": 1.0}, {"x": 2.0}], "list", "`pandas.DataFrame(rows)`"),
        ([[1.0, 2.0]], "list", "`pandas.DataFrame(rows, columns=[...])`"),
        ("data.csv", "str", "`pandas.read_csv(path)`"),
        (Path("data.csv"), "pathlib.", "`pandas.read_csv(path)`"),
        (tf.data.Dataset.from_tensors({"x": 1.0}), "tensorflow.", "some of its rows as a frame"),
    ],
)  # fmt: skip
def test_other_tables_have_a_way_out(data: object, name: str, way: str) -> None:
    with pytest.raises(ak.DataError) as caught:
        read_columns(data, ["x"])
    said = str(caught.value).partition("Received: ")[2]
    assert said.startswith(name)
    assert way in said


LONG = [2**60 + number for number in (1, 2, 3, 4)]
TOO_LONG = "can tell only 1 of 4 apart. If they are names, make them texts: `data['id'].astype(str)`"


@pytest.mark.parametrize("kind", ["uint64", "int64", "Int64", "UInt64", object])
def test_whole_numbers_that_fall_together_are_refused(kind: Any) -> None:
    with pytest.raises(ak.DataError, match=re.escape(TOO_LONG)):
        read_columns(pd.DataFrame({"id": pd.Series(LONG, dtype=kind)}), ["id"])
    with pytest.raises(ak.DataError, match=re.escape(TOO_LONG)):
        read_columns({"id": LONG}, ["id"])


def test_both_ways_out_of_long_numbers_are_exact() -> None:
    ids = pd.Series(LONG, dtype="uint64")
    texts = read_columns({"id": ids.astype(str)}, ["id"])["id"]
    np.testing.assert_array_equal(texts, [str(number) for number in LONG])
    numbers = read_columns({"id": ids - ids.min()}, ["id"])["id"]
    np.testing.assert_array_equal(numbers, [0, 1, 2, 3])


def test_nanoseconds_that_fall_together_are_told() -> None:
    times = 1_700_000_000_000_000_000 + np.array([0, 1, 10**15])
    with pytest.warns(ak.AhofmWarning, match="Column `t` .* can tell only 2 of 3 apart"):
        read_columns({"t": times}, ["t"])
    # A model that knows the column says nothing of a few rows that lie close together.
    read_columns({"t": times[:2]}, ["t"], {"t": "number"})


@pytest.mark.parametrize("values", [[2**60, 2**61, 2**62], [2**53 - 1, 2**53], [1e300, 1e300], LONG[:1]])
def test_long_numbers_that_float64_can_tell_apart(values: Any) -> None:
    np.testing.assert_array_equal(read_columns({"x": values}, ["x"])["x"], np.asarray(values, float))
