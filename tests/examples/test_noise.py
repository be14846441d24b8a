"""The benchmark of features without an effect: its data, its errors, its table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "examples" / "benchmarks"


@pytest.fixture
def noise(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import noise

    return noise


def test_fresh_rows_lie_in_the_training_range_and_have_the_true_mean(noise: Any) -> None:
    kind = noise.KINDS["two of twenty"]
    train, fresh = noise.simulate(kind, seed=3)
    assert len(train) == 150
    assert len(kind.names) == 20
    own = fresh[kind.names]
    assert (own >= train[kind.names].min()).all(axis=None)
    assert (own <= train[kind.names].max()).all(axis=None)
    np.testing.assert_allclose(fresh["mean"], 0.5 * np.sin(2 * own.x0) + 0.3 * own.x1)
    left = train["y"] - kind.mean(train[kind.names].to_numpy())
    assert left.std() == pytest.approx(0.5, rel=0.15)


@pytest.mark.parametrize(("name", "of_half"), [("noise", 1.0), ("two of twenty", None)])
def test_errors_are_shares(noise: Any, name: str, of_half: float | None) -> None:
    """Of the noise where there is no effect, else of the true mean, whose own mean has the error 1."""
    methods = {
        "true": lambda kind, train, fresh: (fresh["mean"].to_numpy(), 2.0),
        "off": lambda kind, train, fresh: (np.full(len(fresh), fresh["mean"].mean() + 0.5), 0.0),
        "flat": lambda kind, train, fresh: (np.full(len(fresh), fresh["mean"].mean()), 0.0),
    }
    table = noise.compare(name, 2, methods).loc[name]
    assert table.loc["true"].tolist() == [0.0, 2.0]
    assert table.loc["flat", "error"] == pytest.approx(0.0 if of_half else 1.0)
    if of_half:
        assert table.loc["off", "error"] == pytest.approx(of_half)


def test_our_fit_of_noise_keeps_little(noise: Any) -> None:
    kind = noise.KINDS["noise"]
    train, fresh = noise.simulate(kind, seed=0)
    mean, edf = noise.fit_own("s(.)", kind, train, fresh)
    assert mean.shape == (noise.FRESH_ROWS,)
    assert 0 <= edf < 6
