"""Blocks of coefficients: one linear block, and one block a feature of each order.

The predictor is linear in each block when the others are fixed, so a block has an exact update.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from ahofm_keras.moments import triangle
from ahofm_keras.solvers.kernels import Factors
from ahofm_keras.solvers.prior_starts import PriorStart, make_prior
from ahofm_keras.solvers.priors import ACTIVE, COST, FREEDOM, BlockPrior, Solution
from ahofm_keras.solvers.smoothing_uncertainty import smoothing_covariance
from ahofm_keras.solvers.unseen import least_smoothing
from ahofm_keras.tensors import margin_penalties
from ahofm_keras.terms import Columns, Design, Feature, InteractionOrder, RowsOfTerms

if TYPE_CHECKING:
    from ahofm_keras.solvers.rows import Chunk

# Rows that are dense in the columns of the linear block hold at most so many numbers at once.
_DENSE_NUMBERS = 4_000_000


class Block:
    """A block's posterior, and what it gives to the bound."""

    _source: tuple[Solution, float, np.ndarray]

    def __init__(self, prior: BlockPrior) -> None:
        self.prior = prior
        size = len(prior.groups)
        self.mean = np.zeros(size)
        self.log_determinant = 0.0
        self.price = 0.0
        self._set(np.zeros((size, size)), np.zeros(size))

    def copy(self) -> Any:
        """A copy that can be updated: updates replace arrays, they do not change them."""
        other = copy.copy(self)
        other.prior = copy.copy(self.prior)
        return other

    def accept(self, solution: Solution, dispersion: float, gram: np.ndarray) -> None:
        """Take a new posterior; covariance and degrees of freedom are computed when they are read."""
        self.mean = solution.mean
        self.price = solution.price
        self.log_determinant = len(self.mean) * np.log(dispersion) - solution.log_determinant
        self._set(None, None)
        self._source = solution, dispersion, gram

    def go_half_way(self, old: Block) -> None:
        """Back to a posterior of before: its mean; smoothing and variances stay.

        Unless something was switched off since, which would keep half its mean without any variance:
        then these go all the way back.
        """
        mean = (self.mean + old.mean) / 2
        if (self.prior.at_the_end() & ~old.prior.at_the_end()).any():
            self.__dict__.update(old.copy().__dict__)
        self.mean = mean

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
    """Intercept, linear terms, all smooths and tensor products: one joint block.

    Mean field between them would understate variances and slow the fit down.
    """

    _smoothing_covariance: np.ndarray | None = None

    def __init__(self, design: Design, rows: float, random: bool) -> None:
        self.layout = design.layout.only
        starts = [_prior_start(span.block, rows, random) for span in self.layout.penalised]
        super().__init__(make_prior(starts, rows, self.layout.unpenalised, int(self.layout.intercept)))

    def accept(self, solution: Solution, dispersion: float, gram: np.ndarray) -> None:
        super().accept(solution, dispersion, gram)
        self._smoothing_covariance = None

    @property
    def smoothing_covariance(self) -> np.ndarray:
        """What the choice of the smoothing adds to the covariance, `(m, m)`."""
        if self._smoothing_covariance is None:
            solution, dispersion, gram = self._source
            self._smoothing_covariance = smoothing_covariance(self.prior, solution, gram, dispersion)
        return self._smoothing_covariance

    @smoothing_covariance.setter
    def smoothing_covariance(self, value: np.ndarray) -> None:
        self._smoothing_covariance = value

    def dense(self, chunk: Chunk, part: slice | None = None) -> np.ndarray:
        """All columns on the rows of a chunk, or on some of them, `(q, n)`."""
        rows: RowsOfTerms = chunk
        if part is not None:
            used = {place for span in self.layout.spans for place in span.block.positions}
            bases = {place: chunk.bases[place].take(part) for place in used}
            rows = _PartOfRows(bases, chunk.columns[:, part])
        ones = np.ones((int(self.layout.intercept), rows.columns.shape[1]))
        return np.concatenate([ones, *(span.block.dense(rows) for span in self.layout.spans)])

    def gram(self, chunk: Chunk) -> np.ndarray:
        """sum_i w_i x_i x_i', `(q, q)`; only some rows at a time have all their columns."""
        size, rows = len(self.mean), len(chunk.y)
        step = max(1, _DENSE_NUMBERS // max(size, 1))
        parts = [slice(at, at + step) for at in range(0, rows, step)] if rows > step else [None]
        total = np.zeros((size, size))
        for part in parts:
            dense = self.dense(chunk, part)
            dense *= np.sqrt(chunk.weight[part or slice(None)])
            total += dense @ dense.T
        return total

    def sums(self, chunk: Chunk, weights: np.ndarray) -> np.ndarray:
        """sum_i weights_i x_i, `(q,)`."""
        intercept = np.full(int(self.layout.intercept), weights.sum())
        parts = (span.block.sums(chunk, weights) for span in self.layout.spans)
        return np.concatenate([intercept, *parts])

    def evaluate(self, chunk: Chunk) -> np.ndarray:
        """Mean of the block's part of the predictor."""
        fit = np.full(len(chunk.y), self.mean[: int(self.layout.intercept)].sum())
        for span in self.layout.spans:
            fit += span.block.evaluate(chunk, self.mean[span.where])
        return fit


class _PartOfRows(NamedTuple):
    """Some rows of a chunk."""

    bases: dict[int, Any]
    columns: np.ndarray


def _prior_start(block: Columns, rows: float, random: bool) -> PriorStart:
    """Where the smoothing of a smooth or tensor product starts."""
    # A product of functions of d features costs what a factor of an `ahofm()` that has d would.
    several = len(block.features) > 1 and not block.fixed
    return PriorStart(
        block.penalties, block.smoothing, rows, random, block.fixed,
        COST * len(block.features) if several else 0.0,
        tuple(least_smoothing(feature, rows) for feature in block.features),
        FREEDOM * any(feature.basis.is_spline for feature in block.features),
        _least_penalty(block.features),
    )  # fmt: skip


def _least_penalty(features: Sequence[Feature]) -> float:
    """1 / s_1 of a smooth, s_1 the least penalty of a function that is not a straight line; else 0."""
    values = features[0].eigenvalues
    penalised = values[values > 0]
    if len(features) > 1 or not features[0].basis.is_spline or not len(penalised):
        return 0.0
    return float(1 / penalised.min())


class FactorBlock(Block):
    """All factors of one feature in one order.

    Args:
        start: of the prior of each factor.
        feature: with its functions.
        position: of the feature in the design.
        rank: number of factors F.
    """

    def __init__(self, start: PriorStart, feature: Feature, position: int, rank: int) -> None:
        super().__init__(make_prior([start] * rank, start.rows))
        self.feature = feature
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

    def replaced(
        self, prior: BlockPrior, mean: np.ndarray, covariance: np.ndarray, edf: np.ndarray
    ) -> FactorBlock:
        """A block of the same feature with other factors."""
        other: FactorBlock = self.copy()
        other.rank = len(mean) // self.width
        other.prior, other.mean = prior, mean
        other._set(covariance, edf)
        other._forms = None
        return other

    def beside(self, other: FactorBlock) -> FactorBlock:
        """The block with the factors of another block of the same feature after its own."""
        return self.replaced(
            self.prior.beside(other.prior),
            np.concatenate([self.mean, other.mean]),
            block_diag(self.covariance, other.covariance),
            np.concatenate([self.edf, other.edf]),
        )

    def without(self, factor: int) -> FactorBlock:
        """The block with one factor less."""
        keep = np.repeat(np.arange(self.rank) != factor, self.width)
        covariance = self.covariance[np.ix_(keep, keep)]
        other = self.replaced(self.prior.without(factor), self.mean[keep], covariance, self.edf[keep])
        _, other.log_determinant = np.linalg.slogdet(covariance)
        return other

    @property
    def forms(self) -> np.ndarray:
        """Covariances of pairs of factors as forms of the basis functions, `(M, M, P)`."""
        if self._forms is None:
            transform = self.feature.transform
            shape = self.rank, self.width, self.rank, self.width
            blocks = self.covariance.reshape(shape).swapaxes(1, 2)
            forms = transform @ blocks[triangle(self.rank)] @ transform.T
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
        transform, pairs = self.feature.transform, triangle(self.rank)
        small = transform.T @ gram @ transform
        blocks = np.empty((self.rank, self.rank, self.width, self.width))
        blocks[pairs] = small
        blocks[pairs[::-1]] = small.swapaxes(1, 2)
        size = self.rank * self.width
        return blocks.swapaxes(1, 2).reshape(size, size), (rhs @ transform).reshape(-1)


@dataclass(frozen=True)
class FactorGroup:
    """One order of one interaction term.

    Args:
        factors: of the design.
        kept: which of the order's factors the blocks hold; the others were switched off.
        blocks: one a feature.
    """

    factors: InteractionOrder
    kept: tuple[int, ...]
    blocks: tuple[FactorBlock, ...]

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from all other orders."""
        return self.factors.key

    @property
    def order(self) -> int:
        return self.factors.order

    @property
    def rank(self) -> int:
        return len(self.kept)

    def copy(self) -> FactorGroup:
        return FactorGroup(self.factors, self.kept, tuple(b.copy() for b in self.blocks))

    def without(self, factor: int) -> FactorGroup:
        """The group with one factor less."""
        kept = tuple(f for place, f in enumerate(self.kept) if place != factor)
        blocks = tuple(block.without(factor) for block in self.blocks)
        return FactorGroup(self.factors, kept, blocks)


def make_groups(design: Design, rows: float, random: bool, rank: int | None = None) -> list[FactorGroup]:
    """All orders of all interaction terms."""
    groups = []
    for order in design.layout.only.orders:
        count = rank or order.slots
        blocks = []
        for position, feature, smoothing in zip(
            order.positions, order.features, order.smoothing, strict=True
        ):
            penalties = margin_penalties([feature.eigenvalues], pure=True)
            least = (least_smoothing(feature, rows),)
            start = PriorStart(penalties, (smoothing,), rows, random, order.fixed, least=least)
            blocks.append(FactorBlock(start, feature, position, count))
        groups.append(FactorGroup(order, tuple(range(count)), tuple(blocks)))
    return groups
