"""Basis expansions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from ahofm_keras.bases import atom_indices, evaluate_places, spline_centres

Array = Any


@keras.saving.register_keras_serializable(package="ahofm_keras")
class BasisExpansion(keras.layers.Layer):
    """Bases of several features of one kind, evaluated together, each once.

    Args:
        columns: which columns of the places it takes, one per feature.
        sizes: number of functions of each feature; smaller bases are padded to the largest.
        degree: of the B-splines, shared; 0 for levels, None for the places themselves.
        cyclic: whether the axes are circles.
        straight_beyond: length of each axis where functions go on as straight lines beyond its ends,
            empty where they need not.
        atoms: number of atoms of each feature, whose functions are the last of its own.

    Returns:
        `(p, M, n)`: features first, so that a feature's basis is one piece of memory and its product
        with coefficients a plain matrix product; rows last, so that what follows runs along them.
    """

    def __init__(
        self,
        columns: Sequence[int],
        sizes: Sequence[int],
        degree: int | None,
        cyclic: bool = False,
        straight_beyond: Sequence[float] = (),
        atoms: Sequence[int] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.columns = list(columns)
        self.sizes = list(sizes)
        self.degree = degree
        self.cyclic = cyclic
        self.straight_beyond = list(straight_beyond)
        self.atoms = list(atoms)

    def call(self, places: Array) -> Array:
        chosen = take_first(ops.transpose(places), self.columns)[:, None, :]
        if self.degree is None:
            return chosen
        beyond = np.reshape(self.straight_beyond, (-1, 1, 1)) if self.straight_beyond else None
        period = np.reshape(self.sizes, (-1, 1, 1)) if self.cyclic else None
        atom = None
        if any(self.atoms):
            atom = atom_indices(chosen, ops)
            chosen = ops.where(atom >= 0, ops.zeros_like(chosen), chosen)
        values = evaluate_places(
            chosen,
            spline_centres(max(self.sizes), self.degree)[:, None],
            self.degree,
            period=period,
            straight_beyond=beyond,
            namespace=ops,
        )
        if atom is None:
            return values
        first = np.reshape(np.subtract(self.sizes, self.atoms), (-1, 1, 1))
        number = np.arange(max(self.sizes))[:, None] - first
        own = ops.cast(ops.equal(atom, ops.cast(number, atom.dtype)), values.dtype)
        return ops.where(atom >= 0, own, values)

    def compute_output_shape(self, places_shape: Any) -> tuple[int, int, int | None]:
        width = 1 if self.degree is None else max(self.sizes)
        return (len(self.columns), width, places_shape[0])

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "columns": self.columns,
            "sizes": self.sizes,
            "degree": self.degree,
            "cyclic": self.cyclic,
            "straight_beyond": self.straight_beyond,
            "atoms": self.atoms,
        }


def take_first(tensor: Array, places: list[int]) -> Array:
    """Entries along the first axis; the tensor itself where that is all of them."""
    if places == list(range(tensor.shape[0])):
        return tensor
    return ops.take(tensor, np.asarray(places), axis=0)
