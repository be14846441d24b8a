"""Coordinate ascent on the evidence bound: sweeps that choose the smoothing, then which factors stay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count

import numpy as np

from ahofm_keras.solvers.damping import damped
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.moves import try_moves
from ahofm_keras.solvers.moves.drop_idle import DropIdle
from ahofm_keras.solvers.moves.grow import Grow
from ahofm_keras.solvers.moves.grow_group import GrowGroup
from ahofm_keras.solvers.moves.move import Move
from ahofm_keras.solvers.moves.prune import PruneFactors
from ahofm_keras.solvers.moves.surfaces import Surfaces
from ahofm_keras.solvers.state import Rough, State
from ahofm_keras.solvers.steps import Reached, Steps, announced, finish


def is_crowded(engine: Engine, state: State) -> bool:
    """Whether the fit takes so many degrees of freedom that it might be chance."""
    return state.edf > engine.settings.crowded_share * engine.total_weight


def complete(engine: Engine, state: State, other: State | None = None) -> Steps:
    """Take in what was missed; `other` is where another start has led, if there is one."""
    grown = yield from grow(engine, state, other)
    return grown if grown is state else (yield from settle(engine, grown))


def grow(engine: Engine, state: State, other: State | None = None) -> Steps:
    """Search every order until nothing is left in it.

    Where one group of factors was enough for another start no further ones are tried at random: trials
    that are refused are the longest part of a fit after its climbs.
    """
    orders = engine.design.layout.only.orders
    pairs = (own for own in orders if own.order == 2 and own.automatic and not own.fixed)
    moves: list[Move] = [
        Surfaces(own, climb)
        for own in pairs
        if other is None or any(group.is_surface for group in other.groups_of(own.key))
    ]
    moves += [Grow(engine.make_group(order, rank=1)) for order in orders]
    wanted = (order for order in orders if other is None or len(other.groups_of(order.key)) > 1)
    moves += [GrowGroup(order) for order in wanted if order.groups > 1]
    return (yield from try_moves(engine, state, moves))


def settle(engine: Engine, state: State) -> Steps:
    """Choose the smoothing, then which factors stay."""
    state = yield from climb(engine, state)
    if not state.groups:
        return state
    pruned = yield from try_moves(engine, state, [PruneFactors()])
    return state if pruned is state else (yield from climb(engine, pruned))


def warm_up(engine: Engine, state: State) -> Steps:
    """Sweeps at the smoothing that df asks for, while they change much."""

    def worth(state: State) -> float:
        # Factors have no variances yet: the bound, which counts them, says nothing of the first sweep.
        return -engine.objective(state)

    for _ in range(engine.settings.warm_up_sweeps):
        before = engine.objective(state)
        state = yield from announced(engine, partial(sweep, engine, state, worth))
        if before - engine.objective(state) < engine.settings.warm_up_fall * before:
            break
    return state


def climb(engine: Engine, state: State) -> Steps:
    """Sweeps that choose the smoothing too, until the bound stands still."""
    settings = engine.settings
    bounds = [engine.bound(state)]

    def worth(state: State) -> float:
        return engine.bound(state) / engine.total_weight

    for number in count(1):
        phase = number % settings.round
        yield None
        state = sweep(engine, state, worth, 1, phase == settings.window, not phase)
        if phase in (0, settings.window):
            state = finish(try_moves(engine, state, [DropIdle()]))
        bounds.append(engine.bound(state))
        yield Reached(engine, state)
        # Not while the window holds a sweep that switched factors off: the bound may have fallen.
        gain = bounds[-1] - bounds[max(len(bounds) - 1 - settings.window, 0)]
        if phase >= settings.window and gain < settings.window * least_gain(engine, state):
            break
    return state


def least_gain(engine: Engine, state: State) -> float:
    """What a sweep has to gain: enough to change the error, or what is known of the coefficients."""
    settings = engine.settings
    by_rows = settings.bound_gain * max(engine.total_weight, settings.few_rows)
    return float(min(by_rows, settings.edf_gain * max(state.edf, settings.few_edf)))


def sweep(
    engine: Engine,
    state: State,
    worth: Callable[[State], float],
    newton_steps: int = 0,
    prune_linear: bool = False,
    prune: bool = False,
) -> State:
    """One sweep; for other families than the gaussian at current weights, and damped if too long.

    Args:
        engine: of the fit.
        state: where it begins.
        worth: what may not fall, per row.
        newton_steps, prune_linear, prune: of `Engine.sweep`.
    """

    def whole(state: State) -> State:
        return engine.sweep(state, newton_steps, prune_linear, prune)

    if engine.family.is_linear:
        return whole(state)
    state = engine.linearise(state)
    goal = worth(state) - engine.settings.bound_slack

    def is_good(trial: State) -> bool:
        conceded = trial.conceded / engine.total_weight
        return worth(trial) >= goal - conceded and engine.is_in_range(trial)

    def cautiously(state: State) -> State:
        return whole(engine.linearise(state, Rough.FAR))

    updates = (whole, cautiously, engine.update_linear)
    reached = damped(engine, state, updates, is_good, engine.settings.halvings)
    return reached or replace(state, stalled=state.stalled + _promises_more(engine, state))


def _promises_more(engine: Engine, state: State) -> bool:
    """Whether a step of the linear block would gain by the working response, where none is good.

    At the optimum none is, nor at the end of a link's domain, where the shortest leads beyond it.
    """
    after = engine.update_linear(state)
    squares = [engine.expected_squares(own)[0] + own.linear.penalty for own in (state, after)]
    gain = (squares[0] - squares[1]) / (2 * state.dispersion * engine.total_weight)
    for _ in range(engine.settings.halvings):
        after = engine.half_way(after, state)
    return gain > engine.settings.bound_gain and bool(np.isfinite(engine.deviance(after)))
