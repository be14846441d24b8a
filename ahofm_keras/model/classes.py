"""What a model of classes predicts: probabilities with bands, labels, their distribution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from ahofm_keras.errors import DataError
from ahofm_keras.families import Family
from ahofm_keras.model.distributional import ResponseDistribution, check_quantiles

# Draws of the predictors that bands rest on, and how many probabilities are drawn together.
_DRAWS = 1000
_NUMBERS = 4_000_000

Spread = tuple[np.ndarray, np.ndarray]


class ClassDistribution(ResponseDistribution):
    """What a model says of the class of each row, at the posterior means of its predictors.

    Responses are labels, as in the training data.

    Example:
        >>> import numpy as np
        >>> from ahofm_keras.families import Categorical
        >>> family = Categorical(classes=["cat", "dog"])
        >>> own = ClassDistribution(family, {"dog": np.array([0.0, 2.0])})
        >>> own.probabilities().round(2).to_numpy().tolist()
        [[0.5, 0.5], [0.12, 0.88]]
        >>> own.mode()
        array(['cat', 'dog'], dtype=object)
    """

    def probabilities(self) -> pd.DataFrame:
        """Of each class, a column each."""
        return probability_frame(self.family, self.scipy.probabilities)

    def mode(self) -> np.ndarray:
        """The likeliest class of each row."""
        return most_likely(self.family, self.scipy.probabilities)

    def log_prob(self, y: Any) -> np.ndarray:
        """Log-probability of each label."""
        return np.asarray(self.scipy.logpmf(self._codes(y)))

    def cdf(self, y: Any) -> np.ndarray:
        """P(Y <= y) of each row, of classes in an order."""
        check_ordered(self.family, "cdf")
        return np.asarray(self.scipy.cdf(self._codes(y)))

    def quantile(self, q: Any) -> np.ndarray:
        check_ordered(self.family, "quantile")
        return self.family.decode(super().quantile(q))

    def sample(self, size: int = 1, seed: Any = None) -> np.ndarray:
        return self.family.decode(super().sample(size, seed))

    def crps(self, y: Any) -> np.ndarray:
        """Ranked probability score of each label, of classes in an order; less is better."""
        check_ordered(self.family, "crps")
        return self.family.crps(self._codes(y), self.parameters)

    def mean(self) -> np.ndarray:
        raise DataError("Classes have no mean: `probabilities()` has a column of each class.")

    def var(self) -> np.ndarray:
        raise DataError("Classes have no variance: `probabilities()` has a column of each class.")

    def _codes(self, y: Any) -> np.ndarray:
        labels = pd.Series(y if np.ndim(y) else [y] * len(self)).reset_index(drop=True)
        return self.family.encode(labels, "y")


def check_ordered(family: Family, what: str) -> None:
    """Raise a `DataError` where classes have no order."""
    if not family.ordered:
        raise DataError(
            f"Classes of the {family.name} family have no order, and so no {what}. Take their "
            'probabilities, or `family="ordinal"` where they have one.'
        )


def probability_frame(family: Family, probabilities: np.ndarray) -> pd.DataFrame:
    """A column for each class, called as the class."""
    return pd.DataFrame(probabilities, columns=pd.Index(list(family.classes), dtype=object))


def most_likely(family: Family, probabilities: np.ndarray) -> np.ndarray:
    """Labels, of equal probabilities the first."""
    return family.decode(np.argmax(probabilities, axis=-1))


def check_classes(family: Family) -> None:
    """Raise a `DataError` where the response is no class."""
    if not family.classes:
        raise DataError(
            'type="class" is for responses that are classes: the families "bernoulli", "categorical" '
            f'and "ordinal". This model is {family.name}; type="response" is its mean.'
        )


def band_of_classes(family: Family, links: Mapping[str, Spread], level: float) -> pd.DataFrame:
    """The probability of each class with its band: `<class>`, `<class>_lower`, `<class>_upper`."""
    means = family.probabilities(family.inverse_links({name: own for name, (own, _) in links.items()}))
    tails = (1 - level) / 2, (1 + level) / 2
    parts = [np.quantile(drawn, tails, axis=1) for drawn in _draws(family, links)]
    lower, upper = np.concatenate([np.zeros((2, 0, means.shape[1])), *parts], axis=1)
    columns = {}
    for place, own in enumerate(family.classes):
        columns[own] = means[:, place]
        columns[f"{own}_lower"], columns[f"{own}_upper"] = lower[:, place], upper[:, place]
    return pd.DataFrame(columns)


def class_quantiles(family: Family, links: Mapping[str, Spread], q: Any) -> np.ndarray:
    """The class at which the cumulative probability, averaged over the posterior, reaches q."""
    check_ordered(family, "quantile")
    parts = [drawn.mean(axis=1) for drawn in _draws(family, links)]
    below = np.cumsum(np.concatenate([np.zeros((0, len(family.classes))), *parts]), axis=-1)
    places = [np.sum(below[:, :-1] < level, axis=1) for level in check_quantiles(q)]
    found = family.decode(np.stack(places, axis=-1))
    return found[:, 0] if np.ndim(q) == 0 else found


def _draws(family: Family, links: Mapping[str, Spread]) -> Iterator[np.ndarray]:
    """Probabilities `(rows, draws, K)` over draws of all predictors, the same for every row."""
    scores = special.ndtri((np.arange(_DRAWS) + 0.5) / _DRAWS)
    random = np.random.default_rng(0)
    draws = {name: random.permutation(scores) for name in links}
    rows = len(next(iter(links.values()))[0])
    step = max(_NUMBERS // _DRAWS // len(family.classes), 1)
    for part in (slice(start, start + step) for start in range(0, rows, step)):
        etas = {name: m[part, None] + s[part, None] * draws[name] for name, (m, s) in links.items()}
        yield family.probabilities(family.inverse_links(etas))
