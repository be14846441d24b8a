"""Values of one feature as they come: even, skewed, with ties, far from zero."""

from __future__ import annotations

import numpy as np


def skewed(count: int = 500, seed: int = 0) -> np.ndarray:
    return np.exp(1.5 * np.random.default_rng(seed).normal(size=count))


def half_zeros(count: int = 2000) -> np.ndarray:
    rng = np.random.default_rng(1)
    return np.where(rng.uniform(size=count) < 0.5, 0.0, rng.exponential(size=count))


def time_stamps(count: int = 1000) -> np.ndarray:
    return 1.7e9 + np.random.default_rng(2).uniform(0, 86_400, count)


SAMPLES = {
    "uniform": np.random.default_rng(3).uniform(-2.5, 7.25, 300),
    "skewed": skewed(),
    "many skewed": np.exp(2 * np.random.default_rng(4).normal(size=100_000)),
    "half zeros": half_zeros(),
    "time stamps": time_stamps(),
    "two values": np.array([0.0, 3.0, 3.0]),
    "whole numbers": np.random.default_rng(5).integers(0, 9, 200).astype(float),
}
