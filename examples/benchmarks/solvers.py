"""All pairs of p features: time, memory and error of each solver, beside mgcv's bam.

    python examples/benchmarks/solvers.py              # p = 3, 6, 9, 12; bam alone may take an hour
    python examples/benchmarks/solvers.py --quick      # smaller sizes
    python examples/benchmarks/solvers.py --skip bam,adam
    python examples/benchmarks/solvers.py --million    # a million rows, ten features

The setting is that of the paper's section "Scalability": standard normal features, n = 6000, every pair
has an effect of its own. The truth is known, so the error is that of the estimated mean: its mean
squared distance from the true one, whose variance is 1, on fresh rows clipped to the training range.

"variational" is one fit, as the others are; "averaged" is what users get by default: fits from so many
starts that further ones would hardly change the error, averaged.

Each fit is a process of its own, so that peak memory is its own too. "fit" is `model.fit` or `bam()`;
"total" goes from the rows in memory to predictions of fresh ones, so it includes the constructor of the
model; imports are in neither. "grown" is the peak without what the imports took. bam needs Rscript and
mgcv, and runs with its defaults (fREML, one thread).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from memory import peak_megabytes
from scipy.stats import norm

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

AVERAGED = "averaged"
SOLVERS = ("variational", AVERAGED, "bcd", "adam", "bam")
TRACE = "variational, sweep by sweep"
FRESH_ROWS = 10_000

BAM = """
folder <- commandArgs(trailingOnly = TRUE)[1]
discrete <- commandArgs(trailingOnly = TRUE)[2] == "TRUE"
suppressPackageStartupMessages(library(mgcv))
peak <- function() {
  if (!file.exists("/proc/self/status")) return(sum(gc()[, 6]))
  line <- grep("^VmHWM", readLines("/proc/self/status"), value = TRUE)
  as.numeric(gsub("[^0-9]", "", line)) / 1024
}
train <- read.csv(file.path(folder, "train.csv"))
fresh <- read.csv(file.path(folder, "fresh.csv"))
formula <- as.formula(readLines(file.path(folder, "formula.txt")))
imported <- peak()
start <- proc.time()[["elapsed"]]
model <- bam(formula, data = train, discrete = discrete)
fitted <- proc.time()[["elapsed"]]
most <- peak()
error <- mean((predict(model, fresh) - fresh$mean)^2)
cat(sprintf('{"fit": %.3f, "total": %.3f, "peak": %.1f, "grown": %.1f, "error": %.8g}\\n',
  fitted - start, proc.time()[["elapsed"]] - start, most, most - imported, error))
