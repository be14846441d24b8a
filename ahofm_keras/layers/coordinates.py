"""The coordinates in which the layers learn their weights."""

from __future__ import annotations

import numpy as np


def learned_coordinates(
    transform: np.ndarray, eigenvalues: np.ndarray, smoothing: float, ridge: np.ndarray | float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Transform and penalty weights of the coordinates in which weights are learned.

    In Demmler-Reinsch coordinates the mean loss of one gaussian smooth has the Hessian I, its penalty
    lambda diag(s). Adam moves every weight at one speed; dividing the coordinates by sqrt(1 + lambda s)
    would make their speeds right for the objective. But early stopping asks for more: what is smooth
    should be learned before what is wiggly. s grows like the fourth power of the number of wiggles, so
    sqrt(s / s_1) under the root, s_1 the smallest that is not 0, slows a function down by its number of
    wiggles. The objective does not change.

    Args:
        transform: T `(M, r)`, from Demmler-Reinsch coordinates to coefficients.
        eigenvalues: s `(r,)`.
        smoothing: lambda.
        ridge: `(r,)`, what is added to lambda s: the penalty of atoms.
    """
    speed = learning_speed(eigenvalues, smoothing, ridge)
    return transform * speed, (smoothing * eigenvalues + ridge) * speed**2


def learning_speed(
    eigenvalues: np.ndarray, smoothing: float, ridge: np.ndarray | float = 0.0
) -> np.ndarray:
    """By how much each coordinate is scaled, at most 1."""
    return np.asarray(1 / np.sqrt(1 + smoothing * eigenvalues + ridge + count_wiggles(eigenvalues)))


def count_wiggles(eigenvalues: np.ndarray) -> np.ndarray:
    """By how much wiggly functions are slowed down."""
    penalised = eigenvalues[eigenvalues > 0]
    return np.sqrt(eigenvalues / penalised.min()) if len(penalised) else np.zeros_like(eigenvalues)
