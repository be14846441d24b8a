"""The paper's experiments: their parts against oracles, each once in a tiny form, and the page."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "paper"
matplotlib = pytest.importorskip("matplotlib")


def load_script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"paper_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up there.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def paper() -> Iterator[Any]:
    """All scripts and shared modules, by name; the import path is as it was afterwards."""
    matplotlib.use("Agg")
    sys.path.insert(0, str(FOLDER))

    class Scripts:
        def __getattr__(self, name: str) -> ModuleType:
            if (FOLDER / f"{name}.py").exists():
                module = load_script(name)
            else:
                module = importlib.import_module(f"rerun.{name}")
            setattr(self, name, module)
            return module

    yield Scripts()
    sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the tiny experiments write, and the page reads."""
    return tmp_path_factory.mktemp("paper")


def tiny(paper: Any, out: Path, name: str, module: ModuleType | None = None, **changes: Any) -> Any:
    """Run an experiment in its tiny form, as its command does."""
    script = getattr(paper, name)
    sizes = (module or script).SIZES
    run = paper.output.Run(name, "tiny", replace(sizes["tiny"], **changes), out)
    script.run_experiment(run)
    paper.output.write_record(run, 1.0)
    return run


# ---------------------------------------------------------------------------------------- simulation


def test_surfaces_are_pure_and_have_equal_variance(paper: Any) -> None:
    truth = paper.simulation.draw_truth(4, seed=3)
    assert truth.pairs == list(combinations(("x1", "x2", "x3", "x4"), 2))
    axis = (np.arange(400) + 0.5) / 400
    for pair in truth.pairs:
        surface = truth.surface(pair, axis, axis)
        np.testing.assert_allclose(surface.mean(axis=0), 0, atol=1e-4)
        np.testing.assert_allclose(surface.mean(axis=1), 0, atol=1e-4)
        assert np.mean(surface**2) == pytest.approx(1 / 6, rel=1e-3)
        assert np.linalg.matrix_rank(surface, tol=1e-6) == 4
    other = paper.simulation.draw_truth(4, seed=4)
    assert not np.allclose(other.surface(truth.pairs[0], axis, axis), surface)


def test_the_mean_is_the_sum_of_the_surfaces(paper: Any) -> None:
    truth = paper.simulation.draw_truth(3, seed=0)
    frame = pd.DataFrame({"x1": [0.1, 0.9], "x2": [0.0, 1.0], "x3": [0.5, 0.3]})
    for row, found in zip(frame.itertuples(), truth.mean(frame), strict=True):
        parts = [
            truth.surface((a, b), np.array([getattr(row, a)]), np.array([getattr(row, b)]))[0, 0]
            for a, b in truth.pairs
        ]
        assert found == pytest.approx(sum(parts), abs=1e-12)


@pytest.mark.parametrize("ratio", [0.5, 4.0])
def test_the_signal_to_noise_ratio_is_the_one_asked_for(paper: Any, ratio: float) -> None:
    truth = paper.simulation.draw_truth(5, seed=1)
    rows = paper.simulation.draw_rows(truth, 40_000, ratio, seed=1)
    mean = truth.mean(rows)
    assert np.var(mean) / np.var(rows["y"] - mean) == pytest.approx(ratio, rel=0.05)
    assert np.var(mean) == pytest.approx(1, rel=0.05)


def test_pure_takes_both_means_out(paper: Any) -> None:
    rng = np.random.default_rng(0)
    surface = rng.normal(size=(6, 5))
    found = paper.simulation.pure(surface + rng.normal(size=(6, 1)) + rng.normal(size=5) + 3)
    np.testing.assert_allclose(found, paper.simulation.pure(surface), atol=1e-12)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-12)


# ---------------------------------------------------------------------------------------- boosting


@pytest.fixture(scope="module")
def rows() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.uniform(size=(200, 3)), columns=["a", "b", "c"])
    return x, np.sin(5 * x["b"]) + 2 * (x["a"] - 0.5) * (x["c"] - 0.5) + 0.1 * rng.normal(size=200)


