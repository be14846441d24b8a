"""The precision of a block's posterior, factorised once: solutions, determinant and inverse."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import lapack


@dataclass(frozen=True, eq=False)
class Precision:
    """A = gram + diag(precisions), with rows and columns scaled to a unit diagonal.

    Args:
        factor: upper Cholesky factor of the scaled matrix.
        scale: of rows and columns.
    """

    factor: np.ndarray
    scale: np.ndarray

    @classmethod
    def factorise(cls, gram: np.ndarray, precisions: np.ndarray) -> Precision:
        """The scaling is needed: precisions range over 20 orders of magnitude."""
        scale = 1 / np.sqrt(gram.diagonal() + precisions)
        scaled = gram * scale
        scaled *= scale[:, None]
        scaled.flat[:: len(scaled) + 1] = 1.0
        return cls(_cholesky(scaled), scale)

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """A^-1 b."""
        if not len(self.scale):
            return np.zeros(0)
        # Not by SciPy's `cho_solve`, which takes longer to look at its arguments than to solve.
        solved, _ = lapack.dpotrs(self.factor, self.scale * rhs, lower=0)
        return self.scale * solved

    @cached_property
    def log_determinant(self) -> float:
        """Of A."""
        return 2 * float(np.log(self.factor.diagonal()).sum() - np.log(self.scale).sum())

    @cached_property
    def inverse(self) -> np.ndarray:
        """A^-1 `(m, m)`. Many trials do without, so it is computed when it is read."""
        if not len(self.scale):
            return np.zeros((0, 0))
        inverse, _ = lapack.dpotri(self.factor, lower=0)  # fills the upper triangle, the other is 0
        inverse *= self.scale
        inverse *= self.scale[:, None]
        diagonal = inverse.diagonal().copy()
        inverse += inverse.T
        np.fill_diagonal(inverse, diagonal)
        # The transpose is the same matrix, in NumPy's order of entries.
        return inverse.T


def _cholesky(matrix: np.ndarray) -> np.ndarray:
    """Upper factor of a matrix with unit diagonal; equal columns get the ridge that they need.

    Of what is no Gram matrix there is none: its evidence, which is no number, is better than no other.
    """
    # The transpose is the same matrix in LAPACK's order of entries.
    factor, failed = lapack.dpotrf(matrix.T, lower=0, clean=1)
    ridge = 1e-14
    while failed and ridge < 1:
        factor, failed = lapack.dpotrf(matrix + ridge * np.eye(len(matrix)), lower=0, clean=1)
        ridge *= 10
    return np.full_like(factor, np.nan) if failed else factor
