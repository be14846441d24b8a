"""Give what the groups of factors before left over to a further group.

Groups that start at random beside each other die: each sees the noise of the others. So they come one
after the other, and a new one is first fitted to the residuals alone.
"""

from __future__ import annotations

from collections.abc import Hashable

from ahofm_keras.draws import generator
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.moves.move import Move, Proposal
from ahofm_keras.solvers.starts import draw_group
from ahofm_keras.solvers.state import State
from ahofm_keras.terms import InteractionOrder


class GrowGroup(Move):
    """A group of random factors of all features.

    Args:
        order: of an interaction.
    """

    name = "grow group"

    def __init__(self, order: InteractionOrder) -> None:
        self.order = order

    def propose(self, engine: Engine, state: State, refused: frozenset[Hashable]) -> Proposal | None:
        number = free_number(state, self.order)
        if number is None or refused:
            return None
        if self.order.optional and not state.groups_of(self.order.key):
            return None  # where the search found nothing random factors need not be tried
        group = engine.make_group(self.order, number)
        variance = engine.settings.start_variance * state.dispersion
        group = draw_group(group, generator(number, "groups"), variance)
        return Proposal(number, state.with_group(group), group=group.key, factors=group.kept)

    def run(self, engine: Engine, proposal: Proposal) -> State:
        settings = engine.settings
        state = fit_group(engine, proposal, settings.group_sweeps, settings.group_warm_up)
        for _ in range(settings.trial_sweeps):
            state = engine.sweep(state, newton_steps=1)
        return state


def free_number(state: State, order: InteractionOrder) -> int | None:
    """Of a group of an order that is not in use, if there is one."""
    used = {group.number for group in state.groups_of(order.key)}
    return min(set(range(order.groups)) - used, default=None)


def fit_group(engine: Engine, proposal: Proposal, sweeps: int, warm_up: int = 0) -> State:
    """The proposed group fitted to the residuals of all others.

    Args:
        engine: of the fit.
        proposal: of a group.
        sweeps: over this group, which choose its smoothing.
        warm_up: sweeps before these, which do not.
    """
    state = proposal.state
    (index,) = (place for place, own in enumerate(state.groups) if own.key == proposal.group)
    for number in range(warm_up + sweeps):
        state = engine.sweep_group(state, index, newton_steps=int(number >= warm_up))
        state = engine.update_dispersion(state)
    return engine.sweep_group(state, index, 1, prune=True)
