"""What a family learns from all rows together, such as a baseline hazard: kept with the fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf

from ahofm_keras.errors import DataError, NotFittedError
from ahofm_keras.families import Family
from ahofm_keras.solvers.job import FitJob, Rows
from ahofm_keras.solvers.nuisance import learn_nuisance, with_nuisance
from ahofm_keras.solvers.predictors import links_and_errors


def settle_nuisance(model: Any, job: FitJob) -> tuple[FitJob, Mapping[str, Any] | None]:
    """The job with what was learned beside its responses, and that; of most families None.

    What the nuisance takes up of the intercept is not identified: the average predictor of the training
    rows becomes 0.
    """
    if not model.family.nuisance:
        return job, None
    rows = job.weighted_training()
    name = next(iter(model.design.predictors))
    eta, _ = links_and_errors(model, rows)[name]
    layer = model.predictors[name]
    layer.shift.assign(float(layer.shift) - np.average(eta, weights=rows.weight))
    nuisance = learn_nuisance(model, rows)
    assert isinstance(job.training, Rows)
    return replace(job, training=with_nuisance(model, job.training, nuisance)), nuisance


def known_nuisance(model: Any) -> Mapping[str, Any]:
    """What the last fit learned, of the weights as they are."""
    result = model.fit_result
    if result is None or result.nuisance is None:
        raise NotFittedError(
            f"What the {model.family.name} family learns from all rows together is not known: call "
            "`fit` first. A fit leaves it beside its weights; those that come from elsewhere have none."
        )
    found: Mapping[str, Any] = result.nuisance
    return found


def with_known_nuisance(model: Any, rows: Rows | tf.data.Dataset) -> Rows | tf.data.Dataset:
    """Rows with what the model knows beside their responses."""
    if not model.family.nuisance:
        return rows
    if not isinstance(rows, Rows):
        check_streamed(model)
    assert isinstance(rows, Rows)
    return with_nuisance(model, rows, known_nuisance(model))


def bound_family(model: Any) -> Family:
    """The family that knows what the last fit learned."""
    family: Family = model.family
    return family.bound(known_nuisance(model)) if family.nuisance else family


def check_streamed(model: Any) -> None:
    """Raise a `DataError` for a dataset, of which no more than a batch is there at a time."""
    if model.family.nuisance:
        raise DataError(
            f"The {model.family.name} family learns from all rows together, and a dataset gives them "
            "batch by batch: pass a data frame or a dict of columns."
        )
