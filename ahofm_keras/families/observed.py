"""The response as a family takes it: encoded, checked against its support, weighted."""

from __future__ import annotations

from typing import Any

import numpy as np

from ahofm_keras.errors import DataError
from ahofm_keras.families.likelihood import Likelihood
from ahofm_keras.families.signature import Array
from ahofm_keras.families.suggestions import suggest_family


class Observed(Likelihood):
    """What a family makes of a response before it is fitted."""

    def encode(self, values: Any, label: str) -> np.ndarray:
        """The response as likelihoods take it, checked.

        Args:
            values: numbers `(n,)`, of several columns `(n, k)`; of a family that is `labelled` a
                `pandas.Series` without missing values.
            label: the formula's response.

        Raises:
            DataError: naming the first row that the family cannot have.
        """
        self.check_response(values, label)
        return np.asarray(values)

    def as_weighted(
        self, y: Array, weight: Array | None, tell: bool = False
    ) -> tuple[Array, Array | None]:
        """The same response with as few columns as say it, and weights that say the rest.

        Args:
            y: as `encode` gives it.
            weight: of each row `(n,)`, or None.
            tell: whether to warn of what is odd.
        """
        return y, weight

    def check_training(self, y: np.ndarray, label: str) -> None:
        """Raise a `DataError`, or warn, where training rows are too much the same to learn from."""
        if np.ptp(y) == 0:
            raise DataError(f"The response `{label}` is constant ({y[0]:g}): nothing to learn.")

    def support(self, y: np.ndarray) -> np.ndarray:
        """Which values the response may take."""
        return np.isfinite(y) & (y >= self.bounds[0]) & (y <= self.bounds[1])

    def check_response(self, y: np.ndarray, label: str) -> None:
        """Raise a `DataError` where the response leaves the family's support."""
        outside = ~self.support(y)
        if outside.any():
            row = int(np.argmax(outside))
            held = ", ".join(f"{value:g}" for value in np.atleast_1d(y[row]))
            raise DataError(
                f"The response `{label}` of the {self.name} family must be {self.support_text}, but "
                f"{int(outside.sum()):,} of {len(y):,} values are not; first at row {row}: {held}."
                f"{suggest_family(y, self.binary)}"
            )

    def advice(self, y: np.ndarray) -> str | None:
        """What to consider where the response can be had, but looks like that of another family."""
        return None

    def remedy(self, trouble: str) -> str:
        """A sentence on what allows for something that a check found, after a space; or nothing."""
        found = self.remedies.get(trouble, "")
        if not found and trouble == "uneven spread" and len(self.parameters) > 1:
            first, second, *_ = self.parameters
            found = f"Give `{second}` the terms that `{first}` has."
        return found and f" {found}"

    def average(self, y: np.ndarray) -> float:
        """Of the response."""
        return float(np.mean(y))

    def residual(self, y: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """How far each response is from its mean."""
        return y - mean
