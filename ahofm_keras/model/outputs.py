"""Encoded rows -> what a model's graph predicts of them, as arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from ahofm_keras.errors import DataError, warn
from ahofm_keras.families import Family
from ahofm_keras.layers import ClassLabel, Posterior
from ahofm_keras.model.graph import Graph
from ahofm_keras.terms import Design, EncodedRows

PREDICTION_ROWS = 8192
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
                # A class may be called as an output is.
                while name in found:
                    name = f"parameter_{name}"
                found[name] = graph.response[:, place]
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

    def opaque(self, parameter: str | None = None) -> dict[str, Any]:
        """Sum of the contributions of terms that block solvers do not know, in units of the link.

        Args:
            parameter: whose predictor, by default the first.
        """
        layout = self._design.layout
        own = layout[parameter] if parameter is not None else next(iter(layout.values()))
        found = [keras.ops.cast(self._graph.contributions[t.name], "float64") for t in own.opaque]
        total = keras.ops.sum(keras.ops.concatenate(found, axis=1), axis=1)
        return {"opaque": self._in_units(total, parameter)}

    def complement(self, name: str) -> dict[str, Any]:
        """What is left of a network, and the columns that it was projected on, by the term's name."""
        _, columns = self._graph.complements[name]
        rest = {"rest": self._graph.contributions[name][:, 0]}
        return rest if columns is None else {**rest, "X": columns}

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