"""


@dataclass(frozen=True)
class Setting:
    """What is simulated and which model is fitted to it.

    Args:
        rows: number of training rows.
        features: number of features p.
        signal: variance of the true mean over that of the noise.
        waves: number of functions of a feature that the true effects are made of.
        seed: of features, coefficients and noise.
        rank: F of the `ahofm` term, None for the library's default.
    """

    rows: int
    features: int
    signal: float = 1.0
    waves: int = 2
    seed: int = 0
    rank: int | None = None

    @property
    def names(self) -> list[str]:
        return [f"x{j}" for j in range(self.features)]

    @property
    def formula(self) -> str:
        rank = "" if self.rank is None else f", F={self.rank}"
        return f"y ~ ahofm({', '.join(self.names)}, D=2{rank})"

    @property
    def bam_formula(self) -> str:
        terms = [f"s({name}, k = 10)" for name in self.names]
        terms += [f"ti({a}, {b})" for a, b in combinations(self.names, 2)]
        return f"y ~ {' + '.join(terms)}"


def waves(x: np.ndarray, size: int) -> np.ndarray:
    """Smooth functions of a standard normal feature, `(size, n)`: mean 0, variance 1, uncorrelated."""
    orders = np.arange(1, size + 1)[:, np.newaxis]
    return np.sqrt(2) * np.cos(np.pi * orders * norm.cdf(x))


def draw_truth(features: int, size: int, rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    """A random mean: main effects and effects of all pairs, each with the same share of the variance.

    Slow waves weigh more than fast ones. A pair's coefficients have full rank and are drawn for that
    pair alone: nothing about the truth suits factors that all pairs share.
    """
    decay = 1 / np.arange(1, size + 1)
    share = 1 / np.sqrt(features * (features + 1) / 2)

    def scaled(coefficients: np.ndarray) -> np.ndarray:
        return share * coefficients / np.linalg.norm(coefficients)

    main = [scaled(decay * rng.normal(size=size)) for _ in range(features)]
    pairs = {
        pair: scaled(np.outer(decay, decay) * rng.normal(size=(size, size)))
        for pair in combinations(range(features), 2)
    }

    def mean(x: np.ndarray) -> np.ndarray:
        bases = [waves(column, size) for column in x.T]
        total = sum(coefficients @ basis for coefficients, basis in zip(main, bases, strict=True))
        for (j, k), coefficients in pairs.items():
            total = total + np.sum(bases[j] * (coefficients @ bases[k]), axis=0)
        return total

    return mean


def simulate(setting: Setting) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training rows with the response `y`, and fresh rows with their true `mean`."""
    rng = np.random.default_rng(setting.seed)
    truth = draw_truth(setting.features, setting.waves, rng)
    x = rng.normal(size=(setting.rows, setting.features))
    train = pd.DataFrame(x, columns=setting.names)
    train["y"] = truth(x) + rng.normal(size=setting.rows) / np.sqrt(setting.signal)
    fresh_x = np.clip(rng.normal(size=(FRESH_ROWS, setting.features)), x.min(axis=0), x.max(axis=0))
    fresh = pd.DataFrame(fresh_x, columns=setting.names)
    fresh["mean"] = truth(fresh_x)
    return train, fresh


def measure(setting: Setting, solver: str) -> dict[str, float]:
    """Fit one model in this process."""
    import ahofm_keras as ak
    import ahofm_keras.model  # with TensorFlow, before time is taken

    train, fresh = simulate(setting)
    imported = peak_megabytes()
    start = time.perf_counter()
    model = ak.AdditiveModel(setting.formula, train)
    built = time.perf_counter()
    if solver == AVERAGED:
        model.fit(train, solver="variational", verbose=0)
    else:
        model.fit(train, solver=solver, restarts=0, verbose=0)
    fitted = time.perf_counter()
    peak = peak_megabytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)
        predicted = model.predict(fresh[setting.names])
    total = time.perf_counter() - start
    error = float(np.mean((predicted - fresh["mean"].to_numpy()) ** 2))
    return {
        "fit": fitted - built, "total": total, "peak": peak, "grown": peak - imported, "error": error,
    }  # fmt: skip


def trace(setting: Setting) -> dict[str, list[float]]:
    """Seconds and error after each sweep of the variational solver, without the time of looking."""
    import keras

    import ahofm_keras as ak
    import ahofm_keras.model  # with TensorFlow, before time is taken

    train, fresh = simulate(setting)
    inside = fresh[setting.names].clip(train[setting.names].min(), train[setting.names].max(), axis=1)
    model = ak.AdditiveModel(setting.formula, train)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)
        model.predict(inside)  # compiles what looking needs
    found: dict[str, list[float]] = {"seconds": [], "errors": []}
    looked = 0.0

    def look(epoch: int, logs: Any) -> None:
        nonlocal looked
        now = time.perf_counter()
        found["seconds"].append(now - start - looked)
        found["errors"].append(float(np.mean((model.predict(inside) - fresh["mean"].to_numpy()) ** 2)))
        looked += time.perf_counter() - now

    start = time.perf_counter()
    watcher = keras.callbacks.LambdaCallback(on_epoch_end=look)
    model.fit(train, solver="variational", verbose=0, callbacks=[watcher])
    return found


