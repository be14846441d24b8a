"""The prior of a block of coefficients, and the step that chooses its smoothing from the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, lapack

# Precision of a coefficient with a flat prior, relative to the block's Gram matrix: none that a
# statistician would see, enough for equal columns.
_FLAT = 1e-11
# Logarithms of lambda and tau may move by this much in one step, and lie this far from where they started.
_LONGEST_STEP = 4.0
_RANGE = 25.0
_HALVINGS = 12


class Solution(NamedTuple):
    """The posterior of a block in units of the dispersion.

    Args:
        mean: `(m,)`.
        inverse: A^-1 `(m, m)`; times the dispersion it is the covariance.
        log_determinant: of A.
        evidence: 1/2 log|Q| - 1/2 log|A| + b'A^-1 b / (2 dispersion), up to constants the part of the
            bound that depends on this block when its posterior is profiled out.
    """

    mean: np.ndarray
    inverse: np.ndarray
    log_determinant: float
    evidence: float


@dataclass
class BlockPrior:
    """Precisions of a block's coefficients: lambda s_m + tau, one (lambda, tau) a group.

    A group is one smooth, or one factor of one feature. Where the penalty is the identity (categories)
    only the sum is known, and lambda alone is kept.

    Args:
        eigenvalues: s `(m,)`, of all coefficients in the block.
        groups: `(m,)` group of each coefficient, -1 for a flat prior.
        parameters: `(G, 2)` logarithms of lambda and tau, in units of the Gram matrix.
        free: `(G, 2)`, which of them are chosen by the data.
    """

    eigenvalues: np.ndarray
    groups: np.ndarray
    parameters: np.ndarray
    free: np.ndarray

    def __post_init__(self) -> None:
        self._start = self.parameters.copy()
        self._penalised = self.groups >= 0

    @property
    def size(self) -> int:
        """Number of coefficients with a proper prior."""
        return int(self._penalised.sum())

    def precisions(self, parameters: np.ndarray | None = None) -> np.ndarray:
        """`(m,)`, 0 where the prior is flat."""
        values = self._parts(self.parameters if parameters is None else parameters)
        return values.sum(axis=0)

    def log_determinant(self) -> float:
        return float(np.log(self.precisions()[self._penalised]).sum())

    def _parts(self, parameters: np.ndarray) -> np.ndarray:
        """lambda s_m and tau of each coefficient, `(2, m)`."""
        scales = np.where(np.isneginf(parameters), 0.0, np.exp(np.minimum(parameters, 700.0)))
        own = scales[np.maximum(self.groups, 0)] * self._penalised[:, None]
        return np.stack([own[:, 0] * self.eigenvalues, own[:, 1]])

    def solve(
        self, gram: np.ndarray, rhs: np.ndarray, dispersion: float, parameters: np.ndarray | None = None
    ) -> Solution:
        """The block's posterior, with all others fixed."""
        parts = self._parts(self.parameters if parameters is None else parameters)
        precisions = parts.sum(axis=0)
        flat = _FLAT * (gram.diagonal() + gram.diagonal().mean()) + 1e-30
        precisions = np.where(self._penalised, precisions, flat)
        # Rows and columns scaled to a unit diagonal: precisions range over 20 orders of magnitude.
        scale = 1 / np.sqrt(gram.diagonal() + precisions)
        scaled = gram * scale * scale[:, None]
        scaled[np.diag_indices_from(scaled)] = 1.0
        factor = _cholesky(scaled)
        mean = scale * cho_solve((factor, False), scale * rhs, check_finite=False)
        log_determinant = 2 * float(np.log(factor.diagonal()).sum() - np.log(scale).sum())
        evidence = (
            float(np.log(precisions[self._penalised]).sum()) - log_determinant
            + float(rhs @ mean) / dispersion
        ) / 2  # fmt: skip
        inverse = lapack.dpotri(factor, lower=0)[0]
        inverse = np.triu(inverse) + np.triu(inverse, 1).T
        return Solution(mean, inverse * scale * scale[:, None], log_determinant, evidence)

    def adapt(self, gram: np.ndarray, rhs: np.ndarray, dispersion: float, steps: int = 1) -> Solution:
        """Newton steps on the logarithms of lambda and tau; the evidence never falls."""
        solution = self.solve(gram, rhs, dispersion)
        for _ in range(steps):
            moved = self._newton(solution, dispersion)
            if moved is None:
                break
            for _ in range(_HALVINGS):
                trial = np.clip(self.parameters + moved, self._start - _RANGE, self._start + _RANGE)
                trial = np.where(self.free, trial, self.parameters)
                candidate = self.solve(gram, rhs, dispersion, trial)
                if candidate.evidence >= solution.evidence:
                    gain = candidate.evidence - solution.evidence
                    self.parameters, solution = trial, candidate
                    break
                moved = moved / 2
            else:
                break
            if gain < 1e-6:
                break
        return solution

    def _newton(self, solution: Solution, dispersion: float) -> np.ndarray | None:
        free = np.flatnonzero(self.free.ravel())
        if not len(free):
            return None
        parts = self._parts(self.parameters)
        precisions = parts.sum(axis=0)
        safe = np.where(self._penalised, precisions, 1.0)
        standard = solution.mean / np.sqrt(dispersion)
        slope = np.where(
            self._penalised, 1 / safe - solution.inverse.diagonal() - standard**2, 0.0
        ) / 2
        curvature = solution.inverse * (solution.inverse + 2 * np.outer(standard, standard)) / 2
        curvature[np.diag_indices_from(curvature)] -= 1 / (2 * safe**2)
        gradient, hessian = self._reduce(parts, slope, curvature)
        gradient, hessian = gradient[free], hessian[np.ix_(free, free)]
        values, vectors = np.linalg.eigh(-hessian)
        floor = max(1e-3 * np.abs(values).max(), 1e-8)
        step = vectors @ ((vectors.T @ gradient) / np.maximum(np.abs(values), floor))
        moved = np.zeros(self.free.size)
        moved[free] = np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        return moved.reshape(self.free.shape)

    def _reduce(
        self, parts: np.ndarray, slope: np.ndarray, curvature: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """From derivatives by the precisions to derivatives by the logarithms of (lambda, tau)."""
        groups = len(self.parameters)
        spread = np.zeros((2 * groups, len(slope)))
        used = np.flatnonzero(self._penalised)
        for kind in range(2):
            spread[2 * self.groups[used] + kind, used] = parts[kind, used]
        gradient = spread @ slope
        return gradient, spread @ curvature @ spread.T + np.diag(gradient)


def _cholesky(matrix: np.ndarray) -> np.ndarray:
    """Upper factor of a matrix with unit diagonal; equal columns get the ridge that they need."""
    ridge = 0.0
    while True:
        factor, failed = lapack.dpotrf(matrix + ridge * np.eye(len(matrix)), lower=0, clean=1)
        if not failed:
            return factor
        ridge = max(10 * ridge, 1e-14)


