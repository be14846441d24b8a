"""Smooth functions of a given shape: coordinates that are at least 0."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import ops

from ahofm_keras.layers.smooth import Smooth
from ahofm_keras.regularizers import QuadraticPenalty
from ahofm_keras.shapes import shape_rows

Array = Any


@keras.saving.register_keras_serializable(package="ahofm_keras")
class NonNegative(keras.constraints.Constraint):
    """Holds a weight at 0 or above, but for its last entries.

    Args:
        free: number of the last entries that may have any sign.

    Example:
        >>> held = NonNegative(1)(keras.ops.array([-1.0, 2.0, -3.0]))
        >>> keras.ops.convert_to_numpy(held).tolist()
        [0.0, 2.0, -3.0]
    """

    def __init__(self, free: int = 0) -> None:
        self.free = free

    def __call__(self, w: Any) -> Any:
        held = np.arange(w.shape[0]) < w.shape[0] - self.free
        return ops.where(held, ops.maximum(w, 0), w)

    def get_config(self) -> dict[str, Any]:
        return {"free": self.free}


@keras.saving.register_keras_serializable(package="ahofm_keras")
class ShapedSmooth(Smooth):
    """A smooth function of a given shape, such as rising.

    Its weights are the differences of neighbouring coefficients that the shape asks to be at least 0,
    and a straight line where that is free: whatever they are, above 0 the function has its shape. Each
    is in units that make the loss of one gaussian smooth, with its penalty, as steep along it as along
    the others; the line is uncorrelated with all of them. The penalty is that of `Smooth`.

    Args:
        feature, transform, eigenvalues, smoothing: as of `Smooth`.
        shape: one of `shapes.SHAPES`.
    """

    def __init__(
        self,
        feature: int,
        transform: Any,
        eigenvalues: Any,
        smoothing: float,
        shape: str,
        **kwargs: Any,
    ) -> None:
        super().__init__(feature, transform, eigenvalues, smoothing, **kwargs)
        self.shape = shape
        rows, self._free = shape_rows(shape, len(self.transform))
        directions = np.linalg.inv(rows @ self.transform)
        held, free = np.split(directions, [directions.shape[1] - self._free], axis=1)
        held = held - free @ np.linalg.pinv(free) @ held
        directions = np.concatenate([held, free], axis=1)
        steepness = (1 + self.smoothing * self.eigenvalues)[:, None] * directions**2
        self._directions = directions / np.sqrt(steepness.sum(axis=0))
        self._forms = np.linalg.inv(self._directions)
        self._to_coefficients = self.transform @ self._directions

    def build(self, basis_shape: Any) -> None:
        self.kernel = self.add_weight(
            name="kernel",
            shape=(len(self.eigenvalues),),
            initializer="zeros",
            regularizer=QuadraticPenalty(self.smoothing * self.eigenvalues, self._directions),
            constraint=NonNegative(self._free),
        )

    def coordinates(self) -> np.ndarray:
        """The function in Demmler-Reinsch coordinates, `(r,)`."""
        return np.asarray(self._directions @ np.asarray(self.kernel, float))

    def assign_coordinates(self, values: np.ndarray) -> None:
        """Set the weights from Demmler-Reinsch coordinates `(r,)` of a function of the shape."""
        kernel = self._forms @ values
        held = len(kernel) - self._free
        kernel[:held] = np.maximum(kernel[:held], 0.0)  # rounding
        self.kernel.assign(kernel)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["ridge"]
        return {**config, "shape": self.shape}
