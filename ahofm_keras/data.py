"""Data frames, dicts and `tf.data` -> checked, named columns; columns -> batches for Keras."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
import tensorflow as tf

from ahofm_keras.arrays import is_array_column, read_array
from ahofm_keras.errors import DataError, did_you_mean, warn

NUMBER, TEXT, BOOLEAN, ARRAY = "number", "text", "boolean", "array"
# Stands for a column where a model reads none (`y ~ 1`): all that it says is how many rows there are.
ROWS = "(rows)"

# Whole numbers up to this are exact in float64.
_EXACT = 2**53
# What two numbers may differ by and fall together, as a share of the range of all.
_FINE = 1e-6

Columns = dict[str, np.ndarray]


def column_names(data: Any) -> list[str]:
    """Names of the columns of a data frame or dict."""
    _check_table(data)
    return [str(name) for name in data]


def _check_table(data: Any) -> None:
    if not isinstance(data, pd.DataFrame | Mapping):
        raise DataError(
            "Data must be a pandas data frame or a dict of columns. Received: "
            f"{type_name(data)}.{_way_out(data)}"
        )


def type_name(value: Any) -> str:
    """A value's type with the library that it comes from: several have a `DataFrame`.

    Example:
        >>> type_name(np.ones(3)), type_name([1])
        ('numpy.ndarray', 'list')
    """
    library = type(value).__module__.partition(".")[0]
    name = type(value).__name__
    return name if library in ("builtins", "__main__") else f"{library}.{name}"


_NAMED = "`pandas.DataFrame({}, columns=[...])`, with the names that the formula has"
# Tables of other libraries, and what makes a data frame of them.
_WAYS_OUT = {
    "dask": "`data.compute()`",
    "duckdb": "`data.df()`",
    "modin": "`data.modin.to_pandas()`",
    "numpy": _NAMED.format("array"),
    "pandas": "a frame of one column, `series.to_frame()`; one row of a frame is `frame.iloc[[0]]`",
    "polars.LazyFrame": "`data.collect().to_pandas()`",
    "pyspark": "`data.toPandas()`, or that of a sample of its rows",
    "scipy": _NAMED.format("data.toarray()"),
    "tensorflow": _NAMED.format("data.numpy()"),
    "torch": _NAMED.format("data.numpy()"),
    "xarray": "`data.to_dataframe().reset_index()`",
    "str": "the rows themselves, e.g. `pandas.read_csv(path)`",
    "pathlib": "the rows themselves, e.g. `pandas.read_csv(path)`",
}


def _way_out(data: Any) -> str:
    """What makes a data frame of something else, as a sentence after another."""
    if isinstance(data, tf.data.Dataset):
        return " A dataset is for `fit`, `evaluate` and `predict`. Pass some of its rows as a frame."
    if isinstance(data, list | tuple):
        records = bool(data) and all(isinstance(row, Mapping) for row in data)
        return f" Pass {'`pandas.DataFrame(rows)`' if records else _NAMED.format('rows')}."
    name = type_name(data)
    way = _WAYS_OUT.get(name) or _WAYS_OUT.get(name.partition(".")[0])
    if way is None and callable(getattr(data, "to_pandas", None)):
        way = "`data.to_pandas()`, or a dict of arrays"
    return f" Pass {way}." if way else ""


def read_columns(
    data: Any,
    names: Iterable[str],
    kinds: Mapping[str, str] | None = None,
    arrays: Collection[str] = (),
) -> Columns:
    """The named columns as arrays of one length, checked.

    Args:
        data: data frame or dict of arrays; scalars are repeated, a dict of scalars is one row.
        names: columns to read; others are left alone.
        kinds: what each column was in training (`"number"`, `"text"`, `"boolean"` or `"array"`);
            without it the kind follows from the column.
        arrays: names of the columns whose rows may be arrays.

    Returns:
        Numbers as float64, texts as object arrays of `str`, booleans as bool, arrays `(n, ...)` as
        float32 where that is exact.

    Raises:
        DataError: a missing column, missing or infinite values, a kind that does not fit, no rows,
            lengths that differ.
    """
    _check_table(data)
    columns: Columns = {}
    keys, kinds = _keys_by_name(data), kinds or {}
    for name in names:
        if name == ROWS:
            columns[name] = np.zeros(_count_rows(data))
            continue
        values = _find_column(data, keys, name)
        if kinds.get(name) == ARRAY or (name in arrays and is_array_column(values)):
            columns[name] = read_array(values, name)
            continue
        numbers = _finite_floats(values) if kinds.get(name, NUMBER) == NUMBER else None
        if numbers is None:
            numbers = _clean_column(_as_series(values, name), name, kinds.get(name))
        columns[name] = numbers
    return _same_length(columns, data)


def _count_rows(data: Any) -> int:
    """Number of rows of a table; a dict of scalars is one row."""
    if isinstance(data, pd.DataFrame):
        rows = len(data)
    else:
        rows = max((len(values) if np.ndim(values) else 1 for values in data.values()), default=0)
    if not rows:
        raise DataError("The data has no rows.")
    return rows


def read_levels(data: Any, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Levels of the columns that are a pandas Categorical, in the order of their categories.

    As in R's `factor()` the order is the user's. Categories that no row has are left out: nothing can be
    learned of them.

    Args:
        data: as `read_columns` takes it.
        names: columns to look at.

    Returns:
        Texts as `read_columns` gives them; columns of other kinds are not there.
    """
    found = {}
    keys = _keys_by_name(data)
    for name in names:
        if name == ROWS:
            continue
        values = _as_series(_find_column(data, keys, name), name)
        if isinstance(values.dtype, pd.CategoricalDtype):
            occurring = values.cat.remove_unused_categories().cat.categories
            found[name] = tuple(dict.fromkeys(map(_text, occurring)))
    return found


