"""How close are the predictions? Test errors on the paper's data sets, beside other libraries.

    AHOFM_DATA=folder python examples/benchmarks/accuracy.py            # everything; hours with EBM
    AHOFM_DATA=folder python examples/benchmarks/accuracy.py --quick    # two small sets, two splits
    AHOFM_DATA=folder python examples/benchmarks/accuracy.py --cache figures.json
    AHOFM_DATA=folder python examples/benchmarks/accuracy.py --first-seed 100    # to choose settings

Random 80/20 splits, every library with its default settings, nothing tuned on the test rows. With
`--cache` a figure that the file holds is not computed again; after a change of the library
`--again D=1,D=2,D=3` computes those anew. Peers that are not installed are left out.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from comparison.encoding import as_categories, as_codes
from comparison.problems import TASKS, Split, load, split

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
logging.getLogger("tensorflow").setLevel(logging.ERROR)  # many models in one process are what is wanted


# Predictions of the test rows, and what else is to be kept.
Predict = Callable[[Split], tuple[np.ndarray, dict[str, Any]]]
Results = dict[str, dict[str, list[dict[str, Any]]]]


@dataclass(frozen=True)
class Method:
    """A way to predict.

    Args:
        module: imported before the clock starts.
        predict: fits on the training rows and predicts the test rows.
    """

    module: str
    predict: Predict

    @property
    def installed(self) -> bool:
        return find_spec(self.module.partition(".")[0]) is not None


def ahofm(order: int) -> Predict:
    """This library with its defaults: smooths, and all their interactions up to `order`."""

    def predict(rows: Split) -> tuple[np.ndarray, dict[str, Any]]:
        import keras

        import ahofm_keras as ak
        import ahofm_keras.model  # with TensorFlow, before time is taken

        keras.utils.clear_session(free_memory=True)
        terms = "s(.)" if order == 1 else f"ahofm(., D={order})"
        model = ak.AdditiveModel(f"{rows.response} ~ {terms}", rows.train, seed=rows.seed)
        history = model.fit(rows.train, verbose=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ak.AhofmWarning)  # test rows outside the training range
            predicted = model.predict(rows.test)
        return predicted, {"edf": edf_by_order(model, history.history)}

    return predict


def edf_by_order(model: Any, history: Mapping[str, list[Any]]) -> list[float]:
    """Effective degrees of freedom: main effects, pairs, ...; else their sum; NaN without any."""
    posterior = getattr(model, "posterior", None)
    if posterior is not None:
        return [float(np.sum(edf)) for edf in (posterior.linear_edf, *posterior.factor_edf)]
    return [float(history.get("edf", [np.nan])[-1])]


def ebm(bags: int | None) -> Predict:
    """Explainable boosting machine; `bags` other than its default are a matter of time."""

    def predict(rows: Split) -> tuple[np.ndarray, dict[str, Any]]:
        from interpret.glassbox import ExplainableBoostingRegressor

        options = {} if bags is None else {"outer_bags": bags}
        model = ExplainableBoostingRegressor(random_state=rows.seed, **options)
        return model.fit(rows.train[rows.features], rows.y).predict(rows.test[rows.features]), {}

    return predict


def histogram_boosting(rows: Split) -> tuple[np.ndarray, dict[str, Any]]:
    """scikit-learn's; texts as categories, a level without training rows counts as missing."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    train, test = as_categories(rows, rows.train), as_categories(rows, rows.test)
    model = HistGradientBoostingRegressor(categorical_features="from_dtype", random_state=rows.seed)
    return model.fit(train, rows.y).predict(test), {}


def pygam(rows: Split) -> tuple[np.ndarray, dict[str, Any]]:
    """A spline of every number, a factor of every text, one lambda chosen on pyGAM's own grid.

    pyGAM refuses levels without training rows: they count as the most frequent one.
    """
    from pygam import LinearGAM, f, s
    from pygam.terms import TermList

    train, test = as_codes(rows, rows.train), as_codes(rows, rows.test)
    terms = [f(j) if name in rows.texts else s(j) for j, name in enumerate(rows.features)]
    model = LinearGAM(TermList(*terms))
    model.gridsearch(train.to_numpy(float), rows.y.to_numpy(), progress=False)
    return model.predict(test.to_numpy(float)), {}


