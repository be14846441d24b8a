"""What is asked of `AdditiveModel.predict`, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ahofm_keras.errors import DataError, NotFittedError
from ahofm_keras.model.arguments import (
    check_callbacks,
    check_choice,
    check_level,
    check_verbose,
    check_whole,
)
from ahofm_keras.model.classes import check_classes
from ahofm_keras.model.distributional import check_quantiles

PREDICTION_TYPES = ("response", "link", "terms", "class", "parameters", "distribution", "quantile")
# Those that ask for the whole distribution of the response.
DISTRIBUTIONAL = ("class", "parameters", "distribution", "quantile")
_WITH_BANDS = ("response", "link", "parameters")
_BANDED = ", ".join(f'type="{own}"' for own in _WITH_BANDS)
CONFORMAL = "conformal"
INTERVAL_METHODS = ("posterior", CONFORMAL)


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
        if self.interval is not None and self.type not in _WITH_BANDS:
            raise DataError(f"`interval` goes with {_BANDED}. Received: type={self.type!r}.")
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


def check_interval(model: Any, type: str, level: Any, method: str, calibration: Any) -> None:
    """Raise an error where intervals cannot be had."""
    check_level("interval", level)
    if method == CONFORMAL and model.family.nuisance:
        raise DataError(
            f"Conformal intervals rank residuals of observed responses, and those of the "
            f"{model.family.name} family are censored. Without `method=` the interval is that of the "
            "predicted survival times; `ak.survival(model, x, interval=...)` has bands of the curves."
        )
    check_choice("method", method, INTERVAL_METHODS)
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
