"""Which family a response would fit that another one cannot have."""

from __future__ import annotations

import numpy as np

# Of the rows, and times as many as have the next value: a value that stands apart.
_REPEATED = 0.1
_BESIDE = 3


def suggest_family(y: np.ndarray, binary: bool = False) -> str:
    """A sentence on the family whose support holds all values, after a space; or nothing.

    Args:
        y: response `(n,)`.
        binary: whether 0 and 1 were expected.

    Example:
        >>> suggest_family(np.array([0.0, 2.5, 1.0]))
        ' `family="tweedie"` takes zeros beside amounts above 0.'
    """
    if y.ndim > 1 or not len(y) or not np.isfinite(y).all():
        return ""
    values = np.unique(y)
    low, high, whole = values[0], values[-1], bool(np.all(values == np.floor(values)))
    if binary and len(values) == 2:
        return f" Recode two classes: 1 where it is {high:g}, 0 where it is {low:g}."
    if (low, high) == (0, 1) and whole:
        return ' `family="bernoulli"` is for 0 and 1.'
    if low >= 0 and high <= 1 and not whole:
        return _of_shares(y, low, high)
    return _of_numbers(low, whole)


def repeated_value(y: np.ndarray) -> tuple[float, int] | None:
    """A value that many rows share while others differ, and how many do; None where there is none.

    Example:
        >>> repeated_value(np.array([0.0, 0.0, 1.3, 0.0, 2.2]))
        (0.0, 3)
    """
    values, counts = np.unique(y, return_counts=True)
    others, most = np.sort(counts)[:-1], int(counts.max())
    if most < _REPEATED * len(y) or (len(others) and most < _BESIDE * others[-1]):
        return None
    return float(values[np.argmax(counts)]), most


def _of_shares(y: np.ndarray, low: float, high: float) -> str:
    if low > 0 and high < 1:
        return ' `family="beta"` is for shares between 0 and 1.'
    ends = [f"{int(np.sum(y == end)):,} are {end}" for end in (0, 1) if (y == end).any()]
    return (
        f" {' and '.join(ends)} exactly. Shares of a number of trials are of "
        '`family="binomial"`, with the trials as `sample_weight`; others can be moved inside for '
        f'`family="beta"`, e.g. (y * {len(y) - 1} + 0.5) / {len(y)}.'
    )


def _of_numbers(low: float, whole: bool) -> str:
    if low < 0:
        return ' `family="gaussian"` takes negative values.'
    if whole:
        return ' `family="poisson"` and `family="negative_binomial"` are for counts.'
    if low > 0:
        return ' `family="gamma"` is for amounts above 0.'
    return ' `family="tweedie"` takes zeros beside amounts above 0.'
