"""Simulated data of the paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.interpolate import BSpline

TOY_SIZES = {"time": 4, "lat": 5, "lon": 7, "rate": 5}


@dataclass(frozen=True, eq=False)
class Simulation:
    """Simulated rows and the truth behind them.

    Args:
        data: features and the response `y`.
        mean: true mean of `y` for any frame of features, `(n,)`.
    """

    data: pd.DataFrame
    mean: Callable[[pd.DataFrame], np.ndarray]


def simulate_toy(rows: int = 10_000, noise: float = 0.1, seed: int = 0) -> Simulation:
    """The paper's example of time, lat, lon and rate (supplement, "Interpretability").

    The mean is the sum of all smooth three-way interactions: tensor products of B-splines with 4, 5, 7
    and 5 functions and random coefficients. Features are uniform on [0, 1].

    Args:
        rows: number of rows.
        noise: standard deviation of the gaussian noise.
        seed: of features, coefficients and noise.

    Example:
        >>> simulate_toy(rows=3).data.columns.tolist()
        ['time', 'lat', 'lon', 'rate', 'y']
    """
    rng = np.random.default_rng(seed)
    coefficients = {
        names: rng.standard_normal([TOY_SIZES[name] for name in names])
        for names in combinations(TOY_SIZES, 3)
    }

    def mean(frame: pd.DataFrame) -> np.ndarray:
        bases = {name: _clamped_splines(frame[name].to_numpy(), k) for name, k in TOY_SIZES.items()}
        parts = [
            np.einsum("ijk,ni,nj,nk->n", tensor, *(bases[name] for name in names), optimize=True)
            for names, tensor in coefficients.items()
        ]
        return np.sum(parts, axis=0)

    data = pd.DataFrame({name: rng.uniform(size=rows) for name in TOY_SIZES})
    data["y"] = mean(data) + noise * rng.standard_normal(rows)
    return Simulation(data, mean)


def _clamped_splines(x: np.ndarray, size: int, degree: int = 3) -> np.ndarray:
    """B-splines on [0, 1] with `size` functions, all knots beyond the ends at the ends."""
    inner = np.linspace(0, 1, size - degree + 1)
    knots = np.concatenate([np.zeros(degree), inner, np.ones(degree)])
    return BSpline.design_matrix(np.clip(x, 0, 1 - 1e-12), knots, degree).toarray()
