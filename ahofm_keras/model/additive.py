"""`AdditiveModel`: a formula and a data frame become one functional Keras model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from ahofm_keras.bases import EXTRAPOLATIONS
from ahofm_keras.data import batch_rows
from ahofm_keras.errors import DataError
from ahofm_keras.families import Family, get_family
from ahofm_keras.intervals import conformal_band
from ahofm_keras.layers import Posterior, Predictor
from ahofm_keras.model.arguments import (
    check_callbacks,
    check_choice,
    check_given,
    check_order,
    check_unknown,
    check_verbose,
    check_whole,
)
from ahofm_keras.model.encoding import Encoder
from ahofm_keras.model.files import FORMAT_VERSION, check_export, check_save, reading_config
from ahofm_keras.model.fitting import FitRequest, run_fit
from ahofm_keras.model.graph import attach_posterior, build_graph, count_posterior
from ahofm_keras.model.learning import learn_state
from ahofm_keras.model.predicting import (
    CONFORMAL,
    PREDICTION_ROWS,
    PREDICTION_TYPES,
    Outputs,
    batches_of,
    calibration_scores,
    check_interval,
    interval_frame,
    mean_and_spread,
    terms_frame,
    warn_if_unfitted,
    with_index,
)
from ahofm_keras.model.reading import read_inputs
from ahofm_keras.model.remembering import RememberingModel
from ahofm_keras.model.rows import RowReader
from ahofm_keras.model.streams import own_errors
from ahofm_keras.penalties import DF_KINDS
from ahofm_keras.serving import export_saved_model
from ahofm_keras.solvers.job import Rows
from ahofm_keras.storage import written_whole
from ahofm_keras.terms import Design, InteractionTerm
from ahofm_keras.transforms import Expression

# Numbers of a posterior, 32 MB of them: a larger one is made when a fit or a file has something for it.
_SMALL_POSTERIOR = 2**22


@keras.saving.register_keras_serializable(package="ahofm_keras")
class AdditiveModel(RememberingModel):
    """A generalized additive model with smooth interactions of any order, as a Keras model.

    Args:
        formula: e.g. `"y ~ s(x1) + ahofm(x1, x2, x3, D=3, F=5, df=15)"`.
        data: data frame or dict of columns that knots, levels, centring and penalties are learned
            from; not kept.
        family: `"gaussian"`, `"bernoulli"`, `"poisson"` or `"gamma"`; with another link than its usual
            one `ak.families.Gamma(link="inverse")`.
        df_kind: definition of degrees of freedom: `"2H-HH"` (tr(2H - H'H)) or `"H"` (tr H).
        extrapolation: outside the training range `"clip"`, go on `"linear"`, or raise an `"error"`.
        seed: of the factors' start, the validation split and the shuffling.
        state: what was learned, as JSON; given instead of `data` when a saved model is loaded.

    Raises:
        FormulaError, DataError: naming the place in the formula or the column.

    Example:
        >>> import numpy as np
        >>> import pandas as pd
        >>> rng = np.random.default_rng(0)
        >>> data = pd.DataFrame({"x": rng.uniform(size=200)})
        >>> data["y"] = np.sin(6 * data.x) + 0.1 * rng.normal(size=200)
        >>> model = AdditiveModel("y ~ s(x)", data)
        >>> history = model.fit(data, verbose=0)
        >>> model.predict({"x": 0.25}).shape
        (1,)
    """

    def __init__(
        self,
        formula: str,
        data: Any = None,
        family: str | Family | type[Family] = "gaussian",
        *,
        df_kind: str = "2H-HH",
        extrapolation: str = "clip",
        seed: int = 0,
        state: Mapping[str, Any] | None = None,
        name: str = "additive_model",
        **kwargs: Any,
    ) -> None:
        check_order(formula, data, family)
        family = get_family(family)
        check_choice("df_kind", df_kind, DF_KINDS)
        check_choice("extrapolation", extrapolation, EXTRAPOLATIONS)
        check_given(0, seed=seed)
        known = ("formula", "data", "family", "df_kind", "extrapolation", "seed", "name")
        others = {key: value for key, value in kwargs.items() if key not in ("trainable", "dtype")}
        check_unknown(others, known, "AdditiveModel()")
        if state is None:
            state = learn_state(formula, data, family, df_kind, extrapolation)
        design = Design.from_json(state["design"])
        graph = build_graph(design, family, state["shift"], state["scale"], seed)
        inputs = {tensor.name: tensor for tensor in graph.inputs.values()}
        super().__init__(inputs=inputs, outputs=graph.response, name=name, **kwargs)
        self.formula = state["formula"]
        self.family = family
        self.design = design
        self.df_kind = df_kind
        self.extrapolation = extrapolation
        self.seed = seed
        self.begin_memory(state)
        self._graph = graph
        self._reader = RowReader(design, self.family, self.response, extrapolation, Encoder(graph))
        self._named_outputs = Outputs(graph, design, self.scale, self.dispersion_unit)
        self.from_encoded = keras.Function(graph.encoded, graph.response)
        self.start_mark = self.weights_mark()
        self._posterior: Posterior | None = None
        if state.get("posterior") or count_posterior(design) <= _SMALL_POSTERIOR:
            self.attach_posterior(int(state.get("posterior") or design.starts))
        self.compile()

    @property
    def response(self) -> Expression:
        """The response as an expression of raw columns: `y`, or `log(y)`."""
        return Expression.from_json(self.recall("response"))

    @property
    def scale(self) -> float:
        """Scale of the response inside the model."""
        return float(self.recall("scale"))

    @property
    def dispersion_unit(self) -> float:
        """What the dispersion inside the model is a multiple of."""
        return self.family.dispersion_unit(self.predictor.shift, self.scale)

    @property
    def predictor(self) -> Predictor:
        """The layer that holds intercept, shift and scale."""
        return self._graph.predictor

    @property
    def posterior(self) -> Posterior | None:
        """The layer that holds the posterior of all coefficients; says nothing before a fit."""
        return self._posterior

    @property
    def has_posterior(self) -> bool:
        """Whether a posterior of the weights is known, from a fit or a file."""
        return self._posterior is not None and float(self._posterior.dispersion) > 0

    def attach_posterior(self, starts: int = 1) -> Posterior:
        """The layer that holds the posterior; made where there is none.

        Args:
            starts: of how many fits the factors have covariances of their own, see `use_starts`.
        """
        if self._posterior is None:
            self._posterior, variance = attach_posterior(self._graph, self.design, starts)
            self._named_outputs.use_posterior(self._posterior, variance)
        elif self._posterior.starts != starts:
            self._posterior.resize(self._ranks(), starts)
            self._named_outputs.forget_functions()
        self.remember(posterior=starts)
        return self._posterior

    def _ranks(self) -> list[int]:
        """Number of factors of all orders of all interaction terms."""
        return [order.slots for term in self.design.of_kind(InteractionTerm) for order in term.orders]

    def use_starts(self, starts: int) -> None:
        """Make room for the factors of several fits, whose average the model is to be.

        Where the room changes, weights and posterior of the interactions start anew.
        """
        check_given(1, starts=starts)
        if starts == self.design.starts:
            return
        self.design = self.design.with_starts(starts)
        self.remember(design=self.design.to_json())
        for term in self.design.of_kind(InteractionTerm):
            self.get_layer(term.name).resize([order.slots for order in term.orders])
        self._named_outputs.forget_functions()
        if self._posterior is not None:
            self._posterior.resize(self._ranks(), starts)
            self.remember(posterior=starts)
        self.renew_optimizer()

    def read_inputs(self, data: Any) -> dict[str, np.ndarray]:
        """The model's raw columns of some data, checked."""
        return read_inputs(self.design, data, self.extrapolation)

    def fitted_layers(self) -> list[keras.Layer]:
        """The layers whose weights a fit sets."""
        return [self.predictor, *(self.get_layer(name) for name in self._graph.contributions)]

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
        restarts: Any = "auto",
        seed: int | None = None,
    ) -> keras.callbacks.History:
        """Fit the weights; a second call goes on from them.

        An interrupted fit leaves the weights that it reached, and neither record nor sample.

        Args are those of `keras.Model.fit`, with these additions:

        Args:
            x: data frame or dict of columns, or a `tf.data.Dataset` of batches
                `(columns, y[, weight])`.
            y: response; by default the formula's response, taken from `x`.
            validation_split: share of shuffled rows held out; with `"adam"` 0.15 unless
                `validation_data` is given, with the other solvers none.
            validation_data: data frame, dict or dataset; or `(x, y)`, `(x, y, weight)`.
            sample_weight: of each row, or the name of a column; it divides the row's dispersion, so that
                predictive intervals are those of a row of weight 1.
            solver: `"variational"` (chooses every smoothing parameter, gives intervals; starts anew on
                other rows), `"bcd"` (exact block updates at the smoothing that df asks for), `"adam"`
                (mini-batches with early stopping: any size, datasets), or `"auto"`: variational where
                it can serve, else adam.
            restarts: further random starts. The fits of `"variational"` are averaged: the average of
                K fits of rank F is a model of rank K F. Of those of `"bcd"` the best is kept. With
                `"auto"` a variational fit of interactions to at most 20,000 rows has starts until
                further ones would change its error by less than 1 %: at least 2, at most 12 and 40,000
                over the number of rows. It has one if `epochs` or `callbacks` are given, as all other
                fits have.
            seed: of split, start and shuffling, by default the model's.

        Returns:
            Keras' `History`.
        """
        request = FitRequest(
            x, y, batch_size, epochs, verbose, callbacks, validation_split, validation_data, shuffle,
            class_weight, sample_weight, initial_epoch, steps_per_epoch, validation_steps,
            validation_batch_size, validation_freq, solver, restarts,
            self.seed if seed is None else seed,
        )  # fmt: skip
        return run_fit(self, self._reader, request)

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
        method: str = "posterior",
        calibration: Any = None,
    ) -> Any:
        """Predict.

        Args:
            x: data frame, dict of columns (scalars: one row), or dataset of batches of columns.
            type: `"response"` (mean), `"link"` (predictor), or `"terms"`: a data frame with a column a
                term (an order of an `ahofm`), whose sum with `model.intercept` (also in the frame's
                `attrs`) and the offset is the link.
            interval: level of intervals, e.g. 0.95. With `type="response"` a frame comes back with
                `mean`, `lower` and `upper` (credible band of the mean), `predictive_lower` and
                `predictive_upper` (interval of a new response); with `type="link"` one with `link`,
                `se`, `lower`, `upper`.
            method: of the intervals: `"posterior"`, that of a variational fit or the Laplace
                approximation at the weights of another; or `"conformal"`, predictive intervals that
                hold whatever the response follows, from rows that the model was not fitted to.
            calibration: such rows for `"conformal"`: data with the response, `(x, y)`, `(x, y, weight)`.

        Returns:
            `(n,)` array, or a data frame.
        """
        check_choice("type", type, PREDICTION_TYPES)
        check_verbose(verbose)
        check_whole(1, batch_size=batch_size, steps=steps)
        wanted = "terms" if type == "terms" else "mean"
        if interval is not None:
            check_interval(self, type, interval, method, calibration)
            wanted = "uncertainty" if self.has_posterior else "mean"
        plain = type == "response" and interval is None
        if check_callbacks(callbacks) and not plain:
            raise DataError('`callbacks` of `predict` go with type="response" and no interval.')
        rows, size = self._reader.without_response(x), batch_size or PREDICTION_ROWS
        warn_if_unfitted(self)
        with own_errors():
            if plain and (callbacks or verbose):  # Keras' own loop knows how to show and call them
                if not isinstance(rows, tf.data.Dataset):
                    rows = batch_rows((rows,), size)
                with self.one_step_an_execution():
                    return super().predict(rows, verbose=verbose, steps=steps, callbacks=callbacks)
            predicted = self._named_outputs.run(wanted, batches_of(rows, size, steps))
            if interval is not None and method == CONFORMAL:
                rows = self._reader.validation(calibration)
                scores = calibration_scores(rows, self._named_outputs, self.family, wanted)
                mean, spread = mean_and_spread(predicted, self.family)
                return with_index(conformal_band(self.family, mean, spread, scores, interval), x)
        if interval is not None:
            return with_index(interval_frame(predicted, self.family, type, interval), x)
        if type == "terms":
            return with_index(terms_frame(predicted, self.intercept), x)
        return predicted[type]

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
            check_verbose(verbose)
            check_whole(1, batch_size=batch_size, steps=kwargs.get("steps"))
            check_unknown(kwargs, ("steps", "callbacks", "return_dict"), "evaluate()")
            check_callbacks(kwargs.get("callbacks"))
            rows = self._reader.with_response(x, y, sample_weight)
            if isinstance(rows, Rows):
                rows = batch_rows(rows.with_mean_weight_1().as_tuple(), batch_size or PREDICTION_ROWS)
        with own_errors(), self.one_step_an_execution():
            return super().evaluate(rows, verbose=verbose, **kwargs)

    def save(
        self, filepath: Any, overwrite: bool = True, zipped: bool | None = None, **kwargs: Any
    ) -> None:
        """Save as `.keras`; an interrupted save leaves the file that was there before."""
        check_save(filepath, overwrite)
        with written_whole(filepath) as path:
            super().save(str(path), zipped=zipped, **kwargs)

    def export(self, filepath: Any, **kwargs: Any) -> None:  # type: ignore[override]
        """Export as a SavedModel for TF Serving.

        `serving_default` takes the raw columns by name and returns `response` and `link`; the endpoint
        `terms` returns the contribution of each term and, after a variational fit, `uncertainty` the
        standard error of the link and the dispersion. An interrupted export leaves what was there.
        """
        check_export(kwargs)
        endpoints = self._named_outputs.endpoints(with_uncertainty=self.has_posterior)
        with written_whole(filepath, folder_with="saved_model.pb") as path:
            export_saved_model(self._graph.inputs, endpoints, path)

    def get_config(self) -> dict[str, Any]:
        return {
            "format_version": FORMAT_VERSION,
            "formula": self.formula,
            "family": self.family.to_json(),
            "df_kind": self.df_kind,
            "extrapolation": self.extrapolation,
            "seed": self.seed,
            "state": {**self.facts, "own_compile": self.own_compile},
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> AdditiveModel:
        with reading_config(config):
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
