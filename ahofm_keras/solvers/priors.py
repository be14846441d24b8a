"""The prior of a block of coefficients, and the step that chooses its smoothing from the data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve, lapack

# Precision of a coefficient with a flat prior, relative to the block's Gram matrix: none that a
# statistician would see, enough for equal columns.
_FLAT = 1e-11
# Logarithms of lambda and tau may move by this much in one step, and lie this far from where they
# started.
_LONGEST_STEP = 4.0
_RANGE = 25.0
_HALVINGS = 12
_REVIVING_STEPS = 15
# A group with fewer degrees of freedom counts as switched off.
ACTIVE = 0.05


@dataclass(frozen=True)
class Solution:
    """The posterior of a block in units of the dispersion.

    Args:
        mean: `(m,)`.
        log_determinant: of A.
        evidence: 1/2 log|Q| - 1/2 log|A| + b'A^-1 b / (2 dispersion): up to constants, the part of the
            bound that depends on this block when its posterior is profiled out.
        factor: upper Cholesky factor of A with rows and columns scaled.
        scale: of rows and columns.
    """

    mean: np.ndarray
    log_determinant: float
    evidence: float
    factor: np.ndarray
    scale: np.ndarray

    @cached_property
    def inverse(self) -> np.ndarray:
        """A^-1 `(m, m)`; times the dispersion it is the covariance. Many trials do without."""
        root = self.scale[:, None] * lapack.dtrtri(self.factor, lower=0)[0]
        inverse: np.ndarray = root @ root.T
        return inverse


@dataclass
class BlockPrior:
    """Precisions of a block's coefficients: lambda s_m + tau, one (lambda, tau) a group.

    A group is one smooth, or one factor of one feature. tau shrinks what the penalty leaves free, so a
    group that the data does not need goes to zero. Where the penalty is the identity (categories) only
    the sum is known, and tau alone is kept.

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
        self.start = self.parameters
        self._penalised = self.groups >= 0

    @property
    def size(self) -> int:
        """Number of coefficients with a proper prior."""
        return int(self._penalised.sum())

    def precisions(self) -> np.ndarray:
        """`(m,)`, 0 where the prior is flat."""
        return self._parts(self.parameters).sum(axis=0)

    def log_determinant(self) -> float:
        """Of the proper part."""
        return float(np.log(self.precisions()[self._penalised]).sum())

    def without(self, group: int) -> BlockPrior:
        """The prior with one group less."""
        keep = self.groups != group
        groups = self.groups[keep]
        rest = np.arange(len(self.parameters)) != group
        prior = BlockPrior(
            self.eigenvalues[keep],
            np.where(groups > group, groups - 1, groups),
            self.start[rest],
            self.free[rest],
        )
        prior.parameters = self.parameters[rest]
        return prior

    def solve(
        self, gram: np.ndarray, rhs: np.ndarray, dispersion: float, parameters: np.ndarray | None = None
    ) -> Solution:
        """The block's posterior, with all others fixed."""
        precisions = self._parts(self.parameters if parameters is None else parameters).sum(axis=0)
        flat = _FLAT * (gram.diagonal() + np.trace(gram) / max(len(gram), 1)) + 1e-30
        precisions = np.where(self._penalised, precisions, flat)
        # Rows and columns scaled to a unit diagonal: precisions range over 20 orders of magnitude.
        scale = 1 / np.sqrt(gram.diagonal() + precisions)
        scaled = gram * scale * scale[:, None]
        scaled[np.diag_indices_from(scaled)] = 1.0
        factor = _cholesky(scaled)
        mean = scale * cho_solve((factor, False), scale * rhs, check_finite=False)
        log_determinant = 2 * float(np.log(factor.diagonal()).sum() - np.log(scale).sum())
        prior = float(np.log(precisions[self._penalised]).sum())
        evidence = (prior - log_determinant + float(rhs @ mean) / dispersion) / 2
        return Solution(mean, log_determinant, evidence, factor, scale)

    def adapt(self, gram: np.ndarray, rhs: np.ndarray, dispersion: float, steps: int = 1) -> Solution:
        """Newton steps on the logarithms of lambda and tau; the evidence never falls."""
        solution = self.solve(gram, rhs, dispersion)
        for _ in range(steps):
            step = self._newton(solution, dispersion)
            better = None
            for _ in range(_HALVINGS if step.any() else 0):
                trial = np.clip(self.parameters + step, self.start - _RANGE, self.start + _RANGE)
                trial = np.where(self.free, trial, self.parameters)
                candidate = self.solve(gram, rhs, dispersion, trial)
                if candidate.evidence >= solution.evidence:
                    better = candidate
                    break
                step = step / 2
            if better is None:
                break
            gain = better.evidence - solution.evidence
            self.parameters, solution = trial, better
            if gain < 1e-6:
                break
        return solution

    def switch_off(
        self, solution: Solution, gram: np.ndarray, rhs: np.ndarray, dispersion: float, cost: float
    ) -> Solution:
        """Do without the groups that gain the evidence less than their cost, the weakest first.

        Args:
            solution: at the current parameters.
            gram, rhs, dispersion: the block's system.
            cost: of one group.
        """
        edf = np.einsum("ij,ij->i", solution.inverse, gram)
        by_group = np.bincount(self.groups[self._penalised], edf[self._penalised], len(self.free))
        for group in np.argsort(by_group):
            if by_group[group] < ACTIVE or not self.free[group, 1]:
                continue
            trial = self.parameters.copy()
            trial[group, 1] = self.start[group, 1] + _RANGE
            candidate = self.solve(gram, rhs, dispersion, trial)
            if candidate.evidence >= solution.evidence - cost:
                self.parameters, solution = trial, candidate
        return solution

    def revive(self, gram: np.ndarray, rhs: np.ndarray, dispersion: float) -> None:
        """Choose the parameters once more from where they started; keep the better ones.

        At a large tau the evidence is flat: a group that went there while others explained its part
        would not come back by steps.
        """
        kept, before = self.parameters, self.solve(gram, rhs, dispersion).evidence
        self.parameters = self.start
        if self.adapt(gram, rhs, dispersion, _REVIVING_STEPS).evidence < before:
            self.parameters = kept

    def _parts(self, parameters: np.ndarray) -> np.ndarray:
        """lambda s_m and tau of each coefficient, `(2, m)`."""
        own = np.exp(parameters)[self.groups] * self._penalised[:, None]
        return np.stack([own[:, 0] * self.eigenvalues, own[:, 1]])

    def _newton(self, solution: Solution, dispersion: float) -> np.ndarray:
        """The step `(G, 2)`; where the evidence is not concave, along |curvature|."""
        step = np.zeros(self.free.size)
        free = np.flatnonzero(self.free.ravel())
        if not len(free):
            return step.reshape(self.free.shape)
        gradient, hessian = self._derivatives(solution, dispersion)
        values, vectors = np.linalg.eigh(-hessian[np.ix_(free, free)])
        floor = max(1e-3 * np.abs(values).max(), 1e-8)
        newton = vectors @ ((vectors.T @ gradient[free]) / np.maximum(np.abs(values), floor))
        step[free] = np.clip(newton, -_LONGEST_STEP, _LONGEST_STEP)
        return step.reshape(self.free.shape)

    def _derivatives(self, solution: Solution, dispersion: float) -> tuple[np.ndarray, np.ndarray]:
        """Of the evidence by the logarithms of (lambda, tau).

        By the precisions q they are 1/2 (1/q - diag(A^-1) - mean^2 / dispersion) and
        1/2 A^-1 o (A^-1 + 2 mean mean' / dispersion) - 1/2 diag(1 / q^2).
        """
        parts = self._parts(self.parameters)
        inverse = np.where(self._penalised, 1 / np.where(self._penalised, parts.sum(axis=0), 1.0), 0.0)
        mean = solution.mean / np.sqrt(dispersion)
        slope = (inverse - solution.inverse.diagonal() - mean**2) / 2
        curvature = solution.inverse * (solution.inverse + 2 * np.outer(mean, mean)) / 2
        curvature[np.diag_indices_from(curvature)] -= inverse**2 / 2
        used = np.flatnonzero(self._penalised)
        chain = np.zeros((self.free.size, len(slope)))
        for kind in range(2):
            chain[2 * self.groups[used] + kind, used] = parts[kind, used]
        gradient = chain @ slope
        return gradient, chain @ curvature @ chain.T + np.diag(gradient)


def _cholesky(matrix: np.ndarray) -> np.ndarray:
    """Upper factor of a matrix with unit diagonal; equal columns get the ridge that they need."""
    # The transpose is the same matrix in LAPACK's order of entries.
    factor, failed = lapack.dpotrf(matrix.T, lower=0, clean=1)
    ridge = 1e-14
    while failed:
        factor, failed = lapack.dpotrf(matrix + ridge * np.eye(len(matrix)), lower=0, clean=1)
        ridge *= 10
    return factor
