"""What families of classes have in common: labels outside, their places 0, 1, ... inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ahofm_keras.errors import DataError, warn
from ahofm_keras.families.base import Array, Family, Namespace, Parameters
from ahofm_keras.families.constant import best_constant, constant_mean
from ahofm_keras.families.distributions import DiscreteDistribution
from ahofm_keras.families.labels import (
    Label,
    check_labels,
    encode_labels,
    listed,
)

# How far around its start the constant of a model without terms is looked for.
_REACH = 1.0
# A class that no row has counts as half a row in the start, whose logarithm is a number then.
_LEAST_COUNT = 0.5
# A cumulative probability reaches another one up to rounding.
_ROUNDING = 1e-13


class ClassProbabilities(DiscreteDistribution):
    """A distribution over the places of classes.

    Args:
        probabilities: of each class `(..., K)`.
    """

    def __init__(self, probabilities: np.ndarray) -> None:
        self.probabilities = np.asarray(probabilities)
        self.shape = self.probabilities.shape[:-1]
        self.places = np.arange(self.probabilities.shape[-1])
        self.below = np.minimum(np.cumsum(self.probabilities, axis=-1), 1.0)
        self.below[..., -1] = 1.0

    def mean(self) -> np.ndarray:
        return np.asarray(self.probabilities @ self.places)

    def var(self) -> np.ndarray:
        return np.asarray(self.probabilities @ self.places**2 - self.mean() ** 2)

    def pmf(self, y: Any) -> np.ndarray:
        return np.asarray(
            np.sum(self.probabilities * (np.asarray(y)[..., None] == self.places), axis=-1)
        )

    def logpmf(self, y: Any) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self.pmf(y))

    def cdf(self, y: Any) -> np.ndarray:
        reached = np.asarray(y)[..., None] >= self.places
        return np.minimum(np.sum(self.probabilities * reached, axis=-1), 1.0)

    def ppf(self, q: Any) -> np.ndarray:
        q = np.asarray(q, float)
        found = np.sum(self.below < q[..., None] * (1 - _ROUNDING), axis=-1)
        return np.where((q >= 0) & (q <= 1), np.where(q == 0, -1.0, found), np.nan)

    def isf(self, q: Any) -> np.ndarray:
        return self.ppf(1 - np.asarray(q, float))


class Classes(Family):
    """A response that is one of some classes.

    Likelihoods have the place of a response among the classes, 0, 1, ..., K - 1. Which classes there are
    is learned from the training data, or given; only then the family has parameters.

    Args:
        classes: labels in order: texts, numbers or booleans.
    """

    labelled = True
    discrete = True
    links = {}  # noqa: RUF012
    support_text = "labels of classes"
    predicts = "the probability of each class"
    result_label = "Probability of each class of"

    def __init__(self, classes: Sequence[Label] | None = None) -> None:
        self.classes = () if classes is None else check_labels(classes)  # type: ignore[misc]
        self.links = dict.fromkeys(self._names(), ("identity",)) if self.classes else {}  # type: ignore[misc]
        self.bounds = (0, max(len(self.classes) - 1, 0))  # type: ignore[misc]
        super().__init__()

    def _names(self) -> list[str]:
        """Of the parameters, once the classes are known."""
        raise NotImplementedError

    def in_order(self, parameters: Parameters) -> list[Array]:
        """Parameters, which may come in any order, in that of the classes."""
        return [parameters[name] for name in self.links]

    # Labels

    def options(self) -> dict[str, Any]:
        return {"classes": list(self.classes)} if self.classes else {}

    @classmethod
    def from_json(cls, config: Any) -> Self:
        return cls(**{key: value for key, value in config.items() if key not in ("name", "links")})

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={value!r}" for key, value in self.options().items())
        return f"{type(self).__name__}({shown})"

    def learn(self, values: Any, label: str) -> Family:
        if self.classes:
            self.encode(values, label)
            return self
        found = self.find_classes(values, label)
        return type(self)(**{**self.options(), "classes": found})

    def find_classes(self, values: Any, label: str) -> tuple[Label, ...]:
        """The classes of a training response, in order."""
        raise NotImplementedError

    def encode(self, values: Any, label: str) -> np.ndarray:
        self.check_known(label)
        return encode_labels(values, self.classes, label)

    def check_known(self, label: str) -> None:
        if not self.classes:
            raise DataError(
                f"The {self.name} family learns its classes from the response, and the data has no "
                f"`{label}`. Make the model from data with the response, or give the classes: "
                f'`family=ak.families.{type(self).__name__}(classes=["a", "b", "c"])`.'
            )

    def check_training(self, y: np.ndarray, label: str) -> None:
        """One class tells nothing; of a class with a row or none there is little to say."""
        counts = np.bincount(np.asarray(y, int), minlength=len(self.classes))
        if np.count_nonzero(counts) == 1:
            only = self.classes[int(np.argmax(counts))]
            raise DataError(
                f"The response `{label}` has one class only, {only!r}, in all {len(y):,} training rows: "
                "nothing to learn."
            )
        for count, told in ((0, "no training row"), (1, "one training row")):
            few = [own for own, rows in zip(self.classes, counts, strict=True) if rows == count]
            if few:
                which = "that class" if len(few) == 1 else "each of these classes"
                warn(
                    f"The response `{label}` has {told} of {which}: {listed(few)}. Its effects are not "
                    "known from that; join it with another class, or give more rows."
                )

    def support(self, y: np.ndarray) -> np.ndarray:
        return super().support(y) & (y == np.floor(y))

    # Distribution

    def distribution_of(self, parameters: Parameters) -> Any:
        return ClassProbabilities(self.probabilities(parameters))

    def distribution(self, mean: np.ndarray, dispersion: Any = 1.0) -> Any:
        return self.distribution_of(self.named(mean))

    def mean_of(self, parameters: Parameters, xp: Namespace = np) -> Array:
        """The probability of each class `(..., K)`: a class is no number to have a mean of."""
        return self.probabilities(parameters, xp)

    def unit_deviance(self, y: Array, mean: Array, xp: Namespace = np) -> Array:
        """Minus twice the log-probability, which is 0 at best."""
        return -2 * self.log_density(y, self.named(mean), xp)

    # Of two classes there is one parameter: its start does not depend on the row.

    def start(
        self, y: np.ndarray, offset: np.ndarray | float = 0.0, weight: np.ndarray | None = None
    ) -> float:
        centre = self.average(y) - float(np.mean(offset))
        return best_constant(self, y, offset, weight, centre, _REACH) if np.ndim(offset) else centre

    def average(self, y: np.ndarray) -> float:
        return next(iter(self.start_values(y).values()))

    def rough_mean(self, y: np.ndarray, average: float) -> np.ndarray:
        return np.full(len(y), average)

    def residual(self, y: np.ndarray, mean: np.ndarray) -> np.ndarray:
        return next(iter(self.score(y, self.named(mean)).values()))

    def null_mean(
        self,
        y: np.ndarray,
        offset: np.ndarray | float = 0.0,
        weight: np.ndarray | None = None,
        intercept: bool = True,
    ) -> np.ndarray:
        start = self.start(y, offset)
        constant = best_constant(self, y, offset, weight, start, _REACH) if intercept else 0.0
        return constant_mean(self, y, offset, constant)

    def shares(self, y: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
        """Of the rows of each class `(K,)`, above 0."""
        counts = np.bincount(np.asarray(y, int), weights=weight, minlength=len(self.classes))
        held = np.maximum(counts, _LEAST_COUNT)
        return np.asarray(held / held.sum())
