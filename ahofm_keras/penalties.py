"""Difference penalties, Demmler-Reinsch orthogonalisation, degrees of freedom <-> lambda."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import brentq

DF_KINDS = ("2H-HH", "H")

# Even knots on skewed data leave functions without any row below them: B'B is then singular and has
# no Cholesky factor. Relative to its mean diagonal this much is added; the df it costs is not counted.
_RIDGE = 1e-9


def difference_penalty(size: int, order: int = 2, cyclic: bool = False) -> np.ndarray:
    """P = D'D `(size, size)` with D the differences of the given order of neighbouring coefficients.

    On a line its null space holds the polynomials below `order`; on a circle (`cyclic`) the constants
    only.
    """
    if cyclic:
        differences = np.eye(size)
        for _ in range(order):
            differences = np.roll(differences, -1, axis=0) - differences
        return differences.T @ differences
    if size <= order:
        return np.zeros((size, size))
    differences = np.diff(np.eye(size), n=order, axis=0)
    return differences.T @ differences


@dataclass(frozen=True, eq=False)
class DemmlerReinsch:
    """A basis in coordinates in which both its Gram matrix and its penalty are diagonal.

    With B the basis on n rows and P its penalty: `transform` T `(M, r)` gives (B T)'(B T) = n I and
    T' P T = n diag(`eigenvalues`), up to the ridge.

    Args:
        transform: `(M, r)`.
        eigenvalues: `(r,)`, falling; zero where the penalty does not reach.
        overlap: `(r, r)`, (B T)'(B T) / n without the ridge: the identity, except in directions
            that no row supports.
        null_dimension: number of directions that the penalty does not reach.
    """

    transform: np.ndarray
    eigenvalues: np.ndarray
    overlap: np.ndarray
    null_dimension: int

    @property
    def rank(self) -> float:
        """Largest degrees of freedom that can be reached: those of an unpenalised fit."""
        return float(np.trace(self.overlap))


def orthogonalise(
    gram: np.ndarray, penalty: np.ndarray, rows: int, constraint: np.ndarray | None = None
) -> DemmlerReinsch:
    """Demmler-Reinsch orthogonalisation (the paper's Algorithm DRO), within a subspace if given.

    R'R = Z'B'BZ, U diag(s) U' = R^-T Z'PZ R^-1; then T = sqrt(n) Z R^-1 U.

    Args:
        gram: B'B `(M, M)`.
        penalty: P `(M, M)`.
        rows: n.
        constraint: Z `(M, r)` with orthonormal columns, e.g. of centred functions.
    """
    basis = np.eye(len(gram)) if constraint is None else constraint
    inner = basis.T @ gram @ basis
    ridge = _RIDGE * np.trace(inner) / max(len(inner), 1) * np.eye(len(inner))
    factor = np.linalg.cholesky(inner + ridge).T
    half = solve_triangular(factor, (basis.T @ penalty @ basis).T, trans="T")
    whitened = solve_triangular(factor, half.T, trans="T")
    eigenvalues, vectors = np.linalg.eigh((whitened + whitened.T) / 2)
    eigenvalues, vectors = eigenvalues[::-1], vectors[:, ::-1]
    null = _null_dimension(basis.T @ penalty @ basis)
    eigenvalues = np.where(np.arange(len(inner)) < len(inner) - null, eigenvalues, 0.0)
    directions = solve_triangular(factor, vectors)
    overlap = directions.T @ inner @ directions
    transform = np.sqrt(rows) * basis @ directions
    return DemmlerReinsch(transform, np.maximum(eigenvalues, 0.0), overlap, null)


def _null_dimension(penalty: np.ndarray) -> int:
    values = np.linalg.eigvalsh(penalty)
    return int(np.sum(values < 1e-10 * max(values.max(initial=0.0), 1e-300)))


def degrees_of_freedom(smoothing: float, basis: DemmlerReinsch, kind: str = "2H-HH") -> float:
    """Degrees of freedom at a smoothing parameter lambda.

    With H = B (B'B + lambda P)^-1 B': `"H"` is tr(H), the paper's algorithm sv2la; `"2H-HH"` is
    tr(2H - H'H), the paper's text.
    """
    shrinkage = 1 / (1 + smoothing * basis.eigenvalues)
    trace = float(shrinkage @ np.diag(basis.overlap))
    if kind == "H":
        return trace
    return 2 * trace - float(np.sum(np.outer(shrinkage, shrinkage) * basis.overlap**2))


def solve_smoothing(df: float, basis: DemmlerReinsch, kind: str = "2H-HH") -> float:
    """The lambda at which the basis has `df` degrees of freedom.

    Args:
        df: above `basis.null_dimension` and below `basis.rank`.
    """
    scale = np.median(basis.eigenvalues[: len(basis.eigenvalues) - basis.null_dimension])

    def excess(exponent: float) -> float:
        return degrees_of_freedom(np.exp(exponent) / scale, basis, kind) - df

    low, high = -60.0, 60.0
    return float(np.exp(brentq(excess, low, high, xtol=1e-12)) / scale)
