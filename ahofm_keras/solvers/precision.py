"""The precision of a block's posterior, factorised once: solutions, determinant and inverse."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import lapack, solve_triangular


@dataclass(frozen=True, eq=False)
class Precision:
    """A = gram + diag(precisions), with rows and columns scaled to a unit diagonal.

    Where only some coefficients are in use the others, which the prior holds at 0, stand on the diagonal
    alone.

    Args:
        factor: upper Cholesky factor of the scaled matrix of the coefficients in use.
        scale: of all rows and columns, `(m,)`.
        in_use: which coefficients are in use, rising; None where all are.
    """

    factor: np.ndarray
    scale: np.ndarray
    in_use: np.ndarray | None = None

    @classmethod
    def factorise(
        cls, gram: np.ndarray, precisions: np.ndarray, in_use: np.ndarray | None = None
    ) -> Precision:
        """The scaling is needed: precisions range over 20 orders of magnitude.

        Of a function that no row sees the entry of the Gram matrix is rounding, which may be below 0.
        """
        scale = 1 / np.sqrt(np.maximum(gram.diagonal(), 0.0) + precisions)
        own = scale if in_use is None else scale[in_use]
        scaled = (gram if in_use is None else _part(gram, in_use)) * own
        scaled *= own[:, None]
        scaled.flat[:: len(scaled) + 1] = 1.0
        return cls(_cholesky(scaled), scale, in_use)

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """A^-1 b; 0 where a coefficient is not in use."""
        own, solved = self.used, np.zeros(len(self.scale))
        if len(self.factor):
            scaled = self.scale[own] * rhs[own]
            # Not by SciPy's `cho_solve`, which takes longer to look at its arguments than to solve.
            solved[own] = self.scale[own] * lapack.dpotrs(self.factor, scaled, lower=0)[0]
        return solved

    def solve_columns(self, rhs: np.ndarray) -> np.ndarray:
        """A^-1 B of columns B `(m, c)`; 0 where a coefficient is not in use."""
        own, solved = self.used, np.zeros(rhs.shape)
        if len(self.factor):
            scale = self.scale[own][:, None]
            solved[own] = scale * lapack.dpotrs(self.factor, scale * rhs[own], lower=0)[0]
        return solved

    def half_solve(self, rhs: np.ndarray) -> np.ndarray:
        """R^-T b `(u,)`, or `(u, k)` of several b, with R'R = A of the coefficients in use."""
        scaled = (self.scale[self.used] * rhs[self.used].T).T
        return np.asarray(solve_triangular(self.factor, scaled, trans="T"))

    def second_half_solve(self, half: np.ndarray) -> np.ndarray:
        """R^-1 h `(m,)`: after `half_solve`, the solution."""
        solved = np.zeros(len(self.scale))
        solved[self.used] = self.scale[self.used] * solve_triangular(self.factor, half)
        return solved

    @cached_property
    def log_determinant(self) -> float:
        """Of A."""
        return 2 * float(np.log(self.factor.diagonal()).sum() - np.log(self.scale).sum())

    @cached_property
    def inverse(self) -> np.ndarray:
        """A^-1 `(m, m)`."""
        if self.in_use is None:
            return self.used_inverse
        whole = np.diag(self.scale**2)
        whole[self.in_use[:, None], self.in_use] = self.used_inverse
        return whole

    @cached_property
    def inverse_diagonal(self) -> np.ndarray:
        """The diagonal of A^-1, `(m,)`."""
        diagonal = self.scale**2
        diagonal[self.used] = self.used_inverse.diagonal()
        return diagonal

    def explained(self, gram: np.ndarray) -> np.ndarray:
        """The diagonal of A^-1 G, `(m,)`."""
        if self.in_use is None:
            return np.einsum("ij,ij->i", self.used_inverse, gram)
        total = self.scale**2 * gram.diagonal()
        own = _part(gram, self.in_use)
        total[self.in_use] = np.einsum("ij,ij->i", self.used_inverse, own)
        return total

    @property
    def used(self) -> np.ndarray | slice:
        """The coefficients in use, as an index."""
        return slice(None) if self.in_use is None else self.in_use

    @cached_property
    def used_inverse(self) -> np.ndarray:
        """A^-1 of the coefficients in use. Many trials do without: it is computed when it is read."""
        scale = self.scale[self.used]
        if not len(scale):
            return np.zeros((0, 0))
        inverse, _ = lapack.dpotri(self.factor, lower=0)  # fills the upper triangle, the other is 0
        inverse *= scale
        inverse *= scale[:, None]
        diagonal = inverse.diagonal().copy()
        inverse += inverse.T
        np.fill_diagonal(inverse, diagonal)
        # The transpose is the same matrix, in NumPy's order of entries.
        return inverse.T


def _part(matrix: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Some rows and columns; one after the other, which takes a third of the time of both at once."""
    return matrix.take(own, axis=0).take(own, axis=1)


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
