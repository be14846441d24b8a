"""Residuals: of the response, of the deviance, and randomised quantile residuals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from ahofm_keras.diagnostics.checked_rows import CheckedRows
from ahofm_keras.draws import generator
from ahofm_keras.families import Family

# Standard deviations; the gaussian distribution function is 0 in float64 a little further out.
REACH = 37.0


def residual_frame(family: Family, rows: CheckedRows, seed: int) -> pd.DataFrame:
    """All residuals of all rows.

    Args:
        family: of the response.
        rows: with predictions.
        seed: of the randomisation.
    """
    quantile, clipped = quantile_residuals(family, rows.y, rows.mean, rows.dispersion, rows.weight, seed)
    frame = pd.DataFrame(
        {
            "row": rows.index,
            "fitted": rows.mean,
            "observed": rows.y,
            "link": rows.link,
            "quantile": quantile,
            "deviance": deviance_residuals(family, rows.y, rows.mean, rows.weight),
            "response": rows.y - rows.mean,
            "leverage": np.nan if rows.error is None else _leverage(family, rows, rows.error),
        }
    )
    frame.attrs["clipped"] = clipped
    return frame


def quantile_residuals(
    family: Family, y: np.ndarray, mean: np.ndarray, dispersion: float, weight: np.ndarray, seed: int
) -> tuple[np.ndarray, int]:
    """Randomised quantile residuals (Dunn & Smyth 1996): gaussian where the model is right.

    r = Phi^-1(u), u = F(y); where the response is a whole number, u is drawn evenly between F(y - 1) and
    F(y). Above the median the upper tail is computed, whose digits 1 - F would lose.

    Args:
        family: of the response.
        y: response `(n,)`.
        mean: predicted `(n,)`.
        dispersion: of the response.
        weight: `(n,)`; it divides the dispersion, where the family has one.
        seed: of the draws.

    Returns:
        `(n,)`, and how many of them were clipped to +-`REACH`.
    """
    own: Any = dispersion if family.dispersion_known else dispersion / weight
    family, y = family.counted(y, weight)
    distribution = family.distribution(mean, own)
    below, above = distribution.cdf(y), distribution.sf(y)
    if family.discrete:
        share = generator(seed, "residuals").uniform(size=len(y))
        before, after = distribution.cdf(y - 1), distribution.sf(y - 1)
        below, above = before + share * (below - before), after + share * (above - after)
    with np.errstate(divide="ignore"):
        residuals = np.where(below < 0.5, stats.norm.ppf(below), -stats.norm.ppf(above))
    clipped = int(np.sum(np.abs(residuals) > REACH))
    return np.clip(residuals, -REACH, REACH), clipped


def deviance_residuals(
    family: Family, y: np.ndarray, mean: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Roots of the rows' deviances with the sign of y - mean; their squares sum to the deviance."""
    deviance = np.maximum(family.unit_deviance(y, mean, np) * weight, 0.0)
    return np.sign(y - mean) * np.sqrt(deviance)


def _leverage(family: Family, rows: CheckedRows, error: np.ndarray) -> np.ndarray:
    """Derivative of a row's fitted value by its response: Var(eta) times the row's information."""
    variance = rows.dispersion * np.maximum(family.variance(rows.mean), np.finfo(float).tiny)
    return np.asarray(error**2 * rows.weight * family.slope(rows.link) ** 2 / variance)
