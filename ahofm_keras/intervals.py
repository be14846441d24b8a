"""Credible bands of the mean and predictive intervals of new responses.

From a gaussian posterior of the predictor, or conformal: distribution-free, from rows held out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from ahofm_keras.errors import DataError
from ahofm_keras.families import Family


def band_of_link(link: np.ndarray, error: np.ndarray, level: float) -> pd.DataFrame:
    """Predictor with its standard error and credible band."""
    reach = stats.norm.isf((1 - level) / 2) * error
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
        Columns `mean`, `lower`, `upper`, `predictive_lower`, `predictive_upper`; of a loss, which says
        nothing of a new response, the first three.
    """
    band = band_of_link(link, error, level)
    lower, upper = family.mean_interval(band["lower"].to_numpy(), band["upper"].to_numpy())
    found = pd.DataFrame({"mean": family.inverse_link(link, np), "lower": lower, "upper": upper})
    if family.is_loss:
        return found
    tails = ((1 - level) / 2, (1 + level) / 2)
    low, high = (family.predictive_quantile(link, error, dispersion, tail) for tail in tails)
    # At levels of almost 0 both round.
    return found.assign(predictive_lower=low, predictive_upper=np.maximum(low, high))


def predictive_spread(
    family: Family, link: np.ndarray, error: np.ndarray | float, dispersion: float
) -> np.ndarray:
    """Standard deviation of a new response: that of the family and that of its mean."""
    mean = np.asarray(family.inverse_link(link, np))
    # A mean of many trials is as many times that of one.
    unit = np.asarray(family.mean_of(family.named(np.ones_like(mean))))
    return np.sqrt(family.variance(mean) * dispersion + (unit * family.slope(link) * error) ** 2)


@dataclass(frozen=True, eq=False)
class Reach:
    """From where, and in which unit, a response is far from its prediction, on each side.

    Args:
        low: where the lower side begins `(n,)`.
        high: where the upper side begins `(n,)`.
        below: unit of the lower side `(n,)`.
        above: unit of the upper side `(n,)`.
    """

    low: np.ndarray
    high: np.ndarray
    below: np.ndarray
    above: np.ndarray

    @classmethod
    def around(cls, mean: np.ndarray, spread: np.ndarray) -> Reach:
        """The same on both sides of the mean: scores are |residual| / spread."""
        return cls(mean, mean, spread, spread)

    @classmethod
    def of_quantiles(
        cls, low: np.ndarray, middle: np.ndarray, high: np.ndarray, discrete: bool
    ) -> Reach:
        """Beyond quantiles, in units of their distances from the median.

        Conformalised quantiles (Romano, Patterson & Candes 2019) whose correction is proportional to the
        predicted width: where the model says that responses vary, intervals grow by more.
        """
        least = 1.0 if discrete else np.finfo(float).tiny
        return cls(low, high, np.maximum(middle - low, least), np.maximum(high - middle, least))

    def scores(self, y: np.ndarray) -> np.ndarray:
        """How far each response is out, below 0 of those inside."""
        return np.maximum((self.low - y) / self.below, (y - self.high) / self.above)


def conformal_band(
    family: Family, mean: np.ndarray, reach: Reach, scores: np.ndarray, level: float
) -> pd.DataFrame:
    """Split conformal intervals: they hold at least `level` of new responses, whatever these follow.

    Args:
        family: of the response; not a binary one, whose intervals would be one of three sets.
        mean: predicted.
        reach: from where scores are counted.
        scores: of rows that the model was not fitted to.
        level: e.g. 0.95.

    Returns:
        Columns `mean`, `predictive_lower`, `predictive_upper`, within the response's support.
    """
    if family.binary or family.labelled:
        raise DataError("Conformal intervals need a response with more than two values, all numbers.")
    far = conformal_quantile(scores, level)
    trials = getattr(family, "trials", None)
    most = family.bounds[1] if trials is None else trials
    # A share of trials of which nobody said how many there are.
    whole = family.discrete and (trials is not None or not hasattr(family, "for_trials"))
    ends = reach.low - far * reach.below, reach.high + far * reach.above
    low, high = (np.clip(end, family.bounds[0], most) for end in ends)
    if whole:
        low, high = np.ceil(low - 1e-9) + 0.0, np.floor(high + 1e-9)
    return pd.DataFrame({"mean": mean, "predictive_lower": low, "predictive_upper": high})


def conformal_quantile(scores: np.ndarray, level: float) -> float:
    """The score that a new one exceeds with a probability of at most 1 - level."""
    place = int(np.ceil((len(scores) + 1) * level - 1e-9))
    if place > len(scores):
        needed = int(np.ceil(level / (1 - level) - 1e-9))
        raise DataError(
            f"Conformal intervals of level {level:g} need at least {needed:,} calibration rows, "
            f"{len(scores):,} were given."
        )
    return float(np.sort(scores)[place - 1])
