"""Rounds of a solver and of what the family learns from all rows together, until neither moves.

A nuisance, such as a baseline hazard, is the best there is at given predictors; predictors are fitted
given the nuisance. Both in turn ascend the profile likelihood.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import keras
import numpy as np

from ahofm_keras.errors import warn
from ahofm_keras.solvers.job import NOT_CONVERGED, FitJob, Outcome, Rows
from ahofm_keras.solvers.predictors import links_and_errors

Solver = Callable[[Any, FitJob], Outcome]
_ROUNDS = 50
# The change of the mean log-density that ends the rounds; mini-batches circle around their optimum.
TOLERANCE = 1e-9
LOOSE_TOLERANCE = 1e-4


def fit_with_nuisance(model: Any, job: FitJob, solve: Solver, tolerance: float = TOLERANCE) -> Outcome:
    """Fit a model whose family has a nuisance; a round is an epoch of the history.

    Args:
        model: of one predictor.
        job: on rows in memory; its epochs are those of the solver in each round.
        solve: a solver.
        tolerance: the change of the mean log-density that ends the rounds.
    """
    rows = job.weighted_training()
    history = keras.callbacks.History()
    history.set_model(model)
    history.on_train_begin()
    single = replace(job, restarts=0, until_agreed=False)
    before, converged = -np.inf, False
    for round_ in range(_ROUNDS):
        ended_well = solve(model, _given(model, rows, single)).converged
        now = _mean_log_density(model, rows)
        history.on_epoch_end(round_, {"deviance": -2 * now})
        converged = abs(now - before) < tolerance
        if converged:
            break
        before = now
    if not converged:
        warn(f"{NOT_CONVERGED} (round {round_ + 1} of predictor and nuisance) before it converged.")
    if job.restarts:
        model.posterior.forget()
        averaged = replace(single, restarts=job.restarts, until_agreed=job.until_agreed)
        ended_well = solve(model, _given(model, rows, averaged)).converged
    return Outcome(history, converged and ended_well)


def learn_nuisance(model: Any, rows: Rows) -> dict[str, Any]:
    """What the family learns from all rows together, at the means of all predictors."""
    found: dict[str, Any] = model.family.learn_nuisance(rows.y, _parameters(model, rows), rows.weight)
    return found


def with_nuisance(model: Any, rows: Rows, nuisance: Mapping[str, Any]) -> Rows:
    """Rows with what it says of each response beside it."""
    return replace(rows, y=model.family.given(rows.y, nuisance))


def _given(model: Any, rows: Rows, job: FitJob) -> FitJob:
    """The job with the nuisance that is best now beside all responses."""
    nuisance = learn_nuisance(model, rows)
    if isinstance(job.validation, Rows):
        job = replace(job, validation=with_nuisance(model, job.validation, nuisance))
    return replace(job, training=with_nuisance(model, rows, nuisance))


def _mean_log_density(model: Any, rows: Rows) -> float:
    return float(model.family.mean_log_density(rows.y, _parameters(model, rows), rows.weight))


def _parameters(model: Any, rows: Rows) -> dict[str, np.ndarray]:
    links = {name: mean for name, (mean, _) in links_and_errors(model, rows).items()}
    found: dict[str, np.ndarray] = model.family.inverse_links(links)
    return found
