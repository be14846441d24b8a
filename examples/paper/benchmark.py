"""Tables 1 and 2 of the paper: test errors on the seven data sets.

    python examples/paper/benchmark.py --quick
    python examples/paper/benchmark.py --full

The data comes from `ahofm_keras.datasets.load`: set AHOFM_DATA to a folder with copies, or be online.

Table 1: GAM, FM, HOFM (D = 3), AFM and AHOFM (D = 3) by Adam with early stopping on 15 % of the training
rows, patience 50, df = 15, even knots, F in {1, 5, 10, 15}. Table 2: GAMBoost and GA2MBoost
(`rerun/boosting.py`) with the same validation rows, beside the better of AFM and AHOFM. As in the paper
the table has, for each method, the F with the smallest mean test error, which favours methods that have
an F; `benchmark_by_rank.csv` has all of them. Beside these stands AHOFM (D = 3) with the library's
defaults and the variational solver: nothing is chosen, and no rows are held out.

Random 80/20 splits of the seeds 0, 1, ...; the paper does not say its share of test rows. Errors are
root mean squared errors. As in the paper area is log(1 + area), months and days are numbers; constant
columns are left out.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from rerun.boosting import boost
from rerun.output import Run, Store, execute, save_figure, write_table
from rerun.published import TABLE_1, TABLE_2

from ahofm_keras.datasets import load
from ahofm_keras.errors import DataError

MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
DAYS = "mon tue wed thu fri sat sun".split()
MACHINES = {"FM": "fm(., F={F})", "HOFM": "hofm(., D=3, F={F})",
            "AFM": "afm(., F={F}, df=15, knots='even')",
            "AHOFM": "ahofm(., D=3, F={F}, df=15, knots='even')"}  # fmt: skip
VARIATIONAL = "variational"
BEST = "A(HO)FM"
_HELD_OUT = 0.15


@dataclass(frozen=True)
class BenchmarkSize:
    """Data sets, number of splits, values of F, most steps of boosting, most epochs of Adam.

    A set may have a number of splits of its own: `naval:3`.
    """

    sets: tuple[str, ...] = tuple(TABLE_1)
    splits: int = 10
    ranks: tuple[int, ...] = (1, 5, 10, 15)
    steps: int = 5000
    epochs: int = 1000


SIZES = {
    "full": BenchmarkSize(),
    "quick": BenchmarkSize(sets=("diabetes", "yacht"), splits=2, ranks=(5,), steps=2000),
    "tiny": BenchmarkSize(sets=("yacht",), splits=1, ranks=(1,), steps=5, epochs=2),
}


@dataclass(frozen=True, eq=False)
class Split:
    """Rows of one split; `train` is `fitting` and, to decide when to stop, `held_out`."""

    train: pd.DataFrame
    fitting: pd.DataFrame
    held_out: pd.DataFrame
    test: pd.DataFrame
    target: str
    seed: int


def read_set(name: str) -> tuple[pd.DataFrame, str]:
    """Numbers only, in the paper's form, and the name of the target."""
    found = load(name)
    data = found.data.copy()
    if name == "forest_fires":
        data["area"] = np.log1p(data["area"])
        data["month"] = data["month"].map(MONTHS.index).astype(float)
        data["day"] = data["day"].map(DAYS.index).astype(float)
    return data[[column for column in data if data[column].nunique() > 1]], found.target


