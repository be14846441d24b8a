"""Fit a surface of its own to every pair of features that the residuals show something of.

Random factors share what they are good at: where many pairs have effects of full rank, each group takes
a little of all of them, and a weak component of a surface is not worth the price of a product. So the
pairs are also fitted as tensor products, in place of the random factors, and stay if the evidence says so.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace

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
        if refused or engine.rows < engine.settings.surface_rows:
            return None
        template = engine.make_group(self.order, rank=1)
        if not significant_pairs(engine, state, template, self._known(state)):
            return None  # what there is the products explain
        own = [group for group in state.groups if group.factors.key == self.order.key]
        plain = replace(state, groups=tuple(g for g in state.groups if g not in own or g.is_surface))
        found = significant_pairs(engine, plain, template, self._known(state))
        proposed = self._with_surfaces(engine, plain, found)
        return None if proposed is plain else Proposal(tuple(found), proposed)

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
