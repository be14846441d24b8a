"""Surfaces of all pairs of features, and rows with a given signal-to-noise ratio."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.interpolate import BSpline

# Functions of a feature that the true surfaces are made of.
FUNCTIONS = 5
DEGREE = 3
_QUADRATURE = 4000

Pair = tuple[str, str]


def splines(x: np.ndarray) -> np.ndarray:
    """B-splines on [0, 1] with mean zero under the uniform distribution, `(n, FUNCTIONS)`."""
    inner = np.linspace(0, 1, FUNCTIONS - DEGREE + 1)
    knots = np.concatenate([np.zeros(DEGREE), inner, np.ones(DEGREE)])
    basis = BSpline.design_matrix(np.clip(x, 0, 1 - 1e-12), knots, DEGREE).toarray()
    # The integral of a B-spline is the length of its support over degree + 1.
    return basis - (knots[DEGREE + 1 :] - knots[: -DEGREE - 1]) / (DEGREE + 1)


def spline_covariance() -> np.ndarray:
    """Covariance of the functions under the uniform distribution, `(FUNCTIONS, FUNCTIONS)`."""
    basis = splines((np.arange(_QUADRATURE) + 0.5) / _QUADRATURE)
    return basis.T @ basis / _QUADRATURE


@dataclass(frozen=True, eq=False)
class PairTruth:
    """A mean that is the sum of one surface for each pair of features on [0, 1].

    Each surface is a tensor product of splines with coefficients of its own, of full rank, with mean
    zero along each feature: what belongs to the pair and to no single feature. All have the same
    variance, 1 together, under independent uniform features.

    Args:
        names: of the features.
        coefficients: of each pair, `(FUNCTIONS, FUNCTIONS)`.
    """

    names: tuple[str, ...]
    coefficients: Mapping[Pair, np.ndarray]

    @cached_property
    def pairs(self) -> list[Pair]:
        return list(self.coefficients)

    def surface(self, pair: Pair, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """On the grid of x and z, `(len(x), len(z))`."""
        return splines(x) @ self.coefficients[pair] @ splines(z).T

    def mean(self, frame: pd.DataFrame) -> np.ndarray:
        bases = {name: splines(frame[name].to_numpy()) for name in self.names}
        return np.sum(
            [np.sum((bases[a] @ c) * bases[b], axis=1) for (a, b), c in self.coefficients.items()],
            axis=0,
        )


def draw_truth(features: int, seed: int) -> PairTruth:
    """Random surfaces of all pairs of x1, x2, ..."""
    rng = np.random.default_rng([seed, 1])
    names = tuple(f"x{j + 1}" for j in range(features))
    pairs = list(combinations(names, 2))
    covariance = spline_covariance()
    coefficients = {}
    for pair in pairs:
        drawn = rng.normal(size=(FUNCTIONS, FUNCTIONS))
        variance = np.sum((covariance @ drawn @ covariance) * drawn)
        coefficients[pair] = drawn / np.sqrt(variance * len(pairs))
    return PairTruth(names, coefficients)


def draw_rows(truth: PairTruth, rows: int, signal_to_noise: float, seed: int) -> pd.DataFrame:
    """Uniform features and a response `y`.

    Args:
        truth: the mean; its variance under uniform features is 1.
        rows: number of rows.
        signal_to_noise: variance of the mean over that of the gaussian noise.
        seed: of features and noise.
    """
    rng = np.random.default_rng([seed, 2])
    frame = pd.DataFrame(rng.uniform(size=(rows, len(truth.names))), columns=list(truth.names))
    frame["y"] = truth.mean(frame) + rng.normal(size=rows) / np.sqrt(signal_to_noise)
    return frame


def pure(surface: np.ndarray) -> np.ndarray:
    """A surface on a grid without its means along both axes."""
    return (
        surface
        - surface.mean(axis=0, keepdims=True)
        - surface.mean(axis=1, keepdims=True)
        + surface.mean()
    )
