"""Blocks of coefficients: one linear block, and one block per feature of each order.

The predictor is linear in each block when the others are fixed, so a block has an exact update. Blocks
do not change: an update gives a new one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import Self

import numpy as np
from scipy.linalg import block_diag

from ahofm_keras.bands import product_band, transform_band
from ahofm_keras.moments import triangle
from ahofm_keras.solvers.functions_in_use import resize
from ahofm_keras.solvers.gap_prior import least_smoothing
from ahofm_keras.solvers.kernels import Factors
from ahofm_keras.solvers.linear_columns import LinearColumns
from ahofm_keras.solvers.prior_starts import PriorStart, make_prior
from ahofm_keras.solvers.priors import BlockPrior, Solution, System
from ahofm_keras.solvers.settings import Settings
from ahofm_keras.solvers.smoothing_uncertainty import smoothing_covariance
from ahofm_keras.solvers.spreads import KeptSpread, SolvedSpread, Spread
from ahofm_keras.terms import Columns, Design, Feature

# Functions in use for one that is wanted.
_ROOM = 1.2
# Of the penalties of two functions.
_LEAST_STEP = 1e-300


@dataclass(frozen=True, eq=False)
class Block:
    """A block's posterior, and what it gives to the bound.

    Args:
        prior: with its smoothing.
        mean: `(m,)`.
        spread: the uncertainty beside the mean.
    """

    prior: BlockPrior
    mean: np.ndarray
    spread: Spread | KeptSpread | SolvedSpread

    @property
    def covariance(self) -> np.ndarray:
        """`(m, m)`."""
        return self.spread.covariance

    @property
    def edf(self) -> np.ndarray:
        """Effective degrees of freedom of each coefficient, `(m,)`."""
        return self.spread.edf

    def solved(self, solution: Solution, dispersion: float, gram: np.ndarray) -> Self:
        """The block with a new posterior."""
        spread = SolvedSpread(solution, dispersion, gram)
        return replace(self, prior=solution.prior, mean=solution.mean, spread=spread)

    def half_way_to(self, old: Self) -> Self:
        """Back to a posterior of before: its mean; smoothing and variances stay.

        Unless something was switched off since, which would keep half its mean without any variance:
        then these go all the way back.
        """
        switched_off = (self.prior.at_the_end & ~old.prior.at_the_end).any()
        kept, other = (old, self) if switched_off else (self, old)
        return replace(kept, mean=(kept.mean + other.mean_like(kept)) / 2)

    def mean_like(self, other: Self) -> np.ndarray:
        """The mean, with as many coefficients as another posterior of the same block has."""
        return self.mean

    @cached_property
    def penalty(self) -> float:
        """What the prior takes at the mean, twice: its quadratic form, and penalties on norms."""
        return self.prior.quadratic_penalty(self.mean) + self.prior.norm_penalty(self.mean)

    @cached_property
    def expected_penalty(self) -> float:
        """E of the same."""
        return self.penalty + float(self.prior.precisions @ self.spread.variances)

    @cached_property
    def bound(self) -> float:
        """Twice what the prior and the entropy give to the bound where the dispersion is 1.

        But for the quadratic form of the prior, less the price of what is on.
        """
        own = self.prior.log_determinant + self.spread.log_determinant + len(self.mean)
        return own - 2 * self.spread.price


@dataclass(frozen=True, eq=False)
class LinearBlock(Block):
    """Intercept, linear terms, all smooths and tensor products: one joint block.

    Mean field between them would understate variances and slow the fit down.

    Args:
        columns: on rows.
        averaged_smoothing: `smoothing_covariance` of an average of fits, which is not that of its mean.
    """

    columns: LinearColumns
    averaged_smoothing: np.ndarray | None = None

    def curved(self) -> LinearBlock:
        """The block with the uncertainty of what has a penalty on its norm, which no update needs."""
        prior = self.prior.curved_at(self.mean)
        if prior is self.prior:
            return self
        assert isinstance(self.spread, SolvedSpread), "a block that was solved"
        gram, dispersion = self.spread.gram, self.spread.dispersion
        rhs = gram @ self.mean + prior.precisions * self.mean
        solved = self.solved(prior.solve(System(gram, rhs, dispersion)), dispersion, gram)
        return replace(solved, mean=self.mean)

    @cached_property
    def smoothing_covariance(self) -> np.ndarray:
        """What the choice of the smoothing adds to the covariance, `(m, m)`."""
        if self.averaged_smoothing is not None:
            return self.averaged_smoothing
        assert isinstance(self.spread, SolvedSpread), "a block that was solved"
        return smoothing_covariance(self.spread.solution, self.spread.gram, self.spread.dispersion)


@dataclass(frozen=True, eq=False)
class FactorBlock(Block):
    """All factors of one feature in one order.

    They hold the atoms of the feature and its smoothest splines, as many as its factors ask for, see
    `functions_in_use`: the coefficients of all others are 0.

    Args:
        feature: with its functions.
        position: of the feature in the design.
        variational: whether factors have variances on rows.
        is_given: whether the factors are known functions, which nothing updates.
        seen: what the weights of rows belong to, see `Working`, and the bands of Gram matrices that stay
            as they are while these do.
    """

    feature: Feature
    position: int
    variational: bool
    is_given: bool = False
    seen: tuple[object, np.ndarray] | None = None

    @property
    def width(self) -> int:
        """Number of functions in use, r: coefficients of a factor."""
        return len(self.mean) // max(self.rank, 1)

    @property
    def rank(self) -> int:
        """Number of factors F."""
        return self.prior.shape.count_factors

    @cached_property
    def transform(self) -> np.ndarray:
        """From coordinates to coefficients of the basis functions, `(M, r)`."""
        return np.ascontiguousarray(self.feature.transform[:, : self.width])

    @property
    def factors(self) -> np.ndarray:
        """Means `(F, r)`."""
        return self.mean.reshape(-1, self.width)

    @cached_property
    def factor_edf(self) -> np.ndarray:
        """Effective degrees of freedom of each factor."""
        edf: np.ndarray = self.edf.reshape(-1, self.width).sum(axis=1)
        return edf

    @property
    def is_active(self) -> np.ndarray:
        """Which factors are not switched off; those that share a prior are all on or all off."""
        least = self.prior.settings.active_edf
        if self.is_given:
            return np.ones(self.rank, bool)
        if self.prior.shape.given is not None:
            return np.full(self.rank, self.factor_edf.sum() > least)
        return self.factor_edf > least

    @property
    def own_variance(self) -> float:
        """Sum over rows of the variance that the block gives to the predictor, if it was solved."""
        return self.spread.expected(self.spread.gram) if isinstance(self.spread, SolvedSpread) else 0.0

    @property
    def is_updated(self) -> bool:
        """Whether its coefficients are neither given nor switched off."""
        return not (self.is_given or self.is_off)

    @property
    def factor_smoothing(self) -> np.ndarray:
        """`(F, D + 1)`, logarithms of the lambdas of the feature and of tau, of each factor.

        To the factor beside a given function of penalty s the lambda of that feature adds lambda s to
        tau.
        """
        smoothing, given = self.prior.smoothing(), self.prior.shape.given
        if given is None:
            return smoothing
        own = np.repeat(smoothing, len(given), axis=0)
        with np.errstate(divide="ignore"):
            own[:, -1] = np.logaddexp(own[:, -1], own[:, 1] + np.log(given))
        return np.delete(own, 1, axis=1)

    def with_factor_smoothing(self, smoothing: np.ndarray) -> FactorBlock:
        """The block at a smoothing that `factor_smoothing` gave."""
        given = self.prior.shape.given
        if given is None:
            return replace(self, prior=self.prior.with_smoothing(smoothing))
        # tau of the first and of the last factor, which differ by lambda times what their penalties do.
        scales = np.exp(smoothing[[0, -1], -1])
        beside = max(float(np.diff(scales)[0]), 0.0) / max(float(given[-1] - given[0]), _LEAST_STEP)
        shrinkage = max(float(scales[0] - beside * given[0]), 0.0)
        with np.errstate(divide="ignore"):
            own = np.insert(smoothing[:1], 1, np.log(beside), axis=1)
            own[0, -1] = np.log(shrinkage)
        return replace(self, prior=self.prior.with_smoothing(own))

    @property
    def is_off(self) -> bool:
        """Whether all factors are switched off for good: the block adds nothing."""
        return bool(self.prior.at_the_end.all())

    @property
    def is_nothing(self) -> bool:
        """Whether it never was on: its factors are 0, without variances."""
        return self.is_off and not self.mean.any() and not self.spread.dispersion

    def known(self, mean: np.ndarray, covariance: np.ndarray) -> FactorBlock:
        """The block with a posterior from elsewhere."""
        _, log_determinant = np.linalg.slogdet(covariance)
        return replace(self, mean=mean, spread=Spread(covariance, np.zeros(len(mean)), log_determinant))

    # Functions in use --------------------------------------------------------------------------------

    def whole(self) -> FactorBlock:
        """The block with all functions of the feature."""
        return self.resized(len(self.feature.eigenvalues))

    def prepared(self, wanted: int | None = None) -> FactorBlock:
        """The block before an update, which needs no posterior.

        Args:
            wanted: number of functions; without it as many as its prior leaves anything of. It gets some
                to spare, or has as many as before, if these are about as many.
        """
        wanted = self.needed if wanted is None else wanted
        roomy = min(ceil(_ROOM * wanted), len(self.feature.eigenvalues))
        if wanted <= self.width <= _ROOM * roomy:
            return self
        own = self.prior.resized(self.feature.penalties[:, :roomy])
        size = len(own.groups)
        return replace(self, prior=own, mean=np.zeros(size), spread=Spread.nothing(size))

    @cached_property
    def needed(self) -> int:
        """Number of functions that the prior leaves anything of."""
        every = self.prior.resized(self.feature.penalties)
        needed = every.in_use(every.gram_diagonal).reshape(self.rank, -1)
        return int(np.flatnonzero(needed.any(axis=0)).max(initial=-1)) + 1

    def resized(self, width: int) -> FactorBlock:
        """The block with the first functions of the feature; new ones have the prior's variance."""
        if width == self.width:
            return self
        prior = self.prior.resized(self.feature.penalties[:, :width])
        shared = min(width, self.width)
        covariance = np.zeros((self.rank, width, self.rank, width))
        covariance[:, :shared, :, :shared] = self.covariance.reshape(2 * (self.rank, self.width))[
            :, :shared, :, :shared
        ]
        dispersion, new = self.spread.dispersion, np.tile(np.arange(width) >= shared, self.rank)
        covariance = covariance.reshape(2 * (self.rank * width,))
        if dispersion:
            covariance[new, new] = dispersion / prior.precisions[new]
        edf = resize(self.edf, self.rank, width)
        spread = Spread(covariance, edf, 0.0, self.spread.price, dispersion)
        return replace(self, prior=prior, mean=resize(self.mean, self.rank, width), spread=spread)

    def mean_like(self, other: Self) -> np.ndarray:
        return resize(self.mean, self.rank, other.width)

    # Factors -----------------------------------------------------------------------------------------

    def beside(self, other: FactorBlock) -> FactorBlock:
        """The block with the factors of another block of the same feature after its own."""
        width = max(self.width, other.width)
        if self.width < width or other.width < width:
            return self.resized(width).beside(other.resized(width))
        spread = Spread(
            block_diag(self.covariance, other.covariance),
            np.concatenate([self.edf, other.edf]),
            self.spread.log_determinant,
            self.spread.price,
            self.spread.dispersion,
        )
        mean = np.concatenate([self.mean, other.mean])
        return replace(self, prior=self.prior.beside(other.prior), mean=mean, spread=spread)

    def without(self, factor: int) -> FactorBlock:
        """The block with one factor less."""
        keep = np.repeat(np.arange(self.rank) != factor, self.width)
        covariance = self.covariance[np.ix_(keep, keep)]
        _, log_determinant = np.linalg.slogdet(covariance)
        spread = Spread(
            covariance, self.edf[keep], log_determinant, self.spread.price, self.spread.dispersion
        )
        return replace(self, prior=self.prior.without(factor), mean=self.mean[keep], spread=spread)

    @cached_property
    def posterior(self) -> Factors:
        """In coefficients of the basis functions."""
        coefficients = self.factors @ self.transform.T
        return Factors(coefficients, self._forms() if self.variational else None)

    def _forms(self) -> np.ndarray:
        """Covariances of pairs of factors as forms of the basis functions, bands `(M, width, P)`."""
        if isinstance(self.spread, KeptSpread):
            return self.spread.forms
        transform, rank = self.transform, self.rank
        blocks = self.covariance.reshape(rank, self.width, rank, self.width).swapaxes(1, 2)
        pairs = blocks[triangle(rank)]
        pairs = (pairs + pairs.swapaxes(1, 2)) / 2
        band = product_band(transform @ pairs, transform, self.feature.basis.width)
        return np.ascontiguousarray(band.transpose(1, 2, 0))

    def to_coordinates(self, gram: np.ndarray, rhs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bands of the Gram matrices of pairs, and sums `(F, M)`, of the basis -> the block's system."""
        return self.gram_matrix(gram), (rhs @ self.transform).reshape(-1)

    def gram_matrix(self, bands: np.ndarray) -> np.ndarray:
        """Bands of the Gram matrices of pairs in the basis -> the Gram matrix of the block."""
        rank, width = self.rank, self.width
        first, second = triangle(rank)
        blocks = np.empty((rank, width, rank, width))
        # Those of a pair are symmetric: they are the same for both orders of the factors.
        blocks[first, :, second] = blocks[second, :, first] = transform_band(bands, self.transform)
        return blocks.reshape(2 * (rank * width,))


# From a design --------------------------------------------------------------------------------------


def make_linear_block(design: Design, rows: float, variational: bool, settings: Settings) -> LinearBlock:
    """The linear block before a fit.

    Args:
        design: of the model.
        rows: n.
        variational: whether the data chooses the smoothing.
        settings: constants of the solvers.
    """
    layout = design.layout.only
    columns = LinearColumns(layout, settings.dense_numbers)
    starts = [
        start
        for place, span in enumerate(layout.penalised)
        for start in _prior_starts(span.block, place, rows, variational, settings)
    ]
    prior = make_prior(
        starts, rows, settings, layout.unpenalised, columns.intercept, layout.smoothing_index
    )
    return LinearBlock(prior, np.zeros(columns.size), Spread.nothing(columns.size), columns)


def _prior_starts(
    block: Columns, place: int, rows: float, variational: bool, settings: Settings
) -> list[PriorStart]:
    """Where the smoothing of each group of coefficients of a term starts."""
    whole = _prior_start(block, rows, variational, settings)
    if block.groups == 1 and not block.norms:
        return [whole]
    numbers = np.arange(block.groups)
    return [
        replace(
            whole,
            penalties=block.penalties[:, block.shares == number],
            shrunk=block.is_shrunk[block.shares == number],
            norm=norm,
            selection=place,
        )
        for number, norm in zip(numbers, block.norms, strict=True)
    ]


def _prior_start(block: Columns, rows: float, variational: bool, settings: Settings) -> PriorStart:
    """Where the smoothing of all coefficients of a term starts."""
    # A product of functions of d features costs what a factor of an `ahofm()` that has d would.
    margins = len(block.penalties) - block.atoms
    scales = margins if margins > 1 and not block.fixed else 0
    least = [least_smoothing(feature, rows, settings.gap_reach) for feature in block.features]
    return PriorStart(
        block.penalties, block.smoothing, rows, variational, block.fixed,
        settings.log_prior_odds * scales,
        tuple(least),
        settings.edf_penalty * any(feature.basis.is_spline for feature in block.features),
        _least_penalty(block), block.atoms, block.is_shrunk, block.inequalities, settings,
    )  # fmt: skip


def _least_penalty(block: Columns) -> float:
    """1 / s_1 of a smooth, s_1 the least penalty of a function that is not a straight line; else 0."""
    if len(block.features) != 1 or not block.features[0].basis.is_spline:
        return 0.0
    penalised = block.penalties[0][block.penalties[0] > 0]
    if not len(penalised):
        return 0.0
    return float(1 / penalised.min())
