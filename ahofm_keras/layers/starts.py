"""Room for the factors of several starts, one after the other, of which a fit uses the first ones.

The room is fixed when a layer is built, because weights of a Keras layer do not change their shape. What
is not in use is 0 and costs nothing: a layer leaves it out of what it computes, and of its files. How
many starts are in use a layer knows in Python, so that shapes are static.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def fill_room(given: Any, shape: tuple[int, ...], axis: int, empty: float = 0.0) -> np.ndarray:
    """What the starts in use have, with `empty` in the rest of the room.

    Raises:
        ValueError: where the values do not fit in.
    """
    values = np.asarray(given)
    axes = [place for place in range(len(shape)) if place != axis]
    fits = values.ndim == len(shape) and all(values.shape[place] == shape[place] for place in axes)
    if not fits or values.shape[axis] > shape[axis]:
        raise ValueError(f"Values of the shape {values.shape} do not fit into the shape {shape}.")
    filled = np.full(shape, empty, values.dtype)
    filled[(slice(None),) * axis + (slice(0, values.shape[axis]),)] = values
    return filled
