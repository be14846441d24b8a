"""The benchmark of large tables: which rows it takes, and its command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

BENCHMARKS = Path(__file__).parents[2] / "examples" / "benchmarks"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """A small table in the place of the protein's, gzipped as that is."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.setenv("AHOFM_DATA", str(tmp_path))
    (tmp_path / "large").mkdir()
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(100, 3)), columns=["a", "b", "rmsd"])
    frame.to_csv(tmp_path / "large" / "protein.csv.gz", index=False)
    return frame


def test_splits_are_those_of_the_sources(data: pd.DataFrame) -> None:
    from comparison.sets import rows_of

    rows = rows_of("protein", 101)
    order = np.random.default_rng(101).permutation(100)
    np.testing.assert_allclose(rows.test["rmsd"], data["rmsd"].iloc[order[:20]])
    np.testing.assert_allclose(rows.y, data["rmsd"].iloc[order[20:]])
    assert rows.features == ["a", "b"]


def test_some_rows_are_a_sample_of_all(data: pd.DataFrame) -> None:
    from comparison.sets import rows_of

    rows = rows_of("protein:50", 101)
    assert [len(rows.train), len(rows.test)] == [40, 10]
    drawn = pd.concat([rows.train, rows.test]).round(9)
    assert not drawn.duplicated().any()
    assert len(drawn.merge(data.round(9))) == 50
    assert len(rows_of("protein:500", 101).train) == 80


def test_the_command(data: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import large

    given = ["--sets", "protein", "--rows", "50", "--seeds", "100", "--peers", "mean"]
    large.main([*given, "--out", str(tmp_path / "large.jsonl")])
    lines: Any = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["protein:50"]
    assert float(lines[2].split()[-1]) == pytest.approx(data["rmsd"].std(), rel=0.4)


def test_seeds_are_given_in_three_ways(data: pd.DataFrame) -> None:
    import large

    for given in (["100", "101"], ["100,101"], ["100-101"]):
        assert large.read_arguments(["--sets", "protein", "--seeds", *given]).seeds == [100, 101]


def test_without_the_data_it_says_so(
    data: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import large

    monkeypatch.delenv("AHOFM_DATA")
    with pytest.raises(SystemExit):
        large.main(["--sets", "protein"])
    assert "set AHOFM_DATA to the folder" in capsys.readouterr().err
