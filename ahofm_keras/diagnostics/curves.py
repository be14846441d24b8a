"""Curves that pictures of a check draw, as frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

_POINTS = 60
# Share of the rows at each end where no trend is told.
_EDGE = 0.005
# Share of the rows that a point of the trend looks at, and how many at least.
_SPAN = 0.4
_LEAST_ROWS = 20
_LEVEL = 0.95
_PIT_BINS = 20


def qq_frame(residuals: np.ndarray) -> pd.DataFrame:
    """Quantile residuals, sorted, against gaussian ones.

    Args:
        residuals: `(n,)`.

    Returns:
        A row a residual with `theoretical` (the median of the i-th smallest of n independent gaussian
        numbers), `sample`, and `lower` and `upper`, between which it lies in 95 of 100 samples.
        Simulation would give the same with noise: Phi of the i-th is a beta(i, n - i + 1) variable.
    """
    n = len(residuals)
    place = np.arange(1, n + 1)
    tails = ((1 - _LEVEL) / 2, 0.5, (1 + _LEVEL) / 2)
    lower, middle, upper = (stats.norm.ppf(stats.beta.ppf(tail, place, n - place + 1)) for tail in tails)
    sample = np.sort(residuals)
    return pd.DataFrame({"theoretical": middle, "sample": sample, "lower": lower, "upper": upper})


def pit_frame(residuals: np.ndarray) -> pd.DataFrame:
    """Probability integral transforms Phi(r) of quantile residuals, counted in even bins.

    Args:
        residuals: `(n,)`.

    Returns:
        A row a bin with `low`, `high`, `rows` and their `density`, which is 1 on average;
        `attrs["range"]` has the ends between which that of a bin lies in 95 of 100 samples.
    """
    n = len(residuals)
    bins = int(np.clip(n // _LEAST_ROWS, 4, _PIT_BINS))
    rows, edges = np.histogram(stats.norm.cdf(residuals), np.linspace(0, 1, bins + 1))
    frame = pd.DataFrame(
        {"low": edges[:-1], "high": edges[1:], "rows": rows, "density": rows * bins / n}
    )
    tails = (1 - _LEVEL) / 2, (1 + _LEVEL) / 2
    low, high = (float(stats.binom.ppf(tail, n, 1 / bins)) * bins / n for tail in tails)
    frame.attrs["range"] = low, high
    return frame


def trend_frame(fitted: np.ndarray, residuals: np.ndarray) -> pd.DataFrame:
    """Local straight lines through residuals along the fitted mean, by Cleveland's weights.

    Args:
        fitted: `(n,)`.
        residuals: `(n,)`, of one variance.

    Returns:
        One row per point with `fitted`, `trend`, and `reach`: twice the standard error of the trend of
        residuals of variance 1.
    """
    window = min(len(fitted) - 1, max(int(_SPAN * len(fitted)), _LEAST_ROWS))
    found = []
    for at in np.unique(np.quantile(fitted, np.linspace(_EDGE, 1 - _EDGE, _POINTS))):
        distance = np.abs(fitted - at)
        width = np.partition(distance, window)[window]
        near = distance <= width
        share = distance[near] / width if width > 0 else np.zeros(near.sum())
        row = _line_weights(fitted[near] - at, (1 - (0.999 * share) ** 3) ** 3)
        found.append((at, row @ residuals[near], 2 * np.sqrt(row @ row)))
    return pd.DataFrame(found, columns=["fitted", "trend", "reach"])


def _line_weights(distance: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """What each row counts in the value at 0 of the weighted straight line."""
    total, first = weight.sum(), weight @ distance
    second = weight @ distance**2
    determinant = total * second - first**2
    if determinant <= 1e-10 * total * second or not second:
        return weight / total  # all rows at one place: their mean
    return weight * (second - first * distance) / determinant
