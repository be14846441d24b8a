"""One predictor of a model with several, to be fitted and read as a model of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.errors import DataError
from ahofm_keras.families import Family
from ahofm_keras.families.conditional import Conditional
from ahofm_keras.intervals import band_of_link
from ahofm_keras.layers import Posterior, Predictor
from ahofm_keras.model.arguments import check_choice, check_level
from ahofm_keras.model.methods import ReadingMethods
from ahofm_keras.model.outputs import PREDICTION_ROWS, batches_of
from ahofm_keras.model.predicting import terms_frame, with_index
from ahofm_keras.model.units import Units
from ahofm_keras.solvers.job import Rows
from ahofm_keras.terms import EncodedRows
from ahofm_keras.terms.encoded import OFFSET

Spread = tuple[np.ndarray, np.ndarray]


def view_parameter(model: Any, name: str | None) -> Any:
    """The predictor of a parameter; of a model that has one, the model."""
    names = list(model.design.predictors)
    own = (
        names[0] if name is None else model.family.own_parameter(name) if isinstance(name, str) else None
    )
    if own not in names:
        raise model.family.no_parameter(name, names, "The model")
    return model if len(names) == 1 else ParameterView(model, str(own))


class ParameterView(ReadingMethods, Units):
    """One predictor of a model, with the model's layers.

    Args:
        model: an `AdditiveModel` of several predictors.
        parameter: of its family.

    Attributes:
        design: of this predictor, with the features of all.
        family: of the response given the other predictors.
    """

    def __init__(self, model: Any, parameter: str) -> None:
        self.model = model
        self.name = parameter
        self.design = model.design.part(parameter)
        layer = self.predictor
        start = model.family.parameters[parameter].inverse(np.asarray(float(layer.shift)), np)
        self.family: Family = Conditional(model.family, parameter, float(start), float(layer.scale))
        self.stop_training = False

    @property
    def of_parameter(self) -> str:  # type: ignore[override]
        return self.name

    def whole(self) -> Any:
        return self.model

    @property
    def quantity(self) -> str:
        """What the predictor is transformed to, in words: `scale of y`."""
        return str(self.model.family.quantity(self.name, self.response))

    def parameter(self, name: str | None = None) -> Any:
        """This predictor, or another one of the model."""
        return self if name is None else view_parameter(self.model, name)

    def predict(self, x: Any, *, type: str = "response", interval: float | None = None) -> Any:
        """The parameter at rows.

        Args:
            x: data frame or dict of columns.
            type: `"response"` (the parameter itself), `"link"` (its predictor) or `"terms"`: a frame
                with a column per term, as of a model with one predictor.
            interval: level of the credible band; a frame comes back.
        """
        check_choice("type", type, ("response", "link", "terms"))
        if interval is not None:
            check_level("interval", interval)
        if interval is not None and (type == "terms" or not self.has_posterior):
            raise DataError(
                '`interval` goes with type="response" or type="link", of a model with a posterior.'
            )
        rows = self._reader.without_response(x)
        if type == "terms":
            batches = batches_of(rows, PREDICTION_ROWS)
            own = self._outputs.run("terms", batches, self.name) if self.design.terms else {}
            return with_index(terms_frame(own, self.intercept, len(rows)), x)
        found = self._outputs.run("links", batches_of(rows, PREDICTION_ROWS))
        link, error = found[self.name].T
        if interval is not None:
            band = band_of_link(link, error, interval)
            if type == "response":
                ends = self.family.mean_interval(band["lower"].to_numpy(), band["upper"].to_numpy())
                value = self.family.inverse_link(link, np)
                band = pd.DataFrame({self.name: value, "lower": ends[0], "upper": ends[1]})
            return with_index(band, x)
        return link if type == "link" else self.family.inverse_link(link, np)

    def __getattr__(self, name: str) -> Any:
        # What does not depend on the predictor: response, sample, extrapolation, get_layer, ...
        return getattr(self.model, name)

    @property
    def predictor(self) -> Predictor:
        """The layer of intercept, shift and scale."""
        return self.model.predictors[self.name]

    @property
    def posteriors(self) -> dict[str, Posterior]:
        """The posterior of this predictor alone."""
        own = self.model.posteriors.get(self.name)
        return {} if own is None else {self.name: own}

    @property
    def posterior(self) -> Posterior | None:
        return self.posteriors.get(self.name)

    @property
    def has_posterior(self) -> bool:
        return self.posterior is not None and self.posterior.is_known

    @property
    def starts(self) -> int:
        return int(self.posterior.fits) if self.posterior is not None and self.has_posterior else 1

    @property
    def formula(self) -> str:
        return str(self.model.formula[self.name])

    @property
    def held_range(self) -> tuple[float, float]:
        limit = self.limits.get(self.name)
        low, high = (-np.inf, np.inf) if limit is None else limit.ends
        return self.scale * low, self.scale * high

    def first_rows(self, rows: Rows) -> Rows | None:
        """Rows to begin a fit with, of this predictor alone; the view's family is then theirs.

        None where the family has none that could begin.
        """
        begun = self.model.family.first_fit(rows.y)
        if begun is None:
            return None
        self.family, y = begun
        return replace(rows, encoded=self._own(rows), y=y)

    @property
    def can_start(self) -> bool:
        """Whether there is an intercept to say where it starts, which nothing has moved yet."""
        bias = self.predictor.bias
        return bias is not None and float(bias) == 0.0

    def start_at(self, step: float) -> None:
        """Move the start by a step of the link."""
        layer = self.predictor
        assert isinstance(self.family, Conditional)
        assert layer.bias is not None
        link = self.model.family.parameters[self.name]
        self.family.start_value = float(link.inverse(np.asarray(float(layer.shift) + step), np))
        layer.bias.assign(step / float(layer.scale))

    def rows(self, rows: Rows, others: Mapping[str, Spread]) -> Rows:
        """Rows of the model as this predictor sees them: others beside the response, its own offset.

        Args:
            rows: encoded, in memory.
            others: mean and standard deviation of each other predictor on them.
        """
        assert isinstance(self.family, Conditional)
        return replace(rows, encoded=self._own(rows), y=self.family.beside(rows.y, others))

    def _own(self, rows: Rows) -> EncodedRows:
        """The rows with the offset of this predictor."""
        first = next(iter(self.model.design.predictors))
        name = OFFSET if self.name == first else f"{OFFSET}_{self.name}"
        arrays = {key: own for key, own in rows.encoded.arrays.items() if not key.startswith(OFFSET)}
        if name in rows.encoded.arrays:
            arrays[OFFSET] = rows.encoded.arrays[name]
        return EncodedRows(arrays, len(rows))
