"""What is each move of the variational solver worth, and each constant that could be another?

    AHOFM_DATA=folder python examples/benchmarks/ablation.py               # everything: an hour
    python examples/benchmarks/ablation.py --sets friedman,noise --seeds 2 --switches "no grow"
    AHOFM_DATA=folder python examples/benchmarks/ablation.py --out results/ablation.jsonl

Every model is fitted with the settings of the solver, and again with one switch thrown
(`ahofm_keras.solvers.settings`), one start each, so that averaging hides nothing. Simulations: the error
is the root mean squared distance from the true mean on fresh rows. The paper's data sets: inner splits
of the training part of the first split, so that the test rows of the other benchmarks are never seen. At
most `--rows` training rows. The table has the mean relative change of the error, in percent, with its
standard error over all fits; by how much the worst set changed; and the ratio of CPU seconds.

With `--out` figures are kept, one line per fit, and are not computed again.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from comparison.problems import SIMULATIONS, TASKS, Split, load, simulate, split
from noise import KINDS
from noise import simulate as simulate_noise

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
logging.getLogger("tensorflow").setLevel(logging.ERROR)  # many models in one process are what is wanted

BASE = "as it is"
# Name -> settings that differ.
SWITCHES: dict[str, dict[str, Any]] = {
    BASE: {},
    "no grow": {"moves_off": ("grow",)},
    "no surfaces": {"moves_off": ("surfaces",)},
    "no prune factors": {"moves_off": ("prune factors",)},
    "no drop idle": {"moves_off": ("drop idle",)},
    "no main effects only": {"moves_off": ("main effects only",)},
    "no reset": {"moves_off": ("reset smoothing",)},
    "no moves": {
        "moves_off": ("grow", "prune factors", "main effects only", "reset smoothing")
    },
    "log_prior_odds 1": {"log_prior_odds": 1.0},
    "log_prior_odds 4": {"log_prior_odds": 4.0},
    "edf_penalty 0": {"edf_penalty": 0.0},
    "edf_penalty 0.4": {"edf_penalty": 0.4},
    "no crowded steps": {"crowded_steps": 0},
    "no crowded margin": {"crowded_margin": 0.0},
    "clear_margin 0": {"clear_margin": 0.0},
    "no warm-up": {"warm_up_sweeps": 1},
    "linear_updates 3": {"linear_updates": 3},
    "few_rows 0": {"few_rows": 0},
    "bound_gain 4e-3": {"bound_gain": 4e-3},
    "edf_gain 8e-3 alone": {"bound_gain": 1e3, "edf_gain": 8e-3},
    "edf_gain 2e-3 alone": {"bound_gain": 1e3, "edf_gain": 2e-3},
    "edf_gain off": {"edf_gain": 1e3},
    "trial_sweeps 1": {"trial_sweeps": 1},
    "prune_candidates 1": {"prune_candidates": 1},
    "prune_worth 3": {"prune_worth": 3.0},
    "prune_tolerance 0": {"prune_tolerance": 0.0},
    "search_candidates 1": {"search_candidates": 1},
    "search_steps 3": {"search_steps": 3},
    "search_refusals 1": {"search_refusals": 1},
    "start_variance 0.5": {"start_variance": 0.5},
    "no gap prior": {"gap_reach": 1e6},
}  # fmt: skip
FRESH_ROWS = 2000


def pair_and_triple(rows: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A pair and a triple among eleven features, each as strong as the noise."""
    rng = np.random.default_rng([seed, 11])
    frames = []
    for count in (rows, FRESH_ROWS):
        x = rng.uniform(-1, 1, (count, 11))
        wave = np.sqrt(2) * np.cos(np.pi * x)
        mean = wave[:, 0] * wave[:, 1] + wave[:, 3] * wave[:, 5] * wave[:, 8]
        frames.append(pd.DataFrame(x, columns=[f"x{j}" for j in range(11)]).assign(mean=mean))
    train, fresh = frames
    train["y"] = train.pop("mean") + rng.normal(size=rows)
    return train, fresh.rename(columns={"mean": "y"})


