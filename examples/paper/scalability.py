"""Scalability: time and memory of a model of all pairs against the number of features, beside bam.

    python examples/paper/scalability.py --quick
    python examples/paper/scalability.py --full

Section "Scalability" of the paper: p in {3, 6, 9, 12} standard normal features, n in {6000, 12000,
18000}, a model with a surface for every pair. The factorization machine goes on to p = 96. The paper
does not say what the response is; here every pair has an effect, and all of them together are of rank 3,
so that it can be learned at p = 96 too. That suits the factorization machine: no errors are compared
here, only costs.

Each fit is a process of its own, so that its peak memory is its own too. Seconds are those of `fit` or
`bam()`; processor seconds, summed over cores, leave out what other work the machine had to do, and are
what is drawn and fitted. "grown" is the peak without what imports and data took.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rerun import mgcv
from rerun.output import Run, Store, execute, save_figure, write_table

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from memory import peak_megabytes

RANK = 5
_TRUE_RANK = 3


@dataclass(frozen=True)
class ScalabilitySize:
    """What is timed.

    Args:
        rows: values of n.
        bam: values of p for bam.
        variational: values of p for the variational solver.
        adam: values of p for Adam.
        limit: seconds after which bam is stopped; larger p of that n are then left out.
    """

    rows: tuple[int, ...] = (6000, 12000, 18000)
    bam: tuple[int, ...] = (3, 6, 9, 12)
    variational: tuple[int, ...] = (3, 6, 9, 12, 24, 48, 96)
    adam: tuple[int, ...] = (3, 6, 9, 12, 24, 48, 96)
    limit: float = 3600.0


SIZES = {
    "full": ScalabilitySize(),
    "quick": ScalabilitySize(rows=(6000,), bam=(3, 6, 9), adam=(3, 12, 48), limit=120.0),
    "tiny": ScalabilitySize(rows=(200,), bam=(), variational=(3, 6), adam=(), limit=60.0),
}


def simulate(rows: int, features: int, seed: int = 0) -> pd.DataFrame:
    """Standard normal features x1, x2, ... and a response with as much noise as signal."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, features))
    mean = np.zeros(rows)
    for _ in range(_TRUE_RANK):
        speed, shift = rng.uniform(0.5, 1.5, size=features), rng.uniform(0, 2 * np.pi, size=features)
        factors = np.sin(speed * x + shift)
        factors -= factors.mean(axis=0)
        # The sum of the products of all pairs.
        mean += (factors.sum(axis=1) ** 2 - np.sum(factors**2, axis=1)) / 2
    frame = pd.DataFrame(x, columns=[f"x{j + 1}" for j in range(features)])
    frame["y"] = (mean - mean.mean()) / mean.std() + rng.normal(size=rows)
    return frame


def bam_formula(names: list[str]) -> str:
    terms = [f"s({name}, k = 10)" for name in names]
    terms += [f"ti({a}, {b})" for a, b in combinations(names, 2)]
    return f"y ~ {' + '.join(terms)}"


def fit_once(rows: int, features: int, solver: str) -> dict[str, float]:
    """Fit one factorization machine in this process."""
    import ahofm_keras as ak
    import ahofm_keras.model  # with TensorFlow, before time is taken

    train = simulate(rows, features)
    before = peak_megabytes()
    model = ak.AdditiveModel(f"y ~ ahofm(., D=2, F={RANK})", train)
    start, busy = time.perf_counter(), time.process_time()
    history = model.fit(train, solver=solver, restarts=0, verbose=0)
    seconds, processor = time.perf_counter() - start, time.process_time() - busy
    peak = peak_megabytes()
    return {
        "seconds": seconds,
        "processor": processor,
        "epochs": len(history.epoch),
        "peak": peak,
        "grown": peak - before,
    }


