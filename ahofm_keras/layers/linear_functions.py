"""The functions of a term in the linear block, in a model's graph, as `Columns.describe` says them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from keras import ops

from ahofm_keras.layers.basis import Functions, combine, one_feature
from ahofm_keras.tensors import row_products, with_constant

Array = Any
Entry = Mapping[str, Any]

# What is arrays in entries.
_ARRAYS = ("transforms", "means")


def block_functions(
    entry: Entry, bases: Sequence[Functions], columns: Array, dtype: str = "float64"
) -> Array:
    """The columns of a term in the linear block, `(q, n)`.

    Args:
        entry: either `columns`, where its design columns start and stop, or `pure`, `features` (basis
            and place in it, of each margin) and `transforms`; or, of a term that is multiplied with
            others, `inner`, its own entry, `constant`, and feature and transform of what multiplies it.
        bases: basis expansions.
        columns: design columns `(n, C)`, or None.
        dtype: of the result.
    """
    if "columns" in entry:
        start, stop = entry["columns"]
        return ops.transpose(ops.cast(columns[:, start:stop], dtype))
    margins = zip(entry["features"], entry["transforms"], strict=True)
    own = [_coordinates(bases, where, transform, dtype) for where, transform in margins]
    if "inner" not in entry:
        return row_products(own, entry["pure"], ops)
    return row_products([inner_functions(entry, bases, columns, dtype), *own], True, ops)


def inner_functions(
    entry: Entry, bases: Sequence[Functions], columns: Array, dtype: str = "float64"
) -> Array:
    """What is multiplied, the constant first where it is among it, `(R, n)`."""
    own = block_functions(entry["inner"], bases, columns, dtype)
    return with_constant(own, ops) if entry["constant"] else own


def feature_functions(
    bases: Sequence[Functions], where: Sequence[int], dtype: str = "float64"
) -> Functions:
    """The functions of a feature that are not zero."""
    functions, values = one_feature(bases, where)
    return functions, ops.cast(values, dtype)


def with_arrays(entry: Entry) -> dict[str, Any]:
    """An entry with lists of numbers as arrays."""
    arrays = {name: [np.asarray(own, float) for own in entry.get(name, ())] for name in _ARRAYS}
    inner = {"inner": with_arrays(entry["inner"])} if "inner" in entry else {}
    return {**entry, **arrays, **inner}


def with_lists(entry: Entry) -> dict[str, Any]:
    """An entry with arrays as lists of numbers, as files have them."""
    lists = {name: [own.tolist() for own in entry[name]] for name in _ARRAYS}
    inner = {"inner": with_lists(entry["inner"])} if "inner" in entry else {}
    return {**entry, **lists, **inner}


def _coordinates(
    bases: Sequence[Functions], where: Sequence[int], transform: np.ndarray, dtype: str
) -> Array:
    """Functions of a feature in the coordinates of its block, `(r, n)`."""
    table = ops.cast(transform, dtype)
    return ops.transpose(combine(feature_functions(bases, where, dtype), table))
