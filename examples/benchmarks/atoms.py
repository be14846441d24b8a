"""Values that many rows share: functions of their own and a larger k, together and apart.

    python examples/benchmarks/atoms.py                          # simulations: minutes
    AHOFM_DATA=folder python examples/benchmarks/atoms.py --sets bike,concrete --seeds 100 101

Each set is fitted with the basis of 20 functions and with the one that follows the data, both with and
without atoms. Scores are those of `kinds.py` on test rows: root mean squared error, log loss or Poisson
deviance, smaller is better; of simulations also the distance from the true means. CPU seconds are those
of the fit, with one start. `heaps` are values with effects of their own, `weak-counts` one that has
none.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from comparison.command import names_of
from comparison.fitted import SCORES, missed
from comparison.problems import Split
from comparison.sets import is_known_set, rows_of

import ahofm_keras as ak

SETS = ["heaps:16000", "weak-counts:60000"]
ARMS = [(20, False), (20, True), (None, False), (None, True)]


def read_arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=names_of, default=SETS, help="as kinds.py and large.py name them")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--orders", type=int, nargs="+", default=[1, 2], help="1 are main effects alone")
    arguments = parser.parse_args(given)
    unknown = [name for name in arguments.sets if not is_known_set(name)]
    if unknown:
        parser.error(f"unknown set {unknown[0]!r}")
    return arguments


def formula(rows: Split, order: int, size: int | None, atoms: bool) -> str:
    """Smooths of all features, or all their interactions up to an order."""
    numbers = [name for name in rows.features if name not in rows.texts]
    # Fewer distinct values have a smaller basis in any case.
    sized = [name for name in numbers if size and rows.train[name].nunique() > size]
    chosen = "'auto'" if atoms else "False"
    if order > 1:
        sizes = ", ".join(f"'{name}': {size}" for name in sized)
        options = f", atoms={chosen}" + (f", k={{{sizes}}}" if sized else "")
        return f"{rows.response} ~ ahofm({', '.join(rows.features)}, D={order}{options})"
    terms = [
        f"s({name}" + f", atoms={chosen}" * (name in numbers) + f", k={size}" * (name in sized) + ")"
        for name in rows.features
    ]
    return f"{rows.response} ~ {' + '.join(terms)}"


def score_arm(rows: Split, order: int, size: int | None, atoms: bool) -> tuple[float, float, int, float]:
    """Score, distance from the truth, number of atoms, and CPU seconds of one fit."""
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = formula(rows, order, size, atoms)
        model = ak.AdditiveModel(text, rows.train, family=rows.family, seed=rows.seed, starts=1)
        model.fit(rows.train, restarts=0, verbose=0)
        predicted = model.predict(rows.test)
    seconds = time.process_time() - started
    found = sum(feature.atoms for feature in model.design.features)
    score = SCORES[rows.family](predicted, rows.test[rows.response])
    off = missed(predicted, rows.truth) if rows.truth is not None else np.nan
    return score, off, found, seconds


def main(given: list[str] | None = None) -> None:
    arguments = read_arguments(given)
    print(
        f"{'set':20} {'seed':>4} {'D':>2} {'k':>5} {'atoms':>5} {'score':>12} {'missed':>8} {'CPU s':>6}"
    )
    for name in arguments.sets:
        for seed in arguments.seeds:
            rows = rows_of(name, seed)
            for order in arguments.orders:
                for size, atoms in ARMS:
                    score, off, found, seconds = score_arm(rows, order, size, atoms)
                    k = size or "data"
                    print(
                        f"{name:20} {seed:4} {order:2} {k!s:>5} {found:5} {score:12.5f} {off:8.4f} "
                        f"{seconds:6.1f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
