"""Look for interactions that the ascent has missed, and take them in.

Random factors feel an interaction only through the products that they happen to have, and what the
stronger interactions leave over is no more than noise to them: a triple beside a pair stays unseen. The
subset of features with the most beyond noise in the residuals gets factors of its own, started at the
best products of functions of single features, and keeps them if that is worth their price.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from functools import reduce

import numpy as np

from ahofm_keras.solvers.blocks import FactorBlock
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.groups import FactorGroup
from ahofm_keras.solvers.moves.grow_group import fit_group, free_number
from ahofm_keras.solvers.moves.move import Move, Proposal
from ahofm_keras.solvers.moves.search import Finding, price_of_search, search, smoothest
from ahofm_keras.solvers.state import State
from ahofm_keras.terms import InteractionOrder


class Grow(Move):
    """Factors more for one subset of features: a group of their own, where there is room for one.

    Args:
        template: the order with one factor, before a fit.
    """

    name = "grow"

    def __init__(self, template: FactorGroup) -> None:
        self.template = template

    def propose(self, engine: Engine, state: State, refused: frozenset[Hashable]) -> Proposal | None:
        room = self._room(state)
        if not is_next(state, self.template.factors):
            return None
        if not room or len(refused) >= engine.settings.search_refusals:
            return None
        found = search(engine, state, self.template, refused, len(room))
        if found is None:
            return None
        factors = tuple(room[: len(found.coefficients)])
        group = self._with_factors(state, factors, found)
        price = price_of_search(self.template)
        return Proposal(found.subset, state.with_group(group), price, group.key, factors)

    def run(self, engine: Engine, proposal: Proposal) -> State:
        return fit_group(engine, proposal, engine.settings.subset_sweeps)

    def _room(self, state: State) -> list[int]:
        """Factors of a group that is not in use, else those of any group that are not."""
        order = self.template.factors
        number = free_number(state, order)
        if number is not None:
            return list(order.factors_of(number))
        others = (own for own in state.groups_of(order.key) if not own.is_surface)
        left = (sorted(set(own.room) - set(own.kept)) for own in others)
        return next(filter(None, left), [])

    def _with_factors(self, state: State, kept: tuple[int, ...], found: Finding) -> FactorGroup:
        """The group with factors for what was found."""
        number = kept[0] // self.template.factors.size
        blocks = tuple(_start_block(block, j, found) for j, block in enumerate(self.template.blocks))
        old = state.group((*self.template.factors.key, number))
        if old is None:
            return replace(self.template, number=number, kept=kept, blocks=blocks)
        both = zip(old.blocks, blocks, strict=True)
        return replace(old, kept=(*old.kept, *kept), blocks=tuple(own.beside(new) for own, new in both))


def is_next(state: State, order: InteractionOrder) -> bool:
    """Whether an order is looked for: one that was asked for, a triple, the next after those in use."""
    used = (own.order for own in state.groups if own.factors.name == order.name)
    return not order.optional or order.order <= 1 + max(used, default=2)


def _start_block(template: FactorBlock, j: int, found: Finding) -> FactorBlock:
    """The factors of a feature: as they were found, or off if the feature is not in the subset."""
    if j not in found.subset:
        off = replace(template, prior=template.prior.without_effect(0))
        blocks = [off] * len(found.coefficients)
    else:
        blocks = []
        for product in found.coefficients:
            coefficients = product[found.subset.index(j)]
            mean = np.zeros(template.width)
            mean[smoothest(template, len(coefficients))] = coefficients
            blocks.append(replace(template, mean=mean))
    return reduce(FactorBlock.beside, blocks)