def test_one_step_is_the_best_least_squares_fit(paper: Any, rows: Any) -> None:
    """Penalised normal equations of every learner, and the residual sums of squares, written out."""
    x, y = rows[0], rows[1].to_numpy()
    fitted = paper.boosting.boost(x, y, x, y, pairs=True, steps=1, rate=1.0)
    r = y - y.mean()
    sums, fits = {}, {}
    for features in [("a",), ("b",), ("c",), ("a", "b"), ("a", "c"), ("b", "c")]:
        learner = paper.boosting.make_learner(features, x, 4.0)
        design = learner.design(x)
        size = {1: paper.boosting.FUNCTIONS, 2: paper.boosting.PAIR_FUNCTIONS}[len(features)]
        single = np.diff(np.eye(size), n=2, axis=0)
        single = single.T @ single
        eye = np.eye(size)
        penalty = single if len(features) == 1 else np.kron(single, eye) + np.kron(eye, single)
        penalty = penalty + 1e-6 * np.eye(len(penalty))
        gram = design.T @ design
        # The lambda at which tr(2H - H'H) is 4, by bisection; H and S = (B'B + lambda P)^-1 B'B share traces.
        low, high = -20.0, 20.0
        for _ in range(50):
            middle = (low + high) / 2
            inner = np.linalg.solve(gram + np.exp(middle) * penalty, gram)
            low, high = (middle, high) if np.trace(2 * inner - inner @ inner) > 4 else (low, middle)
        hat = design @ np.linalg.solve(gram + np.exp(middle) * penalty, design.T)
        fits[features] = hat @ r
        sums[features] = np.sum((r - hat @ r) ** 2)
    best = min(sums, key=sums.get)
    assert [learner.features for learner, _ in fitted.steps] == [best] == [("b",)]
    np.testing.assert_allclose(fitted.predict(x, 1), y.mean() + fits[best], atol=1e-5)


def test_many_steps_approach_the_unpenalised_fit(paper: Any, rows: Any) -> None:
    x, y = rows[0][["a", "b"]], rows[1].to_numpy()
    fitted = paper.boosting.boost(x, y, x, y, df=12.0, rate=0.5, steps=3000, patience=3000)
    designs = [paper.boosting.make_learner((name,), x, 12.0).design(x) for name in x]
    design = np.concatenate(designs, axis=1)
    least = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    error = y - fitted.predict(x, 3000)
    assert np.sum(least**2) <= np.sum(error**2) <= 1.005 * np.sum(least**2)
    early = y - fitted.predict(x, 5)
    assert np.sum(early**2) > 1.1 * np.sum(least**2)


def test_boosting_stops_at_the_best_validation_error(paper: Any, rows: Any) -> None:
    x, y = rows[0], rows[1].to_numpy()
    noise = np.random.default_rng(1).normal(size=len(y))
    fit, held = slice(None, 120), slice(120, None)
    fitted = paper.boosting.boost(
        x[fit], (y + noise)[fit], x[held], (y + noise)[held], pairs=True, steps=300, patience=40
    )
    errors = [
        np.mean(((y + noise)[held] - fitted.predict(x[held], steps)) ** 2)
        for steps in range(len(fitted.steps) + 1)
    ]
    assert fitted.best == int(np.argmin(errors)) < len(fitted.steps) == fitted.best + 40
    np.testing.assert_array_equal(fitted.predict(x), fitted.predict(x, fitted.best))


# ---------------------------------------------------------------------------------------- shared parts


def test_sizes_are_changed_by_name(paper: Any) -> None:
    size = paper.pairs.SIZES["quick"]
    changed = paper.output.change(size, ["rows=300,500", "seeds=1", "solvers=adam"])
    assert changed == replace(size, rows=(300, 500), seeds=1, solvers=("adam",))
    with pytest.raises(SystemExit, match="--with knows features, rows"):
        paper.output.change(size, ["row=3"])


def test_the_store_computes_once(paper: Any, tmp_path: Path) -> None:
    run = paper.output.Run("x", "tiny", paper.pairs.SIZES["tiny"], tmp_path)
    calls: list[int] = []

    def compute() -> dict[str, Any]:
        calls.append(1)
        return {"value": len(calls)}

    assert paper.output.Store(run).get({"n": 1}, compute) == {"value": 1}
    assert paper.output.Store(run).get({"n": 1}, compute) == {"value": 1}
    assert paper.output.Store(run).get({"n": 2}, compute) == {"value": 2}
    again = paper.output.Store(replace(run, again=True))
    assert again.get({"n": 1}, compute) == again.get({"n": 1}, compute) == {"value": 3}
    assert paper.output.Store(run).get({"n": 1}, compute) == {"value": 3}


