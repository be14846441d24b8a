"""Linear effects with a penalty on norms, in a form that first-order optimizers can follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from ahofm_keras.regularizers import QuadraticPenalty

Array = Any

# Where a coefficient is 0 and both of its factors were, no gradient would ever lead away.
_LEAST_SIZE = 1e-3
# Norms of coefficients of standardised columns that are as good as 0: a millionth of the variance.
_NOTHING = 1e-3


@keras.saving.register_keras_serializable(package="ahofm_keras")
class SparseLinear(keras.layers.Layer):
    """A linear effect of standardised design columns whose penalty is a sum of norms.

    sum_g penalty_g |beta_g| has a kink where a group of coefficients is 0, which gradients jump across
    and never rest at. With beta_g = u_g v_g the penalty penalty_g (u_g^2 + |v_g|^2) / 2 is smooth, and
    its least value over all such factors is penalty_g |beta_g| (Hoff, 2017, Lasso, fractional norm and
    structured sparse estimation using a Hadamard product parametrization).

    Args:
        start: its first column in the design.
        groups: number of the group of each column, rising from 0.
        penalty: of the norm of each group, per row.

    Returns:
        `(n, 1)`.
    """

    def __init__(
        self, start: int, groups: Sequence[int], penalty: Sequence[float], **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.start = start
        self.groups = [int(group) for group in groups]
        self.penalty = [float(value) for value in penalty]

    @property
    def stop(self) -> int:
        """Behind its last column."""
        return self.start + len(self.groups)

    def build(self, design_shape: Any) -> None:
        penalty = np.array(self.penalty)
        self.sizes = self.add_weight(
            name="sizes",
            shape=(len(penalty),),
            initializer="ones",
            regularizer=QuadraticPenalty(penalty),
        )
        self.directions = self.add_weight(
            name="directions",
            shape=(len(self.groups),),
            initializer="zeros",
            regularizer=QuadraticPenalty(penalty[self.groups]),
        )

    def coefficients(self) -> Array:
        """beta, one per column."""
        return ops.take(self.sizes, self.groups) * self.directions

    def coordinates(self) -> np.ndarray:
        """The coefficients, one per column."""
        return np.asarray(self.sizes)[self.groups] * np.asarray(self.directions)

    def assign_coordinates(self, values: np.ndarray) -> None:
        """Set the coefficients, by the factors that the penalty likes best."""
        norms = self._norms(np.asarray(values, float))
        sizes = np.maximum(np.sqrt(norms), _LEAST_SIZE)
        self.sizes.assign(sizes)
        self.directions.assign(values / sizes[self.groups])

    def drop_nothing(self) -> None:
        """Make 0 what a first-order optimizer only came close to 0 with."""
        values = self.coordinates().astype(float)
        gone = self._norms(values) < _NOTHING
        if gone.any():
            self.assign_coordinates(np.where(gone[self.groups], 0.0, values))

    def _norms(self, values: np.ndarray) -> np.ndarray:
        return np.sqrt(np.bincount(self.groups, np.square(values), len(self.penalty)))

    def call(self, design: Array) -> Array:
        return ops.matmul(design[:, self.start : self.stop], self.coefficients()[:, None])

    def compute_output_shape(self, design_shape: Any) -> tuple[int | None, int]:
        return (design_shape[0], 1)

    def get_config(self) -> dict[str, Any]:
        config = {"start": self.start, "groups": self.groups, "penalty": self.penalty}
        return {**super().get_config(), **config}
