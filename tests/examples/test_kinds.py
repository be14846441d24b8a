"""The benchmark of kinds of data: its simulations, scores, libraries and tables."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

BENCHMARKS = Path(__file__).parents[2] / "examples" / "benchmarks"
NAMES = ["heavy-tails", "heaps", "weak-counts", "many-rows", "full-rank", "map", "stepped"]


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    from comparison import kinds

    assert list(kinds.KINDS) == NAMES
    return kinds


@pytest.mark.parametrize("name", NAMES)
def test_responses_scatter_around_the_true_means(kinds: Any, name: str) -> None:
    rows, kind = kinds.simulate_kind(name, 300, seed=1), kinds.KINDS[name]
    assert len(rows.train) == 300
    assert list(rows.train) == list(rows.test)
    np.testing.assert_array_equal(rows.truth, kind.mean(rows.test[rows.features]))
    variance = {
        "gaussian": np.full(len(rows.truth), kind.noise**2),
        "bernoulli": rows.truth * (1 - rows.truth),
        "poisson": rows.truth,
    }[rows.family]
    z = (rows.test["y"] - rows.truth) / np.sqrt(variance)
    assert abs(z.mean()) < 4 / np.sqrt(len(z))
    # The variance of z^2 is that of a family, not 2: counts of a tenth have a heavy tail.
    assert np.mean(z**2) == pytest.approx(1, abs=5 * np.std(z**2) / np.sqrt(len(z)))
    # Not the mean alone, and not without noise either.
    share = np.var(rows.truth) / (np.var(rows.truth) + np.mean(variance))
    assert (0.001 if rows.family == "poisson" else 0.2) < share < 0.95
    again = kinds.simulate_kind(name, 300, seed=1)
    pd.testing.assert_frame_equal(again.train, rows.train)


def test_values_of_heaps_have_their_shares_and_effects(kinds: Any) -> None:
    data = kinds.simulate_kind("heaps", 100, seed=0).test
    assert np.mean(data["gain"] == 0) == pytest.approx(0.91, abs=0.01)
    assert np.mean(data["hours"] == 40) > 0.47
    row = data.iloc[[0]].drop(columns="y")
    effect, beside = (
        float(kinds.heaped(row.assign(gain=gain))[0] - kinds.heaped(row.assign(gain=1.0))[0])
        for gain in (15024.0, 15025.0)
    )
    assert effect == pytest.approx(4.0)
    assert beside == 0


def test_scores_are_those_of_the_families(kinds: Any) -> None:
    from comparison.fitted import SCORES

    rng = np.random.default_rng(0)
    p, mean = rng.uniform(0.1, 0.9, size=50), rng.uniform(0.1, 4, size=50)
    binary, counts = pd.Series(rng.binomial(1, p)), pd.Series(rng.poisson(mean))
    assert SCORES["bernoulli"](p, binary) == pytest.approx(-stats.bernoulli.logpmf(binary, p).mean())
    best = stats.poisson.logpmf(counts, np.maximum(counts, 1e-300))
    deviance = 2 * (best - stats.poisson.logpmf(counts, mean))
    assert SCORES["poisson"](mean, counts) == pytest.approx(deviance.mean())
    assert SCORES["gaussian"](mean + 3, pd.Series(mean)) == pytest.approx(3)
    assert np.isfinite(SCORES["bernoulli"](np.array([0.0, 1.0]), pd.Series([1, 0])))


def test_what_is_missed_and_what_lies_beyond(kinds: Any) -> None:
    from comparison.fitted import beyond, missed

    truth = np.array([1.0, 2.0, 6.0])
    assert missed(truth, truth) == 0
    assert missed(np.full(3, 3.0), truth) == pytest.approx(1)
    y = pd.Series([10.0, 14.0])
    assert beyond(np.array([11.0, 14.0]), y) == 0
    assert beyond(np.array([11.0, 20.0]), y) == pytest.approx(1.5)
    assert beyond(np.array([8.0, 14.5]), y) == pytest.approx(0.5)


PACKAGES = {"single-d2": "keras", "lightgbm": "lightgbm", "boosting": "sklearn", "ebm": "interpret"}


@pytest.mark.parametrize("name", ["map", "heaps", "weak-counts"])
@pytest.mark.parametrize("peer", PACKAGES)
def test_every_library_predicts_means_of_every_family(
    kinds: Any, peer: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(PACKAGES[peer])
    from comparison import trees
    from comparison.registry import PEERS

    monkeypatch.setattr(kinds, "FRESH_ROWS", 500)
    rows = kinds.simulate_kind(name, 500, seed=0)
    settings = {"outer_bags": 1, "max_rounds": 60}
    fitted = trees.ebm(rows, **settings) if peer == "ebm" else PEERS[peer].fit(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows outside the training range
        mean = fitted.mean(rows.test)
    # Neither classes, nor predictors on the scale of a link, which are negative for most rows.
    assert len(np.unique(mean)) > 20
    assert rows.family == "gaussian" or mean.min() > 0
    assert rows.family != "bernoulli" or mean.max() < 1
    if name != "weak-counts":  # of which 500 rows show nothing
        assert np.corrcoef(mean, rows.truth)[0, 1] > 0.5


def test_figures_of_a_fit(kinds: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from comparison.fitted import Fitted
    from comparison.registry import Peer
    from comparison.runs import measure

    monkeypatch.setattr(kinds, "FRESH_ROWS", 500)
    for name, has_rmse in (("map", True), ("heaps", False)):
        rows = kinds.simulate_kind(name, 100, seed=0)
        off = Peer("off", "", lambda own: Fitted(lambda data, own=own: own.truth + 0.01), "")
        figures = measure(off, rows)
        assert figures["missed"] == pytest.approx(1e-4 / np.var(rows.truth))
        assert ("rmse" in figures) == has_rmse
        assert figures["beyond"] >= 0 <= figures["fit"]


def test_ratios_are_to_the_best_library_and_the_truth_is_none(kinds: Any, tmp_path: Path) -> None:
    from comparison.ratios import count_first, ratios, render
    from comparison.runs import Cell, Results
    from comparison.table import Tables

    results = Results(tmp_path / "figures.jsonl")
    errors = {"ours-d2": (2.02, 0.3), "lightgbm": (2.0, 0.25), "truth": (1.0, 0.2)}
    for peer, own in errors.items():
        for name, error in zip(("map:9", "heaps:9"), own, strict=True):
            results.add(Cell(name, 0, peer), {"error": error, "missed": 1 / error, "fit": 3.0})
    results.add(Cell("map:9", 0, "ebm"), {"missing": True})
    peers = [*errors, "ebm"]
    tables = Tables(results, ["map:9", "heaps:9"], peers, [0])
    np.testing.assert_allclose(ratios(tables).loc["ours-d2"], [1.01, 1.2])
    np.testing.assert_allclose(ratios(tables).loc["truth"], [0.5, 0.8])
    assert count_first(tables, "ours-d2") == (1, 2)
    assert count_first(tables, "ours-d2", "missed") == (2, 2)
    shown = render(results, ["map:9", "heaps:9"], peers, [0], markdown=True)
    assert "| ahofm_keras, D=2 | 2.020 | 0.3000 |" in shown
    assert "| ahofm_keras, D=2 | 1.010 | 1.200 |" in shown
    assert "| EBM | not installed | not run |" in shown


def test_the_command_keeps_its_figures(
    kinds: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import kinds as command

    out = tmp_path / "kinds.jsonl"
    command.main(["--kinds", "heaps:200", "--peers", "mean,truth", "--seeds", "4", "--out", str(out)])
    entries = {entry["cell"]: entry for entry in map(json.loads, out.read_text().splitlines())}
    assert len(entries) == 2
    assert entries["heaps:200/4/truth"]["missed"] == 0
    assert entries["heaps:200/4/mean"]["missed"] == pytest.approx(1, abs=0.2)
    assert "no model: the mean" in capsys.readouterr().out


def test_a_full_run_has_as_many_rows_as_real_tables(kinds: Any) -> None:
    import kinds as command

    assert command.read_arguments(["--kinds", "heaps,map:7", "--full"]).kinds == ["heaps:40000", "map:7"]
    with pytest.raises(SystemExit):
        command.read_arguments(["--kinds", "none:200"])
