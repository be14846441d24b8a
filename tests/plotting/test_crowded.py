"""Pictures of many features with long names, and of parts that are next to nothing."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba

import ahofm_keras as ak
from ahofm_keras.decomposition import Parts, effect, explain
from ahofm_keras.plotting import (
    factor_data,
    factors,
    page,
    plot,
    plot_effect,
    plot_factors,
    plot_interaction_map,
    plot_marginals,
)
from ahofm_keras.plotting.maps import draw_map
from ahofm_keras.plotting.page import shared_limits
from ahofm_keras.plotting.picture import read_effect
from ahofm_keras.plotting.theme import SERIES, styled
from tests.plotting.crowded import PLACES, RESPONSE, crowded_frame, crowded_model, names_of

NAMES = names_of(30)
TINY, HUGE, SKEWED, PLACE, SECTOR = (NAMES[k] for k in (4, 5, 3, 28, 29))


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    return crowded_frame()


@pytest.fixture(scope="module")
def crowded(data: pd.DataFrame) -> ak.AdditiveModel:
    return crowded_model(data)


@pytest.fixture(scope="module")
def mixed(data: pd.DataFrame) -> ak.AdditiveModel:
    """Pairs of all kinds: of two numbers, of a category and a number, of two categories."""
    terms = [(NAMES[1], NAMES[2]), (PLACE, NAMES[6]), (TINY, HUGE), (NAMES[0], SKEWED)]
    pairs = " + ".join(f"te({first}, {second}, k=4)" for first, second in terms)
    return crowded_model(data, f"{RESPONSE} ~ {pairs} + ti({PLACE}, {SECTOR})")


@pytest.fixture(scope="module")
def laid_out(mixed: ak.AdditiveModel):
    """The axes of a page when all has its place, and its figure."""
    axes = plot(mixed)
    figure = next(iter(axes.values())).get_figure(root=True)
    figure.canvas.draw()
    return axes, figure


def bars_of(figure) -> list[plt.Axes]:
    """The axes of colour bars."""
    drawn = [own for ax in figure.findobj(plt.Axes) for own in ax.collections]
    return list({own.colorbar.ax: None for own in drawn if own.colorbar is not None})


def last_line(text):
    """Where the last line of a title stands."""
    whole = text.get_text()
    text.set_text(whole.split("\n")[-1])
    box = text.get_window_extent()
    text.set_text(whole)
    return box


def weak(found, share: float = 5e-5):
    return replace(found, share=share)


# Titles --------------------------------------------------------------------------------------------------


def test_pairs_have_titles_however_long_their_names_are(mixed, laid_out):
    axes, _ = laid_out
    pairs = {label: ax for label, ax in axes.items() if ":" in label}
    assert len(pairs) >= 4
    for label, ax in pairs.items():
        lines = ax.get_title("left").split("\n")
        assert [line[:4] for line in lines] == [name[:4] for name in label.split(":")]
        assert ax.get_label() == label  # the whole name is there, whatever is shown of it
    alone = plot(mixed, NAMES[1], NAMES[2])
    assert alone.get_title("left").startswith(NAMES[1][:12])


@pytest.mark.parametrize(
    "features", [(PLACE, NAMES[6]), (PLACE, SECTOR), (TINY, HUGE), (NAMES[1], NAMES[2])]
)
def test_a_title_leaves_room_for_the_share(mixed, features):
    ax = plot_effect(weak(effect(mixed, *features)))
    ax.figure.canvas.draw()
    share = next(text for text in (ax.title, ax._right_title) if "negl" in text.get_text())
    assert last_line(ax._left_title).x1 < share.get_window_extent().x0


def test_titles_of_a_page_leave_room_for_the_shares(laid_out):
    _, figure = laid_out
    axes = figure.findobj(plt.Axes)
    shares = [ax._right_title.get_window_extent() for ax in axes if ax.get_title("right").strip()]
    titles = [last_line(ax._left_title) for ax in axes if ax.get_title("left")]
    assert len(shares) == len(titles) > 8
    for title in titles:
        assert not any(title.overlaps(share) for share in shares)


def test_legends_of_a_page_keep_to_their_cells(laid_out):
    _, figure = laid_out
    axes = figure.findobj(plt.Axes)
    legends = [ax.get_legend() for ax in axes if ax.get_legend() is not None]
    assert legends
    for legend in legends:
        box = legend.get_window_extent()
        others = [ax for ax in axes if ax is not legend.axes and ax.axison]
        assert not any(box.overlaps(ax.get_tightbbox()) for ax in others)


def test_a_page_has_room_for_what_it_leaves_out(crowded):
    axes = plot(crowded, curves=1, surfaces=1)
    figure = axes["map"].get_figure(root=True)
    foot = figure.subfigs[-1].texts[0]
    foot.set_text("\n".join(["as many lines as there may be"] * 4))
    figure.canvas.draw()
    assert foot.get_window_extent().y0 > 0


def test_labels_of_rows_do_not_run_into_each_other(laid_out):
    axes, _ = laid_out
    boxes = [
        ax.yaxis.label.get_window_extent()
        for label, ax in axes.items()
        if label != "map" and ":" not in label and ax.get_ylabel()
    ]
    assert len(boxes) > 1
    for upper, lower in pairwise(sorted(boxes, key=lambda box: -box.y0)):
        assert lower.y1 <= upper.y0 + 1


def test_a_note_stays_inside_of_its_figure(crowded, data):
    ax = plot(crowded, PLACE, residuals=True, data=data.assign(**{RESPONSE: data[RESPONSE] ** 1.2}))
    ax.figure.canvas.draw()
    assert any("outside" in text.get_text() for text in ax.texts)
    assert ax.get_tightbbox().x1 <= ax.figure.bbox.width + 1


# Colours -------------------------------------------------------------------------------------------------


def test_colour_bars_stand_at_their_panels(laid_out):
    axes, figure = laid_out
    strip = axes[f"{NAMES[1]}:{NAMES[2]}"].figure
    bars = bars_of(strip)
    panels = [ax.get_window_extent() for ax in strip.findobj(plt.Axes) if ax not in bars]
    assert bars
    for bar in bars:
        box = bar.get_window_extent()
        beside = [own for own in panels if own.x1 <= box.x0 and own.y1 > box.y0 and own.y0 < box.y1]
        assert box.x0 - max(own.x1 for own in beside) < 0.3 * figure.dpi
        assert box.y0 >= min(own.y0 for own in beside) - 2
        assert box.y1 <= max(own.y1 for own in beside) + 2


def test_a_bar_stands_at_a_panel_that_a_neighbour_makes_narrow(mixed):
    figure, grid = plt.subplots(2, 1, layout="constrained", figsize=(6, 7))
    plot(mixed, PLACE, NAMES[6], ax=grid[0])
    grid[0].legend([], title="as wide as two words", bbox_to_anchor=(1, 1), loc="upper left")
    plot(mixed, NAMES[1], NAMES[2], ax=grid[1])
    figure.canvas.draw()
    (bar,) = bars_of(figure)
    box, panel = bar.get_window_extent(), grid[1].get_window_extent()
    assert 0 < box.x0 - panel.x1 < 0.3 * figure.dpi


def test_the_pairs_of_a_page_share_their_colours(laid_out):
    axes, _ = laid_out
    scales = {
        (own.norm.vmin, own.norm.vmax)
        for label, ax in axes.items()
        if ":" in label
        for own in ax.collections[:1]
        if own.get_array() is not None
    }
    assert len(scales) == 1


@pytest.mark.parametrize("features", [(NAMES[1], NAMES[2]), (PLACE, SECTOR)])
def test_what_explains_next_to_nothing_has_pale_colours(mixed, features):
    found = effect(mixed, *features)
    ax = plot_effect(weak(found))
    norm = ax.collections[0].norm
    depth = np.abs(norm(found.fit) - 0.5).max()
    assert depth < 0.35
    assert "negligible" in ax.get_title("right")
    strong = plot_effect(weak(found, 0.2))
    assert np.abs(strong.collections[0].norm(found.fit) - 0.5).max() > 0.4
    assert "negligible" not in strong.get_title("right")


@pytest.mark.parametrize("features", [(NAMES[1],), (PLACE,), (PLACE, NAMES[6])])
def test_what_explains_next_to_nothing_fills_a_part_of_its_axis(mixed, features):
    found = replace(weak(effect(mixed, *features)), se=None)
    ax = plot_effect(found)
    flat = len(features) == 1 and found.categories[0]
    low, high = ax.get_xlim() if flat else ax.get_ylim()
    assert np.abs(found.fit).max() < 0.7 * min(-low, high)


def test_weak_rows_of_marginals_look_weak(crowded):
    reach = 0.1 * np.sqrt(Parts(crowded).total_variance)
    for ax in plot_marginals(crowded, subsets=[(TINY, HUGE), (NAMES[1], NAMES[2])])[:, 0]:
        assert ax.get_ylim()[1] >= reach
        assert ax.get_ylim()[0] <= -reach


def shares_of(size: int) -> pd.DataFrame:
    shares = np.zeros((size, size))
    shares[0, 1] = shares[1, 0] = 0.18
    shares[0, 2] = shares[2, 0] = 0.04
    shares[1, 2] = shares[2, 1] = 0.01
    shares[3, 2] = shares[2, 3] = 0.00005
    shares[0, 0] = 0.6
    return pd.DataFrame(shares, index=NAMES[:size], columns=NAMES[:size])


@pytest.mark.parametrize("size", [4, 30])
def test_the_map_tells_4_from_18_percent(size):
    with styled():
        figure, ax = plt.subplots(figsize=(9, 9), layout="constrained")
        draw_map(ax, shares_of(size))
    figure.canvas.draw()
    drawn = ax.collections[0]
    colours = drawn.get_facecolor().reshape(size, size, 4)[..., :3] @ [0.2126, 0.7152, 0.0722]
    assert colours[0, 2] - colours[0, 1] > 0.17
    assert colours[1, 2] - colours[0, 2] > 0.05
    assert drawn.norm(0.04) == pytest.approx(2 * drawn.norm(0.01))  # twice the standard deviation
    assert drawn.get_array().mask.reshape(size, size)[2, 3]  # negligible: white


@pytest.mark.parametrize("size", [4, 30])
def test_shares_are_written_into_their_cells(size):
    with styled():
        figure, ax = plt.subplots(figsize=(9, 9), layout="constrained")
        draw_map(ax, shares_of(size))
    figure.canvas.draw()
    texts = {text.get_text(): text for text in ax.texts}
    assert {"60%", "18%"} <= set(texts)
    cell = np.diff(ax.transData.transform([(0, 0), (1, 0)])[:, 0])[0]
    assert all(text.get_window_extent().width < cell for text in ax.texts)


# Bands and ticks -------------------------------------------------------------------------------------------


def test_bands_are_whole_on_the_shared_scale(crowded):
    pictures = [read_effect(crowded, (name,)) for name in NAMES[:3]]
    reach = max(np.ptp(picture.effect.fit) for picture in pictures)
    pictures = [
        replace(own, effect=replace(own.effect, se=np.full_like(own.effect.fit, 0.6 * reach)))
        for own in pictures
    ]
    low, high = shared_limits(pictures)
    for picture in pictures:
        lower, upper = picture.effect.band()
        assert low < lower.min()
        assert upper.max() < high


def test_a_band_that_would_flatten_all_curves_is_cut_and_says_so(crowded, monkeypatch):
    def far_too_wide(*given, **options):
        found = read_effect(*given, **options)
        return replace(found, effect=replace(found.effect, se=np.full_like(found.effect.fit, 1e5)))

    monkeypatch.setattr(page, "read_effect", far_too_wide)
    axes = plot(crowded, curves=3, surfaces=0)
    for label in list(axes)[:3]:
        assert "band leaves the scale" in [text.get_text() for text in axes[label].texts]
        low, high = axes[label].get_ylim()
        fits = [read_effect(crowded, (name,)).effect.fit for name in list(axes)[:3]]
        assert high - low < 4.6 * np.ptp(np.concatenate(fits))


def overlaps(ax) -> list[tuple[str, str]]:
    """Labels of ticks of the horizontal axis that run into their neighbours."""
    labels = [own for own in ax.get_xticklabels() if own.get_text() and own.get_rotation() == 0]
    low, high = sorted(ax.transData.transform([(x, 0) for x in ax.get_xlim()])[:, 0])
    boxes = [own.get_window_extent() for own in labels]
    seen = [
        (own, box)
        for own, box in zip(labels, boxes, strict=True)
        if low - 1 <= (box.x0 + box.x1) / 2 <= high + 1
    ]
    seen.sort(key=lambda pair: pair[1].x0)
    return [(a.get_text(), b.get_text()) for (a, one), (b, two) in pairwise(seen) if one.x1 > two.x0]  # fmt: skip


@pytest.mark.parametrize("name", [TINY, HUGE, SKEWED, NAMES[0]])
def test_ticks_are_plain_numbers_side_by_side(crowded, name):
    ax = plot(crowded, name)
    ax.figure.canvas.draw()
    assert ax.xaxis.get_offset_text().get_text() == ""
    texts = [own.get_text() for own in ax.get_xticklabels()]
    assert len(set(texts)) == len(texts) > 1
    assert overlaps(ax) == []


def test_ticks_of_small_panels_do_not_overlap(laid_out, mixed):
    for figure in (laid_out[1], plot_marginals(mixed, order=2, top=4)[0, 0].figure):
        figure.canvas.draw()
        for ax in figure.findobj(plt.Axes):
            assert overlaps(ax) == []
            assert ax.xaxis.get_offset_text().get_text() == ax.yaxis.get_offset_text().get_text() == ""


def test_tables_of_a_page_can_be_read(laid_out):
    axes, figure = laid_out
    ax = axes[f"{PLACE}:{SECTOR}"]
    labels = [own for own in ax.get_yticklabels() if own.get_text()]
    step = ax.get_window_extent().height / len(labels)
    assert step > 1.1 * labels[0].get_fontsize() * figure.dpi / 72
    assert step > 1.1 * ax.texts[0].get_fontsize() * figure.dpi / 72
    assert "levels, the largest effects" in figure.subfigs[-1].texts[0].get_text().replace("\n", " ")


def test_names_of_many_levels_stand_apart_below_factors(crowded):
    for ax in plot_factors(crowded, PLACE):
        ax.figure.canvas.draw()
        named = [
            (x, own)
            for x, own in zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)
            if own.get_text()
        ]
        step = min(np.diff(ax.transData.transform([(x, 0) for x, _ in named])[:, 0]))
        letters = named[0][1].get_fontsize() * ax.figure.dpi / 72
        assert step > (1.0 if named[0][1].get_rotation() == 90 else 1.5) * letters


# Levels ----------------------------------------------------------------------------------------------------


def test_names_of_levels_differ(crowded, mixed):
    ax = plot(crowded, PLACE)
    names = [own.get_text() for own in ax.get_yticklabels()]
    assert len(set(names)) == len(PLACES)
    legend = plot(mixed, PLACE, NAMES[6]).get_legend()
    names = [own.get_text() for own in legend.get_texts()]
    assert len(set(names)) == len(names)


def test_a_level_has_the_same_colour_in_all_slices(crowded):
    grid = {name: [-1.0, 0.0, 1.0] for name in (NAMES[7],)}
    axes = plot(crowded, PLACE, NAMES[6], NAMES[7], at=grid)
    found = effect(crowded, PLACE, NAMES[6], NAMES[7], at=grid)
    levels = []
    for k, ax in enumerate(axes):
        (line,) = [
            own
            for own in ax.lines
            if to_rgba(own.get_color()) == to_rgba(SERIES[0]) and len(own.get_xdata()) > 2
        ]
        x = line.get_xdata()
        fit = np.array([np.interp(x, found.grid[1], own) for own in found.fit[..., k]])
        levels.append(int(np.argmin(np.abs(fit - line.get_ydata()).sum(axis=1))))
    assert len(set(levels)) == 1


def test_slices_of_many_levels_are_high_enough(crowded):
    ax = plot(crowded, PLACE, SECTOR, NAMES[6])[0]
    ax.figure.canvas.draw()
    labels = ax.get_yticklabels()
    assert len(labels) == len(PLACES)
    step = ax.get_window_extent().height / len(labels)
    assert step > 1.5 * labels[0].get_fontsize() * ax.figure.dpi / 72


def test_titles_of_slices_keep_their_values(crowded):
    titles = [ax.get_title("left") for ax in plot(crowded, NAMES[1], NAMES[2], PLACE)]
    assert len(set(titles)) == len(titles)
    for ax, value in zip(
        plot(crowded, NAMES[1], NAMES[2], NAMES[6]), ("10%", "50%", "90%"), strict=True
    ):
        name, shown = ax.get_title("left").split("\n")
        assert name.endswith(" =")
        assert shown.endswith(f"({value})")


# Other pictures ----------------------------------------------------------------------------------------------


def test_a_waterfall_tells_all_values_of_a_part(crowded, data):
    ax = plot(explain(crowded, data.iloc[[0]]))
    labels = {own.get_text() for own in ax.get_yticklabels()}
    several = [label for label in labels if "\n" in label]
    assert several
    for label in several:
        for line in label.split("\n"):
            name, value = line.split(" = ")
            column = next(
                own
                for own in NAMES
                if own.startswith(name.split("…")[0]) and own.endswith(name.split("…")[-1])
            )
            truth = data[column].iloc[0]
            if not isinstance(truth, str):
                assert value == f"{truth:.4g}"


def test_notes_below_factors_are_one(crowded, monkeypatch):
    frame = factor_data(crowded, NAMES[1])
    (term, _), *_ = frame.attrs["switched_off"]
    frame = frame[frame["order"] == 2]
    frame.attrs["switched_off"] = {(term, 2): 1, (term, 3): 2}
    monkeypatch.setattr(factors, "factor_data", lambda *_: frame)
    (ax,) = plot_factors(crowded, NAMES[1])
    (note,) = ax.texts
    text = note.get_text().replace("\n", " ")
    assert text == "1 more switched off by the fit; all factors of order 3 were switched off by the fit"


def test_few_triples_are_no_thick_bars_beside_a_large_map(crowded):
    found = plot_interaction_map(crowded, triples=3)
    found[0].figure.canvas.draw()
    bars = found[1].patches
    assert len(bars) == 3
    assert max(bar.get_window_extent().height for bar in bars) < 0.4 * found[0].figure.dpi
    assert found[1].get_window_extent().width > 1.0 * found[0].figure.dpi
