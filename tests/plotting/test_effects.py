"""Pictures of effects, by the data behind their axes."""

from __future__ import annotations

from dataclasses import replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.decomposition import Effect, effect
from ahofm_keras.plotting import (
    effect_data,
    plot,
    plot_data,
    plot_effect,
    residual_data,
    rug_data,
)
from ahofm_keras.plotting.grids import choose_stretch
from ahofm_keras.plotting.surfaces import NO_ROWS, contour_levels
from ahofm_keras.terms import Margin


def texts(ax) -> str:
    """All texts of an axes."""
    found = [ax.get_title(loc) for loc in ("left", "center", "right")]
    found += [ax.get_xlabel(), ax.get_ylabel(), *(text.get_text() for text in ax.texts)]
    return " | ".join(found).replace("\n", " ")


def ticks(ax, axis: str) -> list[str]:
    labels = ax.get_xticklabels() if axis == "x" else ax.get_yticklabels()
    return [label.get_text() for label in labels]


def labelled(ax, label: str):
    (found,) = [item for item in ax.collections if item.get_label() == label]
    return found


def cover(ax) -> list:
    """What is hatched."""
    return [item for item in ax.collections if getattr(item, "hatches", [None])[0]]


# Curves -----------------------------------------------------------------------------------------------


def test_a_curve_is_the_effect_with_its_band(model):
    ax = plot_effect(model, "x1", level=0.8)
    frame = effect_data(model, "x1", level=0.8)
    found = effect(model, "x1", at={"x1": frame["x1"]})
    np.testing.assert_allclose(ax.lines[1].get_xydata(), frame[["x1", "fit"]])
    np.testing.assert_allclose(frame["fit"], found.fit)
    np.testing.assert_allclose(frame[["lower", "upper"]].T, found.band(0.8))
    edge = ax.collections[0].get_paths()[0].vertices
    for column in ("lower", "upper"):
        assert np.isin(np.round(frame[column], 9), np.round(edge[:, 1], 9)).all()
    assert "effect on y" in texts(ax)
    assert f"{100 * found.share:.0f}"[0] in ax.get_title("right")


def test_ticks_below_a_curve_are_deciles_or_rows(model, frame):
    places = [path.vertices[0, 0] for path in labelled(plot_effect(model, "x1"), "deciles").get_paths()]
    np.testing.assert_allclose(places, np.quantile(frame["x1"], np.arange(1, 10) / 10))
    places = [
        path.vertices[0, 0] for path in labelled(plot_effect(model, "x1", rug=True), "rug").get_paths()
    ]
    np.testing.assert_allclose(np.sort(places), np.sort(frame["x1"]))
    np.testing.assert_array_equal(rug_data(model, "x1", "town")["town"], frame["town"])


def test_partial_residuals_add_what_the_model_leaves(model, additive, frame):
    found = residual_data(model, "x1")
    at_rows = effect(model, "x1", at={"x1": frame["x1"]}).fit
    np.testing.assert_allclose(
        found["partial_residual"], at_rows + frame["y"] - model.predict(frame, type="link"), atol=1e-4
    )
    mean = np.exp(additive.predict(frame, type="link"))
    found = residual_data(additive, "x1", data=frame.iloc[:50])
    np.testing.assert_allclose(found["residual"], ((frame["count"] - mean) / mean)[:50], atol=1e-4)
    ax = plot_effect(additive, "x1", residuals=True, data=frame)
    points = next(line for line in ax.lines if line.get_marker() == ".").get_xydata()
    np.testing.assert_allclose(points[:50, 1], found["partial_residual"], atol=1e-6)


def test_residuals_of_a_category_stand_at_its_level(additive, frame):
    ax = plot_effect(additive, "town", residuals=True)
    points = next(line for line in ax.lines if line.get_marker() == ".").get_xydata()
    names = ticks(ax, "y")
    assert [names[round(place)] for place in points[:, 1]] == frame["town"].tolist()


