"""The benchmark of rank: sweeps are timed, surfaces are held against exact ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "examples" / "benchmarks"


@pytest.fixture
def rank(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.syspath_prepend(BENCHMARKS.parent / "paper")
    import rank

    return rank


def test_the_sweeps_of_a_fit_are_timed(rank: Any) -> None:
    figures = rank.time_sweeps(rows=150, features=3, order=2, rank=2, sweeps=2)
    assert 0 < figures["seconds"] < 60
    assert figures["peak"] > 0


def test_surfaces_of_a_fit_are_held_against_the_truth(rank: Any) -> None:
    figures = rank.estimate(rows=400, seed=0, rank="2")
    # Ten surfaces have a variance of a tenth each.
    assert 0 < figures["mse"] < 0.2
    assert 0 < figures["prediction"] < 1.5


def test_ranks_are_numbers_or_words(rank: Any) -> None:
    from rerun.pairs import formula_of

    truth = rank.draw_truth(3, 0)
    assert formula_of(truth, rank.method_of("15")).endswith("D=2, F=15)")
    assert formula_of(truth, rank.method_of("auto")).endswith("D=2, F='auto')")
    assert "ti(x1, x2, " in formula_of(truth, rank.method_of(rank.EXACT))


def test_the_tables(
    rank: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def timed(rows: int, features: int, order: int, own: int, sweeps: int) -> dict[str, Any]:
        assert (rows, features, sweeps) == (20_000, 8, 5)
        return {"failed": "no memory"} if own == 80 else {"seconds": own**order / 100, "peak": 700.0}

    def estimate(rows: int, seed: int, own: str) -> dict[str, float]:
        mse = {rank.EXACT: 1.0 + seed, "5": 3.0 + seed}[own] / rows
        return {"mse": mse, "prediction": 0.1, "seconds": 2.0}

    monkeypatch.setattr(rank, "in_own_process", timed)
    monkeypatch.setattr(rank, "estimate", estimate)
    given = ["--out", str(tmp_path), "--seeds", "0", "1", "--surfaces", "2000", "4000"]
    rank.main(given)
    shown = capsys.readouterr()
    assert "D = 2: log-log slope over F 2.00" in shown.out
    assert "D = 3: log-log slope over F 3.00" in shown.out
    assert "D = 2, F = 80 failed: no memory" in shown.err
    arguments = rank.read_arguments(given)
    table = rank.collect_surfaces(arguments, rank.Store(rank.Run("rank", "", None, tmp_path)))
    assert table["F"].tolist() == [rank.EXACT, "5"] * 2
    np.testing.assert_allclose(table["over ti"], [1, 3.5 / 1.5] * 2)
    assert len((tmp_path / "rank.jsonl").read_text().splitlines()) == 10 + 8
