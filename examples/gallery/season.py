"""A season that changes: thirty years of electricity demand.

Demand peaks in winter. Then households buy air conditioning, and a summer peak grows. A trend plus a
fixed season, `s(year) + s(day, bs="cp")`, averages old and new summers; `ti(day, year)` beside them lets
the season change, and says how much of the variance that change is. Cyclic bases let the 31st of
December meet the 1st of January. The weekly figures are simulated, so the true seasons are known.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from telling import BLUE, DASHED, SOLID, VERMILLION, draw_band, draw_truth, picture, read_arguments

import ahofm_keras as ak

FIXED = "demand ~ s(year, knots=(1994, 2024)) + s(day, bs='cp', knots=(0, 365.25))"
CHANGE = "ti(day, year, bs={'day': 'cp'}, knots={'day': (0, 365.25), 'year': (1994, 2024)})"
FORMULAS = {"fixed": FIXED, "changing": f"{FIXED} + {CHANGE}"}


def true_mean(data: pd.DataFrame) -> np.ndarray:
    """Demand in gigawatts."""
    time = (data["year"] - 1994) / 30
    winter = 6 * np.cos(2 * np.pi * data["day"] / 365.25 - 0.25)
    summer = 9 * np.exp(-(((data["day"] - 205) / 38) ** 2)) / (1 + np.exp(-10 * (time - 0.55)))
    return np.asarray(45 + 8 * time - 3 * time**2 + winter + summer)


def simulate_weeks(step: int, noise: float = 1.2, seed: int = 0) -> pd.DataFrame:
    """One figure every `step` weeks; `year` goes on within a year, `day` is that of the year."""
    year = np.arange(1994, 2024, step * 7 / 365.25)
    data = pd.DataFrame({"year": year, "day": (year % 1) * 365.25})
    data["demand"] = true_mean(data) + noise * np.random.default_rng(seed).normal(size=len(data))
    return data


def main() -> dict[str, float]:
    telling = read_arguments(__doc__)
    data = simulate_weeks(step=4 if telling.quick else 1)
    truth = true_mean(data)
    print(f"{len(data):,} weekly figures of 1994 to 2023, noise 1.2 GW\n")
    print("season       error of the mean (GW)        AIC   95 % band holds the mean")
    findings = {}
    for name, formula in FORMULAS.items():
        model = ak.AdditiveModel(formula, data)
        model.fit(data, restarts=telling.restarts, verbose=0)
        found = model.predict(data, interval=0.95)
        findings[name] = float(np.sqrt(np.mean((found["mean"] - truth) ** 2)))
        held = float(np.mean((found["lower"] <= truth) & (truth <= found["upper"])))
        aic = ak.summary(model).figures["aic"]
        print(f"{name:10} {findings[name]:24.2f} {aic:10.1f} {held:26.0%}")
    findings |= {"share": float(ak.interactions(model)["share"][0]), "held": held}
    print(f"\nThe change is {findings['share']:.1%} of the variance of the fitted demand\n")
    rows = pd.DataFrame({"year": [1996.55, 2022.55], "day": [201.0, 201.0]})
    peaks = model.predict(rows, interval=0.95).assign(truth=true_mean(rows))
    for year, row in zip((1996, 2022), peaks.itertuples(), strict=True):
        ends = f"{row.lower:.1f} to {row.upper:.1f}"
        print(f"20 July {year}: {row.mean:.1f} GW (95 %: {ends}), truth {row.truth:.1f}")
    draw(model, data, telling.out / "season.png")
    return findings


def draw(model: ak.AdditiveModel, data: pd.DataFrame, path: Path) -> None:
    title = "Electricity demand: a summer peak that was not there before"
    with picture(path, title, (11.5, 4.3), ncols=2, width_ratios=[1.15, 1]) as (left, right):
        for year, colour, dash in ((1996, BLUE, SOLID), (2022, VERMILLION, DASHED)):
            days = np.linspace(0.5, 365, 100)
            rows = pd.DataFrame({"year": year + days / 365.25, "day": days})
            own = data[data["year"].between(year, year + 1)]
            left.plot(own["day"], own["demand"], ".", color=colour, alpha=0.5)
            draw_band(left, days, model.predict(rows, interval=0.95), colour, dash, f"{year}")
            draw_truth(left, days, true_mean(rows), "truth" if year == 2022 else None)
        left.set(title="the season then and now, 95 % bands", ylabel="demand (GW)", xlim=(0, 365))
        left.legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.02))
        change = ak.effect(model, "day", "year", points=60)
        levels = np.arange(-5, 5.1, 0.5)
        drawn = right.contourf(*change.grid, change.fit.T, levels, cmap="RdBu_r", extend="both")
        bar = right.figure.colorbar(drawn, ax=right, label="difference to the mean season (GW)")
        bar.set_ticks([-4, -2, 0, 2, 4])
        right.set(title="ti(day, year): how the season changed", ylabel="year")
        for ax in (left, right):
            ax.set_xticks([15, 105, 196, 288], ["January", "April", "July", "October"])


if __name__ == "__main__":
    main()
