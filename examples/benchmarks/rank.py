"""What does rank cost, and what does it bring? Time of a sweep against F; surfaces beside exact ones.

    python examples/benchmarks/rank.py                                   # an hour, F = 80 most of it
    python examples/benchmarks/rank.py --only sweeps --ranks 5 10 20 --orders 2
    python examples/benchmarks/rank.py --only surfaces --F 5 15 --surfaces 2000 4000
    python examples/benchmarks/rank.py --again                           # after a change of the solver

Sweeps: 20,000 rows, 8 features, a surface of full rank for each pair, one start. A time is the median
over the sweeps that follow the first two, in processor seconds of one thread; in all of them there are F
factors of each order, the smoothing is chosen and no factor has been switched off yet. The slope is that
of the logarithms: 1 where the time is proportional to F. "peak" is the memory of the process.

Surfaces: the paper's estimation study (section 5.1: p = 5, ten surfaces, half as much signal as noise),
`ahofm` with each F of --F against exact `ti`, one start each: mean squared error of a surface on a grid,
its ratio to that of the exact model on the same rows, that of the predicted means of fresh rows, and
processor seconds (surfaces and predictions included).

Figures are kept in the folder --out, and what it holds is not computed again (--again does).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from comparison.kinds import SIGNAL_TO_NOISE
from comparison.runs import ONE_THREAD, QUIET
from memory import peak_megabytes
from pairs import slope

sys.path.append(str(Path(__file__).parents[1] / "paper"))
from rerun.output import Run, Store
from rerun.pairs import EXACT, FRESH_ROWS, Method, measure
from rerun.simulation import draw_rows, draw_truth

OUT = Path(__file__).parent / "results"
FIRST_SWEEPS = 2
STUDY_FEATURES = 5


def time_sweeps(rows: int, features: int, order: int, rank: int, sweeps: int) -> dict[str, float]:
    """Median seconds of a sweep over F factors of each order, in this process, and its peak memory."""
    import ahofm_keras as ak
    import ahofm_keras.model  # with TensorFlow, before time is taken
    from ahofm_keras.solvers.engine import Engine
    from ahofm_keras.solvers.settings import use_settings
    from ahofm_keras.solvers.starts import draw_factors

    sweep, seconds = Engine.sweep, []

    def timed(engine: Any, state: Any, *arguments: Any, **options: Any) -> Any:
        groups = engine.start().groups
        if len(state.groups) < len(groups):  # a fit starts with one group of each order
            state = draw_factors(replace(state, groups=groups), 0, engine.settings.start_variance)
        start = time.process_time()
        reached = sweep(engine, state, *arguments, **options)
        seconds.append(time.process_time() - start)
        return reached

    train = draw_rows(draw_truth(features, 0), rows, SIGNAL_TO_NOISE, 0)
    model = ak.AdditiveModel(f"y ~ ahofm(., D={order}, F={rank})", train, starts=1)
    # Sweeps of the start do not choose the smoothing: they are not what a fit is made of.
    with (
        use_settings(warm_up_sweeps=FIRST_SWEEPS, moves_off=("drop idle",)),
        patch.object(Engine, "sweep", timed),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", ak.AhofmWarning)  # a few sweeps are no converged fit
        model.fit(train, restarts=0, epochs=FIRST_SWEEPS + sweeps, verbose=0)
    return {"seconds": float(np.median(seconds[FIRST_SWEEPS:])), "peak": peak_megabytes()}


def in_own_process(*given: int) -> dict[str, Any]:
    call = [sys.executable, __file__, "--one", json.dumps(given)]
    environment = os.environ | ONE_THREAD | QUIET
    answer = subprocess.run(call, capture_output=True, text=True, check=False, env=environment)
    if answer.returncode:
        return {"failed": (answer.stderr.strip().splitlines() or ["no words"])[-1]}
    return json.loads(answer.stdout.splitlines()[-1])


def collect_sweeps(arguments: argparse.Namespace, store: Store) -> pd.DataFrame:
    """A row a rank: D, F, seconds of a sweep and peak memory; NaN where the process failed."""
    lines = []
    for order in arguments.orders:
        for rank in arguments.ranks:
            given = {"n": arguments.rows, "p": arguments.features, "D": order, "F": rank}
            given["sweeps"] = arguments.sweeps
            figures = store.get({"of": "sweep", **given}, lambda g=given: in_own_process(*g.values()))
            if "failed" in figures:
                print(f"D = {order}, F = {rank} failed: {figures['failed']}", file=sys.stderr)
            lines.append({"D": order, "F": rank, **figures})
    return pd.DataFrame(lines).reindex(columns=["D", "F", "seconds", "peak"])


def method_of(rank: str) -> Method:
    """The exact model, or one of rank F: a number or a word such as `auto`."""
    if rank == EXACT:
        return Method(EXACT)
    return Method(f"F={rank}", int(rank) if rank.isdigit() else rank, "variational")


def estimate(rows: int, seed: int, rank: str) -> dict[str, float]:
    """Mean squared error of a surface, that of the mean of fresh rows, and processor seconds."""
    import ahofm_keras.model  # noqa: F401  with TensorFlow, before time is taken

    truth = draw_truth(STUDY_FEATURES, seed)
    train = draw_rows(truth, rows, SIGNAL_TO_NOISE, seed)
    fresh = draw_rows(truth, FRESH_ROWS, SIGNAL_TO_NOISE, seed + 10_000)
    start = time.process_time()
    figures = measure(truth, train, fresh, method_of(rank))
    seconds = time.process_time() - start
    return {
        "mse": float(np.mean(list(figures["mse"].values()))),
        "prediction": figures["prediction"],
        "seconds": seconds,
    }


def collect_surfaces(arguments: argparse.Namespace, store: Store) -> pd.DataFrame:
    """A row a number of rows and rank: means over seeds, and the ratio to the exact model."""
    lines = []
    for rows in arguments.surfaces:
        for seed in arguments.seeds:
            for rank in (EXACT, *arguments.F):
                key = {"of": "surfaces", "n": rows, "seed": seed, "F": rank}
                figures = store.get(key, lambda r=rows, s=seed, f=rank: estimate(r, s, f))
                lines.append({"n": rows, "F": rank, **figures})
    means = pd.DataFrame(lines).groupby(["n", "F"], sort=False).mean()
    exact = means["mse"].xs(EXACT, level="F").reindex(means.index.get_level_values("n"))
    means.insert(1, "over ti", means["mse"] / exact.to_numpy())
    return means.reset_index()


def read_arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["sweeps", "surfaces"], help="one of the two tables")
    parser.add_argument(
        "--ranks", type=int, nargs="+", default=[5, 10, 20, 40, 80], help="F of the sweeps"
    )
    parser.add_argument("--orders", type=int, nargs="+", default=[2, 3], help="D of the sweeps (2 3)")
    parser.add_argument("--rows", type=int, default=20_000, help="n of the sweeps (20000)")
    parser.add_argument("--features", type=int, default=8, help="p of the sweeps (8)")
    parser.add_argument("--sweeps", type=int, default=5, help="that are timed (5)")
    parser.add_argument("--F", nargs="+", default=["5"], help="ranks of the surfaces: numbers, auto (5)")
    parser.add_argument(
        "--surfaces", type=int, nargs="+", default=[2000, 4000, 8000], help="n (2000 4000 8000)"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of the surfaces (0)")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of rank.jsonl")
    parser.add_argument("--again", action="store_true", help="compute stored figures anew")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    return parser.parse_args(given)


def main(given: list[str] | None = None) -> None:
    arguments = read_arguments(given)
    if arguments.one:
        print(json.dumps(time_sweeps(*json.loads(arguments.one))))
        return
    store = Store(Run("rank", "full", None, arguments.out, arguments.again))

    def show(table: pd.DataFrame, title: str) -> None:
        print(f"\n{title}")
        print(table.to_string(index=False, float_format=lambda value: f"{value:.4g}"), flush=True)

    if arguments.only != "surfaces":
        table = collect_sweeps(arguments, store)
        show(table, f"A sweep, n = {arguments.rows:,}, p = {arguments.features}: processor seconds, MB")
        for order, own in table.groupby("D"):
            print(f"D = {order}: log-log slope over F {slope(list(own.F), list(own.seconds)):.2f}")
    if arguments.only != "sweeps":
        show(collect_surfaces(arguments, store), "Surfaces: mean squared error, over that of exact ti")


if __name__ == "__main__":
    main()
