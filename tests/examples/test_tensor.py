"""The benchmark of a `te()` beside mgcv's: its truth, its table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

BENCHMARKS = Path(__file__).parents[2] / "examples" / "benchmarks"


@pytest.fixture
def tensor(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import tensor

    return tensor


def test_the_stored_rows_scatter_around_the_true_surface(tensor: Any) -> None:
    data = pd.read_csv(tensor.FIXTURES / "mgcv_surface.csv")
    assert data.groupby("seed").size().tolist() == [500] * 8
    left = data.y - tensor.true_surface(data)
    assert left.std() == pytest.approx(0.2, rel=0.03)
    assert left.mean() == pytest.approx(0, abs=0.01)


def test_a_line_has_both_errors_and_counts_where_ours_is_no_larger(
    tensor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = iter([0.01, 0.02, 0.03] * len(tensor.PAIRS))
    monkeypatch.setattr(
        tensor, "fit_own", lambda term, train: {"rows": 0.5, "grid": next(found) + 0.02, "edf": 9.0}
    )
    table = tensor.compare(3)
    assert list(table.index.get_level_values("term")) == list(tensor.PAIRS)
    line = table.xs("te(x, z)").iloc[0]
    assert line["grid"] == pytest.approx(0.04)
    assert line["grid, mgcv"] == pytest.approx((0.045306483 + 0.035160684 + 0.037618425) / 3)
    # 0.03, 0.04 and 0.05 beside mgcv's errors.
    assert line["no larger"] == "1 of 3"