def test_an_effect_without_posterior_has_no_band(model):
    bare = replace(effect(model, "x1"), se=None)
    ax = plot_effect(bare)
    assert not ax.collections
    assert "effect on the link" in texts(ax)
    assert "lower" not in effect_data(bare)
    flat = replace(bare, fit=np.zeros_like(bare.fit), share=0.0)
    assert plot_effect(flat).get_ylim() == (-1, 1)


def test_a_heavy_tail_is_logarithmic_and_a_long_one_is_cut(model, frame):
    ax = plot_effect(model, "x2")
    assert ax.get_xscale() == "log"
    assert plot_effect(model, "x2", log=False).get_xscale() == "linear"
    cut = plot_effect(model, "x2", log=False)
    assert cut.get_xlim()[1] == pytest.approx(np.quantile(frame["x2"], 0.99))
    assert "99%" in texts(cut)
    whole = plot_effect(model, "x2", log=False, trim=False)
    assert whole.get_xlim()[1] == pytest.approx(frame["x2"].max())
    assert "99%" not in texts(whole)


@pytest.mark.parametrize(
    ("quantile", "log", "cut"),
    [
        (lambda p: p, False, (False, False)),
        (lambda p: np.exp(6 * p), True, (False, False)),
        (lambda p: 4 * p - 2 + 50 * (p == 1), False, (False, True)),
        (lambda p: 4 * p - 2 - 50 * (p == 0) + 50 * (p == 1), False, (True, True)),
        (lambda p: np.exp(6 * p) + 1e6 * (p == 1), True, (False, True)),
        (lambda p: np.exp(6 * p) - 2, False, (False, False)),
    ],
)
def test_which_stretch_of_an_axis_is_shown(quantile, log, cut):
    probabilities = np.linspace(0, 1, 101)
    margin = Margin("x", quantile(probabilities), *[np.zeros(0)] * 2, np.zeros((0, 0)))
    stretch = choose_stretch(margin)
    assert stretch.log == log
    assert (stretch.low > margin.low, stretch.high < margin.high) == cut
    assert bool(stretch.note) == any(cut)
    points = stretch.points(50)
    assert (points[0], points[-1]) == (stretch.low, stretch.high)
    assert (np.diff(points) > 0).all()


def test_a_curve_that_runs_away_beyond_the_rows_does_not_stretch_the_axis(model):
    found = effect(model, "x1")
    wild = replace(
        found, fit=np.where(found.grid[0] > 0.995 * found.grid[0].max(), 1e5, found.fit), se=None
    )
    from ahofm_keras.plotting.curves import draw_curve
    from ahofm_keras.plotting.look import Look

    _, ax = plt.subplots()
    quantiles = np.quantile(found.grid[0], np.linspace(0, 1, 101))
    notes = draw_curve(ax, wild, Look(quantiles=(("x1", quantiles),)))
    assert ax.get_ylim()[1] < 100
    assert notes == ["x1: leaves the scale where rows are few"]


# Categories -------------------------------------------------------------------------------------------


def test_levels_are_points_from_low_to_high(model):
    frame = effect_data(model, "town").sort_values("fit")
    ax = plot_effect(model, "town", rug=True)
    assert ticks(ax, "y") == frame["town"].tolist()
    np.testing.assert_allclose(
        next(line for line in ax.lines if line.get_marker() == "o").get_xdata(), frame["fit"]
    )
    bars = ax.collections[0].get_segments()
    np.testing.assert_allclose([bar[:, 0] for bar in bars], frame[["lower", "upper"]])
    counts = model.sample.columns["town"]
    assert f"n={(counts == frame['town'].iloc[0]).sum()}" in texts(ax)
    flags = plot_effect(model, "flag")
    assert ticks(flags, "x") == ["False", "True"]


def many_levels(count: int) -> Effect:
    levels = np.array([f"level number {k} of the category" for k in range(count)], object)
    fit = np.linspace(-1, 1, count)
    return Effect("c", ("c",), (levels,), fit, None, 0.5, None, (True,))


def test_of_very_many_levels_the_largest_effects_are_shown():
    ax = plot_effect(many_levels(100))
    assert len(ticks(ax, "y")) == 25
    assert "25 of 100 levels" in texts(ax)
    shown = next(line for line in ax.lines if line.get_marker() == "o").get_xdata()
    assert np.abs(shown).min() > 0.7
    assert len(ticks(plot_effect(many_levels(12)), "y")) == 12


