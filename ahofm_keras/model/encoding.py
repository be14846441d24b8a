"""Raw columns -> encoded rows: what the terms of a model work on and training never changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from ahofm_keras.errors import DataError
from ahofm_keras.model.graph import Graph

_ROWS = 65_536


class Encoder:
    """The upper half of a model's graph as a function."""

    def __init__(self, graph: Graph) -> None:
        self._inputs = graph.inputs
        self._run = keras.Function(graph.inputs, graph.encoded)

    def encode(self, columns: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...]:
        """Places, design columns and offsets of columns in memory, by chunks of rows."""
        rows = len(next(iter(columns.values())))
        chunks = []
        for start in range(0, rows, _ROWS):
            part = {n: tf.constant(v[start : start + _ROWS]) for n, v in columns.items()}
            chunks.append([np.asarray(array) for array in self._run(part)])
        return tuple(np.concatenate(parts) for parts in zip(*chunks, strict=True))

    def encode_batch(self, columns: Mapping[str, Any], *rest: Any) -> tuple[Any, ...]:
        """A batch of a dataset; its columns may come in any precision and with others beside them."""
        used = {}
        for name, tensor in self._inputs.items():
            if name not in columns:
                raise DataError(f"Column `{name}` is missing from the dataset.")
            value = columns[name]
            used[name] = value if tensor.dtype == "string" else tf.cast(value, tensor.dtype)
        return (tuple(self._run(used)), *rest)
