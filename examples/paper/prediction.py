"""Prediction: the error of the factorization against n and F, beside the exact model.

    python examples/paper/prediction.py --quick
    python examples/paper/prediction.py --full

Section "Prediction Performance" of the paper, in the setting of `estimation.py`, whose fits it shares:
with the same `--out` the second of the two has nothing left to fit. Error: mean squared distance between
predicted and true mean of 10,000 fresh rows, over the variance of the true mean. The noise, which no
model can predict, is not in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from rerun.output import Run, execute, save_figure, write_table
from rerun.pairs import EXACT, MGCV, SIZES, collect


def run_experiment(run: Run) -> None:
    fits = collect(run)
    table = summarise(fits)
    write_table(
        run, "prediction", table, "mean squared error of the mean of fresh rows, whose variance is 1"
    )
    save_figure(run, "prediction", draw(fits))


def summarise(fits: pd.DataFrame) -> pd.DataFrame:
    """Error, its standard error over seeds, and seconds of a fit, by n and method."""
    grouped = fits.groupby(["n", "method"], sort=False)
    table = grouped["prediction"].agg(
        error="mean", se=lambda values: values.std(ddof=1) / np.sqrt(len(values))
    )
    table["seconds"] = grouped["seconds"].mean()
    return table.reset_index()


def draw(fits: pd.DataFrame) -> Any:
    """Error against n: a line a method."""
    import matplotlib.pyplot as plt

    from ahofm_keras.plotting.theme import INK, SERIES, SOFT

    figure, panel = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    ranks = sorted(fits["F"].dropna().unique())
    colours = dict(zip(ranks, SERIES, strict=False))
    for method, own in fits.groupby("method", sort=False):
        means = own.groupby("n")["prediction"].mean()
        rank, solver = own["F"].iloc[0], own["solver"].iloc[0]
        if method in (EXACT, MGCV):
            style = {
                "color": INK if method == EXACT else SOFT,
                "linestyle": "-" if method == EXACT else "--",
            }
        else:
            style = {"color": colours[rank], "linestyle": "-" if solver == "variational" else ":"}
        panel.plot(means.index, means, marker="o", markersize=4, label=method, **style)
    panel.set(xlabel="n", ylabel="error of the predicted mean", xscale="log", yscale="log")
    sizes = sorted(fits["n"].unique())
    panel.set_xticks(sizes, [f"{n:,}" for n in sizes])
    panel.minorticks_off()
    panel.yaxis.set_major_formatter("{x:g}")
    low, high = panel.get_ylim()
    ticks = [t for t in (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0) if low <= t <= high]
    panel.set_yticks(ticks, [f"{t:g}" for t in ticks])
    panel.legend(frameon=False, bbox_to_anchor=(1.0, 1.0), loc="upper left")
    return figure


if __name__ == "__main__":
    execute("prediction", __doc__, SIZES, run_experiment)
