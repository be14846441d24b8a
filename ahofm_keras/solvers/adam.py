"""Mini-batches with Adam and early stopping: the paper's way, for any family and any size."""

from __future__ import annotations

from math import ceil, log2
from typing import Any

import keras
import tensorflow as tf

from ahofm_keras.batches import batch_rows, shuffle_rows
from ahofm_keras.errors import warn
from ahofm_keras.solvers.job import NOT_CONVERGED, FitJob, Outcome, Rows
from ahofm_keras.solvers.posterior import forget_posterior
from ahofm_keras.solvers.progress import ProgressLine

EPOCHS = 1000
PATIENCE = 50
LEARNING_RATE = 0.01
_SLOW_DOWN_AFTER = 16
_SLOW_DOWN_BY = 0.3
_STEPS_AN_EXECUTION = 64
_VALIDATION_ROWS = 8192


def make_optimizer() -> keras.optimizers.Optimizer:
    """Adam at the rate under which the paper's data sets converge in a few hundred epochs."""
    return keras.optimizers.Adam(learning_rate=LEARNING_RATE)


def choose_batch_size(rows: int) -> int:
    """About 16 steps per epoch, between 32 and 1024 rows each."""
    power = round(log2(max(rows, 1) / 16))
    return int(min(max(2**power, 32), 1024))


def fit_adam(model: keras.Model, job: FitJob) -> Outcome:
    """Fit by mini-batches, see `train`; coefficients under a norm that are next to nothing become 0.

    Args:
        model: compiled.
        job: on rows in memory or a dataset.
    """
    outcome = train(model, job)
    for span in (span for layout in model.design.layout.values() for span in layout.spans):
        if span.block.norms:
            model.get_layer(span.term.name).drop_nothing()
    return outcome


def train(model: keras.Model, job: FitJob, patience: int = PATIENCE) -> Outcome:
    """Fit by mini-batches; early stopping on the validation deviance, best weights restored.

    Without validation rows the training loss is watched instead. `val_loss` would be the wrong thing
    to watch: in Keras it includes the penalty.

    Args:
        model: compiled.
        job: on rows in memory or a dataset.
        patience: epochs without a gain after which it stops.
    """
    training, steps = _training_batches(job)
    validated = job.validation is not None
    monitor = f"val_{job.monitor}" if validated else "loss"
    epochs = EPOCHS if job.epochs is None else job.epochs
    stopping = _EarlyStopping(
        monitor,
        mode="min",
        patience=patience,
        # The training loss stands still, to float32, long before the weights do.
        restore_best_weights=validated,
    )
    own: list[Any] = [*([_Validation(job)] if validated else []), stopping, _SlowDown(monitor)]
    if job.verbose == "auto":
        own.append(ProgressLine(monitor))
    forget_posterior(model)
    _use_steps_per_execution(model, steps, job)
    # Validation is a callback's; rows in memory have the weights of their classes already.
    known = ["validation_freq", *(["class_weight"] if isinstance(job.training, Rows) else [])]
    history = keras.Model.fit(
        model,
        training,
        epochs=epochs,
        verbose=0 if job.verbose == "auto" else job.verbose,
        callbacks=[*own, *job.callbacks],
        shuffle=False,  # the batches shuffle themselves
        steps_per_epoch=steps,
        **{key: value for key, value in job.keras_arguments.items() if key not in known},
    )
    converged = bool(model.stop_training or not history.epoch)
    if not converged:
        _warn_not_converged(stopping, epochs)
    return Outcome(history, converged)


def _training_batches(job: FitJob) -> tuple[tf.data.Dataset, int | None]:
    if not isinstance(job.training, Rows):
        return job.training, job.steps_per_epoch
    training, rows = job.weighted_training().with_mean_weight_1(), len(job.training)
    size = min(job.batch_size or choose_batch_size(rows), rows)
    if not job.shuffle:
        batches = batch_rows(training.as_tuple(), size).repeat()
        return batches, job.steps_per_epoch or ceil(rows / size)
    batches = shuffle_rows(training.as_tuple(), size, job.seed)
    return batches, job.steps_per_epoch or max(1, round(rows / size))


