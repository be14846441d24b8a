"""A heteroscedastic surface: how much power a town needs, and how sure that is.

Demand depends on the hour and the temperature together: heating in cold mornings, cooling in hot
afternoons. How far it strays from its mean is a surface of its own, calm in mild nights and wide on hot
afternoons, when nobody knows how many air conditioners will run. A model of the mean gives all hours the
same interval. One with a formula for the scale too says where reserves are needed. The data are
simulated, so both surfaces have their true ones beside them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from telling import picture, read_arguments

import ahofm_keras as ak

COLD, HOT = -5.0, 35.0


def true_mean(data: pd.DataFrame) -> np.ndarray:
    """Megawatts."""
    day = np.exp(-(((data["hour"] - 14) / 5) ** 2))
    morning = np.exp(-(((data["hour"] - 8) / 2.5) ** 2))
    heating, cooling = np.maximum(15 - data["temperature"], 0), np.maximum(data["temperature"] - 22, 0)
    return np.asarray(60 + 15 * day + heating * (0.5 + 1.0 * morning) + cooling * (0.5 + 2.0 * day))


def true_spread(data: pd.DataFrame) -> np.ndarray:
    """Standard deviation in megawatts."""
    afternoon = np.exp(-(((data["hour"] - 16) / 4) ** 2))
    return np.asarray(2.0 * np.exp(0.09 * np.maximum(data["temperature"] - 12, 0) * afternoon))


def measure(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({"hour": rng.uniform(0, 24, rows), "temperature": rng.uniform(COLD, HOT, rows)})
    data["demand"] = true_mean(data) + true_spread(data) * rng.normal(size=rows)
    return data


def formulas(quick: bool) -> dict[str, dict[str, str]]:
    """A surface for the mean alone, and one for the scale too; hours are a circle."""
    margins = "k=6" if quick else "k=10"
    options = f"bs={{'hour': 'cp'}}, knots={{'hour': (0, 24), 'temperature': (-5, 35)}}, {margins}"
    mean, scale = f"demand ~ te(hour, temperature, {options})", f"~ te(hour, temperature, {options})"
    return {"mean only": {"loc": mean}, "mean and scale": {"loc": mean, "scale": scale}}


def grid(points: int) -> pd.DataFrame:
    axes = np.linspace(0, 24, points), np.linspace(COLD, HOT, points)
    hour, temperature = (own.ravel() for own in np.meshgrid(*axes, indexing="ij"))
    return pd.DataFrame({"hour": hour, "temperature": temperature})


def main() -> dict[str, float]:
    telling = read_arguments(__doc__)
    data, fresh = measure(1200 if telling.quick else 4000), measure(5000, seed=1)
    spread = true_spread(fresh)
    groups = {"calm": spread < 2.5, "between": (spread >= 2.5) & (spread < 6), "wild": spread >= 6}
    points, models, found = 18 if telling.quick else 40, {}, {}
    ends = f"{spread.min():.1f} to {spread.max():.1f} MW"
    print(f"{len(data):,} hours; the true standard deviation goes from {ends}\n")
    print("Of 5,000 new hours inside 90 % intervals, by the true spread; log score")
    for name, formula in formulas(telling.quick).items():
        models[name] = model = ak.AdditiveModel(formula, data, family="gaussian_ls")
        model.fit(data, restarts=telling.restarts, verbose=0)
        band = model.predict(fresh[["hour", "temperature"]], interval=0.9)
        inside = fresh["demand"].between(band["predictive_lower"], band["predictive_upper"])
        log = model.predict(fresh, type="distribution").log_prob(fresh["demand"])
        found[name] = float(log.mean())
        shares = "".join(f"{label:>10} {inside[rows].mean():6.1%}" for label, rows in groups.items())
        print(f"    {name:16}{shares} {found[name]:10.3f}")
    place = grid(points)
    scale = models["mean and scale"].predict(place, type="parameters")["scale"].to_numpy()
    found["error of log scale"] = float(np.sqrt(np.mean(np.log(scale / true_spread(place)) ** 2)))
    print(f"\nError of the logarithm of the scale over the surface: {found['error of log scale']:.3f}")
    print("What the scale depends on, by share of its variance")
    for row in ak.shares(models["mean and scale"], parameter="scale")[:2].itertuples():
        print(f"    {row.part:10} {row.share:6.1%}")
    draw(models["mean and scale"], place, points, telling.out / "demand.png")
    return found


def draw(model: ak.AdditiveModel, place: pd.DataFrame, points: int, path: Path) -> None:
    title = "Demand by hour and temperature: where it lies, and how far it strays"
    estimated = model.predict(place, type="parameters")
    surfaces = {
        "true mean": true_mean(place),
        "estimated mean": estimated["loc"].to_numpy(),
        "true spread": true_spread(place),
        "estimated spread": estimated["scale"].to_numpy(),
    }
    with picture(path, title, (10.5, 3.4), ncols=4, sharex=True, sharey=True) as axes:
        hour, temperature = np.linspace(0, 24, points), np.linspace(COLD, HOT, points)
        levels = {"mean": range(55, 120, 5), "spread": [1, 3, 5, 7, 9, 11, 13]}
        for ax, (name, values) in zip(axes, surfaces.items(), strict=True):
            kind = name.split()[1]
            drawn = ax.contourf(
                hour, temperature, values.reshape(points, points).T, levels[kind],
                cmap="cividis" if kind == "mean" else "magma_r", extend="both",
            )  # fmt: skip
            ax.set_title(name)
            ax.set(xlabel="hour", xticks=[0, 8, 16, 24])
            if name.startswith("estimated"):
                ax.figure.colorbar(drawn, ax=ax, label="MW")
        axes[0].set_ylabel("temperature (°C)")


if __name__ == "__main__":
    main()
