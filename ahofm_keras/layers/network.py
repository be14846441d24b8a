"""What surrounds a user's network in a model: its inputs, and what is taken out of its output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from ahofm_keras.layers.basis import Functions
from ahofm_keras.layers.inputs import RawColumns
from ahofm_keras.layers.linear_functions import block_functions, with_arrays, with_lists
from ahofm_keras.transforms import Expression, evaluate_expression

Array = Any
Namespace = Any  # numpy or keras.ops


@keras.saving.register_keras_serializable(package="ahofm_keras")
class NetInput(RawColumns):
    """One input of a network: standardised columns side by side, or the arrays of one column.

    Args:
        parts: in order, each a dict with `expression`; `levels` of a category, which has an indicator
            per level; `centre` and `scale` of a number; `shape` of arrays, which go in as they are.
        shape: of a row of the input; () for a number.

    Call arguments:
        columns: dict of raw columns.

    Returns:
        `(n, *shape)`.
    """

    def __init__(self, parts: Sequence[Mapping[str, Any]], shape: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.parts = [dict(part) for part in parts]
        self.shape = tuple(shape)
        self._expressions = [Expression.from_json(part["expression"]) for part in self.parts]
        for place, part in enumerate(self.parts):
            self._add_lookup(str(place), tuple(part["levels"]))

    def _compute(self, columns: Mapping[str, Array], namespace: Namespace) -> Array:
        found = [self._part(place, columns, namespace) for place in range(len(self.parts))]
        joined = found[0] if len(found) == 1 else namespace.concatenate(found, axis=1)
        return joined if self.shape else namespace.reshape(joined, (-1,))

    def _part(self, place: int, columns: Mapping[str, Array], namespace: Namespace) -> Array:
        part, expression = self.parts[place], self._expressions[place]
        if part["shape"]:
            return columns[expression.arguments[0]]
        values = evaluate_expression(expression, columns, namespace)
        levels = tuple(part["levels"])
        if levels:
            index = self._level_index(str(place), levels, values, namespace)[:, None]
            hits = index == np.arange(len(levels), dtype=float)
            return namespace.where(hits, np.float64(1), np.float64(0)) + 0 * index
        values = values.astype(float) if namespace is np else ops.cast(values, "float64")
        return ((values - part["centre"]) / part["scale"])[:, None]

    def compute_output_shape(self, columns_shape: Any) -> tuple[int | None, ...]:
        return (next(iter(columns_shape.values()))[0], *self.shape)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "parts": self.parts, "shape": list(self.shape)}


@keras.saving.register_keras_serializable(package="ahofm_keras")
class BlockColumns(keras.layers.Layer):
    """Columns of the linear block that some terms have, X, in float64.

    Args:
        blocks: of the terms, as the posterior knows them (`Columns.describe`), and which columns are
            `kept` of each.

    Call arguments:
        bases: basis expansions, as `BasisExpansion` gives them.
        columns: design columns of all terms `(n, C)`, or None.

    Returns:
        `(n, q)`, those of all blocks side by side.
    """

    def __init__(self, blocks: Sequence[Mapping[str, Any]], **kwargs: Any) -> None:
        super().__init__(**{**kwargs, "autocast": False, "dtype": "float64"})
        self.blocks = [with_arrays(block) for block in blocks]

    def call(self, bases: Sequence[Functions], columns: Array = None) -> Array:
        parts = [
            ops.take(block_functions(block, bases, columns), np.array(block["kept"], int), axis=0)
            for block in self.blocks
        ]
        return ops.transpose(ops.concatenate(parts, axis=0))

    @property
    def size(self) -> int:
        """Number of columns q."""
        return sum(len(block["kept"]) for block in self.blocks)

    def compute_output_shape(self, bases_shape: Any, columns_shape: Any = None) -> tuple[Any, int]:
        rows = bases_shape[0][0][2] if columns_shape is None else columns_shape[0]
        return (rows, self.size)

    def compute_output_spec(self, bases: Sequence[Functions], columns: Array = None) -> Any:
        rows = bases[0][0].shape[2] if columns is None else columns.shape[0]
        return keras.KerasTensor((rows, self.size), dtype="float64")

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "blocks": [with_lists(block) for block in self.blocks]}


@keras.saving.register_keras_serializable(package="ahofm_keras")
class OrthogonalComplement(keras.layers.Layer):
    """A network's output less what structured terms can say too: U - constant - X b, in float64.

    What the training rows teach are weights that no optimizer changes: after a fit b is the regression
    of U on X there, which the coefficients of the structured terms have in return (Ruegamer 2023,
    post-hoc orthogonalization). So the prediction stays, and what the network adds is orthogonal to X.

    Args:
        size: number of columns of X.
        centred: whether a constant is taken out too.

    Call arguments:
        output: of the network, `(n, 1)`.
        columns: X `(n, q)`, or None where there are none.

    Returns:
        `(n, 1)`.
    """

    def __init__(self, size: int = 0, centred: bool = True, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, "autocast": False, "dtype": "float64"})
        self.size, self.centred = size, centred

    def build(self, output_shape: Any, columns_shape: Any = None) -> None:
        self.constant = self._add("constant", ())
        self.coefficients = self._add("coefficients", (self.size,))
        # Of what is left, over the training rows.
        self.mean = self._add("mean", ())
        self.variance = self._add("variance", ())

    def _add(self, name: str, shape: tuple[int, ...]) -> Any:
        return self.add_weight(
            name=name, shape=shape, initializer="zeros", trainable=False, dtype="float64"
        )

    @property
    def takes_out(self) -> bool:
        """Whether anything is taken out."""
        return self.size > 0 or self.centred

    def call(self, output: Array, columns: Array = None) -> Array:
        found = ops.cast(ops.reshape(output, (-1, 1)), "float64") - self.constant
        return found if columns is None else found - ops.matmul(columns, self.coefficients[:, None])

    def compute_output_shape(self, output_shape: Any, columns_shape: Any = None) -> tuple[Any, int]:
        return (output_shape[0], 1)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "size": self.size, "centred": self.centred}
