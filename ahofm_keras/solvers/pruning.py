"""Switch off what the data does not need: factors of single features, whole factors, whole orders.

Every (lambda, tau) is chosen by the data, and a bound that is maximised over hundreds of them rises on
pure noise. The price of each is the Occam factor that integrating it out would give: a logarithm that
is known to about one unit, of a prior range of about twenty, costs 2 to 3. So each factor of a feature
that is active costs `COST`, and a factor or an order stays if the bound gains more from it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ahofm_keras.moments import elementary_symmetric
from ahofm_keras.solvers.blocks import FactorGroup
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.priors import ACTIVE, COST
from ahofm_keras.solvers.trials import attempt, score

_TOLERANCE = 0.05
_CANDIDATES = 3
# What is worth this many times its cost is not tried to be left out.
_WORTHWHILE = 10.0


def prune(engine: Engine) -> Iterator[Engine | None]:
    """Try to do without the weakest factors, then without each order; an attempt counts as a sweep."""
    weakest = _weakest(engine)
    while weakest:
        yield None
        dropped = attempt(engine, weakest.pop(0), score(engine) - _TOLERANCE)
        yield engine
        if dropped:
            weakest = _weakest(engine)
    for key in [group.key for group in reversed(engine.groups)]:
        rest = [group for group in engine.groups if group.key != key]
        if len(rest) < len(engine.groups) and _may_go(engine, key):
            yield None
            attempt(engine, rest, score(engine) - _TOLERANCE)
            yield engine


def drop_idle(engine: Engine) -> None:
    """Leave out factors that are active in fewer features than a product has: they add nothing."""
    groups = []
    for group in engine.groups:
        edf = np.array([block.factor_edf for block in group.blocks])
        idle = (edf > ACTIVE).sum(axis=0) < group.order
        for factor in np.flatnonzero(idle)[::-1]:
            group = group.without(int(factor))
        groups += [group] if group.rank else []
    if sum(group.rank for group in groups) < sum(group.rank for group in engine.groups):
        engine.groups = groups
        engine.rebuild()


def _weakest(engine: Engine) -> list[list[FactorGroup]]:
    """The groups without one factor, for the weakest of the factors that may go."""
    candidates = []
    for place, energies in enumerate(_energies(engine)):
        group = engine.groups[place]
        for factor, energy in enumerate(energies):
            active = sum(block.factor_edf[factor] > ACTIVE for block in group.blocks)
            if energy < _WORTHWHILE * COST * max(active, group.order):
                candidates.append((energy, place, factor))
    chosen = sorted(candidates)[:_CANDIDATES]
    return [_without(engine.groups, place, factor) for _, place, factor in chosen]


def _may_go(engine: Engine, key: tuple[str, int]) -> bool:
    """Whether an order is so weak that the model might do without it."""
    for group, energies in zip(engine.groups, _energies(engine), strict=True):
        if group.key == key:
            active = sum(block.active() for block in group.blocks)
            return float(energies.sum()) < _WORTHWHILE * COST * max(active, group.order)
    return False


def _energies(engine: Engine) -> list[np.ndarray]:
    """Half the squares of each factor over the dispersion: about what it is worth to the likelihood."""
    totals = [np.zeros(group.rank) for group in engine.groups]
    for chunk in engine.chunks:
        for total, group in zip(totals, engine.groups, strict=True):
            phi = np.stack([block.evaluate(chunk) for block in group.blocks])
            parts = elementary_symmetric(phi, group.order)
            total += (parts**2) @ chunk.weight / (2 * engine.dispersion)
    return totals


def _without(groups: list[FactorGroup], place: int, factor: int) -> list[FactorGroup]:
    smaller = groups[place].without(factor)
    rest = [smaller] if smaller.rank else []
    return [*groups[:place], *rest, *groups[place + 1 :]]
