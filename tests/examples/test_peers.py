"""The comparison with other libraries: its splits, scores, file of figures and tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

BENCHMARKS = Path(__file__).parents[2] / "examples" / "benchmarks"


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)


@pytest.fixture
def results(tmp_path: Path) -> Any:
    """Two libraries on two sets: pyGAM wins the first, is stopped at the second."""
    from comparison.runs import Cell, Results

    results = Results(tmp_path / "figures.jsonl")
    for seed, (ours, theirs) in enumerate([(2.0, 1.0), (4.0, 1.5)]):
        for name, error in (("ours-d2", ours), ("pygam", theirs)):
            figures = {"rmse": error, "fit": 1.0, "predict": 0.1, "peak": 100.0}
            results.add(Cell("friedman:200", seed, name), figures)
        results.add(Cell("steps:200", seed, "ours-d2"), {"rmse": 3.0, "log_score": 1.25})
        results.add(Cell("steps:200", seed, "pygam"), {"limit": 60.0})
    return results


def small_split() -> Any:
    from comparison.problems import simulate, split

    return split(simulate("friedman", 200, seed=0), "y", seed=0)


def test_the_log_score_is_the_mean_negative_log_density() -> None:
    from comparison.fitted import log_score

    rng = np.random.default_rng(0)
    mean, spread, y = rng.normal(size=9), rng.uniform(0.5, 2, size=9), pd.Series(rng.normal(size=9))
    assert log_score(mean, spread, y) == pytest.approx(-stats.norm.logpdf(y, mean, spread).mean())


def test_the_first_fifth_of_the_permuted_rows_is_the_test_set() -> None:
    rows = small_split()
    order = np.random.default_rng(0).permutation(200)
    assert list(rows.test.index) == list(order[:40])
    assert list(rows.train.index) == list(order[40:])


def test_tuning_takes_the_candidate_that_predicts_held_out_training_rows_best() -> None:
    from comparison.fitted import Fitted, tuned

    rows, fitted_to = small_split(), []

    def fit(part: Any, shift: float) -> Fitted:
        fitted_to.append((len(part.train), shift))
        assert not set(part.train.index) & set(rows.test.index)
        return Fitted(lambda data: data["y"].to_numpy() + shift)

    chosen = tuned(fit, lambda inner: [{"shift": 1.0}, {"shift": 0.5}, {"shift": -2.0}])(rows)
    assert fitted_to == [(128, 1.0), (128, 0.5), (128, -2.0), (160, 0.5)]
    assert chosen.setting == "{'shift': 0.5}"


def test_the_strongest_pair_is_found_and_repeated_columns_are_not_asked() -> None:
    from comparison.encoding import numbers, strongest_pairs
    from comparison.problems import simulate, split

    data = simulate("friedman", 4000, seed=0)
    rows = split(data.assign(copy=data["x3"]), "y", seed=0)
    names = numbers(rows, distinct=True)
    assert "copy" not in names
    assert len(names) == 10
    assert strongest_pairs(rows, names, 1) == [("x0", "x1")]


def test_a_pair_with_a_binary_feature_is_found() -> None:
    from comparison.encoding import strongest_pairs
    from comparison.problems import Split

    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.uniform(size=(1000, 4)), columns=list("abcd"))
    data["b"] = (data["b"] > 0.5).astype(float)
    data["y"] = data["a"] + 3 * data["b"] * data["c"] + rng.normal(size=1000)
    assert strongest_pairs(Split(data, data, "y", 0), list("abcd"), 1) == [("b", "c")]


def test_texts_are_read_by_every_encoding() -> None:
    from comparison.encoding import as_categories, as_codes, as_dummies, as_known
    from comparison.problems import Split

    train = pd.DataFrame({"g": ["a", "b", "b", "c"], "y": [0.0, 1.0, 2.0, 3.0]})
    test = pd.DataFrame({"g": ["c", "new"], "y": [0.0, 0.0]})
    rows = Split(train, test, "y", 0)
    assert list(as_codes(rows, test)["g"]) == [2, 1]
    assert list(as_known(rows, test)["g"]) == ["c", "b"]
    assert as_categories(rows, test)["g"].isna().tolist() == [False, True]
    assert as_dummies(rows, test).tolist() == [[0.0, 1.0], [0.0, 0.0]]


def test_the_mean_is_what_a_model_has_to_be_better_than() -> None:
    from comparison.fitted import constant
    from comparison.problems import Split

    train = pd.DataFrame({"x": [0.0, 1.0], "y": [1.0, 3.0]})
    fitted = constant(Split(train, train, "y", 0))
    assert fitted.mean(train).tolist() == [2.0, 2.0]
    assert fitted.spread is not None
    assert fitted.spread(train) == pytest.approx(np.sqrt(2))


def test_tables_show_mean_deviation_winner_rank_and_the_reason_of_a_gap(results: Any) -> None:
    from comparison.table import Tables, render

    shown = render(Tables(results, ["friedman:200", "steps:200"], ["ours-d2", "pygam"], [0, 1]), True)
    table = shown.split("\n\n")[0].splitlines()
    assert table[0] == "| Test error (RMSE) | friedman:200 | steps:200 | mean rank |"
    assert table[2] == "| ahofm_keras, D=2 | 3.000 (1.414) | **3.000 (0.000)** | **1.50** |"
    assert table[3] == "| pyGAM | **1.250 (0.354)** | stopped after 60 s | **1.50** |"
    score = next(part for part in shown.split("\n\n") if part.startswith("| Log score"))
    assert "pyGAM" not in score


def test_the_brief_table_has_errors_ranks_and_seconds(results: Any) -> None:
    from comparison.runs import Cell
    from comparison.table import Tables, render

    for seed in (0, 1):
        figures = {"rmse": 3.0, "log_score": 1.25, "fit": 12.0 + seed}
        results.add(Cell("steps:200", seed, "ours-d2"), figures)
    tables = Tables(results, ["friedman:200", "steps:200"], ["ours-d2", "pygam"], [0, 1])
    head, _, ours, theirs = render(tables, True, brief=True).splitlines()
    assert head.endswith("| mean rank | rank by log score | seconds a fit |")
    assert ours.endswith("| **1.50** | **1.00** | 1.0 to 12 |")
    assert theirs.endswith("| **1.50** |  | 1.0 to 1.0 |")


def test_errors_of_averages_of_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    import starts

    rows = small_split()
    y, asked = rows.test["y"].to_numpy(), []
    missed = {"auto": 3.0, 4: -1.0, 0: 4.0}

    def fit(rows: Any, order: int, seed: int, restarts: int | str) -> tuple[np.ndarray, int]:
        asked.append((order, seed - 1000 * rows.seed, restarts))
        return y + missed[restarts], 5

    monkeypatch.setattr(starts, "fit", fit)
    found = starts.compare(rows, order=2)
    assert asked == [(2, 0, "auto"), (2, 5, 4), (2, 0, 0)]  # five starts, five others, the first alone
    np.testing.assert_allclose(found, [5, 4.0, 3.0, 1.0, 1.0])
    line = starts.summarise([found, [3, 4.0, 1.0, 3.0, 2.0]])
    wanted = {"starts": 4, "one start": 4.0, "K starts": 2.0, "2 K": 1.5, "change, %": -25.0}
    assert line == pytest.approx(wanted | {"which K, %": 50.0})


def test_what_the_file_holds_is_not_computed_again(results: Any) -> None:
    from comparison.runs import Cell, Results, fill

    asked: list[str] = []

    def run(cell: Cell) -> dict[str, Any]:
        asked.append(cell.key)
        return {"rmse": 0.5, "fit": 0.1}

    cells = [Cell(name, 0, "pygam") for name in ("friedman:200", "steps:200", "steps:400")]
    limits = {"gigabytes": 1.0, "budget": 60.0}
    assert fill(cells, Results(results.path), run, seconds=60.0, **limits) == 0
    assert asked == []  # more rows than those that were too many are not tried
    again = Results(results.path)
    assert again.get(cells[2]) == {"limit": 60.0, "untried": True}
    again.forget(cells[0])
    fill(cells, Results(results.path), run, seconds=61.0, **limits)
    assert asked == ["friedman:200/0/pygam", "steps:200/0/pygam", "steps:400/0/pygam"]
    assert Results(results.path).get(cells[0]) == {"rmse": 0.5, "fit": 0.1}


def test_a_library_that_is_not_installed_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from comparison import registry
    from comparison.runs import Cell, run_apart

    absent = registry.Peer("absent", "no_such_package", lambda rows: None, "no_such_package")
    monkeypatch.setitem(registry.PEERS, "absent", absent)
    assert run_apart(Cell("friedman:200", 0, "absent"), tmp_path, 1.0, 1.0) == {"missing": True}


def test_two_libraries_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("statsmodels")
    import peers

    out = tmp_path / "figures.jsonl"
    given = ["--sets", "friedman:200", "--peers", "ridge,glmgam", "--seeds", "0", "--out", str(out)]
    peers.main(given)
    entries = {entry["cell"]: entry for entry in map(json.loads, out.read_text().splitlines())}
    ridge, glmgam = entries["friedman:200/0/ridge"], entries["friedman:200/0/glmgam"]
    rows = small_split()
    noise = np.std(rows.test["y"])
    assert 0 < ridge["rmse"] < noise
    assert 0 < glmgam["rmse"] < noise
    assert "log_score" not in ridge
    assert np.isfinite(glmgam["log_score"])
    assert ridge["peak"] > ridge["grown"] >= 0
    assert "splines + ridge" in capsys.readouterr().out
    size = out.stat().st_size
    peers.main(given)
    assert out.stat().st_size == size
