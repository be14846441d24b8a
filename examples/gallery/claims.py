"""Which drivers have more accidents - and what happens when the time at risk is forgotten?

A motor insurer counts the claims of each policy. Policies run for different times: young drivers change
their insurer often, so that their policies are short. A Poisson model with `offset(log(exposure))`
compares claims per year; without it young drivers look harmless. The counts are simulated, so the truth
is known.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from telling import (
    BLUE,
    DASHED,
    GREY,
    INK,
    SOLID,
    VERMILLION,
    draw_band,
    draw_truth,
    picture,
    read_arguments,
)

import ahofm_keras as ak

# Log of the rate against that of the city: the first level in the alphabet is the one to compare with.
AREA = {"city": 0.0, "rural": -0.75, "suburb": -0.5, "town": -0.3}
FORMULA = "claims ~ area + s(car_age) + ahofm(driver_age, power, D=2)"


def log_rate(data: pd.DataFrame) -> np.ndarray:
    """The truth: log of the claims per year. A strong car is dangerous in young hands only."""
    youth = np.exp(-(data["driver_age"] - 18) / 10)
    old = (data["driver_age"] - 50) / 40
    rate = -1.4 + data["area"].map(AREA) + 0.9 * youth + 0.5 * old**2 - 0.02 * data["car_age"]
    return np.asarray(rate + 0.8 * youth * (data["power"] - 90) / 60)


def simulate_policies(rows: int, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({"driver_age": 18 + 62 * rng.beta(1.3, 1.9, rows)})
    data["power"] = rng.uniform(40, 180, rows)
    data["car_age"] = rng.uniform(0, 20, rows)
    data["area"] = rng.choice(list(AREA), rows, p=[0.15, 0.3, 0.3, 0.25])
    longest = 0.25 + 2.75 * (1 - np.exp(-(data["driver_age"] - 17) / 15))
    data["exposure"] = rng.uniform(0.3, 1.0, rows) * longest
    data["claims"] = rng.poisson(data["exposure"] * np.exp(log_rate(data)))
    return data


def fit(formula: str, data: pd.DataFrame, restarts: int | str) -> ak.AdditiveModel:
    model = ak.AdditiveModel(formula, data, family="poisson")
    model.fit(data, restarts=restarts, verbose=0)
    return model


def rate_ratios(model: ak.AdditiveModel) -> pd.DataFrame:
    """Claims per year against the city, with 95 % intervals and the truth; a row an area."""
    table = ak.summary(model).coefficients.drop("(Intercept)")
    table.index = [label.removeprefix("area[").removesuffix("]") for label in table.index]
    logs = pd.DataFrame({"ratio": table["estimate"], "truth": pd.Series(AREA)[table.index]})
    logs["lower"], logs["upper"] = (table["estimate"] + sign * 1.96 * table["se"] for sign in (-1, 1))
    return np.exp(logs)


def drivers(power: float) -> pd.DataFrame:
    """From 18 to 79, in the city, with a car of a given power, insured for a year."""
    rows = pd.DataFrame({"driver_age": np.linspace(18.5, 79, 100), "power": power})
    return rows.assign(car_age=8.0, area="city", exposure=1.0)


def main() -> dict[str, float]:
    telling = read_arguments(__doc__)
    data = simulate_policies(1500 if telling.quick else 20_000)
    claims, years = data["claims"].sum(), data["exposure"].sum()
    print(f"{len(data):,} policies, {years:,.0f} years at risk, {claims:,} claims\n")
    model = fit(f"{FORMULA} + offset(log(exposure))", data, telling.restarts)
    naive = fit(FORMULA, data, telling.restarts)

    ratios = rate_ratios(model)
    print("Claims per year against the city: rate ratio, 95 % interval, truth")
    for row in ratios.itertuples():
        print(f"    {row.Index:8} {row.ratio:6.2f} {row.lower:8.2f} to {row.upper:.2f} {row.truth:8.2f}")
    share = ak.interactions(model, order=2)["share"][0]
    print(f"Share of driver_age:power in the variance of the log rate: {share:.1%}\n")

    strong = drivers(power=150)
    truth, found = np.exp(log_rate(strong)), model.predict(strong, interval=0.95)
    inside = float(np.mean((found["lower"] <= truth) & (truth <= found["upper"])))
    print("Claims per year at 18 against those at 49, with 150 kW")
    factors = {}
    for name, rates in (
        ("truth", truth),
        ("offset", found["mean"]),
        ("no offset", naive.predict(strong)),
    ):
        factors[name] = float(np.asarray(rates)[0] / np.asarray(rates)[50])
        print(f"    {name:10} {factors[name]:6.2f}")
    print(f"The 95 % band of the rate holds the truth at {inside:.0%} of the ages")
    draw(model, naive, ratios, telling.out / "claims.png")
    return {**factors, "inside": inside}


def draw(model: ak.AdditiveModel, naive: ak.AdditiveModel, ratios: pd.DataFrame, path: Path) -> None:
    title = "Claims per year: forget the exposure, and young drivers look harmless"
    with picture(path, title, (11.5, 3.9), ncols=3, width_ratios=[1, 1, 0.8]) as (*panels, right):
        for ax, power in zip(panels, (60, 150), strict=True):
            rows = drivers(power)
            ages, wrong = rows["driver_age"], naive.predict(rows)
            draw_band(
                ax, ages, model.predict(rows, interval=0.95), BLUE, SOLID, "with offset, 95 % band"
            )
            ax.plot(ages, wrong, color=VERMILLION, linestyle=DASHED, linewidth=2, label="without offset")
            draw_truth(ax, ages, np.exp(log_rate(rows)), "truth")
            ax.set(title=f"a car of {power} kW", xlabel="age of the driver (years)")
            ax.set(yscale="log", ylim=(0.1, 3))
            ax.set_yticks([0.1, 0.2, 0.5, 1, 2], [0.1, 0.2, 0.5, 1, 2])
            ax.minorticks_off()
        panels[0].set_ylabel("claims per year (city)")
        panels[1].legend(loc="upper right")
        reach = np.abs(ratios[["lower", "upper"]].T.to_numpy() - ratios["ratio"].to_numpy())
        right.errorbar(ratios["ratio"], ratios.index, xerr=reach, fmt="o", color=BLUE, capsize=3)
        right.plot(ratios["truth"], ratios.index, "|", color=INK, markersize=16, label="truth")
        right.axvline(1, color=GREY, linewidth=0.8)
        right.set(title="where they live, 95 % intervals", xlabel="rate ratio against the city")
        right.set_ylim(-0.6, len(ratios) - 0.1)
        right.legend(loc="upper left")


if __name__ == "__main__":
    main()
