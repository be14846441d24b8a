"""Difference penalties, Demmler-Reinsch orthogonalisation, degrees of freedom <-> lambda."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import brentq

DF_KINDS = ("2H-HH", "H")

# Even knots on skewed data leave functions without any row below them. A direction that holds less than
# this share of the Gram matrix counts as one that no row supports.
_SUPPORT = 1e-10
# Least penalty of a direction that is not free, in shares of the largest.
_LEAST = 1e-20


def difference_penalty(
    size: int, order: int = 2, cyclic: bool = False, at: np.ndarray | None = None
) -> np.ndarray:
    """P = D'D `(size, size)` with D the differences of the given order of neighbouring coefficients.

    On a line its null space holds the polynomials below `order`; on a circle (`cyclic`) the constants
    only.

    Args:
        size: number of coefficients.
        order: of the differences.
        cyclic: whether the last coefficient has the first as its neighbour.
        at: `(size,)`, rising, where the coefficients stand on a line, if not at equal distances. The
            differences are divided ones, each as large as at equal distances.
    """
    if cyclic:
        differences = np.eye(size)
        for _ in range(order):
            differences = np.roll(differences, -1, axis=0) - differences
        return differences.T @ differences
    if size <= order:
        return np.zeros((size, size))
    places = np.arange(size) if at is None else at / ((at[-1] - at[0]) / (size - 1))
    differences = np.eye(size)
    for own in range(1, order + 1):
        distances = (places[own:] - places[:-own]) / own
        differences = np.diff(differences, axis=0) / distances[:, None]
    differences *= 2.0**order / np.abs(differences).sum(axis=1, keepdims=True)
    return differences.T @ differences


@dataclass(frozen=True, eq=False)
class DemmlerReinsch:
    """A basis in coordinates in which both its Gram matrix and its penalty are diagonal.

    With B the basis on n rows and P its penalty: `transform` T `(M, r)` gives (B T)'(B T) = n I and
    T' P T = n diag(`eigenvalues`) in the directions that rows support.

    Args:
        transform: `(M, r)`.
        eigenvalues: `(r,)`, rising from smooth to rough; zero where the penalty does not reach.
        supported: `(r,)`, whether any row supports the direction.
        null_dimension: number of directions that the penalty does not reach.
    """

    transform: np.ndarray
    eigenvalues: np.ndarray
    supported: np.ndarray
    null_dimension: int

    @property
    def rank(self) -> float:
        """Largest degrees of freedom that can be reached: those of an unpenalised fit."""
        return float(np.sum(self.supported))


def orthogonalise(
    gram: np.ndarray,
    penalty: np.ndarray,
    rows: int,
    constraint: np.ndarray | None = None,
    null_dimension: int | None = None,
) -> DemmlerReinsch:
    """Demmler-Reinsch orthogonalisation (the paper's Algorithm DRO), within a subspace if given.

    The paper takes the Cholesky factor of G = B'B, which has none where rows are missing below a
    function. G and P together are never singular, so both are brought to diagonal form in the factor of
    their sum: R'R = G / tr(G) + P / tr(P), U diag(c) U' = R^-T (G / tr(G)) R^-1. Then c is what rows say
    of a direction, 1 - c what the penalty says, and s = (tr(P) / tr(G)) (1 - c) / c are DRO's values.

    Args:
        gram: B'B `(M, M)`.
        penalty: P `(M, M)`.
        rows: n.
        constraint: Z `(M, r)` with orthonormal columns, e.g. of centred functions.
        null_dimension: how many directions of the subspace the penalty leaves free, where it is known:
            digits do not tell a free one from one that is bent only where a feature hardly spreads.
    """
    basis = np.eye(len(gram)) if constraint is None else constraint
    inner, inner_penalty = basis.T @ gram @ basis, basis.T @ penalty @ basis
    gram_size, penalty_size = np.trace(inner), np.trace(inner_penalty)
    joint = inner / gram_size + inner_penalty / (penalty_size or 1.0)
    factor = np.linalg.cholesky(joint + 1e-15 * np.eye(len(joint))).T
    half = solve_triangular(factor, inner.T / gram_size, trans="T")
    whitened = solve_triangular(factor, half.T, trans="T")
    shares, vectors = np.linalg.eigh((whitened + whitened.T) / 2)
    shares, vectors = shares[::-1], vectors[:, ::-1]
    safe = np.clip(shares, _SUPPORT, 1.0)
    eigenvalues = (penalty_size / gram_size) * (1 - safe) / safe
    null = _null_dimension(inner_penalty) if null_dimension is None else null_dimension
    eigenvalues[null:] = np.maximum(eigenvalues[null:], _LEAST * eigenvalues.max(initial=0.0))
    eigenvalues[:null] = 0.0
    directions = solve_triangular(factor, vectors) / np.sqrt(safe * gram_size / rows)
    return DemmlerReinsch(basis @ directions, eigenvalues, shares > _SUPPORT, null)


def _null_dimension(penalty: np.ndarray) -> int:
    values = np.linalg.eigvalsh(penalty)
    return int(np.sum(values <= 1e-16 * len(values) * values.max(initial=0.0)))


def degrees_of_freedom(smoothing: float, basis: DemmlerReinsch, kind: str = "2H-HH") -> float:
    """Degrees of freedom at a smoothing parameter lambda.

    With H = B (B'B + lambda P)^-1 B': `"H"` is tr(H), the paper's algorithm sv2la; `"2H-HH"` is
    tr(2H - H'H), the paper's text.
    """
    shrinkage = basis.supported / (1 + smoothing * basis.eigenvalues)
    if kind == "H":
        return float(np.sum(shrinkage))
    return float(np.sum(2 * shrinkage - shrinkage**2))


def solve_smoothing(df: float, basis: DemmlerReinsch, kind: str = "2H-HH") -> float:
    """The lambda at which the basis has `df` degrees of freedom.

    Args:
        df: above `basis.null_dimension` and below `basis.rank`.
    """
    scale = np.median(basis.eigenvalues[basis.supported & (basis.eigenvalues > 0)])

    def excess(exponent: float) -> float:
        return degrees_of_freedom(np.exp(exponent) / scale, basis, kind) - df

    low, high = -60.0, 60.0
    return float(np.exp(brentq(excess, low, high, xtol=1e-12)) / scale)
