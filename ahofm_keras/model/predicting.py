"""Encoded rows -> link, contributions of the terms, standard errors; as arrays and data frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import keras
import numpy as np
import pandas as pd
import tensorflow as tf

from ahofm_keras.batches import batch_rows
from ahofm_keras.data import read_columns
from ahofm_keras.errors import DataError, NotFittedError, warn
from ahofm_keras.families import Family, Quantile
from ahofm_keras.intervals import band_of_link, band_of_mean
from ahofm_keras.layers import ClassLabel, Posterior
from ahofm_keras.model.arguments import (
    check_callbacks,
    check_choice,
    check_level,
    check_unknown,
    check_verbose,
    check_whole,
)
from ahofm_keras.model.classes import (
    ClassDistribution,
    band_of_classes,
    check_classes,
    class_quantiles,
    most_likely,
    probability_frame,
)
from ahofm_keras.model.conformal import predict_conformal
from ahofm_keras.model.distributional import (
    ResponseDistribution,
    band_of_parameters,
    check_quantiles,
    mixture_quantile,
    with_dispersion,
)
from ahofm_keras.model.graph import Graph
from ahofm_keras.model.nuisance import bound_family, with_known_nuisance
from ahofm_keras.model.quantiles import predict_quantiles
from ahofm_keras.model.row_reader import RowReader
from ahofm_keras.model.streams import own_errors
from ahofm_keras.solvers.job import Rows
from ahofm_keras.terms import Design, EncodedRows

PREDICTION_TYPES = ("response", "link", "terms", "class", "parameters", "distribution", "quantile")
# Those that ask for the whole distribution of the response.
_DISTRIBUTIONAL = ("class", "parameters", "distribution", "quantile")
PREDICTION_ROWS = 8192
CONFORMAL = "conformal"
INTERVAL_METHODS = ("posterior", CONFORMAL)
# Column of the terms that says what the limit of the predictor changes.
LIMIT = "(limit)"
# By what share of the range a predictor may leave it by rounding.
ROUNDING = 1e-5


class Outputs:
    """Tensors of a model's graph that it predicts, and the functions that compute them.

    Args:
        graph: of the model.
        design: of the model.
        family: of the response.
        posteriors: layer of each predictor and tensor `(n, 2)` of its variances, by parameter.
        in_use: factors of each layer that has room for more; they leave others out.
    """

    def __init__(
        self,
        graph: Graph,
        design: Design,
        family: Family,
        posteriors: Mapping[str, tuple[Posterior, Any]],
        in_use: Callable[[], tuple[Any, ...]],
    ) -> None:
        self._in_use = in_use
        self._family = family
        self._graph = graph
        self._design = design
        self._posteriors = dict(posteriors)
        self._limit = graph.limits.get(next(iter(graph.links)))
        self._functions: dict[tuple[Any, ...], Any] = {}
        # Here, because Keras would look for layers in a function that is an attribute of a model.
        self.from_encoded = keras.Function(graph.encoded, graph.response)

    def mean(self) -> dict[str, Any]:
        """Mean response and predictor."""
        return {"response": self._graph.response, "link": self._graph.link}

    def served(self) -> dict[str, Any]:
        """What a consumer of the exported model asks first."""
        graph = self._graph
        found = {"response": graph.mean, "link": graph.link}
        if self._family.labelled:
            found["class"] = ClassLabel(self._family.classes)(graph.mean)
            for place, own in enumerate(self._family.classes):
                found[f"probability_{own}"] = graph.mean[:, place]
        if len(graph.links) > 1:
            for place, name in enumerate(graph.links):
                found.setdefault(name, graph.response[:, place])
        return found

    def limit(self, parameter: str | None = None) -> dict[str, Any]:
        """What the limit of a predictor, by default the first, changes of it, in its units."""
        found = self._limit if parameter is None else self._graph.limits.get(parameter)
        if found is None:
            return {}
        return {LIMIT: self._in_units(keras.ops.cast(found[1][:, 1], "float64"), parameter)}

    def links(self) -> dict[str, Any]:
        """All predictors and, after a fit that gives some, their standard errors, by parameter."""
        return self._links(0)

    def links_given_smoothing(self) -> dict[str, Any]:
        """The same as if the smoothing were known."""
        return self._links(1)

    def _links(self, column: int) -> dict[str, Any]:
        found = {name: keras.ops.stack([own, 0 * own]) for name, own in self._graph.links.items()}
        for name, (layer, variances) in self._posteriors.items():
            if layer.is_known:
                error = keras.ops.sqrt(variances[:, column]) * self._graph.predictors[name].scale
                found[name] = keras.ops.stack([self._graph.links[name], error])
        return {name: keras.ops.transpose(own) for name, own in found.items()}

    @property
    def has_terms(self) -> bool:
        """Whether the model has more than an intercept and offsets."""
        return bool(self._graph.contributions)

    def terms(self, parameter: str | None = None) -> dict[str, Any]:
        """Contribution of each column of each term, in units of the link.

        Args:
            parameter: whose predictor, by default all of a model that has one.
        """
        columns = {}
        for term in (
            self._design.terms if parameter is None else self._design.predictors[parameter].terms
        ):
            if term.name not in self._graph.contributions:
                continue
            tensor = self._graph.contributions[term.name]
            for place, label in enumerate(term.column_labels):
                columns[label] = self._in_units(keras.ops.cast(tensor[:, place], "float64"), parameter)
        return columns | self.limit(parameter)

    def _in_units(self, tensor: Any, parameter: str | None = None) -> Any:
        """From the model's own scale to units of the link; reads the weight whenever it is computed."""
        graph = self._graph
        layer = graph.predictor if parameter is None else graph.predictors[parameter]
        return keras.ops.multiply(tensor, layer.scale)

    def uncertainty(self) -> dict[str, Any]:
        """Predictor, its standard error, and the dispersion."""
        posterior, variances = next(iter(self._posteriors.values()))
        error = self._in_units(keras.ops.sqrt(variances[:, 0]))
        known = keras.ops.multiply(keras.ops.ones_like(error), posterior.dispersion)
        dispersion = keras.ops.multiply(known, self._graph.predictor.dispersion_unit)
        return {"link": self._graph.link, "link_se": error, "dispersion": dispersion}

    def uncertainties(self) -> dict[str, Any]:
        """Each predictor and its standard error."""
        found: dict[str, Any] = {}
        for name, pair in self.links().items():
            found |= {f"link_{name}": pair[:, 0], f"link_se_{name}": pair[:, 1]}
        return found

    def endpoints(self, with_uncertainty: bool) -> dict[str, dict[str, Any]]:
        """What an exported model serves, by endpoint."""
        terms, uncertainty = self.terms(), self.uncertainty
        if len(self._graph.links) > 1:
            each = {name: self.terms(name) for name in self._graph.links}
            terms = {f"{name}: {label}": own for name in each for label, own in each[name].items()}
            uncertainty = self.uncertainties
        return {
            "serving_default": self.served(),
            **({"terms": terms} if terms else {}),
            **({"uncertainty": uncertainty()} if with_uncertainty else {}),
        }

    def run(
        self, name: str, batches: Iterable[Iterable[Any]], parameter: str | None = None
    ) -> dict[str, np.ndarray]:
        """What the method of that name has, `"mean"` or `"links"`, of batches of encoded rows.

        Args:
            name: of what is wanted.
            batches: of rows.
            parameter: whose `"terms"` these are, where there are several predictors.
        """
        run = self._function(name, parameter)
        parts = [run(list(encoded)) for encoded in batches]
        if not parts:
            raise DataError("The dataset has no batches.")
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}

    def warn_of_limit(self, predicted: dict[str, np.ndarray]) -> None:
        """Say in how many rows the limit acts."""
        if self._limit is None:
            return
        low, high = self._limit[0].ends
        changed = np.abs(predicted[LIMIT]) > ROUNDING * (high - low) * float(self._graph.predictor.scale)
        if changed.any():
            warn(
                f"The predictors of {int(changed.sum()):,} of {len(changed):,} rows leave the range "
                "that those of the training rows have, and are held at its ends: features are in their "
                "tails together there."
            )

    def _function(self, name: str, parameter: str | None = None) -> Any:
        """Traced once, for any number of rows: tracing takes longer than a prediction."""
        known = tuple(own.is_known for own, _ in self._posteriors.values())
        key = name, parameter, known, self._in_use()
        if key not in self._functions:
            encoded = self._graph.encoded
            chosen = () if parameter is None else (parameter,)
            outputs = getattr(self, name)(*chosen) | self.limit(*chosen)
            function = keras.Function(encoded, outputs)
            signature = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in encoded]
            self._functions[key] = tf.function(function, input_signature=[signature])
        return self._functions[key]


