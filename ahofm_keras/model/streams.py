"""`tf.data` datasets: checked before the first batch where that can be, and batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import tensorflow as tf

from ahofm_keras.data import ARRAY, NUMBER, ROWS
from ahofm_keras.errors import DataError
from ahofm_keras.families import Family
from ahofm_keras.terms import Design

_MARK = "ahofm_keras.DataError: "


def check_stream(
    dataset: tf.data.Dataset, design: Design, needs_response: bool, labelled: bool = False
) -> None:
    """Raise a `DataError` where the dataset's elements are not batches of what the model needs.

    Args:
        dataset: of `columns`, `(columns, y)` or `(columns, y, weight)`.
        design: names and kinds of the columns.
        needs_response: whether there must be a y.
        labelled: whether it may hold texts.
    """
    spec = dataset.element_spec
    columns, *rest = spec if isinstance(spec, tuple) else (spec,)
    if not isinstance(columns, Mapping):
        raise DataError("A dataset must give its columns as a dict from name to tensor.")
    for name, kind in design.columns.items():
        if name == ROWS:
            continue
        if name not in columns:
            raise DataError(f"Column `{name}` is missing from the dataset.")
        _check_column(name, columns[name], kind, design.shapes.get(name, ()))
    if needs_response and not rest:
        raise DataError("The dataset has no response: give batches of `(columns, y)`.")
    if needs_response and rest[0].dtype == tf.string and not labelled:
        raise DataError("The response of the dataset holds texts. Recode it as numbers.")
    if int(dataset.cardinality()) == 0:
        raise DataError("The dataset has no batches.")


def _check_column(name: str, spec: Any, kind: str, shape: tuple[int, ...]) -> None:
    rank = spec.shape.rank
    if rank == 0:
        raise DataError(f"The dataset is not batched (`{name}` is a scalar): use `.batch(1024)`.")
    if not spec.shape.is_compatible_with((None, *shape)):
        wanted = ", ".join(["batch", *map(str, shape)]) + ("" if shape else ",")
        raise DataError(
            f"Column `{name}` of the dataset must have the shape ({wanted}), has {spec.shape}."
        )
    if (spec.dtype == tf.string) != (kind == "text"):
        raise DataError(
            f"Column `{name}` of the dataset must hold {'texts' if kind == 'text' else 'numbers'}, "
            f"as in training. Received: {spec.dtype.name}."
        )


class BatchCheck:
    """What only the values of a batch can tell: missing numbers, range, the family's support."""

    def __init__(self, design: Design, family: Family, extrapolation: str, width: int = 1) -> None:
        numbers = (name for name, kind in design.columns.items() if kind in (NUMBER, ARRAY))
        self._numbers = [name for name in numbers if name != ROWS]
        self._family = family
        self._width = width
        sums = (term.weight_function for term in design.terms if extrapolation == "error")
        self._sums = [own for own in sums if own is not None]
        self._ranges = {
            ends: coordinate
            for feature in design.features
            for coordinate, ends in zip(feature.expression.coordinates, feature.basis.ends, strict=False)
            if extrapolation == "error" and coordinate.is_column
        }

    def columns(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """The columns again, once they are found to be finite and within range."""
        numbers = {name: columns[name] for name in self._numbers}
        if not numbers:
            return dict(columns)
        checked = tf.numpy_function(self._check_columns, list(numbers.values()), tf.bool)
        with tf.control_dependencies([checked]):
            return {name: tf.identity(value) for name, value in columns.items()}

    def response(self, y: Any, *weight: Any) -> tuple[Any, ...]:
        """Response and weights, once it is found within the family's support; labels as numbers."""
        if self._family.labelled:
            y = tf.ensure_shape(tf.numpy_function(self._encode, [y], tf.float64), y.shape)
            return y, *weight
        checked = tf.numpy_function(self._check_response, [y], tf.bool)
        with tf.control_dependencies([checked]):
            y = tf.identity(y)
        if self._width == 1:
            return y, *weight
        y = tf.ensure_shape(tf.cast(y, tf.float64), (None, self._width))
        given = tf.cast(tf.reshape(weight[0], (-1,)), tf.float64) if weight else None
        y, found = self._family.as_weighted(y, given)
        return (y,) if found is None else (y, found)

    def _check_columns(self, *arrays: np.ndarray) -> bool:
        for name, values in zip(self._numbers, arrays, strict=True):
            if not np.isfinite(values).all():
                raise ValueError(
                    f"{_MARK}Column `{name}` of the dataset has missing or infinite values. "
                    "Drop them, or impute them before."
                )
            for (low, high), expression in self._ranges.items():
                if expression.arguments[0] == name and ((values < low) | (values > high)).any():
                    raise ValueError(
                        f"{_MARK}Values outside the training range: `{name}` ([{low:g}, {high:g}])."
                    )
        columns = dict(zip(self._numbers, arrays, strict=True))
        for own in self._sums:
            if own.outside(columns).any():
                raise ValueError(
                    f"{_MARK}Values outside the training range: `{own.points}` "
                    f"([{own.basis.axis[0]:g}, {own.basis.axis[-1]:g}])."
                )
        return True

    def _encode(self, y: np.ndarray) -> np.ndarray:
        labels = pd.Series(np.asarray(y).reshape(-1))
        if labels.dtype == object:
            labels = labels.str.decode("utf-8")
        try:
            return self._family.encode(labels, "y").reshape(np.shape(y))
        except DataError as error:
            raise ValueError(f"{_MARK}{error}") from None

    def _check_response(self, y: np.ndarray) -> bool:
        values = np.asarray(y, float)
        if self._width > 1 and values.shape[1:] != (self._width,):
            raise ValueError(
                f"{_MARK}The response of the dataset must have the shape (batch, {self._width}), has "
                f"{values.shape}."
            )
        values = values.reshape(-1) if self._width == 1 else values
        finite = np.isfinite(values.reshape(len(values), -1)).all(axis=1)
        bad = ~finite | ~self._family.support(values)
        if bad.any():
            held = ", ".join(f"{value:g}" for value in np.atleast_1d(values[bad][0]))
            raise ValueError(
                f"{_MARK}The response of the {self._family.name} family must be "
                f"{self._family.support_text}, but the dataset holds {held}."
            )
        return True


@contextmanager
def own_errors() -> Iterator[None]:
    """TensorFlow wraps what a batch's check says into an error of its own; take it out again."""
    try:
        yield
    except tf.errors.OpError as error:
        _, mark, rest = str(error).partition(_MARK)
        if not mark:
            raise
        raise DataError(rest.partition("\n")[0].strip()) from None
