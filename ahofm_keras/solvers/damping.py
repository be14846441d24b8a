"""Sweeps of families that are not gaussian: steps of a working response may be too long.

The working response is a straight line through the current mean. Where a step leads so far that this
line says nothing any more, half of it, or a quarter, does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ahofm_keras.solvers.engine import Engine


def damped(
    engine: Engine, updates: Sequence[Callable[[], None]], is_good: Callable[[], bool], halvings: int
) -> bool:
    """The first of some updates that leads to a good state, in full or halved a few times.

    Returns:
        Whether one did. If not, the state is the one before.
    """
    before = engine.state()
    for update in updates:
        update()
        if is_good():
            return True
        for _ in range(halvings):
            engine.blend(before)
            if is_good():
                return True
        engine.restore(before)
    return False
