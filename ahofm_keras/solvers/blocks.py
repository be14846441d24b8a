"""Blocks of coefficients: one linear block, and one block a feature of each order.

The predictor is linear in each block when the others are fixed, so a block has an exact update.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ahofm_keras.solvers.kernels import Factors
from ahofm_keras.solvers.priors import ACTIVE, BlockPrior, Solution
from ahofm_keras.terms import Design, Feature, InteractionTerm, LinearTerm, SmoothTerm

if TYPE_CHECKING:
    from ahofm_keras.solvers.rows import Chunk

# tau at the start, in units of the Gram matrix of a function with variance 1 on each row.
_START_SHRINKAGE = 1e-3


@dataclass(frozen=True)
class PriorStart:
    """Where the prior of one group of coefficients starts.

    Args:
        feature: with its penalty.
        smoothing: lambda.
        rows: n.
        random: whether tau shrinks what the penalty leaves free, and the data chooses.
        fixed: whether the user gave lambda.
    """

    feature: Feature
    smoothing: float
    rows: int
    random: bool
    fixed: bool = False

    def parameters(self) -> tuple[list[float], list[bool]]:
        """Logarithms of lambda and tau in units of the Gram matrix; which of them the data chooses."""
        values = self.feature.eigenvalues
        smoothing = self.rows * self.smoothing
        shrinkage = self.rows * _START_SHRINKAGE if self.random and not self.fixed else 0.0
        identity = self.random and len(values) > 0 and np.ptp(values) == 0
        if identity:  # one scale, not two
            smoothing, shrinkage = 0.0, shrinkage + smoothing * values[0]
        with np.errstate(divide="ignore"):
            start = np.log([smoothing, shrinkage])
        free = np.isfinite(start) & self.random & (not self.fixed)
        return start.tolist(), free.tolist()


def make_prior(starts: Sequence[PriorStart], flat: int = 0) -> BlockPrior:
    """The prior of a block: some coefficients with a flat prior, then the groups."""
    eigenvalues = [np.zeros(flat), *(start.feature.eigenvalues for start in starts)]
    widths = [len(start.feature.eigenvalues) for start in starts]
    groups = np.concatenate([np.full(flat, -1), np.repeat(np.arange(len(starts)), widths)])
    chosen = [start.parameters() for start in starts]
    parameters = np.array([values for values, _ in chosen], float).reshape(-1, 2)
    free = np.array([free for _, free in chosen], bool).reshape(-1, 2)
    if not len(parameters):  # something to index
        parameters, free = np.zeros((1, 2)), np.zeros((1, 2), bool)
    prior = BlockPrior(np.concatenate(eigenvalues), groups, parameters, free)
    # What neither lambda nor tau reaches has a flat prior.
    return BlockPrior(prior.eigenvalues, np.where(prior.precisions() > 0, groups, -1), parameters, free)


class Block:
    """A block's posterior, and what it gives to the bound."""

    _source: tuple[Solution, float, np.ndarray]

    def __init__(self, prior: BlockPrior) -> None:
        self.prior = prior
        size = len(prior.eigenvalues)
        self.mean = np.zeros(size)
        self.log_determinant = 0.0
        self._set(np.zeros((size, size)), np.zeros(size))

    def copy(self) -> Any:
        """A copy that can be updated: updates replace arrays, they do not change them."""
        other = copy.copy(self)
        other.prior = copy.copy(self.prior)
        return other

    def accept(self, solution: Solution, dispersion: float, gram: np.ndarray) -> None:
        """Take a new posterior; covariance and degrees of freedom are computed when they are read."""
        self.mean = solution.mean
        self.log_determinant = len(self.mean) * np.log(dispersion) - solution.log_determinant
        self._set(None, None)
        self._source = solution, dispersion, gram

    def _set(self, covariance: np.ndarray | None, edf: np.ndarray | None) -> None:
        self._covariance, self._edf = covariance, edf

    @property
    def covariance(self) -> np.ndarray:
        """`(m, m)`."""
        if self._covariance is None:
            solution, dispersion, _ = self._source
            self._covariance = dispersion * solution.inverse
        return self._covariance

    @covariance.setter
    def covariance(self, value: np.ndarray) -> None:
        self._covariance = value

    @property
    def edf(self) -> np.ndarray:
        """Effective degrees of freedom of each coefficient, `(m,)`."""
        if self._edf is None:
            solution, _, gram = self._source
            self._edf = np.einsum("ij,ij->i", solution.inverse, gram)
        return self._edf

    def penalty(self, random: bool) -> float:
        """E of the quadratic form of the prior."""
        squares = self.mean**2 + (self.covariance.diagonal() if random else 0.0)
        return float(self.prior.precisions() @ squares)


