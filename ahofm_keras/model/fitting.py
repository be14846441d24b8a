"""One call of `fit`: which solver takes it, on which rows, and the job that the solver gets."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from ahofm_keras.errors import DataError, noting, warn
from ahofm_keras.families import Family, HalfDeviance
from ahofm_keras.model.arguments import (
    check_callbacks,
    check_choice,
    check_class_weight,
    check_given,
    check_share,
    check_verbose,
    check_whole,
)
from ahofm_keras.model.collapse import warn_of_collapse
from ahofm_keras.model.fit_result import FitResult, hash_rows, measure_fit
from ahofm_keras.model.fit_state import FitState
from ahofm_keras.model.init_from import begin_at_terms, check_init_from
from ahofm_keras.model.limits import learn_limits, without_limits
from ahofm_keras.model.nuisance import check_streamed, settle_nuisance
from ahofm_keras.model.numerical import numerical_failures_told
from ahofm_keras.model.reading import split_off
from ahofm_keras.model.response import learn_expression_of_response, learn_units_of_response
from ahofm_keras.model.row_reader import RowReader
from ahofm_keras.model.starts import check_room, most_starts
from ahofm_keras.model.streams import own_errors
from ahofm_keras.solvers import AUTO, SOLVERS, FitJob, choose_solver
from ahofm_keras.solvers.choice import HYBRID, MINI_BATCHES, check_solver, opaque_term
from ahofm_keras.solvers.job import ASTRAY, Outcome, Rows, is_no_worse
from ahofm_keras.solvers.laplace import can_have_laplace, write_laplace
from ahofm_keras.solvers.nuisance import LOOSE_TOLERANCE, TOLERANCE, fit_with_nuisance
from ahofm_keras.solvers.orthogonal import orthogonalise
from ahofm_keras.solvers.posterior import forget_posterior
from ahofm_keras.solvers.predictors import each_predictor, fit_predictors
from ahofm_keras.solvers.profile import write_profile_posterior

VALIDATION_SHARE = 0.15
VARIATIONAL = "variational"
# These leave a posterior of their own; others get the Laplace approximation at their weights.
_WITH_POSTERIOR = (VARIATIONAL, HYBRID)
LAPLACE = "laplace"
# Beyond this share of the rows as degrees of freedom there is no noise left to learn from.
_SATURATED = 0.9


@dataclass(frozen=True)
class FitRequest:
    """The arguments of `AdditiveModel.fit`, where they are described."""

    x: Any
    y: Any
    batch_size: int | None
    epochs: int | None
    verbose: Any
    callbacks: Any
    validation_split: float | None
    validation_data: Any
    shuffle: bool
    class_weight: Any
    sample_weight: Any
    initial_epoch: int
    steps_per_epoch: int | None
    validation_steps: int | None
    validation_batch_size: int | None
    validation_freq: int
    solver: str
    restarts: Any
    seed: int
    init_from: Any = None

    def check(self, family: Family) -> None:
        """Raise a `DataError` for an argument that no solver could use."""
        check_choice("solver", self.solver, (AUTO, *SOLVERS))
        check_given(0, initial_epoch=self.initial_epoch, seed=self.seed)
        if self.restarts != AUTO:
            check_given(0, restarts=self.restarts)
        check_whole(0, epochs=self.epochs)
        check_given(1, validation_freq=self.validation_freq)
        check_whole(
            1,
            batch_size=self.batch_size,
            steps_per_epoch=self.steps_per_epoch,
            validation_steps=self.validation_steps,
            validation_batch_size=self.validation_batch_size,
        )
        check_share("validation_split", self.validation_split)
        check_class_weight(self.class_weight, family, self.sample_weight)
        check_callbacks(self.callbacks)
        check_verbose(self.verbose)
        if self.init_from is not None and self.asks_for_starts:
            raise DataError("`restarts` draws starts at random: give it or `init_from`, not both.")

    @property
    def asks_for_starts(self) -> bool:
        """Whether the user asked for further starts."""
        return self.restarts != AUTO and self.restarts > 0

    @property
    def trains(self) -> bool:
        """Whether there is an epoch to run."""
        return self.epochs is None or self.epochs > self.initial_epoch

    def tell(self, message: str) -> None:
        """A line for the user, unless silence was asked for."""
        if self.verbose:
            print(message)


def run_fit(
    model: Any, reader: RowReader, fits: FitState, request: FitRequest
) -> keras.callbacks.History:
    """Fit a model as asked.

    Args:
        model: an `AdditiveModel`.
        reader: of the model's rows.
        fits: what the model knows of earlier ones.
        request: what the user asked for.
    """
    request.check(model.family)
    if request.init_from is not None:
        check_init_from(model, request.init_from)
    if not model.response.is_column:
        request.tell(f"Fitting {model.response}: predictions are on the scale of {model.response}.")
    solver = pick_solver(model, request)
    learn_expression_of_response(model, reader, request)
    rows = reader.with_response(request.x, request.y, request.sample_weight)
    training, validation = split_rows(model, reader, rows, request, solver)
    if not model.scale:
        learn_units_of_response(model, rows, request)
        fits.mark_start()
    job = make_job(training, validation, request, model, solver)
    if not request.trains:
        with own_errors():
            job = _begin(model, request, job, solver)
            return _solve(model, job, solver).history
    mark = hash_rows(rows, request.class_weight) if isinstance(rows, Rows) else None
    with _interruptions_noted(model, fits, solver, mark):
        _look_back(model, fits, mark, request, solver)
        return _run(model, reader, fits, request, job, solver, mark)


def _run(
    model: Any,
    reader: RowReader,
    fits: FitState,
    request: FitRequest,
    job: FitJob,
    solver: str,
    mark: str | None,
) -> keras.callbacks.History:
    laplace = solver not in _WITH_POSTERIOR and can_have_laplace(model, job)
    began = time.perf_counter()
    with noting() as notes, own_errors(), numerical_failures_told():
        job = _begin(model, request, job, solver)
        if request.restarts == AUTO and _may_average(model, job, request, solver):
            job = replace(job, restarts=_most_starts(model, job.training) - 1, until_agreed=True)
        with without_limits(model, fits):
            outcome = _solve(model, job, solver)
            orthogonalise(model, job)
            job, nuisance = settle_nuisance(model, job)
            learn_limits(model, job)
        if solver == VARIATIONAL:
            _warn_of_saturation(outcome.history, job.training)
        elif laplace:
            each_predictor(model, job, write_laplace)
        if nuisance is not None:
            write_profile_posterior(model, job)
        seconds = time.perf_counter() - began
        figures = measure_fit(model, job.training) if isinstance(job.training, Rows) else {}
        converged = outcome.converged and (
            "deviance" not in figures or _is_worth_something(model, job, figures)
        )
        if isinstance(job.training, Rows) and warn_of_collapse(model, job.training):
            converged = False
        classes = request.class_weight
        result = FitResult(
            solver, len(outcome.history.epoch), seconds, converged, tuple(dict.fromkeys(notes)),
            class_weight=None if classes is None else (float(classes[0]), float(classes[1])),
            posterior=_source_of_posterior(model, solver), rows_hash=mark, nuisance=nuisance, **figures,
        )  # fmt: skip
    sample = reader.sample(request.x, request.y, request.sample_weight, request.seed)
    if sample is not None and nuisance is not None:
        sample = replace(sample, y=model.family.given(sample.y, nuisance))
    model.keep_fit(result, sample)
    return outcome.history


def _begin(model: Any, request: FitRequest, job: FitJob, solver: str) -> FitJob:
    """The job, beginning at the terms of another model where one is given."""
    if request.init_from is None:
        return job
    origin = begin_at_terms(model, request.init_from, solver, request.verbose)
    return replace(job, origin=origin)


def _solve(model: Any, job: FitJob, solver: str) -> Outcome:
    if model.family.nuisance:
        tolerance = LOOSE_TOLERANCE if solver == MINI_BATCHES else TOLERANCE
        return fit_with_nuisance(model, job, SOLVERS[solver], tolerance)
    if solver == MINI_BATCHES or len(model.design.predictors) == 1:
        return SOLVERS[solver](model, job)
    return fit_predictors(model, job, SOLVERS[solver])


def _source_of_posterior(model: Any, solver: str) -> str | None:
    if not model.has_posterior:
        return None
    return VARIATIONAL if solver in _WITH_POSTERIOR else LAPLACE


@contextmanager
def _interruptions_noted(model: Any, fits: FitState, solver: str, mark: str | None) -> Iterator[None]:
    """A fit that is interrupted, or fails, leaves no result of an earlier one beside other weights."""
    weights = fits.weights_hash()
    try:
        yield
    except BaseException:
        if fits.weights_hash() != weights:
            source = _source_of_posterior(model, solver)
            unfinished = FitResult(
                solver, 0, 0.0, False, (), posterior=source, rows_hash=mark, finished=False
            )
            model.keep_fit(unfinished, None)
        raise


def _is_worth_something(model: Any, job: FitJob, figures: dict[str, Any]) -> bool:
    """Whether a fit explains no less than the intercept alone; warns if not."""
    weighted = job.weighted_training()  # what was fitted
    if weighted is not job.training:
        figures = measure_fit(model, weighted)
    deviance, null = figures["deviance"], figures["null_deviance"]
    total = len(weighted) if weighted.weight is None else float(np.sum(weighted.weight))
    if is_no_worse(deviance, null, total, model.dispersion_unit):
        return True
    warn(
        f"{ASTRAY}: its deviance, {deviance:.4g}, is larger than that of the intercept alone, "
        f"{null:.4g}. Nothing should be read from it. Try another `solver`, fewer terms, or `s()` for "
        "categories with rare levels."
    )
    return False


def pick_solver(model: Any, request: FitRequest) -> str:
    """The solver's name, `"auto"` resolved and told; refuses what the solver cannot do."""
    streamed = isinstance(request.x, tf.data.Dataset)
    if streamed or isinstance(request.validation_data, tf.data.Dataset):
        check_streamed(model)
    given = _only_for_mini_batches(model, request)
    solver, why = request.solver, ""
    if solver == AUTO:
        solver, reason = choose_solver(model.design, streamed, given)
        why = f', which "auto" takes here: {reason}'
        if not (request.asks_for_starts and solver in (MINI_BATCHES, HYBRID)):
            request.tell(f"solver: {solver} ({reason})")
    check_solver(model.design, solver, streamed, given)
    if request.asks_for_starts and solver in (MINI_BATCHES, HYBRID):
        raise DataError(f'`restarts` has no meaning for solver="{solver}"{why}.')
    return solver