def choose_methods(orders: list[int], skip: list[str], bags: int | None) -> dict[str, Method]:
    ebm_label = "EBM" if bags is None else f"EBM {bags} bags"
    peers = {
        "ebm": (ebm_label, Method("interpret.glassbox", ebm(bags))),
        "boosting": ("boosting", Method("sklearn.ensemble", histogram_boosting)),
        "pygam": ("pyGAM", Method("pygam", pygam)),
    }
    unknown = set(skip) - set(peers)
    if unknown:
        raise SystemExit(f"--skip knows {', '.join(peers)}. Received: {', '.join(sorted(unknown))}.")
    own = {f"D={order}": Method("ahofm_keras", ahofm(order)) for order in orders}
    others = dict(peers[key] for key in peers if key not in skip)
    return own | {label: method for label, method in others.items() if method.installed}


def measure(method: Method, rows: Split) -> dict[str, Any]:
    import_module(method.module)
    start = time.perf_counter()
    predicted, more = method.predict(rows)
    seconds = time.perf_counter() - start
    error = np.sqrt(np.mean((np.asarray(predicted) - rows.test[rows.response].to_numpy()) ** 2))
    return {"rmse": float(error), "seconds": seconds, **more}


class Cache:
    """Figures by set, seed and method, in a JSON file where one is given.

    Args:
        path: the file, or None.
        again: methods whose stored figures do not count.
    """

    def __init__(self, path: Path | None, again: list[str]) -> None:
        self.path = path
        stored = self._stored()
        self.figures = {key: stored[key] for key in stored if key.split("/")[2] not in again}

    def get(self, key: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if key not in self.figures:
            figure = self.figures[key] = compute()
            print(
                f"{key}: {figure['rmse']:.5g} in {figure['seconds']:.1f} s", file=sys.stderr, flush=True
            )
            self._store(key, figure)
        return self.figures[key]

    def _stored(self) -> dict[str, dict[str, Any]]:
        return json.loads(self.path.read_text()) if self.path and self.path.exists() else {}

    def _store(self, key: str, figure: dict[str, Any]) -> None:
        if self.path:
            # Another run may have added figures since; one that is stopped here loses none.
            new = self.path.with_name(f"{self.path.name}.{os.getpid()}")
            new.write_text(json.dumps({**self._stored(), key: figure}, indent=0))
            new.replace(self.path)


def collect(
    folder: Path, names: list[str], seeds: range, methods: Mapping[str, Method], cache: Cache
) -> Results:
    """Figures of every split, by data set and method."""
    results: Results = {name: {} for name in names}
    for name in names:
        data = load(folder, name)
        splits = [split(data, TASKS[name].response, seed) for seed in seeds]
        for label, method in methods.items():
            results[name][label] = [
                cache.get(f"{name}/{rows.seed}/{label}", lambda m=method, r=rows: measure(m, r))
                for rows in splits
            ]
    return results


def mean_errors(results: Results) -> pd.DataFrame:
    """Mean test error, a row a data set and a column a method; the paper's best is the last."""
    table = pd.DataFrame(
        {
            name: {label: np.mean([f["rmse"] for f in figures]) for label, figures in methods.items()}
            for name, methods in results.items()
        }
    ).T
    return table.assign(paper=[TASKS[name].paper for name in results])


def print_table(title: str, labels: list[str], rows: Mapping[str, list[str]]) -> None:
    width = 2 + max(len(text) for texts in (labels, *rows.values()) for text in texts)
    print(f"\n{title}")
    print(f"{'':22}" + "".join(f"{label:>{width}}" for label in labels))
    for name, cells in rows.items():
        print(f"{name:22}" + "".join(f"{cell:>{width}}" for cell in cells))


def error_cell(errors: list[float], digits: int) -> str:
    spread = np.std(errors, ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else float("nan")
    return f"{np.mean(errors):.{digits}f} ({spread:.{digits}f})"


def print_errors(results: Results, seeds: range) -> None:
    table = mean_errors(results)
    rows = {}
    for name, methods in results.items():
        digits = TASKS[name].digits
        cells = [error_cell([f["rmse"] for f in figures], digits) for figures in methods.values()]
        rows[name] = [*cells, f"{TASKS[name].paper:g}"]
    rows["mean rank"] = [f"{rank:.2f}" for rank in table.rank(axis=1).mean()]
    orders = [label for label in table if label.startswith("D=")]
    if len(orders) > 1:
        ranks = table.drop(columns=orders[:-1]).rank(axis=1).mean()
        rows[f"mean rank, {orders[-1]} only"] = [
            f"{ranks[label]:.2f}" if label in ranks else "" for label in table
        ]
    title = f"test RMSE, 80/20 splits of the seeds {seeds[0]} to {seeds[-1]}: mean (standard error)"
    print_table(title, list(table), rows)


def print_seconds(results: Results, labels: list[str]) -> None:
    rows = {
        name: [f"{np.mean([f['seconds'] for f in figures]):.2f}" for figures in methods.values()]
        for name, methods in results.items()
    }
    print_table("seconds a split, fit and prediction: mean", labels, rows)


def print_edf(results: Results, labels: list[str]) -> None:
    def cell(figures: list[dict[str, Any]]) -> str:
        size = min(len(figure["edf"]) for figure in figures)
        means = np.mean([figure["edf"][:size] for figure in figures], axis=0)
        return " + ".join(f"{value:.1f}" for value in means)

    rows = {name: [cell(methods[label]) for label in labels] for name, methods in results.items()}
    print_table("effective degrees of freedom by order: mean", labels, rows)


def print_targets(results: Results, label: str = "D=3") -> None:
    print(f"\nwanted of {label}, one setting for all sets")
    for name, methods in results.items():
        task = TASKS[name]
        if label not in methods:
            print(f"{name:14}< {task.target:<7g} not measured")
            continue
        error = np.mean([figure["rmse"] for figure in methods[label]])
        verdict = "holds" if error < task.target else "does not hold"
        print(f"{name:14}< {task.target:<7g} {error:.{task.digits}f}  {verdict}")


def names_of(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=names_of, help=f"of {','.join(TASKS)}")
    parser.add_argument("--splits", type=int, help="number of splits (10)")
    parser.add_argument("--first-seed", type=int, default=0, help="seed of the first split")
    parser.add_argument("--orders", type=names_of, default=["1", "2", "3"], help="values of D (1,2,3)")
    parser.add_argument("--skip", type=names_of, default=[], help="of ebm,boosting,pygam")
    parser.add_argument("--bags", type=int, help="outer bags of EBM, which takes 14 by default")
    parser.add_argument("--cache", type=Path, help="JSON file of figures")
    parser.add_argument("--again", type=names_of, default=[], help="methods to compute anew: D=2,D=3")
    parser.add_argument("--quick", action="store_true", help="two small sets, two splits")
    arguments = parser.parse_args()
    arguments.sets = arguments.sets or (["diabetes", "yacht"] if arguments.quick else list(TASKS))
    arguments.splits = arguments.splits or (2 if arguments.quick else 10)
    unknown = set(arguments.sets) - set(TASKS)
    if unknown:
        parser.error(f"unknown sets: {', '.join(sorted(unknown))}")
    if "AHOFM_DATA" not in os.environ:
        parser.error("set AHOFM_DATA to the folder of airfoil.csv, concrete.csv, ...")
    return arguments


def main() -> None:
    arguments = read_arguments()
    methods = choose_methods([int(d) for d in arguments.orders], arguments.skip, arguments.bags)
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.splits)
    cache = Cache(arguments.cache, arguments.again)
    folder = Path(os.environ["AHOFM_DATA"])
    results = collect(folder, arguments.sets, seeds, methods, cache)
    own = list(takewhile(lambda label: label.startswith("D="), methods))
    print_errors(results, seeds)
    print_seconds(results, list(methods))
    if own:
        print_edf(results, own)
        print_targets(results)


if __name__ == "__main__":
    main()
