"""The smoothness penalty as a Keras regularizer."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import ops


@keras.saving.register_keras_serializable(package="ahofm_keras")
class QuadraticPenalty(keras.regularizers.Regularizer):
    """Half a weighted sum of squares, 1/2 sum_m q_m w_m^2.

    The layers keep their weights in Demmler-Reinsch coordinates, where the penalty matrix is diagonal:
    with gamma = T w it equals lambda gamma' P gamma / (2 n), the paper's AHOFM penalty beside a mean
    loss. No Kronecker product and no matrix larger than M x M ever appears.

    Args:
        weights: q, of the shape of the variable or of its leading axes (`(p, r)` for a `(p, r, F)`
            weight: the factors share their feature's penalty).
        transform: S, where the variable v is in other coordinates: w = S v.

    Example:
        >>> float(QuadraticPenalty([1.0, 2.0])(keras.ops.array([3.0, 1.0])))
        5.5
    """

    def __init__(self, weights: Any, transform: Any = None) -> None:
        self.weights = np.asarray(weights, float)
        self.transform = None if transform is None else np.asarray(transform, float)
        if not np.all(np.isfinite(self.weights)) or np.any(self.weights < 0):
            raise ValueError(f"Penalty weights must be finite and not negative. Received: {weights}")

    def __call__(self, x: Any) -> Any:
        if self.transform is not None:
            x = ops.matmul(ops.cast(self.transform, x.dtype), x)
        missing = (1,) * (len(x.shape) - self.weights.ndim)
        weights = ops.cast(self.weights.reshape(self.weights.shape + missing), x.dtype)
        # Keras adds it to the loss, which has the default precision whatever that of the weights.
        return ops.cast(ops.sum(weights * ops.square(x)) / 2, keras.config.floatx())

    def get_config(self) -> dict[str, Any]:
        transform = None if self.transform is None else self.transform.tolist()
        return {"weights": self.weights.tolist(), "transform": transform}
