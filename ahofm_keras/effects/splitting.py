"""Coefficients of a smooth or tensor product, as a sum of products of functions of single margins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ahofm_keras.terms import PenalisedTerm

# Singular values below this share of the largest are rounding: nothing that can be seen is lost.
_ROUNDING = 1e-12


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


def margin_blocks(term: PenalisedTerm, shape: Sequence[int]) -> list[MarginBlock]:
    """One block for a smooth and a `ti()`; one a subset of margins for a `te()`, small ones first.

    Args:
        term: of the design.
        shape: of its coordinates.
    """
    margins = range(len(shape))
    if term.pure:
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
