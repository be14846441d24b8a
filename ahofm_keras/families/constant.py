"""The model without terms: the best constant of a family's one predictor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize_scalar

if TYPE_CHECKING:
    from ahofm_keras.families.base import Family

Array = np.ndarray


def best_constant(
    family: Family,
    y: Array,
    offset: Array | float,
    weight: Array | None,
    start: float,
    reach: float,
) -> float:
    """The intercept of least deviance beside an offset.

    Args:
        family: of one parameter.
        y: response `(n, ...)`.
        offset: `(n,)` or a number.
        weight: of each row, or None.
        start: in units of the predictor.
        reach: how far around it is looked first.
    """

    def deviance(constant: float) -> float:
        mean = constant_mean(family, y, offset, constant)
        with np.errstate(all="ignore"):
            found = float(np.average(family.unit_deviance(y, mean, np), weights=weight))
        return found if np.isfinite(found) else np.inf

    return float(minimize_scalar(deviance, (start - reach, start + reach)).x)


def constant_mean(family: Family, y: Array, offset: Array | float, constant: float) -> Array:
    """The parameter of each row where the predictor is a constant and the offset."""
    return np.broadcast_to(family.inverse_link(constant + np.asarray(offset), np), len(y))
