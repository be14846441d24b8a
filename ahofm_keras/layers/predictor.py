"""Contributions of the terms -> predictor -> mean response."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from ahofm_keras.families import Family, get_family

Array = Any


@keras.saving.register_keras_serializable(package="ahofm_keras")
class Predictor(keras.layers.Layer):
    """eta = shift + scale (intercept + sum of contributions) + offset.

    The terms learn a response that is standardised; shift and scale bring it back to its own units.
    They are added in float64: a response such as a year or a time stamp keeps its digits. They are
    weights, which no optimizer changes, because they are learned from the response, and that may be
    first seen in a fit.

    Args:
        shift: where the intercept starts, in units of the link.
        scale: of the predictor inside the model, 1 where it is not standardised; 0 until that is known.
        intercept: whether there is one.
        dispersion_unit: what dispersions and deviances inside the model are multiples of.

    Call arguments:
        contributions: list of `(n, c)`.
        offset: `(n,)` or None.

    Returns:
        `(n,)`, float64.
    """

    def __init__(
        self,
        shift: float = 0.0,
        scale: float = 1.0,
        intercept: bool = True,
        dispersion_unit: float = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        self._units = float(shift), float(scale), float(dispersion_unit)
        self.intercept = intercept

    def build(self, contributions_shape: Any, offset_shape: Any = None) -> None:
        self.bias = None
        if self.intercept:
            self.bias = self.add_weight(name="intercept", shape=(), initializer="zeros")
        shift, scale, dispersion_unit = self._units
        self.shift = self._add("shift", shift)
        self.scale = self._add("scale", scale)
        self.dispersion_unit = self._add("dispersion_unit", dispersion_unit)

    def _add(self, name: str, value: float) -> Any:
        def start(shape: Any, dtype: Any) -> Any:
            return ops.convert_to_tensor(value, dtype=dtype)  # Keras' `Constant` rounds to float32

        return self.add_weight(name=name, shape=(), initializer=start, trainable=False, dtype="float64")

    def call(self, contributions: Sequence[Array], offset: Array = None) -> Array:
        total = ops.sum(ops.concatenate(contributions, axis=1), axis=1)
        if self.bias is not None:
            total = ops.add(total, self.bias)  # of a network they are in float64
        eta = self.shift + self.scale * ops.cast(total, "float64")
        return eta if offset is None else eta + offset

    def compute_output_spec(
        self, contributions: Sequence[Array], offset: Array = None
    ) -> keras.KerasTensor:
        return keras.KerasTensor((contributions[0].shape[0],), dtype="float64")

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "shift": self._units[0],
            "scale": self._units[1],
            "intercept": self.intercept,
            "dispersion_unit": self._units[2],
        }


@keras.saving.register_keras_serializable(package="ahofm_keras")
class Response(keras.layers.Layer):
    """The parameters of the response's distribution, inverse links of their predictors; float64.

    Args:
        family: a name, a family, or its JSON.

    Call arguments:
        eta: the predictor `(n,)`, or a list with one per parameter.

    Returns:
        The mean `(n,)`; of several predictors `(n, K)`, a column per parameter.
    """

    def __init__(self, family: str | Family | type[Family], **kwargs: Any) -> None:
        super().__init__(autocast=False, dtype="float64", **_without_dtype(kwargs))
        self.family = get_family(family)

    def call(self, eta: Array) -> Array:
        if not isinstance(eta, list | tuple):
            return self.family.inverse_link(eta, ops)
        etas = dict(zip(self.family.parameters, eta, strict=True))
        return ops.stack(list(self.family.inverse_links(etas, ops).values()), axis=-1)

    def compute_output_shape(self, eta_shape: Any) -> Any:
        several = isinstance(eta_shape, list) and len(self.family.parameters) > 1
        return (eta_shape[0][0], len(eta_shape)) if several else eta_shape

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "family": self.family.to_json()}


@keras.saving.register_keras_serializable(package="ahofm_keras")
class MeanResponse(keras.layers.Layer):
    """The mean of the response from all parameters of its distribution; float64.

    Args:
        family: a name, a family, or its JSON.

    Call arguments:
        parameters: what `Response` gives.

    Returns:
        The mean `(n,)`, the first parameter where there is no closed form; of classes their
        probabilities `(n, K)`.
    """

    def __init__(self, family: str | Family | type[Family], **kwargs: Any) -> None:
        super().__init__(autocast=False, dtype="float64", **_without_dtype(kwargs))
        self.family = get_family(family)

    def call(self, parameters: Array) -> Array:
        return self.family.mean_of(self.family.named(parameters), ops)

    def compute_output_shape(self, parameters_shape: Any) -> Any:
        rows = parameters_shape[0]
        return (rows, len(self.family.classes)) if self.family.labelled else (rows,)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "family": self.family.to_json()}


@keras.saving.register_keras_serializable(package="ahofm_keras")
class ClassLabel(keras.layers.Layer):
    """The label of the likeliest class, in its own type.

    Args:
        classes: labels in order.

    Call arguments:
        probabilities: `(n, K)`.

    Returns:
        `(n,)`, texts or numbers.
    """

    def __init__(self, classes: Sequence[Any], **kwargs: Any) -> None:
        super().__init__(autocast=False, **kwargs)
        self.classes = list(classes)

    def call(self, probabilities: Array) -> Array:
        return ops.take(self._labels(), ops.argmax(probabilities, axis=-1))

    def compute_output_shape(self, probabilities_shape: Any) -> Any:
        return (probabilities_shape[0],)

    def compute_output_spec(self, probabilities: Array) -> keras.KerasTensor:
        dtype = keras.backend.standardize_dtype(self._labels().dtype)
        return keras.KerasTensor(probabilities.shape[:1], dtype=dtype)

    def _labels(self) -> Array:
        return ops.convert_to_tensor(self.classes)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "classes": self.classes}


def _without_dtype(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in kwargs.items() if key != "dtype"}
