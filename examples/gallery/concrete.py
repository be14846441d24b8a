"""How strong will this concrete be?

1,030 samples of 428 mixtures were pressed until they broke (Yeh 1998; UCI 165). An engineer wants a
forecast with an honest interval, and a chart to read a recipe from. Samples of one mixture at different
ages are relatives: a model that has seen one of them knows more about the others than about a mixture
that nobody has mixed. So the error is measured twice: on held-out samples and on held-out mixtures.

The quick form needs no data: it simulates a small table with the same columns by Abrams' law.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from telling import BLUE, INK, Telling, picture, read_arguments

import ahofm_keras as ak
from ahofm_keras import datasets

FORMULAS = {
    "main effects": "compressive_strength ~ s(.)",
    "and all pairs": "compressive_strength ~ ahofm(., D=2)",
}
GOAL = 40.0


def simulate_samples(mixtures: int, seed: int = 2) -> pd.DataFrame:
    """Abrams' law: strength falls with water over binder, grows with log(age); three ages a mixture."""
    rng = np.random.default_rng(seed)
    ranges = {"cement": (150, 540), "blast_furnace_slag": (0, 200), "fly_ash": (0, 150)}
    ranges |= {"water": (140, 230), "superplasticizer": (0, 20)}
    ranges |= {"coarse_aggregate": (800, 1140), "fine_aggregate": (600, 990)}
    data = pd.DataFrame({name: rng.uniform(*ends, mixtures).round(1) for name, ends in ranges.items()})
    data = data.loc[np.repeat(data.index, 3)].reset_index(drop=True)
    data["age"] = rng.choice([3, 7, 14, 28, 56, 90], len(data))
    binder = data["cement"] + 0.7 * data["blast_furnace_slag"] + 0.3 * data["fly_ash"]
    strength = 95 * np.exp(-1.9 * data["water"] / binder) * (0.3 + 0.21 * np.log(data["age"]))
    data["compressive_strength"] = np.maximum(strength + rng.normal(0, 2, len(data)), 1.0)
    return data


def try_out(data: pd.DataFrame, units: pd.Series, telling: Telling) -> pd.DataFrame:
    """Forecasts for held-out units, fold by fold of five: one row a formula and a held-out sample.

    Half of the held-out units calibrate the conformal intervals of the other half.
    """
    place = pd.Series(np.random.default_rng(0).permutation(units.nunique()), units.unique())
    share, found = units.map(place) * 5 / units.nunique(), []
    for fold in range(1 if telling.quick else 5):
        train = data[(share < fold) | (share >= fold + 1)]
        calibrate = data[(share >= fold) & (share < fold + 0.5)]
        test = data[(share >= fold + 0.5) & (share < fold + 1)]
        for name, formula in FORMULAS.items():
            model = ak.AdditiveModel(formula, train)
            model.fit(train, restarts=telling.restarts, verbose=0)
            safe = model.predict(test, interval=0.95, method="conformal", calibration=calibrate)
            own = model.predict(test, interval=0.95)
            ends = {"lower": own["predictive_lower"], "upper": own["predictive_upper"]}
            found.append(safe.assign(truth=test["compressive_strength"], formula=name, **ends))
    return pd.concat(found)


def judge(found: pd.DataFrame) -> tuple[float, float, float]:
    """Root mean squared error, and how often posterior and conformal intervals hold the strength."""
    error = np.sqrt(np.mean((found["mean"] - found["truth"]) ** 2))
    own = found["truth"].between(found["lower"], found["upper"]).mean()
    safe = found["truth"].between(found["predictive_lower"], found["predictive_upper"]).mean()
    return float(error), float(own), float(safe)


