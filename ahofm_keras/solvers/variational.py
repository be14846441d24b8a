"""Mean-field posterior over blocks: every smoothing parameter is chosen by the data, nothing is tuned.

Coordinate ascent on the evidence bound. The start decides where it ends: the bound has a local optimum
without any interaction, and steps on the smoothing that are taken while the noise is still
overestimated fall into it. So the linear block is solved first, factors are then fitted at the
smoothing that `df` asks for, and only then is the smoothing chosen.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ahofm_keras.errors import warn
from ahofm_keras.solvers.ascent import climb, complete, grow, is_crowded, settle, sweep, warm_up
from ahofm_keras.solvers.averaging import are_enough, average_states
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.job import FitJob, Outcome, is_no_worse
from ahofm_keras.solvers.moves import try_moves
from ahofm_keras.solvers.moves.main_effects import MainEffectsOnly
from ahofm_keras.solvers.moves.reset_smoothing import ResetSmoothing
from ahofm_keras.solvers.origin import begin_at
from ahofm_keras.solvers.posterior import read_posterior, write_posterior
from ahofm_keras.solvers.settings import Settings
from ahofm_keras.solvers.starts import draw_factors
from ahofm_keras.solvers.state import Rough, State
from ahofm_keras.solvers.steps import Steps, announced, finish
from ahofm_keras.solvers.sweeps import make_engine, one_blas_thread, run_sweeps


@one_blas_thread
def fit_variational(model: Any, job: FitJob) -> Outcome:
    """Fit by coordinate ascent on the evidence bound; the posterior stays in the model."""
    engine = make_engine(model, job, variational=True)
    known = read_posterior(model, engine)
    if known is not None:
        steps = _go_on(engine, known)
    elif job.origin is not None:
        steps = _go_on_elsewhere(engine, begin_at(model, engine, job.origin))
    else:
        steps = _starts(engine, model, job)
    sweeps = job.settings.variational_sweeps * (job.restarts + 1)
    return run_sweeps(model, job, steps, sweeps, _logs, write_posterior)


def _logs(engine: Engine, state: State) -> dict[str, float]:
    bound = float(np.mean(state.bounds)) if state.bounds else engine.bound(state)
    return {"loss": -bound / engine.total_weight, "bound": bound, "edf": state.edf}


def _starts(engine: Engine, model: Any, job: FitJob) -> Steps:
    """Fits from several starts, averaged."""
    states: list[State] = []
    for start in range(job.restarts + 1):
        other = states[0] if states else None
        states.append((yield from _one_start(engine, model, job, job.seed + start, other)))
        if job.until_agreed and (is_same_from_any(engine, states[0]) or are_enough(engine, states)):
            break
    if len(states) == 1:
        return states[0]
    design = model.design.with_starts(len(states))
    average = average_states(states, [engine.bound(state) for state in states], design)
    return (yield from announced(engine, lambda: average))


def is_same_from_any(engine: Engine, state: State) -> bool:
    """Whether next to nothing of a fit was drawn: surfaces, unlike products, have one optimum."""
    drawn = (group for group in state.groups if not group.is_surface)
    edf = sum(float(block.edf.sum()) for group in drawn for block in group.blocks if block.is_updated)
    return bool(state.surfaces) and edf <= engine.settings.drawn_share * state.edf


def _one_start(engine: Engine, model: Any, job: FitJob, seed: int, other: State | None = None) -> Steps:
    """A whole fit; of many rows a sample, and of many in it a sample of that, finds the start."""
    sizes = sample_sizes(engine.rows, engine.settings)
    if sizes:
        state = yield from _from_samples(engine, model, job, seed, sizes)
        if not is_astray(engine, state):
            return state
        warn(
            f"The fit that a sample of {sizes[0]:,} rows started went astray on all {engine.rows:,}: "
            "it is fitted again without a sample, which takes longer."
        )
    return (yield from ascend(engine, seed, other))


def is_astray(engine: Engine, state: State) -> bool:
    """Whether a fit is worse than the intercept alone, or its predictor out of range."""
    deviances = engine.deviance(state), engine.null_deviance(state)
    rows, unit = engine.total_weight, engine.response.dispersion_unit
    return not (is_no_worse(*deviances, rows, unit) and engine.is_in_range(state))


def _from_samples(engine: Engine, model: Any, job: FitJob, seed: int, sizes: list[int]) -> Steps:
    """A fit to samples of growing size, then to all rows."""
    order = np.random.default_rng(seed).permutation(engine.rows)
    chosen = (np.sort(order[:size]) for size in sizes)
    samples = (make_engine(model, job, variational=True, chosen=rows) for rows in chosen)
    state = yield from ascend(next(samples), seed)
    for larger in (*samples, engine):
        state = yield from _go_on_elsewhere(larger, state)
    return state


def _go_on_elsewhere(engine: Engine, state: State) -> Steps:
    """Sweeps from a state that was reached on fewer or other rows: these may show what those did not."""
    state = yield from _go_on(engine, state, Rough.FAR)
    grown = yield from grow(engine, state)
    return state if grown is state else (yield from climb(engine, grown))


def sample_sizes(rows: int, settings: Settings) -> list[int]:
    """Sizes of the samples that come before all rows, each a tenth of the next at the least."""
    sizes: list[int] = []
    while rows > 2 * settings.sample_rows:
        rows = max(rows // settings.sample_growth, settings.sample_rows)
        sizes.insert(0, rows)
    return sizes


def _go_on(engine: Engine, state: State, rough: Rough = Rough.NONE) -> Steps:
    """Sweeps from a state that was reached before, on these rows or on others."""
    state = engine.linearise(replace(state, working=None, linear_gram=None), rough)
    return (yield from climb(engine, _reset_smoothing(engine, state)))


def _reset_smoothing(engine: Engine, state: State) -> State:
    """The linear block, with its smoothing chosen once more if that is better."""
    return finish(try_moves(engine, engine.update_linear(state), [ResetSmoothing()]))


def ascend(engine: Engine, seed: int, other: State | None = None) -> Steps:
    """A whole fit from random factors, yielding after every sweep.

    Args:
        engine: of the fit.
        seed: of the random factors.
        other: where another start has led, if there is one.
    """
    state = engine.start(groups=1)
    start = _start_linear(engine, replace(state, groups=()))
    plain = _fit_linear(engine, start)
    if not state.groups:
        return (yield from climb(engine, plain))
    # Now the factors, which are 0, count in the dispersion as if they explained their share: it is
    # underestimated, and that helps. Where noise is overestimated factors die before they fit.
    first = tuple(own for own in state.groups if not own.factors.optional)
    state = replace(plain, dispersion=1.0, linear=start.linear, groups=first)
    state = _fit_linear(engine, engine.linearise(state, Rough.ALL))
    state = _draw_in_range(engine, state, seed)
    state = yield from warm_up(engine, state)
    # It was chosen while the interactions, which are there now, were noise.
    state = _reset_smoothing(engine, state)
    state = yield from settle(engine, state)
    state = yield from complete(engine, state, other)
    return (yield from try_moves(engine, state, [MainEffectsOnly(plain)]))


def _draw_in_range(engine: Engine, state: State, seed: int) -> State:
    """Random factors, smaller where products of tails would lead a predictor far from its response."""
    variance = engine.settings.start_variance
    drawn = draw_factors(state, seed, variance)
    while not engine.is_in_range(drawn) and variance > engine.settings.least_start_variance:
        variance /= 100
        drawn = draw_factors(state, seed, variance)
    return drawn


def _start_linear(engine: Engine, state: State) -> State:
    """The linear block alone, at the smoothing that df asks for or, where that is crowded, at more."""
    state = engine.update_linear(engine.linearise(state, Rough.ALL))
    if is_crowded(engine, state):
        # The functions could explain every row, noise and all: the dispersion would fall to nothing and
        # the smoothing with it. So that is first chosen as if all were noise.
        state = engine.update_linear(state, newton_steps=engine.settings.crowded_steps)
    return state


def _fit_linear(engine: Engine, state: State) -> State:
    """The linear block alone, with its smoothing."""
    for _ in range(engine.settings.linear_updates):
        state = engine.linearise(engine.update_dispersion(state))
        state = engine.update_linear(state, newton_steps=1)
    state = engine.update_dispersion(state)
    if np.isfinite(engine.deviance(state)) and engine.is_in_range(state):
        return state
    # A step led to where there is no mean, or none that could be meant: from the intercept alone, with
    # steps that are halved where they are too long.
    plain = engine.linearise(replace(state, linear=engine.start(groups=0).linear, groups=()))
    plain = engine.update_dispersion(plain)
    for _ in range(engine.settings.linear_updates):
        plain = sweep(engine, plain, lambda own: -engine.objective(own))
    return engine.update_dispersion(engine.linearise(replace(plain, groups=state.groups)))