def ordered_columns(data: Any, names: Iterable[str]) -> set[str]:
    """Columns that are a pandas Categorical whose order means something."""
    keys = _keys_by_name(data)
    dtypes = {
        name: _as_series(_find_column(data, keys, name), name).dtype for name in names if name != ROWS
    }
    return {
        name
        for name, dtype in dtypes.items()
        if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered
    }


def read_labels(data: Any, name: str) -> pd.Series:
    """A column as it stands, checked: labels of classes keep their type and order.

    Raises:
        DataError: a missing column, missing values, texts mixed with others.
    """
    _check_table(data)
    values = _as_series(_find_column(data, _keys_by_name(data), name), name)
    if isinstance(values.dtype, pd.CategoricalDtype):
        _check_present(values, name)
    else:
        _clean_column(values, name, None)
    return values


def kind_of(values: np.ndarray) -> str:
    """`"number"`, `"text"`, `"boolean"` or `"array"`, of an array made by `read_columns`."""
    if values.ndim > 1:
        return ARRAY
    return {"f": NUMBER, "b": BOOLEAN}.get(values.dtype.kind, TEXT)


def _keys_by_name(data: Any) -> dict[str, list[Any]]:
    """What the columns are called in the data: names need not be texts."""
    keys: dict[str, list[Any]] = {}
    for key in data:
        keys.setdefault(str(key), []).append(key)
    return keys


def _find_column(data: Any, keys: Mapping[str, list[Any]], name: str) -> Any:
    matches = keys.get(name)
    if not matches:
        known = column_names(data)
        hint = did_you_mean(name, known)
        listed = ", ".join(f"`{key}`" for key in known[:10]) + (", ..." if len(known) > 10 else "")
        raise DataError(f"Column `{name}` is missing.{hint} The data has: {listed or 'no columns'}.")
    values = data[matches[0]]
    if len(matches) > 1 or isinstance(values, pd.DataFrame):
        raise DataError(f"Column `{name}` stands more than once in the data. Rename one of them.")
    return values


