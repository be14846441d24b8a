"""What `predict` and `evaluate` do: outputs of the graph as arrays and data frames, as asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import tensorflow as tf

from ahofm_keras.batches import batch_rows
from ahofm_keras.data import read_columns
from ahofm_keras.errors import DataError, NotFittedError, warn
from ahofm_keras.families import Family, Quantile
from ahofm_keras.intervals import band_of_link, band_of_mean
from ahofm_keras.model.arguments import check_callbacks, check_unknown, check_verbose, check_whole
from ahofm_keras.model.classes import (
    ClassDistribution,
    band_of_classes,
    class_quantiles,
    most_likely,
    probability_frame,
)
from ahofm_keras.model.conformal import predict_conformal
from ahofm_keras.model.distributional import (
    ResponseDistribution,
    band_of_each,
    band_of_links,
    check_quantiles,
    with_dispersion,
)
from ahofm_keras.model.mixture import band_of_parameters, mixture_quantile
from ahofm_keras.model.nuisance import bound_family, with_known_nuisance
from ahofm_keras.model.outputs import PREDICTION_ROWS, Outputs, batches_of
from ahofm_keras.model.predict_request import CONFORMAL, DISTRIBUTIONAL, PredictRequest
from ahofm_keras.model.quantiles import predict_quantiles
from ahofm_keras.model.row_reader import RowReader
from ahofm_keras.model.streams import own_errors
from ahofm_keras.solvers.job import Rows


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
            trials = None if request.trials is None else partial(_family_of_new, model, request)
            to_batches = partial(batches_of, size=PREDICTION_ROWS)
            frame = predict_conformal(model, outputs, batches, held_out, to_batches, interval, trials)
        return with_index(frame, x)
    classes = model.family.labelled and request.type == "response"
    if request.type in DISTRIBUTIONAL or classes or len(model.design.predictors) > 1:
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
            return with_index(band_of_links(links, level), request.x)
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
    if request.type == "parameters" and level is not None:
        parameters = band_of_each(family, links, level)
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
