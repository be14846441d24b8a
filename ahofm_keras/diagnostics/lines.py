"""A line of the checks of a model as a whole, and what is too much for chance."""

from __future__ import annotations

from typing import Any

import numpy as np

# What chance gives is taken as 3 standard errors; a difference must also be worth a word.
CHANCE = 3.0
# A probability that chance is not asked to explain.
UNLIKELY = 0.01
# Bins of rows, and rows of each at least.
BINS = 10
LEAST_ROWS_A_BIN = 10

# Name, value, what is expected, whether it is that, a sentence.
Line = tuple[str, float, str, bool, str]


def line(name: str, value: float, expected: str, off: Any, text: str) -> Line:
    """One check; the sentence only where something is off."""
    return name, value, expected, not off, text if off else ""


def even_groups(values: np.ndarray, most: int = BINS) -> np.ndarray:
    """Place of each row among bins of about as many rows each, from 0 on."""
    bins = int(np.clip(len(values) // LEAST_ROWS_A_BIN, 1, most))
    edges = np.unique(np.quantile(values, np.linspace(0, 1, bins + 1)[1:-1]))
    place = np.searchsorted(edges, values, side="right")
    return np.asarray(np.unique(place, return_inverse=True)[1])
