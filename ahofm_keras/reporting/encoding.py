"""Numbers and texts -> JSON that may stand inside a page: small, and without a way out of its tag."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

# What could end the tag around the JSON; everything beyond ASCII is escaped anyway.
_ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
_KINDS = {"f8": "<f8", "f4": "<f4", "i4": "<i4"}

Packed = dict[str, Any]


def pack(values: Any, kind: str = "f8") -> Packed:
    """An array as little-endian bytes in base64, with its shape.

    Args:
        values: numbers.
        kind: `"f8"` where the page computes with them, `"f4"` where digits are not needed, or `"i4"`.

    Example:
        >>> unpack(pack([[1.0, 2.0]])).tolist()
        [[1.0, 2.0]]
    """
    array = np.ascontiguousarray(values, _KINDS[kind])
    return {kind: base64.b64encode(array.tobytes()).decode(), "shape": list(np.shape(values))}


def unpack(packed: Packed) -> np.ndarray:
    """The array that `pack` wrote."""
    kind = next(key for key in packed if key in _KINDS)
    array = np.frombuffer(base64.b64decode(packed[kind]), _KINDS[kind])
    return array.reshape(packed["shape"])


def to_json(contents: Any) -> str:
    """JSON for a `<script type="application/json">`, whatever the names in it are.

    Raises:
        ValueError: a number that is not finite and was not packed.

    Example:
        >>> to_json("</script>")
        '"\\\\u003c/script\\\\u003e"'
    """
    text = json.dumps(contents, allow_nan=False, separators=(",", ":"))
    for letter, escaped in _ESCAPED.items():
        text = text.replace(letter, escaped)
    return text
