"""Groups of factors of one order, one block per feature."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ahofm_keras.solvers.blocks import FactorBlock
from ahofm_keras.solvers.gap_prior import least_smoothing
from ahofm_keras.solvers.prior_shape import beside_given
from ahofm_keras.solvers.prior_starts import PriorStart, make_prior
from ahofm_keras.solvers.settings import Settings
from ahofm_keras.solvers.spreads import Spread
from ahofm_keras.terms import Design, Feature, InteractionOrder

# Name of the term, which of its orders, and which group of that.
GroupKey = tuple[str, int, int]


@dataclass(frozen=True, eq=False)
class FactorGroup:
    """Some factors of one order of one interaction term, which covary; those of other groups do not.

    A surface is a group of a pair in which the factors of one feature are given: its smoothest functions
    u_1..u_r. sum_f u_f(x) g_f(z) is linear in the g_f, which have the prior of a tensor product: a
    penalty per direction and one scale. So it is a `ti()` of r functions of x and any number of z, with
    its exact posterior, where a group of products has many optima and pays for each scale.

    Args:
        factors: of the design.
        number: of the group.
        kept: which of the order's factors the blocks hold; the others of the group are not in use.
        blocks: one per feature.
    """

    factors: InteractionOrder
    number: int
    kept: tuple[int, ...]
    blocks: tuple[FactorBlock, ...]

    @property
    def key(self) -> GroupKey:
        """Which group of which order of which term it is."""
        return *self.factors.key, self.number

    @property
    def room(self) -> range:
        """The order's factors that the group may hold."""
        return self.factors.factors_of(self.number)

    @property
    def order(self) -> int:
        return self.factors.order

    @property
    def rank(self) -> int:
        return len(self.kept)

    @property
    def is_surface(self) -> bool:
        """Whether the factors of one feature are given."""
        return any(block.is_given for block in self.blocks)

    @property
    def given(self) -> FactorBlock:
        """Of a surface, the factors that are given."""
        return next(block for block in self.blocks if block.is_given)

    @property
    def pair(self) -> tuple[int, int]:
        """Of a surface, the places of the feature whose factors are given and of the other."""
        shapes = (block.prior.shape.given for block in self.blocks)
        other = next(place for place, given in enumerate(shapes) if given is not None)
        return self.blocks.index(self.given), other

    @property
    def solved(self) -> FactorBlock:
        """Of a surface, the factors beside those that are given."""
        return self.blocks[self.pair[1]]

    @property
    def is_active(self) -> np.ndarray:
        """Which factors of which features are not switched off, `(p, F)`."""
        return np.array([block.is_active for block in self.blocks])

    def price(self, settings: Settings) -> float:
        """Log prior odds against all its factors; those against a surface are part of its prior."""
        if self.is_surface:
            return 0.0
        return float(factor_prices(self.is_active.sum(axis=0), self.order, settings).sum())

    def feature_prices(self, feature: int, settings: Settings) -> np.ndarray:
        """What the price of each factor falls by without one of its features, `(F,)`."""
        active = self.is_active
        others = active.sum(axis=0) - active[feature]
        with_it, without = (factor_prices(others + own, self.order, settings) for own in (1, 0))
        return with_it - without

    def with_block(self, feature: int, block: FactorBlock) -> FactorGroup:
        """The group with another block of one of its features."""
        return replace(self, blocks=(*self.blocks[:feature], block, *self.blocks[feature + 1 :]))

    def half_way_to(self, old: FactorGroup) -> FactorGroup:
        """Half the way back to the same factors of before."""
        pairs = zip(self.blocks, old.blocks, strict=True)
        return replace(self, blocks=tuple(own.half_way_to(before) for own, before in pairs))

    def without(self, factor: int) -> FactorGroup:
        """The group with one factor less; a surface is there as a whole or not at all."""
        if self.is_surface:
            return replace(self, kept=())
        kept = tuple(f for index, f in enumerate(self.kept) if index != factor)
        return replace(self, kept=kept, blocks=tuple(block.without(factor) for block in self.blocks))


def factor_prices(active: np.ndarray, order: int, settings: Settings) -> np.ndarray:
    """Log prior odds against factors of an order that are active in so many features.

    Those in too few have no effect, and no price.
    """
    same = settings.same_product * (order - 1) * (active == order)
    return np.where(active < order, 0.0, np.maximum(settings.log_prior_odds * active - same, 0.0))


# From a design --------------------------------------------------------------------------------------


def count_factor_blocks(design: Design) -> int:
    """Blocks of all orders of all interaction terms."""
    return sum(len(order.features) for order in design.layout.only.orders)


def make_groups(
    design: Design, rows: float, variational: bool, settings: Settings, most: int | None = None
) -> tuple[FactorGroup, ...]:
    """All groups of all orders of all interaction terms before a fit; of each order so many at most."""
    return tuple(
        make_group(order, number, rows, variational, settings)
        for order in design.layout.only.orders
        for number in range(order.groups)[:most]
    )


