"""Successes among trials."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import special, stats

from ahofm_keras.errors import DataError, warn
from ahofm_keras.families.base import Array, Family, Namespace, Parameters
from ahofm_keras.families.binary import LEAST_PROBABILITY, Bernoulli
from ahofm_keras.families.registry import register_family

# What a number of successes may miss a whole one by: proportions have been rounded.
_ROUNDING = 1e-4
# Nodes of the average over a gaussian predictor, and their weights.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@register_family
class Binomial(Bernoulli):
    """The share of successes in a number of trials, by the probability of one.

    The response is `cbind(successes, failures)`, or that share with the number of trials as weight: the
    first becomes the second when it is read, so k successes in m trials are k rows of 1 and m - k of 0.

    Args:
        link: name of the link.
        trials: of each row, of which `distribution` counts successes; without them that of one trial.
    """

    name = "binomial"
    support_text = "shares between 0 and 1 (or `cbind(successes, failures)`)"
    forms: ClassVar[tuple[str, ...]] = ("cbind", "column")
    binary = False
    predicts = "the probability of a success"
    result_label = "Probability of a success in"
    variance_text = "mean (1 - mean) / trials"

    def __init__(self, link: Any = None, *, trials: np.ndarray | None = None) -> None:
        super().__init__(link)
        self.trials = trials

    def quantity(self, parameter: str, response: Any) -> str:
        return f"share of {response.arguments[0]}" if response.function == "cbind" else str(response)

    def of_rows(self, rows: np.ndarray) -> Binomial:
        return self if self.trials is None else self.for_trials(np.asarray(self.trials)[rows])

    def for_trials(self, trials: np.ndarray) -> Binomial:
        """The family of numbers of successes."""
        return type(self)(self.link, trials=trials)

    def support(self, y: np.ndarray) -> np.ndarray:
        if y.ndim > 1:
            return np.all((y >= 0) & (y == np.floor(y)), axis=-1) & (y.sum(axis=-1) > 0)
        return np.isfinite(y) & (y >= 0) & (y <= 1)

    def check_response(self, y: np.ndarray, label: str) -> None:
        if y.ndim == 1:
            beyond = y > 1
            if beyond.any() and np.all(y == np.floor(y)):
                raise DataError(
                    f"The response `{label}` of the binomial family holds numbers above 1 (first at row "
                    f"{int(np.argmax(beyond))}: {y[np.argmax(beyond)]:g}): successes need the number of "
                    f"trials beside them, e.g. `cbind({label}, trials - {label})`."
                )
            return super().check_response(y, label)
        for bad, what in (
            (np.any(y < 0, axis=-1), "negative numbers: there cannot be more successes than trials"),
            (np.any(y != np.floor(y), axis=-1), "numbers that are not whole"),
            (y.sum(axis=-1) == 0, "no trials: leave these rows out"),
        ):
            if bad.any():
                row = int(np.argmax(bad))
                raise DataError(
                    f"The response `{label}` must be numbers of successes and of failures, but "
                    f"{int(bad.sum()):,} of {len(y):,} rows hold {what}; first at row {row}: "
                    f"{y[row, 0]:g} and {y[row, 1]:g}."
                )
        return None

    def check_training(self, y: np.ndarray, label: str) -> None:
        super().check_training(self.as_weighted(y, None)[0], label)

    def as_weighted(
        self, y: Array, weight: Array | None, tell: bool = False
    ) -> tuple[Array, Array | None]:
        """The share of successes, and the number of trials as weight."""
        if len(y.shape) > 1:
            trials = y[..., 0] + y[..., 1]
            return y[..., 0] / trials, trials if weight is None else trials * weight
        if tell:
            successes = y * (1.0 if weight is None else weight)
            odd = np.abs(successes - np.rint(successes)) > _ROUNDING * np.maximum(successes, 1.0)
            if odd.any():
                warn(
                    f"Shares times weights are no whole numbers of successes in {int(odd.sum()):,} of "
                    f"{len(y):,} rows: pass the number of trials as `sample_weight`, or write "
                    "`cbind(successes, failures)`."
                )
        return y, weight

    def counted(self, y: np.ndarray, weight: np.ndarray) -> tuple[Family, np.ndarray]:
        """Numbers of successes, weights being numbers of trials."""
        trials = np.rint(weight)
        return self.for_trials(trials), np.rint(trials * y)

    def unit_deviance(self, y: Array, mean: Array, xp: Namespace = np) -> Array:
        """Of one trial."""
        counted = xp.clip(y, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
        return super().unit_deviance(y, mean, xp) - super().unit_deviance(y, counted, xp)

    def variance(self, mean: np.ndarray) -> np.ndarray:
        variance = super().variance(mean)
        return variance if self.trials is None else variance * self.trials

    def distribution(self, mean: np.ndarray, dispersion: float | np.ndarray = 1.0) -> object:
        return stats.binom(1 if self.trials is None else self.trials, mean)

    def mean_of(self, parameters: Parameters, xp: Namespace = np) -> Array:
        """Of the number of successes where trials are known, else of the share."""
        return parameters["mean"] * (1.0 if self.trials is None else self.trials)

    def log_constant(self, y: np.ndarray) -> np.ndarray:
        """None of one trial: what the deviance leaves out is the best that a share can have."""
        return -super().unit_deviance(y, np.clip(y, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)) / 2

    def log_likelihood(
        self, y: np.ndarray, mean: np.ndarray, dispersion: float, weight: np.ndarray
    ) -> float:
        """Of numbers of successes, weights being numbers of trials."""
        rows = weight > 0
        y, mean, trials = y[rows], mean[rows], weight[rows]
        successes = trials * y
        choices = -np.log1p(trials) - special.betaln(successes + 1, trials - successes + 1)
        chance = special.xlogy(successes, mean) + special.xlog1py(trials - successes, -mean)
        return float(np.sum(choices + chance))

    def predictive_quantile(
        self, link: np.ndarray, error: np.ndarray, dispersion: float, probability: float
    ) -> np.ndarray:
        """The least number of successes that is not exceeded with that chance, averaged over links."""
        if self.trials is None:
            return super().predictive_quantile(link, error, dispersion, probability)
        mean = self.inverse_link(link[:, None] + np.maximum(error, 0.0)[:, None] * _NODES, np)
        low, high = np.full(len(link), -1.0), np.asarray(self.trials, float)
        while np.any(high - low > 1):
            middle = np.floor((low + high) / 2)
            chance = stats.binom.cdf(middle[:, None], self.trials[:, None], mean) @ _WEIGHTS
            enough = chance >= probability
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return high
