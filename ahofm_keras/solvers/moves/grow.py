"""Look for interactions that the ascent has missed, and take them in.

Random factors feel an interaction only through the products that they happen to have, and what the
stronger interactions leave over is no more than noise to them: a triple beside a pair stays unseen. The
subset of features with the most beyond noise in the residuals gets a factor of its own, started at the
best product of functions of single features, and keeps it if that is worth its price.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from ahofm_keras.solvers.blocks import FactorBlock, FactorGroup
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.moves.move import Move, Proposal
from ahofm_keras.solvers.moves.search import Finding, price_of_search, search, smoothest
from ahofm_keras.solvers.state import State


class Grow(Move):
    """A factor more of one order.

    Args:
        template: the order with one factor, before a fit.
    """

    name = "grow"

    def __init__(self, template: FactorGroup) -> None:
        self.template = template

    def propose(self, engine: Engine, state: State, refused: frozenset[Hashable]) -> Proposal | None:
        slot = self._free_slot(state)
        if slot is None or len(refused) >= engine.settings.search_refusals:
            return None
        found = search(engine, state, self.template, refused)
        if found is None:
            return None
        grown = state.with_group(self._with_factor(state, slot, found))
        return Proposal(found.subset, grown, price_of_search(self.template))

    def is_effective(self, trial: State) -> bool:
        group = trial.group(self.template.key)
        return group is not None and int(group.is_active[:, -1].sum()) >= group.order

    def _free_slot(self, state: State) -> int | None:
        """A factor of the first group that is not in use, if there is one."""
        group = state.group(self.template.key)
        return min(set(self.template.room) - set(group.kept if group else ()), default=None)

    def _with_factor(self, state: State, slot: int, found: Finding) -> FactorGroup:
        """The order with a factor for what was found."""
        old = state.group(self.template.key)
        blocks = tuple(_start_block(block, j, found) for j, block in enumerate(self.template.blocks))
        if old is None:
            return replace(self.template, kept=(slot,), blocks=blocks)
        both = zip(old.blocks, blocks, strict=True)
        return replace(old, kept=(*old.kept, slot), blocks=tuple(own.beside(new) for own, new in both))


def _start_block(template: FactorBlock, j: int, found: Finding) -> FactorBlock:
    """One factor of a feature: as it was found, or switched off if the feature is not in the subset."""
    if j not in found.subset:
        return replace(template, prior=template.prior.without_effect(0))
    coefficients = found.coefficients[found.subset.index(j)]
    mean = np.zeros(template.width)
    mean[smoothest(template, len(coefficients))] = coefficients
    return replace(template, mean=mean)
