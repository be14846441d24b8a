"""A spatio-temporal surface: the air over a city, hour by hour.

Vans measure nitrogen dioxide at random places and hours. The centre is bad at the two rush hours; the
plume of a power station turns with the wind in the course of the day. So the map changes its shape with
time: an interaction of three features. A fixed map plus a daily course, `te(lat, lon) + s(hour)`, cannot
do that. The measurements are simulated, so every estimated map has its true one beside it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from telling import picture, read_arguments

import ahofm_keras as ak

LAT, LON, HOURS = (48.0, 48.3), (11.3, 11.8), (4, 8, 12, 18)


def true_mean(data: pd.DataFrame) -> np.ndarray:
    """Nitrogen dioxide in µg per m³."""
    north = (data["lat"] - 48.15) / 0.15
    east = (data["lon"] - 11.55) / 0.25
    hour = data["hour"]
    rush = np.exp(-(((hour - 8) / 2.2) ** 2)) + np.exp(-(((hour - 18) / 2.5) ** 2))
    centre = np.exp(-2.5 * (north**2 + east**2))
    wind = 2 * np.pi * hour / 24
    plume = np.exp(-4 * ((north - 0.55 * np.sin(wind)) ** 2 + (east - 0.55 * np.cos(wind)) ** 2))
    return np.asarray(12 + 25 * rush * centre + 22 * plume)


def measure(rows: int, noise: float = 4.0, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({"lat": rng.uniform(*LAT, rows), "lon": rng.uniform(*LON, rows)})
    data["hour"] = rng.uniform(0, 24, rows)
    data["no2"] = true_mean(data) + noise * rng.normal(size=rows)
    return data


def formulas(quick: bool) -> dict[str, str]:
    """Three models of the same data; the ends of all axes are known."""
    size, margin = ("F=4, k=8", 5) if quick else ("F=8", 8)
    place, course = "'lat': (48.0, 48.3), 'lon': (11.3, 11.8)", "'hour': (0, 24)"
    ends = f"knots={{{place}, {course}}}"
    fixed = f"no2 ~ te(lat, lon, knots={{{place}}}) + s(hour, bs='cp', knots=(0, 24))"
    everything = f"no2 ~ ahofm(lat, lon, hour, D=3, {size}, {ends})"
    exact = f"no2 ~ te(lat, lon, hour, k={margin}, bs={{'hour': 'cp'}}, {ends})"
    return {
        "a map and a daily course": fixed,
        "all interactions": everything,
        "exact tensor product": exact,
    }


def every_hour(points: int) -> pd.DataFrame:
    """Maps of the whole hours of a day, hour by hour."""
    axes = np.arange(24.0), np.linspace(*LAT, points), np.linspace(*LON, points)
    hour, lat, lon = (grid.ravel() for grid in np.meshgrid(*axes, indexing="ij"))
    return pd.DataFrame({"lat": lat, "lon": lon, "hour": hour})


def main() -> dict[str, float]:
    telling = read_arguments(__doc__)
    data, day = measure(700 if telling.quick else 3000), every_hour(points=18 if telling.quick else 40)
    maps, errors = {"truth": true_mean(day)}, {}
    spread = maps["truth"].std()
    print(f"{len(data):,} measurements, noise 4.0 µg per m³; the true mean varies by {spread:.1f}\n")
    print("Error of the estimated mean over the whole day, and what it misses of the variance")
    for name, formula in formulas(telling.quick).items():
        model = ak.AdditiveModel(formula, data)
        model.fit(data, restarts=telling.restarts, verbose=0)
        maps[name] = model.predict(day)
        errors[name] = float(np.sqrt(np.mean((maps[name] - maps["truth"]) ** 2)))
        print(f"    {name:26} {errors[name]:6.2f} {(errors[name] / spread) ** 2:8.1%}")
        if name == "all interactions":
            shares = ak.shares(model)
    print("\nHow the variance of ahofm(lat, lon, hour) divides into orders")
    for row in shares[:3].itertuples():
        print(f"    {row.part:26} {row.share:6.1%}")
    draw(maps, telling.out / "air.png")
    return errors


def draw(maps: dict[str, np.ndarray], path: Path) -> None:
    title = "Nitrogen dioxide over a city: the map changes its shape in the course of the day"
    labels = {"truth": "truth", "all interactions": "ahofm(lat, lon, hour)"}
    labels["a map and a daily course"] = "te(lat, lon) + s(hour)"
    layout = {"nrows": 3, "ncols": len(HOURS), "sharex": True, "sharey": True}
    with picture(path, title, (10.5, 6.6), **layout) as axes:
        for row, (name, label) in zip(axes, labels.items(), strict=True):
            points = round((len(maps[name]) / 24) ** 0.5)
            hourly = maps[name].reshape(24, points, points)
            lat, lon = np.linspace(*LAT, points), np.linspace(*LON, points)
            for ax, hour in zip(row, HOURS, strict=True):
                drawn = ax.contourf(
                    lon, lat, hourly[hour], range(8, 53, 4), cmap="cividis", extend="both"
                )
            row[0].set_ylabel(f"{label}\n\nlatitude (°)")
        for ax, top, hour in zip(axes[-1], axes[0], HOURS, strict=True):
            ax.set(xlabel="longitude (°)", xticks=[11.4, 11.7], yticks=[48.05, 48.15, 48.25])
            top.set_title(f"{hour}:00")
        axes[0, 0].figure.colorbar(drawn, ax=axes, label="nitrogen dioxide (µg per m³)", shrink=0.7)


if __name__ == "__main__":
    main()
