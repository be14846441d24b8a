"""Is the fit worth more than its main effects alone?

The ascent with interactions ends in one of many optima, and where they hardly help, or where they take
so many degrees of freedom that they might be chance, the main effects alone may be worth more.
"""

from __future__ import annotations

from collections.abc import Hashable

from ahofm_keras.solvers.ascent import climb, complete, is_crowded
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.moves.move import Move, Proposal
from ahofm_keras.solvers.state import State
from ahofm_keras.solvers.steps import finish


class MainEffectsOnly(Move):
    """Start again from the main effects.

    Args:
        plain: their fit.
    """

    name = "main effects only"
    is_repeated = False

    def __init__(self, plain: State) -> None:
        self.plain = plain

    def propose(self, engine: Engine, state: State, refused: frozenset[Hashable]) -> Proposal | None:
        margin = engine.settings.crowded_margin if is_crowded(engine, state) else 0.0
        clear = engine.score(self.plain) + engine.settings.clear_margin
        if not margin and (not state.groups or engine.score(state) >= clear):
            return None
        return Proposal(self.name, engine.linearise(self.plain), -margin)

    def run(self, engine: Engine, proposal: Proposal) -> State:
        return finish(complete(engine, finish(climb(engine, proposal.state))))
