"""Keras model -> SavedModel in the layout of TF Serving: raw named columns in, named outputs out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf


def export_saved_model(
    inputs: Mapping[str, Any], endpoints: Mapping[str, Mapping[str, Any]], path: Path
) -> None:
    """Write a SavedModel with one signature an endpoint.

    It loads with `tf.saved_model.load` in a process that has never heard of this package.

    Args:
        inputs: Keras inputs by column.
        endpoints: endpoint -> output name -> Keras tensor; the first is `serving_default`.
        path: folder to write.
    """
    names = serving_names(inputs)
    signature = {
        names[column]: tf.TensorSpec(tensor.shape, tensor.dtype, name=names[column])
        for column, tensor in inputs.items()
    }
    archive = keras.export.ExportArchive()
    for endpoint, outputs in endpoints.items():
        results = serving_names(outputs)
        model = keras.Model(
            {tensor.name: tensor for tensor in inputs.values()},
            {results[name]: tensor for name, tensor in outputs.items()},
        )
        archive.track(model)
        given = {names[column]: tensor.name for column, tensor in inputs.items()}
        archive.add_endpoint(endpoint, _endpoint(model, given), input_signature=[signature])
    archive.write_out(str(path), verbose=False)


def _endpoint(model: keras.Model, given: Mapping[str, str]) -> Any:
    def serve(columns: dict[str, Any]) -> dict[str, Any]:
        return model({given[name]: value for name, value in columns.items()}, training=False)

    return serve


def serving_names(names: Iterable[str]) -> dict[str, str]:
    """Names as signatures allow them: letters, digits and `_` of ASCII, each once.

    Example:
        >>> serving_names(["x1", "km/h", "s(x1)"])
        {'x1': 'x1', 'km/h': 'km_h', 's(x1)': 's_x1'}
    """
    safe: dict[str, str] = {}
    for name in names:
        stem = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "column"
        stem = f"_{stem}" if stem[0].isdigit() else stem
        while stem in safe.values():
            stem += "_"
        safe[name] = stem
    return safe
