"""Basis expansions: of each row the few functions that are not zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from ahofm_keras.bases import evaluate_cells

Array = Any
# Which functions are not zero, and their values there, of the same shape `(..., W, n)`. Where all M are,
# in their order, `(..., 1, n)` is the first, and the values are `(..., M, n)`.
Functions = tuple[Array, Array]


@keras.saving.register_keras_serializable(package="ahofm_keras")
class BasisExpansion(keras.layers.Layer):
    """Bases of several features of one kind, evaluated together, each once.

    A row has few functions that are not zero, W = degree + 1 neighbours of M: so what a prediction costs
    does not depend on M.

    Args:
        columns: which columns of the places it takes, one per feature.
        sizes: number of functions of each feature.
        degree: of the B-splines, shared; 0 for levels, None for the places themselves.
        cyclic: whether the axes are circles.
        straight: whether functions go on as straight lines beyond the ends of the axes.
        atoms: number of atoms of each feature, whose functions are the last of its own; by default none.

    Returns:
        Two tensors `(p, W, n)`: the functions, counted from 0 in each basis (int32), and their values.
        Rows are last, so that what follows runs along them.
    """

    def __init__(
        self,
        columns: Sequence[int],
        sizes: Sequence[int],
        degree: int | None,
        cyclic: bool = False,
        straight: bool = False,
        atoms: Sequence[int] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.columns = list(columns)
        self.sizes = list(sizes)
        self.degree = degree
        self.cyclic = cyclic
        self.straight = straight
        self.atoms = list(atoms)

    @property
    def width(self) -> int:
        """Number of functions that are not zero at a place, W."""
        return 1 if self.degree is None else self.degree + 1

    def call(self, places: Array) -> Functions:
        chosen = take_first(ops.transpose(places), self.columns)[:, None, :]
        if self.degree is None:
            return ops.zeros_like(chosen, dtype="int32"), chosen
        sizes = np.reshape(self.sizes, (-1, 1, 1))
        has_atoms = any(self.atoms)
        splines = sizes - np.reshape(self.atoms, (-1, 1, 1)) if has_atoms else sizes
        last = splines - 1 if self.cyclic else splines - self.width
        first_atom = splines if has_atoms else None
        cell, values = evaluate_cells(chosen, last, self.degree, self.straight, ops, first_atom)
        functions = ops.cast(cell, "int32") + np.arange(self.width, dtype="int32")[:, None]
        if self.cyclic or has_atoms:
            functions = ops.mod(functions, sizes.astype("int32"))
        return functions, values

    def compute_output_shape(self, places_shape: Any) -> tuple[tuple[int | None, ...], ...]:
        shape = (len(self.columns), self.width, places_shape[0])
        return shape, shape

    def compute_output_spec(self, places: Array) -> Functions:
        functions, values = self.compute_output_shape(places.shape)
        return (
            keras.KerasTensor(functions, dtype="int32"),
            keras.KerasTensor(values, dtype=self.compute_dtype),
        )

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "columns": self.columns,
            "sizes": self.sizes,
            "degree": self.degree,
            "cyclic": self.cyclic,
            "straight": self.straight,
            "atoms": self.atoms,
        }


def take_first(tensor: Array, places: list[int]) -> Array:
    """Entries along the first axis; the tensor itself where that is all of them."""
    if places == list(range(tensor.shape[0])):
        return tensor
    return ops.take(tensor, np.asarray(places), axis=0)


def one_feature(bases: Sequence[Functions], where: Sequence[int]) -> Functions:
    """Functions `(W, n)` of one feature, which is at its place in one of the expansions."""
    (functions, values), within = bases[where[0]], where[1]
    return functions[within], values[within]


def combine(own: Functions, table: Array) -> Array:
    """sum_w b_w c_w of rows, with the coefficients c_w of their functions from a table.

    Args:
        own: functions `(..., W, n)`.
        table: coefficients of all functions, `(M,)` or `(M, F)`.

    Returns:
        `(..., n)` or `(..., n, F)`.
    """
    functions, values = own
    if are_all(own):
        columns = ops.swapaxes(values, -1, -2)
        return ops.matmul(columns, ops.cast(table, values.dtype))
    axis = len(values.shape) - 2
    if len(table.shape) > 1:
        values = values[..., None]
    return ops.sum(ops.take(table, functions, axis=0) * values, axis=axis)


def are_all(own: Functions) -> bool:
    """Whether all functions of a basis are given, and not the few that are not zero."""
    functions, values = own
    return functions.shape[-2] == 1 < values.shape[-2]


def with_constant(own: Functions) -> Functions:
    """The constant as the first function, before those `(W, n)` of a margin: `(1 + W, n)`."""
    functions, values = own
    further = ops.concatenate([ops.ones_like(values[:1]), values], axis=0)
    if are_all(own):
        return functions, further
    return ops.concatenate([ops.zeros_like(functions[:1]), functions + 1], axis=0), further


def all_functions(own: Functions, size: int) -> Array:
    """All functions of a basis at the rows `(M, n)`, from those `(W, n)` that are not zero.

    For terms of one's own that are no sum over functions; others read a table by `combine`.
    """
    return own[1] if are_all(own) else ops.transpose(combine(own, ops.cast(np.eye(size), own[1].dtype)))
