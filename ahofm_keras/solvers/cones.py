"""Coefficients that are held in a cone: the shapes of smooths.

With inequalities C w >= 0 the posterior of a block is approximated by a gaussian whose mean is in the
cone. Of all such the evidence bound is largest where the covariance is what it is without the
inequalities, and the mean is the mode of the posterior in the cone: a quadratic program. So smoothing,
dispersion and bound are what they are elsewhere, at another mean.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from ahofm_keras.solvers.precision import Precision

# Steps of the active set per inequality. It takes about one.
_STEPS = 30
# Rounds in which inequalities are added that were broken, before all are.
_ROUNDS = 2
# Of the terms of a form, below which it is 0 up to rounding.
_ROUNDING = 1e-11


def nearest_in_cone(
    mean: np.ndarray, rhs: np.ndarray, precision: Precision, inequalities: np.ndarray
) -> np.ndarray:
    """The w with C w >= 0 that is nearest to a mean A^-1 b by (w - mean)' A (w - mean).

    Where the data has the shape few of hundreds of inequalities are broken: those are solved for, then
    those that the solution breaks, and if that does not end, all of them.

    Args:
        mean: A^-1 b `(m,)`.
        rhs: b `(m,)`.
        precision: A.
        inequalities: C `(c, m)`.
    """
    values, chosen = inequalities @ mean, np.zeros(len(inequalities), bool)
    broken = values < 0
    if not broken.any() or not np.isfinite(values).all():
        return mean
    point, sizes = precision.half_solve(rhs), np.abs(inequalities)
    rounds = 0
    while broken.any():
        chosen |= broken if rounds < _ROUNDS else True
        rounds += 1
        mean = _nearest(point, precision, inequalities[chosen])
        broken = (inequalities @ mean < -_ROUNDING * (sizes @ np.abs(mean))) & ~chosen
    return mean


def _nearest(point: np.ndarray, precision: Precision, inequalities: np.ndarray) -> np.ndarray:
    """The same with all inequalities at once, of the point R^-T b with A = R'R.

    It is R^-1 (R^-T b + E m), E = R^-T C', where m >= 0 makes this shortest: the dual, of as many
    unknowns as there are inequalities, which an active set solves exactly.
    """
    columns = precision.half_solve(inequalities.T)
    columns = columns / np.linalg.norm(columns, axis=0)
    orthonormal, triangle = np.linalg.qr(columns)
    multipliers, _ = nnls(triangle, -(orthonormal.T @ point), maxiter=_STEPS * len(inequalities))
    return precision.second_half_solve(point + columns @ multipliers)
