"""Matrices of basis functions of which only those matter that are not zero together: bands.

B-splines of degree d overlap with d neighbours on either side. So `b' V b`, and sums of `b b'`, know
only the entries `[a, (a + o) mod M]`, o = 0..d, of a matrix, those of functions that share a knot
interval; here they stand in an array `(..., M, d + 1)`. Of levels that is the diagonal.
"""

from __future__ import annotations

import numpy as np


def read_band(matrices: np.ndarray, width: int) -> np.ndarray:
    """The band `(..., M, width)` of symmetric matrices `(..., M, M)`."""
    size = matrices.shape[-1]
    rows = np.arange(size)[:, None]
    return np.asarray(matrices[..., rows, (rows + np.arange(width)) % size])


def product_band(left: np.ndarray, right: np.ndarray, width: int) -> np.ndarray:
    """The band `(..., M, width)` of the matrices left right', from `(..., M, r)` and `(M, r)`."""
    size = len(right)
    by_function = left.reshape(-1, *right.shape).swapaxes(0, 1)  # (M, ., r)
    band = by_function @ _neighbours(right, width).swapaxes(1, 2)
    return band.swapaxes(0, 1).reshape(*left.shape[:-2], size, width)


def transform_band(band: np.ndarray, transform: np.ndarray) -> np.ndarray:
    """T' G T `(..., r, r)` of matrices G that were summed in a band `(..., M, width)`, T `(M, r)`.

    What a band holds of a pair of functions in one order counts for both orders.
    """
    size, width = band.shape[-2:]
    count = transform.shape[1]
    once = np.where(np.arange(width), 1.0, 0.5)
    by_function = band.reshape(-1, size, width).swapaxes(0, 1) * once  # (M, ., width)
    product = by_function @ _neighbours(transform, width)  # of half of G and T, (M, ., r)
    half = (transform.T @ product.reshape(size, -1)).reshape(count, -1, count).swapaxes(0, 1)
    return (half + half.swapaxes(1, 2)).reshape(*band.shape[:-2], count, count)


def _neighbours(rows: np.ndarray, width: int) -> np.ndarray:
    """Each of the rows `(M, r)` with those that follow it on a circle, `(M, width, r)`."""
    size = len(rows)
    return rows[(np.arange(size)[:, None] + np.arange(width)) % size]


def quadratic_weights(width: int) -> np.ndarray:
    """How often each offset of a band counts in `b' V b`, `(width,)`: 1, 2, 2, ..."""
    return np.where(np.arange(width), 2.0, 1.0)


def evaluate_band(band: np.ndarray, cell: np.ndarray, values: np.ndarray) -> np.ndarray:
    """b' V b at rows `(..., n)`, from the band `(..., M, width)` of V.

    Args:
        band: of symmetric matrices.
        cell: `(n,)`, the first of the functions that are not zero at each row.
        values: `(width, n)` of these functions.
    """
    size, width = band.shape[-2:]
    total = np.zeros((*band.shape[:-2], len(cell)))
    for offset, weight in enumerate(quadratic_weights(width)):
        for first in range(width - offset):
            product = weight * values[first] * values[first + offset]
            total += band[..., (cell + first) % size, offset] * product
    return total
