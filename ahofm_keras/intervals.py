"""Credible bands of the mean and predictive intervals of new responses, from a gaussian posterior."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from ahofm_keras.families import Family

_NODES = 15
_BISECTIONS = 60
_ROWS = 8192


def band_of_link(link: np.ndarray, error: np.ndarray, level: float) -> pd.DataFrame:
    """Predictor with its standard error and credible band."""
    reach = stats.norm.ppf((1 + level) / 2) * error
    return pd.DataFrame({"link": link, "se": error, "lower": link - reach, "upper": link + reach})


def band_of_mean(
    family: Family, link: np.ndarray, error: np.ndarray, dispersion: float, level: float
) -> pd.DataFrame:
    """Mean response, its credible band, and the predictive interval of a new response.

    Args:
        family: of the response.
        link: mean of the predictor.
        error: its standard deviation.
        dispersion: of the response, in its own units.
        level: e.g. 0.95.

    Returns:
        Columns `mean`, `lower`, `upper`, `predictive_lower`, `predictive_upper`.
    """
    band = band_of_link(link, error, level)
    tails = ((1 - level) / 2, (1 + level) / 2)
    low, high = (predictive_quantile(family, link, error, dispersion, tail) for tail in tails)
    return pd.DataFrame(
        {
            "mean": family.inverse_link(link, np),
            "lower": family.inverse_link(band["lower"].to_numpy(), np),
            "upper": family.inverse_link(band["upper"].to_numpy(), np),
            "predictive_lower": low,
            "predictive_upper": high,
        }
    )


def predictive_quantile(
    family: Family, link: np.ndarray, error: np.ndarray, dispersion: float, probability: float
) -> np.ndarray:
    """Quantile of a new response: the family's, averaged over the posterior of the predictor."""
    if family.scaled:  # both parts are gaussian
        return np.asarray(stats.norm.ppf(probability, link, np.sqrt(error**2 + dispersion)))
    parts = [
        _mixture_quantile(family, link[rows], error[rows], dispersion, probability)
        for rows in (slice(start, start + _ROWS) for start in range(0, len(link), _ROWS))
    ]
    return np.concatenate([np.zeros(0), *parts])


def _mixture_quantile(
    family: Family, link: np.ndarray, error: np.ndarray, dispersion: float, probability: float
) -> np.ndarray:
    """By bisection between the quantiles at the nodes of a Gauss-Hermite rule."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    weights = weights / weights.sum()
    mean = family.inverse_link(link[:, None] + error[:, None] * nodes, np)
    distribution = family.distribution(mean, dispersion)
    quantiles = distribution.ppf(probability)
    low, high = quantiles.min(axis=1) - 1e-9, quantiles.max(axis=1)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        enough = distribution.cdf(middle[:, None]) @ weights >= probability
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.round(high) if family.discrete else high
