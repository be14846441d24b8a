"""Groups of factors of one order, one block per feature."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ahofm_keras.solvers.blocks import FactorBlock
from ahofm_keras.solvers.gap_prior import least_smoothing
from ahofm_keras.solvers.prior_starts import PriorStart, make_prior
from ahofm_keras.solvers.settings import Settings
from ahofm_keras.solvers.spreads import Spread
from ahofm_keras.terms import Design, InteractionOrder

# Name of the term, which of its orders, and which group of that.
GroupKey = tuple[str, int, int]


@dataclass(frozen=True, eq=False)
class FactorGroup:
    """Some factors of one order of one interaction term, which covary; those of other groups do not.

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
    def is_active(self) -> np.ndarray:
        """Which factors of which features are not switched off, `(p, F)`."""
        return np.array([block.is_active for block in self.blocks])

    def price(self, settings: Settings) -> float:
        """Log prior odds against all its factors."""
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
        """The group with one factor less."""
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
    design: Design, rows: float, variational: bool, settings: Settings
) -> tuple[FactorGroup, ...]:
    """All groups of all orders of all interaction terms before a fit."""
    return tuple(
        make_group(order, number, rows, variational, settings)
        for order in design.layout.only.orders
        for number in range(order.groups)
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
