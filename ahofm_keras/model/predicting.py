"""Encoded rows -> link, contributions of the terms, standard errors; as arrays and data frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import keras
import numpy as np
import pandas as pd
import tensorflow as tf

from ahofm_keras.errors import DataError, NotFittedError, warn
from ahofm_keras.families import Family
from ahofm_keras.intervals import band_of_link, band_of_mean, predictive_spread
from ahofm_keras.layers import Posterior
from ahofm_keras.model.arguments import check_choice, check_level
from ahofm_keras.model.encoding import Encoded
from ahofm_keras.model.graph import Graph
from ahofm_keras.solvers.job import Rows
from ahofm_keras.terms import Design

PREDICTION_TYPES = ("response", "link", "terms")
PREDICTION_ROWS = 8192
CONFORMAL = "conformal"
INTERVAL_METHODS = ("posterior", CONFORMAL)


class Outputs:
    """Tensors of a model's graph that it predicts, and the functions that compute them.

    Args:
        graph: of the model.
        design: of the model.
        scale: of the response inside the model.
    """

    def __init__(self, graph: Graph, design: Design, scale: float, dispersion_unit: float) -> None:
        self._graph = graph
        self._design = design
        self._scale = scale
        self._dispersion_unit = dispersion_unit
        self._posterior: tuple[Posterior, Any] | None = None
        self._functions: dict[str, Any] = {}

    def use_posterior(self, layer: Posterior, variance: Any) -> None:
        """From now on the graph knows the variance of its predictor."""
        self._posterior = layer, variance

    def forget_functions(self) -> None:
        """Trace all functions again: they hold weights that the layers no longer have."""
        self._functions = {}

    def mean(self) -> dict[str, Any]:
        """Mean response and predictor."""
        return {"response": self._graph.response, "link": self._graph.link}

    def terms(self) -> dict[str, Any]:
        """Contribution of each column of each term, in units of the link."""
        columns = {}
        for term in self._design.terms:
            if term.name not in self._graph.contributions:
                continue
            tensor = self._graph.contributions[term.name]
            for place, label in enumerate(term.column_labels):
                columns[label] = self._scale * keras.ops.cast(tensor[:, place], "float64")
        return columns

    def uncertainty(self) -> dict[str, Any]:
        """Predictor, its standard error, and the dispersion."""
        return self._uncertainty(0)

    def given_smoothing(self) -> dict[str, Any]:
        """The same as if the smoothing were known."""
        return self._uncertainty(1)

    def _uncertainty(self, column: int) -> dict[str, Any]:
        assert self._posterior is not None
        layer, variances = self._posterior
        error = self._scale * keras.ops.sqrt(variances[:, column])
        dispersion = layer.dispersion * self._dispersion_unit + 0 * error
        return {"link": self._graph.link, "link_se": error, "dispersion": dispersion}

    def endpoints(self, with_uncertainty: bool) -> dict[str, dict[str, Any]]:
        """What an exported model serves, by endpoint."""
        terms = self.terms()
        return {
            "serving_default": self.mean(),
            **({"terms": terms} if terms else {}),
            **({"uncertainty": self.uncertainty()} if with_uncertainty else {}),
        }

    def run(self, name: str, batches: Iterable[Encoded]) -> dict[str, np.ndarray]:
        """`"mean"`, `"terms"`, `"uncertainty"` or `"given_smoothing"` of batches of encoded rows."""
        run = self._function(name)
        parts = [run(list(encoded)) for encoded in batches]
        if not parts:
            raise DataError("The dataset has no batches.")
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}

    def _function(self, name: str) -> Any:
        """Traced once, for any number of rows: tracing takes longer than a prediction."""
        if name not in self._functions:
            encoded = self._graph.encoded
            function = keras.Function(encoded, getattr(self, name)())
            signature = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in encoded]
            self._functions[name] = tf.function(function, input_signature=[signature])
        return self._functions[name]


def batches_of(
    rows: Encoded | tf.data.Dataset, size: int, steps: int | None = None
) -> Iterator[Encoded]:
    """Batches of encoded rows, all or the first ones; those of a dataset as they come.

    Rows in memory are sliced here: a dataset of one batch takes longer to set up than to predict.
    """
    if isinstance(rows, tf.data.Dataset):
        for (encoded,) in rows.take(-1 if steps is None else steps):
            yield encoded
        return
    starts = range(0, len(rows[0]), size)
    for start in starts if steps is None else starts[:steps]:
        yield tuple(array[start : start + size] for array in rows)


def terms_frame(predicted: dict[str, np.ndarray], intercept: float) -> pd.DataFrame:
    """A column a term, and the intercept in `attrs`."""
    frame = pd.DataFrame(predicted)
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
    check_level(level)
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


def link_given_smoothing(model: Any, x: Any) -> tuple[np.ndarray, np.ndarray]:
    """Predictor and its standard errors as if the smoothing were known, as leverages have it."""
    rows = batches_of(model._reader.without_response(x), PREDICTION_ROWS)
    predicted = model._named_outputs.run("given_smoothing", rows)
    return predicted["link"], predicted["link_se"]


def calibration_scores(
    rows: Rows | tf.data.Dataset, outputs: Outputs, family: Family, name: str
) -> np.ndarray:
    """|residual| / spread of calibration rows."""
    if not isinstance(rows, Rows):
        raise DataError("`calibration` must be data in memory, not a dataset.")
    predicted = outputs.run(name, batches_of(rows.encoded, PREDICTION_ROWS))
    mean, spread = mean_and_spread(predicted, family)
    return np.abs(rows.y - mean) / spread


def mean_and_spread(predicted: dict[str, np.ndarray], family: Family) -> tuple[np.ndarray, np.ndarray]:
    """Mean response and the standard deviation of a new one, up to a factor without a posterior."""
    link = predicted["link"]
    dispersion = predicted["dispersion"][0] if "dispersion" in predicted else 1.0
    spread = predictive_spread(family, link, predicted.get("link_se", 0.0), float(dispersion))
    return np.asarray(family.inverse_link(link, np)), np.maximum(spread, np.finfo(float).tiny)


def warn_if_unfitted(model: Any) -> None:
    """Warn where all weights are those that the model was made with."""
    if not model.has_posterior and model.weights_mark() == model.start_mark:
        warn("The model was never fitted: it predicts from the weights that it starts with.")
