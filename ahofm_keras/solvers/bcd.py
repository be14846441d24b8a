"""Block coordinate descent on the penalised deviance: exact blocks, lambda from df.

The paper's supplement steps through single factors; here all factors of a feature are solved at once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import keras

from ahofm_keras.solvers.damping import damped
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.job import FitJob, Outcome
from ahofm_keras.solvers.posterior import forget_posterior
from ahofm_keras.solvers.starts import draw_factors
from ahofm_keras.solvers.state import State
from ahofm_keras.solvers.steps import Reached, Steps, announced
from ahofm_keras.solvers.sweeps import make_engine, one_blas_thread, run_sweeps
from ahofm_keras.solvers.weights import read_weights


@one_blas_thread
def fit_bcd(model: Any, job: FitJob) -> Outcome:
    """Fit by exact block updates, going on from the model's weights.

    Stops when the objective stands still; with validation rows early, on their deviance, with the best
    weights restored.
    """
    engine = make_engine(model, job, variational=False)
    state = read_weights(model, engine.start())
    if job.validation is not None:
        stopping = keras.callbacks.EarlyStopping(
            f"val_{job.monitor}",
            mode="min",
            patience=job.settings.patience,
            restore_best_weights=True,
        )
        job = job.with_callback(stopping)
    sweeps = job.settings.descent_sweeps * (job.restarts + 1)
    return run_sweeps(model, job, _starts(engine, state, job), sweeps, _logs, _finish)


def _logs(engine: Engine, state: State) -> dict[str, float]:
    return {"loss": engine.objective(state), "edf": state.edf}


def _finish(model: Any, engine: Engine, state: State) -> None:
    forget_posterior(model)


def _starts(engine: Engine, state: State, job: FitJob) -> Steps:
    """From the model's weights, then from random factors; the best is kept."""
    best = state = yield from descend(engine, state)
    for start in range(1, job.restarts + 1):
        state = draw_factors(state, job.seed + start, job.settings.start_variance)
        state = yield from descend(engine, state)
        best = min(best, state, key=engine.objective)
    if not job.restarts:
        return best
    return (yield from announced(engine, lambda: best))


def descend(engine: Engine, state: State) -> Steps:
    """Sweeps until the objective stands still."""
    state = engine.linearise(state)
    while True:
        before = engine.objective(state)
        yield None
        state = _sweep(engine, state, before)
        yield Reached(engine, state)
        if before - engine.objective(state) <= engine.settings.descent_fall * abs(before):
            return state


def _sweep(engine: Engine, state: State, goal: float) -> State:
    """One sweep; for other families than the gaussian at current weights, and halved if too long."""
    if engine.family.is_linear:
        return engine.sweep(state)
    state = engine.linearise(state)

    def is_good(trial: State) -> bool:
        return engine.objective(trial) <= goal

    # Far from the optimum a step of all blocks leads astray where one of the linear block does not.
    updates = (engine.sweep, engine.update_linear)
    reached = damped(engine, state, updates, is_good, engine.settings.descent_halvings)
    if reached is not None:
        return reached
    # At the optimum no step is good, and none is bad.
    rise = engine.objective(engine.sweep(state)) - goal
    has_stalled = rise > engine.settings.descent_fall * abs(goal)
    return replace(state, stalled=state.stalled + has_stalled)
