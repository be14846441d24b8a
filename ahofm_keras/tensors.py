"""Tensor products: functions of several features as products of functions of each.

A term has margins, one per feature, with functions u_1, ..., u_d in Demmler-Reinsch coordinates. Its
functions are all products that take one of each margin, in C order: the last margin runs fastest. A
pure term (`ti()`, and a smooth, which has one margin) takes the margins' functions alone. One that holds
its lower orders too (`te()`) takes the constant of each margin as well, before the others; the product
of all constants is the intercept's, so that first one is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

Array = Any
Namespace = Any

# Singular values below this share of the largest are rounding: nothing that can be seen is lost.
_ROUNDING = 1e-12


def tensor_shape(widths: Sequence[int], pure: bool) -> tuple[int, ...]:
    """Shape of a term's coefficients as an array, from the number of functions of each margin."""
    return tuple(width + (not pure) for width in widths)


def count_products(widths: Sequence[int], pure: bool) -> int:
    """Number of functions of a term.

    Example:
        >>> count_products([9, 9], pure=True), count_products([9, 9], pure=False)
        (81, 99)
    """
    return prod(tensor_shape(widths, pure)) - (not pure)


def flatten_coordinates(values: np.ndarray, pure: bool) -> np.ndarray:
    """Coefficients as an array -> `(q,)`, in the order of `row_products`."""
    return np.reshape(values, -1)[int(not pure) :]


def shape_coordinates(values: np.ndarray, widths: Sequence[int], pure: bool) -> np.ndarray:
    """Coefficients `(q,)` -> array of shape `tensor_shape`, with 0 for the product of all constants."""
    return np.reshape(values if pure else np.append(0.0, values), tensor_shape(widths, pure))


def margin_penalties(eigenvalues: Sequence[np.ndarray], pure: bool) -> np.ndarray:
    """What one unit of each margin's lambda adds to the precision of each coefficient, `(d, q)`.

    The penalty is the Kronecker sum of the margins': lambda_x S_x (x) I + lambda_z I (x) S_z, where the
    identity is the Gram matrix of a margin over n. It is the wiggliness along x averaged over z plus
    that along z averaged over x, whatever the bases and units are. A constant has none in its margin.

    Example:
        >>> margin_penalties([np.array([3.0, 0.0]), np.array([5.0])], pure=True)
        array([[3., 0.],
               [5., 5.]])
    """
    own = [np.asarray(values, float) for values in eigenvalues]
    if not pure:
        own = [np.append(0.0, values) for values in own]
    grids = np.meshgrid(*own, indexing="ij")
    return np.stack([flatten_coordinates(grid, pure) for grid in grids])


def with_constant(functions: Array, namespace: Namespace = np) -> Array:
    """The constant and the functions of a margin: `(r, n)` -> `(1 + r, n)`."""
    return namespace.concatenate([namespace.ones_like(functions[:1]), functions], axis=0)


def row_products(margins: Sequence[Array], pure: bool, namespace: Namespace = np) -> Array:
    """Row-wise Kronecker product of the margins' functions.

    Args:
        margins: `(r_j, n)` each.
        pure: whether the margins' constants stay out.
        namespace: `numpy` or `keras.ops`.

    Returns:
        `(q, n)`.
    """
    total, *others = margins if pure else [with_constant(own, namespace) for own in margins]
    for own in others:
        products = total[:, None, :] * own[None, :, :]
        total = namespace.reshape(products, (total.shape[0] * own.shape[0], -1))
    return total if pure else total[1:]


@dataclass(frozen=True, eq=False)
class MarginBlock:
    """The functions of a term that are products of functions of these margins and of no other.

    Args:
        margins: positions among the term's margins, ascending.
        index: where their coefficients stand in the array of all.
        coefficients: where they stand in the linear block, counted from the term's first `(q,)`.
    """

    margins: tuple[int, ...]
    index: tuple[slice | int, ...]
    coefficients: np.ndarray


def margin_blocks(shape: Sequence[int], pure: bool) -> list[MarginBlock]:
    """One block for a smooth and a `ti()`; one per subset of margins for a `te()`, small ones first.

    Args:
        shape: of the term's coefficients as an array.
        pure: whether the margins' constants stay out.
    """
    margins = range(len(shape))
    if pure:
        return [MarginBlock(tuple(margins), (), np.arange(np.prod(shape, dtype=int)))]
    # The first coefficient is that of the product of all constants, which is the intercept's.
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape) - 1
    blocks = []
    for size in range(1, len(shape) + 1):
        for chosen in combinations(margins, size):
            index = tuple(slice(1, None) if margin in chosen else 0 for margin in margins)
            blocks.append(MarginBlock(chosen, index, numbers[index].reshape(-1)))
    return blocks


def split_tensor(values: np.ndarray) -> list[np.ndarray]:
    """Factors of each axis `(r_j, F)`, the sum over f of whose outer products is the array.

    Singular vectors of one axis after another, the narrow ones first, so that F is the product of all
    axes but the widest at most. An array of zeros has one factor.

    Example:
        >>> first, second = split_tensor(np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]))
        >>> first.shape, second.shape
        ((2, 1), (3, 1))
        >>> (first @ second.T).round(6).tolist()
        [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]
    """
    order = np.argsort(values.shape, kind="stable")
    factors = _split(values.transpose(order), float(np.linalg.norm(values)))
    return [factors[place] for place in np.argsort(order)]


def _split(values: np.ndarray, size: float) -> list[np.ndarray]:
    """The same, axis by axis as they stand; parts that are small beside `size` are left out."""
    if values.ndim == 1:
        return [values[:, None]]
    left, sizes, right = np.linalg.svd(values.reshape(len(values), -1), full_matrices=False)
    count = max(int(np.sum(sizes > _ROUNDING * size)), 1)
    found = []
    for f in range(count):
        rest = _split((sizes[f] * right[f]).reshape(values.shape[1:]), size)
        found.append([np.repeat(left[:, f : f + 1], rest[0].shape[1], axis=1), *rest])
    return [np.concatenate(axis, axis=1) for axis in zip(*found, strict=True)]
