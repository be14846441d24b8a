"""Networks by mini-batches, everything else by exact blocks, in turn: `solver="hybrid"`.

A round trains the networks by Keras epochs, with the structured part as an offset, until the validation
deviance rises; gives the structured terms what they can say too (`orthogonal.py`); and fits these by
the variational solver, with the networks as an offset. So smoothing is chosen and intervals are there
as in a model without networks, given these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import keras
import numpy as np

from ahofm_keras.errors import noting, warn
from ahofm_keras.families import Deviance, HalfDeviance
from ahofm_keras.solvers.adam import train
from ahofm_keras.solvers.job import NOT_CONVERGED, FitJob, Outcome, Rows
from ahofm_keras.solvers.opaque import link_at, opaque_part
from ahofm_keras.solvers.orthogonal import orthogonalise
from ahofm_keras.solvers.progress import ProgressLine
from ahofm_keras.solvers.sweeps import begin_epochs
from ahofm_keras.solvers.variational import fit_variational

# Rounds at most, and what one must gain, as a share of the deviance, for another one to follow.
_ROUNDS = 50
_TOLERANCE = 2e-3
# Epochs of all rounds together, and those without a gain after which a round ends.
_EPOCHS = 1000
_PATIENCE = 20


def fit_hybrid(model: Any, job: FitJob) -> Outcome:
    """Fit a model of one predictor with opaque terms.

    Args:
        model: with networks.
        job: on rows in memory. An epoch is one of the networks.
    """
    epochs = _EPOCHS if job.epochs is None else job.epochs
    first = int(job.keras_arguments.get("initial_epoch") or 0)
    monitor = "val_deviance" if job.validation is not None else "deviance"
    history, callbacks = begin_epochs(model, job, epochs, ProgressLine(monitor))
    rounds = _Rounds(model, job, callbacks, first, epochs)
    converged = rounds.run()
    callbacks.on_train_end(rounds.logs)
    if not converged:
        warn(
            f"{NOT_CONVERGED} of the networks ({rounds.epoch}) before rounds of networks and structured "
            "terms converged. Call `fit` again to go on, or raise `epochs`."
        )
    for note in rounds.notes:
        warn(note)
    return Outcome(history, converged and rounds.ended_well)


@dataclass
class _Rounds:
    """Where rounds have come.

    Args:
        model: of one predictor.
        job: of the whole fit.
        callbacks: are told of the epochs of the networks.
        epoch: the next one.
        epochs: where they end.

    Attributes:
        logs: of the last epoch.
        notes: what the last fit of the structured terms warned of.
        ended_well: whether it converged.
    """

    model: Any
    job: FitJob
    callbacks: Any
    epoch: int
    epochs: int

    def __post_init__(self) -> None:
        self.logs: dict[str, float] = {}
        self.notes: list[str] = []
        self.ended_well = True
        self.best = np.inf
        # One for all rounds: tracing and compiling take longer than many epochs.
        self._trainer = _Trainer.of(self.model)

    def run(self) -> bool:
        """All rounds; the best one is kept. Whether they converged."""
        self._fit_structured()
        self._keep_if_better()
        converged = False
        for _ in range(_ROUNDS):
            if self.epoch >= self.epochs:
                break
            before = self.best
            self._train_networks()
            stopped = bool(self.model.stop_training)
            self._fit_structured()
            self.model.stop_training = stopped
            kept = self._keep_if_better()
            if stopped or not kept or before - self.best <= _TOLERANCE * abs(before):
                converged = stopped or self.epoch < self.epochs
                break
        if self._measure() > self.best:
            self.model.set_weights(self._weights)
        return converged

    def _keep_if_better(self) -> bool:
        deviance = self._measure()
        if deviance >= self.best:
            return False
        self.best, self._weights = deviance, self.model.get_weights()
        return True

    def _measure(self) -> float:
        """Mean deviance of the validation rows, of the training rows where there are none."""
        rows = self.job.validation if isinstance(self.job.validation, Rows) else self.job.training
        assert isinstance(rows, Rows), "rows in memory"
        mean = self.model.family.inverse_link(link_at(self.model, rows), np)
        return float(np.average(self.model.family.unit_deviance(rows.y, mean, np), weights=rows.weight))

    def _fit_structured(self) -> None:
        """The structured terms, given the networks less what is theirs."""
        orthogonalise(self.model, self.job)
        own = replace(
            self.job, validation=None, callbacks=[], verbose=0, epochs=None, keras_arguments={},
            restarts=0, until_agreed=False,
        )  # fmt: skip
        if self.job.keras_arguments.get("class_weight"):
            own = replace(own, training=self.job.weighted_training())
        with noting(silently=True) as notes:
            outcome = fit_variational(self.model, own)
        self.notes, self.ended_well = notes, outcome.converged

    def _train_networks(self) -> None:
        """The networks, given the structured terms."""
        told = _Told(self.callbacks, self.model, self)
        own = replace(
            self.job,
            training=self._given_structured(self.job.weighted_training()),
            validation=self._given_structured(self.job.validation),
            callbacks=[told],
            verbose=0,
            epochs=self.epochs,
            monitor="deviance",
            keras_arguments={
                **self.job.keras_arguments,
                "initial_epoch": self.epoch,
                "class_weight": None,
            },
        )
        with noting(silently=True):  # whether it ended by itself is said of all rounds together
            train(self._trainer, own, patience=_PATIENCE)

    def _given_structured(self, rows: Any) -> Any:
        """The rows with what the predictor is without the opaque terms."""
        if not isinstance(rows, Rows):
            return rows
        rest = link_at(self.model, rows) - opaque_part(self.model, rows)
        encoded = replace(rows.encoded, arrays={**rows.encoded.arrays, _REST: rest})
        return replace(rows, encoded=encoded)


_REST = "(rest)"


class _Trainer(keras.Model):
    """The opaque terms of a model alone, with its layers; the rest of the predictor is an input."""

    posteriors: dict[str, Any] = {}  # noqa: RUF012, what `train` forgets

    @classmethod
    def of(cls, model: Any) -> Any:
        """That of a model, compiled with an optimizer like the model's."""
        graph, scale = model._graph, model.scale
        (opaque,) = (layout.opaque for layout in model.design.layout.values())
        rest = keras.Input(shape=(), dtype="float64", name="rest_of_the_predictor")
        parts = [keras.ops.cast(graph.contributions[t.name][:, 0], "float64") for t in opaque]
        eta = rest + scale * sum(parts[1:], parts[0])
        family = model.family
        trainer = cls([*graph.encoded, rest], family.inverse_link(eta, keras.ops), name="networks")
        trainer.compile(
            optimizer=type(model.optimizer).from_config(model.optimizer.get_config()),
            loss=HalfDeviance(family, model.predictor.dispersion_unit),
            weighted_metrics=[Deviance(family)],
            jit_compile=model.jit_compile,
        )
        return trainer


class _Told(keras.callbacks.Callback):
    """Tells the callbacks of a fit of the epochs of its networks.

    Args:
        callbacks: of the fit.
        whole: the model that they look at.
        rounds: that the epochs belong to.
    """

    def __init__(self, callbacks: Any, whole: Any, rounds: _Rounds) -> None:
        super().__init__()
        self._callbacks, self._whole, self._rounds = callbacks, whole, rounds

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._callbacks.on_epoch_begin(epoch)
        self._callbacks.on_train_batch_begin(0)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._rounds.epoch, self._rounds.logs = epoch + 1, dict(logs or {})
        self._callbacks.on_train_batch_end(0, self._rounds.logs)
        self._callbacks.on_epoch_end(epoch, self._rounds.logs)
        if self._whole.stop_training:
            self.model.stop_training = True
