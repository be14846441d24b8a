"""The benchmark of basis sizes: its data, its errors, its slope."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "examples" / "benchmarks"


@pytest.fixture
def basis_size(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import basis_size

    return basis_size


def test_the_response_is_its_mean_with_noise(basis_size: Any) -> None:
    for kind in basis_size.KINDS:
        data = basis_size.simulate(kind, 4000, seed=100)
        assert (data.y - data["mean"]).std() == pytest.approx(basis_size.NOISE, rel=0.05)
        assert data["mean"].std() > 0.3


def test_spikes_are_narrow(basis_size: Any) -> None:
    x = np.linspace(0, 1, 2001)
    apart = basis_size.spikes(x) - basis_size.smooth(x)
    assert apart.max() == pytest.approx(2, rel=0.05)
    assert 0.02 < np.mean(apart > 0.5) < 0.1


def test_the_slope_is_that_of_a_power(basis_size: Any) -> None:
    sizes = [20, 40, 160]
    assert basis_size.slope(sizes, [3 * k**0.7 for k in sizes]) == pytest.approx(0.7)


def test_more_functions_find_spikes(basis_size: Any) -> None:
    few, many = (basis_size.error("spikes", 1500, k, seed=100) for k in (20, 100))
    assert many < 0.9 * few
