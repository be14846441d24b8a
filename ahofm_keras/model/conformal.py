"""Conformal intervals of a model: predictions and calibration rows -> a frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import tensorflow as tf

from ahofm_keras.errors import DataError
from ahofm_keras.families import Family, Quantile
from ahofm_keras.families.quantile import SCALE
from ahofm_keras.intervals import Reach, conformal_band, predictive_spread
from ahofm_keras.model.mixture import mixture_quantile
from ahofm_keras.solvers.job import Rows

Batches = Iterable[Iterable[Any]]
Links = Mapping[str, tuple[np.ndarray, np.ndarray]]


def predict_conformal(
    model: Any,
    outputs: Any,
    batches: Batches,
    held_out: Rows | tf.data.Dataset,
    to_batches: Callable[[Any], Batches],
    level: float,
    trials: Callable[[int], Family] | None = None,
) -> pd.DataFrame:
    """Predictive intervals that hold whatever the response follows.

    Args:
        model: an `AdditiveModel`.
        outputs: of the model.
        batches: encoded rows to predict.
        held_out: calibration rows.
        to_batches: how encoded rows become batches.
        level: e.g. 0.95.
        trials: the family of so many rows to predict with their numbers of trials; None where these
            are not asked for.
    """
    if not isinstance(held_out, Rows):
        raise DataError("`calibration` must be data in memory, not a dataset.")
    measure = _measure(model)
    family, (drawn, y) = model.family, (model.family, held_out.y)
    if trials is not None:
        drawn, y = _counted(family, held_out)
    links = _links(outputs, batches, model, tell=True)
    if trials is not None:
        family = trials(len(next(iter(links.values()))[0]))
    mean, reach = measure(family, links, level, _dispersion(model))
    known_links = _links(outputs, to_batches(held_out.encoded), model, tell=False)
    if trials is not None:  # beside numbers of successes stands the chance of one, as without `method=`
        mean = np.asarray(model.family.inverse_link(next(iter(links.values()))[0], np))
    _, known = measure(drawn, known_links, level, _dispersion(model))
    return conformal_band(family, mean, reach, known.scores(y), level)


def _counted(family: Family, held_out: Rows) -> tuple[Family, np.ndarray]:
    weight = held_out.weight
    if weight is None:
        raise DataError(
            "`trials` with conformal intervals needs the trials of the calibration rows: "
            "`calibration=(x, cbind)` with successes and failures, or `(x, share, trials)`."
        )
    return family.counted(held_out.y, weight)


def _links(outputs: Any, batches: Batches, model: Any, tell: bool) -> Links:
    """Predictors and their standard errors, 0 without a posterior."""
    predicted = outputs.run("links", batches)
    if tell:
        outputs.warn_of_limit(predicted)
    return {name: (predicted[name][:, 0], predicted[name][:, 1]) for name in model.design.predictors}


def _dispersion(model: Any) -> float:
    """In units of the response; any number without a posterior, as scores are ratios."""
    return float(model.posterior.dispersion) * model.dispersion_unit if model.has_posterior else 1.0


def _measure(model: Any) -> Callable[[Family, Links, float, float], tuple[np.ndarray, Reach]]:
    """How far from its prediction a response is, by what the model predicts."""
    if isinstance(model.family, Quantile):
        return _reach_of_levels
    return _reach_of_one if len(model.design.predictors) == 1 else _reach_of_several


def _reach_of_one(
    family: Family, links: Links, level: float, dispersion: float
) -> tuple[np.ndarray, Reach]:
    """Residuals over the standard deviation of a new response, up to a factor without a posterior."""
    link, error = next(iter(links.values()))
    spread = predictive_spread(family, link, error, dispersion)
    mean = np.asarray(family.mean_of(family.named(np.asarray(family.inverse_link(link, np)))))
    return mean, Reach.around(mean, np.maximum(spread, np.finfo(float).tiny))


def _reach_of_several(
    family: Family, links: Links, level: float, dispersion: float
) -> tuple[np.ndarray, Reach]:
    """Beyond the mixture's quantiles, in units of their distances from the median."""
    low, middle, high = (
        mixture_quantile(family, links, q) for q in ((1 - level) / 2, 0.5, (1 + level) / 2)
    )
    mean = family.mean_of(family.inverse_links({name: own for name, (own, _) in links.items()}))
    return mean, Reach.of_quantiles(low, middle, high, family.discrete)


def _reach_of_levels(
    family: Family, links: Links, level: float, dispersion: float
) -> tuple[np.ndarray, Reach]:
    """Beyond the two fitted quantiles nearest to the ends asked for, in units of the way to the middle.

    Where the middle one is the lowest or highest of the model, its scale is the unit on that side.
    """
    assert isinstance(family, Quantile)
    parameters = family.inverse_links({name: own for name, (own, _) in links.items()})
    quantiles = list(family.quantiles_of(parameters).values())
    places = [int(np.argmin(np.abs(np.array(family.levels) - q))) for q in ends_of(level)]
    first, last = min(places[0], family.middle), max(places[1], family.middle)
    middle, scale = quantiles[family.middle], parameters[SCALE]
    low, high = quantiles[first], quantiles[last]
    below = middle - low if first < family.middle else scale
    above = high - middle if last > family.middle else scale
    return middle, Reach(low, high, below, above)


def ends_of(level: float) -> tuple[float, float]:
    """Levels of the two quantiles that leave equal shares outside."""
    return (1 - level) / 2, (1 + level) / 2
