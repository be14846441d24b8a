"""Expectiles of the response by an asymmetric squared loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from scipy import stats
from scipy.optimize import brentq

from ahofm_keras.errors import DataError
from ahofm_keras.families.base import Array, Links, Namespace, Parameters
from ahofm_keras.families.conditions import Condition
from ahofm_keras.families.exponential import ExponentialFamily
from ahofm_keras.families.location_scale import moments
from ahofm_keras.families.registry import register_family

# Weighted means on the way to the expectile of all responses.
_STEPS = 100


@register_family
class Expectile(ExponentialFamily):
    """The expectile of the response at a level: what minimises an asymmetric squared loss.

    Squares of responses above it count 2 level times, those below 2 (1 - level) times: at 0.5 it is the
    mean and the fit that of `gaussian`. It is a loss, not a density. The dispersion is such that of
    normal responses the posterior variance is the sampling variance of the estimate.

    Args:
        link: of the expectile.
        level: between 0 and 1.
    """

    name = "expectile"
    links: ClassVar[Links] = {"mean": ("identity", "log", "softplus")}
    support_text = "finite"
    aliases: ClassVar[Mapping[str, str]] = {"expectile": "mean", "mu": "mean", "loc": "mean"}
    dispersion_known = False
    least_slope = 0.0
    is_loss = True
    variance_text = "not assumed"
    predicts = "the expectile"
    result_label = "Expectile of"

    def __init__(self, link: str | Mapping[str, str] | None = None, level: float = 0.5) -> None:
        if not isinstance(level, int | float | np.number) or not 0 < level < 1:
            raise DataError(
                "`level` of the expectile family must be a number between 0 and 1, e.g. 0.9. "
                f"Received: {level!r}."
            )
        super().__init__(link)
        self.level = float(level)
        # With equal weights the response is its own working response.
        self.constant_variance = self.level == 0.5  # type: ignore[misc]
        self._repeated = _repeated(self.level)

    def options(self) -> dict[str, Any]:
        return {"level": self.level}

    def _weight(self, y: Array, mean: Array, xp: Namespace = np) -> Array:
        one = xp.ones_like(y - mean)
        return xp.where(y > mean, 2 * self.level * one, 2 * (1 - self.level) * one)

    def unit_deviance(self, y: Array, mean: Array, xp: Namespace = np) -> Array:
        return self._weight(y, mean, xp) * (y - mean) ** 2

    def log_constant(self, y: np.ndarray) -> np.ndarray:
        return np.zeros_like(y, dtype=float)

    def variance(self, mean: np.ndarray) -> np.ndarray:
        return np.ones_like(mean)

    def distribution(self, mean: np.ndarray, dispersion: Any = 1.0) -> Any:
        raise DataError(
            "The expectile family is a loss, not a distribution: it has no density, quantiles or "
            'sample. A family such as "student_t", "shash" or "gaussian_ls" has them.'
        )

    def conditions(self, y: np.ndarray, parameters: Parameters) -> list[Condition]:
        """Distances above and below balance each other, as the level weights them."""
        mean = parameters["mean"]
        weight = self._weight(y, mean)
        pull = weight * (y - mean)
        sides = 2 * self.level, 2 * (1 - self.level)
        return [Condition("expectile", mean, pull, weight, pull**2, sides=sides)]

    def crps(self, y: np.ndarray, parameters: Parameters) -> np.ndarray:
        return np.asarray(self.distribution(y))

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        mean = parameters["mean"]
        return {"mean": self._weight(y, mean) * (y - mean)}

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        """The weight: a step is that of asymmetric least squares."""
        return {"mean": self._weight(y, parameters["mean"])}

    def working(self, y: np.ndarray, etas: Parameters) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        eta = etas["mean"]
        mean, slope = self.inverse_link(eta, np), self._held(self.slope(eta, np))
        return {"mean": (slope**2 * self._weight(y, mean), eta + (y - mean) / slope)}

    def estimate_dispersion(self, squares: float, degrees: float) -> float:
        return self._repeated * super().estimate_dispersion(squares, degrees)

    def average(self, y: np.ndarray) -> float:
        return self._expectile(y)

    def start(
        self, y: np.ndarray, offset: np.ndarray | float = 0.0, weight: np.ndarray | None = None
    ) -> float:
        """That of a response moved so that its mean is the expectile."""
        mean = float(np.average(y, weights=weight))
        return super().start(y - mean + self._expectile(y, weight), offset, weight)

    def start_values(self, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
        return {"mean": self._expectile(y, weight)}

    def rough_mean(self, y: np.ndarray, average: float) -> np.ndarray:
        return y if self.is_linear else np.full(np.shape(y), average)

    def _expectile(self, y: np.ndarray, weight: np.ndarray | None = None) -> float:
        """Of all responses."""
        found, _ = moments(y, weight)
        counted = np.ones(len(y)) if weight is None else weight
        for _ in range(_STEPS):
            before = found
            found = float(np.average(y, weights=counted * self._weight(y, np.float64(found))))
            if found == before:
                break
        return found


def _repeated(level: float) -> float:
    """What a sum of weighted squares has to be multiplied by to be a dispersion, of normal responses.

    The slope of the loss has variance E w^2 r^2 and its curvature is E w; a dispersion is their ratio.
    """
    if level == 0.5:
        return 1.0

    def above(place: float) -> float:
        return float(stats.norm.pdf(place) - place * stats.norm.sf(place))

    def squares(place: float) -> float:
        return float((1 + place**2) * stats.norm.sf(place) - place * stats.norm.pdf(place))

    place = brentq(lambda e: level * above(e) - (1 - level) * above(-e), -40, 40)
    high, low = 2 * level, 2 * (1 - level)
    weight = high * stats.norm.sf(place) + low * stats.norm.cdf(place)
    once = high * squares(place) + low * squares(-place)
    twice = high**2 * squares(place) + low**2 * squares(-place)
    return float(twice / once / weight)
