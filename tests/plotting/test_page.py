"""The page of a whole model."""

from __future__ import annotations

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.decomposition import effect, explain, interactions
from ahofm_keras.plotting import page, plot, plot_data, plot_interaction_map, plot_marginals
from ahofm_keras.texts import percent


def page_texts(axes) -> str:
    """Texts of the strips above and below the panels."""
    figure = next(iter(axes.values())).figure.figure
    strips = [figure, *figure.subfigs]
    return " | ".join(text.get_text() for strip in strips for text in strip.texts).replace("\n", " ")


def briefly_fitted(formula, frame):
    model = ak.AdditiveModel(formula, frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)
        model.fit(frame, verbose=0, solver="bcd", epochs=3)
    return model


def test_a_page_has_main_effects_pairs_map_and_triples(model):
    axes = plot(model)
    main = interactions(model, 1, top=None)["label"].tolist()
    pairs = interactions(model, 2, top=6)["label"].tolist()
    assert list(axes) == [*main, *pairs, "map", "triples"]
    assert "main effects" not in page_texts(axes).split("|")[-1]


def test_triples_stand_below_a_large_map(model, monkeypatch):
    beside = plot(model)
    monkeypatch.setattr(page, "_LARGE_MAP", 1.0)
    below = plot(model)
    assert list(below) == list(beside)
    assert beside["map"].figure is beside["triples"].figure
    assert below["map"].figure is not below["triples"].figure


def test_main_effects_share_one_scale(model):
    axes = plot(model)
    limits = {name: axes[name].get_ylim() for name in ("x1", "x2", "x3", "flag")}
    limits["town"] = axes["town"].get_xlim()  # long names turn the panel
    assert len(set(limits.values())) == 1
    low, high = limits["x1"]
    fits = np.concatenate([effect(model, name).fit for name in ("x1", "town", "flag")])
    assert low < np.quantile(fits, 0.02)
    assert np.quantile(fits, 0.98) < high


def test_the_data_behind_a_page(model):
    axes, data = plot(model), plot_data(model)
    assert list(axes) == list(data)
    for name in ("x1", "x3"):
        np.testing.assert_allclose(axes[name].lines[1].get_xydata(), data[name][[name, "fit"]])
    assert data["map"].shape == (5, 5)


def test_what_is_left_out_is_told(model):
    axes = plot(model, curves=2, surfaces=1)
    assert len(axes) == 2 + 1 + 2
    rest = interactions(model, 2, top=1).attrs["rest"]
    text = page_texts(axes)
    assert "not shown: 3 more main effects" in text
    assert f"not shown: 5 more pairs ({percent(rest)} of" in text
    assert "(gaussian)" in text


def test_a_triple_without_a_map_is_told(frame):
    model = briefly_fitted("y ~ ahofm(x1, x3, town, D=3, F=2, k=6)", frame)
    axes = plot(model)
    assert "map" not in axes
    share = interactions(model, 3)["share"].iloc[0]
    assert f"not shown: interactions of order 3 and above ({percent(share)} of" in page_texts(axes)


def test_a_model_of_main_effects_is_a_page_of_curves(additive):
    axes = plot(additive)
    assert set(axes) == {"x1", "town"}
    assert "log(count)" in next(iter(axes.values())).get_ylabel() + axes["x1"].get_ylabel()


def test_two_features_are_a_small_page(frame):
    model = briefly_fitted("y ~ ahofm(x1, x2, F=2, k=6)", frame)
    axes = plot(model)
    assert set(axes) == {"x1", "x2", "x1:x2"}
    assert axes["x1"].figure.figure.get_figwidth() < 8


def test_a_page_is_drawn_on_a_figure_given(loaded):
    figure = plt.figure(figsize=(10, 12), layout="constrained")
    left, _ = figure.subfigures(1, 2)
    axes = plot(loaded, figure=left)
    assert axes["x1"].get_figure(root=True) is figure
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ax": 1}, "`ax` goes with the names of features"),
        ({"at": {"x1": 1}}, "`at` goes with the names of features"),
        ({"curves": 0}, "`curves` must be"),
        ({"surfaces": -1}, "`surfaces` must be"),
        ({"level": 2}, "between 0 and 1"),
    ],
)
def test_bad_input_is_told(model, options, message):
    with pytest.raises(ak.DataError, match=message):
        plot(model, **options)


def test_rows_are_asked_for_where_a_loaded_model_needs_them(loaded, frame):
    with pytest.raises(ak.DataError, match="pass `data=`"):
        plot(loaded, residuals=True)
    axes = plot(loaded, residuals=True, data=frame, curves=1, surfaces=0)
    assert any(line.get_marker() == "." for line in next(iter(axes.values())).lines)


@pytest.fixture(scope="module")
def long_names(frame: pd.DataFrame) -> tuple[ak.AdditiveModel, pd.DataFrame]:
    rng = np.random.default_rng(0)
    names = {
        "x1": "average_household_income_in_thousand_euros_of_2019",
        "x2": "distance_to_the_nearest_railway_station_in_km",
        "town": "town_of_the_first_registered_residence",
        "flag": "has_a_garden_or_a_balcony",
    }
    data = frame.rename(columns=names).drop(columns=["x3", "count"])
    data = data.assign(**{f"sensor_number_{k:02d}": rng.uniform(size=len(data)) for k in range(9)})
    model = ak.AdditiveModel("y ~ ahofm(., D=3, F=1, k=5)", data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)
        model.fit(data, verbose=0, solver="bcd", epochs=2)
    return model, data


@pytest.mark.parametrize("picture", ["page", "map", "marginals", "waterfall", "curve", "pair", "slices"])
def test_no_text_leaves_its_figure(long_names, picture):
    model, data = long_names
    first, second, third = data.columns[:3]
    draw = {
        "page": lambda: next(iter(plot(model, curves=5, surfaces=2).values())),
        "map": lambda: plot_interaction_map(model)[0],
        "marginals": lambda: plot_marginals(model, top=2)[0, 0],
        "waterfall": lambda: plot(explain(model, data.iloc[[0]])),
        "curve": lambda: plot(model, first),
        "pair": lambda: plot(model, first, second),
        "slices": lambda: plot(model, first, second, third)[0],
    }[picture]
    figure = draw().get_figure(root=True)
    figure.canvas.draw()
    width, height = figure.bbox.size
    strips = [figure, *figure.subfigs]
    boxes = [ax.get_tightbbox() for ax in figure.findobj(plt.Axes)]
    boxes += [text.get_window_extent() for strip in strips for text in strip.texts if text.get_text()]
    assert boxes
    for box in boxes:
        assert box.x0 > -2
        assert box.y0 > -2
        assert box.x1 < width + 2
        assert box.y1 < height + 2
