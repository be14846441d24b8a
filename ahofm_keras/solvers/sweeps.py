"""Sweeps as Keras epochs: callbacks, history, progress, validation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
from threadpoolctl import threadpool_limits

from ahofm_keras.errors import warn
from ahofm_keras.solvers.engine import Engine, State
from ahofm_keras.solvers.job import ASTRAY, NOT_CONVERGED, FitJob, Outcome, Rows
from ahofm_keras.solvers.posterior import forget_posterior
from ahofm_keras.solvers.progress import SweepLine
from ahofm_keras.solvers.sanity import is_in_range
from ahofm_keras.solvers.weights import write_weights

# A fitted probability that is closer to 0 or 1 is none.
_CERTAIN = 1e-8

Logs = dict[str, float]
Steps = Iterator[Engine | None]


def make_engine(model: Any, job: FitJob, *, random: bool, chosen: np.ndarray | None = None) -> Engine:
    """The model as blocks, on all rows of a job or on chosen ones."""
    rows = job.weighted_training()
    rows = rows if chosen is None else rows.take(chosen)
    # Several starts are fitted one by one; only their average fills the room that the model has.
    design = model.design.with_starts(1 if random else model.starts)
    rows, unit = (rows, 1.0) if model.family.dispersion_known else _with_mean_weight_1(rows)
    return Engine(
        design, model.family, rows, model.shift, model.scale, random=random,
        starts=job.restarts + 1, weight_unit=unit,
    )  # fmt: skip


def _with_mean_weight_1(rows: Rows) -> tuple[Rows, float]:
    """Rows with weights in units of their mean, and that unit.

    Where the dispersion is estimated, weights say how rows compare, and no more: their unit is the
    dispersion's.
    """
    if rows.weight is None:
        return rows, 1.0
    unit = float(np.mean(rows.weight[rows.weight > 0]))
    return rows.with_weight(rows.weight / unit), unit


def announced(engine: Engine, work: Callable[[], Any]) -> Steps:
    """A piece of work that counts as one sweep."""
    yield None
    work()
    yield engine


def run_sweeps(
    model: Any,
    job: FitJob,
    steps: Steps,
    limit: int,
    describe: Callable[[Engine], Logs],
    finish: Callable[[Any, Engine], None],
) -> Outcome:
    """Run a solver's sweeps under Keras callbacks; a sweep is an epoch.

    Args:
        model: gets the weights after every sweep.
        job: with the user's callbacks and how many sweeps there may be.
        steps: yields None before a sweep and the engine after it; ends when the fit has converged.
        limit: sweeps at most where the user does not say.
        describe: logs of a sweep.
        finish: writes what the model holds besides its weights.
    """
    epochs = limit if job.epochs is None else job.epochs
    first = int(job.keras_arguments.get("initial_epoch") or 0)
    history = keras.callbacks.History()
    callbacks = keras.callbacks.CallbackList(
        [history, *_shown(job), *job.callbacks], model=model, epochs=epochs, steps=1,
        add_progbar=job.verbose in (1, 2), verbose=job.verbose if job.verbose in (1, 2) else 0,
    )  # fmt: skip
    model.stop_training = False
    callbacks.on_train_begin()
    # Weights are written for those who look at them: that takes longer than many a sweep.
    watched = bool(job.callbacks)
    engine: Engine | None = None
    reached: State | None = None
    logs: Logs = {}
    epoch, more = first, True
    try:
        # The matrices of a block are small: threads inside their products cost more than they bring.
        with threadpool_limits(1, "blas"):
            while (
                not model.stop_training and (more := next(steps, False) is not False) and epoch < epochs
            ):
                callbacks.on_epoch_begin(epoch)
                callbacks.on_train_batch_begin(0)
                engine = next(steps)
                assert engine is not None
                reached = engine.state()
                if watched:
                    _leave_weights(model, engine)
                    finish(model, engine)
                logs = describe(engine) | _validate(model, job, engine, epoch)
                callbacks.on_train_batch_end(0, logs)
                callbacks.on_epoch_end(epoch, logs)
                epoch += 1
    finally:  # an interrupted fit leaves what it reached
        if engine is not None and reached is not None and not watched:
            # Since the last sweep the solver may have begun something else.
            engine.recall(reached)
            _leave_weights(model, engine)
    if engine is not None and not watched:
        with threadpool_limits(1, "blas"):
            finish(model, engine)
    callbacks.on_train_end(logs)
    converged = not (more and not model.stop_training and epochs > first)
    if not converged:
        # With further starts no single fit is there to go on from.
        advice = "Raise `epochs`." if job.restarts else "Call `fit` again to go on, or raise `epochs`."
        warn(f"{NOT_CONVERGED} (sweep {epochs}) before it converged. {advice}")
    if engine is not None:
        _warn_of_separation(engine)
        if not is_in_range(engine):
            converged = False
            warn(
                f"{ASTRAY}: the predictor of some rows is beyond anything that their response could ask "
                "for, and coefficients there have no meaning. Leave rare levels out, or write `s()` "
                "for categories, which shrinks them."
            )
    return Outcome(history, converged)


def _warn_of_separation(engine: Engine) -> None:
    """Where terms tell classes apart exactly, their coefficients grow without end."""
    if not engine.family.binary:
        return
    means = engine.on_rows(engine.mean)
    certain = int(np.sum((means < _CERTAIN) | (means > 1 - _CERTAIN)))
    if certain:
        warn(
            f"Fitted probabilities are 0 or 1 in {certain:,} of {len(means):,} rows: the model tells "
            "the classes apart there without error, and coefficients and standard errors of what does "
            f"so have no meaning. {_advice_on_separation(engine)}"
        )


def _advice_on_separation(engine: Engine) -> str:
    """What fits the terms of the model and the solver: `"bcd"` leaves straight lines unpenalised."""
    linear = [term for term in engine.design.terms if term.line is not None]
    named = ", ".join(f"`s({term.label})`" for term in linear[:3]) + (", ..." if linear[3:] else "")
    ways = [f"write linear terms as smooths, which are penalised: {named}"] if linear else []
    if not engine.random:
        ways.append('use `solver="variational"`, which penalises the straight lines of smooths too')
    if ways:
        return f"Leave it out, or {', and '.join(ways)}."
    return (
        "Look for a feature that only the outcome could tell, and leave it out; else take fewer "
        "functions (a smaller `k`) or fewer terms."
    )


def _leave_weights(model: Any, engine: Engine) -> None:
    forget_posterior(model)  # it is not that of these weights, should nothing come after
    write_weights(model, engine)


def _shown(job: FitJob) -> list[keras.callbacks.Callback]:
    return [SweepLine()] if job.verbose == "auto" else []


def _validate(model: Any, job: FitJob, engine: Engine, epoch: int) -> Logs:
    """Deviance of the training rows, and of the validation rows when it is their turn."""
    weight = sum(float(chunk.case_weight.sum()) for chunk in engine.chunks)
    logs = {"deviance": engine.deviance() / weight}
    frequency = job.keras_arguments.get("validation_freq") or 1
    if job.validation is None or (epoch + 1) % frequency:
        return logs
    if not isinstance(job.validation, Rows):
        _leave_weights(model, engine)
        steps = job.validation_steps
        values = keras.Model.evaluate(model, job.validation, verbose=0, steps=steps, return_dict=True)
        return logs | {f"val_{name}": float(value) for name, value in values.items()}
    rows = job.validation
    deviances = engine.family.unit_deviance(rows.y, engine.predict(rows), np)
    deviance = float(np.average(deviances, weights=rows.weight))
    return logs | {"val_deviance": deviance, "val_loss": deviance / (2 * engine.dispersion_unit)}
