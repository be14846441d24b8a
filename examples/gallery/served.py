"""From data frame to a served model.

A letting agency wants a rent for any flat on its web page. A statistician fits, saves and exports in
four lines. The web server knows nothing of formulas, of splines or of this package: it loads the
SavedModel with TensorFlow, takes the raw columns of a flat as JSON, as TF Serving would, and answers
with a rent and its uncertainty. Are the answers those of the model, and how fast do they come?
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pandas as pd
import tensorflow as tf
from matplotlib.ticker import LogLocator
from telling import BLUE, DASHED, SOLID, VERMILLION, draw_band, picture, read_arguments

import ahofm_keras as ak

DISTRICTS = {"Altstadt": 0.25, "Hafen": 0.05, "Nordend": 0.0, "Westpark": -0.15}
FORMULA = "rent ~ balcony + ahofm(area, built, district, D=2)"


def simulate_flats(rows: int, seed: int = 0) -> pd.DataFrame:
    """Monthly rents in euros: old and new flats are dearer, old ones in the Altstadt most of all."""
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({"area": rng.uniform(20, 140, rows).round()})
    data["built"] = rng.integers(1890, 2025, rows)
    data["district"] = rng.choice(list(DISTRICTS), rows)
    data["balcony"] = rng.uniform(size=rows) < 0.6
    since = (data["built"] - 1960) / 60
    rent = 3.4 + 0.8 * np.log(data["area"]) + 0.06 * data["balcony"] + data["district"].map(DISTRICTS)
    rent += 0.2 * since**2 - 0.15 * since * (data["district"] == "Altstadt")
    data["rent"] = rng.gamma(80, np.exp(rent) / 80)
    return data


class Server:
    """What TF Serving does with a folder: rows of raw values in JSON, predictions out."""

    def __init__(self, folder: Path) -> None:
        self.model = tf.saved_model.load(str(folder))

    def answer(self, request: str) -> str:
        asked = json.loads(request)
        endpoint = self.model.signatures[asked["signature_name"]]
        columns = {
            name: tf.constant([row[name] for row in asked["instances"]], spec.dtype)
            for name, spec in endpoint.structured_input_signature[1].items()
        }
        answers = {name: values.numpy() for name, values in endpoint(**columns).items()}
        return json.dumps({"predictions": pd.DataFrame(answers).to_dict("records")})


def ask(server: Server, rows: pd.DataFrame, endpoint: str = "serving_default") -> pd.DataFrame:
    """The client: a data frame becomes a request, the answer a data frame. No model here."""
    request = {"signature_name": endpoint, "instances": rows.to_dict("records")}
    return pd.DataFrame(json.loads(server.answer(json.dumps(request)))["predictions"])


def milliseconds(call: Callable[[pd.DataFrame], object], rows: pd.DataFrame, repeats: int) -> float:
    """Median time of a call, after one that is not counted."""
    times = [time.perf_counter()]
    for _ in range(repeats + 1):
        call(rows)
        times.append(time.perf_counter())
    return 1000 * float(np.median(np.diff(times)[1:]))


def main() -> dict[str, float]:
    telling = read_arguments(__doc__)
    data = simulate_flats(500 if telling.quick else 4000)
    model = ak.AdditiveModel(FORMULA, data, family="gamma")
    model.fit(data, restarts=telling.restarts, verbose=0)
    model.save(telling.out / "rents.keras")
    model.export(telling.out / "rents" / "1")

    flats = data.drop(columns="rent")
    expected = model.predict(flats)
    loaded = keras.models.load_model(telling.out / "rents.keras").predict(flats)
    server = Server(telling.out / "rents" / "1")
    served = ask(server, flats)["response"]
    one = flats.head(1)
    print(f"Request  {json.dumps(one.to_dict('records')[0])}")
    print(f"Answer   {json.dumps(ask(server, one).to_dict('records')[0])}\n")
    gaps = {"loaded": loaded, "served": served}
    gaps = {name: float(np.max(np.abs(own / expected - 1))) for name, own in gaps.items()}
    print(f"Largest relative difference to model.predict over {len(flats):,} flats")
    print(f"    loaded from rents.keras          {gaps['loaded']:.1e}")
    print(f"    SavedModel, asked through JSON   {gaps['served']:.1e}\n")

    sizes, repeats = ([1, 100], 1) if telling.quick else ([1, 10, 100, 1000, 4000], 20)
    calls = {"SavedModel through JSON": lambda rows: ask(server, rows), "model.predict": model.predict}
    table = pd.DataFrame(
        {
            name: [milliseconds(call, flats.head(n), repeats) for n in sizes]
            for name, call in calls.items()
        },
        index=pd.Index(sizes, name="flats"),
    )
    print(f"Milliseconds a request, by number of flats in it (median of {repeats})")
    print(table.round(1).to_string())
    draw(server, table, telling.out / "served.png")
    return gaps


def draw(server: Server, table: pd.DataFrame, path: Path) -> None:
    title = "A model on a web page: raw columns in, rent with its interval out"
    with picture(path, title, (11, 4.2), ncols=2, width_ratios=[1.3, 1]) as (left, right):
        years = np.arange(1890, 2025)
        for district, colour, dash in (("Altstadt", VERMILLION, DASHED), ("Nordend", BLUE, SOLID)):
            flats = pd.DataFrame({"area": 75.0, "built": years, "district": district, "balcony": True})
            link, error = ask(server, flats, "uncertainty")[["link", "link_se"]].to_numpy().T
            ends = {"mean": link, "lower": link - 1.96 * error, "upper": link + 1.96 * error}
            draw_band(left, years, np.exp(pd.DataFrame(ends)), colour, dash, district)
        left.set(title="75 m² with balcony, as served: mean and 95 % band", xlabel="year built")
        left.set_ylabel("rent (euros a month)")
        left.legend()
        for name, colour, mark in zip(table, (BLUE, VERMILLION), "os", strict=True):
            right.plot(table.index, table[name], color=colour, marker=mark, linewidth=2, label=name)
        right.set(title="time of an answer", xscale="log", yscale="log", xlabel="flats in a request")
        right.set_ylabel("milliseconds (median)")
        right.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        for axis in (right.xaxis, right.yaxis):
            axis.set_major_formatter("{x:,g}")
            axis.set_minor_formatter("")
        right.legend()


if __name__ == "__main__":
    main()