def split_rows(data: pd.DataFrame, target: str, seed: int) -> Split:
    rows = np.random.default_rng(seed).permutation(len(data))
    test, train = np.split(rows, [len(data) // 5])
    held_out, fitting = np.split(train, [round(_HELD_OUT * len(train))])
    parts = [data.iloc[part].reset_index(drop=True) for part in (train, fitting, held_out, test)]
    return Split(*parts, target, seed)


def fit_adam(rows: Split, terms: str, epochs: int) -> tuple[np.ndarray, dict[str, Any]]:
    """The paper's way: Adam, early stopping on the held-out rows."""
    import keras

    import ahofm_keras as ak

    keras.utils.clear_session(free_memory=True)
    model = ak.AdditiveModel(f"{rows.target} ~ {terms}", rows.fitting, seed=rows.seed)
    history = model.fit(
        rows.fitting, validation_data=rows.held_out, solver="adam", epochs=epochs, verbose=0
    )
    held_out = float(np.mean((model.predict(rows.held_out) - rows.held_out[rows.target]) ** 2))
    return model.predict(rows.test), {"validation": held_out**0.5, "epochs": len(history.epoch)}


def fit_variational(rows: Split) -> tuple[np.ndarray, dict[str, Any]]:
    """The library's defaults on all training rows."""
    import keras

    import ahofm_keras as ak

    keras.utils.clear_session(free_memory=True)
    model = ak.AdditiveModel(f"{rows.target} ~ ahofm(., D=3)", rows.train, seed=rows.seed)
    model.fit(rows.train, verbose=0)
    return model.predict(rows.test), {}


def fit_boosting(rows: Split, pairs: bool, steps: int) -> tuple[np.ndarray, dict[str, Any]]:
    features = [column for column in rows.train if column != rows.target]
    # Outside the range of the rows that it was fitted to a spline is clipped, here as in the models.
    fitted = boost(
        rows.fitting[features], rows.fitting[rows.target].to_numpy(), rows.held_out[features],
        rows.held_out[rows.target].to_numpy(), pairs=pairs, steps=steps,
    )  # fmt: skip
    return fitted.predict(rows.test[features]), {"epochs": fitted.best}


def measure(rows: Split, method: str, rank: int | None, size: BenchmarkSize) -> dict[str, Any]:
    """Fit one method to one split: `rmse`, `seconds`, and what else it tells."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        # Test rows outside the training range; df beyond what few distinct values allow.
        warnings.simplefilter("ignore", UserWarning)
        if method in ("GAMBoost", "GA2MBoost"):
            predicted, more = fit_boosting(rows, method == "GA2MBoost", size.steps)
        elif method == VARIATIONAL:
            predicted, more = fit_variational(rows)
        else:
            terms = "s(., df=15, knots='even')" if method == "GAM" else MACHINES[method].format(F=rank)
            predicted, more = fit_adam(rows, terms, size.epochs)
    error = float(np.sqrt(np.mean((predicted - rows.test[rows.target].to_numpy()) ** 2)))
    return {"rmse": error, "seconds": time.perf_counter() - start, **more}


def collect(run: Run) -> pd.DataFrame:
    """All fits, a row a fit."""
    size: BenchmarkSize = run.size
    store = Store(run)
    plan: list[tuple[str, int | None]] = [("GAM", None)]
    plan += [(method, rank) for method in MACHINES for rank in size.ranks]
    plan += [("GAMBoost", None), ("GA2MBoost", None), (VARIATIONAL, None)]
    rows = []
    for text in size.sets:
        name, _, splits = text.partition(":")
        data, target = read_set(name)
        for seed in range(int(splits or size.splits)):
            own = split_rows(data, target, seed)
            for method, rank in plan:
                limit = size.steps if "Boost" in method else size.epochs
                key = {"set": name, "seed": seed, "method": method, "F": rank, "limit": limit}
                figures = store.get(key, lambda o=own, m=method, r=rank: measure(o, m, r, size))
                rows.append({**key, **figures})
    return pd.DataFrame(rows)


def choose_ranks(fits: pd.DataFrame) -> pd.DataFrame:
    """A row a set and method, at the F with the smallest mean test error; A(HO)FM: the better of two."""
    by_rank = summarise_ranks(fits)
    best = by_rank.loc[by_rank.groupby(["set", "method"], sort=False)["rmse"].idxmin()]
    both = best[best["method"].isin(["AFM", "AHOFM"])]
    better = both.loc[both.groupby("set", sort=False)["rmse"].idxmin()].assign(method=BEST)
    return pd.concat([best, better], ignore_index=True)


def summarise_ranks(fits: pd.DataFrame) -> pd.DataFrame:
    grouped = fits.assign(F=fits["F"].fillna(0).astype(int)).groupby(["set", "method", "F"], sort=False)
    table = grouped.agg(
        rmse=("rmse", "mean"), sd=("rmse", "std"), splits=("rmse", "size"), seconds=("seconds", "mean")
    )
    if "epochs" in fits:
        table["epochs"] = grouped["epochs"].mean()
    return table.reset_index()


def beside_paper(chosen: pd.DataFrame) -> pd.DataFrame:
    """Ours and the paper's figure of each set and method, and whether they agree."""
    rows = []
    for own in chosen.itertuples():
        printed = {**TABLE_1[own.set], **TABLE_2[own.set]}.get(own.method)
        row = {"set": own.set, "method": own.method, "F": own.F, "ours": own.rmse, "sd": own.sd,
               "splits": own.splits}  # fmt: skip
        if printed:
            row |= {"paper": printed[0], "paper_sd": printed[1], "verdict": judge(own.rmse, *printed)}
        rows.append({**row, "seconds": own.seconds})
    columns = ["set", "method", "F", "ours", "sd", "splits", "paper", "paper_sd", "verdict", "seconds"]
    return pd.DataFrame(rows, columns=columns)


def judge(ours: float, paper: float, spread: float) -> str:
    """Two of the paper's standard deviations, and half of its last digit, are agreement."""
    reach = 2 * spread + 0.0005
    if abs(ours - paper) <= reach:
        return "agrees"
    return "ours is lower" if ours < paper else "ours is higher"


def read_printed(sets: tuple[str, ...] = tuple(TABLE_1)) -> pd.DataFrame:
    """What the printed figures of a set mean, from its target alone; of all sets that can be loaded.

    Returns:
        Mean, standard deviation and variance of the target, the root mean squared error of predicting
        0, the smallest and largest error of the paper, and `constant`: the constant that predicts as
        badly as the paper's largest error says; only where that is more than 1.5 standard
        deviations.
    """
    rows = []
    for name in sets:
        try:
            data, target = read_set(name)
        except DataError as error:
            print(error)
            continue
        y = data[target].to_numpy(float)
        errors = [cell[0] for table in (TABLE_1, TABLE_2) for cell in table[name].values()]
        most = max(errors)
        rows.append(
            {"set": name, "mean": y.mean(), "sd": y.std(), "variance": y.var(),
             "error_of_0": np.sqrt(np.mean(y**2)), "paper_least": min(errors), "paper_most": most,
             "constant": y.mean() - np.sqrt(most**2 - y.var()) if most > 1.5 * y.std() else np.nan}
        )  # fmt: skip
    return pd.DataFrame(rows)


def run_experiment(run: Run) -> None:
    fits = collect(run)
    write_table(run, "benchmark_by_rank", summarise_ranks(fits), "test RMSE by F: mean, sd over splits")
    table = beside_paper(choose_ranks(fits))
    write_table(run, "benchmark", table, "test RMSE at the best F, beside the paper")
    write_table(run, "benchmark_targets", read_printed(), "the targets", 5)
    save_figure(run, "benchmark", draw(table))


def draw(table: pd.DataFrame) -> Any:
    """Ours over the paper's figure, a panel a data set."""
    import matplotlib.pyplot as plt

    from ahofm_keras.plotting.theme import BLUE, FAINT, SOFT, VERMILLION

    sets = list(dict.fromkeys(table["set"]))
    methods = ["GAM", "FM", "HOFM", "AFM", "AHOFM", "GAMBoost", "GA2MBoost", VARIATIONAL]
    columns = min(4, len(sets))
    lines = -(-len(sets) // columns)
    figure, axes = plt.subplots(
        lines, columns, figsize=(1.1 + 2.5 * columns, 0.5 + 2.4 * lines), squeeze=False, sharey=True,
        layout="constrained",
    )  # fmt: skip
    for panel in axes.ravel()[len(sets) :]:
        panel.set_visible(False)
    for panel, name in zip(axes.ravel(), sets, strict=False):
        own = table[table["set"] == name].set_index("method").reindex(methods)
        places = np.arange(len(methods))
        panel.hlines(places, own["ours"], own["paper"], color=FAINT, linewidth=1)
        panel.scatter(own["paper"], places, color=VERMILLION, s=18, label="paper", zorder=3)
        panel.scatter(own["ours"], places, color=BLUE, s=18, label="here", zorder=3)
        panel.axvline(own.loc[VARIATIONAL, "ours"], color=SOFT, linewidth=0.6, linestyle=":")
        drawn = own[["ours", "paper"]].stack()
        wide = drawn.min() > 0 and drawn.max() > 5 * drawn.min()
        panel.set(xscale="log" if wide else "linear", title=name)
        panel.set_yticks(places, methods)
        panel.xaxis.set_major_formatter("{x:g}")
        if wide:
            panel.xaxis.set_minor_formatter("")
    axes[0, 0].invert_yaxis()
    axes[0, 0].legend(frameon=False, fontsize=7)
    figure.supxlabel("test RMSE", fontsize=9)
    return figure


if __name__ == "__main__":
    execute("benchmark", __doc__, SIZES, run_experiment)
