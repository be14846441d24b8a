"""Do further random starts change the test error?

    AHOFM_DATA=folder python examples/benchmarks/starts.py    # six sets, three splits: ten minutes
    AHOFM_DATA=folder python examples/benchmarks/starts.py --sets yacht --splits 1
    AHOFM_DATA=folder python examples/benchmarks/starts.py --sets concrete --orders 3 --splits 1 \\
        --first-seed 100 --trace 6    # sweep by sweep: five minutes

The variational solver averages the fits of several starts, up to 20,000 rows so many that further ones
should change the error by less than 1 %. Here every model is fitted with that number K of
starts, and again with K others. The average of fits predicts the mean of their links
(`tests/model/test_averaging.py`), so the mean of both is the model with twice as many starts. Splits are
those of accuracy.py. The table has the mean number of starts; the mean test error (RMSE) of a single
start, of K starts (both times) and of 2 K; by how much the latter two differ, in percent; and by how
much, in either direction, it matters which K they are.

With `--trace K` every model is fitted from K starts, one by one, and looked at after each sweep: mean
test error of a start, test error of the average of all of them at that sweep, the same without the five
rows that the average is worst at in the end, how much starts differ on the test rows, and mean bound,
degrees of freedom and standard deviation of the noise in units of the response's. A start that has ended
stays where it is.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from comparison.problems import TASKS, Split, load, split

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
logging.getLogger("tensorflow").setLevel(logging.ERROR)  # many models in one process are what is wanted

SETS = ("airfoil", "concrete", "diabetes", "energy", "forest_fires", "yacht")  # naval: half an hour


def fit(rows: Split, order: int, seed: int, restarts: int | str) -> tuple[np.ndarray, int]:
    """Predictions of the test rows, and the number of starts."""
    import keras

    import ahofm_keras as ak
    import ahofm_keras.model  # with TensorFlow, before time is taken

    keras.utils.clear_session(free_memory=True)
    starts = restarts if restarts == "auto" else int(restarts) + 1
    model: Any = ak.AdditiveModel(f"{rows.response} ~ ahofm(., D={order})", rows.train, starts=starts)
    model.fit(rows.train, restarts=restarts, seed=seed, verbose=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)  # test rows outside the training range
        return model.predict(rows.test), model.starts


def compare(rows: Split, order: int) -> list[float]:
    """Number of starts; errors of one, of so many, of so many others and of both together."""
    seed = 1000 * rows.seed
    first, starts = fit(rows, order, seed, "auto")
    others, _ = fit(rows, order, seed + starts, starts - 1)
    single, _ = fit(rows, order, seed, 0)
    found = (single, first, others, (first + others) / 2)
    truth = rows.test[rows.response].to_numpy()
    return [starts, *(float(np.sqrt(np.mean((own - truth) ** 2))) for own in found)]


def trace(rows: Split, order: int, starts: int) -> pd.DataFrame:
    """What becomes of the test error in the course of some fits, a line for every fifth sweep."""
    import keras

    import ahofm_keras as ak

    class Watch(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            noise = float(self.model.posterior.dispersion) ** 0.5
            figures.append((logs["bound"], logs["edf"], noise))
            predicted.append(self.model.predict(rows.test))

    runs = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)
        for start in range(starts):
            keras.utils.clear_session(free_memory=True)
            figures: list[tuple[float, ...]] = []
            predicted: list[np.ndarray] = []
            model: Any = ak.AdditiveModel(f"{rows.response} ~ ahofm(., D={order})", rows.train, starts=1)
            model.fit(
                rows.train, restarts=0, seed=1000 * rows.seed + start, verbose=0, callbacks=[Watch()]
            )
            runs.append((np.array(figures), np.array(predicted)))
    truth, lines = rows.test[rows.response].to_numpy(), {}
    at_end = np.mean([predicted[-1] for _, predicted in runs], axis=0)
    usual = np.argsort(np.abs(at_end - truth))[:-5]
    longest = max(len(figures) for figures, _ in runs)
    for sweep in [*range(0, longest, 5), longest]:
        now = [min(sweep, len(figures) - 1) for figures, _ in runs]
        found = np.array([run[1][place] for run, place in zip(runs, now, strict=True)])
        apart = found.mean(axis=0) - truth
        bound, edf, noise = np.mean(
            [run[0][place] for run, place in zip(runs, now, strict=True)], axis=0
        )
        lines[sweep] = {
            "one start": np.sqrt(np.mean((found - truth) ** 2, axis=1)).mean(),
            "average": np.sqrt(np.mean(apart**2)),
            "usual rows": np.sqrt(np.mean(apart[usual] ** 2)),
            "starts differ": np.sqrt(found.var(axis=0).mean()),
            "bound": bound,
            "edf": edf,
            "noise": noise,
        }
    return pd.DataFrame(lines).T.rename_axis("sweep")


def summarise(found: list[list[float]]) -> dict[str, float]:
    """A line of the table, from the figures of all splits."""
    starts, one, first, others, twice = np.transpose(found)
    several = (first + others) / 2
    return {
        "starts": starts.mean(),
        "one start": one.mean(),
        "K starts": several.mean(),
        "2 K": twice.mean(),
        "change, %": 100 * (twice.mean() / several.mean() - 1),
        "which K, %": 100 * float(np.mean(np.abs(others - first) / several)) / 2,
    }


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default=",".join(SETS), help=f"of {','.join(TASKS)}")
    parser.add_argument("--orders", default="2,3")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0, help="of the splits (0)")
    parser.add_argument("--trace", type=int, default=0, metavar="K", help="sweeps of K starts")
    arguments = parser.parse_args()
    arguments.sets = arguments.sets.split(",")
    unknown = set(arguments.sets) - set(TASKS)
    if unknown or arguments.splits < 1:
        parser.error(f"unknown sets {sorted(unknown)}, or no splits")
    if "AHOFM_DATA" not in os.environ:
        parser.error("set AHOFM_DATA to the folder of airfoil.csv, concrete.csv, ...")
    return arguments


def main() -> None:
    given = read_arguments()
    table = {}
    for name in given.sets:
        data = load(Path(os.environ["AHOFM_DATA"]), name)
        for order in map(int, given.orders.split(",")):
            seeds = range(given.first_seed, given.first_seed + given.splits)
            splits = [split(data, TASKS[name].response, seed) for seed in seeds]
            if given.trace:
                for rows in splits:
                    print(f"{name}, D={order}, split {rows.seed}")
                    lines = trace(rows, order, given.trace)
                    print(lines.to_string(float_format=lambda value: f"{value:.4g}"), flush=True)
                continue
            table[name, f"D={order}"] = summarise([compare(rows, order) for rows in splits])
            print(f"{name}, D={order}: done", file=sys.stderr, flush=True)
    if table:
        print(pd.DataFrame(table).T.to_string(float_format=lambda value: f"{value:.4g}"))


if __name__ == "__main__":
    main()
