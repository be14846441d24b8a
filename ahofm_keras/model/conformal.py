"""Conformal intervals of a model: predictions and calibration rows -> a frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd
import tensorflow as tf

from ahofm_keras.errors import DataError
from ahofm_keras.families import Family
from ahofm_keras.intervals import Reach, conformal_band, predictive_spread
from ahofm_keras.model.distributional import mixture_quantile
from ahofm_keras.solvers.job import Rows

Batches = Iterable[Iterable[Any]]


def predict_conformal(
    model: Any,
    outputs: Any,
    batches: Batches,
    held_out: Rows | tf.data.Dataset,
    to_batches: Callable[[Any], Batches],
    level: float,
) -> pd.DataFrame:
    """Predictive intervals that hold whatever the response follows.

    Args:
        model: an `AdditiveModel`.
        outputs: of the model.
        batches: encoded rows to predict.
        held_out: calibration rows.
        to_batches: how encoded rows become batches.
        level: e.g. 0.95.
    """
    if not isinstance(held_out, Rows):
        raise DataError("`calibration` must be data in memory, not a dataset.")
    measure = _reach_of_one if len(model.design.predictors) == 1 else _reach_of_several
    mean, reach = measure(model, outputs, batches, level, tell=True)
    _, known = measure(model, outputs, to_batches(held_out.encoded), level, tell=False)
    return conformal_band(model.family, mean, reach, known.scores(held_out.y), level)


def _reach_of_one(
    model: Any, outputs: Any, batches: Batches, level: float, tell: bool
) -> tuple[np.ndarray, Reach]:
    """Residuals over the standard deviation of a new response, up to a factor without a posterior."""
    predicted = outputs.run("uncertainty" if model.has_posterior else "mean", batches)
    if tell:
        outputs.warn_of_limit(predicted)
    family: Family = model.family
    link, error = predicted["link"], predicted.get("link_se", 0.0)
    dispersion = float(predicted["dispersion"][0]) if "dispersion" in predicted else 1.0
    spread = predictive_spread(family, link, error, dispersion)
    mean = np.asarray(family.inverse_link(link, np))
    return mean, Reach.around(mean, np.maximum(spread, np.finfo(float).tiny))


def _reach_of_several(
    model: Any, outputs: Any, batches: Batches, level: float, tell: bool
) -> tuple[np.ndarray, Reach]:
    """Beyond the mixture's quantiles, in units of their distances from the median."""
    predicted = outputs.run("links", batches)
    if tell:
        outputs.warn_of_limit(predicted)
    family: Family = model.family
    links = {name: (predicted[name][:, 0], predicted[name][:, 1]) for name in model.design.predictors}
    low, middle, high = (
        mixture_quantile(family, links, q) for q in ((1 - level) / 2, 0.5, (1 + level) / 2)
    )
    mean = family.mean_of(family.inverse_links({name: own for name, (own, _) in links.items()}))
    return mean, Reach.of_quantiles(low, middle, high, family.discrete)