def test_the_full_forms_are_those_of_the_paper(paper: Any) -> None:
    assert asdict(paper.pairs.SIZES["full"]) | {"solvers": ()} == {
        "features": 5, "rows": (2000, 4000, 8000), "ranks": (1, 5, 15), "seeds": 10, "solvers": (),
        "signal_to_noise": 0.5,
    }  # fmt: skip
    scalability = paper.scalability.SIZES["full"]
    assert (scalability.rows, scalability.bam) == ((6000, 12000, 18000), (3, 6, 9, 12))
    assert scalability.variational[-1] == 96
    benchmark = paper.benchmark.SIZES["full"]
    assert (len(benchmark.sets), benchmark.splits, benchmark.ranks) == (7, 10, (1, 5, 10, 15))
    assert paper.interpretability.SIZES["full"].rows == 10_000
    assert paper.sparsity.SIZES["full"].features == 20


def test_numbers_in_markdown(paper: Any) -> None:
    values = [3.0, 0.01234567, 1234567.0, 12345.678, float("nan"), "bcd"]
    assert [paper.markdown.number(v) for v in values] == [
        "3",
        "0.0123",
        "1,234,567",
        "12,300",
        "",
        "bcd",
    ]


# ---------------------------------------------------------------------------------------- experiments


def test_estimation_and_prediction(paper: Any, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One fit for both; the exact model's surfaces are the truth with a known error here."""
    monkeypatch.setattr(paper.pairs.mgcv, "is_present", lambda: True)
    monkeypatch.setattr(paper.pairs, "has_ti", lambda: False)

    def fit_exactly(truth: Any, train: Any, fresh: Any, method: Any) -> Any:
        axis = paper.pairs.grid_axis()
        wave = np.cos(2 * np.pi * axis)
        bumps = {pair: truth.surface(pair, axis, axis) + np.outer(wave, wave) for pair in truth.pairs}
        return 1.0, truth.mean(fresh) + 0.5, bumps

    monkeypatch.setattr(paper.pairs, "_fit_mgcv", fit_exactly)
    monkeypatch.setattr(paper.pairs, "FRESH_ROWS", 200)
    changes = {"module": paper.pairs, "rows": (120,), "ranks": (1,)}
    tiny(paper, out, "estimation", **changes)
    table = pd.read_csv(out / "estimation.csv").set_index("method")
    # The mean of cos^2 cos^2 over a grid is 1/4.
    assert table.loc["mgcv bam", "mse"] == pytest.approx(0.25, abs=1e-3)
    machine = table.loc["AFM F=1, variational"]
    assert machine["minus_mgcv"] == pytest.approx(machine["mse"] - 0.25, abs=1e-3)
    monkeypatch.setattr(paper.pairs, "_fit_keras", None)
    tiny(paper, out, "prediction", **changes)
    table = pd.read_csv(out / "prediction.csv").set_index("method")
    assert table.loc["mgcv bam", "error"] == pytest.approx(0.25)
    assert 0 < table.loc["AFM F=1, variational", "error"] < 1.5
    assert json.loads((out / "prediction.json").read_text())["form"] == "tiny"


def test_formulas_of_the_exact_models(paper: Any) -> None:
    truth = paper.simulation.draw_truth(3, seed=0)
    exact = paper.pairs.formula_of(truth, paper.pairs.Method(paper.pairs.EXACT))
    assert exact.startswith("y ~ s(x1) + s(x2) + s(x3) + ti(x1, x2, ")
    assert exact.count("ti(") == paper.pairs.bam_formula(truth).count("ti(") == 3


def test_scalability(paper: Any, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = paper.scalability.fit_once(120, 3, "variational")
    assert figures["seconds"] > 0 < figures["processor"]
    assert figures["peak"] >= figures["grown"] >= 0

    def known(rows: int, features: int, solver: str) -> dict[str, float]:
        time = 0.1 * features**1.5
        return {"seconds": 9.0, "processor": time, "epochs": 7, "peak": 500.0, "grown": 3.0 * features}

    monkeypatch.setattr(paper.scalability, "fit_in_own_process", known)
    tiny(paper, out, "scalability", variational=(3, 6, 12, 24))
    slopes = pd.read_csv(out / "scalability_slopes.csv").set_index("over")
    np.testing.assert_allclose(slopes["processor"], 1.5, atol=1e-4)
    np.testing.assert_allclose(slopes["grown"], 1.0, atol=1e-4)
    assert list(slopes.index) == ["p to 12", "all p"]


def test_benchmark(paper: Any, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(size=(80, 2)), columns=["a", "b"])
    data["y"] = 100 + data["a"] + data["b"] + 0.1 * rng.normal(size=80)
    monkeypatch.setattr(paper.benchmark, "read_set", lambda name: (data, "y"))
    asked = []

    def fit(rows: Any, terms: str, epochs: int) -> Any:
        asked.append((terms, epochs))
        assert len(rows.test) == 16
        assert len(rows.held_out) == 10
        assert len(rows.fitting) + len(rows.held_out) == len(rows.train) == 64
        return rows.test["y"].to_numpy() + 10, {"epochs": 3}

    monkeypatch.setattr(paper.benchmark, "fit_adam", fit)
    monkeypatch.setattr(paper.benchmark, "fit_variational", lambda rows: (rows.test["y"].to_numpy(), {}))
    tiny(paper, out, "benchmark", ranks=(1, 5), splits=2, sets=("diabetes", "yacht:1"), steps=30)
    assert ("s(., df=15, knots='even')", 2) in asked
    assert ("ahofm(., D=3, F=5, df=15, knots='even')", 2) in asked
    table = pd.read_csv(out / "benchmark.csv")
    assert table.groupby("set")["splits"].unique().to_dict() == {"diabetes": [2], "yacht": [1]}
    table = table[table["set"] == "diabetes"].set_index("method")
    assert table.loc["AHOFM", "ours"] == pytest.approx(10)
    assert table.loc["AHOFM", ["paper", "paper_sd"]].tolist() == [63.65, 9.672]
    assert table.loc["variational", "ours"] == 0
    assert table.loc["GAMBoost", "ours"] < 1.5
    targets = pd.read_csv(out / "benchmark_targets.csv").set_index("set").loc["diabetes"]
    y = data["y"].to_numpy()
    assert targets["constant"] == pytest.approx(y.mean() - np.sqrt(143.7**2 - y.var()), rel=1e-4)


def test_adam_and_variational_fits_of_the_benchmark(paper: Any) -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.uniform(size=(100, 3)), columns=["a", "b", "c"])
    data["y"] = np.sin(3 * data["a"]) + rng.normal(size=100)
    rows = paper.benchmark.split_rows(data, "y", seed=1)
    size = paper.benchmark.SIZES["tiny"]
    assert set(paper.benchmark.measure(rows, "GAM", None, size)) >= {"rmse", "validation", "epochs"}
    assert paper.benchmark.measure(rows, "variational", None, size)["rmse"] < 2


@pytest.mark.parametrize(
    ("ours", "verdict"), [(4.2, "agrees"), (2.0, "ours is lower"), (5.9, "ours is higher")]
)
def test_verdicts(paper: Any, ours: float, verdict: str) -> None:
    assert paper.benchmark.judge(ours, 4.181, 0.699) == verdict


def test_the_papers_tables_hold_the_repeated_value(paper: Any) -> None:
    one, two = paper.published.TABLE_1, paper.published.TABLE_2
    assert one["airfoil"]["HOFM"] == two["airfoil"]["GAMBoost"] == (79.03, 51.29)
    for name in one:
        assert two[name]["A(HO)FM"] in (one[name]["AFM"], one[name]["AHOFM"]), name


@pytest.mark.filterwarnings("ignore:The predictors of .* leave the range")
def test_interpretability(paper: Any, out: Path) -> None:
    tiny(paper, out, "interpretability")
    table = pd.read_csv(out / "interpretability.csv")
    assert table["true"].sum() == pytest.approx(1)
    assert table["estimated"].sum() == pytest.approx(1, abs=1e-5)
    assert sorted(table["order"].value_counts().items()) == [(1, 4), (2, 6), (3, 4)]


def test_true_variances_of_a_known_mean(paper: Any) -> None:
    from ahofm_keras.datasets import Simulation

    def mean(frame: pd.DataFrame) -> np.ndarray:
        values = np.cos(2 * np.pi * frame["time"]) * (1 + np.cos(4 * np.pi * frame["lon"]))
        return values.to_numpy()

    found = paper.interpretability.true_variances(Simulation(pd.DataFrame(), mean))
    assert {names: round(v, 6) for names, v in found.items() if v > 1e-9} == {
        ("time",): 0.5, ("time", "lon"): 0.25,
    }  # fmt: skip


def test_convergence(paper: Any, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper.convergence, "LABELS", ("bcd", "variational"))
    tiny(paper, out, "convergence", rows=120)
    traces = pd.read_csv(out / "convergence_traces.csv")
    own = traces[traces["solver"] == "bcd"]
    assert own["epoch"].tolist() == [1, 2, 3]
    assert (np.diff(own["objective"]) <= 1e-6).all()
    assert (np.diff(own["processor"]) > 0).all()


def test_the_objective_is_the_loss_that_keras_reports(paper: Any) -> None:
    import ahofm_keras as ak

    truth = paper.simulation.draw_truth(3, seed=0)
    rows = paper.simulation.draw_rows(truth, 100, 0.5, seed=0)
    model = ak.AdditiveModel("y ~ ahofm(x1, x2, x3, D=2, F=2, df=6)", rows)
    reported = model.evaluate(rows, return_dict=True)["loss"]
    assert sum(map(float, model.losses)) > 1e-6 * reported
    assert paper.convergence.objective(model, rows) == pytest.approx(reported, rel=1e-5)


def test_sparsity(paper: Any, out: Path) -> None:
    tiny(paper, out, "sparsity", rows=200, features=4, cases=("1+0",))
    table = pd.read_csv(out / "sparsity.csv")
    assert table[["pairs", "triples"]].values.tolist() == [[1, 0]]
    assert table["error"].iloc[0] < 1


def test_kept_interactions_are_counted(paper: Any) -> None:
    truth = paper.sparsity.draw_truth(6, pairs=2, triples=1, seed=0)
    assert [len(truth.of_order(order)) for order in (1, 2, 3)] == [5, 2, 1]
    x = np.random.default_rng(0).uniform(size=(200_000, 6))
    assert np.var(truth.mean(x)) == pytest.approx(3, rel=0.03)
    (first, second), (triple,) = map(list, (truth.of_order(2), truth.of_order(3)))
    pairs = pd.DataFrame({"label": [":".join(sorted(first)), ":".join(sorted(second)), "x1:x9"]})
    triples = pd.DataFrame({"label": [":".join(sorted(triple, reverse=True)), "x1:x2:x9"]})
    shares = {2: pairs.assign(share=[0.2, 0.005, 0.1]), 3: triples.assign(share=[0.3, 0.0])}
    found = paper.sparsity.count_kept(shares, truth)
    assert found == {
        "pairs_found": 1, "pairs_false": 1, "triples_found": 1, "triples_false": 0,
        "interactions": pytest.approx(0.605), "share": pytest.approx(0.505 / 0.605),
    }  # fmt: skip


def test_the_page_of_all_experiments(
    paper: Any, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Runs last: the page is made from what the tests above wrote."""
    if not all((out / f"{name}.json").exists() for name in paper.page.EXPERIMENTS):
        pytest.skip("needs the outputs of the other tests")
    monkeypatch.setattr(sys, "argv", ["page.py", "--out", str(out), "--docs", str(tmp_path)])
    paper.page.main()
    page = (tmp_path / "paper.md").read_text()
    assert re.findall(r"^## (\d)\.", page, re.M) == list("1234567")
    for link in re.findall(r"\]\((images/[^)]+)\)", page):
        assert (tmp_path / link).stat().st_size > 1000
    assert page.count("![") == len(list((tmp_path / "images" / "paper").iterdir()))
    assert "`python examples/paper/sparsity.py --tiny`" in page
    assert "79.03 (51.29)" in page
    for line in re.findall(r"(?:^\|.*\n)+", page, re.M):
        assert len({row.count("|") for row in line.splitlines()}) == 1
    (out / "sparsity.json").unlink()
    paper.page.main()
    assert "sparsity.py --quick" in capsys.readouterr().out
    assert "## 7." not in (tmp_path / "paper.md").read_text()
