"""What do more basis functions cost, and what do they bring?

    python examples/benchmarks/basis_size.py            # both; minutes
    python examples/benchmarks/basis_size.py --quick    # smaller sizes

First the time of a sweep by k, at a fixed number of rows, with its log-log slope: the penalty decides
how many functions are in use, so it should hardly rise. Then the error of the fitted mean by k, as a
share of the noise, for functions that are smooth, have spikes at some values, or have steps.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

FEATURES = [f"x{j}" for j in range(5)]
NOISE = 0.5
SPIKES = np.array([0.11, 0.3, 0.52, 0.55, 0.78])


def smooth(x: np.ndarray) -> np.ndarray:
    return np.sin(6 * x)


def spikes(x: np.ndarray) -> np.ndarray:
    """Smooth but for five narrow peaks."""
    near = np.exp(-(((x[:, None] - SPIKES) / 0.006) ** 2))
    return np.sin(6 * x) + 2 * near.sum(axis=1)


def steps(x: np.ndarray) -> np.ndarray:
    return np.floor(5 * x) % 2 + 0.5 * (x > 0.42)


KINDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "smooth": smooth,
    "spikes": spikes,
    "steps": steps,
}


def simulate(kind: str, rows: int, seed: int) -> pd.DataFrame:
    """Rows with the response `y` and its `mean`: a pair, and a main effect of the kind."""
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(rng.uniform(size=(rows, len(FEATURES))), columns=FEATURES)
    data.loc[:1] = np.array([[0.0], [1.0]])  # no fresh row lies beyond the training range
    shape = KINDS[kind]
    data["mean"] = shape(data.x0.to_numpy()) * (0.5 + data.x1) + np.cos(3 * data.x2) * data.x3
    data["y"] = data["mean"] + NOISE * rng.normal(size=rows)
    return data


def seconds_of_a_sweep(rows: int, k: int) -> tuple[float, float]:
    """Mean and median of CPU over all sweeps of a fit of pairs, with one start.

    The mean has the trials of further factors too, which may be rough before they are refused.
    """
    import ahofm_keras as ak
    from ahofm_keras.solvers.engine import Engine

    sweep, seconds = Engine.sweep, []

    def timed(*arguments: Any, **options: Any) -> Any:
        start = time.process_time()
        reached = sweep(*arguments, **options)
        seconds.append(time.process_time() - start)
        return reached

    data = simulate("smooth", rows, seed=100)
    formula = f"y ~ ahofm({', '.join(FEATURES)}, D=2, F=5, k={k})"
    with patch.object(Engine, "sweep", timed):
        ak.fit(formula, data, starts=1, restarts=0, verbose=0)
    return float(np.mean(seconds)), float(np.median(seconds))


def error(kind: str, rows: int, k: int | None, seed: int) -> float:
    """Root mean square by which a fit of pairs misses the mean of fresh rows, over the noise."""
    import ahofm_keras as ak

    train, fresh = (simulate(kind, count, seed + at) for at, count in enumerate((rows, 5000)))
    given = f", k={k}" if k else ""
    formula = f"y ~ ahofm({', '.join(FEATURES)}, D=2, F=5{given})"
    model = ak.fit(formula, train, restarts=0, verbose=0)
    missed = np.asarray(model.predict(fresh)).ravel() - fresh["mean"].to_numpy()
    return float(np.sqrt(np.mean(missed**2)) / NOISE)


def slope(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Of the logarithm of time over the logarithm of k."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    arguments = parser.parse_args()
    rows = 5_000 if arguments.quick else 20_000
    sizes = [20, 40, 80] if arguments.quick else [20, 40, 80, 160, 320, 640]
    seeds = range(100, 101 if arguments.quick else 103)
    warnings.simplefilter("ignore")
    seconds_of_a_sweep(1000, 20)  # loads and compiles
    seconds = []
    for k in sizes:
        seconds.append(seconds_of_a_sweep(rows, k))
        mean, median = (1000 * own for own in seconds[-1])
        print(f"k = {k:3d}: {mean:6.1f} ms of CPU a sweep, median {median:6.1f}", flush=True)
    means, medians = zip(*seconds, strict=True)
    print(f"{rows:,} rows, log-log slope {slope(sizes, means):.2f}, of the median ", end="")
    print(f"{slope(sizes, medians):.2f}\n")
    errors = pd.DataFrame(
        {
            (kind, count): {
                k or "default": np.mean([error(kind, count, k, seed) for seed in seeds])
                for k in [None, 20, 50, 100, 200]
            }
            for kind in KINDS
            for count in ([500] if arguments.quick else [500, 3_000, 20_000])
        }
    )
    print("Error over the noise, by k\n" + errors.round(3).to_string())


if __name__ == "__main__":
    main()
