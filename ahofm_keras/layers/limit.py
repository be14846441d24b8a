"""What holds the sum of some terms within the range that it had on the training rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

Array = Any


@keras.saving.register_keras_serializable(package="ahofm_keras")
class RangeLimit(keras.layers.Layer):
    """The sum of contributions, held between its smallest and its largest value on the training rows.

    Where several features are in their tails together no row has been, and products of their factors
    are as large as they happen to be. A fit learns the two ends when it is done; until then they are
    infinite.

    Call arguments:
        contributions: list of `(n, c)`.

    Returns:
        `(n, 2)`: the sum within the ends, and what that changed of it.
    """

    def build(self, contributions_shape: Any) -> None:
        self.low = self._add("low", -np.inf)
        self.high = self._add("high", np.inf)

    def _add(self, name: str, value: float) -> Any:
        def start(shape: Any, dtype: Any) -> Array:
            return ops.full(shape, value, dtype=dtype)

        return self.add_weight(name=name, shape=(), initializer=start, trainable=False, dtype="float64")

    def call(self, contributions: Sequence[Array]) -> Array:
        total = ops.sum(ops.concatenate(contributions, axis=1), axis=1)
        low, high = ops.cast(self.low, total.dtype), ops.cast(self.high, total.dtype)
        held = ops.maximum(ops.minimum(total, high), low)  # missing values stay missing
        return ops.stack([held, held - total], axis=1)

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest sum that leaves the layer, in the model's own scale."""
        return float(self.low), float(self.high)

    def set_ends(self, low: float = -np.inf, high: float = np.inf) -> None:
        """Hold the sum between two ends; without them nothing is held."""
        self.low.assign(low)
        self.high.assign(high)

    def compute_output_shape(self, contributions_shape: Any) -> tuple[int | None, int]:
        return (contributions_shape[0][0], 2)
