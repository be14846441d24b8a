"""What a solver is asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from ahofm_keras.solvers.settings import Settings, current_settings
from ahofm_keras.terms import EncodedRows

# How warnings of a fit start: it did not stop by itself, should not be used, could not go on.
NOT_CONVERGED = "The fit reached its last epoch"
ASTRAY = "The fit went astray"
STALLED = "The fit stalled"


def is_no_worse(deviance: float, null_deviance: float, rows: float, unit: float) -> bool:
    """Whether a fit explains no less than the intercept alone, up to what may be rounding.

    Args:
        deviance, null_deviance: of the fit and of the intercept alone.
        rows: the sum of weights in them.
        unit: of deviances inside the model.
    """
    return bool(deviance <= null_deviance + 1e-3 * abs(null_deviance) + 1e-6 * rows * unit)


@dataclass(frozen=True)
class Rows:
    """Training or validation rows in memory, encoded.

    Args:
        encoded: what the model's terms work on.
        y: response `(n,)`.
        weight: of each row `(n,)`, or None.
    """

    encoded: EncodedRows
    y: np.ndarray
    weight: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: np.ndarray) -> Rows:
        weight = None if self.weight is None else self.weight[rows]
        return Rows(self.encoded.take(rows), self.y[rows], weight)

    def with_weight(self, weight: np.ndarray | None) -> Rows:
        """The rows with other weights."""
        return Rows(self.encoded, self.y, weight)

    def with_mean_weight_1(self) -> Rows:
        """The rows with weights in units of their mean.

        Keras divides a sum of weighted losses by the number of rows, and the penalty is for that number:
        so weights leave the two in proportion, and a weight of 2 everywhere is no weight.
        """
        return self if self.weight is None else self.with_weight(self.weight / np.mean(self.weight))

    def as_tuple(self) -> tuple[Any, ...]:
        weight = () if self.weight is None else (self.weight,)
        return (tuple(self.encoded), self.y, *weight)


@dataclass(frozen=True)
class Outcome:
    """How a solver ended.

    Args:
        history: of its epochs.
        converged: whether it stopped by itself, and neither stalled nor astray.
        reached: the engine and the state that block updates ended at; None of other solvers.
    """

    history: keras.callbacks.History
    converged: bool
    reached: Any = None


@dataclass(frozen=True)
class FitJob:
    """One call of `fit`.

    Args:
        training: rows in memory, or a dataset of batches `(encoded, y[, weight])`.
        validation: the same, or None.
        batch_size: rows per step where the user gave it.
        epochs: at most, where the user gave it.
        verbose: as in Keras; `"auto"` is one line that renews itself.
        callbacks: the user's.
        seed: of the shuffling.
        shuffle: whether rows are reshuffled in every epoch.
        steps_per_epoch, validation_steps, validation_batch_size: as in Keras.
        restarts: further random starts; variational fits are averaged, of others the best is kept.
        until_agreed: whether fewer will do, once further ones would hardly change the average.
        monitor: the metric that early stopping watches on validation rows.
        keras_arguments: further arguments of `keras.Model.fit`.
        settings: constants of the solvers, see `use_settings`.
        origin: an `Origin`, the terms of another model at which a variational fit begins, or None.
    """

    training: Rows | tf.data.Dataset
    validation: Rows | tf.data.Dataset | None = None
    batch_size: int | None = None
    epochs: int | None = None
    verbose: Any = "auto"
    callbacks: list[Any] = field(default_factory=list)
    seed: int = 0
    shuffle: bool = True
    steps_per_epoch: int | None = None
    validation_steps: int | None = None
    validation_batch_size: int | None = None
    restarts: int = 0
    until_agreed: bool = False
    monitor: str = "deviance"
    keras_arguments: dict[str, Any] = field(default_factory=dict)
    settings: Settings = field(default_factory=current_settings)
    origin: Any = None

    def weighted_training(self) -> Rows:
        """Training rows in memory, with the weights of their classes where these were given."""
        assert isinstance(self.training, Rows), "rows in memory"
        classes = self.keras_arguments.get("class_weight")
        if not classes:
            return self.training
        return self.training.with_weight(
            np.where(self.training.y > 0, classes[1], classes[0]).astype(float)
        )

    def with_callback(self, callback: Any) -> FitJob:
        """The job with one callback more, before the user's."""
        return replace(self, callbacks=[callback, *self.callbacks])
