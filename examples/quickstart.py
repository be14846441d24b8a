"""Five minutes with ahofm_keras: fit, compare, read, draw, save, export. Run it with `make demo`.

The data is the paper's example (supplement, "Interpretability"): a rate measured at times and places,
whose mean is the sum of all smooth three-way interactions of time, lat, lon and rate.
"""

from __future__ import annotations

import time
from pathlib import Path

import keras
import matplotlib
import numpy as np
import pandas as pd

import ahofm_keras as ak
from ahofm_keras.datasets import Simulation, simulate_toy

FOLDER = Path("demo")


def root_mean_squared_error(model: ak.AdditiveModel, data: pd.DataFrame) -> float:
    return float(np.sqrt(np.mean((model.predict(data) - data["y"]) ** 2)))


def main() -> None:
    began = time.perf_counter()
    simulation = simulate_toy(rows=10_000, noise=0.1, seed=0)
    train, test = simulation.data.iloc[:8000], simulation.data.iloc[8000:]

    print("All interactions up to order 3 of time, lat, lon and rate:")
    model = ak.AdditiveModel("y ~ ahofm(time, lat, lon, rate, D=3, F=5, df=8, knots=(0, 1))", data=train)
    model.fit(train)

    print("\nMain effects only:")
    additive = ak.AdditiveModel("y ~ s(., df=8, knots=(0, 1))", data=train)
    additive.fit(train)

    print("\nRoot mean squared error on 2,000 held-out rows (noise: 0.100)")
    print(f"    main effects only                  {root_mean_squared_error(additive, test):.3f}")
    print(f"    all interactions up to order 3     {root_mean_squared_error(model, test):.3f}")

    print(f"\n{ak.summary(model)}")
    print("\nThe strongest interactions, by their share of the variance")
    print(ak.interactions(model, order=3, top=4).to_string(index=False, float_format="{:.3f}".format))

    FOLDER.mkdir(exist_ok=True)
    matplotlib.use("Agg")
    draw(simulation, model, FOLDER / "surfaces.png")
    page = ak.plot(model)
    page["time"].get_figure(root=True).savefig(FOLDER / "effects.png", dpi=160)
    ak.report(model, FOLDER / "report.html", data=test)
    model.save(FOLDER / "model.keras")
    model.export(FOLDER / "serving" / "1")

    loaded = keras.models.load_model(FOLDER / "model.keras")
    row = {"time": 0.5, "lat": 0.2, "lon": 0.7, "rate": 0.1}
    print(f"\nOne prediction, from the saved model: {loaded.predict(row)[0]:.3f}")
    print(f"\n{time.perf_counter() - began:.0f} seconds. Written:")
    for path, what in (
        ("surfaces.png", "the surface over lat and lon at three times, true and estimated"),
        ("effects.png", "main effects, the strongest pairs and triples, the interaction map"),
        ("report.html", "the model for people who write no Python: open it in a browser"),
        ("model.keras", 'keras.models.load_model("demo/model.keras")'),
        ("serving/1", "SavedModel in the layout of TF Serving"),
    ):
        print(f"    {FOLDER / path!s:22} {what}")


def draw(simulation: Simulation, model: ak.AdditiveModel, path: Path) -> None:
    """True and estimated mean over lat and lon, early, halfway and late."""
    import matplotlib.pyplot as plt

    axis = np.linspace(0.01, 0.99, 80)
    lat, lon = (grid.ravel() for grid in np.meshgrid(axis, axis))
    times = (0.1, 0.5, 0.9)
    surfaces = []
    for moment in times:
        rows = pd.DataFrame({"time": moment, "lat": lat, "lon": lon, "rate": 0.5})
        surfaces.append((simulation.mean(rows), model.predict(rows)))
    limit = max(np.abs(values).max() for pair in surfaces for values in pair)
    figure, axes = plt.subplots(2, 3, figsize=(9, 5.6), sharex=True, sharey=True, layout="constrained")
    for column, (moment, pair) in enumerate(zip(times, surfaces, strict=True)):
        for row, values in enumerate(pair):
            panel = axes[row, column]
            image = panel.contourf(
                axis,
                axis,
                values.reshape(80, 80),
                levels=np.linspace(-limit, limit, 25),
                cmap="RdBu_r",
            )
            panel.contour(axis, axis, values.reshape(80, 80), levels=12, colors="black", linewidths=0.3)
            panel.set_aspect("equal")
        axes[0, column].set_title(f"time = {moment}", fontsize=11)
        axes[1, column].set_xlabel("lat")
    axes[0, 0].set_ylabel("truth\n\nlon")
    axes[1, 0].set_ylabel("ahofm, D = 3\n\nlon")
    figure.colorbar(image, ax=axes, shrink=0.75, label="mean of y", ticks=np.arange(-2, 2.1, 0.5))
    figure.suptitle("A surface that changes with time: three-way interactions, learned", fontsize=13)
    figure.savefig(path, dpi=160)


if __name__ == "__main__":
    main()
