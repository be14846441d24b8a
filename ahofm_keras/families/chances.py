"""Between which cumulative probabilities of its predicted distribution a response lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Chances:
    """What was observed of each response, as an interval of its distribution function.

    Both ends are the same of a response on the line. They differ where the distribution jumps, and where
    no more was observed than an interval. Upper tails are given too, whose digits 1 - F would lose.

    Args:
        below: lower and upper end of F `(n,)`.
        above: 1 - F at the lower and at the upper end `(n,)`.
    """

    below: tuple[np.ndarray, np.ndarray]
    above: tuple[np.ndarray, np.ndarray]

    @property
    def is_exact(self) -> bool:
        """Whether all ends are the same, so that nothing is left to draw."""
        return self.below[0] is self.below[1]

    def drawn(self, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """F and 1 - F so far between the ends: even where the prediction is right, whatever was seen."""
        (low, high), (first, last) = self.below, self.above
        return low + share * (high - low), first + share * (last - first)


def chances_of(distribution: Any, y: np.ndarray, discrete: bool, bounds: tuple[float, float]) -> Chances:
    """Those of responses that were observed; F jumps at a whole number, or at an end of the support."""
    below, above = distribution.cdf(y), distribution.sf(y)
    jumps = np.full(len(y), True) if discrete else np.isin(y, bounds)
    if not jumps.any():
        return Chances((below, below), (above, above))
    before = y - 1 if discrete else np.where(jumps, np.nextafter(y, -np.inf), y)
    low, high = distribution.cdf(before), distribution.sf(before)
    return Chances((np.where(jumps, low, below), below), (np.where(jumps, high, above), above))
