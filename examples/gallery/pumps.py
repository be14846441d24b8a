"""How long will a pump run - though most of those that were observed still run?

Fewer than half of the pumps failed; the others were replaced in time or ran to the end of observation,
so that of them only a least time is known. Leaving them out makes pumps look short-lived. A proportional
hazards model takes a censored time for what it is; load wears pumps out where it is hot. They are
simulated, so the truth is known.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from telling import BLUE, GREY, SOLID, VERMILLION, draw_truth, picture, read_arguments

import ahofm_keras as ak

FORMULAS = {
    "main effects": "Surv(years, failed) ~ maker + s(load) + s(heat)",
    "and the pair": "Surv(years, failed) ~ maker + ahofm(load, heat, D=2, F=2)",
}
MAKERS = {"Adler": 0.0, "Brandt": 0.6}
LEVEL, END = 0.9, 6.0


def log_ratio(data: pd.DataFrame) -> np.ndarray:
    """Of the hazard: load matters, where it is hot above all; so does the maker."""
    load, heat = data["load"] - 0.5, (data["heat"] - 35) / 25
    own = 2.6 * load + 0.5 * heat + 3.2 * load * heat + data["maker"].map(MAKERS)
    return np.asarray(own, float)


def survival(data: pd.DataFrame, years: np.ndarray) -> np.ndarray:
    """True share of such pumps that still run, a row per pump."""
    return np.exp(-np.exp(log_ratio(data))[:, None] * 0.045 * years**1.5)


def simulate(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({"maker": rng.choice(list(MAKERS), rows)})
    data["load"] = rng.permutation(np.linspace(0, 1, rows))
    data["heat"] = rng.permutation(np.linspace(10, 60, rows))
    failure = (rng.exponential(size=rows) / np.exp(log_ratio(data)) / 0.045) ** (1 / 1.5)
    observed = np.minimum(END, rng.exponential(9.0, rows))
    data["years"] = np.minimum(failure, observed)
    return data.assign(failed=failure <= observed)


def some_pumps() -> pd.DataFrame:
    rows = {"cool, high load": (15.0, 0.9), "hot, low load": (55.0, 0.1), "hot, high load": (55.0, 0.9)}
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=["heat", "load"])
    return frame.assign(maker="Adler")


def main() -> dict[str, float]:
    telling = read_arguments(__doc__)
    train, test = simulate(400 if telling.quick else 1500, 1), simulate(1000, 2)
    print(
        f"{len(train):,} pumps, {train['failed'].mean():.0%} of them failed while they were observed\n"
    )
    print("Fresh pumps: concordance, and how far predicted survival is from the truth")
    years, models, found = np.linspace(0.1, 5, 25), {}, {}
    for name, formula in FORMULAS.items():
        model = ak.AdditiveModel(formula, train, family="cox")
        model.fit(train, restarts=0, verbose=0)
        own = ak.survival(model, test, times=years)["survival"].to_numpy().reshape(len(test), -1)
        found[name], models[name] = float(np.abs(own - survival(test, years)).mean()), model
        print(f"    {name:14} {ak.concordance(model, test):8.3f} {found[name]:8.3f}")

    pumps, at = some_pumps(), 3.0
    model = models["and the pair"]
    band = ak.survival(model, pumps, times=[at], interval=LEVEL)
    failed = train[train["failed"]]
    naive = ak.fit("years ~ maker + ahofm(load, heat, D=2, F=2)", failed, family="gamma", verbose=0)
    told = 1 - naive.predict(pumps, type="distribution").cdf(at)
    print(
        f"\nStill running after {at:g} years: truth, estimate with {LEVEL:.0%} band, of failures alone"
    )
    truth = survival(pumps, np.array([at]))[:, 0]
    for row, true, own in zip(band.itertuples(), truth, told, strict=True):
        band_text = f"({row.lower:.0%} to {row.upper:.0%})"
        print(f"    {row.row:16} {true:6.0%} {row.survival:6.0%} {band_text:14} {own:6.0%}")
    found["failures alone"] = float(np.mean(truth - told))
    draw(model, pumps, telling.out / "pumps.png")
    return found


def draw(model: ak.AdditiveModel, pumps: pd.DataFrame, path: Path) -> None:
    years = np.linspace(0, 5.5, 111)
    with picture(
        path, "How long pumps run: load wears them out where it is hot", (10.5, 4.0), ncols=2
    ) as axes:
        curves = ak.survival(model, pumps, times=years, interval=LEVEL)
        for place, (name, colour) in enumerate(zip(pumps.index, (BLUE, GREY, VERMILLION), strict=True)):
            own = curves[curves["row"] == name]
            axes[0].fill_between(
                years, own["lower"], own["upper"], color=colour, alpha=0.2, step="post", linewidth=0
            )
            axes[0].step(years, own["survival"], where="post", color=colour, label=name)
            draw_truth(
                axes[0], years, survival(pumps.loc[[name]], years)[0], "truth" if place == 0 else None
            )
        axes[0].set(
            title="survival, 90 % band", xlabel="years", ylabel="share that still runs", ylim=(0, 1.02)
        )
        load = np.linspace(0, 1, 60)
        for name, heat, colour in (("at 15 degrees", 15.0, BLUE), ("at 55 degrees", 55.0, VERMILLION)):
            rows = pd.DataFrame({"load": load, "heat": heat, "maker": "Adler"})
            band = model.predict(rows, interval=LEVEL)
            axes[1].fill_between(
                load, band["lower"], band["upper"], color=colour, alpha=0.2, linewidth=0
            )
            axes[1].plot(load, band["mean"], color=colour, linestyle=SOLID, label=name)
            # Estimates are beside the average pump, the truth is up to a factor.
            shift = np.log(band["mean"]).mean() - log_ratio(rows).mean()
            draw_truth(axes[1], load, np.exp(log_ratio(rows) + shift))
        axes[1].set(title="hazard ratio, 90 % band", xlabel="load", yscale="log")
        for ax in axes:
            ax.legend()


if __name__ == "__main__":
    main()
