"""What a loss makes of its predictions: numbers that have the mean 0 on any rows if these are right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Weighted means on the way to a balance, which they reach exactly after a few.
_STEPS = 100


@dataclass(frozen=True, eq=False)
class Condition:
    """One prediction of a loss, and how each row pulls at it.

    On any rows that are chosen by their features the sum of the pulls over that of the weights is 0 up
    to chance; of a quantile it is the share of responses below it less its level.

    Args:
        name: of the prediction, e.g. `q10`.
        fitted: `(n,)`.
        pull: of each row `(n,)`.
        weight: of each row `(n,)`.
        variance: of each pull `(n,)`.
        level: of a quantile, whose condition is one on shares; else None, and it is one in units of
            the response.
        sides: weights of rows above and below, of one that is no share.
    """

    name: str
    fitted: np.ndarray
    pull: np.ndarray
    weight: np.ndarray
    variance: np.ndarray
    level: float | None = None
    sides: tuple[float, float] = (1.0, 1.0)

    def shift(self, counts: np.ndarray, groups: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
        """By how much it is off in each group of rows, and the standard error of that.

        Args:
            counts: how often each row counts `(n,)`.
            groups: place of each row's group `(n,)`.
            size: number of groups.
        """
        total = np.bincount(groups, counts * self.weight, size)
        error = np.sqrt(np.bincount(groups, counts**2 * self.variance, size)) / total
        if self.level is not None:
            return np.bincount(groups, counts * self.pull, size) / total, error
        return self._balance(counts, groups, size), error

    def _balance(self, counts: np.ndarray, groups: np.ndarray, size: int) -> np.ndarray:
        """The shift after which pulls balance: weights are those of two sides, which rows change."""
        residual = self.pull / self.weight
        above, below = self.sides
        found = np.zeros(size)
        for _ in range(_STEPS):
            weight = counts * np.where(residual > found[groups], above, below)
            known = found
            found = np.bincount(groups, weight * residual, size) / np.bincount(groups, weight, size)
            if np.allclose(found, known, rtol=1e-12, atol=0):
                break
        return found
