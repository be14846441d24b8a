"""Sparsity: which interactions does the variational solver keep, and which are true?

    python examples/paper/sparsity.py --quick
    python examples/paper/sparsity.py --full

Beyond the paper, whose summary names sparse interactions as future work. 20 independent uniform
features; the mean has a main effect of 5 of them, and 0, 1 or 5 pairs and triples with an effect.
`ahofm(., D=3)` with its defaults models 20 main effects, 190 pairs and 1140 triples. Main effects, all
true pairs together and all true triples together have variance 1 each, the noise too.

An interaction counts as kept if it has at least 1 % of the variance of the fitted mean. "found" is how
many of the true ones are kept; "false" how many others are. "share" is that of the true ones in the
variance of all fitted interactions. "error" is the mean squared distance between fitted and true mean of
fresh rows over the variance of the true mean.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import keras
import numpy as np
import pandas as pd
from rerun.output import Run, Store, execute, save_figure, write_table

import ahofm_keras as ak

KEPT = 0.01
_MAINS = 5


@dataclass(frozen=True)
class SparsitySize:
    """Rows, features, number of simulations, and `pairs+triples` that are true."""

    rows: int = 4000
    features: int = 20
    seeds: int = 10
    cases: tuple[str, ...] = ("0+0", "1+0", "5+0", "0+1", "0+5", "1+1", "5+5")


SIZES = {
    "full": SparsitySize(),
    "quick": SparsitySize(rows=2000, seeds=1),
    "tiny": SparsitySize(rows=200, features=5, seeds=1, cases=("0+0", "1+1")),
}


@dataclass(frozen=True, eq=False)
class SparseTruth:
    """Main effects and interactions of some features; each is a product of waves of its features."""

    subsets: dict[tuple[int, ...], float]
    speeds: np.ndarray
    shifts: np.ndarray

    def mean(self, x: np.ndarray) -> np.ndarray:
        total = np.zeros(len(x))
        for place, (subset, variance) in enumerate(self.subsets.items()):
            # Each wave has mean 0 and variance 1 over [0, 1].
            waves = [
                np.sqrt(2)
                * np.cos(np.pi * (self.speeds[place, j] * 2 * x[:, j] + self.shifts[place, j]))
                for j in subset
            ]
            total += np.sqrt(variance) * np.prod(waves, axis=0)
        return total

    def of_order(self, order: int) -> set[frozenset[str]]:
        """Labels of the features of the true subsets of an order."""
        return {frozenset(f"x{j + 1}" for j in s) for s in self.subsets if len(s) == order}


def draw_truth(features: int, pairs: int, triples: int, seed: int) -> SparseTruth:
    rng = np.random.default_rng([seed, pairs, triples])
    subsets: dict[tuple[int, ...], float] = {}
    for order, count in ((1, min(_MAINS, features)), (2, pairs), (3, triples)):
        every = list(combinations(range(features), order))
        for place in rng.choice(len(every), size=count, replace=False):
            subsets[every[place]] = 1 / count
    speeds = rng.integers(1, 3, size=(len(subsets), features))
    return SparseTruth(subsets, speeds, rng.uniform(0, 2, size=(len(subsets), features)))


def fit_case(size: SparsitySize, case: str, seed: int) -> dict[str, Any]:
    """Simulate, fit and count."""
    pairs, triples = map(int, case.split("+"))
    truth = draw_truth(size.features, pairs, triples, seed)
    rng = np.random.default_rng([seed, 99])
    x, fresh = rng.uniform(size=(size.rows, size.features)), rng.uniform(size=(5000, size.features))
    names = [f"x{j + 1}" for j in range(size.features)]
    train = pd.DataFrame(x, columns=names).assign(y=truth.mean(x) + rng.normal(size=size.rows))
    keras.utils.clear_session(free_memory=True)
    model = ak.AdditiveModel("y ~ ahofm(., D=3)", train)
    start = time.perf_counter()
    model.fit(train, restarts=0, verbose=0)
    seconds = time.perf_counter() - start
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)  # fresh rows just outside the training range
        predicted = model.predict(pd.DataFrame(fresh, columns=names))
    mean = truth.mean(fresh)
    figures: dict[str, Any] = {"error": float(np.mean((predicted - mean) ** 2) / np.var(mean))}
    shares = {order: ak.interactions(model, order=order, top=None) for order in (2, 3)}
    return {**figures, **count_kept(shares, truth), "seconds": seconds}


def count_kept(shares: dict[int, pd.DataFrame], truth: SparseTruth) -> dict[str, float]:
    """Kept interactions, true and false ones, and the share of the true ones in all interactions."""
    found: dict[str, float] = {}
    of_true = of_all = 0.0
    for order, words in ((2, "pairs"), (3, "triples")):
        true = truth.of_order(order)
        is_true = [frozenset(label.split(":")) in true for label in shares[order]["label"]]
        share = shares[order]["share"].to_numpy()
        kept = share >= KEPT
        found[f"{words}_found"] = int(np.sum(kept & is_true))
        found[f"{words}_false"] = int(np.sum(kept & ~np.array(is_true)))
        of_true, of_all = of_true + float(share[is_true].sum()), of_all + float(share.sum())
    found["interactions"] = of_all
    found["share"] = of_true / of_all if of_all > 0 else float("nan")
    return found


def run_experiment(run: Run) -> None:
    size: SparsitySize = run.size
    store = Store(run)
    rows = []
    for case in size.cases:
        pairs, triples = map(int, case.split("+"))
        for seed in range(size.seeds):
            key = {"case": case, "rows": size.rows, "features": size.features, "seed": seed}
            figures = store.get(key, lambda case=case, seed=seed: fit_case(size, case, seed))
            rows.append({"pairs": pairs, "triples": triples, "seed": seed, **figures})
    fits = pd.DataFrame(rows)
    table = fits.drop(columns="seed").groupby(["pairs", "triples"], sort=False).mean().reset_index()
    write_table(run, "sparsity", table, "true pairs and triples, kept ones (means over seeds)", 3)
    save_figure(run, "sparsity", draw(table))


def draw(table: pd.DataFrame) -> Any:
    """Found and false interactions of each case."""
    import matplotlib.pyplot as plt

    from ahofm_keras.plotting.theme import BLUE, FAINT, VERMILLION

    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.0), sharey=True, layout="constrained")
    places = np.arange(len(table))
    labels = [f"{p} + {t}" for p, t in zip(table["pairs"], table["triples"], strict=True)]
    for panel, words in zip(axes, ("pairs", "triples"), strict=True):
        panel.barh(places, table[words], color=FAINT, height=0.75, label="true")
        panel.barh(places, table[f"{words}_found"], color=BLUE, height=0.4, label="found")
        panel.barh(places, table[f"{words}_false"], left=table[words], color=VERMILLION, height=0.4,
                   label="false")  # fmt: skip
        panel.set_title(words, loc="left")
        panel.set_xlabel("number")
        panel.set_xlim(0, max(1, table[words].max() + table[f"{words}_false"].max()) * 1.05)
        panel.xaxis.get_major_locator().set_params(integer=True)
    axes[0].set_yticks(places, labels)
    axes[0].invert_yaxis()
    axes[0].set_ylabel("true pairs + true triples")
    axes[1].legend(frameon=False, loc="upper right")
    return figure


if __name__ == "__main__":
    execute("sparsity", __doc__, SIZES, run_experiment)
