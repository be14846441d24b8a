"""`AdditiveModel`: a formula and a data frame become one functional Keras model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from ahofm_keras.errors import DataError
from ahofm_keras.families import Family, get_family
from ahofm_keras.layers import Posterior
from ahofm_keras.model import files, predicting
from ahofm_keras.model.arguments import check_construction
from ahofm_keras.model.compiling import compile_arguments, read_compile_config
from ahofm_keras.model.encoding import Encoder
from ahofm_keras.model.fit_result import FitResult, Sample
from ahofm_keras.model.fit_state import FitState
from ahofm_keras.model.fitting import FitRequest, run_fit
from ahofm_keras.model.formulas import formula_text
from ahofm_keras.model.graph import build_graph, build_posteriors, start_networks
from ahofm_keras.model.learning import learn_state
from ahofm_keras.model.methods import ReadingMethods
from ahofm_keras.model.outputs import Outputs
from ahofm_keras.model.parameters import view_parameter
from ahofm_keras.model.predict_request import PredictRequest
from ahofm_keras.model.reading import read_inputs
from ahofm_keras.model.row_reader import RowReader
from ahofm_keras.model.starts import AUTO, make_room
from ahofm_keras.model.streams import own_errors
from ahofm_keras.model.units import Units, read_units
from ahofm_keras.serving import export_saved_model
from ahofm_keras.solvers.choice import can_have_posterior
from ahofm_keras.solvers.posterior import forget_posterior
from ahofm_keras.storage import written_whole
from ahofm_keras.terms import Design, read_networks
from ahofm_keras.transforms import Expression


@keras.saving.register_keras_serializable(package="ahofm_keras")
class AdditiveModel(ReadingMethods, Units, keras.Model):
    """A generalized additive model with smooth interactions of any order, as a Keras model.

    Args:
        formula: e.g. `"y ~ s(x1) + ahofm(x1, x2, x3, D=3, F=5, df=15)"`; or one per parameter of the
            family, `{"loc": "y ~ ahofm(., D=2)", "scale": "~ s(x1)"}`: others are constant.
        data: data frame or dict of columns that knots, levels, centring and penalties are learned
            from; not kept. Without the response among them its units are learned in the first fit.
        family: `"gaussian"`, `"bernoulli"`, `"poisson"` or `"gamma"`; with another link than its usual
            one `ak.families.Gamma(link="inverse")`.
        df_kind: definition of degrees of freedom: `"2H-HH"` (tr(2H - H'H)) or `"H"` (tr H).
        extrapolation: outside the training range `"clip"`, go on `"linear"`, or raise an `"error"`. But
            with `"linear"`, predictors of models with interactions stay in their training range too.
        seed: of the factors' start, the validation split and the shuffling.
        starts: for the average of how many fits there is room; `"auto"` for as many as `fit` takes by
            default with as many rows as `data` has.
        neighbours: for `s(region, bs="mrf")`: by the name of the column a dict from region to its
            neighbours, `{"region": {"a": ["b"], "b": ["a"]}}`, or regions as GeoJSON.
        nets: Keras networks that terms `deep(x1, x2, net="name")` name. A model has a copy of each, per
            term, which starts from its weights.
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
        formula: str | Mapping[str, str],
        data: Any = None,
        family: str | Family | type[Family] = "gaussian",
        *,
        df_kind: str = "2H-HH",
        extrapolation: str = "clip",
        seed: int = 0,
        starts: Any = AUTO,
        neighbours: Mapping[str, Any] | None = None,
        nets: Mapping[str, Any] | None = None,
        state: Mapping[str, Any] | None = None,
        name: str = "additive_model",
        **kwargs: Any,
    ) -> None:
        check_construction(formula, data, family, df_kind, extrapolation, seed, neighbours, kwargs)
        family = get_family(family)
        networks = read_networks(nets)
        if state is None:
            state = learn_state(formula, data, family, df_kind, extrapolation, neighbours, networks)
        family = get_family(state.get("family", family))
        design = Design.from_json(state["design"])
        room = make_room(design, state.get("starts", starts))
        super().__init__(name=name, autocast=False, **kwargs)  # columns keep their digits
        self.formula = state["formula"]
        self.family = family
        self.design = design
        self.df_kind = df_kind
        self.extrapolation = extrapolation
        self.seed = seed
        self.room = room
        self._graph = graph = build_graph(design, family, read_units(state, design), seed, room)
        inputs = {tensor.name: tensor for tensor in graph.inputs.values()}
        self.network = keras.Model(inputs, graph.mean, name=f"{name}_network")
        start_networks(self.network, design, networks)
        posteriors = build_posteriors(graph, design, room) if can_have_posterior(design) else {}
        self.posteriors: dict[str, Posterior] = {name: own for name, (own, _) in posteriors.items()}
        names = dict.fromkeys(order.name for order in design.orders)
        interactions = [self.get_layer(name) for name in names]
        last = FitResult.from_json(state["fit"]) if state.get("fit") else None
        self._fits = FitState(self.fitted_layers(), interactions, list(self.posteriors.values()), last)
        response = Expression.from_json(state["response"])
        self._reader = RowReader(design, self.family, response, extrapolation, Encoder(graph))
        self._outputs = Outputs(graph, design, family, posteriors, self._fits.in_use)
        self.built = True
        self.compile()

    @property
    def response(self) -> Expression:
        """The response as an expression of raw columns: `y`, or `log(y)`."""
        return self._reader.response

    @property
    def posterior(self) -> Posterior | None:
        """That of the first predictor, which is the only one of most models."""
        return next(iter(self.posteriors.values()), None)

    @property
    def has_posterior(self) -> bool:
        """Whether a posterior of the weights is known, from a fit or a file."""
        return bool(self.posteriors) and all(own.is_known for own in self.posteriors.values())

    def parameter(self, name: str | None = None) -> Any:
        """One predictor, to read as a model of its own: `model.parameter("scale").effects()`.

        Args:
            name: of the family's parameter, by default its first; of a model with one predictor that is
                the model.
        """
        return view_parameter(self, name)

    @property
    def starts(self) -> int:
        """Number of fits whose factors the model has, side by side."""
        return self._fits.starts

    @property
    def is_fitted(self) -> bool:
        """Whether the weights are others than those that the model starts with."""
        return self._fits.is_fitted

    @property
    def fit_result(self) -> FitResult | None:
        """How the fit went that set the weights; None where none of this model did, to its end."""
        return self._fits.result

    @property
    def sample(self) -> Sample | None:
        """Some of the rows of that fit; None after loading: a file holds no rows."""
        return self._fits.sample

    def keep_fit(self, result: FitResult, sample: Sample | None) -> None:
        """Keep what a fit leaves behind: its result in the model's files, rows in memory only."""
        self._fits.keep(result, sample)

    def fitted_layers(self) -> list[keras.Layer]:
        """The layers whose weights a fit sets."""
        named = [
            *self.predictors.values(),
            *(self.get_layer(name) for name in self._graph.contributions),
        ]
        # A term may have several layers; only the last has its name.
        return list(dict.fromkeys([*named, *(own for own in self.network.layers if own.weights)]))

    def networks_by_name(self) -> dict[str, Any]:
        """The networks of its terms as they are now, by the names that they were given with."""
        found = (pair for term in self.design.terms for pair in term.networks.items())
        return {name: self.get_layer(layer) for layer, name in found}

    @property
    def encoded_names(self) -> list[str]:
        """What encoded rows hold, in the order in which the network takes it."""
        return list(self._graph.encoders)

    def read_inputs(self, data: Any) -> dict[str, np.ndarray]:
        """The model's raw columns of some data, checked."""
        return read_inputs(self.design, data, self.extrapolation)

    def get_layer(self, name: str | None = None, index: int | None = None) -> keras.Layer:
        """A layer of the network, by name or index; the posterior by name."""
        own = next((own for own in self.posteriors.values() if own.name == name), None)
        if own is not None:
            return own
        return self.network.get_layer(name, index)

    def summary(self, *args: Any, expand_nested: bool = True, **kwargs: Any) -> None:
        """`keras.Model.summary`, with the layers of the network."""
        super().summary(*args, expand_nested=expand_nested, **kwargs)

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Refuse what is neither, before Keras makes tensors of it."""
        if not isinstance(inputs, Mapping | tuple | list):
            raise DataError(f"A call takes a dict of tensors, not a {type(inputs)}. Use `predict`.")
        return super().__call__(inputs, *args, **kwargs)

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Mean response of raw columns (a dict), of classes their probabilities `(n, K)`.

        Of rows that were encoded before (a tuple) what the loss takes: with several predictors all
        parameters `(n, K)`.
        """
        if isinstance(inputs, Mapping):
            return self.network.call(inputs, training=training, mask=mask)
        return self._outputs.from_encoded(list(inputs))

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
        arguments, self.monitor = compile_arguments(self, optimizer, loss, weighted_metrics)
        super().compile(**arguments, metrics=metrics, jit_compile=jit_compile, **kwargs)
        # A saved model has its optimizer's variables, fitted or not: loading expects them.
        self.optimizer.build(self.trainable_variables)

    def get_compile_config(self) -> dict[str, Any]:
        return {**super().get_compile_config(), "own_compile": self.own_compile}

    def compile_from_config(self, config: dict[str, Any]) -> None:
        arguments, own = read_compile_config(config)
        self.compile(**arguments)
        self.own_compile = own

    def train_on_batch(self, x: Any, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        """`keras.Model.train_on_batch` on a dict of raw columns; ends what intervals rest on."""
        if not self.scale:
            raise DataError("The model has not seen its response yet: call `fit` before this.")
        forget_posterior(self)
        return super().train_on_batch(*self._reader.batch(x, y), *args, **kwargs)

    def test_on_batch(self, x: Any, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        """`keras.Model.test_on_batch` on a dict of raw columns."""
        return super().test_on_batch(*self._reader.batch(x, y), *args, **kwargs)

    def set_weights(self, weights: Any) -> None:
        """`keras.Model.set_weights`, with the posterior."""
        super().set_weights(weights)
        self._fits.refresh()

    # Keras' own functions are traced again where other factors are in use.

    def make_train_function(self, force: bool = False) -> Any:
        return super().make_train_function(force or self._fits.is_traced_anew("train"))

    def make_test_function(self, force: bool = False) -> Any:
        return super().make_test_function(force or self._fits.is_traced_anew("test"))

    def make_predict_function(self, force: bool = False) -> Any:
        return super().make_predict_function(force or self._fits.is_traced_anew("predict"))

    def load_weights(self, filepath: Any, skip_mismatch: bool = False, **kwargs: Any) -> None:
        """`keras.Model.load_weights`, with the posterior; where they do not fit nothing changes."""
        with files.loading_weights(self, filepath):
            super().load_weights(filepath, skip_mismatch=skip_mismatch, **kwargs)

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
        init_from: Any = None,
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
                further ones would change its error by less than 1 %: at least 2, at most 12, and 1 plus
                20,000 over the number of rows. It has one if `epochs` or `callbacks` are given, as all
                other fits have.
            seed: of split, start and shuffling, by default the model's.
            init_from: another fitted model of the same response: terms of the same label and basis begin
                at its coefficients, with `"variational"` at its smoothing too; all others as they would
                without it. Says which they are.

        Returns:
            Keras' `History`.
        """
        request = FitRequest(
            x, y, batch_size, epochs, verbose, callbacks, validation_split, validation_data, shuffle,
            class_weight, sample_weight, initial_epoch, steps_per_epoch, validation_steps,
            validation_batch_size, validation_freq, solver, restarts,
            self.seed if seed is None else seed, init_from,
        )  # fmt: skip
        return run_fit(self, self._reader, self._fits, request)

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
        q: Any = None,
        trials: Any = None,
    ) -> Any:
        """Predict.

        Args:
            x: data frame, dict of columns (scalars: one row), or dataset of batches of columns.
            type: `"response"` (mean; of classes a frame with the probability of each), `"class"` (the
                likeliest), `"link"` (predictor), or `"terms"`: a data frame with a column per
                term (an order of an `ahofm`), whose sum with `model.intercept` (also in the frame's
                `attrs`) and the offset is the link. With interactions the last column, `(limit)`, is
                what holds the smooth terms within the range of their sum on the training rows.
                `"parameters"`: a frame with each parameter of the response's distribution;
                `"distribution"`: that distribution (`mean`, `var`, `cdf`, `quantile`, `sample`,
                `log_prob`, `interval`, `crps`); `"quantile"`: its quantiles at `q`. Where there are
                several predictors, `"link"` is a frame of all.
            interval: level of intervals, e.g. 0.95. With `type="response"` a frame comes back with
                `mean`, `lower` and `upper` (credible band of the mean), `predictive_lower` and
                `predictive_upper` (interval of a new response); with `type="link"` one with `link`,
                `se`, `lower`, `upper`; with `type="parameters"` each parameter with its own band, in
                `scale`, `scale_lower`, `scale_upper`. Of several predictors `"link"` has such columns.
            method: of the intervals: `"posterior"`, that of a variational fit or the Laplace
                approximation at the weights of another; or `"conformal"`, predictive intervals that
                hold whatever the response follows, from rows that the model was not fitted to.
            calibration: such rows for `"conformal"`: data with the response, `(x, y)`, `(x, y, weight)`.
            q: probabilities between 0 and 1, for `type="quantile"`.
            trials: of the binomial family the number of trials of each row, or the name of their column:
                predictive intervals, quantiles and distributions are of numbers of successes then,
                without it of one trial.

        Returns:
            `(n,)` array, a data frame, or a distribution.
        """
        request = PredictRequest(
            x, batch_size, verbose, steps, callbacks, type, interval, method, calibration, q, trials
        )
        return predicting.run_predict(self, self._reader, self._outputs, request, super().predict)

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
        given = x, y, sample_weight
        rows = predicting.evaluation_rows(self, self._reader, given, batch_size, verbose, kwargs)
        with own_errors(), predicting.one_step_an_execution(self):
            return super().evaluate(rows, verbose=verbose, **kwargs)

    def save(
        self, filepath: Any, overwrite: bool = True, zipped: bool | None = None, **kwargs: Any
    ) -> None:
        """Save as `.keras`; an interrupted save leaves the file that was there before."""
        files.check_save(filepath, overwrite)
        self.family.check_saved()
        with written_whole(filepath) as path:
            super().save(str(path), zipped=zipped, **kwargs)

    def export(self, filepath: Any, **kwargs: Any) -> None:  # type: ignore[override]
        """Export as a SavedModel for TF Serving.

        `serving_default` takes the raw columns by name and returns `response` (the mean; of classes the
        probabilities in the order of the classes) and `link`; with several predictors also each
        parameter by its name, of classes also `class` and each probability as `probability_<class>`.
        The endpoint `terms` returns the contribution of each term and, after a variational fit,
        `uncertainty` the standard error of the link and the dispersion. An interrupted export leaves
        what was there.
        """
        files.check_export(kwargs)
        endpoints = self._outputs.endpoints(with_uncertainty=self.has_posterior)
        with written_whole(filepath, folder_with="saved_model.pb") as path:
            export_saved_model(self._graph.inputs, endpoints, path)

    def get_config(self) -> dict[str, Any]:
        return {
            "format_version": files.FORMAT_VERSION,
            "formula": self.formula,
            "family": self.family.to_json(),
            "df_kind": self.df_kind,
            "extrapolation": self.extrapolation,
            "seed": self.seed,
            "state": files.state_of(self, self._fits.to_json()),
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> AdditiveModel:
        with files.reading_config(config):
            return cls(**{key: value for key, value in config.items() if key != "format_version"})

    def __repr__(self) -> str:
        return f"<AdditiveModel {self.family.name}({self.family.link}): {formula_text(self)}>"
