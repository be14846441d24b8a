"""Block coordinate descent on the penalised deviance: exact blocks, lambda from df.

The paper's supplement steps through single factors; here all factors of a feature are solved at once.
"""

from __future__ import annotations

from typing import Any

import keras

from ahofm_keras.solvers.damping import damped
from ahofm_keras.solvers.engine import Engine, State
from ahofm_keras.solvers.job import FitJob, Outcome
from ahofm_keras.solvers.posterior import forget_posterior
from ahofm_keras.solvers.starts import draw_factors
from ahofm_keras.solvers.sweeps import Steps, announced, make_engine, run_sweeps
from ahofm_keras.solvers.weights import read_weights

SWEEPS = 1000
PATIENCE = 20
# The fit has converged when the objective falls by less than this share in a sweep.
_FALL = 1e-6
_HALVINGS = 15


def fit_bcd(model: Any, job: FitJob) -> Outcome:
    """Fit by exact block updates, going on from the model's weights.

    Stops when the objective stands still; with validation rows early, on their deviance, with the best
    weights restored.
    """
    engine = make_engine(model, job, random=False)
    read_weights(model, engine)
    if job.validation is not None:
        stopping = keras.callbacks.EarlyStopping(
            f"val_{job.monitor}", mode="min", patience=PATIENCE, restore_best_weights=True
        )
        job = job.with_callback(stopping)
    return run_sweeps(model, job, _starts(engine, job), SWEEPS * (job.restarts + 1), _logs, _finish)


def _logs(engine: Engine) -> dict[str, float]:
    return {"loss": engine.objective(), "edf": engine.edf()}


def _finish(model: Any, engine: Engine) -> None:
    forget_posterior(model)


def _starts(engine: Engine, job: FitJob) -> Steps:
    """From the model's weights, then from random factors; the best is kept."""
    best: tuple[float, State] | None = None
    for start in range(job.restarts + 1):
        if start:
            draw_factors(engine.groups, job.seed + start)
            engine.rebuild()
        yield from descend(engine)
        reached = engine.objective()
        if best is None or reached < best[0]:
            best = reached, engine.state()
    if job.restarts and best is not None:
        kept = best[1]
        yield from announced(engine, lambda: engine.restore(kept))


def descend(engine: Engine) -> Steps:
    """Sweeps until the objective stands still."""
    value = engine.objective()
    engine.linearise()
    while True:
        before = value
        yield None
        value = _sweep(engine, before)
        yield engine
        if before - value <= _FALL * abs(before):
            return


def _sweep(engine: Engine, goal: float) -> float:
    """One sweep; for other families than the gaussian at current weights, and halved if too long."""
    if engine.family.is_linear:
        engine.sweep()
        return engine.objective()
    engine.linearise()
    # Far from the optimum a step of all blocks leads astray where one of the linear block does not.
    updates = (engine.sweep, engine.update_linear)
    return (
        engine.objective()
        if damped(engine, updates, lambda: engine.objective() <= goal, _HALVINGS)
        else goal
    )
