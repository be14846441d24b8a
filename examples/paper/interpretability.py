"""Interpretability: the paper's toy example and its picture of marginals.

    python examples/paper/interpretability.py --quick
    python examples/paper/interpretability.py --full

Supplement, "Interpretability": 10,000 rows with features time, lat, lon and rate, noise 0.1, the mean is
the sum of all smooth three-way interactions. The paper shows a picture; here the share of each subset of
features in the variance of the mean stands beside the true one. A sum of three-way tensor products has
main effects and pairs too, because the functions of a feature do not have mean zero.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from rerun.output import Run, execute, save_figure, write_table

import ahofm_keras as ak
from ahofm_keras.datasets import Simulation, simulate_toy

NAMES = ("time", "lat", "lon", "rate")
GRID = 16


@dataclass(frozen=True)
class ToySize:
    """Rows of the example, held-out rows, F of each order."""

    rows: int = 10_000
    fresh: int = 5_000
    rank: int = 10


SIZES = {"full": ToySize(), "quick": ToySize(), "tiny": ToySize(rows=300, fresh=100, rank=2)}


def run_experiment(run: Run) -> None:
    size: ToySize = run.size
    simulation = simulate_toy(rows=size.rows + size.fresh, seed=0)
    train, fresh = simulation.data.iloc[: size.rows], simulation.data.iloc[size.rows :]
    start = time.perf_counter()
    model = ak.AdditiveModel(f"y ~ ahofm(time, lat, lon, rate, D=3, F={size.rank}, knots=(0, 1))", train)
    model.fit(train, verbose=0)
    seconds = time.perf_counter() - start
    error = np.sqrt(np.mean((model.predict(fresh) - simulation.mean(fresh)) ** 2))
    spread = np.std(simulation.mean(fresh))
    facts = pd.DataFrame(
        [{"seconds": seconds, "rmse_of_mean": error, "sd_of_mean": spread, "noise": 0.1}]
    )
    write_table(run, "interpretability_fit", facts, "error of the estimated mean on fresh rows")
    write_table(
        run, "interpretability", compare(simulation, model), "shares of the variance of the mean"
    )
    save_figure(run, "interpretability", draw(model))


def compare(simulation: Simulation, model: ak.AdditiveModel) -> pd.DataFrame:
    """True and estimated share of each subset of features, largest first."""
    true = true_variances(simulation)
    found = pd.concat(
        [
            ak.interactions(model, order=order, top=None).set_index("label")["share"]
            for order in (1, 2, 3)
        ]
    )
    rows = [
        {"features": ":".join(names), "order": len(names), "true": value / sum(true.values()),
         "estimated": _lookup(found, names)}
        for names, value in true.items()
    ]  # fmt: skip
    return pd.DataFrame(rows).sort_values("true", ascending=False, ignore_index=True)


def _lookup(shares: pd.Series, names: tuple[str, ...]) -> float:
    """A share, in whatever order the label names the features."""
    return float(next(v for label, v in shares.items() if set(label.split(":")) == set(names)))


def true_variances(simulation: Simulation) -> dict[tuple[str, ...], float]:
    """Variance of the part of each subset of features of the true mean, on a grid of midpoints."""
    axis = (np.arange(GRID) + 0.5) / GRID
    mesh = np.meshgrid(*[axis] * len(NAMES), indexing="ij")
    frame = pd.DataFrame({name: own.ravel() for name, own in zip(NAMES, mesh, strict=True)})
    mean = simulation.mean(frame).reshape(mesh[0].shape)
    found = {}
    for order in (1, 2, 3, 4):
        for places in combinations(range(len(NAMES)), order):
            part = mean
            for place in range(len(NAMES)):
                average = part.mean(axis=place, keepdims=True)
                part = part - average if place in places else average
            if order < len(NAMES):
                found[tuple(NAMES[place] for place in places)] = float(np.mean(part**2))
    return found


def draw(model: ak.AdditiveModel) -> Any:
    from ahofm_keras.plotting import plot_marginals

    return plot_marginals(model, order=3, top=4, lower=True)[0, 0].figure


if __name__ == "__main__":
    execute("interpretability", __doc__, SIZES, run_experiment)
