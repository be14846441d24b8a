"""Exact tensor products of several features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from ahofm_keras.layers.basis import Functions, combine, one_feature, with_constant
from ahofm_keras.layers.coordinates import count_wiggles
from ahofm_keras.regularizers import QuadraticPenalty
from ahofm_keras.tensors import margin_penalties, shape_coordinates

Array = Any


@keras.saving.register_keras_serializable(package="ahofm_keras")
class TensorProduct(keras.layers.Layer):
    """An exact tensor product of its features: `ti()`, or `te()` with its lower orders.

    eta = sum w_(a..c) u_1a(x_1) ... u_dc(x_d) over all products of one function of each margin, with
    u_j = T_j' b_j. Of a `te()` each margin has the constant too, as its first function; the product of
    all constants is left to the intercept. The penalty is the Kronecker sum of the margins'.

    Args:
        features: for each margin the position of its `BasisExpansion` among the inputs and its position
            within it.
        transforms: T_j `(M_j, r_j)` of each margin.
        eigenvalues: `(r_j,)` of each margin's penalty in these coordinates.
        smoothing: lambda of each margin.
        pure: whether it is a `ti()`.
        ridges: `(r_j,)` of each margin, what is added to its lambda times the eigenvalues: the penalty
            of atoms; by default nothing.

    Call arguments:
        bases: list of basis expansions.

    Returns:
        `(n, 1)`.
    """

    def __init__(
        self,
        features: Sequence[Sequence[int]],
        transforms: Sequence[Any],
        eigenvalues: Sequence[Any],
        smoothing: Sequence[float],
        pure: bool,
        ridges: Sequence[Any] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.features = [tuple(feature) for feature in features]
        self.transforms = [np.asarray(transform, float) for transform in transforms]
        self.eigenvalues = [np.asarray(values, float) for values in eigenvalues]
        self.smoothing = [float(value) for value in smoothing]
        self.pure = bool(pure)
        self._transforms = [own if self.pure else _with_constant(own) for own in self.transforms]
        self._widths = [len(values) for values in self.eigenvalues]
        self.ridges = [np.asarray(ridge, float) for ridge in ridges]
        penalty = np.asarray(self.smoothing) @ margin_penalties(self.eigenvalues, self.pure)
        if self.ridges:
            penalty += margin_penalties(self.ridges, self.pure).sum(axis=0)
        wiggles = margin_penalties([count_wiggles(values) for values in self.eigenvalues], self.pure)
        self._speed = self._shaped(1 / np.sqrt(1 + penalty + wiggles.sum(axis=0)))
        self._penalty = self._shaped(penalty) * self._speed**2

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return shape_coordinates(values, self._widths, self.pure)

    def build(self, bases_shape: Any) -> None:
        self.kernel = self.add_weight(
            name="kernel",
            shape=self._speed.shape,
            initializer="zeros",
            regularizer=QuadraticPenalty(self._penalty),
        )

    def coordinates(self) -> np.ndarray:
        """The weights in Demmler-Reinsch coordinates, one axis per margin.

        `(r_1, ..., r_d)`; with its lower orders `(1 + r_1, ..., 1 + r_d)`, where place 0 of an axis is
        the constant and `[0, ..., 0]` is 0.
        """
        return np.asarray(self.kernel) * self._speed

    def assign_coordinates(self, values: np.ndarray) -> None:
        """Set the weights from Demmler-Reinsch coordinates, in the shape that `coordinates` has."""
        used = self._speed > 0
        self.kernel.assign(np.where(used, values / np.where(used, self._speed, 1.0), 0.0))

    def call(self, bases: Sequence[Functions]) -> Array:
        total = self.kernel * ops.cast(self._speed, self.compute_dtype)
        # From the last margin to the first, each is summed over as soon as its functions are known. Not
        # in coefficients of products of basis functions: where no row is these are large, and cancel.
        for margin in reversed(range(len(self.features))):
            functions = self._functions(bases, margin)
            width = functions.shape[0]
            if margin == len(self.features) - 1:
                total = ops.matmul(ops.reshape(total, (-1, width)), functions)
            else:
                total = ops.reshape(total, (total.shape[0] // width, width, -1))
                total = ops.sum(total * functions[None], axis=1)
        return ops.transpose(total)

    def _functions(self, bases: Sequence[Functions], margin: int) -> Array:
        """Functions u of a margin, `(r, n)`; of a `te()` with the constant."""
        own = one_feature(bases, self.features[margin])
        own = own if self.pure else with_constant(own)
        return ops.transpose(combine(own, ops.cast(self._transforms[margin], self.compute_dtype)))

    def compute_output_shape(self, bases_shape: Any) -> tuple[int | None, int]:
        return (bases_shape[0][0][2], 1)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "features": [list(feature) for feature in self.features],
            "transforms": [transform.tolist() for transform in self.transforms],
            "eigenvalues": [values.tolist() for values in self.eigenvalues],
            "smoothing": self.smoothing,
            "pure": self.pure,
            "ridges": [ridge.tolist() for ridge in self.ridges],
        }


def _with_constant(transform: np.ndarray) -> np.ndarray:
    """T `(M, r)` with the constant as first function and first coordinate: `(1 + M, 1 + r)`."""
    return np.pad(transform, ((1, 0), (1, 0))) + np.pad([[1.0]], [(0, size) for size in transform.shape])
