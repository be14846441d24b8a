"""Readers of a proportional hazards model: baseline hazard, survival curves, concordance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.errors import DataError
from ahofm_keras.families.baseline import EVENT, START, STOP, Baseline
from ahofm_keras.families.cox import Cox
from ahofm_keras.model import AdditiveModel
from ahofm_keras.model.arguments import check_level
from ahofm_keras.model.beside import response_of
from ahofm_keras.model.nuisance import bound_family

# Pairs of rows that are compared together.
_PAIRS = 2**22


def baseline(model: AdditiveModel) -> pd.DataFrame:
    """The cumulative baseline hazard and survival curve of a hazard ratio of 1, by time of event.

    A ratio of 1 is that of the average predictor of the training rows.

    Args:
        model: of the cox family, fitted.

    Returns:
        Columns `time`, `hazard` (cumulative, Breslow's estimate) and `survival`.
    """
    known = _baseline(model)
    survival = np.exp(-known.hazard)
    return pd.DataFrame({"time": known.times, "hazard": known.hazard, "survival": survival})


def survival(
    model: AdditiveModel, x: Any, times: Any = None, interval: float | None = None
) -> pd.DataFrame:
    """Survival curves of rows: P(T > t) = exp(-ratio H(t)), H the cumulative baseline hazard.

    Args:
        model: of the cox family, fitted.
        x: data frame or dict of columns (scalars: one row).
        times: at which the curves are wanted; by default 0 and all times of events.
        interval: level of a credible band, e.g. 0.95: of the hazard ratio, the baseline as it is.

    Returns:
        A row per row of `x` and time: `row` (its index), `time`, `survival`, and with `interval` `lower`
        and `upper`. Beyond the last time that was observed curves are NaN.

    Example:
        >>> import numpy as np
        >>> data = {"time": np.array([5.0, 3.0, 8.0, 1.0]), "died": np.array([1, 1, 0, 1])}
        >>> data["x"] = np.array([0.2, 0.4, 0.1, 0.9])
        >>> model = AdditiveModel("Surv(time, died) ~ 1", data, family="cox")
        >>> history = model.fit(data, verbose=0)
        >>> survival(model, {"x": 0.5}, times=[0, 4]).survival.round(2).tolist()
        [1.0, 0.56]
    """
    known = _baseline(model)
    asked = np.concatenate([[0.0], known.times]) if times is None else _read_times(times)
    hazard = np.where(asked <= known.last, known.at(asked), np.nan)
    found = {}
    if interval is None:
        found["survival"] = np.asarray(model.predict(x, type="link"))
    else:
        check_level("interval", interval)
        band = model.predict(x, type="link", interval=interval)
        found = {"survival": band["link"], "lower": band["upper"], "upper": band["lower"]}
    curves = {name: np.exp(-np.exp(np.asarray(link))[:, None] * hazard) for name, link in found.items()}
    rows = len(curves["survival"])
    index = x.index.to_numpy() if isinstance(x, pd.DataFrame) else np.arange(rows)
    places = {"row": np.repeat(index, len(asked)), "time": np.tile(asked, rows)}
    return pd.DataFrame(places | {name: curve.reshape(-1) for name, curve in curves.items()})


def concordance(model: AdditiveModel, data: Any = None, y: Any = None) -> float:
    """Harrell's index: the share of pairs in which the row of the higher hazard has its event first.

    A pair counts where it is known who was first: the earlier time is that of an event, at which the
    other row is under observation. Equal predictions count one half; 0.5 is guessing.

    Args:
        model: of the cox family.
        data: rows with the response, by default those of the fit that the model remembers.
        y: response beside the data.

    Raises:
        DataError: another family, no rows, no pair that counts.
    """
    _check_family(model)
    if data is None:
        sample = model.sample
        if sample is None:
            raise DataError("The model knows none of its training rows: pass `data=`.")
        response, data = sample.y, sample.columns
    else:
        response = response_of(data, y, model.response, model.family)
    return share_in_order(response, np.asarray(model.predict(data, type="link")))


def share_in_order(response: np.ndarray, eta: np.ndarray) -> float:
    """Harrell's index of censored times and predictors.

    Raises:
        DataError: no pair that counts.
    """
    events = np.flatnonzero(response[:, EVENT] > 0)
    right = pairs = 0.0
    for some in np.array_split(events, max(1, len(events) * len(eta) // _PAIRS)):
        time = response[some, STOP][:, None]
        later = (response[:, STOP] > time) | ((response[:, STOP] == time) & (response[:, EVENT] == 0))
        later &= response[:, START] < time
        higher = eta[some][:, None]
        right += np.sum(later & (higher > eta)) + np.sum(later & (higher == eta)) / 2
        pairs += np.sum(later)
    if not pairs:
        raise DataError("No pair of rows says who was first: there are no events before another time.")
    return float(right / pairs)


def _check_family(model: Any) -> None:
    if not isinstance(model, AdditiveModel) or not isinstance(model.family, Cox):
        name = getattr(getattr(model, "family", None), "name", type(model).__name__)
        raise DataError(f"Survival curves are those of the cox family. Received: {name}.")


def _baseline(model: AdditiveModel) -> Baseline:
    _check_family(model)
    family = bound_family(model)
    assert isinstance(family, Cox)
    assert family.baseline is not None
    return family.baseline


def _read_times(times: Any) -> np.ndarray:
    found = np.atleast_1d(np.asarray(times, dtype=object))
    numbers = all(isinstance(own, int | float | np.number) and own >= 0 for own in found)
    if found.ndim != 1 or not len(found) or not numbers:
        raise DataError(f"`times` must be numbers from 0 on, e.g. [1, 2, 5]. Received: {times!r}.")
    return found.astype(float)