class LinearBlock(Block):
    """Intercept, linear terms and all smooths: one joint block.

    Mean field between them would understate variances and slow the fit down.
    """

    def __init__(self, design: Design, rows: int, random: bool) -> None:
        self.intercept = int(design.intercept)
        self.linear = sum(len(term.columns) for term in design.of_kind(LinearTerm))
        self.smooths: list[SmoothTerm] = design.of_kind(SmoothTerm)
        self.features = [design.features[term.feature] for term in self.smooths]
        starts = [
            PriorStart(feature, term.smoothing, rows, random, term.fixed)
            for term, feature in zip(self.smooths, self.features, strict=True)
        ]
        super().__init__(make_prior(starts, self.flat))
        ends = self.flat + np.cumsum([len(feature.eigenvalues) for feature in self.features])
        begins = [self.flat, *ends]
        self.slices = [slice(int(a), int(b)) for a, b in zip(begins, ends, strict=False)]

    @property
    def flat(self) -> int:
        """Number of coefficients before those of the smooths."""
        return self.intercept + self.linear

    def dense(self, chunk: Chunk) -> np.ndarray:
        """All columns on the rows of a chunk, `(q, n)`."""
        smooths = [
            chunk.bases[term.feature].evaluate(feature.transform.T)
            for term, feature in zip(self.smooths, self.features, strict=True)
        ]
        return np.concatenate([np.ones((self.intercept, len(chunk.y))), chunk.columns, *smooths])

    def sums(self, chunk: Chunk, weights: np.ndarray) -> np.ndarray:
        """sum_i weights_i x_i, `(q,)`."""
        parts = [np.full(self.intercept, weights.sum()), chunk.columns @ weights]
        for term, feature in zip(self.smooths, self.features, strict=True):
            parts.append(chunk.bases[term.feature].sums(weights[None])[0] @ feature.transform)
        return np.concatenate(parts)

    def evaluate(self, chunk: Chunk) -> np.ndarray:
        """Mean of the block's part of the predictor."""
        fit = np.full(len(chunk.y), self.mean[: self.intercept].sum())
        fit += self.mean[self.intercept : self.flat] @ chunk.columns
        for term, feature, own in zip(self.smooths, self.features, self.slices, strict=True):
            coefficients = feature.transform @ self.mean[own]
            fit += chunk.bases[term.feature].evaluate(coefficients[None])[0]
        return fit