# Pairs ------------------------------------------------------------------------------------------------


def test_nothing_has_the_colour_of_neither_sign():
    levels = contour_levels(0.0)
    place = np.searchsorted(levels, 0.0)
    assert levels[place - 1] == -levels[place] < 0


@pytest.mark.parametrize("limit", [1e-6, 0.37, 1.0, 99.0, 5e7])
def test_contour_levels_lie_even_around_zero(limit):
    levels = contour_levels(limit)
    np.testing.assert_allclose(levels, -levels[::-1])
    assert 0.0 in levels
    assert levels[-1] >= limit > levels[-2]
    assert 5 <= len(levels) <= 31


def test_a_surface_shows_the_effect_around_zero(model):
    ax = plot_effect(model, "x1", "x2")
    frame = effect_data(model, "x1", "x2")
    drawn = ax.collections[0]
    assert drawn.norm.vmin == pytest.approx(-drawn.norm.vmax)
    near = frame[frame["near_data"]]
    assert drawn.levels[-1] >= 0.5 * near["fit"].abs().quantile(0.98)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x1", "x2")
    assert ax.get_yscale() == "log"
    found = effect(model, "x1", "x2", at={name: frame[name].unique() for name in ("x1", "x2")})
    np.testing.assert_allclose(frame["fit"], found.fit.reshape(-1))
    np.testing.assert_array_equal(frame["near_data"], found.near_data.reshape(-1))


def test_places_without_rows_are_covered(model):
    ax = plot_effect(model, "x1", "x2", log=False, trim=False)
    frame = effect_data(model, "x1", "x2", log=False, trim=False)
    assert not frame["near_data"].all()
    (hatched,) = cover(ax)
    inside = [path.contains_points(frame[["x1", "x2"]]) for path in hatched.get_paths()]
    covered = np.any(inside, axis=0)
    # The border is rounded.
    assert (covered != frame["near_data"]).mean() > 0.9
    assert NO_ROWS in texts(ax)
    assert not cover(plot_effect(model, "x1", "x2", log=False, trim=False, mask=False))


def test_a_rug_of_two_numbers_are_points(model, frame):
    ax = plot_effect(model, "x1", "x2", rug=True)
    points = next(line for line in ax.lines if line.get_marker() == ".").get_xydata()
    np.testing.assert_allclose(points, frame[["x1", "x2"]])


@pytest.mark.parametrize("features", [("town", "x1"), ("x1", "town")])
def test_a_category_and_a_number_are_one_curve_a_level(model, features):
    ax = plot_effect(model, *features)
    frame = effect_data(model, *features)
    legend = ax.get_legend()
    assert legend.get_title().get_text() == "town"
    names = [text.get_text() for text in legend.get_texts()]
    curves = [line for line in ax.lines if len(line.get_xdata()) > 2]
    levels = list(dict.fromkeys(frame["town"]))
    assert len(names) == len(levels) == len(curves)
    for level, line in zip(levels, curves, strict=True):
        own = frame[frame["town"] == level].sort_values("x1")
        np.testing.assert_allclose(line.get_xydata(), own[["x1", "fit"]])


def test_of_many_levels_typical_curves_are_coloured_and_none_is_lost():
    x = np.linspace(0, 1, 30)
    sizes = np.linspace(-1, 1, 40)
    levels = np.array([f"_{k}" for k in range(40)], object)
    found = Effect("c:x", ("c", "x"), (levels, x), sizes[:, None] * x, None, 0.3, None, (True, False))
    ax = plot_effect(found)
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names[-1] == "34 other levels"
    assert {"_0", "_39"} <= set(names)
    assert sum(len(line.get_xdata()) == 30 for line in ax.lines) == 40


def test_two_categories_are_cells_with_numbers(model):
    ax = plot_effect(model, "flag", "town")
    frame = effect_data(model, "flag", "town")
    assert ticks(ax, "x") == ["False", "True"]
    assert ticks(ax, "y") == list(dict.fromkeys(frame["town"]))
    cells = np.asarray(ax.collections[0].get_array())
    wanted = frame.pivot(index="town", columns="flag", values="fit").loc[ticks(ax, "y")]
    np.testing.assert_allclose(cells, wanted)
    assert len([text for text in ax.texts if text.get_text()[-1].isdigit()]) == cells.size


