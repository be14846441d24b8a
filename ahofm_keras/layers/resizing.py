"""Other weights for a layer that is built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def reopened(layer: Any, weights: Iterable[Any]) -> Iterator[None]:
    """A built layer without some weights, open for others.

    Keras closes the list of a layer's weights when it is built. Its own layers open it again in this way
    where they change their weights later (`Dense.enable_lora`, `Dense.quantize`).

    Args:
        layer: built.
        weights: of the layer, to be left out.
    """
    layer._tracker.unlock()
    for weight in list(weights):
        layer._untrack_variable(weight)
    try:
        yield
    finally:
        layer._tracker.lock()
