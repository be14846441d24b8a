"""Estimation: how close are the surfaces of all pairs to those of the exact model?

    python examples/paper/estimation.py --quick
    python examples/paper/estimation.py --full

Section "Estimation Performance" of the paper: p = 5 features, a surface for each of the 10 pairs, noise
at a signal-to-noise ratio of 0.5, n in {2000, 4000, 8000}, F in {1, 5, 15}, 10 seeds. The paper does not
say what the true surfaces are: here each is a tensor product of 5 by 5 splines with random coefficients,
of full rank (`rerun/simulation.py`). Error of a surface: mean squared distance from the true one on a
grid of 30 by 30 points, both without their means along each axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from rerun.output import Run, execute, save_figure, write_table
from rerun.pairs import EXACT, MGCV, SIZES, PairSize, collect, grid_axis
from rerun.simulation import draw_truth

# As many surfaces as the paper's picture shows.
SHOWN = 7


def run_experiment(run: Run) -> None:
    fits = collect(run)
    errors = surface_errors(fits)
    table = summarise(errors)
    write_table(
        run, "estimation", table, "mean squared error of a surface, mean over surfaces and seeds"
    )
    errors.to_csv(run.out / "estimation_surfaces.csv", index=False, float_format="%.6g")
    save_figure(run, "estimation", draw_differences(errors))
    save_figure(run, "estimation_surfaces", draw_surfaces(run.size, fits))


def surface_errors(fits: pd.DataFrame) -> pd.DataFrame:
    """A row a surface of a fit: `mse`, and the difference to the exact models on the same rows."""
    rows = [
        {"n": fit.n, "seed": fit.seed, "method": fit.method, "F": fit.F, "solver": fit.solver,
         "surface": surface, "mse": mse}
        for fit in fits.itertuples() for surface, mse in fit.mse.items()
    ]  # fmt: skip
    errors = pd.DataFrame(rows)
    for exact, column in ((EXACT, "minus_ti"), (MGCV, "minus_mgcv")):
        own = errors[errors["method"] == exact].set_index(["n", "seed", "surface"])["mse"]
        if len(own):
            keys = pd.MultiIndex.from_frame(errors[["n", "seed", "surface"]])
            errors[column] = errors["mse"].to_numpy() - own.reindex(keys).to_numpy()
    return errors


def summarise(errors: pd.DataFrame) -> pd.DataFrame:
    columns = [name for name in ("mse", "minus_ti", "minus_mgcv") if name in errors]
    return errors.groupby(["n", "method"], sort=False)[columns].mean().reset_index()


def reference(errors: pd.DataFrame) -> tuple[str, str]:
    """The column of differences that is drawn, and its words: `ti` where it is there."""
    if "minus_ti" in errors:
        return "minus_ti", "exact ti"
    return "minus_mgcv", "mgcv"


def draw_differences(errors: pd.DataFrame) -> Any:
    """Differences by F, a panel for each n: a point a surface of a simulation, lines their means."""
    import matplotlib.pyplot as plt

    from ahofm_keras.plotting.theme import BLUE, SOFT, VERMILLION

    column, words = reference(errors)
    sizes = list(dict.fromkeys(errors["n"]))
    machines = errors[errors["F"].notna()]
    ranks = sorted(machines["F"].unique())
    figure, axes = plt.subplots(
        1, len(sizes), figsize=(1.2 + 3.1 * len(sizes), 3.1), sharey=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    rng = np.random.default_rng(0)
    colours = {"variational": BLUE, "adam": VERMILLION}
    for panel, n in zip(axes[0], sizes, strict=True):
        panel.axhline(0, color=SOFT, linewidth=0.8)
        solvers = list(dict.fromkeys(machines["solver"]))
        for shift, solver in zip(np.linspace(-0.13, 0.13, len(solvers)), solvers, strict=True):
            own = machines[(machines["n"] == n) & (machines["solver"] == solver)]
            place = own["F"].map(ranks.index).to_numpy(float) + shift
            jitter = rng.uniform(-0.07, 0.07, size=len(place))
            panel.scatter(
                place + jitter, own[column], s=9, alpha=0.45, color=colours[solver], linewidths=0
            )
            means = own.groupby("F")[column].mean()
            at = [ranks.index(f) + shift for f in means.index]
            panel.plot(at, means, color=colours[solver], marker="o", markersize=4, label=solver)
        panel.set_xticks(range(len(ranks)), [f"{f:g}" for f in ranks])
        panel.set_title(f"n = {n:,}", loc="left")
        panel.set_xlabel("F")
    axes[0, 0].set_ylabel(f"MSE of a surface minus that of {words}")
    axes[0, -1].legend(frameon=False, title="solver of the AFM")
    return figure


def draw_surfaces(size: PairSize, fits: pd.DataFrame) -> Any:
    """True and estimated surfaces of the first simulation: a column a pair, a row a method."""
    import matplotlib.pyplot as plt

    from ahofm_keras.plotting.theme import DIVERGING

    truth = draw_truth(size.features, 0)
    first = fits[(fits["n"] == size.rows[0]) & (fits["seed"] == 0)]
    first = first[first["solver"].isna() | (first["solver"] == "variational")]
    axis = grid_axis()
    pairs = truth.pairs[:SHOWN]
    rows = {"truth": {":".join(pair): truth.surface(pair, axis, axis) for pair in pairs}}
    rows |= {fit.method.partition(",")[0]: fit.surfaces for fit in first.itertuples()}
    # The corners reach far beyond the rest: they are drawn in the last colour.
    limit = np.quantile(np.abs(list(rows["truth"].values())), 0.99)
    figure, axes = plt.subplots(
        len(rows), len(pairs), figsize=(1.25 * len(pairs) + 0.9, 1.25 * len(rows) + 0.3), sharex=True,
        sharey=True, squeeze=False, layout="constrained",
    )  # fmt: skip
    for line, (label, surfaces) in zip(axes, rows.items(), strict=True):
        for panel, pair in zip(line, pairs, strict=True):
            values = np.array(surfaces[":".join(pair)]).T
            image = panel.contourf(
                axis, axis, values, levels=np.linspace(-limit, limit, 17), cmap=DIVERGING, extend="both"
            )
            panel.set(xticks=[], yticks=[], aspect="equal")
        line[0].set_ylabel(label, fontsize=8)
    for panel, (a, b) in zip(axes[0], pairs, strict=True):
        panel.set_title(f"{a}, {b}", fontsize=8)
    figure.colorbar(image, ax=axes, shrink=0.5, aspect=30, format="%.1f")
    return figure


if __name__ == "__main__":
    execute("estimation", __doc__, SIZES, run_experiment)
