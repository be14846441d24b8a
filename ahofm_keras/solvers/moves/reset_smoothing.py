"""The smoothing of all smooths and tensor products from where it started.

At a large tau, and at a large lambda, the evidence is flat: steps do not lead back from there. What was
chosen while interactions were noise, or on fewer rows, may be in the wrong one of several optima.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.moves.move import Move, Proposal
from ahofm_keras.solvers.state import State


class ResetSmoothing(Move):
    """All of them together: what explains something only together comes back together."""

    name = "reset smoothing"
    is_repeated = False

    def propose(self, engine: Engine, state: State, refused: frozenset[Hashable]) -> Proposal | None:
        prior = state.linear.prior
        linear = replace(state.linear, prior=prior.at(prior.start))
        return Proposal(self.name, replace(state, linear=linear))

    def run(self, engine: Engine, proposal: Proposal) -> State:
        return engine.update_linear(proposal.state, newton_steps=engine.settings.reset_steps)
