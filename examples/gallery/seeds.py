"""How many seeds of a tray will come up - in trays of ten as in trays of sixty?

Of each tray it is known how many seeds were sown and how many came up. A model of the share takes a tray
of ten for as sure as one of sixty and lets limits leave the scale; a binomial one counts seeds. How many
come up depends on warmth and moisture together. The trays are simulated, so the truth is known.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from telling import BLUE, GREY, VERMILLION, draw_truth, picture, read_arguments

import ahofm_keras as ak

RIGHT = "~ variety + ahofm(warmth, moisture, D=2, F=2)"
BINOMIAL, SHARE = f"cbind(up, sown - up) {RIGHT}", f"share {RIGHT}"
VARIETY = {"early": 0.4, "late": -0.4}
LEVEL = 0.9


def chance(data: pd.DataFrame) -> np.ndarray:
    """Warmth helps as long as it is moist, and dries seeds out where it is not."""
    warm, moist = (data["warmth"] - 18) / 10, 2 * data["moisture"] - 1
    logit = 1.2 - 1.6 * (warm - 0.5 * moist) ** 2 + 1.2 * moist + 1.6 * warm * moist
    return np.asarray(1 / (1 + np.exp(-logit - data["variety"].map(VARIETY))), float)


def simulate(trays: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({"variety": rng.choice(list(VARIETY), trays)})
    data["warmth"] = rng.permutation(np.linspace(8, 30, trays))
    data["moisture"] = rng.permutation(np.linspace(0, 1, trays))
    data["sown"] = rng.choice([10, 20, 60], trays)
    data["up"] = rng.binomial(data["sown"], chance(data))
    return data.assign(share=data["up"] / data["sown"])


def bench(sown: int) -> pd.DataFrame:
    rows = pd.DataFrame({"warmth": np.linspace(8, 30, 60), "moisture": 0.8, "variety": "early"})
    return rows.assign(sown=sown)


def main() -> dict[str, float]:
    telling = read_arguments(__doc__)
    train, test = simulate(200 if telling.quick else 800, 1), simulate(3000, 2)
    print(f"{len(train):,} trays, {train['up'].sum():,} of {train['sown'].sum():,} seeds came up\n")
    counts = ak.AdditiveModel(BINOMIAL, train, family="binomial")
    shares = ak.AdditiveModel(SHARE, train)
    found = {}
    print(f"Fresh trays: error of the chance, and seeds within the {LEVEL:.0%} interval by number sown")
    for name, model in {"normal model of shares": shares, "binomial": counts}.items():
        model.fit(train, restarts=0, verbose=0)
        band = model.predict(test, interval=LEVEL, **({} if model is shares else {"trials": "sown"}))
        unit = test["sown"] if model is shares else 1
        inside = (band["predictive_lower"] * unit <= test["up"]) & (
            test["up"] <= band["predictive_upper"] * unit
        )
        error = np.sqrt(np.mean((band["mean"] - chance(test)) ** 2))
        held = inside.groupby(test["sown"]).mean()
        found[name] = float(held.max() - held.min())
        print(
            f"    {name:24} {error:6.3f}   " + "  ".join(f"{own}: {of:.1%}" for own, of in held.items())
        )
    check = ak.check(counts)
    print("\nIs the binomial distribution right?", *(check.verdicts or ["Nothing speaks against it."]))
    draw(counts, telling.out / "seeds.png")
    return found


def draw(model: ak.AdditiveModel, path: Path) -> None:
    with picture(
        path, "Seeds that come up: warmth helps where it is moist", (10.5, 4.2), ncols=2
    ) as axes:
        warmth, moisture = np.meshgrid(np.linspace(8, 30, 60), np.linspace(0, 1, 60))
        places = pd.DataFrame(
            {"warmth": warmth.ravel(), "moisture": moisture.ravel(), "variety": "early"}
        )
        levels = [0.1, 0.3, 0.5, 0.7, 0.9]
        own = model.predict(places).reshape(warmth.shape)
        axes[0].contourf(warmth, moisture, own, np.linspace(0, 1, 11), cmap="Blues", alpha=0.7)
        axes[0].contour(
            warmth,
            moisture,
            chance(places).reshape(warmth.shape),
            levels,
            colors="#262626",
            linestyles=":",
        )
        axes[0].set(
            title="chance to come up; dotted: truth at 10, 30, ... 90 %",
            xlabel="warmth",
            ylabel="moisture",
        )
        for sown, colour, alpha in ((10, GREY, 0.3), (60, BLUE, 0.35)):
            rows = bench(sown)
            band = model.predict(rows, interval=LEVEL, trials="sown")
            lower, upper = band["predictive_lower"] / sown, band["predictive_upper"] / sown
            label = f"90 % of trays of {sown}"
            axes[1].fill_between(
                rows["warmth"], lower, upper, color=colour, alpha=alpha, linewidth=0, label=label
            )
            for tail in (0.05, 0.95):
                true = stats.binom.ppf(tail, sown, chance(rows)) / sown
                draw_truth(
                    axes[1], rows["warmth"], true, "true limits" if (sown, tail) == (10, 0.05) else None
                )
        axes[1].plot(rows["warmth"], band["mean"], color=VERMILLION, label="chance")
        axes[1].set(
            title="share that comes up at a moisture of 0.8", xlabel="warmth", ylim=(-0.02, 1.02)
        )
        axes[1].legend(loc="lower center")


if __name__ == "__main__":
    main()
