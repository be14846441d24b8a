"""Data as the user gives it -> encoded rows in memory, or batches of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from ahofm_keras.data import read_columns
from ahofm_keras.errors import DataError
from ahofm_keras.families import Family
from ahofm_keras.model.beside import in_row_order, response_of
from ahofm_keras.model.encoding import Encoder
from ahofm_keras.model.fit_result import Sample, take_sample
from ahofm_keras.model.reading import as_response, read_inputs, read_weight
from ahofm_keras.model.streams import BatchCheck, check_stream
from ahofm_keras.solvers.job import Rows
from ahofm_keras.terms import Design, EncodedRows
from ahofm_keras.transforms import Expression


class RowReader:
    """Reads, checks and encodes the rows of one model.

    Args:
        design: of the model.
        family: of the response.
        response: its expression.
        extrapolation: outside the training range.
        encoder: the upper half of the model's graph.
    """

    def __init__(
        self,
        design: Design,
        family: Family,
        response: Expression,
        extrapolation: str,
        encoder: Encoder,
    ) -> None:
        self._design = design
        self._family = family
        self.response = response
        self._extrapolation = extrapolation
        self._encoder = encoder

    def with_response(self, x: Any, y: Any, weight: Any) -> Rows | tf.data.Dataset:
        """Rows to train on or to evaluate; a dataset stays one."""
        if isinstance(x, tf.data.Dataset):
            for name, value in (("y", y), ("sample_weight", weight)):
                if value is not None:
                    raise DataError(
                        f"`{name}` cannot stand beside a dataset: "
                        "give batches of `(columns, y[, weight])`."
                    )
            return self._stream(x, with_response=True)
        columns = read_inputs(self._design, x, self._extrapolation)
        response = response_of(x, y, self.response, self._family)
        rows = len(next(iter(columns.values())))
        if len(response) != rows:
            raise DataError(f"The response has {len(response)} values, the data {rows} rows.")
        weight = read_weight(x, in_row_order(x, weight, "sample_weight"), rows)
        return Rows(
            self._encoder.encode(columns), *self._family.as_weighted(response, weight, tell=True)
        )

    def sample(self, x: Any, y: Any, weight: Any, seed: int) -> Sample | None:
        """Some of the rows as they were given; none of a dataset."""
        if isinstance(x, tf.data.Dataset):
            return None
        columns = read_columns(x, self._design.columns, self._design.columns)
        rows = len(next(iter(columns.values())))
        # What there is to say of these was said when they were read to be fitted.
        response = response_of(x, y, self.response, self._family, tell=False)
        weight = read_weight(x, in_row_order(x, weight, "sample_weight", tell=False), rows)
        return take_sample(columns, *self._family.as_weighted(response, weight), seed)

    def validation(self, data: Any) -> Rows | tf.data.Dataset:
        """The rows of `validation_data`: data, `(x, y)` or `(x, y, weight)`."""
        parts = data if isinstance(data, tuple) else (data,)
        if not 1 <= len(parts) <= 3:
            raise DataError(
                "`validation_data` must be data, or `(x, y)`, or `(x, y, weight)`. "
                f"Received: a tuple of {len(parts)}."
            )
        x, y, weight = (*parts, None, None)[:3]
        return self.with_response(x, y, weight)

    def without_response(self, x: Any) -> EncodedRows | tf.data.Dataset:
        """Encoded rows to predict; a dataset stays one, of tuples with one entry."""
        if isinstance(x, tf.data.Dataset):
            return self._stream(x, with_response=False)
        return self._encoder.encode(read_inputs(self._design, x, self._extrapolation))

    def encode(self, columns: Mapping[str, Any]) -> EncodedRows:
        """Raw columns that need no check, encoded."""
        return self._encoder.encode(columns)

    def batch(self, x: Any, y: Any) -> tuple[Any, Any]:
        """A batch as training takes it, encoded where the model's answer is not what the loss takes."""
        several = len(self._design.predictors) > 1 or self._family.labelled
        if not (several and isinstance(x, Mapping)):
            return x, y
        labels = (
            y if y is None or not self._family.labelled else as_response(y, self.response, self._family)
        )
        return tuple(self._encoder.encode(read_inputs(self._design, x, self._extrapolation))), labels

    def _stream(self, dataset: tf.data.Dataset, with_response: bool) -> tf.data.Dataset:
        check_stream(dataset, self._design, with_response, self._family.labelled)
        check = BatchCheck(self._design, self._family, self._extrapolation, self.response.width)
        return self._encoder.encode_stream(dataset, check, with_response)
