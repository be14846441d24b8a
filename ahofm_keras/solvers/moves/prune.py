"""Leave out factors that the data does not need, and with the last of them their order.

Every (lambda, tau) is chosen by the data, and a bound that is maximised over hundreds of them rises on
pure noise. The price of each is the Occam factor that integrating it out would give, see `Settings`. So
each factor of a feature that is active costs that, and a factor stays if the bound gains more from it.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from ahofm_keras.solvers import tasks
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.groups import factor_prices
from ahofm_keras.solvers.moves.move import Move, Proposal
from ahofm_keras.solvers.state import State


class PruneFactors(Move):
    """Do without one of the weakest factors."""

    name = "prune factors"

    def propose(self, engine: Engine, state: State, refused: frozenset[Hashable]) -> Proposal | None:
        candidates = []
        for group, energies in zip(state.groups, factor_worths(engine, state), strict=True):
            if group.is_surface:
                continue  # a sweep decides
            active = np.maximum(group.is_active.sum(axis=0), group.order)
            prices = factor_prices(active, group.order, engine.settings)
            most = engine.settings.prune_worth * prices
            for factor, energy in enumerate(energies):
                if energy < most[factor]:
                    candidates.append((energy, group.key, factor))
        for _, key, factor in sorted(candidates)[: engine.settings.prune_candidates]:
            if (key, factor) not in refused:
                own = next(group for group in state.groups if group.key == key)
                smaller = state.with_group(own.without(factor))
                return Proposal((key, factor), smaller, -engine.settings.prune_tolerance)
        return None


def factor_worths(engine: Engine, state: State) -> list[np.ndarray]:
    """Half the squares of each factor over the dispersion: about what it is worth to the likelihood.

    Of surfaces, which stay or go as a whole, there are none.
    """
    energies = engine.sums(tasks.factor_energies, state)
    return [own / (2 * state.dispersion) for own in energies]
