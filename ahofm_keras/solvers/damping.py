"""Sweeps of families that are not gaussian: steps of a working response may be too long.

The working response is a straight line through the current mean. Where a step leads so far that this
line says nothing any more, half of it, or a quarter, does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.state import State

Update = Callable[[State], State]


def damped(
    engine: Engine,
    before: State,
    updates: Sequence[Update],
    is_good: Callable[[State], bool],
    halvings: int,
) -> State | None:
    """The first good state that some updates lead to, in full or halved a few times; else None."""
    for update in updates:
        state = update(before)
        for _ in range(halvings):
            if is_good(state):
                return state
            state = engine.half_way(state, before)
        if is_good(state):
            return state
    return None
