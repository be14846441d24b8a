"""How much do further random starts change the test error?

    AHOFM_DATA=folder python examples/benchmarks/starts.py    # six sets, three splits: half an hour
    AHOFM_DATA=folder python examples/benchmarks/starts.py --sets yacht --splits 1 --starts 3

The variational solver averages the fits of several starts, and the average of fits predicts the mean of
their predictions (`tests/model/test_averaging.py`): so every start is fitted once, and predictions are
averaged here. Splits are those of accuracy.py. The table has the mean test error (RMSE) of one start, of
averages of three (the default up to 2,000 rows; disjoint ones) and of all; by how much the error of an
average of three depends on which three they are (standard deviation, percent); and what all starts
change against three (percent).
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from comparison.problems import TASKS, Split, load, split

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
logging.getLogger("tensorflow").setLevel(logging.ERROR)  # many models in one process are what is wanted

SETS = ("airfoil", "concrete", "diabetes", "energy", "forest_fires", "yacht")
DEFAULT = 3


def predictions(rows: Split, order: int, starts: int) -> np.ndarray:
    """Of the test rows, by each of the starts."""
    import keras

    import ahofm_keras as ak

    found = []
    for start in range(starts):
        keras.utils.clear_session(free_memory=True)
        model = ak.AdditiveModel(f"{rows.response} ~ ahofm(., D={order})", rows.train)
        model.fit(rows.train, restarts=0, seed=1000 * rows.seed + start, verbose=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ak.AhofmWarning)  # test rows outside the training range
            found.append(model.predict(rows.test))
    return np.array(found)


def errors(rows: Split, predicted: np.ndarray, averaged: int) -> np.ndarray:
    """Test errors of the averages of so many starts, each start in one of them."""
    groups = predicted[: len(predicted) // averaged * averaged].reshape(-1, averaged, len(rows.test))
    missed = groups.mean(axis=1) - rows.test[rows.response].to_numpy()
    return np.sqrt(np.mean(missed**2, axis=1))


def compare(data: pd.DataFrame, response: str, order: int, splits: int, starts: int) -> list[float]:
    """One start, three and all: mean errors; spread of three and change by all, in percent."""
    one, some, spreads, every = [], [], [], []
    for seed in range(splits):
        rows = split(data, response, seed)
        predicted = predictions(rows, order, starts)
        one.append(errors(rows, predicted, 1).mean())
        of_three = errors(rows, predicted, DEFAULT)
        some.append(of_three.mean())
        spreads.append(of_three.std(ddof=1) / of_three.mean() if len(of_three) > 1 else np.nan)
        every.append(errors(rows, predicted, starts).mean())
    change = np.mean(every) / np.mean(some) - 1
    return [np.mean(one), np.mean(some), np.mean(every), 100 * np.mean(spreads), 100 * change]


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default=",".join(SETS), help=f"of {','.join(TASKS)}")
    parser.add_argument("--orders", default="2,3")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--starts", type=int, default=9, help=f"at least {DEFAULT}")
    arguments = parser.parse_args()
    arguments.sets = arguments.sets.split(",")
    unknown = set(arguments.sets) - set(TASKS)
    if unknown or arguments.starts < DEFAULT or arguments.splits < 1:
        parser.error(f"unknown sets {sorted(unknown)}, no splits, or fewer than {DEFAULT} starts")
    if "AHOFM_DATA" not in os.environ:
        parser.error("set AHOFM_DATA to the folder of airfoil.csv, concrete.csv, ...")
    return arguments


def main() -> None:
    given = read_arguments()
    table = {}
    for name in given.sets:
        data = load(Path(os.environ["AHOFM_DATA"]), name)
        for order in map(int, given.orders.split(",")):
            table[name, f"D={order}"] = compare(
                data, TASKS[name].response, order, given.splits, given.starts
            )
            print(f"{name}, D={order}: done", file=sys.stderr, flush=True)
    columns = ["one", "three", f"all {given.starts}", "spread of three, %", "change by all, %"]
    frame = pd.DataFrame(table, index=columns).T
    print(frame.to_string(float_format=lambda value: f"{value:.4g}"))


if __name__ == "__main__":
    main()