def batches_of(
    rows: EncodedRows | tf.data.Dataset, size: int, steps: int | None = None
) -> Iterator[Iterable[Any]]:
    """Batches of encoded rows, all or the first ones; those of a dataset as they come.

    Rows in memory are sliced here: a dataset of one batch takes longer to set up than to predict.
    """
    if isinstance(rows, tf.data.Dataset):
        for (encoded,) in rows.take(-1 if steps is None else steps):
            yield encoded
        return
    starts = range(0, len(rows), size)
    for start in starts if steps is None else starts[:steps]:
        yield rows.take(slice(start, start + size))


def terms_frame(predicted: dict[str, np.ndarray], intercept: float, rows: int) -> pd.DataFrame:
    """A column per column of a term, and the intercept in `attrs`."""
    frame = pd.DataFrame(predicted, index=pd.RangeIndex(rows))
    frame.attrs["intercept"] = intercept
    return frame


def interval_frame(
    predicted: dict[str, np.ndarray], family: Family, type: str, level: float
) -> pd.DataFrame:
    """Credible band of the link, or that of the mean with the predictive interval."""
    link, error = predicted["link"], predicted["link_se"]
    if type == "link":
        return band_of_link(link, error, level)
    return band_of_mean(family, link, error, float(predicted["dispersion"][0]), level)


