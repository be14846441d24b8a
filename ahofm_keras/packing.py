"""Arrays in JSON, every digit kept, in half the room that their numbers would take as text."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np


def pack_array(values: np.ndarray) -> dict[str, Any]:
    """Numbers of any shape as JSON: the shape, and the bytes of float64 as text."""
    stored = np.ascontiguousarray(values, "<f8")
    text = base64.b64encode(zlib.compress(stored.tobytes())).decode("ascii")
    return {"shape": list(stored.shape), "float64": text}


def unpack_array(packed: Mapping[str, Any]) -> np.ndarray:
    """The array that `pack_array` was given."""
    found = np.frombuffer(zlib.decompress(base64.b64decode(packed["float64"])), "<f8")
    return found.astype(float).reshape(packed["shape"])
