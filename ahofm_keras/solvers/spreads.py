"""The uncertainty of a block's coefficients beside their mean."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ahofm_keras.solvers.priors import Solution


@dataclass(frozen=True, eq=False)
class Spread:
    """The uncertainty of a block that was not solved here: read from a model, or of no solution at all.

    Args:
        covariance: `(m, m)`.
        edf: effective degrees of freedom of each coefficient `(m,)`.
        log_determinant: of the covariance.
        price: of what is on, see `Solution`.
        dispersion: of the response; 0 where nothing was solved.
    """

    covariance: np.ndarray
    edf: np.ndarray
    log_determinant: float = 0.0
    price: float = 0.0
    dispersion: float = 0.0

    @property
    def variances(self) -> np.ndarray:
        """Of the coefficients, `(m,)`."""
        return self.covariance.diagonal()

    def expected(self, gram: np.ndarray) -> float:
        """tr(V G): the sum over rows of the variance of the block's part of the predictor."""
        return float(np.vdot(self.covariance, gram))

    @classmethod
    def nothing(cls, size: int) -> Spread:
        return cls(np.zeros((size, size)), np.zeros(size))


@dataclass(frozen=True, eq=False)
class KeptSpread:
    """The uncertainty of a block of factors as a model keeps it, until the block is updated.

    It is enough for the updates of other blocks. A covariance, and a bound, there is none.

    Args:
        forms: see `Factors`.
        edf: as in `Spread`.
    """

    forms: np.ndarray
    edf: np.ndarray
    log_determinant: float = np.nan
    price: float = np.nan
    dispersion: float = 0.0

    @property
    def covariance(self) -> np.ndarray:
        raise AssertionError("a block that was read has to be updated first")

    @property
    def variances(self) -> np.ndarray:
        """Of the coefficients, `(m,)`."""
        return self.covariance.diagonal()

    def expected(self, gram: np.ndarray) -> float:
        """tr(V G)."""
        return float(np.vdot(self.covariance, gram))


@dataclass(frozen=True, eq=False)
class SolvedSpread:
    """The uncertainty of a solution; covariance and degrees of freedom are computed when they are read.

    Args:
        solution: of the block.
        dispersion: of the response.
        gram: Gram matrix of the block.
    """

    solution: Solution
    dispersion: float
    gram: np.ndarray

    @cached_property
    def covariance(self) -> np.ndarray:
        """`(m, m)`."""
        return self.dispersion * self.solution.inverse

    @cached_property
    def edf(self) -> np.ndarray:
        """Effective degrees of freedom of each coefficient, `(m,)`."""
        return self.solution.precision.explained(self.gram)

    @property
    def variances(self) -> np.ndarray:
        """Of the coefficients, `(m,)`."""
        return self.dispersion * self.solution.precision.inverse_diagonal

    def expected(self, gram: np.ndarray) -> float:
        """tr(V G): the sum over rows of the variance of the block's part of the predictor."""
        own = self.edf if gram is self.gram else self.solution.precision.explained(gram)
        return self.dispersion * float(own.sum())

    @property
    def log_determinant(self) -> float:
        """Of the covariance."""
        size = len(self.solution.mean)
        return float(size * np.log(self.dispersion) - self.solution.log_determinant)

    @property
    def price(self) -> float:
        """Of what is on."""
        return self.solution.price