def seconds_to(error: float, traced: Mapping[str, list[float]]) -> float:
    """When the variational solver first had an error no larger, and never a larger one again."""
    seconds = float("nan")
    for now, reached in zip(traced["seconds"][::-1], traced["errors"][::-1], strict=True):
        if reached > error:
            break
        seconds = now
    return seconds


def in_own_process(setting: Setting, solver: str) -> dict[str, Any]:
    call = [sys.executable, __file__, "--one", json.dumps([vars(setting), solver])]
    return last_line(call, None)


def bam_in_own_process(setting: Setting, limit: float, discrete: bool) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        for name, frame in zip(("train", "fresh"), simulate(setting), strict=True):
            frame.to_csv(Path(folder) / f"{name}.csv", index=False)
        (Path(folder) / "formula.txt").write_text(setting.bam_formula + "\n")
        script = Path(folder) / "bam.R"
        script.write_text(BAM)
        return last_line(["Rscript", "--vanilla", str(script), folder, str(discrete).upper()], limit)


def run(setting: Setting, solver: str, limit: float) -> dict[str, float]:
    if solver in ("bam", "bam discrete"):
        return bam_in_own_process(setting, limit, discrete=solver == "bam discrete")
    return in_own_process(setting, solver)


def last_line(call: list[str], limit: float | None) -> dict[str, Any]:
    """The JSON that a process prints last; only a time if it is stopped, nothing if it fails."""
    try:
        answer = subprocess.run(call, capture_output=True, text=True, check=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"limit": float(limit or 0)}
    except subprocess.CalledProcessError as error:
        print("\n".join(error.stderr.strip().splitlines()[-3:]), file=sys.stderr)
        return {}
    for line in answer.stderr.splitlines():
        if "AhofmWarning:" in line:
            print(line.partition("AhofmWarning:")[2].strip(), file=sys.stderr)
    return json.loads(answer.stdout.splitlines()[-1])


def known_solvers() -> list[str]:
    """The solvers of the installed library; asked in a process of its own, since imports are large."""
    code = "from ahofm_keras.solvers import SOLVERS; print(*SOLVERS)"
    call = [sys.executable, "-c", code]
    answer = subprocess.run(call, capture_output=True, text=True, check=True)
    return answer.stdout.split()


def bam_found() -> bool:
    if shutil.which("Rscript") is None:
        return False
    call = ["Rscript", "--vanilla", "-e", "library(mgcv); cat(extSoftVersion()[['BLAS']])"]
    answer = subprocess.run(call, capture_output=True, text=True, check=False)
    if answer.returncode == 0:
        print(f"BLAS of R: {answer.stdout.strip() or 'its own'}")
    return answer.returncode == 0


def choose_solvers(skip: list[str], discrete: bool) -> list[str]:
    unknown = set(skip) - set(SOLVERS)
    if unknown:
        raise SystemExit(f"--skip knows {', '.join(SOLVERS)}. Received: {', '.join(sorted(unknown))}.")
    known = [*known_solvers(), AVERAGED]
    chosen = [solver for solver in SOLVERS if solver in known and solver not in skip]
    missing = [solver for solver in SOLVERS[:-1] if solver not in known]
    if missing:
        print(f"not in this version of the library: {', '.join(missing)}")
    if "bam" not in skip:
        found = bam_found()
        chosen += ["bam"] * found + ["bam discrete"] * (found and discrete)
        if not found:
            print("bam is left out: Rscript with mgcv was not found")
    return chosen


# Figures by number of features and solver.
Results = dict[tuple[int, str], dict[str, float]]


def ratio(one: Mapping[str, float], other: Mapping[str, float], key: str) -> float:
    """NaN where one of them was not measured."""
    return one.get(key, float("nan")) / other.get(key, float("nan"))


def cell(value: float, width: int, digits: int) -> str:
    return f"{value:{width}.{digits}f}" if np.isfinite(value) else f"{'-':>{width}}"


