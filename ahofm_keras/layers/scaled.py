"""Terms that are multiplied with a number, or with the levels of a category."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from ahofm_keras.layers.basis import Functions, combine
from ahofm_keras.layers.coordinates import count_wiggles
from ahofm_keras.layers.linear_functions import (
    feature_functions,
    inner_functions,
    with_arrays,
    with_lists,
)
from ahofm_keras.regularizers import QuadraticPenalty

Array = Any


@keras.saving.register_keras_serializable(package="ahofm_keras")
class Scaled(keras.layers.Layer):
    """sum_rk w_rk u_r(x) v_k(z): functions u of a term times functions v of a number or category.

    Args:
        entry: what `block_functions` takes of it.
        penalty: `(R K,)`, of the square of each coefficient.
        uses_columns: whether the term has design columns.

    Call arguments:
        bases: list of basis expansions; with design columns these come last.

    Returns:
        `(n, 1)`.
    """

    def __init__(
        self, entry: Mapping[str, Any], penalty: Any, uses_columns: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.entry = with_arrays(entry)
        self.penalty = np.asarray(penalty, float)
        self.uses_columns = uses_columns
        self._speed = 1 / np.sqrt(1 + self.penalty + count_wiggles(self.penalty))
        self._by = np.asarray(self.entry["transforms"][0])

    def build(self, inputs_shape: Any) -> None:
        self.kernel = self.add_weight(
            name="kernel",
            shape=self.penalty.shape,
            initializer="zeros",
            regularizer=QuadraticPenalty(self.penalty * self._speed**2),
        )

    def coordinates(self) -> np.ndarray:
        """The weights in the coordinates of the linear block, `(R K,)`."""
        return np.asarray(self.kernel) * self._speed

    def assign_coordinates(self, values: np.ndarray) -> None:
        """Set the weights from the coordinates of the linear block `(R K,)`."""
        self.kernel.assign(values / self._speed)

    def call(self, inputs: Sequence[Any]) -> Array:
        bases: Sequence[Functions] = inputs[:-1] if self.uses_columns else inputs
        columns = inputs[-1] if self.uses_columns else None
        functions = inner_functions(self.entry, bases, columns, self.compute_dtype)
        weights = self.kernel * ops.cast(self._speed, self.compute_dtype)
        weights = ops.reshape(weights, (-1, self._by.shape[1]))
        # A row has one level, whose coefficients are looked up.
        table = ops.matmul(ops.cast(self._by, self.compute_dtype), ops.transpose(weights))
        by = feature_functions(bases, self.entry["features"][0], self.compute_dtype)
        return ops.sum(ops.transpose(functions) * combine(by, table), axis=1, keepdims=True)

    def compute_output_shape(self, inputs_shape: Any) -> tuple[int | None, int]:
        return (inputs_shape[0][0][2], 1)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "entry": with_lists(self.entry),
            "penalty": self.penalty.tolist(),
            "uses_columns": self.uses_columns,
        }
