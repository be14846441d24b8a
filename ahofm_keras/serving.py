"""Keras model -> SavedModel in the layout of TF Serving, raw named columns in, named outputs out."""

from __future__ import annotations

from collections.abc import Mapping
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
        inputs: Keras inputs by column name.
        endpoints: endpoint -> output name -> Keras tensor; the first is `serving_default`.
        path: folder to write.
    """
    archive = keras.export.ExportArchive()
    for name, outputs in endpoints.items():
        model = keras.Model(dict(inputs), dict(outputs))
        archive.track(model)
        signature = {
            column: tf.TensorSpec((None,), tensor.dtype, name=column)
            for column, tensor in inputs.items()
        }
        archive.add_endpoint(name, _endpoint(model), input_signature=[signature])
    archive.write_out(str(path), verbose=False)


def _endpoint(model: keras.Model) -> Any:
    def serve(columns: dict[str, Any]) -> dict[str, Any]:
        return model(columns, training=False)

    return serve