class FactorBlock(Block):
    """All factors of one feature in one order.

    Args:
        start: of the prior of each factor.
        position: of the feature in the design.
        rank: number of factors F.
    """

    def __init__(self, start: PriorStart, position: int, rank: int) -> None:
        super().__init__(make_prior([start] * rank))
        self.feature = start.feature
        self.position = position
        self.rank = rank
        self.random = start.random
        self._forms: np.ndarray | None = None

    @property
    def width(self) -> int:
        """Number of coefficients of a factor."""
        return len(self.feature.eigenvalues)

    @property
    def factors(self) -> np.ndarray:
        """Means `(F, r)`."""
        return self.mean.reshape(self.rank, self.width)

    @property
    def factor_edf(self) -> np.ndarray:
        """Effective degrees of freedom of each factor."""
        return self.edf.reshape(self.rank, self.width).sum(axis=1)

    def active(self) -> int:
        """Number of factors that are not switched off."""
        return int((self.factor_edf > ACTIVE).sum())

    def accept(self, solution: Solution, dispersion: float, gram: np.ndarray) -> None:
        super().accept(solution, dispersion, gram)
        self._forms = None

    def set_posterior(self, mean: np.ndarray, covariance: np.ndarray) -> None:
        """Take a posterior from elsewhere."""
        self.mean, self.covariance = mean, covariance
        _, self.log_determinant = np.linalg.slogdet(covariance)
        self._forms = None

    def without(self, factor: int) -> FactorBlock:
        """The block with one factor less."""
        other: FactorBlock = self.copy()
        keep = np.repeat(np.arange(self.rank) != factor, self.width)
        other.rank = self.rank - 1
        other.prior = self.prior.without(factor)
        other.mean = self.mean[keep]
        other._set(self.covariance[np.ix_(keep, keep)], self.edf[keep])
        _, other.log_determinant = np.linalg.slogdet(other.covariance)
        other._forms = None
        return other

    @property
    def forms(self) -> np.ndarray:
        """Covariances of pairs of factors as forms of the basis functions, `(M, M, P)`."""
        if self._forms is None:
            transform = self.feature.transform
            shape = self.rank, self.width, self.rank, self.width
            blocks = self.covariance.reshape(shape).swapaxes(1, 2)
            forms = transform @ blocks[_pairs(self.rank)] @ transform.T
            self._forms = np.ascontiguousarray((forms + forms.swapaxes(1, 2)).transpose(1, 2, 0) / 2)
        return self._forms

    @property
    def posterior(self) -> Factors:
        """In coefficients of the basis functions."""
        coefficients = self.factors @ self.feature.transform.T
        return Factors(coefficients, self.forms if self.random else None)

    def evaluate(self, chunk: Chunk) -> np.ndarray:
        """Means of the factors at the rows of a chunk, `(F, n)`."""
        return chunk.bases[self.position].evaluate(self.posterior.coefficients)

    def to_coordinates(self, gram: np.ndarray, rhs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gram matrices of pairs `(P, M, M)` and sums `(F, M)` of the basis -> the block's system."""
        transform, pairs = self.feature.transform, _pairs(self.rank)
        small = transform.T @ gram @ transform
        blocks = np.empty((self.rank, self.rank, self.width, self.width))
        blocks[pairs] = small
        blocks[pairs[::-1]] = small.swapaxes(1, 2)
        size = self.rank * self.width
        return blocks.swapaxes(1, 2).reshape(size, size), (rhs @ transform).reshape(-1)


def _pairs(rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Factors f <= g."""
    return np.triu_indices(rank)


@dataclass(frozen=True)
class FactorGroup:
    """One order of one interaction term.

    Args:
        term: of the design.
        place: of the order among the term's orders.
        kept: which of the order's factors the blocks hold; the others were switched off.
        blocks: one a feature.
    """

    term: InteractionTerm
    place: int
    kept: tuple[int, ...]
    blocks: tuple[FactorBlock, ...]

    @property
    def order(self) -> int:
        return self.term.orders[self.place].order

    @property
    def rank(self) -> int:
        return len(self.kept)

    def copy(self) -> FactorGroup:
        return FactorGroup(self.term, self.place, self.kept, tuple(b.copy() for b in self.blocks))

    def without(self, factor: int) -> FactorGroup:
        """The group with one factor less."""
        kept = tuple(f for place, f in enumerate(self.kept) if place != factor)
        blocks = tuple(block.without(factor) for block in self.blocks)
        return FactorGroup(self.term, self.place, kept, blocks)


def make_groups(design: Design, rows: int, random: bool) -> list[FactorGroup]:
    """All orders of all interaction terms."""
    groups = []
    for term in design.of_kind(InteractionTerm):
        for place, order in enumerate(term.orders):
            blocks = tuple(
                FactorBlock(
                    PriorStart(design.features[position], smoothing, rows, random, term.fixed),
                    position,
                    order.rank,
                )
                for position, smoothing in zip(term.features, order.smoothing, strict=True)
            )
            groups.append(FactorGroup(term, place, tuple(range(order.rank)), blocks))
    return groups