def known_function(name: str, rows: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    train, fresh = simulate(name, rows, seed), simulate(name, FRESH_ROWS, seed + 1000)
    return train, fresh.assign(y=SIMULATIONS[name](fresh.drop(columns="y").to_numpy()))


def without_effect(name: str, rows: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    train, fresh = simulate_noise(KINDS[name], seed)
    return train, fresh.rename(columns={"mean": "y"})


Draw = Callable[[int, int], tuple[pd.DataFrame, pd.DataFrame]]
SIMULATED: dict[str, Draw] = {
    "pair and triple": pair_and_triple,
    **{name: lambda rows, seed, name=name: known_function(name, rows, seed) for name in SIMULATIONS},
    **{name: lambda rows, seed, name=name: without_effect(name, rows, seed) for name in KINDS},
}


def draw(name: str, rows: int, seed: int) -> Split:
    """Training rows, and rows to judge by."""
    if name in SIMULATED:
        train, fresh = SIMULATED[name](rows, seed)
        numbers = [column for column in train if column != "y"]
        fresh[numbers] = fresh[numbers].clip(train[numbers].min(), train[numbers].max(), axis=1)
        return Split(train, fresh, "y", seed)
    response = TASKS[name].response
    outer = split(load(Path(os.environ["AHOFM_DATA"]), name), response, 0)
    inner = split(outer.train.reset_index(drop=True), response, 100 + seed)
    train = inner.train.iloc[:rows]
    return Split(train[[c for c in train if train[c].nunique() > 1]], inner.test, response, seed)


def measure(rows: Split, switches: list[str], order: int) -> dict[str, dict[str, float]]:
    """Error and CPU seconds of one model with each switch."""
    import keras

    import ahofm_keras as ak
    from ahofm_keras.solvers.posterior import forget_posterior
    from ahofm_keras.solvers.settings import use_settings

    keras.utils.clear_session(free_memory=True)
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)
        terms = "s(.)" if order == 1 else f"ahofm(., D={order})"
        model: Any = ak.AdditiveModel(f"{rows.response} ~ {terms}", rows.train)
        for switch in switches:
            forget_posterior(model)  # else a fit goes on from the one before
            with use_settings(**SWITCHES[switch]):
                began = time.process_time()
                history = model.fit(rows.train, restarts=0, seed=rows.seed, verbose=0)
                seconds = time.process_time() - began
            apart = model.predict(rows.test) - rows.test[rows.response].to_numpy()
            found[switch] = {
                "error": float(np.sqrt(np.mean(apart**2))), "seconds": seconds,
                "edf": float(history.history["edf"][-1]), "sweeps": len(history.epoch),
            }  # fmt: skip
    return found


def summarise(figures: dict[str, dict[str, float]], switches: list[str]) -> pd.DataFrame:
    """One line per switch: change of the error with its standard error, worst set, ratio of seconds."""
    table = pd.DataFrame(
        [{"set": (key := json.loads(cell))[0], "fit": cell.rpartition(",")[0], "switch": key[-1], **own}
         for cell, own in figures.items()]
    )  # fmt: skip
    errors = table.pivot_table(index=["set", "fit"], columns="switch", values="error")
    seconds = table.pivot_table(index=["set", "fit"], columns="switch", values="seconds")
    lines = {}
    for switch in switches:
        both = errors[[BASE, switch]].dropna() if switch != BASE else errors[[BASE]]
        change = 100 * np.log(both[switch] / both[BASE])
        lines[switch] = {
            "fits": len(change),
            "change, %": change.mean(),
            "se": change.std(ddof=1) / np.sqrt(len(change)),
            "worst set, %": change.groupby("set").mean().max(),
            "best set, %": change.groupby("set").mean().min(),
            "seconds": seconds.loc[both.index, switch].sum() / seconds.loc[both.index, BASE].sum(),
        }
    return pd.DataFrame(lines).T


def read_arguments() -> argparse.Namespace:
    sets = [*SIMULATED, *(TASKS if "AHOFM_DATA" in os.environ else ())]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default=",".join(sets), help=f"of {','.join([*SIMULATED, *TASKS])}")
    parser.add_argument("--seeds", type=int, default=3, help="simulations or inner splits of each set")
    parser.add_argument("--switches", default=",".join(SWITCHES), help="see SWITCHES")
    parser.add_argument("--rows", type=int, default=600, help="training rows at most (600)")
    parser.add_argument("--order", type=int, default=3, help="D of `ahofm(., D=)` (3); 1: `s(.)`")
    parser.add_argument("--out", type=Path, help="file of figures")
    given = parser.parse_args()
    given.sets, given.switches = given.sets.split(","), given.switches.split(",")
    unknown = {*given.sets} - {*SIMULATED, *TASKS} | {*given.switches} - {*SWITCHES}
    if unknown or given.seeds < 1:
        parser.error(f"unknown sets or switches {sorted(unknown)}, or no seeds")
    if {*given.sets} & {*TASKS} and "AHOFM_DATA" not in os.environ:
        parser.error("set AHOFM_DATA to the folder of airfoil.csv, concrete.csv, ...")
    return given


def main() -> None:
    given = read_arguments()
    switches = [BASE, *(name for name in given.switches if name != BASE)]
    figures: dict[str, dict[str, float]] = {}
    if given.out and given.out.exists():
        for line in given.out.read_text().splitlines():
            own = json.loads(line)
            figures[own.pop("cell")] = own
    for seed in range(given.seeds):
        for name in given.sets:
            cells = {s: json.dumps([name, seed, given.rows, given.order, s]) for s in switches}
            missing = [switch for switch, cell in cells.items() if cell not in figures]
            if missing:
                found = measure(draw(name, given.rows, seed), missing, given.order)
                figures |= {cells[switch]: own for switch, own in found.items()}
                if given.out:
                    with given.out.open("a") as file:
                        file.writelines(
                            json.dumps({"cell": cells[switch], **own}) + "\n"
                            for switch, own in found.items()
                        )
                print(f"{name}, seed {seed}: done", file=sys.stderr, flush=True)
    chosen = {
        cell: own
        for cell, own in figures.items()
        if (key := json.loads(cell))[0] in given.sets and key[-1] in switches
    }
    print(summarise(chosen, switches).to_string(float_format=lambda value: f"{value:.3g}"))


if __name__ == "__main__":
    main()
