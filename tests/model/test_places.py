"""Models of places and regions through every solver, file and export, and with many rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import ahofm_keras as ak
from ahofm_keras.solvers.settings import use_settings

FORMULAS = {
    "places": "y ~ s(lon, lat) + g",
    "product": 'y ~ te(lon, lat, time, d=(2, 1), bs=("ds", "ps"))',
    "process": 'y ~ s(lon, lat, bs="gp") + s(time, bs="gp")',
    "regions": 'y ~ s(g, bs="mrf") + s(time)',
}
NEAR = {"a": ["b"], "b": ["a", "c"], "c": ["b", "d"], "d": ["c"]}


def make_data(rows: int = 250, seed: int = 100) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(rng.uniform(size=(rows, 3)), columns=["lon", "lat", "time"])
    data["g"] = rng.choice(list("abc"), rows)
    data["mu"] = np.sin(5 * data.lon) * np.cos(4 * data.lat) + data.time + (data.g == "b")
    data["y"] = data.mu + 0.2 * rng.normal(size=rows)
    data["count"] = rng.poisson(np.exp(data.mu))
    return data


def build(name: str, data: pd.DataFrame, **options: Any) -> ak.AdditiveModel:
    neighbours = {"neighbours": {"g": NEAR}} if name == "regions" else {}
    return ak.AdditiveModel(FORMULAS[name], data, **neighbours, **options)


@pytest.fixture(scope="module", params=FORMULAS)
def fitted(request: pytest.FixtureRequest) -> ak.AdditiveModel:
    data = make_data()
    model = build(request.param, data)
    model.fit(data, verbose=0)
    return model


def test_files_and_clones_predict_the_same(fitted: ak.AdditiveModel, tmp_path: Path) -> None:
    rows = make_data(40, seed=101)
    for name in ("lon", "lat", "time"):
        rows[name] = rows[name].clip(0.02, 0.98)
    wanted = fitted.predict(rows, interval=0.9)
    fitted.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    pd.testing.assert_frame_equal(again.predict(rows, interval=0.9), wanted)
    assert ak.summary(again).terms.equals(ak.summary(fitted).terms)
    clone = keras.models.clone_model(fitted)
    clone.set_weights(fitted.get_weights())
    np.testing.assert_allclose(clone.predict(rows), wanted["mean"], atol=1e-6)


def test_exports_predict_the_same(tmp_path: Path) -> None:
    data = make_data()
    formula = 'y ~ ti(lon, lat, time, d=(2, 1), k=(8, 5)) + s(lon, lat, bs="gp", k=12) + s(g, bs="mrf")'
    model = ak.fit(formula, data, neighbours={"g": NEAR}, verbose=0)
    model.export(str(tmp_path / "served"), verbose=False)
    served = tf.saved_model.load(str(tmp_path / "served"))
    columns = {name: tf.constant(data[name].to_numpy()) for name in model.design.columns}
    found, wanted = served.signatures["uncertainty"](**columns), model.predict(data, interval=0.9)
    np.testing.assert_allclose(found["link"], wanted["mean"], atol=1e-5)
    spread = (wanted["upper"] - wanted["lower"]) / (2 * 1.6448536)
    np.testing.assert_allclose(found["link_se"], spread, rtol=1e-4)


def test_a_coordinate_alone_is_told_of_its_place() -> None:
    model = ak.fit("y ~ s(lon, lat, k=8)", make_data(60), restarts=0, verbose=0)
    with pytest.raises(ak.DataError, match="It is a coordinate of `lon, lat`: name all of them"):
        ak.effect(model, "lon")


def test_terms_sum_to_the_link(fitted: ak.AdditiveModel) -> None:
    rows = make_data(60)
    terms = fitted.predict(rows, type="terms")
    left = fitted.predict(rows, type="link") - terms.sum(axis=1)
    np.testing.assert_allclose(left, left.mean(), atol=1e-5)


@pytest.mark.filterwarnings("ignore:The fit reached its last epoch")
@pytest.mark.parametrize("solver", ["bcd", "adam"])
def test_other_solvers(solver: str) -> None:
    data = make_data()
    errors = []
    for own in (solver, "variational"):
        model = ak.AdditiveModel("y ~ s(lon, lat) + s(time) + g", data)
        model.fit(data, solver=own, verbose=0, **({"epochs": 60} if own == "adam" else {}))
        errors.append(float(np.sqrt(np.mean((model.predict(data) - data.mu) ** 2))))
        assert model.has_posterior
    assert errors[0] < 2 * errors[1] < 0.25


def test_a_count_over_places_and_regions() -> None:
    data = make_data(600)
    model = ak.fit('count ~ s(lon, lat) + s(time) + s(g, bs="mrf")', data, family="poisson",
                   neighbours={"g": NEAR}, verbose=0)  # fmt: skip
    assert np.corrcoef(model.predict(data, type="link"), data.mu)[0, 1] > 0.95
    assert model.fit_result.converged


def test_functions_that_are_not_kept_give_the_same_fit() -> None:
    data = make_data(500)
    found = []
    for kept in (2**24, 0):
        with use_settings(kept_numbers=kept, chunk_rows=200):
            found.append(ak.fit("y ~ s(lon, lat) + s(time)", data, verbose=0).predict(data))
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)


def test_a_map_for_each_level_and_a_slope_over_places() -> None:
    data = make_data(400)
    data["y"] += data.time * data.lon + (data.g == "a") * data.lat
    model = ak.fit("y ~ g + s(lon, lat, by=g, k=12) + s(lon, lat, by=time, k=12)", data, verbose=0)
    maps = ak.effect(model, "lon", "lat", by="g", points=5)
    assert maps.features == ("lon", "lat", "g")
    assert maps.fit.shape == maps.se.shape == (5, 5, 3)
    slope = ak.effect(model, "lon", "lat", by="time", points=5)
    assert slope.fit.shape == (5, 5)
    assert np.corrcoef(slope.fit.mean(axis=1), slope.grid[0])[0, 1] > 0.8
    terms = model.predict(data, type="terms")
    left = model.predict(data, type="link") - terms.sum(axis=1)
    np.testing.assert_allclose(left, left.mean(), atol=1e-5)


def test_batches_of_a_dataset_are_checked_along_each_coordinate() -> None:
    data = make_data(120)
    model = ak.AdditiveModel("y ~ s(lon, lat)", data, extrapolation="error")
    model.fit(data, verbose=0, solver="bcd")
    columns = {name: data[name].to_numpy() for name in ("lon", "lat")}
    good = tf.data.Dataset.from_tensor_slices(columns).batch(50)
    np.testing.assert_allclose(model.predict(good, verbose=0), model.predict(data), atol=1e-6)
    bad = tf.data.Dataset.from_tensor_slices({**columns, "lat": columns["lat"] + 1}).batch(50)
    with pytest.raises(ak.DataError, match="`lat`"):
        model.predict(bad, verbose=0)


def test_refined_models_keep_their_neighbours() -> None:
    data = make_data(300)
    data["y"] += 6 * (data.lon - 0.5) * (data.time - 0.5)
    model = ak.AdditiveModel(
        'y ~ s(g, bs="mrf") + s(lon, lat) + afm(lon, time, F=2, main=False)',
        data,
        neighbours={"g": NEAR},
    )
    model.fit(data, verbose=0)
    refined = ak.refine(model, data, top=1, fit=False)
    assert refined.design.neighbours == {"g": NEAR}
