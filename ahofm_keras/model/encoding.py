"""Raw columns -> encoded rows: what the terms of a model work on and training never changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from ahofm_keras.data import ROWS
from ahofm_keras.model.graph import Graph
from ahofm_keras.model.streams import BatchCheck
from ahofm_keras.terms import EncodedRows

_ROWS = 65_536


class Encoder:
    """The upper half of a model's graph as a function."""

    def __init__(self, graph: Graph) -> None:
        self._inputs = graph.inputs
        self._layers = {name: layer for name, (layer, _) in graph.encoders.items()}
        self._run = keras.Function(graph.inputs, graph.encoded)

    def encode(self, columns: Mapping[str, np.ndarray]) -> EncodedRows:
        """Columns in memory, encoded by chunks of rows."""
        rows = len(next(iter(columns.values())))
        chunks: dict[str, list[np.ndarray]] = {name: [] for name in self._layers}
        for start in range(0, rows, _ROWS):
            part = {name: values[start : start + _ROWS] for name, values in columns.items()}
            for name, layer in self._layers.items():
                chunks[name].append(layer.encode(part))
        return EncodedRows({name: np.concatenate(parts) for name, parts in chunks.items()}, rows)

    def encode_stream(
        self, dataset: tf.data.Dataset, check: BatchCheck, with_response: bool
    ) -> tf.data.Dataset:
        """The dataset with its columns encoded; they may come in any precision, with others beside."""

        @tf.autograph.experimental.do_not_convert
        def encode(*parts: Any) -> tuple[Any, ...]:
            columns = check.columns({name: _column(parts[0], name) for name in self._inputs})
            used = {
                name: value
                if self._inputs[name].dtype == "string"
                else tf.cast(value, self._inputs[name].dtype)
                for name, value in columns.items()
            }
            rest = check.response(*parts[1:]) if with_response else ()
            return (tuple(self._run(used)), *rest)

        return dataset.map(encode, num_parallel_calls=tf.data.AUTOTUNE).prefetch(2)


def _column(columns: Mapping[str, Any], name: str) -> Any:
    """A column of a batch; of a model that reads none, as many zeros as there are rows."""
    if name != ROWS:
        return columns[name]
    return tf.zeros(tf.shape(next(iter(columns.values())))[0], tf.float64)
