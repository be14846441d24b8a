"""What families of responses above 0 have in common."""

from __future__ import annotations

from math import inf

import numpy as np

from ahofm_keras.families.base import Family


class AboveZero(Family):
    """A response above 0."""

    support_text = "above 0"
    bounds = (0, inf)
    least_slope = 1e-150
    result_label = "Expected"

    def support(self, y: np.ndarray) -> np.ndarray:
        return super().support(y) & (y > 0)


def in_float(values: np.ndarray) -> np.ndarray:
    """Within what a slope can be multiplied by."""
    return np.clip(values, 1e-290, 1e290)
