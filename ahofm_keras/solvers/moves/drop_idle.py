"""Leave out factors that are active in fewer features than a product has: they add nothing."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.moves.move import Move, Proposal
from ahofm_keras.solvers.state import State


class DropIdle(Move):
    """Nothing is lost, so there is nothing to try."""

    name = "drop idle"
    is_repeated = False

    def propose(self, engine: Engine, state: State, refused: frozenset[Hashable]) -> Proposal | None:
        smaller = state
        for group in state.groups:
            idle = group.is_active.sum(axis=0) < group.order
            for factor in np.flatnonzero(idle)[::-1]:
                group = group.without(int(factor))
            smaller = smaller.with_group(group) if idle.any() else smaller
        return None if smaller is state else Proposal(self.name, smaller, -np.inf)

    def run(self, engine: Engine, proposal: Proposal) -> State:
        return proposal.state
