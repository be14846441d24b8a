"""Smooth functions of one feature."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import ops

from ahofm_keras.layers.basis import Functions, combine, one_feature
from ahofm_keras.layers.coordinates import learned_coordinates, learning_speed
from ahofm_keras.regularizers import QuadraticPenalty

Array = Any


@keras.saving.register_keras_serializable(package="ahofm_keras")
class Smooth(keras.layers.Layer):
    """A smooth function of one feature, b(x)' T w with a quadratic penalty on w.

    Args:
        feature: position of the feature within its `BasisExpansion`.
        transform: T `(M, r)`, Demmler-Reinsch coordinates of the (centred) basis.
        eigenvalues: `(r,)` of the penalty in these coordinates.
        smoothing: lambda.
        ridge: `(r,)`, what is added to lambda times the eigenvalues: the penalty of atoms.

    Call arguments:
        basis: a basis expansion.

    Returns:
        `(n, 1)`.
    """

    def __init__(
        self,
        feature: int,
        transform: Any,
        eigenvalues: Any,
        smoothing: float,
        ridge: Any = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.feature = feature
        self.transform = np.asarray(transform, float)
        self.eigenvalues = np.asarray(eigenvalues, float)
        self.smoothing = float(smoothing)
        self.ridge = np.broadcast_to(np.asarray(ridge, float), self.eigenvalues.shape)
        self._to_coefficients, self._penalty = learned_coordinates(
            self.transform, self.eigenvalues, self.smoothing, self.ridge
        )
        self._speed = learning_speed(self.eigenvalues, self.smoothing, self.ridge)

    def build(self, basis_shape: Any) -> None:
        self.kernel = self.add_weight(
            name="kernel",
            shape=(len(self.eigenvalues),),
            initializer="zeros",
            regularizer=QuadraticPenalty(self._penalty),
        )

    def coefficients(self) -> Array:
        """Coefficients of the basis functions, `(M,)`."""
        return ops.matmul(ops.cast(self._to_coefficients, self.compute_dtype), self.kernel)

    def coordinates(self) -> np.ndarray:
        """The weights in Demmler-Reinsch coordinates, `(r,)`."""
        return np.asarray(self.kernel) * self._speed

    def assign_coordinates(self, values: np.ndarray) -> None:
        """Set the weights from Demmler-Reinsch coordinates `(r,)`."""
        self.kernel.assign(values / self._speed)

    def call(self, basis: Functions) -> Array:
        return combine(one_feature([basis], (0, self.feature)), self.coefficients())[:, None]

    def compute_output_shape(self, basis_shape: Any) -> tuple[int | None, int]:
        return (basis_shape[0][2], 1)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "feature": self.feature,
            "transform": self.transform.tolist(),
            "eigenvalues": self.eigenvalues.tolist(),
            "smoothing": self.smoothing,
            "ridge": self.ridge.tolist(),
        }