def _finite_floats(values: Any) -> np.ndarray | None:
    """A column of plain floats without a gap, of which there is nothing more to check; else None."""
    if isinstance(values, pd.Series) and isinstance(values.dtype, np.dtype):
        values = values.to_numpy()
    if not isinstance(values, np.ndarray | float):
        return None
    numbers = np.atleast_1d(values)
    plain = numbers.dtype == np.float64 and numbers.ndim == 1 and np.isfinite(numbers).all()
    return numbers if plain else None


def _as_series(values: Any, name: str) -> pd.Series:
    if isinstance(values, pd.Series):
        return values.reset_index(drop=True)
    if isinstance(values, list | tuple) and any(isinstance(v, str | bytes) for v in values):
        # NumPy would turn what stands between texts, a missing value too, into texts.
        return pd.Series(list(values), dtype=object)
    if isinstance(values, pd.Categorical | pd.CategoricalIndex):
        return pd.Series(values)
    try:
        array = np.asarray(values)
    except ValueError:
        raise DataError(f"Column `{name}` must have one dimension; its rows differ in length.") from None
    if array.ndim > 1:
        raise DataError(
            f"Column `{name}` must have one dimension, has {array.ndim}. Arrays stand in `s()` and "
            "`deep()`, by their bare name."
        )
    return pd.Series(np.atleast_1d(array))


def _clean_column(values: pd.Series, name: str, kind: str | None) -> np.ndarray:
    _check_present(values, name)
    natural = _natural_kind(values, name)
    learning, kind = kind is None, kind or natural
    if kind == TEXT:
        return _as_text(values, name)
    if kind == BOOLEAN:
        return _as_boolean(values, name, natural)
    if natural == TEXT:
        raise _not_a_number(values, name)
    try:
        numbers = values.to_numpy(dtype=float)
    except OverflowError:
        raise DataError(f"Column `{name}` holds a number that is too large for float64.") from None
    infinite = ~np.isfinite(numbers)
    if infinite.any():
        raise DataError(
            f"Column `{name}` has {_count(infinite, 'infinite value')}, first at row "
            f"{int(np.argmax(infinite))}. Drop them, or replace them."
        )
    if learning:  # a few new rows may lie close together
        _check_digits(values, numbers, name)
    return numbers


def _check_present(values: pd.Series, name: str) -> None:
    missing = values.isna().to_numpy()
    if missing.any():
        raise DataError(
            f"Column `{name}` has {_count(missing, 'missing value')}, first at row "
            f"{int(np.argmax(missing))}. Drop them, or impute them."
        )


def _check_digits(values: pd.Series, numbers: np.ndarray, name: str) -> None:
    """Whole numbers that float64 cannot tell apart: an error, or a warning where their range is wide.

    Long numbers are often names, of which no two may fall together; nanoseconds may.
    """
    if values.dtype.kind == "f" or not len(numbers) or np.abs(numbers).max() <= _EXACT:
        return
    distinct, kept = values.nunique(), len(np.unique(numbers))
    if kept == distinct:
        return
    told = (
        f"Column `{name}` holds whole numbers beyond 2**53, and float64, which has 16 digits, can tell "
        f"only {kept:,} of {distinct:,} apart. If they are names, make them texts: "
        f"`data[{name!r}].astype(str)`; else subtract an origin: `data[{name!r}] - data[{name!r}]"
        ".min()`."
    )
    if np.spacing(np.abs(numbers).max()) > _FINE * np.ptp(numbers):
        raise DataError(told)
    warn(told)