def label(setting: Mapping[str, Any]) -> str:
    """What a run is about, and the cores that it may use."""
    given = [f"{key} {value:,}" for key, value in setting.items() if value is not None]
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count()
    return f"{', '.join(given)}; cores {cores}"


def print_row(features: int, solver: str, results: Results) -> None:
    figures = results[features, solver]
    if "fit" not in figures:
        reason = f"stopped after {figures['limit']:.0f} s" if "limit" in figures else "failed"
        print(f"{features:>4}  {solver:14}{reason:>20}", flush=True)
        return
    variational = results.get((features, "variational"), {})
    bam = results.get((features, "bam"), {})
    cells = [
        cell(figures["fit"], 10, 2),
        cell(figures["total"], 10, 2),
        cell(figures["peak"], 10, 0),
        cell(figures["grown"], 8, 0),
        cell(figures["error"], 10, 5),
        cell(ratio(figures, variational, "fit"), 10, 1),
        cell(ratio(figures, variational, "total"), 12, 1),
        cell(ratio(figures, bam, "error"), 11, 2),
    ]
    print(f"{features:>4}  {solver:14}{''.join(cells)}", flush=True)


def print_table(fixed: Mapping[str, Any], sizes: list[int], solvers: list[str], limit: float) -> Results:
    """Measure and print p by p: the ratios of a row need the other rows of its p."""
    print(f"\nall pairs of p features, {label(fixed)}")
    print(
        f"{'p':>4}  {'solver':14}{'fit, s':>10}{'total, s':>10}{'peak, MB':>10}{'grown':>8}{'error':>10}"
        f"{'fit/var.':>10}{'total/var.':>12}{'error/bam':>11}",
        flush=True,
    )
    results: Results = {}
    for features in sizes:
        for solver in solvers:
            results[features, solver] = run(Setting(features=features, **fixed), solver, limit)
        for solver in solvers:
            print_row(features, solver, results)
    return results


def slope(results: Results, solver: str, key: str) -> float:
    """Of log time over log p; NaN with fewer than two sizes."""
    points = [(p, f[key]) for (p, name), f in results.items() if name == solver and key in f]
    if len(points) < 2:
        return float("nan")
    sizes, seconds = np.log(np.array(points)).T
    return float(np.polyfit(sizes, seconds, 1)[0])


def print_slopes(results: Results, solvers: list[str]) -> None:
    print("\nlog-log slope of time over p")
    print(f"{'solver':16}{'fit':>8}{'total':>8}")
    for solver in solvers:
        slopes = [slope(results, solver, key) for key in ("fit", "total")]
        print(f"{solver:16}{''.join(cell(value, 8, 2) for value in slopes)}")


def print_race(fixed: Mapping[str, Any], results: Results, sizes: list[int]) -> None:
    """When the variational solver is as good as Adam in the end."""
    for p in sizes:
        adam = results.get((p, "adam"), {})
        if "error" not in adam:
            continue
        traced = in_own_process(Setting(features=p, **fixed), TRACE)
        seconds = seconds_to(adam["error"], traced) if traced else float("nan")
        faster = adam["fit"] / seconds
        text = (
            "nan"
            if not np.isfinite(faster)
            else f"{seconds:.2f} of {adam['fit']:.2f} s: {faster:.1f} times"
        )
        print_verdict(f"p = {p}: adam's last error 20 times sooner", text, faster >= 20)


