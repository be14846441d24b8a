"""What every library of the comparison becomes: a fit that predicts, and one chosen from a few."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from comparison.problems import Split, split


@dataclass(frozen=True)
class Fitted:
    """A fitted model.

    Args:
        mean: predictions of rows.
        spread: standard deviations of new responses of rows, None where the library has no predictive
            distribution.
        setting: what was chosen, for the record.
        own: figures that the fit measured itself, because it ran in another process.
    """

    mean: Callable[[pd.DataFrame], np.ndarray]
    spread: Callable[[pd.DataFrame], np.ndarray] | None = None
    setting: str = ""
    own: Mapping[str, float] | None = None


Fit = Callable[..., Fitted]


def rmse(predicted: np.ndarray, y: pd.Series) -> float:
    return float(np.sqrt(np.mean((np.asarray(predicted, float) - y.to_numpy(float)) ** 2)))


def log_score(mean: np.ndarray, spread: np.ndarray, y: pd.Series) -> float:
    """Mean negative log density of `y` under normal distributions: smaller is better."""
    z = (y.to_numpy(float) - mean) / spread
    return float(np.mean(0.5 * np.log(2 * np.pi) + np.log(spread) + 0.5 * z**2))


def constant(rows: Split) -> Fitted:
    """Mean and standard deviation of the training rows: what a model has to be better than."""
    mean, spread = float(rows.y.mean()), float(rows.y.std())
    return Fitted(lambda data: np.full(len(data), mean), lambda data: np.full(len(data), spread))


def tuned(fit: Fit, candidates: Callable[[Split], Sequence[Mapping[str, Any]]]) -> Fit:
    """The fit of the candidate with the smallest error on a fifth of the training rows.

    Args:
        fit: called with rows and the settings of a candidate.
        candidates: the settings to try for these rows; may use the training rows only.

    Returns:
        A fit that tries all of them on four fifths, then fits the best one to all training rows.
    """

    def choose(rows: Split) -> Fitted:
        inner = split(rows.train, rows.response, rows.seed)
        tried = list(candidates(inner))
        errors = [
            rmse(fit(inner, **settings).mean(inner.test), inner.test[rows.response])
            for settings in tried
        ]
        best = tried[int(np.nanargmin(errors))]
        final = fit(rows, **best)
        return replace(final, setting=str(dict(best)))

    return choose
