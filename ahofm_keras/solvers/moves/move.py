"""A move proposes another state; a few sweeps show what it is worth; it stays if the score allows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.groups import GroupKey
from ahofm_keras.solvers.state import State
from ahofm_keras.solvers.steps import Reached, Steps


@dataclass(frozen=True, eq=False)
class Proposal:
    """Another state.

    Args:
        key: tells it from other proposals of the same move.
        state: where its sweeps begin.
        price: log prior odds against it: what the score must gain.
        group: in which factors are new, if any are.
        factors: of the group's order that are new.
    """

    key: Hashable
    state: State
    price: float = 0.0
    group: GroupKey | None = None
    factors: tuple[int, ...] = ()


class Move(ABC):
    """A way to another state.

    Attributes:
        name: for `Settings.moves_off`.
        is_repeated: whether it proposes again after what was proposed first.
    """

    name: ClassVar[str]
    is_repeated: ClassVar[bool] = True

    @abstractmethod
    def propose(self, engine: Engine, state: State, refused: frozenset[Hashable]) -> Proposal | None:
        """The next proposal; None where there is none.

        Args:
            engine: of the fit.
            state: which has been reached.
            refused: keys of proposals from this state that were not worth it.
        """

    def run(self, engine: Engine, proposal: Proposal) -> State:
        """What a proposal has to show what it is worth: by default a few sweeps."""
        state = engine.update_linear(proposal.state, newton_steps=1, prune=True)
        state = engine.update_dispersion(state)
        for _ in range(engine.settings.trial_sweeps):
            state = engine.sweep(state, newton_steps=1)
        return state


def is_effective(trial: State, proposal: Proposal) -> bool:
    """Whether a trial still has a new factor of enough features: sweeps alone raise the score."""
    if proposal.group is None:
        return True
    group = trial.group(proposal.group)
    if group is None:
        return False
    new = np.isin(group.kept, proposal.factors)
    return bool((group.is_active[:, new].sum(axis=0) >= group.order).any())


def accept_if_better(engine: Engine, state: State, move: Move, proposal: Proposal) -> State | None:
    """Where the trial of a proposal ends, if its score exceeds that of a state by its price."""
    trial = move.run(engine, proposal)
    is_better = engine.score(trial) >= engine.score(state) + proposal.price
    return trial if is_better and engine.is_in_range(trial) and is_effective(trial, proposal) else None


def try_moves(engine: Engine, state: State, moves: Sequence[Move]) -> Steps:
    """Each move until it proposes nothing; a trial counts as a sweep.

    Returns:
        The state: another one if any proposal was accepted.
    """
    for move in moves:
        refused: frozenset[Hashable] = frozenset()
        while move.name not in engine.settings.moves_off:
            proposal = move.propose(engine, state, refused)
            if proposal is None or proposal.key in refused:
                break
            yield None
            accepted = accept_if_better(engine, state, move, proposal)
            refused = frozenset() if accepted else refused | {proposal.key}
            state = accepted or state
            yield Reached(engine, state)
            if not move.is_repeated:
                break
    return state