def _only_for_mini_batches(model: Any, request: FitRequest) -> list[str]:
    """What the user asked for that block solvers cannot do, in words."""
    arguments = {"batch_size": request.batch_size, "steps_per_epoch": request.steps_per_epoch}
    opaque = opaque_term(model.design)
    # Networks are trained by mini-batches, in turn with exact updates of all other terms.
    in_turn = opaque is not None and len(model.design.predictors) == 1
    given = [
        f"{name} was given, which only mini-batches use"
        for name, value in arguments.items()
        if value is not None and not in_turn
    ]
    if model.own_compile and not (in_turn and isinstance(model.loss, HalfDeviance)):
        given.append("compile() was given an optimizer or loss of its own, which only mini-batches use")
    if opaque and model.family.nuisance:
        given.append(f"{opaque}, and the {model.family.name} family estimates a parameter on the side")
    if model.family.only_for_mini_batches:
        given.append(model.family.only_for_mini_batches)
    networks = {name for term in model.design.terms for name in term.networks}
    frozen = [
        layer.name
        for layer in model.fitted_layers()
        if not (layer.trainable or (in_turn and layer.name in networks))
    ]
    if frozen:
        given.append(f"layer {frozen[0]} is frozen (trainable=False), which only mini-batches heed")
    return given


