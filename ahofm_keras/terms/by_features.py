"""Features of what a term is multiplied with: a number, one level of a category, all of them.

They have a basis, and stand in the pool, as other features do; their functions are neither centred nor
penalised.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ahofm_keras.bases import Basis, make_levels

# Codings of a category: its levels; differences between them, which add up to 0.
LEVELS, SUM = "levels", "sum"
# Codings of a number: itself; itself with a ridge penalty on its slope.
NUMBER, SLOPE = "number", "slope"


class Level(NamedTuple):
    """The coding of a category of which one level alone is meant."""

    level: Any


class Coded(NamedTuple):
    """A basis with its coordinates.

    Args:
        basis: of the number itself, or of all levels.
        transform: T `(M, K)`, from coordinates to coefficients of the basis; the functions have a mean
            square near 1, so that coordinates are of one size whatever the unit and the levels.
        eigenvalues: of the penalty, `(K,)`.
    """

    basis: Basis
    transform: np.ndarray
    eigenvalues: np.ndarray


def code_number(coding: str, values: np.ndarray) -> Coded:
    """A number in units of its root mean square: what is 0 stays 0."""
    size = float(np.sqrt(np.mean(values**2)))
    basis = Basis("linear", 1, 1, axis=(0.0, size))
    ridge = 1 / (len(values) * size**2) if coding == SLOPE else 0.0
    return Coded(basis, np.eye(1), np.array([ridge]))


def code_levels(coding: str | Level, levels: tuple[Any, ...], values: np.ndarray) -> Coded:
    """Indicators of levels: of one, of all, or all orthonormal differences between them."""
    basis, count = make_levels(levels), len(levels)
    if isinstance(coding, Level):
        own = levels.index(coding.level)
        share = max(float(np.mean(values == coding.level)), 1 / len(values))
        transform = np.eye(count)[:, [own]] / np.sqrt(share)
    else:
        transform = np.sqrt(count) * (np.eye(count) if coding == LEVELS else contrasts(count))
    return Coded(basis, transform, np.zeros(transform.shape[1]))


def contrasts(count: int) -> np.ndarray:
    """Orthonormal vectors that add up to 0, `(count, count - 1)`: each level against those before.

    Example:
        >>> contrasts(2).round(4).tolist()
        [[-0.7071], [0.7071]]
    """
    found = np.triu(-np.ones((count, count - 1)))
    found[np.arange(1, count), np.arange(count - 1)] = np.arange(1, count)
    return np.asarray(found / np.linalg.norm(found, axis=0))


def unit_of(basis: Basis, transform: np.ndarray) -> float:
    """What a coefficient of 1 multiplies the user's own number, or indicator, with."""
    if basis.kind == "linear":
        return 1 / basis.axis[1]
    return float(np.linalg.norm(transform[:, 0]))


def is_number_coding(coding: Any) -> bool:
    """Whether a coding is one of numbers."""
    return coding in (NUMBER, SLOPE)