def _natural_kind(values: pd.Series, name: str) -> str:
    if isinstance(values.dtype, pd.CategoricalDtype | pd.StringDtype):
        return TEXT
    if pd.api.types.is_bool_dtype(values.dtype):
        return BOOLEAN
    if pd.api.types.is_complex_dtype(values.dtype):
        raise DataError(f"Column `{name}` holds complex numbers. Split it into real columns.")
    if pd.api.types.is_numeric_dtype(values.dtype):
        return NUMBER
    if values.dtype.kind in "mM" or isinstance(values.dtype, pd.PeriodDtype | pd.DatetimeTZDtype):
        raise _dates(name)
    if pd.api.types.infer_dtype(values, skipna=False) == "string":
        return TEXT  # without a look at each value from Python
    kinds = {_kind_of_object(value, name) for value in values}
    if len(kinds) > 1:
        odd = next(row for row, v in enumerate(values) if _kind_of_object(v, name) != TEXT)
        raise DataError(
            f"Column `{name}` mixes texts with other values, first at row {odd} "
            f"({values.iloc[odd]!r}). Make them all numbers, or all texts."
        )
    return kinds.pop() if kinds else NUMBER


def _dates(name: str) -> DataError:
    seconds = f"(data[{name!r}] - data[{name!r}].min()).dt.total_seconds()"
    return DataError(
        f"Column `{name}` holds dates or durations. Turn it into numbers first, e.g. seconds: "
        f"`{seconds}`."
    )


def _kind_of_object(value: Any, name: str) -> str:
    if isinstance(value, bool | np.bool_):
        return BOOLEAN
    if isinstance(value, str | bytes):
        return TEXT
    if isinstance(value, Real | Decimal):
        return NUMBER
    if isinstance(value, datetime.date | datetime.timedelta | pd.Period):
        raise _dates(name)
    if isinstance(value, complex):
        raise DataError(f"Column `{name}` holds complex numbers. Split it into real columns.")
    raise DataError(
        f"Column `{name}` must hold numbers, texts or booleans. Received: {type(value).__name__}."
    )


def _as_text(values: pd.Series, name: str) -> np.ndarray:
    codes, distinct = pd.factorize(values)
    texts = [_text(value) for value in distinct]
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise DataError(f"Column `{name}` holds {text!r}, which is no valid Unicode text.") from None
    return np.array(texts, dtype=object)[codes]


def _text(value: Any) -> str:
    """A category's name; whole numbers keep one spelling whatever their type (1, 1.0)."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _as_boolean(values: pd.Series, name: str, natural: str) -> np.ndarray:
    if natural == TEXT or not values.isin([0, 1]).all():
        raise DataError(f"Column `{name}` must be boolean (True or False, 1 or 0), as in training.")
    return values.to_numpy(dtype=bool)


def _not_a_number(values: pd.Series, name: str) -> DataError:
    row = next((row for row, v in enumerate(values) if not _reads_as_number(v)), 0)
    return DataError(
        f"Column `{name}` must be numeric, but row {row} holds {str(values.iloc[row])!r}. Convert it "
        "with `pandas.to_numeric`."
    )


def _reads_as_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _same_length(columns: Columns, data: Any) -> Columns:
    scalars: set[str] = set()
    if isinstance(data, Mapping):
        scalars = {str(key) for key, value in data.items() if np.ndim(value) == 0} & set(columns)
    lengths = {name: len(values) for name, values in columns.items() if name not in scalars}
    rows = max(lengths.values(), default=1 if scalars else 0)
    columns |= {name: np.repeat(columns[name], rows) for name in scalars}
    if len(set(lengths.values())) > 1:
        first, *_ = lengths
        other = next(name for name in lengths if lengths[name] != lengths[first])
        raise DataError(
            f"Columns must have one length: `{first}` has {lengths[first]} rows, "
            f"`{other}` has {lengths[other]}."
        )
    if columns and not rows:
        raise DataError("The data has no rows.")
    return columns


def _count(flags: np.ndarray, noun: str) -> str:
    count = int(flags.sum())
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def shuffled_split(rows: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of a shuffled training and validation part."""
    order = np.random.default_rng(seed).permutation(rows)
    held_out = round(rows * share)
    return np.sort(order[held_out:]), np.sort(order[:held_out])
