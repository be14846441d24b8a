"""What Keras compiles, calls and trains: a functional model that takes raw columns or encoded rows."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import keras

from ahofm_keras.errors import DataError
from ahofm_keras.families import Deviance, Family, HalfDeviance
from ahofm_keras.layers import Posterior
from ahofm_keras.solvers.adam import make_optimizer
from ahofm_keras.solvers.choice import LARGEST_BLOCK, largest_block
from ahofm_keras.solvers.posterior import forget_posterior
from ahofm_keras.terms import Design, InteractionTerm


class CompiledModel(keras.Model):
    """A Keras model with the loss of its family; training runs on encoded rows.

    A subclass sets `family`, `design` and `from_encoded` before it compiles, and has what is not
    implemented here.
    """

    steps_per_execution: int
    family: Family
    design: Design
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

    @property
    def dispersion_unit(self) -> float:
        """What the dispersion inside the model is a multiple of."""
        raise NotImplementedError

    def recall(self, fact: str) -> Any:
        """A fact that was saved with the model, or None."""
        raise NotImplementedError

    @property
    def has_posterior(self) -> bool:
        """Whether a posterior of the weights is known."""
        raise NotImplementedError

    def attach_posterior(self, starts: int = 1) -> Posterior:
        """The layer that holds the posterior."""
        raise NotImplementedError

    def use_starts(self, starts: int) -> None:
        """Make room for the factors of several fits."""
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
        self.own_compile = optimizer is not None or loss is not None
        weighted_metrics = weighted_metrics or [Deviance(self.family)]
        watched = any(isinstance(metric, Deviance) for metric in weighted_metrics)
        self.monitor = "deviance" if watched else "loss"
        super().compile(
            optimizer=optimizer or make_optimizer(),
            loss=loss or HalfDeviance(self.family, self.dispersion_unit**0.5),
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
        """`keras.Model.load_weights`, with the posterior; makes room for the average of several starts.

        Where the file does not fit, the model stays as it was.
        """
        if largest_block(self.design).size <= LARGEST_BLOCK:
            self.attach_posterior(self.design.starts).is_in_file = False
        starts, before = self.design.starts, self.get_weights()
        load = partial(super().load_weights, filepath, skip_mismatch=skip_mismatch, **kwargs)
        try:
            self._load_with_room(load, starts)
        except BaseException as error:
            self.use_starts(starts)
            self.set_weights(before)
            misfit = isinstance(error, ValueError) and re.search("shape|not be loaded", str(error))
            if not misfit:
                raise
            raise DataError(
                f"The weights in {str(filepath)!r} have other shapes than those of this model. Make the "
                "model with the formula and the data of the one that they come from; a file of "
                "`model.save` needs neither."
            ) from error

    def _load_with_room(self, load: Callable[[], None], starts: int) -> None:
        """Load; where the file has the factors of several starts, once more with room for them."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # Keras, of where else it looks in vain
                load()
        except ValueError:
            found = self._starts_in_file()
            if found in (None, starts):
                raise
            self.use_starts(found)
            load()

    def _starts_in_file(self) -> int | None:
        """How many starts the numbers of factors in the last file are those of."""
        found = {
            rank / order.rank
            for term in self.design.of_kind(InteractionTerm)
            for rank, order in zip(self.get_layer(term.name).ranks_in_file, term.orders, strict=False)
        }
        starts = found.pop() if len(found) == 1 else 0.5
        return int(starts) if starts == int(starts) else None

    @contextmanager
    def one_step_an_execution(self) -> Iterator[None]:
        """Validation and prediction are few large steps, whatever training runs at once."""
        steps: int = self.steps_per_execution
        self.steps_per_execution = 1
        try:
            yield
        finally:
            self.steps_per_execution = steps
