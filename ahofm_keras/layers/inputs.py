"""Raw named columns -> what the terms work on: places on basis axes, design columns, offsets.

These layers hold no weights. Their values do not change during training, so `fit` computes them once
and trains on the result; datasets and the exported graph run through them. Each computes with NumPy too,
which is what columns in memory go through: a hundred small operations take TensorFlow longer to begin
than to compute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from ahofm_keras.bases import Basis, locate, locate_levels
from ahofm_keras.layers.weighted_sums import WeightedSums
from ahofm_keras.transforms import Expression, evaluate_expression

# The component of a factor that a design column does not depend on.
ABSENT = -2

Array = Any
Namespace = Any  # numpy or keras.ops


class RawColumns(keras.layers.Layer):
    """Base of the layers that read raw columns: computes in float64, so that time stamps keep their
    digits, and finds the index of text levels by lookup tables."""

    def __init__(self, **kwargs: Any) -> None:
        # The places leave in the precision of the weights, but are computed in float64.
        super().__init__(autocast=False, **kwargs)
        self._lookups: dict[str, keras.layers.StringLookup] = {}

    def _add_lookup(self, key: str, levels: tuple[Any, ...]) -> None:
        if levels and isinstance(levels[0], str):
            lookup = keras.layers.StringLookup(vocabulary=list(levels))
            # A lookup cannot be compiled, and would keep Keras from compiling the model's training,
            # which runs on encoded rows and never comes through here.
            lookup.supports_jit = True
            self._lookups[key] = lookup

    def build(self, columns_shape: Any) -> None:
        for lookup in self._lookups.values():
            lookup.build(())

    def call(self, columns: Mapping[str, Array]) -> Array:
        return ops.cast(self._compute(columns, ops), self.compute_dtype)

    def encode(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """What a call gives, of columns in memory."""
        values: np.ndarray = self._compute(columns, np).astype(self.compute_dtype)
        return values

    def _compute(self, columns: Mapping[str, Array], namespace: Namespace) -> Array:
        """The layer's values in float64."""
        raise NotImplementedError

    def _level_index(
        self, key: str, levels: tuple[Any, ...], values: Array, namespace: Namespace
    ) -> Array:
        """Index among the levels, -1 where the value is none of them, NaN where it is missing.

        Columns in memory were checked for missing numbers; what an exported model is given was not.
        """
        if namespace is np:
            return locate_levels(levels, values).astype(float)
        if key in self._lookups:
            return ops.cast(self._lookups[key](values), "float64") - 1
        basis = Basis("re", len(levels), 0, levels=levels)
        numbers = ops.cast(values, "float64")
        index = ops.cast(locate(basis, numbers, ops), "float64")
        return ops.where(ops.isnan(numbers), np.float64("nan"), index)