def make_group(
    order: InteractionOrder,
    number: int,
    rows: float,
    variational: bool,
    settings: Settings,
    rank: int | None = None,
) -> FactorGroup:
    """A group of an order before a fit, with all factors that it has room for or so many."""
    factors, blocks = order.factors_of(number)[:rank], []
    for position, feature, smoothing in zip(
        order.positions, order.features, order.smoothing, strict=True
    ):
        least = (least_smoothing(feature, rows, settings.gap_reach),)
        start = PriorStart(
            feature.penalties, (smoothing, *[feature.atom_smoothing] * bool(feature.atoms)), rows,
            variational, order.fixed, least=least, atoms=int(feature.atoms > 0), settings=settings,
        )  # fmt: skip
        prior = make_prior([start] * len(factors), rows, settings)
        prior = prior.resized(feature.penalties[:, : feature.atoms + settings.few_functions])
        size = len(prior.groups)
        nothing = Spread.nothing(size)
        block = FactorBlock(prior, np.zeros(size), nothing, feature, position, variational)
        blocks.append(block.prepared())
    return FactorGroup(order, number, tuple(factors), tuple(blocks))


# Surfaces ------------------------------------------------------------------------------------------


def can_be_surface(order: InteractionOrder, given: int, other: int, largest: int) -> bool:
    """Whether a pair may be a surface in which one of its features is given.

    Its smoothest functions have to be most of it: those of a spline, or all of a category.

    Args:
        order: of the pair.
        given, other: places of the features in the order.
        largest: number of functions that are given, at most.
    """
    feature, beside = order.features[given], order.features[other]
    few = len(feature.eigenvalues) <= largest
    return (feature.basis.is_spline or few) and min(count_splines(feature), count_splines(beside)) > 1


def count_splines(feature: Feature) -> int:
    """Number of functions of a feature but for its atoms."""
    return len(feature.eigenvalues) - feature.atoms


def make_surface(
    order: InteractionOrder, number: int, pair: tuple[int, int], rows: float, settings: Settings
) -> FactorGroup:
    """A surface before a fit.

    Args:
        order: of pairs.
        number: of the group.
        pair: place of the feature that is given, and of the other.
        rows: n.
        settings: constants of the solvers.
    """
    given, other = pair
    functions = order.features[given].smoothest(len(order.factors_of(number)))
    group = make_group(order, number, rows, True, settings, rank=len(functions))
    blocks = [replace(own, prior=own.prior.all_without_effect()) for own in group.blocks]
    blocks[given] = _given_block(group.blocks[given], functions)
    blocks[other] = _solved_block(order, pair, group.blocks[other], functions, rows, settings)
    return replace(group, blocks=tuple(blocks))


def find_surface(order: InteractionOrder, means: np.ndarray, edf: np.ndarray) -> tuple[int, int] | None:
    """The pair of which some factors are a surface; None where they are none.

    Args:
        order: of the factors.
        means: of their coefficients `(p, F, r)`.
        edf: degrees of freedom of each `(p, F)`.
    """
    if order.order != 2:
        return None
    for given in np.flatnonzero(~edf.any(axis=1) & means.any(axis=(1, 2))):
        functions = order.features[given].smoothest(means.shape[1])
        unit = np.zeros(means.shape[1:])
        unit[np.arange(len(functions)), functions] = 1.0
        others = np.flatnonzero(edf.any(axis=1))
        if np.array_equal(unit, means[given]) and len(others) == 1:
            return int(given), int(others[0])
    return None


def _given_block(block: FactorBlock, functions: np.ndarray) -> FactorBlock:
    """Each factor one function."""
    own = block.prepared(int(functions.max()) + 1)
    means = np.zeros((own.rank, own.width))
    means[np.arange(own.rank), functions] = 1.0
    return replace(own, mean=means.reshape(-1), is_given=True)


def _solved_block(
    order: InteractionOrder,
    pair: tuple[int, int],
    block: FactorBlock,
    functions: np.ndarray,
    rows: float,
    settings: Settings,
) -> FactorBlock:
    """What the given functions are multiplied by, with the prior of a tensor product."""
    feature, beside = (order.features[place] for place in reversed(pair))
    given = beside.eigenvalues[functions]
    settings = replace(settings, few_functions=settings.surface_functions)
    smoothing = [order.smoothing[place] for place in reversed(pair)]
    least = [least_smoothing(own, rows, settings.gap_reach) for own in (feature, beside)]
    start = PriorStart(
        beside_given(np.tile(feature.penalties, len(given)), given),
        (*smoothing, *[feature.atom_smoothing] * bool(feature.atoms)),
        rows, True, order.fixed, settings.log_prior_odds * order.order, tuple(least),
        atoms=int(feature.atoms > 0), settings=settings,
    )  # fmt: skip
    prior = make_prior([start], rows, settings)
    prior = replace(prior, shape=replace(prior.shape, given=given))
    prior = prior.resized(feature.penalties[:, : feature.atoms + settings.few_functions])
    size = len(prior.groups)
    return replace(block, prior=prior, mean=np.zeros(size), spread=Spread.nothing(size)).prepared()
