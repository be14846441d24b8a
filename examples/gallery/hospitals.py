"""Which patients come back within 30 days, and which hospitals do better than chance?

Whether a patient is readmitted depends on age, severity, the kind of admission, and the hospital. The
hospitals are levels of a random effect: small ones are pulled towards the mean, so that the worst of the
league table is not simply the smallest. And on patients that the model has not seen: do forecasts of
20 % come true in one case out of five? The patients are simulated, so the true effects are known.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from scipy.stats import binomtest
from telling import BLUE, GREY, INK, VERMILLION, picture, read_arguments

import ahofm_keras as ak

ADMISSION = {"planned": -0.5, "emergency": 0.4, "transfer": 0.1}
FORMULA = "readmitted ~ ahofm(age, severity, admission, D=2) + s(hospital, bs='re')"


def simulate_patients(rows: int, hospitals: int, seed: int = 3) -> tuple[pd.DataFrame, pd.Series]:
    """Patients, and the true effect of each hospital on the logit. Hospitals differ widely in size."""
    rng = np.random.default_rng(seed)
    names = [f"hospital {number:02d}" for number in range(1, hospitals + 1)]
    effects = pd.Series(rng.normal(0, 0.5, hospitals), names)
    sizes = rng.lognormal(0, 1, hospitals)
    data = pd.DataFrame(
        {"age": rng.integers(20, 91, rows), "severity": rng.gamma(4, 1, rows).clip(1, 10)}
    )
    data["admission"] = rng.choice(list(ADMISSION), rows, p=[0.45, 0.4, 0.15])
    data["hospital"] = rng.choice(names, rows, p=sizes / sizes.sum())
    old = (data["age"] - 60) / 20
    chance = -1.9 + 0.35 * old + 0.25 * old**2 + 0.25 * (data["severity"] - 4)
    chance += data["admission"].map(ADMISSION) + data["hospital"].map(effects)
    chance += 0.6 * old * (data["admission"] == "emergency")
    data["readmitted"] = (rng.uniform(size=rows) < expit(chance)).astype(int)
    return data, effects


def league_table(model: ak.AdditiveModel, data: pd.DataFrame, effects: pd.Series) -> pd.DataFrame:
    """A row a hospital: patients, estimate with 90 % interval, raw logit of its rate, truth.

    All three have mean 0 over patients, as effects have.
    """
    table = ak.effect(model, "hospital").frame(level=0.9).set_index("hospital")
    own = data.groupby("hospital")["readmitted"]
    table["patients"] = own.size()
    rate = (own.sum() + 0.5) / (own.size() + 1)
    for name, values in (("raw", logit(rate)), ("truth", effects)):
        table[name] = values - np.average(values[table.index], weights=table["patients"])
    return table.sort_values("fit")


def calibration(forecast: np.ndarray, came_true: pd.Series, groups: int) -> pd.DataFrame:
    """Mean forecast and share that came true in groups of equal size, with exact 95 % intervals."""
    frame = pd.DataFrame({"forecast": forecast, "true": came_true.to_numpy()})
    grouped = frame.groupby(pd.qcut(frame["forecast"], groups), observed=True)
    table = grouped.mean()
    tests = [binomtest(int(own["true"].sum()), len(own)).proportion_ci() for _, own in grouped]
    table["lower"], table["upper"] = zip(*tests, strict=True)
    return table


def main() -> dict[str, float]:
    telling = read_arguments(__doc__)
    rows, hospitals = (1500, 12) if telling.quick else (12_000, 30)
    data, effects = simulate_patients(rows, hospitals)
    train, test = data.iloc[: rows * 2 // 3], data.iloc[rows * 2 // 3 :]
    model = ak.AdditiveModel(FORMULA, train, family="bernoulli")
    model.fit(train, restarts=telling.restarts, verbose=0)
    print(f"{len(train):,} patients to learn from, {len(test):,} to test on, {hospitals} hospitals\n")

    forecast = model.predict(test)
    groups = calibration(forecast, test["readmitted"], 5 if telling.quick else 10)
    print("Forecast and what came true (95 % interval), in groups of equal size")
    for own in groups.itertuples():
        print(f"    {own.forecast:6.1%} {own.true:8.1%}   ({own.lower:.1%} to {own.upper:.1%})")
    brier = float(np.mean((forecast - test["readmitted"]) ** 2))
    same = float(np.mean((train["readmitted"].mean() - test["readmitted"]) ** 2))
    print(f"Brier score {brier:.4f}; the same forecast for everybody {same:.4f}\n")

    table = league_table(model, train, effects)
    wrong = (table[["fit", "raw"]].sub(table["truth"], axis=0) ** 2).mean() ** 0.5
    held = float(table["truth"].between(table["lower"], table["upper"]).mean())
    print(f"Error of hospitals' effects: random effect {wrong['fit']:.2f}, raw rates {wrong['raw']:.2f}")
    print(f"90 % intervals hold the truth of {held:.0%} of the hospitals")
    pair = ak.interactions(model, top=1).iloc[0]
    print(f"Strongest pair: {pair['label']}, {pair['share']:.1%} of the variance of the logit")
    draw(table, groups, telling.out / "hospitals.png")
    return {"brier": brier, "same": same, "held": held, **wrong.to_dict()}


def draw(table: pd.DataFrame, groups: pd.DataFrame, path: Path) -> None:
    title = "Readmission within 30 days: do forecasts come true, and which hospitals differ?"
    with picture(path, title, (11, 5.6), ncols=2, width_ratios=[1, 1.15]) as (left, right):
        ends = np.abs(groups[["lower", "upper"]].T.to_numpy() - groups["true"].to_numpy())
        top = 1.05 * groups["upper"].max()
        left.plot([0, top], [0, top], color=INK, linewidth=1)
        left.errorbar(groups["forecast"], groups["true"], yerr=ends, fmt="o", color=BLUE, capsize=3)
        left.set(title="patients the model has not seen, 95 % intervals", xlim=(0, top), ylim=(0, top))
        left.set(xlabel="forecast chance", ylabel="share that was readmitted", aspect="equal")
        places = np.arange(len(table))
        right.hlines(places, table["lower"], table["upper"], color=BLUE, linewidth=2, alpha=0.5)
        right.plot(table["fit"], places, "o", color=BLUE, label="random effect, 90 % interval")
        right.plot(table["raw"], places, "x", color=VERMILLION, markersize=5, label="raw rate")
        right.plot(table["truth"], places, "|", color=INK, markersize=11, mew=2, label="truth")
        right.axvline(0, color=GREY, linewidth=0.8)
        right.set_yticks(places, [f"{own.Index} (n = {own.patients})" for own in table.itertuples()])
        right.tick_params(axis="y", labelsize=7)
        right.set(title="hospitals by estimate", xlabel="effect on the log odds of readmission")
        right.legend(loc="lower right")


if __name__ == "__main__":
    main()
