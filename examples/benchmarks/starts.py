"""Do further random starts change the test error?

    AHOFM_DATA=folder python examples/benchmarks/starts.py    # six sets, three splits: ten minutes
    AHOFM_DATA=folder python examples/benchmarks/starts.py --sets yacht --splits 1

The variational solver averages the fits of several starts, up to 20,000 rows so many that further ones
should change the error by less than 1 %. Here every model is fitted with that number K of
starts, and again with K others. The average of fits predicts the mean of their links
(`tests/model/test_averaging.py`), so the mean of both is the model with twice as many starts. Splits are
those of accuracy.py. The table has the mean number of starts; the mean test error (RMSE) of a single
start, of K starts (both times) and of 2 K; by how much the latter two differ, in percent; and by how
much, in either direction, it matters which K they are.
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
            splits = [split(data, TASKS[name].response, seed) for seed in range(given.splits)]
            table[name, f"D={order}"] = summarise([compare(rows, order) for rows in splits])
            print(f"{name}, D={order}: done", file=sys.stderr, flush=True)
    print(pd.DataFrame(table).T.to_string(float_format=lambda value: f"{value:.4g}"))


if __name__ == "__main__":
    main()
