"""Responses that are one of several classes without an order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ahofm_keras.errors import DataError
from ahofm_keras.families.base import Array, Namespace, Parameters
from ahofm_keras.families.classes import Classes
from ahofm_keras.families.labels import Label, find_labels
from ahofm_keras.families.registry import register_family


@register_family
class Categorical(Classes):
    """One of K classes, by the log-odds of each class but the first against the first.

    P(k) is the exponential of eta_k over the sum of all, with eta of the first class 0 (multinomial
    logit). The parameters are the classes, by name, but for the first.

    Args:
        classes: labels, that which others are compared with first; by default those that occur, sorted,
            of a pandas Categorical in the order of its categories.
    """

    name = "categorical"
    shared = "logit"
    aliases: ClassVar[Mapping[str, str]] = {}

    def _names(self) -> list[str]:
        return [str(own) or repr(own) for own in self.classes[1:]]

    def own_parameter(self, name: Any) -> str | None:
        if self.classes and str(name) == str(self.classes[0]):
            raise DataError(
                f"{name!r} is the class that others are compared with, and has no predictor of its own. "
                f"{', '.join(f'`{own}`' for own in self.parameters)} have one."
            )
        return super().own_parameter(str(name))

    def meaning(self, parameter: str) -> str:
        return f"how likely {parameter} is beside {self.classes[0]}, in log-odds: +0.7 doubles the odds"

    def quantity(self, parameter: str, response: Any) -> str:
        return f"log-odds of {parameter} against {self.classes[0]}"

    def link_words(self, parameter: str) -> str:
        return f"log-odds against {self.classes[0]}"

    def find_classes(self, values: Any, label: str) -> tuple[Label, ...]:
        return find_labels(values, label, by_value=False)

    def log_density(self, y: Array, parameters: Parameters, xp: Namespace = np) -> Array:
        etas = self.in_order(parameters)
        chosen = sum(xp.where(y == place, eta, 0.0) for place, eta in enumerate(etas, start=1))
        return chosen - _log_sum(etas, xp)

    def probabilities(self, parameters: Parameters, xp: Namespace = np) -> Array:
        etas = self.in_order(parameters)
        total = _log_sum(etas, xp)
        return xp.stack([xp.exp(own - total) for own in (0.0 * etas[0], *etas)], axis=-1)

    def score(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        """1(y = k) - p_k."""
        total = _log_sum(self.in_order(parameters), np)
        return {
            name: (y == place) - np.exp(parameters[name] - total)
            for place, name in enumerate(self.links, start=1)
        }

    def information(self, y: np.ndarray, parameters: Parameters) -> dict[str, np.ndarray]:
        """p_k (1 - p_k)."""
        total = _log_sum(self.in_order(parameters), np)
        chances = {name: np.exp(parameters[name] - total) for name in self.links}
        return {name: chance * (1 - chance) for name, chance in chances.items()}

    def start_values(self, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
        logs = np.log(self.shares(y, weight))
        return dict(zip(self.links, (logs[1:] - logs[0]).tolist(), strict=True))


def _log_sum(etas: list[Array], xp: Namespace) -> Array:
    """Log of 1 and the exponentials, which does not overflow."""
    top = 0.0 * etas[0]
    for eta in etas:
        top = xp.maximum(top, eta)
    return top + xp.log(sum(xp.exp(eta - top) for eta in etas) + xp.exp(-top))
