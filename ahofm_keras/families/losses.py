"""A family's likelihood as Keras loss and metric."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from ahofm_keras.families.base import Family
from ahofm_keras.families.registry import get_family

# Keras adds losses up in float32.
_LARGEST_LOSS = 1e37
# A sum of weights of 0, which nothing can be divided by.
_LEAST_WEIGHT = 1e-300


@keras.saving.register_keras_serializable(package="ahofm_keras")
class HalfDeviance(keras.losses.Loss):
    """Half the unit deviance in units of the dispersion: the loss beside which lambda is set.

    The paper minimises a sum of losses plus half the penalty. Keras takes means, so loss and penalty
    are both divided by n, and the squared error is halved: with a plain mean squared error lambda
    would be off by a factor of 2.

    Args:
        family: a name, a family, or its JSON.
        unit: what dispersions inside the model are multiples of; a number, or the weight that holds it.
    """

    def __init__(
        self,
        family: str | Family | type[Family],
        unit: Any = 1.0,
        name: str = "half_deviance",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        # Responses far from 0 (years, counts of seconds) would lose their digits in float32.
        super().__init__(name=name, reduction=reduction, dtype="float64")
        self.family = get_family(family)
        self.unit = unit if isinstance(unit, keras.Variable) else float(unit)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        # Keras adds the regularizers, which have the default precision.
        loss = ops.minimum(super().__call__(y_true, y_pred, sample_weight), _LARGEST_LOSS)
        return ops.cast(loss, keras.config.floatx())

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return _losses(self.family, y_true, y_pred) / ops.cast(self.unit, "float64")

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "family": self.family.to_json(), "unit": float(self.unit)}


@keras.saving.register_keras_serializable(package="ahofm_keras")
class Deviance(keras.metrics.Metric):
    """Mean unit deviance, without the penalty that Keras mixes into `val_loss`.

    For the gaussian family it is the mean squared error in the response's own units.
    """

    def __init__(
        self, family: str | Family | type[Family], name: str = "deviance", dtype: Any = None
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        self._direction = "down"  # less is better: callbacks that monitor it ask for that
        self.family = get_family(family)
        self.total = self.add_variable(shape=(), initializer="zeros", name="total", dtype="float64")
        self.weight = self.add_variable(shape=(), initializer="zeros", name="weight", dtype="float64")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        deviance = 2 * _losses(self.family, ops.cast(y_true, "float64"), ops.cast(y_pred, "float64"))
        weight = ops.ones_like(deviance)
        if sample_weight is not None:
            weight = ops.reshape(ops.cast(sample_weight, "float64"), ops.shape(deviance))
        self.total.assign_add(ops.sum(weight * deviance))
        self.weight.assign_add(ops.sum(weight))

    def result(self) -> Any:
        return self.total / ops.maximum(self.weight, _LEAST_WEIGHT)

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "dtype": self.dtype, "family": self.family.to_json()}


def _losses(family: Family, y_true: Any, y_pred: Any) -> Any:
    """Loss of each row; parameters stand beside each other where there are several."""
    parameters = family.named(y_pred)
    shape = ops.shape(next(iter(parameters.values())))
    if len(y_true.shape) < 2 or y_true.shape[-1] == 1:  # (n, 1), (n,) would make (n, n)
        y_true = ops.reshape(y_true, shape)
    return family.loss(y_true, parameters, ops)
