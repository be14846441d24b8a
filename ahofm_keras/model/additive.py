"""`AdditiveModel`: a formula and a data frame become one functional Keras model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np
import pandas as pd
import tensorflow as tf

from ahofm_keras.bases import EXTRAPOLATIONS
from ahofm_keras.data import batch_rows
from ahofm_keras.errors import DataError, NotFittedError
from ahofm_keras.families import Deviance, HalfDeviance, get_family
from ahofm_keras.intervals import band_of_link, band_of_mean
from ahofm_keras.layers import Posterior, Predictor
from ahofm_keras.model.arguments import (
    check_callbacks,
    check_choice,
    check_class_weight,
    check_level,
    check_seed,
    check_share,
    check_unknown,
    check_whole,
)
from ahofm_keras.model.encoding import Encoder
from ahofm_keras.model.graph import attach_posterior, build_graph
from ahofm_keras.model.learning import learn_state
from ahofm_keras.model.reading import (
    as_response,
    read_inputs,
    read_response,
    read_weight,
    split_off,
)
from ahofm_keras.model.streams import BatchCheck, check_stream, own_errors
from ahofm_keras.penalties import DF_KINDS
from ahofm_keras.serving import export_saved_model
from ahofm_keras.solvers import AUTO, SOLVERS, FitJob, choose_solver
from ahofm_keras.solvers.adam import make_optimizer
from ahofm_keras.solvers.job import Rows
from ahofm_keras.storage import written_whole
from ahofm_keras.terms import Design
from ahofm_keras.transforms import Expression

FORMAT_VERSION = 2
VALIDATION_SHARE = 0.15
PREDICTION_TYPES = ("response", "link", "terms")
_PREDICTION_ROWS = 8192


@keras.saving.register_keras_serializable(package="ahofm_keras")
class AdditiveModel(keras.Model):
    """A generalized additive model with smooth interactions of any order, as a Keras model.

    Args:
        formula: e.g. `"y ~ s(x1) + ahofm(x1, x2, x3, D=3, F=5, df=15)"`.
        data: data frame or dict of columns that knots, levels, centring and penalties are learned
            from; not kept.
        family: `"gaussian"`, `"bernoulli"`, `"poisson"` or `"gamma"`.
        df_kind: definition of degrees of freedom: `"2H-HH"` (tr(2H - H'H)) or `"H"` (tr H).
        extrapolation: outside the training range `"clip"`, go on `"linear"`, or raise an `"error"`.
        seed: of the factors' start, the validation split and the shuffling.
        state: what was learned, as JSON; given instead of `data` when a saved model is loaded.

    Raises:
        FormulaError, DataError: naming the place in the formula or the column.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> data = pd.DataFrame({"x": rng.uniform(size=200)})
        >>> data["y"] = np.sin(6 * data.x) + 0.1 * rng.normal(size=200)
        >>> model = AdditiveModel("y ~ s(x)", data)
        >>> history = model.fit(data, verbose=0)
        >>> model.predict({"x": 0.25}).shape
        (1,)
    """

    steps_per_execution: int

    def __init__(
        self,
        formula: str,
        data: Any = None,
        family: str = "gaussian",
        *,
        df_kind: str = "2H-HH",
        extrapolation: str = "clip",
        seed: int = 0,
        state: Mapping[str, Any] | None = None,
        name: str = "additive_model",
        **kwargs: Any,
    ) -> None:
        get_family(family)
        check_choice("df_kind", df_kind, DF_KINDS)
        check_choice("extrapolation", extrapolation, EXTRAPOLATIONS)
        check_seed(seed)
        known = ("formula", "data", "family", "df_kind", "extrapolation", "seed", "name")
        others = {key: value for key, value in kwargs.items() if key not in ("trainable", "dtype")}
        check_unknown(others, known, "AdditiveModel()")
        if state is None:
            state = learn_state(formula, data, get_family(family), df_kind, extrapolation)
        design = Design.from_json(state["design"])
        graph = build_graph(design, family, state["shift"], state["scale"], seed)
        inputs = {tensor.name: tensor for tensor in graph.inputs.values()}
        super().__init__(inputs=inputs, outputs=graph.response, name=name, **kwargs)
        self.formula = state["formula"]
        self.family = get_family(family)
        self.design = design
        self.df_kind = df_kind
        self.extrapolation = extrapolation
        self.seed = seed
        self._state = _Untracked(state)
        self._graph = graph
        self._encoder = Encoder(graph)
        self._from_encoded = keras.Function(graph.encoded, graph.response)
        self._functions = _Untracked({})
        self._posterior: Posterior | None = None
        self._variance = None
        if state.get("posterior"):
            self.attach_posterior()
        self.compile()

    @property
    def response(self) -> Expression:
        """The response as an expression of raw columns: `y`, or `log(y)`."""
        return Expression.from_json(self._state.value["response"])

    @property
    def scale(self) -> float:
        """Scale of the response inside the model."""
        return float(self._state.value["scale"])

    @property
    def predictor(self) -> Predictor:
        """The layer that holds intercept, shift and scale."""
        return self._graph.predictor

    @property
    def posterior(self) -> Posterior | None:
        """The layer that holds the posterior of all coefficients, where a fit gave one."""
        return self._posterior

    @property
    def has_posterior(self) -> bool:
        """Whether the last fit left a posterior."""
        return self._posterior is not None and float(self._posterior.dispersion) > 0

    def attach_posterior(self) -> Posterior:
        """The layer that holds the posterior; made where there is none."""
        if self._posterior is None:
            self._posterior, self._variance = attach_posterior(self._graph, self.design)
            self._state.value = {**self._state.value, "posterior": True}
        return self._posterior

    @property
    def input_spec(self) -> None:
        # Keras would ask for raw columns; training runs on encoded ones. Columns are checked by us.
        return None

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Mean response of raw columns (a dict), or of rows that were encoded before (a tuple)."""
        if isinstance(inputs, Mapping):
            return super().call(inputs, training=training, mask=mask)
        return self._from_encoded(list(inputs))

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
        self._own_compile = optimizer is not None or loss is not None
        weighted_metrics = weighted_metrics or [Deviance(family)]
        watched = any(isinstance(metric, Deviance) for metric in weighted_metrics)
        self._monitor = "deviance" if watched else "loss"
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

    def get_compile_config(self) -> dict[str, Any]:
        return {**super().get_compile_config(), "own_compile": self._own_compile}

    def compile_from_config(self, config: dict[str, Any]) -> None:
        own = config.get("own_compile", False)
        rest = {key: value for key, value in config.items() if key != "own_compile"}
        self.compile(**keras.saving.deserialize_keras_object(rest))
        self._own_compile = own

    def fit(  # type: ignore[override]
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int | None = None,
        verbose: Any = "auto",
        callbacks: Any = None,
        validation_split: float | None = None,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: Any = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: int = 1,
        *,
        solver: str = "auto",
        restarts: int = 0,
        seed: int | None = None,
    ) -> keras.callbacks.History:
        """Fit the weights; a second call goes on from them.

        Args are those of `keras.Model.fit`, with these additions:

        Args:
            x: data frame or dict of columns, or a `tf.data.Dataset` of batches
                `(columns, y[, weight])`.
            y: response; by default the formula's response, taken from `x`.
            validation_split: share of shuffled rows held out; with `"adam"` 0.15 unless
                `validation_data` is given, with the other solvers none.
            validation_data: data frame, dict or dataset; or `(x, y)`, `(x, y, weight)`.
            sample_weight: of each row, or the name of a column.
            solver: `"variational"` (chooses every smoothing parameter, gives intervals), `"bcd"` (exact
                block updates at the smoothing that df asks for), `"adam"` (mini-batches with early
                stopping: any size, datasets), or `"auto"`: variational where it can serve, else adam.
            restarts: further random starts of `"variational"` or `"bcd"`; the best fit is kept.
            seed: of split, start and shuffling, by default the model's.

        Returns:
            Keras' `History`.
        """
        check_choice("solver", solver, (AUTO, *SOLVERS))
        check_whole(0, epochs=epochs, initial_epoch=initial_epoch, seed=seed, restarts=restarts)
        check_whole(
            1,
            batch_size=batch_size,
            steps_per_epoch=steps_per_epoch,
            validation_steps=validation_steps,
            validation_batch_size=validation_batch_size,
            validation_freq=validation_freq,
        )
        check_share("validation_split", validation_split)
        check_class_weight(class_weight, self.family.name, sample_weight)
        callbacks = check_callbacks(callbacks)
        if verbose in ("auto", 1, 2) and not self.response.is_column:
            print(f"Fitting {self.response}: predictions are on the scale of {self.response}.")
        seed = self.seed if seed is None else seed
        solver = self._choose_solver(
            solver, x, verbose, {"batch_size": batch_size, "steps_per_epoch": steps_per_epoch}, restarts
        )
        training = self._training_rows(x, y, sample_weight)
        validation = None
        if validation_data is not None:
            validation = self._validation_rows(validation_data)
        elif isinstance(training, Rows):
            default = VALIDATION_SHARE if solver == "adam" else 0.0
            share = default if validation_split is None else validation_split
            training, validation = split_off(training, share, seed)
        elif validation_split:
            raise DataError(
                "`validation_split` needs data in memory; give a dataset as `validation_data`."
            )
        job = FitJob(
            training,
            validation,
            batch_size=batch_size,
            epochs=epochs,
            verbose=verbose,
            callbacks=callbacks,
            seed=seed,
            shuffle=shuffle,
            steps_per_epoch=steps_per_epoch,
            validation_steps=validation_steps,
            validation_batch_size=validation_batch_size,
            restarts=restarts,
            monitor=self._monitor,
            keras_arguments={
                "class_weight": class_weight,
                "initial_epoch": initial_epoch,
                "validation_freq": validation_freq,
            },
        )
        with own_errors():
            return SOLVERS[solver](self, job)

    def _choose_solver(
        self, solver: str, x: Any, verbose: Any, batches: dict[str, Any], restarts: int
    ) -> str:
        """The solver's name, `"auto"` resolved and told; refuses what the solver cannot do."""
        streamed = isinstance(x, tf.data.Dataset)
        given = {name: value for name, value in batches.items() if value is not None}
        if solver == AUTO:
            given |= {"a loss or optimizer of your own": True} if self._own_compile else {}
            solver, reason = choose_solver(self.design, streamed, given)
            if verbose in ("auto", 1, 2):
                print(f"solver: {solver} ({reason})")
        elif solver != "adam" and streamed:
            raise DataError(f'solver="{solver}" needs data in memory; a dataset is fitted by "adam".')
        elif solver != "adam" and given:
            raise DataError(f'`{next(iter(given))}` has no meaning for solver="{solver}".')
        if restarts and solver == "adam":
            raise DataError('`restarts` has no meaning for solver="adam".')
        return solver

    def predict(  # type: ignore[override]
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: Any = 0,
        steps: int | None = None,
        callbacks: Any = None,
        *,
        type: str = "response",
        interval: float | None = None,
    ) -> Any:
        """Predict.

        Args:
            x: data frame, dict of columns (scalars: one row), or dataset of batches of columns.
            type: `"response"` (mean), `"link"` (predictor), or `"terms"`: a data frame with a column a
                term (an order of an `ahofm`), whose sum with `model.intercept` (also in the frame's
                `attrs`) and the offset is the link.
            interval: level of intervals, e.g. 0.95, after a fit with `solver="variational"`. With
                `type="response"` a frame comes back with `mean`, `lower` and `upper` (credible band of
                the mean), `predictive_lower` and `predictive_upper` (interval of a new response);
                with `type="link"` one with `link`, `se`, `lower`, `upper`.

        Returns:
            `(n,)` array, or a data frame.
        """
        check_choice("type", type, PREDICTION_TYPES)
        check_whole(1, batch_size=batch_size, steps=steps)
        if interval is not None:
            check_level(interval)
            return self._predict_interval(x, batch_size, steps, type, interval)
        batches = self._prediction_batches(x, batch_size or _PREDICTION_ROWS)
        with own_errors():
            if type == "response":
                with self._one_step_an_execution():
                    return super().predict(batches, verbose=verbose, steps=steps, callbacks=callbacks)
            predicted = self._run(type, batches, steps)
        if type == "link":
            return predicted["link"]
        frame = pd.DataFrame(predicted)
        if isinstance(x, pd.DataFrame):
            frame.index = x.index[: len(frame)]
        frame.attrs["intercept"] = self.intercept
        return frame

    def _predict_interval(
        self, x: Any, batch_size: int | None, steps: int | None, type: str, level: float
    ) -> pd.DataFrame:
        if type == "terms":
            raise DataError('`interval` goes with type="response" or type="link".')
        if not self.has_posterior:
            raise NotFittedError(
                'Intervals need the posterior that `fit` with solver="variational" leaves in the model.'
            )
        batches = self._prediction_batches(x, batch_size or _PREDICTION_ROWS)
        with own_errors():
            predicted = self._run("uncertainty", batches, steps)
        link, error = predicted["link"], predicted["link_se"]
        if type == "link":
            frame = band_of_link(link, error, level)
        else:
            frame = band_of_mean(self.family, link, error, float(predicted["dispersion"][0]), level)
        if isinstance(x, pd.DataFrame):
            frame.index = x.index[: len(frame)]
        return frame

    def _uncertainty(self) -> dict[str, Any]:
        """Predictor, its standard error, and the dispersion, as tensors of the graph."""
        assert self._posterior is not None
        error = self.scale * keras.ops.sqrt(self._variance)
        dispersion = self._posterior.dispersion * self.scale**2 + 0 * error
        return {"link": self._graph.link, "link_se": error, "dispersion": dispersion}

    def evaluate(  # type: ignore[override]
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = 0,
        sample_weight: Any = None,
        **kwargs: Any,
    ) -> Any:
        """`keras.Model.evaluate` on a data frame, dict or dataset; loss and mean deviance."""
        if "_use_cached_eval_dataset" in kwargs:
            # Keras itself, between two epochs of `fit`, with rows that are encoded already.
            self._eval_epoch_iterator.steps_per_execution = 1
            rows = x
        else:
            check_whole(1, batch_size=batch_size)
            rows = self._training_rows(x, y, sample_weight)
            if isinstance(rows, Rows):
                rows = batch_rows(rows.as_tuple(), batch_size or _PREDICTION_ROWS)
        with own_errors(), self._one_step_an_execution():
            return super().evaluate(rows, verbose=verbose, **kwargs)

    @contextmanager
    def _one_step_an_execution(self) -> Iterator[None]:
        """Validation and prediction are few large steps, whatever training runs at once."""
        steps: int = self.steps_per_execution
        self.steps_per_execution = 1
        try:
            yield
        finally:
            self.steps_per_execution = steps

    def save(
        self, filepath: Any, overwrite: bool = True, zipped: bool | None = None, **kwargs: Any
    ) -> None:
        """Save as `.keras`; an interrupted save leaves the file that was there before."""
        if not str(filepath).endswith(".keras") or os.path.basename(filepath) == ".keras":
            raise DataError(f"A model is saved as a `.keras` file. Received: {str(filepath)!r}.")
        if not overwrite and os.path.exists(filepath):
            raise DataError(f"{str(filepath)!r} exists already and overwrite=False.")
        with written_whole(filepath) as path:
            super().save(str(path), zipped=zipped, **kwargs)

    def export(self, filepath: Any, **kwargs: Any) -> None:  # type: ignore[override]
        """Export as a SavedModel for TF Serving.

        `serving_default` takes the raw columns by name and returns `response` and `link`; the endpoint
        `terms` returns the contribution of each term and, after a variational fit, `uncertainty` the
        standard error of the link and the dispersion. An interrupted export leaves what was there.
        """
        if kwargs.get("format", "tf_saved_model") != "tf_saved_model":
            raise DataError(f"Only the format 'tf_saved_model' is exported. Received: {kwargs}.")
        others = {key: value for key, value in kwargs.items() if key not in ("format", "verbose")}
        check_unknown(others, ("format", "verbose"), "export()")
        terms = self._scaled_contributions()
        endpoints = {
            "serving_default": {"response": self._graph.response, "link": self._graph.link},
            **({"terms": terms} if terms else {}),
            **({"uncertainty": self._uncertainty()} if self.has_posterior else {}),
        }
        with written_whole(filepath, folder_with="saved_model.pb") as path:
            export_saved_model(self._graph.inputs, endpoints, path)

    def get_config(self) -> dict[str, Any]:
        return {
            "format_version": FORMAT_VERSION,
            "formula": self.formula,
            "family": self.family.name,
            "df_kind": self.df_kind,
            "extrapolation": self.extrapolation,
            "seed": self.seed,
            "state": self._state.value,
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> AdditiveModel:
        version = config.get("format_version")
        if version is None or version > FORMAT_VERSION:
            raise DataError(
                f"The model was saved in format {version}; this version of ahofm_keras reads up to "
                f"{FORMAT_VERSION}. Update ahofm_keras."
            )
        return cls(**{key: value for key, value in config.items() if key != "format_version"})

    @property
    def intercept(self) -> float:
        """The intercept in units of the link: the predictor where every term is 0; 0 without one."""
        layer = self._graph.predictor
        if layer.bias is None:
            return 0.0
        return layer.shift + layer.scale * float(layer.bias.numpy())

    def __repr__(self) -> str:
        return f"<AdditiveModel {self.family.name}({self.family.link}): {self.formula}>"

    def _training_rows(self, x: Any, y: Any, weight: Any) -> Rows | tf.data.Dataset:
        if isinstance(x, tf.data.Dataset):
            for name, value in (("y", y), ("sample_weight", weight)):
                if value is not None:
                    raise DataError(
                        f"`{name}` cannot stand beside a dataset: "
                        "give batches of `(columns, y[, weight])`."
                    )
            return self._stream(x, with_response=True)
        columns = read_inputs(self.design, x, self.extrapolation)
        if y is None:
            response = read_response(x, self.response, self.family)
        else:
            response = as_response(y, str(self.response), self.family)
        rows = len(next(iter(columns.values())))
        if len(response) != rows:
            raise DataError(f"The response has {len(response)} values, the data {rows} rows.")
        return Rows(self._encoder.encode(columns), response, read_weight(x, weight, rows))

    def _validation_rows(self, data: Any) -> Rows | tf.data.Dataset:
        parts = data if isinstance(data, tuple) else (data,)
        if not 1 <= len(parts) <= 3:
            raise DataError(
                "`validation_data` must be data, or `(x, y)`, or `(x, y, weight)`. "
                f"Received: a tuple of {len(parts)}."
            )
        x, y, weight = (*parts, None, None)[:3]
        return self._training_rows(x, y, weight)

    def _stream(self, dataset: tf.data.Dataset, with_response: bool) -> tf.data.Dataset:
        check_stream(dataset, self.design, with_response)
        check = BatchCheck(self.design, self.family, self.extrapolation)
        return self._encoder.encode_stream(dataset, check, with_response)

    def _prediction_batches(self, x: Any, batch_size: int) -> tf.data.Dataset:
        if isinstance(x, tf.data.Dataset):
            return self._stream(x, with_response=False)
        columns = read_inputs(self.design, x, self.extrapolation)
        return batch_rows((self._encoder.encode(columns),), batch_size)

    def _scaled_contributions(self) -> dict[str, Any]:
        """Contribution of each column of each term, in units of the link."""
        columns = {}
        for term in self.design.terms:
            if term.name not in self._graph.contributions:
                continue
            tensor = self._graph.contributions[term.name]
            for place, label in enumerate(term.column_labels):
                columns[label] = self.scale * keras.ops.cast(tensor[:, place], "float64")
        return columns

    def _run(self, outputs: str, batches: tf.data.Dataset, steps: int | None) -> dict[str, Any]:
        """Other tensors of the graph than the response, on batches of encoded rows."""
        functions = self._functions.value
        if outputs not in functions:
            wanted = {
                "link": lambda: {"link": self._graph.link},
                "terms": self._scaled_contributions,
                "uncertainty": self._uncertainty,
            }[outputs]()
            functions[outputs] = tf.function(keras.Function(self._graph.encoded, wanted))
        run = functions[outputs]
        parts = [run(list(encoded)) for (encoded,) in batches.take(-1 if steps is None else steps)]
        if not parts:
            raise DataError("The dataset has no batches.")
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


class _Untracked:
    """Keeps Keras from looking for layers and variables inside a value."""

    def __init__(self, value: Any) -> None:
        self.value = value
