"""Block solvers for several predictors: one after the other, given the others, until none moves.

A mean-field posterior over predictors: each is fitted as if it were alone, to the likelihood that is
averaged over the posteriors of the others (METHOD: score and expected information by predictor). What
one fit leaves, the next goes on from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import keras
import numpy as np

from ahofm_keras.errors import noting, warn
from ahofm_keras.solvers import tasks
from ahofm_keras.solvers.first_constants import best_constants
from ahofm_keras.solvers.job import NOT_CONVERGED, STALLED, FitJob, Outcome, Rows
from ahofm_keras.solvers.progress import SweepLine
from ahofm_keras.solvers.sweeps import begin_epochs

Solver = Callable[[Any, FitJob], Outcome]
Spread = tuple[np.ndarray, np.ndarray]

# Rounds over all predictors, and what the objective may still have to gain per row when they end, by how
# fast its gains fall. One that gains less than the last number is the last.
_ROUNDS = 50
_TO_COME = 2.5e-5
_TOLERANCE = 1e-5
# The same at given smoothing, where every predictor maximises the one objective exactly.
_TO_COME_EXACT = 1e-6
_TOLERANCE_EXACT = 1e-7
# By how much, per row, it may fall in one: each predictor maximises an approximation of its own.
_SLACK = 1e-3
# Rounds in a row that lose more than that, after which no further one follows.
_LOSSES = 2
# The three-point Gauss-Hermite rule: nodes in standard deviations beside the mean, and their weight.
_NODES = (-np.sqrt(3.0), np.sqrt(3.0))
_NODE_WEIGHT = 1 / 6
_BATCH_ROWS = 8192


def fit_predictors(model: Any, job: FitJob, solve: Solver) -> Outcome:
    """Fit every predictor of a model in turn; a round over all is an epoch.

    Args:
        model: of several predictors.
        job: on rows in memory.
        solve: a block solver.
    """
    own = replace(
        job, restarts=0, until_agreed=False, validation=None, callbacks=[], verbose=0, epochs=None,
        keras_arguments={},
    )  # fmt: skip
    rounds = Rounds(model, job.weighted_training(), own, solve)
    epochs = _ROUNDS if job.epochs is None else job.epochs
    first = int(job.keras_arguments.get("initial_epoch") or 0)
    history, callbacks = begin_epochs(model, job, epochs, SweepLine("round"))
    logs: dict[str, float] = {}
    ended = epochs <= first
    for epoch in range(first, epochs):
        callbacks.on_epoch_begin(epoch)
        callbacks.on_train_batch_begin(0)
        if epoch == first:
            rounds.begin()
        rounds.once()
        logs = rounds.logs | _validate(model, job, epoch)
        callbacks.on_train_batch_end(0, logs)
        callbacks.on_epoch_end(epoch, logs)
        ended = rounds.stand_still() or model.stop_training
        if ended:
            break
    if epochs > first:
        rounds.finish(job)
    callbacks.on_train_end(logs)
    if not ended:
        warn(
            f"{NOT_CONVERGED} (round {epochs} over all predictors) before it converged. "
            "Call `fit` again to go on, or raise `epochs`."
        )
    rounds.tell()
    return Outcome(history, ended and rounds.converged)


def _validate(model: Any, job: FitJob, epoch: int) -> dict[str, float]:
    """Deviance of the validation rows when it is their turn."""
    frequency = job.keras_arguments.get("validation_freq") or 1
    if job.validation is None or (epoch + 1) % frequency:
        return {}
    if not isinstance(job.validation, Rows):
        steps = job.validation_steps
        values = keras.Model.evaluate(model, job.validation, verbose=0, steps=steps, return_dict=True)
        return {f"val_{name}": float(value) for name, value in values.items()}
    means = {name: mean for name, (mean, _) in links_and_errors(model, job.validation).items()}
    deviance = -2 * mean_log_density(model, job.validation, means)
    return {"val_deviance": deviance, "val_loss": deviance / 2}


def mean_log_density(model: Any, rows: Rows, links: Mapping[str, np.ndarray]) -> float:
    """Of rows at their predictors."""
    density = model.family.log_density(rows.y, model.family.inverse_links(links), np)
    return float(np.average(density, weights=rows.weight))


def links_and_errors(model: Any, rows: Rows) -> dict[str, Spread]:
    """Mean and standard deviation of each predictor on encoded rows, as the model has them."""
    starts = range(0, len(rows), _BATCH_ROWS)
    batches = (rows.encoded.take(slice(start, start + _BATCH_ROWS)) for start in starts)
    found = model._outputs.run("links", batches)
    return {name: (found[name][:, 0], found[name][:, 1]) for name in model.design.predictors}


def each_predictor(model: Any, job: FitJob, action: Callable[[Any, FitJob], None]) -> None:
    """Do something with every predictor, given the others; of a model with one, with the model."""
    if len(model.design.predictors) == 1:
        return action(model, job)
    rows = job.weighted_training()
    for name in model.design.predictors:
        view = model.parameter(name)
        training = view.rows(rows, links_and_errors(model, rows))
        action(view, replace(job, training=training, keras_arguments={}))
    return None


@dataclass
class Rounds:
    """Where rounds over the predictors of a model have come.

    Args:
        model: of several predictors.
        rows: all training rows.
        job: of one predictor, whose rows are still to come.
        solve: a block solver.

    Attributes:
        links: mean and standard deviation of each predictor on the rows, by parameter.
        priors: what each prior and entropy give to the bound, or its penalty takes, by parameter.
        edf: degrees of freedom, by parameter.
        notes: what the last fit of each predictor warned of.
        ended_well: whether the last fit of each predictor converged.
        best: largest objective after a round.
        gain: of the last round over the best before.
        losses: number of the last rounds that ended below it.
    """

    model: Any
    rows: Rows
    job: FitJob
    solve: Solver
    links: dict[str, Spread] = field(default_factory=dict)
    priors: dict[str, float] = field(default_factory=dict)
    edf: dict[str, float] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    ended_well: dict[str, bool] = field(default_factory=dict)
    best: float = -np.inf
    gain: float = np.inf
    losses: int = 0

    def __post_init__(self) -> None:
        self.views = [self.model.parameter(name) for name in self.model.design.predictors]
        self.total_weight = len(self.rows) if self.rows.weight is None else float(self.rows.weight.sum())

    def begin(self) -> None:
        """The first predictor as if the others were constant, then the others; not where a fit goes on.

        Rough values of the others say that all that the first will explain is noise, and fitted to them
        it would be found smooth and without interactions. What it leaves is where the others begin.
        """
        self.links = links_and_errors(self.model, self.rows)
        first = self.model.parameter(self.views[0].name)
        begun = None if first.has_posterior else first.first_rows(self.rows)
        if begun is not None:
            self._fit(first, replace(self.job, training=begun))
            self._start_others()
            for view in self.views[1:]:
                self.fit(view)

    def _start_others(self) -> None:
        """The constants of all predictors but the first that go with it, as far as none is fitted."""
        others = {view.name: view for view in self.views[1:] if view.can_start}
        links = {name: mean for name, (mean, _) in self.links.items()}
        units = {name: view.family.unit for name, view in others.items()}
        if not others:
            return
        steps = best_constants(self.model.family, self.rows.y, self.rows.weight, links, units)
        for name, step in steps.items():
            others[name].start_at(step)
            self.links[name] = links[name] + step, np.zeros(len(self.rows))

    def once(self) -> None:
        """Every predictor, given the others."""
        for view in self.views:
            self.fit(view)

    def fit(self, view: Any, **changes: Any) -> None:
        """One predictor, given the others; with changes of its job."""
        training = view.rows(self.rows, self.links)
        self._fit(view, replace(self.job, training=training, **changes))

    def _fit(self, view: Any, job: FitJob) -> None:
        if not view.design.terms:
            # One coefficient, which nothing smooths: a sweep is a step of Fisher scoring.
            job = replace(job, settings=replace(job.settings, window=1, linear_updates=1))
        with noting(silently=True) as notes:
            outcome = self.solve(view, job)
        self.notes[view.name], self.ended_well[view.name] = notes, outcome.converged
        assert outcome.reached is not None, "a block solver that swept"
        engine, state = outcome.reached
        mean, variance = engine.store.reduce(tasks.links, state, engine.variational)
        self.links[view.name] = np.concatenate(mean), np.sqrt(np.concatenate(variance))
        self.priors[view.name], self.edf[view.name] = engine.prior_part(state), state.edf

    def stand_still(self) -> bool:
        """Whether no further round is needed: those to come would gain nothing, or two in a row lost.

        Keeps the weights of the best one.
        """
        objective = self.objective
        gain = objective - self.best
        if gain > 0 or not np.isfinite(self.best):
            self.best, self._weights = objective, [np.asarray(w).copy() for w in self.model.weights]
        lost = not gain >= -_SLACK  # or is no number
        self.losses = self.losses + 1 if lost else 0
        rate = gain / self.gain if gain < self.gain < np.inf else 1.0
        self.gain = gain
        exact = not self.views[0].has_posterior
        tolerance, to_come = (_TOLERANCE_EXACT, _TO_COME_EXACT) if exact else (_TOLERANCE, _TO_COME)
        little = gain <= tolerance or (rate < 1 and gain * rate / (1 - rate) <= to_come)
        return self.losses == _LOSSES or (not lost and little)

    def finish(self, job: FitJob) -> None:
        """Come back to the best round; then average several starts, where these were asked for."""
        if self.objective < self.best:
            for weight, value in zip(self.model.weights, self._weights, strict=True):
                weight.assign(value)
        if not job.restarts:
            return
        self.links = links_and_errors(self.model, self.rows)
        for view in (view for view in self.views if view.design.orders):
            if view.posterior is not None:
                view.posterior.forget()
            self.fit(view, restarts=job.restarts, until_agreed=job.until_agreed)
        for view in (view for view in self.views if not view.design.orders):
            self.fit(view)

    @property
    def converged(self) -> bool:
        """Whether rounds, and the last fit of each predictor, ended at something to use."""
        return self.losses < _LOSSES and all(self.ended_well.values())

    def tell(self) -> None:
        """Warn of what the last fits warned of, each predictor by name."""
        if self.losses == _LOSSES:
            warn(
                f"{STALLED}: in its last {_LOSSES} rounds over all predictors it became worse, and the "
                "best one before is kept. Use fewer terms, or simpler ones beside the first predictor."
            )
        for name, notes in self.notes.items():
            for note in notes:
                warn(f"{note} (The predictor of `{name}`.)")

    @property
    def objective(self) -> float:
        """What rounds maximise, per row: the evidence bound, or the penalised log-likelihood."""
        means = {name: mean for name, (mean, _) in self.links.items()}
        centre = total = mean_log_density(self.model, self.rows, means)
        for name, (mean, spread) in self.links.items():
            if np.any(spread > 0):
                for node in _NODES:
                    beside = {**means, name: mean + node * spread}
                    total += _NODE_WEIGHT * (mean_log_density(self.model, self.rows, beside) - centre)
        return total + sum(self.priors.values()) / self.total_weight

    @property
    def logs(self) -> dict[str, float]:
        """Of a round."""
        objective = self.objective
        means = {name: mean for name, (mean, _) in self.links.items()}
        deviance = -2 * mean_log_density(self.model, self.rows, means)
        bound = {"bound": objective * self.total_weight} if self.views[0].has_posterior else {}
        return {"loss": -objective, **bound, "deviance": deviance, "edf": sum(self.edf.values())}
