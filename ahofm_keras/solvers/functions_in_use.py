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


class FunctionGroups:
    """The functions of each smooth or factor of a block.

    Args:
        groups: `(m,)`, the smooth or factor of each function; those of -1 are all in use.
    """

    def __init__(self, groups: np.ndarray) -> None:
        order = np.argsort(groups, kind="stable")[np.count_nonzero(groups < 0) :]
        _, starts, sizes = np.unique(groups[order], return_index=True, return_counts=True)
        self._size = len(groups)
        # Places of the functions of each group, filled up with one that is nobody's.
        self._places = np.full((len(sizes), sizes.max(initial=0)), self._size)
        columns = np.arange(len(order)) - np.repeat(starts, sizes)
        self._rows = np.arange(len(sizes))[:, None]
        self._places[np.repeat(self._rows[:, 0], sizes), columns] = order

    def in_use(self, shares: np.ndarray, settings: Settings) -> np.ndarray:
        """`(m,)`, which functions are not left out.

        Args:
            shares: h of each function `(m,)`.
            settings: what may be left out of a group, and which groups are too small to be looked at.
        """
        own = np.append(shares, -1.0)[self._places]
        rising = self._rows, np.argsort(own, axis=1)
        squares = own[rising]
        np.square(np.maximum(squares, 0.0, out=squares), out=squares)
        # What would be left out if a function were the last to be.
        needed = np.cumsum(squares, axis=1, out=squares) > settings.left_out
        needed[:, max(needed.shape[1] - settings.few_functions, 0) :] = True
        in_use = np.ones(self._size + 1, bool)
        in_use[self._places[rising]] = needed
        return in_use[:-1]


def resize(values: np.ndarray, count: int, width: int) -> np.ndarray:
    """Values of the functions of some groups, with zeros for more of them or without the last."""
    shaped = values.reshape(count, -1)
    resized = np.zeros((count, width))
    kept = min(width, shaped.shape[1])
    resized[:, :kept] = shaped[:, :kept]
    return resized.reshape(-1)