def test_cells_without_rows_are_hatched_and_many_are_limited():
    levels = tuple(np.array([f"{name}{k}" for k in range(30)], object) for name in "ab")
    fit = np.add.outer(np.arange(30.0), np.arange(30.0))
    near = np.ones((30, 30), bool)
    near[-1, -1] = False
    ax = plot_effect(Effect("a:b", ("a", "b"), levels, fit, None, 0.2, near, (True, True)))
    assert len(ticks(ax, "x")) == len(ticks(ax, "y")) == 20
    assert len([patch for patch in ax.patches if patch.get_hatch()]) == 1
    assert "20 x 20 of 30 x 30 levels" in texts(ax)


def test_a_pair_without_effect_says_so(model):
    found = effect(model, "x1", "x2")
    nothing = replace(found, fit=np.zeros_like(found.fit), share=0.0)
    assert "0 everywhere" in texts(plot_effect(nothing))


# Slices -----------------------------------------------------------------------------------------------


def test_three_features_are_slices_on_one_scale(model, frame):
    axes = plot_effect(model, "town", "x1", "x2")
    assert len(axes) == 3
    assert len({ax.get_ylim() for ax in axes}) == 1
    data = effect_data(model, "town", "x1", "x2")
    values = data["x2"].unique()
    np.testing.assert_allclose(values, np.quantile(frame["x2"], [0.1, 0.5, 0.9]))
    assert [ax.get_title("left").rpartition("(")[2] for ax in axes] == ["10%)", "50%)", "90%)"]
    curves = [line for line in axes[2].lines if len(line.get_xdata()) > 2]
    own = data[(data["x2"] == values[2]) & (data["town"] == "Oslo")]
    levels = list(dict.fromkeys(data["town"]))
    np.testing.assert_allclose(curves[levels.index("Oslo")].get_xydata(), own[["x1", "fit"]])


def test_slices_of_numbers_share_their_colours(model):
    axes = plot(model, "x1", "x2", "flag")
    assert [ax.get_title("left") for ax in axes] == ["flag = False", "flag = True"]
    assert len({ax.collections[0].norm.vmax for ax in axes}) == 1
    given = plt.subplots(1, 4)[1]
    assert plot(model, "x1", "x2", "town", ax=given)[3] is given[3]
    assert "most frequent 4 of 5 levels of town" in texts(given[2])


def test_a_feature_at_one_value_is_no_axis(model):
    ax = plot_effect(model, "x1", "x2", at={"x2": 1.5})
    data = effect_data(model, "x1", "x2", at={"x2": 1.5})
    np.testing.assert_allclose(ax.lines[1].get_xydata(), data[["x1", "fit"]])
    assert "at x2 = 1.5" in texts(ax)
    surface = plot_effect(model, "x1", "x2", "town", at={"town": ["Rio"]})
    assert "at town = Rio" in texts(surface)
    unsorted = plot_effect(model, "x1", at={"x1": [0.5, -0.5, 0.0]})
    np.testing.assert_allclose(unsorted.lines[1].get_xdata(), [-0.5, 0.0, 0.5])


# All --------------------------------------------------------------------------------------------------


def test_axes_given_are_drawn_on_and_settings_stay(model):
    before = mpl.rcParams.copy()
    figure, ax = plt.subplots()
    assert plot_effect(model, "x1", ax=ax) is ax
    assert plt.get_fignums() == [figure.number]
    assert mpl.rcParams == before
    assert plot_effect(model, "x1").figure is not figure


