"""The paper's toy example against its definition, one spline and one product at a time."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from ahofm_keras.datasets import TOY_SIZES, simulate_toy
from tests.reference import cox_de_boor

NAMES = ["time", "lat", "lon", "rate"]


def clamped_knots(size: int) -> list[float]:
    inner = [place / (size - 3) for place in range(size - 2)]
    return [0.0] * 3 + inner + [1.0] * 3


def looped_mean(row: pd.Series, seed: int) -> float:
    """Sum over all triples of features of all products of their functions."""
    rng = np.random.default_rng(seed)
    total = 0.0
    for names in combinations(NAMES, 3):
        sizes = [TOY_SIZES[name] for name in names]
        tensor = rng.standard_normal(sizes)
        for place in np.ndindex(*sizes):
            product = tensor[place]
            for name, size, function in zip(names, sizes, place, strict=True):
                product *= cox_de_boor(row[name], clamped_knots(size), function, 3)
            total += product
    return total


def test_shape_and_range() -> None:
    assert TOY_SIZES == {"time": 4, "lat": 5, "lon": 7, "rate": 5}
    data = simulate_toy(rows=1000).data
    assert list(data.columns) == [*NAMES, "y"]
    assert data.shape == (1000, 5)
    features = data[NAMES]
    assert ((features >= 0) & (features <= 1)).all().all()
    np.testing.assert_allclose(features.mean(), 0.5, atol=0.05)
    np.testing.assert_allclose(features.std(), 12**-0.5, atol=0.02)
    assert len(simulate_toy().data) == 10_000


@pytest.mark.parametrize("seed", [0, 11])
def test_mean_is_the_sum_of_all_threeway_products(seed: int) -> None:
    simulation = simulate_toy(rows=6, seed=seed)
    found = simulation.mean(simulation.data)
    assert found.shape == (6,)
    for row in range(6):
        assert found[row] == pytest.approx(looped_mean(simulation.data.iloc[row], seed), abs=1e-10)


def test_mean_takes_any_frame_with_the_features_up_to_both_ends() -> None:
    mean = simulate_toy(rows=2).mean
    ends = pd.DataFrame({"rate": [0.0, 1.0], "lon": [0.0, 1.0], "time": [0.0, 1.0], "lat": [0.0, 1.0]})
    near = ends.clip(1e-9, 1 - 1e-9)
    np.testing.assert_allclose(mean(ends), mean(near), rtol=0, atol=1e-6)


def test_noise_is_gaussian_of_the_given_size() -> None:
    silent = simulate_toy(rows=50, noise=0.0)
    np.testing.assert_array_equal(silent.data["y"], silent.mean(silent.data))
    loud = simulate_toy(rows=5000, noise=0.7)
    error = loud.data["y"] - loud.mean(loud.data)
    assert error.std() == pytest.approx(0.7, rel=0.05)
    assert error.mean() == pytest.approx(0, abs=0.05)


def test_the_seed_decides_everything() -> None:
    first, again, other = (
        simulate_toy(rows=20, seed=3),
        simulate_toy(rows=20, seed=3),
        simulate_toy(20, seed=4),
    )
    pd.testing.assert_frame_equal(first.data, again.data)
    np.testing.assert_array_equal(first.mean(other.data), again.mean(other.data))
    assert not np.allclose(first.data["time"], other.data["time"])
    assert not np.allclose(first.mean(other.data), other.mean(other.data))