def with_index(frame: pd.DataFrame, x: Any) -> pd.DataFrame:
    """The frame with the index of the rows that it belongs to."""
    if isinstance(x, pd.DataFrame):
        frame.index = x.index[: len(frame)]
    return frame


def check_interval(model: Any, type: str, level: Any, method: str, calibration: Any) -> None:
    """Raise an error where intervals cannot be had."""
    check_level("interval", level)
    if method == CONFORMAL and model.family.nuisance:
        raise DataError(f"Conformal intervals of the {model.family.name} family are not there.")
    check_choice("method", method, INTERVAL_METHODS)
    if type == "terms":
        raise DataError('`interval` goes with type="response" or type="link".')
    if method == CONFORMAL:
        if type != "response":
            raise DataError('Conformal intervals are those of a response: type="response".')
        if calibration is None:
            raise DataError(
                "Conformal intervals need rows that the model was not fitted to: "
                "`calibration=` a data frame, or `(x, y)`."
            )
        return
    if calibration is not None:
        raise DataError('`calibration` goes with method="conformal".')
    if not model.has_posterior:
        raise NotFittedError(
            "Intervals need the posterior that `fit` leaves in the model when all rows are in memory; "
            'conformal ones (method="conformal") do without.'
        )


def links_with_errors(model: Any, x: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Predictors and their standard errors, by parameter."""
    return _links(model, x, "links")


def links_given_smoothing(model: Any, x: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Predictors and their standard errors as if the smoothing were known, as leverages have it."""
    return _links(model, x, "links_given_smoothing")


def _links(model: Any, x: Any, which: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rows = batches_of(model._reader.without_response(x), PREDICTION_ROWS)
    predicted = model._outputs.run(which, rows)
    return {name: (predicted[name][:, 0], predicted[name][:, 1]) for name in model.design.predictors}


def warn_if_unfitted(model: Any) -> None:
    """Warn where all weights are those that the model was made with."""
    if not model.is_fitted:
        warn("The model was never fitted: it predicts from the weights that it starts with.")


@contextmanager
def one_step_an_execution(model: Any) -> Iterator[None]:
    """Validation and prediction are few large steps, whatever training runs at once."""
    steps: int = model.steps_per_execution
    model.steps_per_execution = 1
    try:
        yield
    finally:
        model.steps_per_execution = steps


@dataclass(frozen=True)
class PredictRequest:
    """The arguments of `AdditiveModel.predict`, where they are described."""

    x: Any
    batch_size: int | None
    verbose: Any
    steps: int | None
    callbacks: Any
    type: str
    interval: float | None
    method: str
    calibration: Any
    q: Any = None
    trials: Any = None

    @property
    def is_plain(self) -> bool:
        """Whether means alone are asked for."""
        return self.type == "response" and self.interval is None

    def check(self, model: Any) -> None:
        """Raise an error for what cannot be had."""
        check_choice("type", self.type, PREDICTION_TYPES)
        check_verbose(self.verbose)
        check_whole(1, batch_size=self.batch_size, steps=self.steps)
        optional = model.family.levels and self.type == "quantile"  # all levels that there are
        if (self.q is None) != (self.type != "quantile") and not optional:
            raise DataError(
                '`q` goes with type="quantile": `predict(x, type="quantile", q=[0.1, 0.9])`.'
            )
        if self.q is not None:
            check_quantiles(self.q)
        if self.type == "class":
            check_classes(model.family)
        if self.interval is not None and self.type in _DISTRIBUTIONAL:
            raise DataError('`interval` goes with type="response" or type="link".')
        if self.type == "terms" and len(model.design.predictors) > 1:
            listed = ", ".join(f"`{name}`" for name in model.design.predictors)
            raise DataError(
                'type="terms" is that of one predictor: `model.parameter(name).predict(...)`, of '
                f"{listed}."
            )
        if self.interval is not None:
            check_interval(model, self.type, self.interval, self.method, self.calibration)
        if check_callbacks(self.callbacks) and not self.is_plain:
            raise DataError('`callbacks` of `predict` go with type="response" and no interval.')


def run_predict(
    model: Any, reader: RowReader, outputs: Outputs, request: PredictRequest, keras_predict: Any
) -> Any:
    """Predict as asked.

    Args:
        model: an `AdditiveModel`.
        reader: of the model's rows.
        outputs: of the model.
        request: what the user asked for.
        keras_predict: `keras.Model.predict` of the model, which knows how to show and call.
    """
    request.check(model)
    x, interval = request.x, request.interval
    rows, size = reader.without_response(x), request.batch_size or PREDICTION_ROWS
    warn_if_unfitted(model)
    if interval is not None and request.method == CONFORMAL:
        with own_errors():
            held_out = reader.validation(request.calibration)
            batches = batches_of(rows, size, request.steps)
            frame = predict_conformal(
                model, outputs, batches, held_out, partial(batches_of, size=PREDICTION_ROWS), interval
            )
        return with_index(frame, x)
    classes = model.family.labelled and request.type == "response"
    if request.type in _DISTRIBUTIONAL or classes or len(model.design.predictors) > 1:
        with own_errors():
            predicted = outputs.run("links", batches_of(rows, size, request.steps))
            outputs.warn_of_limit(predicted)
        return _predict_distribution(model, request, predicted)
    wanted = "terms" if request.type == "terms" and outputs.has_terms else "mean"
    if interval is not None and model.has_posterior:
        wanted = "uncertainty"
    with own_errors():
        if request.is_plain and (request.callbacks or request.verbose):
            batches = rows if isinstance(rows, tf.data.Dataset) else batch_rows((tuple(rows),), size)
            with one_step_an_execution(model):
                return keras_predict(
                    batches, verbose=request.verbose, steps=request.steps, callbacks=request.callbacks
                )
        predicted = outputs.run(wanted, batches_of(rows, size, request.steps))
        outputs.warn_of_limit(predicted)
    if interval is not None:
        family = _family_of_new(model, request, len(predicted["link"]))
        return with_index(interval_frame(predicted, family, request.type, interval), x)
    if request.type == "terms":
        own = predicted if outputs.has_terms else {}
        frame = terms_frame(own, model.intercept, len(next(iter(predicted.values()))))
        return with_index(frame, x)
    return predicted[request.type]


def _predict_distribution(model: Any, request: PredictRequest, predicted: dict[str, np.ndarray]) -> Any:
    """What follows from all predictors and their standard errors."""
    family, level = model.family, request.interval
    names = list(model.design.predictors)
    links = {name: (predicted[name][:, 0], predicted[name][:, 1]) for name in names}
    if request.type == "link":
        if level is not None:
            return with_index(band_of_link(*links[names[0]], level), request.x)
        frame = pd.DataFrame({name: mean for name, (mean, _) in links.items()})
        return with_index(frame, request.x)
    parameters = family.inverse_links({name: mean for name, (mean, _) in links.items()})
    if request.type == "class":
        return most_likely(family, family.probabilities(parameters))
    if isinstance(family, Quantile) and request.type in ("response", "quantile"):
        plain = request.type == "response"
        found = predict_quantiles(family, links, request.q, level, plain)
        return with_index(found, request.x) if isinstance(found, pd.DataFrame) else found
    if family.labelled and request.type != "parameters":
        return _predict_classes(family, request, links)
    if request.type == "response":
        if level is not None:
            return with_index(band_of_parameters(family, links, level), request.x)
        return family.mean_of(parameters)
    if request.type == "quantile" and len(names) > 1:
        found = np.stack([mixture_quantile(family, links, q) for q in check_quantiles(request.q)], -1)
        return found[:, 0] if np.ndim(request.q) == 0 else found
    if not family.dispersion_known:
        parameters = with_dispersion(family, parameters, dispersion_of(model))
    if request.type == "parameters":
        return with_index(pd.DataFrame(parameters), request.x)
    family = _family_of_new(model, request, len(links[names[0]][0]))
    distribution = ResponseDistribution(family, parameters)
    return distribution if request.type == "distribution" else distribution.quantile(request.q)


def _family_of_new(model: Any, request: PredictRequest, rows: int) -> Family:
    """The family of new responses, with what they depend on beside the predictors."""
    family = model.family if request.type == "link" else bound_family(model)
    if request.trials is None:
        return family
    if not hasattr(family, "for_trials"):
        raise DataError(f"`trials` goes with the binomial family, this is the {family.name} family.")
    given = request.trials
    trials = read_columns(
        request.x if isinstance(given, str) else {"trials": np.broadcast_to(given, rows)},
        [given if isinstance(given, str) else "trials"],
    )
    (numbers,) = (np.asarray(own) for own in trials.values())
    if numbers.dtype.kind != "f" or (numbers < 1).any() or (numbers != np.floor(numbers)).any():
        raise DataError("`trials` must be whole numbers from 1 on: an array, or the name of a column.")
    return family.for_trials(numbers)


def _predict_classes(family: Family, request: PredictRequest, links: dict[str, Any]) -> Any:
    """Probabilities of classes, with bands, their distribution or its quantiles."""
    if request.type == "quantile":
        return class_quantiles(family, links, request.q)
    parameters = family.inverse_links({name: mean for name, (mean, _) in links.items()})
    if request.type == "distribution":
        return ClassDistribution(family, parameters)
    if request.interval is not None:
        return with_index(band_of_classes(family, links, request.interval), request.x)
    return with_index(probability_frame(family, family.probabilities(parameters)), request.x)


def dispersion_of(model: Any) -> float:
    """The dispersion of the response in its own units, as the last fit says."""
    if model.fit_result is not None and model.fit_result.dispersion is not None:
        return float(model.fit_result.dispersion)
    raise NotFittedError("The dispersion of the response is not known: call `fit` first.")


def evaluation_rows(
    model: Any,
    reader: RowReader,
    given: tuple[Any, Any, Any],
    batch_size: int | None,
    verbose: Any,
    others: dict[str, Any],
) -> Any:
    """Batches for `keras.Model.evaluate`, from the arguments of `AdditiveModel.evaluate`, checked."""
    check_verbose(verbose)
    check_whole(1, batch_size=batch_size, steps=others.get("steps"))
    check_unknown(others, ("steps", "callbacks", "return_dict"), "evaluate()")
    check_callbacks(others.get("callbacks"))
    rows = reader.with_response(*given)
    if not model.scale:
        raise NotFittedError("The model has not seen its response yet: call `fit` first.")
    rows = with_known_nuisance(model, rows)
    if not isinstance(rows, Rows):
        return rows
    return batch_rows(rows.with_mean_weight_1().as_tuple(), batch_size or PREDICTION_ROWS)
