"""A group of factors more, for what the groups before it left over."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.moves.move import Move, Proposal
from ahofm_keras.solvers.starts import draw_group
from ahofm_keras.solvers.state import State
from ahofm_keras.terms import InteractionOrder


class GrowGroup(Move):
    """A group of random factors, fitted to the residuals before it is fitted beside the others."""

    name = "grow group"

    def __init__(self, order: InteractionOrder) -> None:
        self.order = order

    def propose(self, engine: Engine, state: State, refused: frozenset[Hashable]) -> Proposal | None:
        used = {group.number for group in state.groups_of(self.order.key)}
        number = min(set(range(self.order.groups)) - used, default=None)
        if number is None or len(refused) >= int(__import__("os").environ.get("REF", 1)):
            return None
        group = engine.make_group(self.order, number)
        rng = np.random.default_rng((number, len(refused)))
        group = draw_group(group, rng, 0.05 * state.dispersion)
        self.key = group.key
        return Proposal((group.key, len(refused)), replace(state, groups=(*state.groups, group)))

    def run(self, engine: Engine, state: State) -> State:
        last = len(state.groups) - 1
        import os
        for _ in range(int(os.environ.get("WARM", 5))):
            state = engine.update_dispersion(engine.sweep_group(state, last))
        for _ in range(int(os.environ.get("NEWT", 10))):
            state = engine.update_dispersion(engine.sweep_group(state, last, 1))
        state = engine.sweep_group(state, last, 1, engine.settings.log_prior_odds)
        for _ in range(engine.settings.trial_sweeps):
            state = engine.sweep(state, newton_steps=1)
        return state

    def is_effective(self, trial: State) -> bool:
        group = trial.group(self.key)
        return group is not None and bool((group.is_active.sum(axis=0) >= group.order).any())
