"""Keras model -> SavedModel in the layout of TF Serving: raw named columns in, named outputs out."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

import keras
import tensorflow as tf

# Letters that are no letter with an accent.
_WRITTEN = {
    "ß": "ss",
    "æ": "ae",
    "Æ": "Ae",
    "ø": "o",
    "Ø": "O",
    "œ": "oe",
    "ł": "l",
    "Ł": "L",
    "đ": "d",
    "ı": "i",
}


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

    Accents are left out, letters of other scripts become their numbers. Where several names would become
    the same one, all but one that was allowed as it stands get a number that depends on nothing but the
    name itself: neither on the order nor on what else there is.

    Example:
        >>> serving_names(["x1", "km/h", "s(x1)", "größe", "年"])
        {'x1': 'x1', 'km/h': 'km_h', 's(x1)': 's_x1', 'größe': 'grosse', '年': 'u5e74'}
        >>> serving_names(["a b", "a/b", "a_b"])
        {'a b': 'a_b_806c5cd3', 'a/b': 'a_b_07f4401c', 'a_b': 'a_b'}
    """
    stems = {name: _stem(name) for name in names}
    count = Counter(stems.values())
    found = {name: stem for name, stem in stems.items() if stem == name or count[stem] == 1}
    for name, stem in stems.items():
        if name not in found:
            own = f"{stem}_{crc32(name.encode()):08x}"
            while own in found.values():
                own += "_"
            found[name] = own
    return {name: found[name] for name in stems}


def _stem(name: str) -> str:
    letters = unicodedata.normalize("NFKD", "".join(_WRITTEN.get(own, own) for own in name))
    plain = "".join(_plain(own) for own in letters if not unicodedata.combining(own))
    stem = re.sub(r"\W+", "_", plain, flags=re.ASCII).strip("_") or "column"
    return f"_{stem}" if stem[0].isdigit() else stem


def _plain(letter: str) -> str:
    return letter if letter.isascii() or not letter.isalnum() else f"u{ord(letter):x}"
