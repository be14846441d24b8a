"""Functions of the distances between points and knots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from ahofm_keras.layers.basis import Functions
from ahofm_keras.radial import Radial

Array = Any


@keras.saving.register_keras_serializable(package="ahofm_keras")
class RadialExpansion(keras.layers.Layer):
    """The basis of one feature of points, see `radial.py`.

    Distances and their functions, large numbers that nearly cancel, are computed in float64.

    Args:
        column: the first of the columns of the places that hold its coordinates.
        radial: the functions, as an object or as JSON.

    Returns:
        As a `BasisExpansion` of one feature: the first function, 0, `(1, 1, n)`, and the values of all
        `(1, M, n)`.
    """

    def __init__(self, column: int, radial: Any, **kwargs: Any) -> None:
        super().__init__(autocast=False, **kwargs)
        self.column = column
        self.radial = Radial.from_json(radial) if isinstance(radial, Mapping) else radial

    def call(self, places: Array) -> Functions:
        own = places[:, self.column : self.column + self.radial.dimension]
        values = self.radial.evaluate(ops.transpose(ops.cast(own, "float64")), ops)
        first = ops.zeros_like(values[:1], dtype="int32")
        return first[None], ops.cast(values, self.compute_dtype)[None]

    def compute_output_shape(self, places_shape: Any) -> tuple[tuple[int | None, ...], ...]:
        return (1, 1, places_shape[0]), (1, self.radial.size, places_shape[0])

    def compute_output_spec(self, places: Array) -> Functions:
        first, values = self.compute_output_shape(places.shape)
        return (
            keras.KerasTensor(first, dtype="int32"),
            keras.KerasTensor(values, dtype=self.compute_dtype),
        )

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "column": self.column, "radial": self.radial.to_json()}
