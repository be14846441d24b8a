"""Responses that are one of several classes in an order, such as ratings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ahofm_keras.errors import DataError, did_you_mean
from ahofm_keras.families.base import Array, Namespace, Parameters
from ahofm_keras.families.classes import Classes
from ahofm_keras.families.cumulative import CUMULATIVE
from ahofm_keras.families.labels import Label, find_labels, has_order, listed
from ahofm_keras.families.links import LINKS, Link
from ahofm_keras.families.registry import register_family

# Of a width that a fit starts from.
_LEAST_WIDTH = 1e-3


@register_family
class Ordinal(Classes):
    """One of K ordered classes, by cumulative probabilities.

    P(y <= k) is F(threshold_k - loc): a larger `loc` makes higher classes likelier. The first threshold
    is 0, because `loc` has an intercept; each further one is higher by the width of the class between
    them. So the parameters are `loc` and, of each class but the two at the ends, its width.

    Args:
        link: F is the inverse of `"logit"` (proportional odds), `"probit"` (a normal variable that is
            cut into classes) or `"cloglog"` (proportional hazards).
        classes: labels in order; by default numbers by value, a pandas ordered Categorical by its order.
    """

    name = "ordinal"
    support_text = "labels of ordered classes"
    ordered = True
    aliases: ClassVar[Mapping[str, str]] = {"mu": "loc", "mean": "loc", "location": "loc", "eta": "loc"}

    def __init__(self, link: str = "logit", classes: Sequence[Label] | None = None) -> None:
        if link not in CUMULATIVE:
            known = ", ".join(f"`{own}`" for own in CUMULATIVE)
            raise DataError(
                f"The ordinal family cannot have the link {link!r}."
                f"{did_you_mean(str(link), CUMULATIVE)} It can have: {known}."
            )
        self.cumulative = CUMULATIVE[link]
        super().__init__(classes)

    def _names(self) -> list[str]:
        return ["loc", *(f"width_{own}" for own in self.classes[1:-1])]

    def _find_link(self, parameter: str, name: Any) -> Link:
        return LINKS["identity" if parameter == "loc" else "log"]

    @property
    def link(self) -> str:
        """Of the cumulative probabilities."""
        return self.cumulative.name

    def options(self) -> dict[str, Any]:
        return {"link": self.link, **super().options()}

    def meaning(self, parameter: str) -> str:
        if parameter == "loc":
            return "where a row lies on a scale from the first class to the last"
        return f"how wide the class {parameter.removeprefix('width_')} is on that scale"

    def find_classes(self, values: Any, label: str) -> tuple[Label, ...]:
        found = find_labels(values, label, by_value=True)
        if not has_order(values):
            raise DataError(
                f"The classes of the response `{label}` are texts without an order: {listed(found)}. "
                f"Give it, lowest first: `family=ak.families.Ordinal(classes={list(found)!r})`, or make "
                "the column an ordered pandas Categorical."
            )
        return found

    def _ends(self, y: Array, parameters: Parameters, xp: Namespace) -> tuple[Array, Array, Array]:
        """Thresholds below and above each response, less `loc`, and the width between them.

        At both ends numbers stand in the place of what is not there.
        """
        zero = 0.0 * parameters["loc"]
        lower, upper, width = zero, zero, zero + 1.0
        for place, own in enumerate(self.in_order(parameters)[1:], start=1):
            lower = lower + xp.where(y > place, own, 0.0)
            upper = upper + xp.where(y >= place, own, 0.0)
            width = xp.where(y == place, own, width)
        return lower - parameters["loc"], upper - parameters["loc"], width

    def log_density(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        lower, upper, width = self._ends(y, parameters, xp)
        return self.cumulative.log_chance(lower, upper, width, y <= 0, y >= self.bounds[1], xp)

    def probabilities(self, parameters: Parameters, xp: Namespace = np) -> Array:
        like = 0.0 * sum(parameters.values())
        logs = [self.log_density(like + place, parameters, xp) for place in range(len(self.classes))]
        return xp.stack([xp.exp(own) for own in logs], axis=-1)

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        lower, upper, width = self._ends(y, parameters, np)
        by_lower, by_upper = self.cumulative.slopes(lower, upper, width, y <= 0, y >= self.bounds[1])
        found = {"loc": -by_lower - by_upper}
        for place, name in enumerate(list(self.links)[1:], start=1):
            found[name] = (y > place) * by_lower + (y >= place) * by_upper
        return found

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        """Squares of the scores of all classes, by their probabilities."""
        chances = self.probabilities(parameters)
        total = dict.fromkeys(parameters, np.zeros(chances.shape[:-1]))
        for place in range(len(self.classes)):
            chance = chances[..., place]
            scores = self.score(np.full_like(chance, place), parameters)
            total = {name: total[name] + _product(chance, scores[name] ** 2) for name in total}
        return total

    def start_values(self, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
        below = np.cumsum(self.shares(y, weight))[:-1]
        thresholds = np.asarray(LINKS[self.link].function(below, np))
        widths = np.maximum(np.diff(thresholds), _LEAST_WIDTH)
        return dict(zip(self.links, [-float(thresholds[0]), *widths.tolist()], strict=True))

    def crps(self, y: np.ndarray, parameters: Parameters) -> np.ndarray:
        """The ranked probability score: squared gaps of cumulative probabilities, added up."""
        below = np.cumsum(self.probabilities(parameters), axis=-1)
        reached = np.asarray(y)[..., None] <= np.arange(len(self.classes))
        return np.asarray(np.sum((below - reached)[..., :-1] ** 2, axis=-1))


def _product(chance: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Nothing where there is no chance, however large the square."""
    return np.where(chance > 0, chance, 0.0) * np.where(chance > 0, square, 0.0)
