"""Block solvers for several predictors: one after the other, given the others, until none moves.

A mean-field posterior over predictors: each is fitted as if it were alone, to the likelihood that is
averaged over the posteriors of the others (METHOD: score and expected information by predictor). What
one fit leaves, the next goes on from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import keras
import numpy as np

from ahofm_keras.errors import warn
from ahofm_keras.solvers.job import NOT_CONVERGED, FitJob, Outcome, Rows

Solver = Callable[[Any, FitJob], Outcome]
# Rounds over all predictors, and the change of the mean log-density per row that ends them, as it ends
# the sweeps of one.
_ROUNDS = 50
_TOLERANCE = 4e-4
# The same where a nuisance is learned in each: rounds are short, and closer to the end by a share each.
_NUISANCE_TOLERANCE = 1e-9
# Of mini-batches, which circle around their optimum.
LOOSE_TOLERANCE = 1e-4
_BATCH_ROWS = 8192


def fit_predictors(model: Any, job: FitJob, solve: Solver, tolerance: float | None = None) -> Outcome:
    """Fit every predictor of a model in turn.

    Args:
        model: of several predictors.
        job: on rows in memory.
        solve: a solver.
        tolerance: the change of the mean log-density that ends the rounds, if it is not the usual one.
    """
    rows = job.weighted_training()
    views = [model.parameter(name) for name in model.design.predictors]
    usual = _NUISANCE_TOLERANCE if model.family.nuisance else _TOLERANCE
    tolerance = tolerance or usual
    history = keras.callbacks.History()
    history.set_model(model)
    history.on_train_begin()
    single = replace(job, restarts=0, until_agreed=False)
    if not model.family.nuisance:
        single = replace(single, validation=None, callbacks=[])
    before, converged = -np.inf, False
    if len(views) > 1:
        _begin(model, views, rows, single, solve)
    rounds = _ROUNDS if job.epochs is None or model.family.nuisance else job.epochs
    for round_ in range(rounds):
        ended_well = [solve(view, _given(model, view, rows, single)).converged for view in views]
        now = mean_log_density(model, rows)
        history.on_epoch_end(round_, {"deviance": -2 * now, "edf": _edf(views)})
        converged = abs(now - before) < tolerance
        if converged:
            break
        before = now
    if not converged:
        warn(f"{NOT_CONVERGED} (round {round_ + 1} over all predictors) before it converged.")
    if job.restarts:
        averaged = replace(single, restarts=job.restarts, until_agreed=job.until_agreed)
        for view in (view for view in views if view.design.orders):
            if view.posterior is not None:
                view.posterior.forget()
            ended_well.append(solve(view, _given(model, view, rows, averaged)).converged)
        for view in (view for view in views if not view.design.orders):
            ended_well.append(solve(view, _given(model, view, rows, single)).converged)
    return Outcome(history, converged and all(ended_well))


def _begin(model: Any, views: list[Any], rows: Rows, job: FitJob, solve: Solver) -> None:
    """The first predictor as if the others were constant, then the others; not where a fit goes on.

    Rough values of the others say that all that the first will explain is noise, and fitted to them it
    would be found smooth and without interactions.
    """
    first = model.parameter(views[0].name)
    begun = None if first.has_posterior else first.first_rows(rows)
    if begun is None:
        return
    solve(first, replace(job, training=begun))
    for view in views[1:]:
        solve(view, _given(model, view, rows, job))


def each_predictor(model: Any, job: FitJob, action: Callable[[Any, FitJob], None]) -> None:
    """Do something with every predictor, given the others; of a model with one, with the model."""
    if not are_fitted_in_turn(model):
        return action(model, job)
    rows = job.weighted_training()
    for name in model.design.predictors:
        view = model.parameter(name)
        action(view, _given(model, view, rows, job))
    return None


def _edf(views: list[Any]) -> float:
    """Degrees of freedom of all predictors, as far as their posteriors say them."""
    layers = [view.posterior for view in views if view.has_posterior]
    parts = [np.asarray(own) for layer in layers for own in (layer.linear_edf, *layer.factor_edf)]
    return float(sum(part.sum() for part in parts))


def _given(model: Any, view: Any, rows: Rows, job: FitJob) -> FitJob:
    """The job of one predictor, given what is known of the others and of the nuisance."""
    if model.family.nuisance:
        nuisance = learn_nuisance(model, rows)
        rows = with_nuisance(model, rows, nuisance)
        if isinstance(job.validation, Rows):
            job = replace(job, validation=with_nuisance(model, job.validation, nuisance))
    if view is not model:
        rows = view.rows(rows, links_and_errors(model, rows))
    return replace(job, training=rows)


def are_fitted_in_turn(model: Any) -> bool:
    """Whether a model has several parts that block solvers fit one after the other."""
    return len(model.design.predictors) > 1 or model.family.nuisance


def learn_nuisance(model: Any, rows: Rows) -> dict[str, Any]:
    """What the family learns from all rows together, at the means of all predictors."""
    means = {name: own for name, (own, _) in links_and_errors(model, rows).items()}
    found: dict[str, Any] = model.family.learn_nuisance(
        rows.y, model.family.inverse_links(means), rows.weight
    )
    return found


def with_nuisance(model: Any, rows: Rows, nuisance: Any) -> Rows:
    """Rows with what it says of each response beside it."""
    return replace(rows, y=model.family.given(rows.y, nuisance))


def links_and_errors(model: Any, rows: Rows) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Mean and standard deviation of each predictor on encoded rows."""
    starts = range(0, len(rows), _BATCH_ROWS)
    batches = (rows.encoded.take(slice(start, start + _BATCH_ROWS)) for start in starts)
    found = model._outputs.run("links", batches)
    return {name: (found[name][:, 0], found[name][:, 1]) for name in model.design.predictors}


def mean_log_density(model: Any, rows: Rows) -> float:
    """Of the training rows at the means of all predictors."""
    means = {name: own for name, (own, _) in links_and_errors(model, rows).items()}
    found = model.family.mean_log_density(rows.y, model.family.inverse_links(means), rows.weight)
    return float(found)
