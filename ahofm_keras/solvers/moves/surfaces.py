"""Fit a surface of its own to every pair of features that the residuals show something of.

Products are shared by all pairs of features. Where many pairs have effects of full rank every group
takes a little of each of them, and a weak component of a surface is not worth the price of a product. So
these pairs are also fitted as tensor products, in place of the random ones, and stay if the evidence
says so.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from math import comb, log

import numpy as np

from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.groups import can_be_surface
from ahofm_keras.solvers.moves.move import Move, Proposal
from ahofm_keras.solvers.moves.search import Subset, significant_pairs
from ahofm_keras.solvers.state import State
from ahofm_keras.solvers.steps import Steps, finish
from ahofm_keras.terms import InteractionOrder


class Surfaces(Move):
    """Surfaces in place of the products of random functions of an order of pairs.

    Args:
        order: of pairs.
        climb: sweeps until the bound stands still.
    """

    name = "surfaces"

    def __init__(self, order: InteractionOrder, climb: Callable[[Engine, State], Steps]) -> None:
        self.order, self.climb = order, climb

    def propose(self, engine: Engine, state: State, refused: frozenset[Hashable]) -> Proposal | None:
        if refused:
            return None
        template, known = engine.make_group(self.order, rank=1), self._known(state)
        if not significant_pairs(engine, state, template, known):
            return None  # the products explain what there is
        others = (own for own in state.groups if own.factors.key != self.order.key or own.is_surface)
        plain = replace(state, groups=tuple(others))
        found = significant_pairs(engine, plain, template, known)
        if len(known) + len(found) <= self.order.size:
            return None  # for so few pairs a group has factors enough
        if np.median([signal.mean for signal in found]) > engine.settings.surface_signal:
            return None
        pairs = [signal.pair for signal in found]
        proposed = self._with_surfaces(engine, plain, pairs)
        if len(proposed.surfaces) == len(plain.surfaces):
            return None
        every = comb(len(self.order.features), 2)
        return Proposal(tuple(pairs), proposed, log(comb(every, len(pairs))))

    def run(self, engine: Engine, proposal: Proposal) -> State:
        state = proposal.state
        for _ in range(engine.settings.surface_sweeps):
            state = engine.sweep(state)
        return finish(self.climb(engine, state))

    def _known(self, state: State) -> set[Subset]:
        own = (group.pair for group in state.groups_of(self.order.key) if group.is_surface)
        return {(min(pair), max(pair)) for pair in own}

    def _with_surfaces(self, engine: Engine, state: State, pairs: list[Subset]) -> State:
        """The state with a surface for each pair, as far as there is room."""
        used = {group.number for group in state.groups_of(self.order.key)}
        numbers = [number for number in range(self.order.groups) if number not in used]
        possible = [pair for pair in map(self._directed, pairs) if pair is not None]
        for number, pair in zip(numbers, possible, strict=False):
            state = state.with_group(engine.make_surface(self.order, number, pair))
        return state

    def _directed(self, pair: Subset) -> tuple[int, int] | None:
        """The feature that is given first; None where neither can be."""
        largest = self.order.size
        for given, other in (pair, pair[::-1]):
            if can_be_surface(self.order, given, other, largest):
                return given, other
        return None