def print_wanted(results: Results, sizes: list[int]) -> None:
    """Say which of the wanted figures this run reached. Times are those of the fit, totals beside."""

    def of(features: int, solver: str) -> dict[str, float]:
        return results.get((features, solver), {})

    print("\nwanted of variational")
    for p in sizes:
        adam, own = of(p, "adam"), of(p, "variational")
        faster, total, error = (
            ratio(adam, own, "fit"),
            ratio(adam, own, "total"),
            ratio(own, adam, "error"),
        )
        text = f"{faster:.1f} times (total {total:.1f}) at {error:.2f} of its error"
        print_verdict(
            f"p = {p}: 20 times faster than adam, error no larger", text, faster >= 20 and error <= 1
        )
    bam, own = of(9, "bam"), of(9, "variational")
    least = {key: bam.get(key, bam.get("limit", float("nan"))) for key in ("fit", "total")}
    faster = ratio(least, own, "fit")
    text = f"{faster:.1f} times (total {ratio(least, own, 'total'):.1f}){' or more' * ('limit' in bam)}"
    print_verdict("p = 9: 50 times faster than bam", text, faster >= 50)
    power = slope(results, "variational", "fit")
    print_verdict("slope over p at most 1.1", f"{power:.2f}", power <= 1.1)
    error = ratio(of(6, "variational"), of(6, "bam"), "error")
    print_verdict("p = 6: error at most 1.2 of bam's", f"{error:.2f}", error <= 1.2)


def print_verdict(wanted: str, measured: str, holds: bool) -> None:
    if measured.startswith("nan"):
        measured, answer = "-", "not measured"
    else:
        answer = "holds" if holds else "does not hold"
    print(f"{wanted:52}{measured:50}{answer}")


def print_million(setting: Setting, solver: str = "variational") -> None:
    figures = in_own_process(setting, solver)
    if not figures:
        raise SystemExit(1)
    print(f"\nall pairs, {solver}, {label(vars(setting))}")
    print(f"{'fit, s':>10}{'total, s':>10}{'peak, MB':>10}{'grown':>10}{'error':>10}")
    print(
        f"{figures['fit']:10.1f}{figures['total']:10.1f}{figures['peak']:10.0f}{figures['grown']:10.0f}"
        f"{figures['error']:10.5f}"
    )


def read_arguments() -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return [name for name in text.split(",") if name]

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=names, help="values of p (3,6,9,12)")
    parser.add_argument("--rows", type=int, help="number of training rows (6000)")
    parser.add_argument("--signal", type=float, default=1.0, help="signal-to-noise ratio (1)")
    parser.add_argument(
        "--waves", type=int, default=2, help="of the truth (2; 3 is more than bam's default basis holds)"
    )
    parser.add_argument("--rank", type=int, help="F of the ahofm term (10; 5 for a million rows)")
    parser.add_argument("--seed", type=int, default=0, help="of the simulation")
    parser.add_argument("--skip", type=names, default=[], help=f"of {','.join(SOLVERS)}")
    parser.add_argument("--limit", type=float, default=3600, help="seconds for a fit of bam (3600)")
    parser.add_argument("--discrete", action="store_true", help="also bam(discrete = TRUE)")
    parser.add_argument("--million", action="store_true", help="only variational with 1,000,000 rows")
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    arguments = read_arguments()
    if arguments.one:
        setting, solver = json.loads(arguments.one)
        own = Setting(**setting)
        print(json.dumps(trace(own) if solver == TRACE else measure(own, solver)))
        return
    quick = arguments.quick
    if arguments.million:
        rows = arguments.rows or (100_000 if quick else 1_000_000)
        rank = arguments.rank or 5
        print_million(Setting(rows, 10, arguments.signal, arguments.waves, arguments.seed, rank))
        return
    solvers = choose_solvers(arguments.skip, arguments.discrete)
    fixed = {
        "rows": arguments.rows or (1500 if quick else 6000),
        "signal": arguments.signal,
        "waves": arguments.waves,
        "seed": arguments.seed,
        # With 5, the library's default, no model of that rank can come near this truth from p = 6 on.
        "rank": arguments.rank or 10,
    }
    sizes = [int(p) for p in arguments.features or (("3", "6") if quick else ("3", "6", "9", "12"))]
    results = print_table(fixed, sizes, solvers, arguments.limit)
    print_slopes(results, solvers)
    print_wanted(results, sizes)
    if "variational" in solvers and "adam" in solvers:
        print_race(fixed, results, sizes)


if __name__ == "__main__":
    main()
