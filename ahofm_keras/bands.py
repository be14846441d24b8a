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
    band = np.empty((*left.shape[:-1], width))
    for offset in range(width):
        shifted = right[(np.arange(size) + offset) % size]
        np.einsum("...ar,ar->...a", left, shifted, out=band[..., offset])
    return band


def transform_band(band: np.ndarray, transform: np.ndarray) -> np.ndarray:
    """T' G T `(..., r, r)` of matrices G that were summed in a band `(..., M, width)`, T `(M, r)`.

    What a band holds of a pair of functions in one order counts for both orders.
    """
    size, width = band.shape[-2:]
    shifted = [transform[(np.arange(size) + offset) % size] for offset in range(width)]
    half = np.empty((*band.shape[:-2], *2 * transform.shape[1:]))
    for place in np.ndindex(*band.shape[:-2]):  # one by one: what a matrix needs stays near
        own = np.ascontiguousarray(band[place].T)[:, :, None]
        total = own[0] / 2 * transform
        for entries, rows in zip(own[1:], shifted[1:], strict=True):
            total += entries * rows
        np.matmul(transform.T, total, out=half[place])
    return np.asarray(half + half.swapaxes(-1, -2))


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