def test_a_loaded_model_is_drawn_and_asks_for_rows_where_it_needs_them(loaded, model, frame):
    np.testing.assert_allclose(
        effect_data(loaded, "x1")["fit"], effect_data(model, "x1")["fit"], atol=1e-6
    )
    for features in (("town",), ("x1", "x2"), ("x1", "x2", "town")):
        plot(loaded, *features)
    with pytest.raises(ak.DataError, match=r"rug needs rows.*pass `data=`"):
        plot(loaded, "x1", rug=True)
    with pytest.raises(ak.DataError, match=r"partial residuals needs rows.*pass `data=`"):
        plot(loaded, "x1", residuals=True)
    assert labelled(plot(loaded, "x1", rug=True, residuals=True, data=frame), "rug")


def test_a_name_with_dollars_is_no_formula():
    found = Effect(
        "a$b_$", ("a$b_$",), (np.linspace(0, 1, 9),), np.arange(9.0), None, 0.3, None, (False,)
    )
    ax = plot_effect(found)
    assert not ax.xaxis.label.get_parse_math()
    ax.figure.canvas.draw()


@pytest.mark.parametrize(
    ("features", "options", "message"),
    [
        (("twon",), {}, "no feature `twon`. Did you mean `town`"),
        (("x1", "x3"), {}, "no interaction of `x1`, `x3`"),
        (("x1", "x2", "town", "flag"), {}, "order 3 at most"),
        (("x1", "x1"), {}, "stands twice"),
        (("x1",), {"level": 1.5}, "between 0 and 1"),
        (("x1",), {"points": 1}, "`points` must be a whole number"),
        (("x1",), {"ax": "here"}, "`ax` must be matplotlib axes"),
        (("x1",), {"at": {"x1": [np.nan]}}, "not finite"),
        (("x1",), {"at": {"x1": [0.3]}}, "more than one value of `x1`"),
        (("x1", "x2"), {"residuals": True}, "drawn for one feature"),
        (("x1", "x2", "flag"), {"ax": [1, 2]}, "`axes` must be 2 matplotlib axes"),
        (("town",), {"residuals": True, "data": {"x1": [0.1]}}, "x2"),
    ],
)
def test_bad_input_is_told(model, features, options, message):
    with pytest.raises(ak.DataError, match=message):
        plot(model, *features, **options)


def test_an_effect_takes_no_names_and_knows_no_rows(model):
    found = effect(model, "x1")
    with pytest.raises(ak.DataError, match="either an effect, or a model and features"):
        plot(found, "x1")
    with pytest.raises(ak.DataError, match="An effect knows no rows"):
        plot(found, rug=True)
    with pytest.raises(ak.DataError, match="up to three features"):
        plot(replace(found, features=tuple("abcd"), grid=(np.arange(2),) * 4, fit=np.zeros((2,) * 4), se=None,
                     near_data=None, categories=(False,) * 4))  # fmt: skip
    assert plot_data(found).equals(found.frame())


def test_an_unfitted_model_is_refused(frame):
    bare = ak.AdditiveModel("y ~ s(x1)", frame)
    for picture in (lambda: plot(bare), lambda: plot(bare, "x1"), lambda: plot_data(bare)):
        with pytest.raises(ak.NotFittedError, match="not fitted"):
            picture()


def test_without_matplotlib_the_extra_is_named(model, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"ahofm_keras\[plot\]"):
        plot(model, "x1")


def test_atoms_are_points_beside_the_curve(frame: pd.DataFrame) -> None:
    """Also at the end of the axis, where the curve goes on as if there were none."""
    low = float(frame["x1"].min())
    x = np.where(frame["flag"], low, frame["x1"])
    noise = 0.3 * np.random.default_rng(0).normal(size=len(x))
    data = pd.DataFrame({"x3": x, "y": x + 3 * (x == low) + noise})
    model = ak.AdditiveModel(f"y ~ s(x3, atoms=[{low!r}])", data)
    model.fit(data, verbose=0)
    assert model.design.features[0].basis.atoms == (low,)
    lines = {line.get_label(): line for line in ak.plot(model, "x3").lines}
    effect = ak.effect(model, "x3")
    np.testing.assert_array_equal(lines["atoms"].get_xdata(), [low])
    np.testing.assert_allclose(lines["atoms"].get_ydata(), effect.atoms.fit)
    assert effect.atoms.fit[0] - effect.fit[0] > 2
    assert abs(effect.fit[0] - effect.fit[1]) < 0.1
