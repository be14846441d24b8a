"""Smooth, broken or stepped? Test errors by the form of the functions, and whether the evidence knows.

    AHOFM_DATA=folder python examples/benchmarks/steps.py            # everything; an hour
    AHOFM_DATA=folder python examples/benchmarks/steps.py --sets yacht stepped --splits 1

Forms: `smooth` (the default, `m=(3, 2)`), `line` (`m=(1, 1)`, broken lines), `step` (`bs="step"`) and
`chosen`: of the main effects each feature is made a step in turn, and those that gain more than a price
in evidence stay steps, in main effects and pairs. One start. Errors are shares of those of `smooth`, of
simulations against the true mean; gains are those of the evidence bound over `smooth`.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from comparison.kinds import KINDS, simulate_kind
from comparison.problems import TASKS, Split, load, split

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

FORMS = {"smooth": {}, "line": {"m": (1, 1)}, "step": {"bs": "step"}}
SIMULATED = dict.fromkeys(("stepped", "full-rank", "map"), 3000)
# By how much the evidence must gain from steps, and of how many values a feature must be to have any.
PRICE = 2.0
FEW_VALUES = 5
FIRST_SEED = 100


class Fitted(NamedTuple):
    error: float
    bound: float
    seconds: float


def fit(rows: Split, order: int, options: dict[str, dict[str, object]]) -> Fitted:
    """A model whose features have the options given by feature."""
    import ahofm_keras as ak

    terms = [f"s({', '.join([name, *written(options.get(name, {}))])})" for name in rows.features]
    if order > 1:  # takes the bases of the main effects
        terms.append(f"ahofm({', '.join(rows.features)}, D={order}, main=False)")
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)
        model = ak.AdditiveModel(f"{rows.response} ~ {' + '.join(terms)}", rows.train, seed=rows.seed)
        history = model.fit(rows.train, verbose=0, restarts=0).history
        predicted = model.predict(rows.test)
    wanted = rows.test[rows.response].to_numpy() if rows.truth is None else rows.truth
    error = float(np.sqrt(np.mean((predicted - wanted) ** 2)))
    return Fitted(error, history["bound"][-1], time.process_time() - start)


def written(options: dict[str, object]) -> list[str]:
    return [f"{name}={value!r}" for name, value in options.items()]


def numbers(rows: Split) -> list[str]:
    """Features that may have steps."""
    return [
        name
        for name in rows.features
        if name not in rows.texts and rows.train[name].nunique() > FEW_VALUES
    ]


def choose(rows: Split, smooth: Fitted) -> tuple[list[str], float]:
    """Features whose main effect gains from steps, and the CPU seconds of the search."""
    chosen, seconds = [], 0.0
    for name in numbers(rows):
        found = fit(rows, 1, {name: FORMS["step"]})
        seconds += found.seconds
        if found.bound > smooth.bound + PRICE:
            chosen.append(name)
    return chosen, seconds


def measure(rows: Split, orders: list[int]) -> dict[tuple[int, str], Fitted]:
    found, chosen, search = {}, [], 0.0
    for order in orders:
        for form, options in FORMS.items():
            found[order, form] = fit(rows, order, dict.fromkeys(numbers(rows), options))
        if order == orders[0]:
            main = found[1, "smooth"] if order == 1 else fit(rows, 1, {})
            chosen, search = choose(rows, main)
            print(f"    steps chosen: {', '.join(chosen) or 'none'} ({search:.0f} s)", flush=True)
        picked = fit(rows, order, dict.fromkeys(chosen, FORMS["step"])) if chosen else None
        found[order, "chosen"] = picked or found[order, "smooth"]
    return found


def get_rows(name: str, seed: int) -> Split:
    if name in KINDS:
        return simulate_kind(name, SIMULATED[name], seed)
    return split(load(Path(os.environ["AHOFM_DATA"]), name), TASKS[name].response, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=[*TASKS, *SIMULATED], choices=[*TASKS, *SIMULATED])
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--orders", type=int, nargs="+", default=[1, 2])
    arguments = parser.parse_args()
    for name in arguments.sets:
        print(name)
        every = [
            measure(get_rows(name, FIRST_SEED + place), arguments.orders)
            for place in range(arguments.splits)
        ]
        for order in arguments.orders:
            smooth = [own[order, "smooth"] for own in every]
            print(f"  D={order}  smooth {np.mean([own.error for own in smooth]):.4g}", end="")
            for form in [*FORMS, "chosen"][1:]:
                others = [own[order, form] for own in every]
                ratio = np.exp(
                    np.mean([np.log(b.error / a.error) for a, b in zip(smooth, others, strict=True)])
                )
                gains = pd.Series([b.bound - a.bound for a, b in zip(smooth, others, strict=True)])
                cost = sum(b.seconds for b in others) / sum(a.seconds for a in smooth)
                print(f"   {form} x{ratio:.3f} (gain {gains.mean():+.0f}, CPU x{cost:.1f})", end="")
            print(flush=True)


if __name__ == "__main__":
    main()