def split_rows(
    model: Any, reader: RowReader, training: Rows | tf.data.Dataset, request: FitRequest, solver: str
) -> tuple[Rows | tf.data.Dataset, Rows | tf.data.Dataset | None]:
    """Training rows, and validation rows as far as they were asked for or the solver wants some."""
    validation: Rows | tf.data.Dataset | None = None
    if request.validation_data is not None:
        validation = reader.validation(request.validation_data)
    elif isinstance(training, Rows):
        default = VALIDATION_SHARE if solver in (MINI_BATCHES, HYBRID) else 0.0
        share = default if request.validation_split is None else request.validation_split
        training, validation = split_off(training, share, request.seed)
    elif request.validation_split:
        raise DataError("`validation_split` needs data in memory; give a dataset as `validation_data`.")
    if isinstance(training, Rows):
        model.family.check_training(training.y, str(model.response))
    return training, validation


def make_job(
    training: Rows | tf.data.Dataset,
    validation: Rows | tf.data.Dataset | None,
    request: FitRequest,
    model: Any,
    solver: str,
) -> FitJob:
    """What a solver needs to know of a request."""
    restarts = 0 if request.restarts == AUTO else int(request.restarts)
    if solver == VARIATIONAL:
        check_room(model.design, model.room, restarts + 1)
    return FitJob(
        training,
        validation,
        batch_size=request.batch_size,
        epochs=request.epochs,
        verbose=request.verbose,
        callbacks=check_callbacks(request.callbacks),
        seed=request.seed,
        shuffle=request.shuffle,
        steps_per_epoch=request.steps_per_epoch,
        validation_steps=request.validation_steps,
        validation_batch_size=request.validation_batch_size,
        restarts=restarts,
        monitor=model.monitor,
        keras_arguments={
            "class_weight": request.class_weight,
            "initial_epoch": request.initial_epoch,
            "validation_freq": request.validation_freq,
        },
    )


