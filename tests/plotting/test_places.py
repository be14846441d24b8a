"""Pictures of places and regions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.errors import DataError
from ahofm_keras.plotting import effect_data, plot_effect, plot_marginals, regions_data, rug_data


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    rng = np.random.default_rng(100)
    data = pd.DataFrame(rng.uniform(size=(250, 3)), columns=["lon", "lat", "time"])
    data = data[np.hypot(data.lon - 0.3, data.lat - 0.7) > 0.25].reset_index(drop=True)
    data["region"] = np.where(data.lon > 0.5, "east", "west")
    data.loc[data.lat > 0.8, "region"] = "north"
    data["y"] = np.sin(5 * data.lon) * data.lat * (1 + data.time) + 0.1 * rng.normal(size=len(data))
    return data


@pytest.fixture(scope="module")
def model(data: pd.DataFrame) -> ak.AdditiveModel:
    return ak.fit("y ~ s(lon, lat) + s(time) + ti(lon, lat, time, d=(2, 1))", data, verbose=0)


def squares(*names: str) -> dict[str, Any]:
    features = []
    for place, name in enumerate(names):
        ring = [[place, 0], [place + 1, 0], [place + 1, 1], [place, 1], [place, 0]]
        geometry = {"type": "MultiPolygon", "coordinates": [[ring]]}
        features.append({"type": "Feature", "id": name, "properties": None, "geometry": geometry})
    return {"type": "FeatureCollection", "features": features}


def test_a_place_is_a_map_with_its_rows(model: ak.AdditiveModel, data: pd.DataFrame) -> None:
    ax = ak.plot(model, "lon", "lat", rug=True)
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_label()) == ("lon", "lat", "lon, lat")
    (points,) = (line for line in ax.lines if len(line.get_xdata()) == len(data))
    np.testing.assert_array_equal(points.get_xydata(), data[["lon", "lat"]])
    frame = effect_data(model, "lon", "lat", points=20)
    hole = np.hypot(frame.lon - 0.3, frame.lat - 0.7) < 0.05
    assert hole.any()
    assert not frame.near_data[hole].any()
    assert rug_data(model, "lon, lat").columns.tolist() == ["lon", "lat"]


def test_a_place_and_time_are_slices(model: ak.AdditiveModel) -> None:
    axes = plot_effect(model, "lon", "lat", "time")
    assert [ax.get_xlabel() for ax in axes] == ["lon"] * 3
    assert "lon, lat : time" in axes[0].figure.get_suptitle()


def test_the_page_has_maps_beside_curves(model: ak.AdditiveModel) -> None:
    found = ak.plot(model)
    assert {"lon, lat", "time"} <= set(found)
    assert found["lon, lat"].get_ylabel() == "lat"
    assert found["time"].get_xlabel() != "lat"


def test_marginals_go_along_features_that_are_lines(model: ak.AdditiveModel) -> None:
    axes = plot_marginals(model, order=2)
    assert np.asarray(axes).size == 1


def test_no_residuals_of_a_place(model: ak.AdditiveModel) -> None:
    with pytest.raises(DataError, match="for one feature"):
        ak.plot(model, "lon", "lat", residuals=True)


def test_regions_on_their_map(data: pd.DataFrame) -> None:
    names = squares("west", "north", "east", "sea")
    near = {"west": ["north"], "north": ["west", "east"], "east": ["north", "far"], "far": ["east"]}
    model = ak.fit('y ~ s(region, bs="mrf")', data, neighbours={"region": near}, verbose=0)
    frame = regions_data(model, "region", names)
    effect = ak.effect(model, "region")
    expected = dict(zip(effect.grid[0], effect.fit, strict=True))
    assert frame.set_index("region")["fit"].drop("sea").to_dict() == {
        name: expected[name] for name in ("west", "north", "east")
    }
    assert np.isnan(frame.set_index("region").loc["sea", "fit"])
    ax = ak.plot_regions(model, "region", squares("west", "north", "east", "far", "sea"))
    assert ax.get_label() == "region"
    whole = " ".join(text.get_text() for text in ax.findobj(plt.Text)).replace("\n", " ")
    assert "smoothed from the neighbours" in whole
    assert "not in the model" in whole
    colours = {tuple(patch.get_facecolor()) for patch in ax.patches}
    assert len(ax.collections[0].get_paths()) == 4
    assert len(colours) == 2


@pytest.mark.parametrize(
    ("feature", "regions", "message"),
    [
        ("time", squares("a"), "that of one category"),
        ("region", {"west": ["east"]}, "GeoJSON `FeatureCollection`"),
    ],
)
def test_no_map(data: pd.DataFrame, feature: str, regions: Any, message: str) -> None:
    model = ak.fit("y ~ s(region) + s(time)", data, verbose=0)
    with pytest.raises(DataError, match=message):
        ak.plot_regions(model, feature, regions)
