"""What every library of the comparison becomes: a fit that predicts, and one chosen from a few."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import xlogy

from comparison.problems import Split, split

# Probabilities and means of counts are at least so much: a logarithm is taken of them.
_LEAST = 1e-12


@dataclass(frozen=True)
class Fitted:
    """A fitted model.

    Args:
        mean: predictions of rows.
        spread: standard deviations of new responses of rows, None where the library has no predictive
            distribution.
        log_density: of responses of rows (which have the response), where that is not normal.
        setting: what was chosen, for the record.
        own: figures that the fit measured itself, because it ran in another process.
    """

    mean: Callable[[pd.DataFrame], np.ndarray]
    spread: Callable[[pd.DataFrame], np.ndarray] | None = None
    log_density: Callable[[pd.DataFrame], np.ndarray] | None = None
    setting: str = ""
    own: Mapping[str, float] | None = None


Fit = Callable[..., Fitted]
Score = Callable[[Fitted, pd.DataFrame, str], float]


def rmse(predicted: np.ndarray, y: pd.Series) -> float:
    return float(np.sqrt(np.mean((np.asarray(predicted, float) - y.to_numpy(float)) ** 2)))


def log_score(mean: np.ndarray, spread: np.ndarray, y: pd.Series) -> float:
    """Mean negative log density of `y` under normal distributions: smaller is better."""
    z = (y.to_numpy(float) - mean) / spread
    return float(np.mean(0.5 * np.log(2 * np.pi) + np.log(spread) + 0.5 * z**2))


def error_of(fitted: Fitted, data: pd.DataFrame, response: str) -> float:
    return rmse(fitted.mean(data), data[response])


def log_score_of(fitted: Fitted, data: pd.DataFrame, response: str) -> float | None:
    """Mean negative log density of rows; None where there is no predictive distribution."""
    if fitted.log_density is not None:
        return float(-np.mean(fitted.log_density(data)))
    if fitted.spread is None:
        return None
    return log_score(fitted.mean(data), fitted.spread(data), data[response])


def log_loss(predicted: np.ndarray, y: pd.Series) -> float:
    """Mean negative log-likelihood of a binary response."""
    p, y = np.clip(np.asarray(predicted, float), _LEAST, 1 - _LEAST), y.to_numpy(float)
    return float(-np.mean(y * np.log(p) + (1 - y) * np.log1p(-p)))


def poisson_deviance(predicted: np.ndarray, y: pd.Series) -> float:
    """Mean deviance of counts."""
    mean, y = np.maximum(np.asarray(predicted, float), _LEAST), y.to_numpy(float)
    return float(2 * np.mean(xlogy(y, y / mean) - (y - mean)))


# By family: what is compared, smaller is better.
SCORES: dict[str, Callable[[np.ndarray, pd.Series], float]] = {
    "gaussian": rmse,
    "bernoulli": log_loss,
    "poisson": poisson_deviance,
}


def missed(predicted: np.ndarray, truth: np.ndarray) -> float:
    """Mean squared distance from the true means, over their variance: 0 is the truth, 1 its mean."""
    return float(np.mean((np.asarray(predicted, float) - truth) ** 2) / np.var(truth))


def beyond(predicted: np.ndarray, y: pd.Series) -> float:
    """How far the farthest prediction is outside the range of the responses `y`, in widths of it."""
    least, most = float(y.min()), float(y.max())
    outside = np.maximum(least - np.asarray(predicted, float), np.asarray(predicted, float) - most)
    return float(max(np.max(outside), 0.0) / (most - least))


def constant(rows: Split) -> Fitted:
    """Mean and standard deviation of the training rows: what a model has to be better than."""
    mean, spread = float(rows.y.mean()), float(rows.y.std())
    return Fitted(lambda data: np.full(len(data), mean), lambda data: np.full(len(data), spread))


def truth(rows: Split) -> Fitted:
    """The true means of simulated test rows: what no model is better than, but by chance."""
    if rows.truth is None:
        raise ValueError("the truth is known of simulated rows only")
    means = rows.truth
    return Fitted(lambda data: means)


def tuned(
    fit: Fit,
    candidates: Callable[[Split], Sequence[Mapping[str, Any]]],
    score: Score = error_of,
) -> Fit:
    """The fit of the candidate with the smallest score on a fifth of the training rows.

    Args:
        fit: called with rows and the settings of a candidate.
        candidates: the settings to try for these rows; may use the training rows only.
        score: what is compared, the smaller the better.

    Returns:
        A fit that tries all of them on four fifths, then fits the best one to all training rows.
    """

    def choose(rows: Split) -> Fitted:
        inner = split(rows.train, rows.response, rows.seed)
        tried = list(candidates(inner))
        errors = [score(fit(inner, **settings), inner.test, rows.response) for settings in tried]
        best = tried[int(np.nanargmin(errors))]
        final = fit(rows, **best)
        return replace(final, setting=str(dict(best)))

    return choose