def _may_average(model: Any, job: FitJob, request: FitRequest, solver: str) -> bool:
    """Whether starts are averaged by default; `AdditiveModel.fit` says when."""
    followed = request.epochs is not None or bool(request.callbacks)
    interacting = bool(model.design.orders)
    # What is not gone on from was forgotten.
    goes_on = model.has_posterior or job.origin is not None
    affordable = _most_starts(model, job.training) > 1
    return solver == VARIATIONAL and interacting and affordable and not followed and not goes_on


def _most_starts(model: Any, training: Rows | tf.data.Dataset) -> int:
    return min(model.room, most_starts(len(training))) if isinstance(training, Rows) else 1


def _look_back(model: Any, fits: FitState, mark: str | None, request: FitRequest, solver: str) -> None:
    """Of an earlier fit, keep only what may be gone on from.

    What was switched off on other rows may be needed on these, so the variational solver starts anew
    there, as it does from weights that are not those of a fit here. It does too for further starts and
    after an average, because a fit that goes on is one fit.

    Args:
        model: to be fitted.
        fits: what it knows of earlier ones.
        mark: tells the rows from others.
        request: what the user asked for.
        solver: its name.
    """
    last = fits.last
    other = last is not None and last.rows_hash not in (None, mark)
    if solver not in _WITH_POSTERIOR:
        if other and not request.asks_for_starts:
            _warn_of_switched_off(model, solver)
    elif model.has_posterior:
        if (other or last is None) and request.init_from is None:
            what = "rows" if other else "weights"
            request.tell(f"The {what} are not those of the last fit: starting anew.")
        several = request.asks_for_starts or model.starts > 1
        if other or last is None or several or last.posterior == LAPLACE:
            forget_posterior(model)


def _warn_of_switched_off(model: Any, solver: str) -> None:
    """Where all factors are 0 so is the gradient: a fit that goes on from there leaves them at 0."""
    off = [
        f"`{order.label}`"
        for order in model.design.orders
        if not np.any(model.get_layer(order.name).coordinates(order.index))
    ]
    if off:
        warn(
            f'{", ".join(off)}: switched off by a fit to other rows, and solver="{solver}" goes on from '
            "there. Make a new model to fit all interactions."
        )


def _warn_of_saturation(history: keras.callbacks.History, training: Rows) -> None:
    """A fit with about as many degrees of freedom as rows has no residuals to judge itself by."""
    edf = history.history.get("edf")
    rows = len(training) if training.weight is None else int(np.count_nonzero(training.weight))
    if edf and edf[-1] > _SATURATED * rows:
        warn(
            f"The fit takes {edf[-1]:.1f} degrees of freedom from {rows} rows: hardly any are left to "
            "learn the noise from, and intervals are too narrow. Use fewer terms, or more rows."
        )