@keras.saving.register_keras_serializable(package="ahofm_keras")
class Positions(RawColumns):
    """Place of each feature on the axis of its basis.

    Args:
        features: `(expression, basis)` of each feature, as objects or as JSON.

    Call arguments:
        columns: dict of raw columns, each `(n,)`.

    Returns:
        `(n, P)`, a column per feature, of points one per coordinate.
    """

    def __init__(self, features: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.features = [_read_feature(feature) for feature in features]
        for place, (_, basis) in enumerate(self.features):
            self._add_lookup(str(place), basis.levels)

    def _compute(self, columns: Mapping[str, Array], namespace: Namespace) -> Array:
        places = []
        for place, (expression, basis) in enumerate(self.features):
            values = evaluate_expression(expression, columns, namespace)
            if basis.levels:
                found = self._level_index(str(place), basis.levels, values, namespace)
            else:
                found = locate(basis, values, namespace)
            places.append(namespace.reshape(found, (-1, basis.dimension)))
        return namespace.concatenate(places, axis=1)

    def compute_output_shape(self, columns_shape: Any) -> tuple[int | None, int]:
        return (_batch(columns_shape), sum(basis.dimension for _, basis in self.features))

    def get_config(self) -> dict[str, Any]:
        features = [[expression.to_json(), basis.to_json()] for expression, basis in self.features]
        return {**super().get_config(), "features": features}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Positions:
        return cls(**config)


def _read_feature(feature: Any) -> tuple[Expression, Basis]:
    expression, basis = feature
    if isinstance(expression, Mapping):
        expression = Expression.from_json(expression)
    return expression, Basis.from_json(basis) if isinstance(basis, Mapping) else basis


@keras.saving.register_keras_serializable(package="ahofm_keras")
class ParametricColumns(RawColumns):
    """Standardised design columns of the linear terms, and sums along arrays.

    Args:
        terms: for each term a dict with `factors` (pairs of expression and levels), `columns` (the
            component taken of each factor, -1: none, -2: nor does the column depend on it), `centre`
            and `scale`; of sums along arrays the config of `WeightedSums`.

    Call arguments:
        columns: dict of raw columns, each `(n,)`.

    Returns:
        `(n, C)`, the columns of all terms side by side. A level not seen in training is 0 in all raw
        columns that depend on it, and these count as the training mean.
    """

    def __init__(self, terms: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.terms: list[WeightedSums | dict[str, Any]] = [_read_term(term) for term in terms]
        for i, term in enumerate(self.terms):
            factors = () if isinstance(term, WeightedSums) else term["factors"]
            for j, (_, levels) in enumerate(factors):
                self._add_lookup(f"{i}_{j}", levels)

    def _compute(self, columns: Mapping[str, Array], namespace: Namespace) -> Array:
        blocks = [self._block(i, term, columns, namespace) for i, term in enumerate(self.terms)]
        if not blocks:
            rows = namespace.shape(next(iter(columns.values())))[0]
            return namespace.zeros((rows, 0), dtype="float64")
        return namespace.concatenate(blocks, axis=1)

    def _block(
        self,
        i: int,
        term: WeightedSums | Mapping[str, Any],
        columns: Mapping[str, Array],
        namespace: Namespace,
    ) -> Array:
        if isinstance(term, WeightedSums):
            return term.compute(columns, namespace)
        chosen: np.ndarray = term["columns"]
        centre, scale = np.asarray(term["centre"]), np.asarray(term["scale"])
        factors = [self._factor(i, j, term, columns, namespace) for j in range(len(term["factors"]))]
        if (np.count_nonzero(chosen != ABSENT, axis=1) == 1).all():
            return _side_by_side(factors, chosen, centre, scale, namespace)
        product: Array = 1.0
        seen: Array = 1.0
        for j, (values, known) in enumerate(factors):
            taken = namespace.take(values, np.maximum(chosen[:, j], 0), axis=1)
            product = product * namespace.where(chosen[:, j] < 0, namespace.ones_like(taken), taken)
            seen = seen * known
        return (product - centre) / scale * seen

    def _factor(
        self,
        i: int,
        j: int,
        term: Mapping[str, Any],
        columns: Mapping[str, Array],
        namespace: Namespace,
    ) -> tuple[Array, Array]:
        """Components of a factor `(n, c)`, and whether its level is known `(n, 1)`; of numbers 1."""
        expression, levels = term["factors"][j]
        values = evaluate_expression(expression, columns, namespace)
        known: Array = 1.0
        if levels:
            index = self._level_index(f"{i}_{j}", levels, values, namespace)[:, None]
            known = _indicator(index >= 0, namespace) + 0 * index
            values = _indicator(index == np.arange(len(levels), dtype=float), namespace)
        return namespace.reshape(values, (namespace.shape(values)[0], -1)), known

    def compute_output_shape(self, columns_shape: Any) -> tuple[int | None, int]:
        sizes = (len(t if isinstance(t, WeightedSums) else t["columns"]) for t in self.terms)
        return (_batch(columns_shape), sum(sizes))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "terms": [_write_term(term) for term in self.terms]}


def _read_term(term: Mapping[str, Any]) -> WeightedSums | dict[str, Any]:
    if "basis" in term:
        return WeightedSums.from_config(term)
    return {
        "factors": [_read_factor(factor) for factor in term["factors"]],
        "columns": np.asarray(term["columns"], int).reshape(-1, len(term["factors"])),
        "centre": list(term["centre"]),
        "scale": list(term["scale"]),
    }


def _write_term(term: WeightedSums | dict[str, Any]) -> dict[str, Any]:
    if isinstance(term, WeightedSums):
        return term.config()
    return {
        **term,
        "factors": [[e.to_json(), list(levels)] for e, levels in term["factors"]],
        "columns": term["columns"].tolist(),
    }


def _read_factor(factor: Any) -> tuple[Expression, tuple[Any, ...]]:
    expression, levels = factor
    if isinstance(expression, Mapping):
        expression = Expression.from_json(expression)
    return expression, tuple(levels)


@keras.saving.register_keras_serializable(package="ahofm_keras")
class Offset(RawColumns):
    """Sum of the offsets, `(n,)`, in float64.

    Args:
        expressions: of the offsets, as objects or as JSON.
    """

    def __init__(self, expressions: Any, **kwargs: Any) -> None:
        super().__init__(dtype="float64", **{k: v for k, v in kwargs.items() if k != "dtype"})
        self.expressions = [
            Expression.from_json(e) if isinstance(e, Mapping) else e for e in expressions
        ]

    def _compute(self, columns: Mapping[str, Array], namespace: Namespace) -> Array:
        total = evaluate_expression(self.expressions[0], columns, namespace)
        for expression in self.expressions[1:]:
            total = total + evaluate_expression(expression, columns, namespace)
        return total

    def compute_output_shape(self, columns_shape: Any) -> tuple[int | None]:
        return (_batch(columns_shape),)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "expressions": [e.to_json() for e in self.expressions]}


def _side_by_side(
    factors: Sequence[tuple[Array, Array]],
    chosen: np.ndarray,
    centre: np.ndarray,
    scale: np.ndarray,
    namespace: Namespace,
) -> Array:
    """Columns that depend on one factor each, those of the first factor first."""
    blocks = []
    for j, (values, known) in enumerate(factors):
        own = np.flatnonzero(chosen[:, j] != ABSENT)
        taken = namespace.take(values, chosen[own, j], axis=1)
        blocks.append((taken - centre[own]) / scale[own] * known)
    return namespace.concatenate(blocks, axis=1)


def _indicator(condition: Array, namespace: Namespace) -> Array:
    """1 where a condition holds, else 0, in float64."""
    return namespace.where(condition, np.float64(1), np.float64(0))


def _batch(columns_shape: Mapping[str, Any]) -> int | None:
    return next(iter(columns_shape.values()))[0]
