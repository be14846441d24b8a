"""The benchmark of all pairs: its data, which sizes bam is asked for, its slopes and its command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "examples" / "benchmarks"


@pytest.fixture
def pairs(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import pairs

    return pairs


def test_there_is_half_as_much_signal_as_noise(pairs: Any) -> None:
    from comparison.sets import rows_of

    rows = rows_of("pairs4:300", 2)
    assert len(rows.train) == 300
    assert rows.features == ["x1", "x2", "x3", "x4"]
    assert np.var(rows.truth) == pytest.approx(1, rel=0.1)
    assert np.var(rows.test["y"] - rows.truth) == pytest.approx(2, rel=0.05)
    # The rows that are fitted have the same surfaces.
    assert np.corrcoef(rows_of("pairs4:300", 3).truth, rows.truth)[0, 1] < 0.2


def test_bam_has_a_ti_of_each_pair(pairs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from comparison import mgcv
    from comparison.sets import rows_of

    calls: list[str] = []
    monkeypatch.setattr(mgcv, "run", lambda rows, own: calls.extend(own))
    mgcv.all_pairs(rows_of("pairs3:200", 0), discrete=True)
    (call,) = calls
    assert call.count("s(v") == 3
    assert call.count("ti(v") == 3
    assert call.endswith("ti(v2, v3, k = c(5, 5)), data = rows, discrete = TRUE)")


def test_bam_is_asked_for_what_it_can_do(pairs: Any) -> None:
    assert pairs.is_tried("bam", 12, 6000)
    assert not pairs.is_tried("bam", 10, 100_000)
    assert pairs.is_tried("bam-discrete", 10, 100_000)
    assert not pairs.is_tried("bam-discrete", 24, 6000)
    assert pairs.is_tried("ours-d2", 96, 1_000_000)


def test_slopes_are_powers(pairs: Any) -> None:
    sizes = [3, 6, 12, 24]
    assert pairs.slope(sizes, [0.1 * p**1.5 for p in sizes]) == pytest.approx(1.5)
    assert pairs.slope([*sizes, 48], [2.0 * p for p in sizes] + [np.nan]) == pytest.approx(1)
    assert np.isnan(pairs.slope([3], [1.0]))


def test_the_command_without_mgcv(
    pairs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from comparison import mgcv
    from comparison.sets import rows_of

    monkeypatch.setattr(mgcv, "installed", lambda: False)
    given = ["--features", "3", "--rows", "200", "--peers", "mean,bam", "--out"]
    pairs.main([*given, str(tmp_path / "pairs.jsonl")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["pairs3:200"]
    rows = rows_of("pairs3:200", 0)
    off = (rows.y.mean() - rows.truth.mean()) ** 2 / np.var(rows.truth)
    assert float(lines[2].split()[-1]) == pytest.approx(1 + off, abs=1e-4)
    assert lines[3].split() == ["bam,", "all", "pairs", "not", "installed"]


def test_ratios_to_bam(pairs: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from comparison.runs import Cell, Results
    from comparison.table import Tables

    results = Results(tmp_path / "figures.jsonl")
    for peer, error, seconds in (("single-d2", 0.3, 2.0), ("bam", 0.2, 8.0)):
        results.add(Cell("pairs9:6000", 0, peer), {"missed": error, "fit": seconds})
    results.add(Cell("pairs24:6000", 0, "single-d2"), {"missed": 0.4, "fit": 4.0})
    sets = ["pairs9:6000", "pairs24:6000"]
    pairs.print_ratios(Tables(results, sets, ["single-d2", "bam"], [0]))
    wanted = "pairs9:6000: single-d2 has 1.50 of the error of bam in 0.25 of its time\n"
    assert capsys.readouterr().out == wanted
