"""The benchmark of shapes: its truths, its shares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

BENCHMARKS = Path(__file__).parents[2] / "examples" / "benchmarks"


@pytest.fixture
def shape(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import shape

    return shape


def test_all_truths_rise_and_bend_as_said(shape: Any) -> None:
    x = np.linspace(0, 1, 200)
    for name, truth in shape.TRUTHS.items():
        values = truth(x)
        assert np.diff(values).min() >= 0
        assert values[-1] - values[0] == pytest.approx(1, abs=0.01)
        if name in shape.BENT:
            bends = np.diff(values, 2) * (1 if shape.BENT[name] == "convex" else -1)
            assert bends.min() > 0


def test_shares_are_of_mgcvs_error_or_of_the_free_smooths(
    shape: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = {"s(x)": 0.2, 's(x, shape="increasing")': 0.1, 's(x, shape="increasing convex")': 0.05}

    def fit_own(term: str, data: pd.DataFrame, truth: np.ndarray) -> tuple[float, float]:
        return errors[term], 0.9

    monkeypatch.setattr(shape, "fit_own", fit_own)
    monkeypatch.setattr(shape, "fit_mgcv", lambda data: None)
    found = shape.compare("exp", 50, 3)
    assert found["error"] == pytest.approx(0.2)
    assert [found[way] for way in shape.WAYS] == pytest.approx([1.0, 0.5, 0.25])
    assert found["cover, increasing"] == pytest.approx(0.9)
    wanted = shape.TRUTHS["line"](shape.GRID)
    monkeypatch.setattr(shape, "fit_mgcv", lambda data: np.stack([wanted + 0.4] * len(data), axis=1))
    found = shape.compare("line", 50, 3)
    assert found["error"] == pytest.approx(0.4)
    assert found["increasing"] == pytest.approx(0.25)
    assert "both words" not in found
