"""How many infections will a ward have - and how many would be a surprise?

Wards report infections over different numbers of patient days, and wards of the same kind differ by more
than chance: hygiene, staff, the patients of that month. A Poisson model knows the rate and is far too
sure of the counts; a negative binomial one learns how much wards differ, and where they differ most. The
counts are simulated, so the truth is known.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from telling import BLUE, DASHED, SOLID, VERMILLION, draw_truth, picture, read_arguments

import ahofm_keras as ak

RATE = "infections ~ kind + s(occupancy) + s(week, bs='cp') + offset(log(days))"
MODELS = {
    "poisson": ("poisson", RATE),
    "negative binomial": ("negative_binomial", RATE),
    "and a formula of the dispersion": (
        "negative_binomial",
        {"mean": RATE, "dispersion": "~ s(occupancy)"},
    ),
}
KIND = {"geriatric": 0.4, "intensive": 1.1, "surgical": 0.0}
LEVEL = 0.9


def truth(data: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Expected infections, and the dispersion: full wards differ most."""
    season = 0.35 * np.cos(2 * np.pi * (data["week"] - 4) / 52)
    log = -6.2 + data["kind"].map(KIND) + 1.6 * (data["occupancy"] - 0.7) + season
    dispersion = np.exp(-2.2 + 5.0 * (data["occupancy"] - 0.6))
    return np.asarray(data["days"] * np.exp(log)), np.asarray(dispersion)


def simulate(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({"kind": rng.choice(list(KIND), rows)})
    data["occupancy"] = rng.permutation(np.linspace(0.4, 1.1, rows))
    data["week"] = rng.integers(1, 53, rows).astype(float)
    data["days"] = np.round(rng.uniform(200, 3000, rows))
    mean, dispersion = truth(data)
    data["infections"] = rng.negative_binomial(1 / dispersion, 1 / (1 + dispersion * mean))
    return data


def wards(days: float) -> pd.DataFrame:
    """Surgical wards in spring, from half empty to overcrowded."""
    rows = pd.DataFrame({"occupancy": np.linspace(0.4, 1.1, 80), "kind": "surgical"})
    return rows.assign(week=17.0, days=days)


def main() -> dict[str, float]:
    telling = read_arguments(__doc__)
    train, test = simulate(600 if telling.quick else 4000, 1), simulate(2000, 2)
    days, counted = train["days"].sum(), train["infections"].sum()
    print(f"{len(train):,} months of wards, {days:,.0f} patient days, {counted:,} infections\n")
    models, held = {}, {}
    print(f"Fresh months: log score, CRPS, and how many lie within their {LEVEL:.0%} interval")
    for name, (family, formula) in MODELS.items():
        model = ak.AdditiveModel(formula, train, family=family)
        model.fit(train, restarts=telling.restarts, verbose=0)
        y, expected = test["infections"], model.predict(test, type="distribution")
        band = model.predict(test, interval=LEVEL)
        inside = (band["predictive_lower"] <= y) & (y <= band["predictive_upper"])
        held[name], models[name] = float(inside.mean()), model
        score, crps = expected.log_prob(y).mean(), expected.crps(y).mean()
        print(f"    {name:33} {score:8.3f} {crps:8.3f} {inside.mean():8.1%}")

    rows = wards(days=1500)[::26]
    mean, dispersion = truth(rows)
    found = models["and a formula of the dispersion"].predict(rows, type="parameters")
    print("\nDispersion by occupancy: truth, estimate, variance over mean at 1,500 days")
    every = zip(rows["occupancy"], dispersion, found["dispersion"], mean, strict=True)
    for occupancy, true, own, rate in every:
        print(f"    {occupancy:4.0%} {true:8.2f} {own:8.2f} {1 + true * rate:8.1f}")
    draw(models, train, telling.out / "wards.png")
    return held


def draw(models: dict[str, ak.AdditiveModel], train: pd.DataFrame, path: Path) -> None:
    title = "Infections of a ward: full wards differ by much more than chance"
    rows = wards(days=1500)
    mean, dispersion = truth(rows)
    near = train[(train["kind"] == "surgical") & train["days"].between(1200, 1800)]
    with picture(path, title, (10.5, 4.0), ncols=2, sharey=True) as axes:
        for ax, name, colour, dash in zip(
            axes,
            ("poisson", "and a formula of the dispersion"),
            (VERMILLION, BLUE),
            (DASHED, SOLID),
            strict=True,
        ):
            band = models[name].predict(rows, interval=LEVEL)
            lower, upper = band["predictive_lower"], band["predictive_upper"]
            ax.fill_between(rows["occupancy"], lower, upper, color=colour, alpha=0.2, linewidth=0)
            ax.plot(rows["occupancy"], band["mean"], color=colour, linestyle=dash, label="expected")
            ax.plot(near["occupancy"], near["infections"], "o", color="#8C8C8C", markersize=3, alpha=0.6)
            for tail in (0.05, 0.95):
                own = stats.nbinom.ppf(tail, 1 / dispersion, 1 / (1 + dispersion * mean))
                draw_truth(ax, rows["occupancy"], own, "true 90 % limits" if tail < 0.5 else None)
            label = "poisson" if name == "poisson" else "negative binomial, dispersion ~ s(occupancy)"
            ax.set(title=f"{label}, 90 % interval", xlabel="occupancy (1,500 patient days)")
            ax.legend(loc="upper left")
        axes[0].set_ylabel("infections")


if __name__ == "__main__":
    main()
