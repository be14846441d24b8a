"""Tensor products: functions of several features as products of functions of each.

A term has margins, one per feature, with functions u_1, ..., u_d in Demmler-Reinsch coordinates. Its
functions are all products that take one of each margin, in C order: the last margin runs fastest. A
pure term (`ti()`, and a smooth, which has one margin) takes the margins' functions alone. One that holds
its lower orders too (`te()`) takes the constant of each margin as well, before the others; the product
of all constants is the intercept's, so that first one is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

Array = Any
Namespace = Any


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
