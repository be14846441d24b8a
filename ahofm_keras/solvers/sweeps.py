"""Sweeps as Keras epochs: callbacks, history, progress, validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from threadpoolctl import threadpool_limits

from ahofm_keras.errors import warn
from ahofm_keras.solvers import tasks
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.job import ASTRAY, NOT_CONVERGED, STALLED, FitJob, Outcome, Rows
from ahofm_keras.solvers.opaque import given_opaque
from ahofm_keras.solvers.posterior import forget_posterior
from ahofm_keras.solvers.progress import SweepLine
from ahofm_keras.solvers.state import State
from ahofm_keras.solvers.steps import Reached, Steps
from ahofm_keras.solvers.weights import write_weights
from ahofm_keras.terms import Design

Logs = dict[str, float]


# The matrices of a block are small: threads inside their products cost more than they bring.
one_blas_thread = threadpool_limits.wrap(limits=1, user_api="blas")


def make_engine(
    model: Any, job: FitJob, *, variational: bool, chosen: np.ndarray | None = None
) -> Engine:
    """The model as blocks, on all rows of a job or on chosen ones."""
    rows = job.weighted_training()
    rows = given_opaque(model, rows if chosen is None else rows.take(chosen))
    # Several starts are fitted one by one; only their average fills the room that the model has.
    design = model.design.with_starts(1) if variational else _with_groups_in_use(model)
    rows, unit = (rows, 1.0) if model.family.dispersion_known else _with_mean_weight_1(rows)
    return Engine(
        design, model.family, rows, model.shift, model.scale,
        variational=variational, starts=job.restarts + 1, weight_unit=unit, settings=job.settings,
    )  # fmt: skip


def _with_groups_in_use(model: Any) -> Design:
    """The design with the groups of factors that the model has."""
    counts: dict[str, list[int]] = {}
    for order in model.design.layout.only.orders:
        used = model.get_layer(order.name).in_use[order.index]
        counts.setdefault(order.name, []).append(-(-used // order.size))
    return model.design.with_groups(counts)


def _with_mean_weight_1(rows: Rows) -> tuple[Rows, float]:
    """Rows with weights in units of their mean, and that unit.

    Where the dispersion is estimated, weights say how rows compare, and no more: their unit is the
    dispersion's.
    """
    if rows.weight is None:
        return rows, 1.0
    unit = float(np.mean(rows.weight[rows.weight > 0]))
    return rows.with_weight(rows.weight / unit), unit


def run_sweeps(
    model: Any,
    job: FitJob,
    steps: Steps,
    limit: int,
    describe: Callable[[Engine, State], Logs],
    finish: Callable[[Any, Engine, State], None],
) -> Outcome:
    """Run a solver's sweeps under Keras callbacks; a sweep is an epoch.

    Args:
        model: gets the weights after every sweep.
        job: with the user's callbacks and how many sweeps there may be.
        steps: yields None before a sweep and where it led after it; ends when the fit has converged.
        limit: sweeps at most where the user does not say.
        describe: logs of a sweep.
        finish: writes what the model holds besides its weights.
    """
    epochs = limit if job.epochs is None else job.epochs
    first = int(job.keras_arguments.get("initial_epoch") or 0)
    history, callbacks = begin_epochs(model, job, epochs, SweepLine())
    # Weights are written for those who look at them: that takes longer than many a sweep.
    watched = bool(job.callbacks)
    reached: Reached | None = None
    logs: Logs = {}
    epoch, more = first, True
    try:
        while not model.stop_training and (more := next(steps, False) is not False) and epoch < epochs:
            callbacks.on_epoch_begin(epoch)
            callbacks.on_train_batch_begin(0)
            reached = next(steps)
            assert reached is not None
            if watched:
                _leave_weights(model, reached.state)
                finish(model, *reached)
            logs = describe(*reached) | _validate(model, job, reached, epoch)
            callbacks.on_train_batch_end(0, logs)
            callbacks.on_epoch_end(epoch, logs)
            epoch += 1
    finally:  # an interrupted fit leaves what it reached
        if reached is not None and not watched:
            _leave_weights(model, reached.state)
    if reached is not None and not watched:
        finish(model, *reached)
    callbacks.on_train_end(logs)
    converged = not (more and not model.stop_training and epochs > first)
    if not converged:
        # With further starts no single fit is there to go on from.
        advice = "Raise `epochs`." if job.restarts else "Call `fit` again to go on, or raise `epochs`."
        warn(f"{NOT_CONVERGED} (sweep {epochs}) before it converged. {advice}")
    if reached is not None:
        converged = _has_ended_well(*reached) and converged
    return Outcome(history, converged, reached)


def begin_epochs(
    model: Any, job: FitJob, epochs: int, line: keras.callbacks.Callback
) -> tuple[keras.callbacks.History, keras.callbacks.CallbackList]:
    """History and callbacks of a fit whose epochs are not those of Keras; training has begun.

    Args:
        model: that they are told of.
        job: with the user's callbacks, and what is shown.
        epochs: at most.
        line: what shows them on one line.
    """
    history, verbose = keras.callbacks.History(), job.verbose if job.verbose in (1, 2) else 0
    shown = [line] if job.verbose == "auto" else []
    callbacks = keras.callbacks.CallbackList(
        [history, *shown, *job.callbacks], model=model, epochs=epochs, steps=1,
        add_progbar=bool(verbose), verbose=verbose,
    )  # fmt: skip
    model.stop_training = False
    callbacks.on_train_begin()
    return history, callbacks


def _has_ended_well(engine: Engine, state: State) -> bool:
    """Whether a fit that stopped is one to use; warns of what its reader should know."""
    _warn_of_separation(engine, state)
    in_range = engine.is_in_range(state)
    if state.stalled:
        last = "sweep" if state.stalled == 1 else f"{state.stalled} sweeps"
        warn(
            f"{STALLED}: in its last {last} no step, however short, led to a better state, so nothing "
            "says that it has converged. Leave rare levels or outliers out, or use fewer terms."
        )
    if not in_range:
        warn(
            f"{ASTRAY}: the predictor of some rows is beyond anything that their response could ask "
            "for, and coefficients there have no meaning. Leave rare levels out, or write `s()` "
            "for categories, which shrinks them."
        )
    return in_range and not state.stalled


def _warn_of_separation(engine: Engine, state: State) -> None:
    """Where terms tell classes apart exactly, their coefficients grow without end."""
    if not engine.family.binary:
        return
    means, near = engine.means(state), engine.settings.certain
    certain = int(np.sum((means < near) | (means > 1 - near)))
    if certain:
        warn(
            f"Fitted probabilities are 0 or 1 in {certain:,} of {len(means):,} rows: the model tells "
            "the classes apart there without error, and coefficients and standard errors of what does "
            f"so have no meaning. {_advice_on_separation(engine)}"
        )


def _advice_on_separation(engine: Engine) -> str:
    """What fits the terms of the model and the solver: `"bcd"` leaves straight lines unpenalised."""
    linear = [term for term in engine.design.terms if term.lines and not term.has_penalty]
    named = ", ".join(f"`s({term.label})`" for term in linear[:3]) + (", ..." if linear[3:] else "")
    ways = [f"write linear terms as smooths, which are penalised: {named}"] if linear else []
    if not engine.variational:
        ways.append('use `solver="variational"`, which penalises the straight lines of smooths too')
    if ways:
        return f"Leave it out, or {', and '.join(ways)}."
    return (
        "Look for a feature that only the outcome could tell, and leave it out; else take fewer "
        "functions (a smaller `k`) or fewer terms."
    )


def _leave_weights(model: Any, state: State) -> None:
    forget_posterior(model)  # it is not that of these weights, should nothing come after
    write_weights(model, state)


def _validate(model: Any, job: FitJob, reached: Reached, epoch: int) -> Logs:
    """Deviance of the training rows, and of the validation rows when it is their turn."""
    engine, state = reached
    logs = {"deviance": engine.deviance(state) / engine.total_weight}
    frequency = job.keras_arguments.get("validation_freq") or 1
    if job.validation is None or (epoch + 1) % frequency:
        return logs
    if not isinstance(job.validation, Rows):
        _leave_weights(model, state)
        steps = job.validation_steps
        values = keras.Model.evaluate(model, job.validation, verbose=0, steps=steps, return_dict=True)
        return logs | {f"val_{name}": float(value) for name, value in values.items()}
    rows = job.validation
    means = engine.store_rows(rows).collect(tasks.means, state)
    deviance = float(np.average(engine.family.unit_deviance(rows.y, means, np), weights=rows.weight))
    return logs | {
        "val_deviance": deviance,
        "val_loss": deviance / (2 * engine.response.dispersion_unit),
    }
