"""What do all interactions cost Adam? Time an epoch and peak memory, as ratios of one run.

    python examples/benchmarks/cost.py            # everything; minutes
    python examples/benchmarks/cost.py --quick    # smaller sizes
    AHOFM_DATA=folder python examples/benchmarks/cost.py   # and the test errors on two data sets

Each measurement is a process of its own, so that peak memory is its own too. An epoch's time is the
median over the epochs after the first two, in which the graph is compiled.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# The best figures of the paper's two tables (labelled MSE there, but root mean squared errors).
PAPER = {"airfoil": ("sound_pressure", 4.18), "concrete": ("compressive_strength", 6.10)}


def simulate(rows: int, features: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({f"x{j}": rng.normal(size=rows) for j in range(features)})
    data["y"] = np.sin(data.x0) * data.x1 + data.x2**2 + rng.normal(size=rows)
    return data


def measure(rows: int, features: int, term: str, rank: int, epochs: int) -> dict[str, float]:
    """Fit one model in this process."""
    import resource
    import time

    import keras

    import ahofm_keras as ak
    import ahofm_keras.model  # with TensorFlow, before time is taken

    class Clock(keras.callbacks.Callback):
        def __init__(self) -> None:
            super().__init__()
            self.seconds: list[float] = []

        def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
            self._start = time.perf_counter()

        def on_epoch_end(self, epoch: int, logs: object = None) -> None:
            self.seconds.append(time.perf_counter() - self._start)

    data = simulate(rows, features)
    model = ak.gam(data, "y") if term == "s" else ak.ahofm(data, "y", D=3, F=rank)
    clock = Clock()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)  # a few epochs are no converged fit
        model.fit(
            data, solver="adam", batch_size=1024, epochs=epochs, validation_split=0.0, verbose=0,
            callbacks=[clock],
        )  # fmt: skip
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": float(np.median(clock.seconds[2:])), "megabytes": peak}


def in_own_process(rows: int, features: int, term: str = "ahofm", rank: int = 5) -> dict[str, float]:
    epochs = 12 if rows <= 50_000 else 7
    call = [sys.executable, __file__, "--one", json.dumps([rows, features, term, rank, epochs])]
    answer = subprocess.run(call, capture_output=True, text=True, check=True).stdout
    return json.loads(answer.splitlines()[-1])


def slope(sizes: list[int], seconds: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def print_ratio(rows: int, features: int) -> None:
    results = {term: in_own_process(rows, features, term) for term in ("s", "ahofm")}
    print(f"\nall interactions up to order 3 against none (p = {features}, n = {rows:,}, batch 1024)")
    print(f"{'':22}{'s(x) of each':>14}{'ahofm(D=3, F=5)':>18}{'ratio':>8}")
    for key, label, digits in (("seconds", "seconds an epoch", 4), ("megabytes", "peak memory, MB", 0)):
        plain, full = results["s"][key], results["ahofm"][key]
        print(f"{label:22}{plain:14.{digits}f}{full:18.{digits}f}{full / plain:8.2f}")


def print_scaling(label: str, sizes: list[int], **fixed: int) -> None:
    name = {"p": "features", "n": "rows", "F": "rank"}[label]
    results = [in_own_process(**{**fixed, name: size}) for size in sizes]
    seconds = [result["seconds"] for result in results]
    others = ", ".join(f"{key} = {value:,}" for key, value in fixed.items())
    print(f"\ntime an epoch over {label} ({others})")
    print(f"{label:>10}" + "".join(f"{size:>10,}" for size in sizes))
    print(f"{'seconds':>10}" + "".join(f"{value:>10.4f}" for value in seconds))
    print(f"{'MB':>10}" + "".join(f"{result['megabytes']:>10.0f}" for result in results))
    print(f"log-log slope: {slope(sizes, seconds):.2f}")


def print_accuracy(folder: Path, splits: int) -> None:
    """Test errors of the defaults on random 80/20 splits, beside the paper's best."""
    import ahofm_keras as ak
    import ahofm_keras.model  # with TensorFlow, before time is taken

    print(f"\ntest RMSE, {splits} random 80/20 splits, defaults, Adam: mean (standard deviation)")
    print(f"{'':12}{'D = 2':>16}{'D = 3':>16}{'paper, best':>14}")
    for name, (response, best) in PAPER.items():
        data = pd.read_csv(folder / f"{name}.csv")
        cells = []
        for order in (2, 3):
            errors = []
            for seed in range(splits):
                rows = np.random.default_rng(seed).permutation(len(data))
                test, train = np.split(rows, [len(data) // 5])
                model = ak.ahofm(data.iloc[train], response, D=order, seed=seed)
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", "Values outside", ak.AhofmWarning)
                    model.fit(data.iloc[train], solver="adam", verbose=0)
                    predicted = model.predict(data.iloc[test])
                errors.append(np.sqrt(np.mean((predicted - data[response].iloc[test]) ** 2)))
            cells.append(f"{np.mean(errors):.2f} ({np.std(errors):.2f})")
        print(f"{name:12}{cells[0]:>16}{cells[1]:>16}{best:>14.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(*json.loads(arguments.one))))
        return
    print_ratio(20_000, 10)
    if arguments.quick:
        print_scaling("p", [3, 12, 48], rows=10_000)
    else:
        print_scaling("p", [3, 6, 12, 24, 48, 96], rows=20_000)
        print_scaling("n", [10_000, 20_000, 40_000, 80_000, 160_000], features=10)
        print_scaling("F", [1, 2, 4, 8, 16, 32], rows=20_000, features=10)
    if "AHOFM_DATA" in os.environ:
        print_accuracy(Path(os.environ["AHOFM_DATA"]), 2 if arguments.quick else 10)


if __name__ == "__main__":
    main()
