"""Which functions of a smooth or a factor the penalty leaves anything of.

A function with the entry g on the diagonal of the Gram matrix has, at the precision q, the share
h = g / (g + q) of a degree of freedom. Rough functions have q far above g: their coefficients are as
good as 0, and their variances those of the prior. With sigma^2 the dispersion, leaving functions out
moves a prediction by sigma (sum h^2 / n)^1/2 in the root mean square over the rows, and the evidence by
about (sum h^2 / 2)^1/2. So the number of functions in use, which decides what an update costs, is what
the data asks for, and k has only to be enough.
"""

from __future__ import annotations

import numpy as np

from ahofm_keras.solvers.settings import Settings


def functions_in_use(shares: np.ndarray, groups: np.ndarray, settings: Settings) -> np.ndarray:
    """`(m,)`, which functions are not left out.

    Args:
        shares: h of each function `(m,)`.
        groups: `(m,)`, the smooth or factor of each; those of -1 are all in use.
        settings: what may be left out of a group, and which groups are too small to be looked at.
    """
    order = np.lexsort((-shares, groups))
    ordered, squares = groups[order], shares[order] ** 2
    starts = np.flatnonzero(np.diff(ordered, prepend=-2))
    sizes = np.diff(np.append(starts, len(order)))
    totals = np.add.reduceat(squares, starts) if len(starts) else squares
    before = np.cumsum(squares) - squares
    place = np.arange(len(order)) - np.repeat(starts, sizes)
    # What would be left out if a function were the first to be.
    left = np.repeat(totals + before[starts], sizes) - before
    needed = (left > settings.left_out) | (place < settings.few_functions) | (ordered < 0)
    in_use = np.empty(len(order), bool)
    in_use[order] = needed
    return in_use


def resize(values: np.ndarray, count: int, width: int) -> np.ndarray:
    """Values of the functions of some groups, with zeros for more of them or without the last."""
    shaped = values.reshape(count, -1)
    resized = np.zeros((count, width))
    kept = min(width, shaped.shape[1])
    resized[:, :kept] = shaped[:, :kept]
    return resized.reshape(-1)
