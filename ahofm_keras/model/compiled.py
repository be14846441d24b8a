"""What Keras compiles, calls and trains: a functional model that takes raw columns or encoded rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import keras

from ahofm_keras.errors import DataError
from ahofm_keras.families import Deviance, Family, HalfDeviance
from ahofm_keras.solvers.adam import make_optimizer
from ahofm_keras.solvers.posterior import forget_posterior


class CompiledModel(keras.Model):
    """A Keras model with the loss of its family; training runs on encoded rows.

    A subclass sets `family` and `from_encoded` before it compiles, and has a `scale`, a `posterior`
    and `recall`.
    """

    steps_per_execution: int
    family: Family
    from_encoded: keras.Function
    optimizer: Any

    @property
    def input_spec(self) -> None:
        # Keras would ask for raw columns; training runs on encoded ones. Columns are checked by us.
        return None

    @property
    def scale(self) -> float:
        """Scale of the response inside the model."""
        raise NotImplementedError

    def recall(self, fact: str) -> Any:
        """A fact that was saved with the model, or None."""
        raise NotImplementedError

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Mean response of raw columns (a dict), or of rows that were encoded before (a tuple)."""
        if isinstance(inputs, Mapping):
            return super().call(inputs, training=training, mask=mask)
        if not isinstance(inputs, tuple | list):
            raise DataError(
                f"A call takes a dict of tensors, not a {type(inputs).__name__}. Use `predict`."
            )
        return self.from_encoded(list(inputs))

    def compile(
        self,
        optimizer: Any = None,
        loss: Any = None,
        metrics: Any = None,
        weighted_metrics: Any = None,
        jit_compile: Any = True,
        **kwargs: Any,
    ) -> None:
        """`keras.Model.compile` with this model's optimizer, loss and deviance as defaults.

        Training runs on encoded rows, which hold no texts, so it is compiled by default.
        """
        family = self.family.name
        self.own_compile = optimizer is not None or loss is not None
        weighted_metrics = weighted_metrics or [Deviance(family)]
        watched = any(isinstance(metric, Deviance) for metric in weighted_metrics)
        self.monitor = "deviance" if watched else "loss"
        super().compile(
            optimizer=optimizer or make_optimizer(),
            loss=loss or HalfDeviance(family, self.scale),
            metrics=metrics,
            weighted_metrics=weighted_metrics,
            jit_compile=jit_compile,
            **kwargs,
        )
        # A saved model has its optimizer's variables, fitted or not: loading expects them.
        self.optimizer.build(self.trainable_variables)

    def renew_optimizer(self) -> None:
        """Forget what was traced and learned for weights that the layers no longer have."""
        self.optimizer = type(self.optimizer).from_config(self.optimizer.get_config())
        self.optimizer.build(self.trainable_variables)
        self.train_function = self.test_function = self.predict_function = None

    def compile_from_config(self, config: dict[str, Any]) -> None:
        own = config.get("own_compile", self.recall("own_compile"))
        rest = {key: value for key, value in config.items() if key != "own_compile"}
        self.compile(**keras.saving.deserialize_keras_object(rest))
        self.own_compile = bool(own)

    def train_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        """`keras.Model.train_on_batch` on a dict of raw columns; ends what intervals rest on."""
        forget_posterior(self)
        return super().train_on_batch(*args, **kwargs)

    def load_weights(self, filepath: Any, skip_mismatch: bool = False, **kwargs: Any) -> None:
        """`keras.Model.load_weights`; the average of several starts needs room for them first."""
        try:
            super().load_weights(filepath, skip_mismatch=skip_mismatch, **kwargs)
        except ValueError as error:
            if "shape" not in str(error):
                raise
            raise DataError(
                f"The weights in {filepath} have other shapes than those of this model. Those of "
                "the average of three starts, say, need `model.use_starts(3)` first; the fitted model's "
                "`design.starts` is their number. A file of `model.save` knows that by itself."
            ) from error

    @contextmanager
    def one_step_an_execution(self) -> Iterator[None]:
        """Validation and prediction are few large steps, whatever training runs at once."""
        steps: int = self.steps_per_execution
        self.steps_per_execution = 1
        try:
            yield
        finally:
            self.steps_per_execution = steps
