"""Counts with more zeros, or fewer, than their mean gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from scipy import special

from ahofm_keras.families.base import Array, Links, Namespace, Parameters
from ahofm_keras.families.counted import Counted, PoissonCounts
from ahofm_keras.families.distributions import DiscreteDistribution
from ahofm_keras.families.links import MEANS, PROBABILITIES, SCALES
from ahofm_keras.families.location_scale import moments
from ahofm_keras.families.negative_binomial import NegativeBinomial
from ahofm_keras.families.registry import register_family
from ahofm_keras.families.special import log1p_exp

# Between a probability and 0 or 1, so that logarithms stay finite.
_LEAST_PROBABILITY = 1e-15
# Probabilities of a zero, means and dispersions that a fit starts from.
_START = (0.01, 0.99)
_LEAST_MEAN = 1e-2
_DISPERSIONS = (1e-2, 100.0)
_ALIASES = {"mu": "mean", "location": "mean", "lambda": "mean", "pi": "zero", "zi": "zero"}


class ZeroCounts(DiscreteDistribution):
    """A share of a distribution of counts; all that is not of this share is 0.

    Args:
        share: what the probabilities of counts above 0 are multiplied by; above 1 there are fewer zeros.
        counts: a distribution of SciPy.
        zero: probability of a 0.
    """

    def __init__(self, share: np.ndarray, counts: Any, zero: np.ndarray) -> None:
        self.share, self.counts, self.zero = share, counts, zero
        self.shape = np.shape(share + 0 * counts.mean())

    def mean(self) -> np.ndarray:
        return np.asarray(self.share * self.counts.mean())

    def var(self) -> np.ndarray:
        square = self.counts.var() + self.counts.mean() ** 2
        return np.asarray(self.share * square - self.mean() ** 2)

    def logpmf(self, y: Any) -> np.ndarray:
        above = np.log(self.share) + self.counts.logpmf(y)
        return np.where(np.asarray(y) == 0, np.log(self.zero), above)

    def cdf(self, y: Any) -> np.ndarray:
        return np.where(np.asarray(y) < 0, 0.0, 1 - self.share * self.counts.sf(y))

    def sf(self, y: Any) -> np.ndarray:
        return np.where(np.asarray(y) < 0, 1.0, self.share * self.counts.sf(y))


class ZeroInflated(Counted):
    """Counts of a distribution, and zeros besides."""

    counts: ClassVar[Counted]
    variance_text = "larger than that of the counts, by the zeros"

    def log_density(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        zero, none = _held(parameters, xp), self._log_none(y, parameters, xp)
        extra = xp.log(zero)
        at_zero = extra + log1p_exp(xp.log1p(-zero) + none - extra, xp)
        counted = xp.log1p(-zero) + self.counts.log_density(y, parameters, xp)
        return xp.where(y > 0, counted, at_zero)

    def distribution_of(self, parameters: Parameters) -> Any:
        zero, counts = _held(parameters), self.counts.distribution_of(parameters)
        return ZeroCounts(1 - zero, counts, zero + (1 - zero) * counts.pmf(0))

    def mean_of(self, parameters: Parameters, xp: Namespace = np) -> Array:
        return (1 - parameters["zero"]) * self.counts.mean_of(parameters, xp)

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        zero, none = _held(parameters), self._log_none(y, parameters)
        chance = zero + (1 - zero) * np.exp(none)
        counted = (1 - zero) * np.exp(none) / chance  # that a zero is one of the counts
        nothing = self.counts.score(np.zeros_like(y, dtype=float), parameters)
        found = {
            name: np.where(y > 0, score, counted * nothing[name])
            for name, score in self.counts.score(y, parameters).items()
        }
        found["zero"] = np.where(y > 0, -1 / (1 - zero), -np.expm1(none) / chance)
        return found

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        """That of the counts, less what is lost as nobody knows where a zero comes from."""
        zero, y = _held(parameters), np.zeros_like(y, dtype=float)
        none = self._log_none(y, parameters)
        chance = zero + (1 - zero) * np.exp(none)
        nothing = self.counts.score(y, parameters)
        lost = np.exp(none) * zero / chance
        found = {
            name: (1 - zero) * np.maximum(information - lost * nothing[name] ** 2, 0.0)
            for name, information in self.counts.information(y, parameters).items()
        }
        found["zero"] = -np.expm1(none) / chance / (1 - zero)
        return found

    def crps(self, y: np.ndarray, parameters: Parameters) -> np.ndarray:
        return self._crps(y, parameters, 1 - _held(parameters))

    def _crps(self, y: np.ndarray, parameters: Parameters, share: np.ndarray) -> np.ndarray:
        distance = share * self.counts.absolute_error(y, parameters) + (1 - share) * y
        pairs = share**2 * self.counts.mean_difference(parameters)
        pairs = pairs + 2 * share * (1 - share) * self.counts.mean_of(parameters)
        return np.asarray(distance - pairs / 2)

    def _log_none(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        """Logarithm of the probability that the counts themselves are 0."""
        return self.counts.log_density(xp.zeros_like(y * 1.0), parameters, xp)


@register_family
class ZeroInflatedPoisson(ZeroInflated):
    """Poisson counts, but for a share of extra zeros; `mean` is that of the poisson part."""

    name = "zero_inflated_poisson"
    links: ClassVar[Links] = {"mean": MEANS, "zero": PROBABILITIES}
    counts: ClassVar[Counted] = PoissonCounts()
    remedies: ClassVar[Mapping[str, str]] = {
        "heavy tails": '`family="zero_inflated_negative_binomial"` has counts that vary more.',
    }
    meanings: ClassVar[Mapping[str, str]] = {
        "mean": "the average count, the further zeros left out of account",
        "zero": "the probability of a further zero, beside those that the counts have anyway",
    }
    aliases: ClassVar[Mapping[str, str]] = {**_ALIASES, "sigma": "zero"}

    def start_values(self, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
        """With m the mean of the counts and v the variance, v / m - 1 is the poisson mean less m."""
        mean, variance = moments(y, weight)
        mean = max(mean, _LEAST_MEAN)
        zero = float(np.clip(1 - mean / max(variance / mean + mean - 1, mean), *_START))
        return {"mean": mean / (1 - zero), "zero": zero}


@register_family
class ZeroInflatedNegativeBinomial(ZeroInflated):
    """Negative binomial counts, but for a share of extra zeros; `mean` is that of the counts."""

    name = "zero_inflated_negative_binomial"
    links: ClassVar[Links] = {
        "mean": MEANS,
        "dispersion": SCALES,
        "zero": PROBABILITIES,
    }
    counts: ClassVar[Counted] = NegativeBinomial()
    aliases: ClassVar[Mapping[str, str]] = {
        **_ALIASES,
        "sigma": "dispersion",
        "alpha": "dispersion",
        "nu": "zero",
    }

    def start_values(self, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
        """Of the pairs that have the mean and the variance, that with the observed share of zeros."""
        mean, variance = moments(y, weight)
        mean = max(mean, _LEAST_MEAN)
        observed = float(np.average(y == 0, weights=weight))
        zero = np.linspace(_START[0], float(np.clip(observed, 2 * _START[0], _START[1])), 200)
        counted = mean / (1 - zero)
        dispersion = np.clip((variance / mean - 1) / counted - zero, *_DISPERSIONS)
        none = np.exp(-np.log1p(dispersion * counted) / dispersion)
        best = int(np.argmin(np.abs(zero + (1 - zero) * none - observed)))
        return {
            "mean": float(counted[best]),
            "dispersion": float(dispersion[best]),
            "zero": float(zero[best]),
        }


@register_family
class HurdlePoisson(ZeroInflated):
    """Zeros by a probability of their own; counts above 0 are poisson ones that are not 0."""

    name = "hurdle_poisson"
    links: ClassVar[Links] = {"mean": MEANS, "zero": PROBABILITIES}
    counts: ClassVar[Counted] = PoissonCounts()
    meanings: ClassVar[Mapping[str, str]] = {
        "mean": "the average of the counts before zeros are left out of them",
        "zero": "the probability of a zero",
    }
    variance_text = "what the zeros and the counts above 0 say"
    aliases: ClassVar[Mapping[str, str]] = {**_ALIASES, "sigma": "zero"}

    def log_density(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        zero, mean = _held(parameters, xp), xp.maximum(parameters["mean"], 1e-100)
        some = xp.log(-xp.expm1(-mean))
        counted = xp.log1p(-zero) + y * xp.log(mean) - mean - some
        return xp.where(y > 0, counted, xp.log(zero) + 0 * counted)

    def distribution_of(self, parameters: Parameters) -> Any:
        counts = self.counts.distribution_of(parameters)
        return ZeroCounts(self._share(parameters), counts, _held(parameters) + 0 * counts.mean())

    def mean_of(self, parameters: Parameters, xp: Namespace = np) -> Array:
        return self._share(parameters, xp) * parameters["mean"]

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        zero, mean = _held(parameters), np.maximum(parameters["mean"], 1e-100)
        return {
            "mean": np.where(y > 0, y / mean + 1 / np.expm1(-mean), 0.0),
            "zero": np.where(y > 0, -1 / (1 - zero), 1 / zero),
        }

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        zero, mean = _held(parameters), np.maximum(parameters["mean"], 1e-100)
        above = -mean / np.expm1(-mean)  # mean of the counts above 0
        variance = above * np.where(mean < 1e-6, mean / 2, 1 + mean - above)
        return {
            "mean": (1 - zero) * variance / mean / mean,
            "zero": 1 / zero / (1 - zero) + 0 * mean,
        }

    def start_values(self, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
        zero = float(np.clip(np.average(y == 0, weights=weight), *_START))
        above = max(float(np.average(y, weights=weight)) / (1 - zero), 1 + _LEAST_MEAN)
        # Of m / (1 - exp(-m)) = a the solution is a + W(-a exp(-a)), with Lambert's function.
        return {"mean": above + float(special.lambertw(-above * np.exp(-above)).real), "zero": zero}

    def crps(self, y: np.ndarray, parameters: Parameters) -> np.ndarray:
        return self._crps(y, parameters, self._share(parameters))

    def _share(self, parameters: Parameters, xp: Namespace = np) -> Array:
        return -(1 - _held(parameters, xp)) / xp.expm1(-xp.maximum(parameters["mean"], 1e-100))


def _held(parameters: Parameters, xp: Namespace = np) -> Array:
    return xp.clip(parameters["zero"], _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)