def main() -> dict[str, float]:
    telling = read_arguments(__doc__)
    data = simulate_samples(80) if telling.quick else datasets.load("concrete").data
    print("Simulated samples (quick form):" if telling.quick else "Yeh's samples:", f"{len(data):,}\n")
    # Some held-out samples lie just outside the range of the others.
    warnings.filterwarnings("ignore", "Values outside", ak.AhofmWarning)
    mixture = data.groupby(list(data.columns.drop(["age", "compressive_strength"]))).ngroup()
    kinds = {"new samples": pd.Series(data.index, data.index), "new mixtures": mixture}
    print("Root mean squared error (MPa), and how often 95 % intervals hold the strength")
    print(f"{'':34} error   posterior   conformal")
    findings = {}
    for kind in list(kinds)[1 if telling.quick else 0 :]:
        tried = try_out(data, kinds[kind], telling)
        for name in FORMULAS:
            error, own, safe = judge(tried[tried["formula"] == name])
            findings[name] = error
            print(f"    {kind:14} {name:14} {error:6.2f} {own:11.1%} {safe:11.1%}")

    model = ak.AdditiveModel(FORMULAS["and all pairs"], data)
    model.fit(data, restarts=telling.restarts, verbose=0)
    print("\nWhich ingredients work together, by share of the variance")
    for row in ak.interactions(model, top=4).itertuples():
        print(f"    {row.label:40} {row.share:6.1%}")
    grid, strength = chart(model, data)
    month = int(np.argmin(np.abs(grid.grid[1] - 28)))
    recipe = float(grid.grid[0][np.argmax(strength[:, month] >= GOAL)])
    print(f"\n{GOAL:.0f} MPa after 28 days take {recipe:.0f} kg of cement per m³, the rest as usual")
    draw(grid, strength, tried[tried["formula"] == name], telling.out / "concrete.png")
    return {**findings, "recipe": recipe}


def chart(model: ak.AdditiveModel, data: pd.DataFrame) -> tuple[ak.Effect, np.ndarray]:
    """Forecast strength over cement and age, the other ingredients at their medians."""
    ages = np.geomspace(3, 90, 60)
    grid = ak.effect(model, "cement", "age", points=60, at={"age": ages})
    others = data.drop(columns=["cement", "age", "compressive_strength"]).median()
    rows = grid.frame()[["cement", "age"]].assign(**others)
    return grid, model.predict(rows).reshape(grid.fit.shape)


def draw(grid: ak.Effect, strength: np.ndarray, tried: pd.DataFrame, path: Path) -> None:
    title = "Concrete: a chart to read a recipe from, and how far to trust it"
    with picture(path, title, (11, 4.6), ncols=2, width_ratios=[1.2, 1]) as (left, right):
        cement, age = grid.grid
        steps = range(0, 85, 5)
        drawn = left.contourf(cement, age, strength.T, steps, cmap="cividis", extend="both")
        line = left.contour(cement, age, strength.T, levels=[GOAL], colors="white", linewidths=3)
        # In the middle of the longest piece: by itself the label may lie across an edge.
        course = max(line.get_paths()[0].to_polygons(closed_only=False), key=len)
        left.clabel(line, fmt=f"{GOAL:.0f} MPa", fontsize=11, manual=[tuple(course[len(course) // 2])])
        left.set(title="forecast, other ingredients at their medians", yscale="log", ylim=(3, 90))
        left.set(xlabel="cement (kg per m³)", ylabel="age (days)")
        left.set_yticks([3, 7, 14, 28, 56, 90], [3, 7, 14, 28, 56, 90])
        left.minorticks_off()
        left.figure.colorbar(drawn, ax=left, label="compressive strength (MPa)", pad=0.02)
        reach = (tried["predictive_upper"] - tried["predictive_lower"]) / 2
        right.errorbar(tried["mean"], tried["truth"], xerr=reach, fmt="none", ecolor=BLUE, alpha=0.12)
        right.plot(tried["mean"], tried["truth"], "o", color=BLUE, markersize=2.5)
        right.plot([0, 85], [0, 85], color=INK, linewidth=1)
        right.set(title="mixtures that the model never saw, 95 % intervals", aspect="equal")
        right.set(xlabel="forecast (MPa)", ylabel="measured (MPa)", xlim=(0, 85), ylim=(0, 85))


if __name__ == "__main__":
    main()