def _use_steps_per_execution(model: keras.Model, steps: int | None, job: FitJob) -> None:
    """Run an epoch of a small model as one call into TensorFlow: a call costs as much as a step.

    Callbacks that look at single batches would miss some, so they get every batch. An execution
    must not reach over the end of an epoch, so its steps divide those of the epoch.
    """
    watches_batches = any(_watches_batches(callback) for callback in job.callbacks)
    fitting = [k for k in range(1, _STEPS_AN_EXECUTION + 1) if steps and steps % k == 0]
    wanted = 1 if watches_batches or not fitting else fitting[-1]
    if model.steps_per_execution != wanted:
        model.steps_per_execution = wanted
        model.train_function = None
        model.test_function = None


def _watches_batches(callback: keras.callbacks.Callback) -> bool:
    """Whether a class or an object (`LambdaCallback`) has hooks of its own for batches."""
    base = keras.callbacks.Callback
    hooks = ("on_train_batch_begin", "on_train_batch_end", "on_batch_begin", "on_batch_end")
    return any(
        getattr(getattr(callback, hook), "__func__", None) is not getattr(base, hook) for hook in hooks
    )


class _Validation(keras.callbacks.Callback):
    """Loss and metrics of the validation rows, for the callbacks that come after it.

    Keras' own validation sets up a pass over a dataset after every epoch, which takes longer than a
    small pass, and runs as many steps at once as training does. One batch of rows in memory stays.
    """

    def __init__(self, job: FitJob) -> None:
        super().__init__()
        self._frequency = job.keras_arguments.get("validation_freq") or 1
        self._data: Any = job.validation
        self._steps = job.validation_steps
        self._batch: Any = None
        if isinstance(job.validation, Rows):
            size = job.validation_batch_size or _VALIDATION_ROWS
            self._data = batch_rows(job.validation.as_tuple(), size)
            if len(job.validation) <= size:
                self._batch = next(iter(self._data))

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if logs is not None and not (epoch + 1) % self._frequency:
            logs |= {f"val_{name}": float(value) for name, value in self._measure().items()}

    def _measure(self) -> dict[str, Any]:
        model, steps = self.model, self.model.steps_per_execution
        model.steps_per_execution = 1
        try:
            if self._batch is not None:
                return dict(model.test_on_batch(*self._batch, return_dict=True))
            return dict(
                keras.Model.evaluate(model, self._data, verbose=0, steps=self._steps, return_dict=True)
            )
        finally:
            model.steps_per_execution = steps


class _SlowDown(keras.callbacks.Callback):
    """Smaller steps where the monitored value stands still: Adam at one rate circles its optimum.

    The next `fit` starts at the rate that this one started at. A schedule of the user's is left alone.
    """

    def __init__(self, monitor: str) -> None:
        super().__init__()
        self.monitor = monitor

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        # The config has a schedule as an object, a rate as a number.
        rate = self.model.optimizer.get_config()["learning_rate"]
        self._adjustable = not isinstance(rate, dict)
        self._rate = float(self.model.optimizer.learning_rate)
        self._best, self._waited = float("inf"), 0

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        value = (logs or {}).get(self.monitor)
        if value is None or not self._adjustable:
            return
        self._waited = 0 if value < self._best else self._waited + 1
        self._best = min(value, self._best)
        if self._waited >= _SLOW_DOWN_AFTER:
            self._waited = 0
            optimizer = self.model.optimizer
            optimizer.learning_rate = _SLOW_DOWN_BY * float(optimizer.learning_rate)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        if self._adjustable:
            self.model.optimizer.learning_rate = self._rate


class _EarlyStopping(keras.callbacks.EarlyStopping):
    """Leaves epochs alone in which nothing was validated."""

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if self.monitor in (logs or {}):
            super().on_epoch_end(epoch, logs)


def _warn_not_converged(stopping: Any, epochs: int) -> None:
    warn(
        f"{NOT_CONVERGED} ({epochs}) without stopping: `{stopping.monitor}` was best at "
        f"epoch {stopping.best_epoch + 1}. Call `fit` again to go on, or raise `epochs`.",
    )