def fit_in_own_process(rows: int, features: int, solver: str) -> dict[str, Any]:
    call = [sys.executable, __file__, "--one", str(rows), str(features), solver]
    answer = subprocess.run(call, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise SystemExit(f"{solver}, p = {features}, n = {rows} failed:\n{answer.stderr[-2000:]}")
    return json.loads(answer.stdout.splitlines()[-1])


def run_experiment(run: Run) -> None:
    table = collect(run)
    write_table(run, "scalability", table, "seconds of a fit and memory (MB)")
    slopes = fit_slopes(table)
    write_table(
        run, "scalability_slopes", slopes, "power of p with which processor seconds and memory grow", 2
    )
    save_figure(run, "scalability", draw(table))


def collect(run: Run) -> pd.DataFrame:
    """Figures of all fits, a row a fit."""
    size: ScalabilitySize = run.size
    store = Store(run)
    rows = []
    for n in size.rows:
        for method, counts in (("variational", size.variational), ("adam", size.adam)):
            for p in counts:
                key = {"method": method, "n": n, "p": p}
                figures = store.get(key, lambda n=n, p=p, m=method: fit_in_own_process(n, p, m))
                rows.append({**key, **figures})
        rows += _collect_bam(size, n, store)
    table = pd.DataFrame(rows)
    return table.reindex(columns=["method", "n", "p", "seconds", "processor", "epochs", "peak", "grown"])


def _collect_bam(size: ScalabilitySize, n: int, store: Store) -> list[dict[str, Any]]:
    """Up to the first p that takes too long."""
    if size.bam and not mgcv.is_present():
        print("bam is left out: Rscript with mgcv was not found")
        return []
    rows = []
    for p in size.bam:
        key = {"method": "bam", "n": n, "p": p}

        def compute(p: int = p) -> dict[str, Any]:
            train = simulate(n, p)
            return mgcv.fit_bam(bam_formula(list(train.columns[:-1])), train, limit=size.limit)

        figures = store.get(key, compute)
        if "seconds" not in figures:
            print(f"bam, n = {n}, p = {p}: stopped after {figures['limit']:.0f} s")
            break
        rows.append({**key, **figures})
    return rows


def fit_slopes(table: pd.DataFrame) -> pd.DataFrame:
    """Slopes of log processor seconds and log memory over log p: up to p = 12, and over all."""
    rows = []
    for (method, n), own in table.groupby(["method", "n"], sort=False):
        for reach, part in (("p to 12", own[own["p"] <= 12]), ("all p", own)):
            if len(part) < 2 or (reach == "all p" and (own["p"] <= 12).all()):
                continue
            slopes = {
                name: np.polyfit(np.log(part["p"]), np.log(part[name].clip(lower=1e-3)), 1)[0]
                for name in ("processor", "grown")
            }
            rows.append({"method": method, "n": n, "over": reach, **slopes})
    return pd.DataFrame(rows, columns=["method", "n", "over", "processor", "grown"])


def draw(table: pd.DataFrame) -> Any:
    """Memory above, processor seconds below, a column for each n, as in the paper's figure."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogFormatter

    from ahofm_keras.plotting.theme import BLUE, INK, VERMILLION

    sizes = list(dict.fromkeys(table["n"]))
    figure, axes = plt.subplots(
        2, len(sizes), figsize=(1.4 + 3.2 * len(sizes), 4.8), sharex=True, sharey="row", squeeze=False,
        layout="constrained",
    )  # fmt: skip
    colours = {"variational": BLUE, "adam": INK, "bam": VERMILLION}
    labels = {"variational": "AFM, variational", "adam": "AFM, Adam", "bam": "mgcv bam"}
    for column, n in enumerate(sizes):
        for row, (name, words) in enumerate(
            (("grown", "memory, MB"), ("processor", "processor seconds"))
        ):
            panel = axes[row, column]
            for method, own in table[table["n"] == n].groupby("method", sort=False):
                panel.plot(own["p"], own[name], marker="o", markersize=4, color=colours[method],
                           label=labels[method])  # fmt: skip
            panel.set(xscale="log", yscale="log")
            panel.yaxis.set_major_formatter("{x:g}")
            panel.yaxis.set_minor_formatter(LogFormatter(labelOnlyBase=False, minor_thresholds=(2, 0.4)))
            if column == 0:
                panel.set_ylabel(words)
        axes[0, column].set_title(f"n = {n:,}", loc="left")
        ticks = sorted(table["p"].unique())
        axes[1, column].set_xticks(ticks, ticks)
        axes[1, column].minorticks_off()
        axes[1, column].set_xlabel("p")
    axes[0, 0].legend(frameon=False, fontsize=8)
    return figure


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(fit_once(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])))
    else:
        execute("scalability", __doc__, SIZES, run_experiment)
