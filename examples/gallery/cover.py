"""How much of the ground do plants cover - and how sure is that near 0 and near 1?

A share lies between 0 and 1, and cannot vary much near its ends. A normal model does not know that: its
limits leave the scale, and where hardly anything grows it expects a spread that is not there. A beta
model has a mean and a precision, each with a formula. The plots are simulated, so the truth is known.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from telling import BLUE, DASHED, SOLID, VERMILLION, draw_truth, picture, read_arguments

import ahofm_keras as ak

COVER = "cover ~ s(elevation) + s(moisture) + grazed"
MODELS = {
    "normal": ("gaussian", COVER),
    "beta": ("beta", COVER),
    "beta, precision ~ s(elevation)": ("beta", {"mean": COVER, "precision": "~ s(elevation)"}),
}
LEVEL = 0.9


def truth(data: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Mean and precision: cover ends above the tree line, and is patchy just below it."""
    logit = 3.4 - 7.0 / (1 + np.exp(-(data["elevation"] - 2100) / 130)) + 1.5 * data["moisture"]
    logit = logit - 0.9 * (data["grazed"] == "yes")
    precision = np.exp(3.2 - 2.0 * np.exp(-(((data["elevation"] - 2000) / 200) ** 2)))
    return np.asarray(1 / (1 + np.exp(-logit))), np.asarray(precision)


def simulate(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({"elevation": rng.permutation(np.linspace(1200, 2700, rows))})
    data["moisture"] = rng.permutation(np.linspace(-1, 1, rows))
    data["grazed"] = rng.choice(["no", "yes"], rows, p=[0.6, 0.4])
    mean, precision = truth(data)
    cover = rng.beta(mean * precision, (1 - mean) * precision)
    return data.assign(cover=np.clip(cover, 1e-4, 1 - 1e-4))  # nobody measures a hundredth of a per cent


def slope() -> pd.DataFrame:
    rows = pd.DataFrame({"elevation": np.linspace(1200, 2700, 120)})
    return rows.assign(moisture=0.0, grazed="no")


def main() -> dict[str, float]:
    telling = read_arguments(__doc__)
    train, test = simulate(500 if telling.quick else 3000, 1), simulate(2000, 2)
    print(f"{len(train):,} plots, mean cover {train['cover'].mean():.0%}\n")
    print(f"Fresh plots: log score, CRPS, within their {LEVEL:.0%} interval below and above 2,100 m")
    models, held = {}, {}
    low = test["elevation"] < 2100
    for name, (family, formula) in MODELS.items():
        model = ak.AdditiveModel(formula, train, family=family)
        model.fit(train, restarts=telling.restarts, verbose=0)
        y, expected = test["cover"], model.predict(test, type="distribution")
        band = model.predict(test, interval=LEVEL)
        inside = (band["predictive_lower"] <= y) & (y <= band["predictive_upper"])
        held[name], models[name] = float(inside.mean()), model
        print(
            f"    {name:31} {expected.log_prob(y).mean():7.3f} {expected.crps(y).mean():7.4f} "
            f"{inside[low].mean():7.1%} {inside[~low].mean():7.1%}"
        )
    rows = slope()
    limits = models["normal"].predict(rows, interval=LEVEL)
    outside = (limits["predictive_lower"] < 0) | (limits["predictive_upper"] > 1)
    print(f"\nLimits of the normal model below 0 or above 1: at {outside.mean():.0%} of the elevations")
    draw(models, train, telling.out / "cover.png")
    return held


def draw(models: dict[str, ak.AdditiveModel], train: pd.DataFrame, path: Path) -> None:
    title = "Plant cover over elevation: a share has no room beyond 0 and 1"
    rows = slope()
    mean, precision = truth(rows)
    near = train[(train["moisture"].abs() < 0.25) & (train["grazed"] == "no")]
    with picture(path, title, (10.5, 4.0), ncols=2, sharey=True) as axes:
        names = ("normal", "beta, precision ~ s(elevation)")
        for ax, name, colour, dash in zip(axes, names, (VERMILLION, BLUE), (DASHED, SOLID), strict=True):
            band = models[name].predict(rows, interval=LEVEL)
            lower, upper = band["predictive_lower"], band["predictive_upper"]
            ax.fill_between(rows["elevation"], lower, upper, color=colour, alpha=0.2, linewidth=0)
            ax.plot(rows["elevation"], band["mean"], color=colour, linestyle=dash, label="mean")
            ax.plot(near["elevation"], near["cover"], "o", color="#8C8C8C", markersize=3, alpha=0.6)
            for tail in (0.05, 0.95):
                own = stats.beta.ppf(tail, mean * precision, (1 - mean) * precision)
                draw_truth(ax, rows["elevation"], own, "true 90 % limits" if tail < 0.5 else None)
            ax.set(title=f"{name}, 90 % interval", xlabel="elevation (m)")
            ax.legend(loc="lower left")
        axes[0].set_ylabel("share of the ground that is covered")


if __name__ == "__main__":
    main()
