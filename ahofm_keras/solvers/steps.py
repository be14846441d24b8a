"""How a solver tells of its sweeps: None before each, and where it has come after it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple

from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.state import State


class Reached(NamedTuple):
    """Where a solver has come, and the engine whose rows it works on."""

    engine: Engine
    state: State


Steps = Generator[Reached | None, None, State]


def announced(engine: Engine, work: Callable[[], State]) -> Steps:
    """A piece of work that counts as one sweep."""
    yield None
    state = work()
    yield Reached(engine, state)
    return state


def finish(steps: Generator[Any, None, State]) -> State:
    """Run to the end; where that is."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            state: State = end.value
            return state
