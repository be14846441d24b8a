"""Go on with other factors for a few sweeps, and come back if that was not worth it."""

from __future__ import annotations

from collections.abc import Callable

from ahofm_keras.solvers.blocks import FactorGroup
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.priors import COST
from ahofm_keras.solvers.sanity import is_in_range

_SWEEPS = 2


def score(engine: Engine) -> float:
    """The bound less the price of what is active."""
    return engine.bound() - COST * engine.active()


def attempt(
    engine: Engine, groups: list[FactorGroup], goal: float, is_wanted: Callable[[], bool] = lambda: True
) -> bool:
    """Take other groups, and keep them if their score reaches a goal and they are still wanted then."""
    before = engine.state()
    engine.groups = groups
    engine.rebuild()
    engine.update_linear(adapt=1, revive=True)
    engine.update_dispersion()
    for _ in range(_SWEEPS):
        engine.sweep(adapt=1)
    if score(engine) >= goal and is_in_range(engine) and is_wanted():
        return True
    engine.restore(before)
    return False
