"""Quantiles of the response by a check loss; several levels never cross."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from scipy import stats

from ahofm_keras.errors import DataError
from ahofm_keras.families.base import Array, Family, Links, Namespace, Parameters
from ahofm_keras.families.chances import Chances
from ahofm_keras.families.conditions import Condition
from ahofm_keras.families.links import SCALES
from ahofm_keras.families.location_scale import least_scale, quantiles, standardise
from ahofm_keras.families.registry import register_family
from ahofm_keras.families.special import log1p_exp

SCALE = "scale"
# Over how many scales the corner of a check loss is rounded, and its curvature is averaged.
_ROUNDED = 0.03
_AVERAGED = 0.25
# Of normal responses that stand for all.
_CHANCES = (np.arange(1000) + 0.5) / 1000


@register_family
class Quantile(Family):
    """Quantiles of the response at some levels, as the minimum of their check losses.

    The first parameter is the quantile whose level is nearest to 1/2, e.g. `q50`; the others are the
    gaps to its neighbours, e.g. `q10_to_q50`, which are above 0, so that quantiles never cross; the last
    is a scale, by which the losses are divided. In units of z = (y - quantile) / scale the loss of level
    t is t z + 0.03 log(1 + exp(-z / 0.03)), a check loss max(t z, (t - 1) z) without its corner.

    It is a loss, not a density: nothing is assumed of the distribution of the response. The weights of
    the levels are such that of normal responses the scale is the standard deviation, and the posterior
    variance of a shift of all quantiles is the sampling variance of its estimate.

    Args:
        link: of the first quantile, or by parameter.
        levels: probabilities between 0 and 1.
    """

    name = "quantile"
    links: ClassVar[Links] = {"q50": ("identity", "log", "softplus"), SCALE: SCALES}
    support_text = "finite"
    least_slope = 1e-150
    is_loss = True
    shared = "quantiles"
    unshared = (SCALE,)
    variance_text = "not assumed"
    predicts = "the quantile"
    result_label = "Quantile of"

    def __init__(
        self, link: str | Mapping[str, str] | None = None, levels: Sequence[float] | float = (0.5,)
    ) -> None:
        self.levels = _checked(levels)
        self.columns = tuple(f"q{100 * level:.10g}" for level in self.levels)
        self.middle = int(np.argmin(np.abs(np.array(self.levels) - 0.5)))
        known = Quantile.links
        gaps = [f"{low}_to_{high}" for low, high in zip(self.columns, self.columns[1:], strict=False)]
        self.links = {  # type: ignore[misc]
            self.columns[self.middle]: known["q50"],
            **dict.fromkeys(gaps, SCALES),
            SCALE: known[SCALE],
        }
        self.gaps = tuple(gaps)
        self.aliases = {"sigma": SCALE, "mu": self.columns[self.middle]}  # type: ignore[misc]
        # Mean check losses of standard normal responses, which are their densities at the quantiles.
        self._normal = np.asarray(stats.norm.pdf(stats.norm.ppf(self.levels)))
        self._near = _near(stats.norm.ppf(_CHANCES)[:, None] - stats.norm.ppf(self.levels)).mean(axis=0)
        self._weights = _weights(np.array(self.levels), self._normal)
        super().__init__(link)

    def options(self) -> dict[str, Any]:
        return {"levels": list(self.levels)}

    def own_parameter(self, name: str) -> str | None:
        if name in self.columns and name not in self.links:
            listed = ", ".join(f"`{own}`" for own in self.links)
            raise DataError(
                f"`{name}` is `{self.columns[self.middle]}` and the gaps between them, so that "
                f"quantiles do not cross. What has a formula is: {listed}."
            )
        return super().own_parameter(name)

    def meaning(self, parameter: str) -> str:
        if parameter == SCALE:
            return "the unit in which distances from the quantiles are weighed; it moves none of them"
        named = dict(zip(self.columns, self.levels, strict=True))
        if parameter in named:
            return f"the value that {100 * named[parameter]:.4g} % of the responses stay below"
        low, high = (f"{100 * named[own]:.4g} %" for own in parameter.split("_to_"))
        return f"how far the {high} quantile lies above the {low} quantile"

    # Quantiles ----------------------------------------------------------------------------------

    def quantiles_of(self, parameters: Parameters) -> dict[str, Array]:
        """Each quantile, by its column, from the lowest level up."""
        found = {self.middle: parameters[self.columns[self.middle]]}
        for place in range(self.middle, len(self.gaps)):
            found[place + 1] = found[place] + parameters[self.gaps[place]]
        for place in range(self.middle - 1, -1, -1):
            found[place] = found[place + 1] - parameters[self.gaps[place]]
        return {column: found[place] for place, column in enumerate(self.columns)}

    def mean_of(self, parameters: Parameters, xp: Namespace = np) -> Array:
        """The quantile whose level is nearest to 1/2."""
        own = parameters[self.columns[self.middle]]
        return own if xp is not np else np.asarray(own)

    def _places_of(self, parameter: str) -> list[int]:
        """The quantiles that a parameter moves."""
        if parameter == self.columns[self.middle]:
            return list(range(len(self.levels)))
        gap = self.gaps.index(parameter)
        return list(range(gap + 1, len(self.levels)) if gap >= self.middle else range(gap + 1))

    # Loss ---------------------------------------------------------------------------------------

    def _standardised(self, y: Array, parameters: Parameters, xp: Namespace = np) -> list[Array]:
        quantile = self.quantiles_of(parameters).values()
        return [standardise(y, own, parameters[SCALE], xp) for own in quantile]

    def log_density(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        """Minus the loss: weighted check losses and log scales."""
        total = -float(np.sum(self._weights)) * xp.log(parameters[SCALE])
        terms = zip(self.levels, self._weights / self._normal, strict=True)
        for z, (level, weight) in zip(self._standardised(y, parameters, xp), terms, strict=True):
            total = total - float(weight) * (level * z + _ROUNDED * log1p_exp(-z / _ROUNDED, xp))
        return total

    def distribution_of(self, parameters: Parameters) -> Any:
        raise DataError(
            "The quantile family is a loss, not a distribution: it has quantiles at its levels "
            f"({', '.join(f'{level:g}' for level in self.levels)}), and no density, CRPS or sample. A "
            'family such as "student_t", "shash" or "gaussian_ls" has them.'
        )

    def chances(self, y: np.ndarray, parameters: Parameters) -> Chances:
        """Between which levels each response lies: no more is predicted than their quantiles."""
        ends = np.array([0.0, *self.levels, 1.0])
        quantiles = np.stack(list(self.quantiles_of(parameters).values()))
        place = np.sum(np.asarray(y) > quantiles, axis=0)
        low, high = ends[place], ends[place + 1]
        return Chances((low, high), (1 - low, 1 - high))

    def conditions(self, y: np.ndarray, parameters: Parameters) -> list[Condition]:
        """A share of each level lies below its quantile."""
        one = np.ones(len(y))
        return [
            Condition(name, own, (y <= own) - level, one, level * (1 - level) * one, level)
            for (name, own), level in zip(
                self.quantiles_of(parameters).items(), self.levels, strict=True
            )
        ]

    def crps(self, y: np.ndarray, parameters: Parameters) -> np.ndarray:
        return np.asarray(self.distribution_of(parameters))

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        every, scale = self._standardised(y, parameters), parameters[SCALE]
        pulls = [
            weight * ((1 + np.tanh(z / _ROUNDED / 2)) / 2 - (1 - level))
            for z, level, weight in zip(every, self.levels, self._weights / self._normal, strict=True)
        ]
        found = {}
        for name in self.parameters:
            if name == SCALE:
                pull = sum(own * z for own, z in zip(pulls, every, strict=True)) - self._weights.sum()
            else:
                below = name in self.gaps and self.gaps.index(name) < self.middle
                pull = sum(pulls[place] for place in self._places_of(name)) * (-1 if below else 1)
            found[name] = np.asarray(pull / scale)
        return found

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        """Curvature of the loss: half that of normal responses, half that of the density near by."""
        curves = []
        every = zip(self._standardised(y, parameters), self._weights, self._near, strict=True)
        for z, weight, usual in every:
            curves.append(weight * (1 + _near(z) / usual) / 2)
        once = 1 / parameters[SCALE] ** 2
        return {
            name: once * (self._weights.sum() if name == SCALE else self._moved(name, curves))
            for name in self.parameters
        }

    def _moved(self, name: str, curves: list[np.ndarray]) -> np.ndarray:
        return np.asarray(sum(curves[place] for place in self._places_of(name)))

    def start_values(self, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
        own = quantiles(y, self.levels, weight)
        found = {self.columns[self.middle]: float(own[self.middle])}
        found |= {name: float(gap) for name, gap in zip(self.gaps, np.diff(own), strict=True)}
        losses = np.array(
            [
                np.average(np.maximum(level * (y - at), (level - 1) * (y - at)), weights=weight)
                for level, at in zip(self.levels, own, strict=True)
            ]
        )
        scale = float(np.average(losses / self._normal, weights=self._weights))
        least = least_scale(y)
        return {
            **{name: max(value, least) if name in self.gaps else value for name, value in found.items()},
            SCALE: max(scale, least),
        }


def _near(z: np.ndarray) -> np.ndarray:
    """A logistic density, by which responses count as near to a quantile."""
    return np.asarray(1 / np.cosh(np.clip(z / _AVERAGED / 2, -300, 300)) ** 2 / (4 * _AVERAGED))


def _checked(levels: Any) -> tuple[float, ...]:
    """Levels in rising order."""
    given = np.atleast_1d(np.asarray(levels, dtype=object))
    numbers = all(isinstance(own, int | float | np.number) for own in given)
    if not len(given) or not numbers or any(not 0 < own < 1 for own in given):
        raise DataError(
            "`levels` of the quantile family must be probabilities between 0 and 1, e.g. [0.1, 0.5, "
            f"0.9]. Received: {levels!r}."
        )
    found = sorted(float(own) for own in given)
    if len(set(found)) < len(found):
        raise DataError(f"`levels` of the quantile family must differ. Received: {levels!r}.")
    return tuple(found)


def _weights(levels: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """By which the losses of levels are weighted: each by what it says, and all by what they repeat.

    Of normal responses the curvature of the loss by a shift of all quantiles is then the variance of its
    slope, as it is of a likelihood.
    """
    own = normal / (levels * (1 - levels))
    covariance = np.minimum.outer(levels, levels) - np.outer(levels, levels)
    return np.asarray(own * normal * (own @ normal) / (own @ covariance @ own))
