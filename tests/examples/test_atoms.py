"""The benchmark of values that many rows share, on few rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "examples" / "benchmarks"


@pytest.fixture
def atoms(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import atoms

    return atoms


def test_it_prints_a_line_for_each_fit(atoms: Any, capsys: pytest.CaptureFixture[str]) -> None:
    atoms.main(["--sets", "heaps:2000", "--seeds", "0", "--orders", "1"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [line[3] for line in lines] == ["20", "20", "data", "data"]
    assert [int(line[4]) > 0 for line in lines] == [False, True, False, True]
    scores = [float(line[5]) for line in lines]
    assert min(scores[1], scores[3]) < min(scores[0], scores[2])
