"""Linear effects of design columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from ahofm_keras.regularizers import QuadraticPenalty

Array = Any


@keras.saving.register_keras_serializable(package="ahofm_keras")
class Linear(keras.layers.Layer):
    """A linear effect of some standardised design columns.

    Args:
        start: its first column in the design.
        stop: behind its last column.
        penalty: of the square of each coefficient, per row; not penalised by default.
        speed: what each weight is multiplied with, so that smooth functions are learned first.

    Returns:
        `(n, 1)`.
    """

    def __init__(
        self,
        start: int,
        stop: int,
        penalty: Sequence[float] | None = None,
        speed: Sequence[float] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.start = start
        self.stop = stop
        self.penalty = None if penalty is None else [float(value) for value in penalty]
        self.speed = None if speed is None else [float(value) for value in speed]
        self._speed = np.ones(stop - start) if speed is None else np.array(self.speed)

    def build(self, design_shape: Any) -> None:
        self.kernel = self.add_weight(
            name="kernel",
            shape=(self.stop - self.start,),
            initializer="zeros",
            regularizer=None
            if self.penalty is None
            else QuadraticPenalty(np.array(self.penalty) * self._speed**2),
        )

    def coordinates(self) -> np.ndarray:
        """The coefficients, one per column."""
        return np.asarray(self.kernel) * self._speed

    def assign_coordinates(self, values: np.ndarray) -> None:
        """Set the coefficients."""
        self.kernel.assign(values / self._speed)

    def call(self, design: Array) -> Array:
        weights = self.kernel
        if self.speed is not None:
            weights = weights * ops.cast(self._speed, self.compute_dtype)
        return ops.matmul(design[:, self.start : self.stop], weights[:, None])

    def compute_output_shape(self, design_shape: Any) -> tuple[int | None, int]:
        return (design_shape[0], 1)

    def get_config(self) -> dict[str, Any]:
        config = {
            "start": self.start,
            "stop": self.stop,
            "penalty": self.penalty,
            "speed": self.speed,
        }
        return {**super().get_config(), **config}
