"""Figures of a fit as a whole: likelihood, AIC, deviance explained, what the solver did."""

from __future__ import annotations

from typing import Any

from ahofm_keras.model import AdditiveModel
from ahofm_keras.model.formulas import formula_text

Figures = dict[str, Any]

_OF_THE_RECORD = (
    "solver",
    "epochs",
    "seconds",
    "converged",
    "rows",
    "weighted",
    "deviance",
    "null_deviance",
    "dispersion",
    "log_likelihood",
    "edf",
)


def read_figures(model: AdditiveModel) -> Figures:
    """All figures by name; None where they are not known, as after a fit from a dataset."""
    record = model.fit_result
    found: Figures = {
        "formula": formula_text(model),
        "response": str(model.response),
        "family": model.family.name,
        "link": model.family.link,
        "several": several_parameters(model),
        "classes": tuple(map(str, model.family.classes)) if model.family.labelled else (),
        "ordered": model.family.ordered,
        **{name: getattr(record, name, None) for name in _OF_THE_RECORD},
        "warnings": () if record is None else tuple(record.warnings),
    }
    # Minus twice a log-likelihood has no zero that a share could be taken of.
    deviances = (None, None) if found["several"] else (found["deviance"], found["null_deviance"])
    found["deviance_explained"] = _explained(*deviances)
    found["networks"] = any(own.opaque for own in model.design.layout.values())
    # Nobody knows the degrees of freedom of a network.
    likelihood = None if found["networks"] else found["log_likelihood"]
    found["aic"] = _aic(likelihood, found["edf"], model.family.dispersion_known)
    found["residual_df"] = None
    if found["rows"] is not None and found["edf"] is not None:
        found["residual_df"] = max(found["rows"] - found["edf"], 1.0)
    return found


def several_parameters(model: Any) -> bool:
    """Whether a model, or the model of a predictor, has more than one predictor."""
    return model.of_parameter is not None or len(model.design.predictors) > 1


def _explained(deviance: float | None, null_deviance: float | None) -> float | None:
    if deviance is None or null_deviance is None or not null_deviance > 0:
        return None
    return 1 - deviance / null_deviance


def _aic(log_likelihood: float | None, edf: float | None, known: bool) -> float | None:
    """-2 log-likelihood + 2 degrees of freedom, of which an estimated dispersion is one."""
    if log_likelihood is None or edf is None:
        return None
    return -2 * log_likelihood + 2 * (edf + (not known))
