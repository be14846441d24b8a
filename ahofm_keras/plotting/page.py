"""The page that shows a whole model: main effects, the strongest pairs, the interaction map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.decomposition import Parts
from ahofm_keras.decomposition.grids import axes_of
from ahofm_keras.decomposition.names import check_count, find_subset
from ahofm_keras.decomposition.parts import NOTHING, predictors_of
from ahofm_keras.decomposition.weight_functions import functional_terms
from ahofm_keras.model import AdditiveModel
from ahofm_keras.model.formulas import formula_lines
from ahofm_keras.plotting.choice import Choice, choose, share_from_3
from ahofm_keras.plotting.curves import RUNAWAY, core_of
from ahofm_keras.plotting.effects import draw_picture
from ahofm_keras.plotting.levels import lies_flat, needs_rows
from ahofm_keras.plotting.maps import draw_bars, draw_map, interaction_map_data, map_side, triple_data
from ahofm_keras.plotting.picture import Picture, effect_frame, read_effect, read_networks, squeeze
from ahofm_keras.plotting.surfaces import MOST_PAGE_CELLS, contour_levels, extent, value_bar
from ahofm_keras.plotting.texts import wrap
from ahofm_keras.plotting.theme import INK, LETTER, SMALL, SOFT, TITLE, name_axis, new_figure, styled
from ahofm_keras.terms.margins import QUANTILES
from ahofm_keras.texts import number, percent, shorten

_COLUMNS, _PAIR_COLUMNS = 4, 3
_PANEL, _PAIR = 2.15, 2.9
# Width of the colour bar of all pairs, by that of a panel.
_BAR = 0.045
# How much higher and wider a row or a column of panels is that all stand apart.
_ALONE = (1.5, 1.25)
_WIDTH, _NARROW = 11.0, 7.4
_TRIPLES = 10
_MIDDLE = QUANTILES // 2
# A map that is wider, in inches, leaves no room beside it.
_LARGE_MAP = 6.0
_CUT = "band leaves the scale"
MAP, TRIPLES = "map", "triples"
_HEAD, _FOOT = 0.35, 0.75
# Inches of a line of small letters.
_LINE = 0.16

# Axes by label, and notes.
Drawn = tuple[dict[str, Any], list[str]]


@dataclass(frozen=True, eq=False)
class Section:
    """A strip of the page.

    Args:
        title: above it.
        height: in inches.
        draw: draws it on a subfigure.
    """

    title: str
    height: float
    draw: Callable[[Any], Drawn]


def plot_page(
    model: AdditiveModel,
    figure: Any = None,
    curves: int = 12,
    surfaces: int = 6,
    mask: bool = True,
    parameter: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Draw the page of a model; arguments as `plot`."""
    check_count("curves", curves, 1, none=False)
    check_count("surfaces", surfaces, 0, none=False)
    views = predictors_of(model, parameter)
    chapters = [_read_chapter(view, curves, surfaces, mask, options) for view in views]
    model = model if len(views) > 1 else views[0]
    with styled():
        found = _assemble(model, figure, chapters)
    return _by_parameter(found)


def page_data(
    model: AdditiveModel,
    curves: int = 12,
    surfaces: int = 6,
    parameter: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The data behind the page of a model, by panel; arguments as `plot`."""
    check_count("curves", curves, 1, none=False)
    check_count("surfaces", surfaces, 0, none=False)
    views = predictors_of(model, parameter)
    found = {view.of_parameter: _chapter_data(view, curves, surfaces, **options) for view in views}
    return _by_parameter(found)


def _by_parameter(found: dict[str | None, dict[str, Any]]) -> dict[str, Any]:
    """What belongs to the only predictor, or to all of them by parameter."""
    if len(found) == 1:
        return next(iter(found.values()))
    return {str(parameter): own for parameter, own in found.items()}


def _chapter_data(
    model: AdditiveModel, curves: int, surfaces: int, **options: Any
) -> dict[str, pd.DataFrame]:
    chosen = choose(Parts(model), curves, surfaces)
    found = {label: effect_frame(read_effect(model, (label,), **options)) for label in chosen.main}
    parts = Parts(model)
    for picture in read_networks(parts, **options) if parts.opaque else []:
        found[picture.effect.label] = effect_frame(picture)
    for pair in chosen.pairs:
        found[":".join(pair)] = effect_frame(read_effect(model, pair, **options))
    if chosen.map:
        found[MAP] = interaction_map_data(model)
        triples = triple_data(model, _TRIPLES)
        if len(triples):
            found[TRIPLES] = triples
    return found


@dataclass(frozen=True, eq=False)
class Chapter:
    """The strips of one predictor.

    Args:
        parameter: of the family; None where the model has one predictor.
        sections: its strips.
        shown: how many curves and surfaces.
        left_out: what is not shown, in words.
    """

    parameter: str | None
    sections: list[Section]
    shown: tuple[int, int]
    left_out: list[str]

    @property
    def heading(self) -> str:
        """What the titles of its strips begin with."""
        return "" if self.parameter is None else f"{self.parameter}: "


def _read_chapter(
    model: AdditiveModel, curves: int, surfaces: int, mask: bool, options: dict[str, Any]
) -> Chapter:
    parts = Parts(model)
    chosen = choose(parts, curves, surfaces)
    main = [_read_panel(parts, (label,), options) for label in chosen.main]
    pairs = [_read_panel(parts, pair, {**options, "residuals": False}) for pair in chosen.pairs]
    left_out = chosen.left_out
    if not parts.groups:
        value = model.family.inverse_link(np.asarray(parts.constant), np)
        left_out = [f"constant, {number(float(value))}"] * (not parts.opaque)
    networks = read_networks(parts, **options) if parts.opaque else []
    drawn = {picture.effect.label for picture in networks}
    rest = [own for own in parts.opaque if own.label not in drawn]
    left_out += [
        f"not shown: {own.label} ({percent(own.variance / (parts.total_variance or 1.0))} of variance)"
        for own in rest
    ]
    sections = _sections(model, chosen, main, pairs, mask)
    functional = {term.label for term in functional_terms(parts)}
    along = [picture for picture in networks if picture.effect.label in functional]
    others = [picture for picture in networks if picture.effect.label not in functional]
    strips = [
        _curve_section(name, own, shared)
        for name, own, shared in (("Networks", others, True), ("Along arrays", along, False))
        if own
    ]
    sections[int(bool(main)) : int(bool(main))] = strips
    return Chapter(parts.parameter, sections, (max(len(main), len(networks)), len(pairs)), left_out)


def _curve_section(name: str, pictures: list[Picture], shared: bool) -> Section:
    """A strip of curves that are no functions of features."""
    share = percent(sum(picture.effect.share for picture in pictures))
    height = 0.35 + _PANEL * _rows(len(pictures), _COLUMNS)
    title = f"{name}   {share} of variance"
    return Section(title, height, lambda strip: _draw_main(strip, pictures, shared))


def _read_panel(parts: Parts, labels: tuple[str, ...], options: dict[str, Any]) -> Picture:
    """An effect along two axes at most: along those that follow, where half of the rows lie below."""
    axes = axes_of(parts, find_subset(parts, labels))
    at: dict[str, Any] = {}
    for axis in axes[2:]:
        middle = int(np.argmax(axis.margin.frequencies)) if axis.is_category else _MIDDLE
        at[axis.name] = (
            axis.variable.levels[middle] if axis.is_category else axis.margin.quantiles[middle]
        )
    if len(axes) > 1:
        options = {**options, "residuals": False}
    return squeeze(read_effect(parts.model, labels, at=at, **options))


def _sections(
    model: AdditiveModel, chosen: Choice, main: list[Picture], pairs: list[Picture], mask: bool
) -> list[Section]:
    found = []
    title = f"Main effects   {percent(chosen.shares.get(1, 0.0))} of variance"
    curves = [own for own in main if own.effect.order == 1]
    maps = [own for own in main if own.effect.order > 1]
    if curves:
        height = 0.35 + _PANEL * _rows(len(curves), _COLUMNS)
        found.append(Section(title, height, lambda strip: _draw_main(strip, curves)))
    if maps:
        height = 0.35 + _PAIR * _rows(len(maps), _PAIR_COLUMNS)
        name = "Main effects of places" if curves else title
        found.append(Section(name, height, lambda strip: _draw_pairs(strip, maps, mask)))
    if pairs:
        title = f"Pairs   {percent(chosen.shares.get(2, 0.0))} of variance"
        height = 0.35 + _PAIR * _rows(len(pairs), _PAIR_COLUMNS)
        found.append(Section(title, height, lambda strip: _draw_pairs(strip, pairs, mask)))
    if chosen.map:
        found += _map_sections(model, chosen)
    return found


def _map_sections(model: AdditiveModel, chosen: Choice) -> list[Section]:
    """The map with the triples beside it; below it, where it is large."""
    frame, triples = interaction_map_data(model), triple_data(model, _TRIPLES)
    higher = share_from_3(chosen.shares)
    about = f"   order 3 and above: {percent(higher)} of variance" if higher > 0 else ""
    side = min(map_side(len(frame)), 8.0)
    if side <= _LARGE_MAP or not len(triples):
        draw = partial(_draw_map, frame=frame, triples=triples, side=side)
        return [Section(f"Interaction map{about}", side + 0.35, draw)]
    draw = partial(_draw_map, frame=frame, triples=triples.iloc[:0], side=side)
    return [
        Section("Interaction map", side + 0.35, draw),
        Section(f"Triples{about}", 1.1 + 0.2 * len(triples), partial(_draw_triples, triples=triples)),
    ]


def _rows(count: int, columns: int) -> int:
    return -(-count // columns)


def _assemble(
    model: AdditiveModel, figure: Any, chapters: list[Chapter]
) -> dict[str | None, dict[str, Any]]:
    """Strips below each other, the formulas above, what was left out and notes below."""
    count = len(chapters)
    formulas = formula_lines(model)
    formulas[-1] += f"   ({model.family.name})"
    narrow = all(max(chapter.shown) <= 2 for chapter in chapters)
    width = _NARROW if narrow else _WIDTH
    if figure is not None:
        width = figure.bbox.width / figure.dpi
    letters = int(width * 72 / (LETTER * (SMALL + 0.5)))
    title = "\n".join(wrap(text, letters, 2, separators=r" ,+") for text in formulas)
    head, foot = _HEAD + _LINE * max(title.count("\n") - 1, 0), _FOOT + _LINE * (count - 1)
    heights = [section.height for chapter in chapters for section in chapter.sections]
    if figure is None:
        figure = new_figure((width, sum(heights) + head + foot))
    strips = figure.subfigures(len(heights) + 2, 1, squeeze=False, height_ratios=[head, *heights, foot])
    strips = strips[:, 0]
    strips[0].text(0.01, 0.5, title, fontsize=SMALL + 0.5, color=SOFT, va="center")
    axes: dict[str | None, dict[str, Any]] = {}
    notes, rest = [], iter(strips[1:-1])
    for chapter in chapters:
        own = axes[chapter.parameter] = {}
        found_notes = list(chapter.left_out)
        for section, strip in zip(chapter.sections, rest, strict=False):
            name_strip(strip, chapter.heading + section.title)
            found, section_notes = section.draw(strip)
            own |= found
            found_notes += section_notes
        notes += [f"{chapter.heading}{text}" for text in dict.fromkeys(found_notes)]
    lines = wrap("; ".join(notes), letters, 3 + count, separators=r" ")
    strips[-1].text(0.01, 0.95, lines, fontsize=SMALL, color=SOFT, va="top", linespacing=1.3)
    return axes


def name_strip(strip: Any, title: str) -> None:
    """The title of a strip."""
    strip.suptitle(title, x=0.01, ha="left", fontsize=TITLE + 1, color=INK, fontweight="bold")


def _shape(count: int, most: int) -> tuple[int, int]:
    """Even rows of panels, and how many stand in a row."""
    rows = _rows(count, most)
    return rows, max(_rows(count, rows), 2)


def _cells(strip: Any, shape: tuple[int, int], apart: list[bool]) -> Any:
    """Cells of a strip, with one more column for a colour bar.

    Panels that stand apart are in a grid inside of their cell, so that their names and legends take no
    room from the panels above, below and beside. That leaves out of account what their labels need: a
    row or a column of such panels alone gets it here.
    """
    rows, columns = shape
    alone = np.ones(rows * columns, bool)
    alone[: len(apart)] = apart
    alone = alone.reshape(shape)
    heights = np.where(alone.all(axis=1), _ALONE[0], 1.0)
    widths = np.where(alone.all(axis=0), _ALONE[1], 1.0)
    # A column without any panel needs no more than others.
    widths[len(apart) :] = 1.0
    return strip.add_gridspec(
        rows, columns + 1, height_ratios=heights.tolist(), width_ratios=[*widths.tolist(), _BAR]
    )


def _draw_main(strip: Any, main: list[Picture], shared: bool = True) -> Drawn:
    """Main effects on one scale, so that their sizes can be compared; each on its own if not shared."""
    shape = _shape(len(main), _COLUMNS)
    columns = shape[1]
    # Long names of levels turn a panel: its effects lie along the horizontal axis.
    width = 0.775 * strip.bbox.width / strip.dpi / columns
    apart = [own.effect.categories[0] and needs_rows(own.effect, width) for own in main]
    grid = _cells(strip, shape, apart)
    limits = shared_limits(main)
    axes, notes = {}, []
    for k, (picture, flat) in enumerate(zip(main, apart, strict=True)):
        cell, found = grid[k // columns, k % columns], picture.effect
        ax = strip.add_subplot(cell.subgridspec(1, 1)[0] if flat else cell)
        flat = found.categories[0] and lies_flat(ax, found)
        notes += draw_picture(ax, picture, picture.look.within(compact=True))
        if shared:
            (ax.set_xlim if flat else ax.set_ylim)(*limits)
            notes += _tell_cut(ax, picture, limits)
        if (k % columns == 0 or not shared) and not flat:
            name_axis(ax, "y", picture.look.effect_label, lines=3)
        axes[found.label] = ax
    return axes, notes


def _tell_cut(ax: Any, picture: Picture, limits: tuple[float, float]) -> list[str]:
    """Say what of an effect the shared scale does not hold, beside it and below the page."""
    found = picture.effect
    if found.fit.min() < limits[0] or found.fit.max() > limits[1]:
        return [f"{shorten(found.label, 30)}: leaves the scale where rows are few"]
    if found.se is None:
        return []
    lower, upper = found.band(picture.look.level)
    if lower.min() >= limits[0] and upper.max() <= limits[1]:
        return []
    ax.text(
        0.5, 0.97, _CUT, transform=ax.transAxes, ha="center", va="top", fontsize=SMALL, color=SOFT,
        zorder=5,
    )  # fmt: skip
    return [f"{_CUT}: uncertain beyond {number(limits[0])} to {number(limits[1])}"]


def shared_limits(pictures: list[Picture]) -> tuple[float, float]:
    """Limits that hold all fits with their bands and residuals.

    Bands that are many times as high as all fits would leave flat lines: then those where rows are
    count, and where these are too high as well, as much of them as leaves the fits a part of the height.
    """
    cores = [core_of(picture.effect, picture.look) for picture in pictures]
    fits = np.concatenate([p.effect.fit[core] for p, core in zip(pictures, cores, strict=True)])
    low, high = float(fits.min()), float(fits.max())
    least = max(picture.look.least for picture in pictures)
    residuals = [
        np.quantile(picture.look.residuals["partial_residual"], [0.01, 0.99])
        for picture in pictures
        if picture.look.residuals is not None
    ]
    tails = np.concatenate([picture.effect.fit for picture in pictures])
    if np.ptp(tails) <= RUNAWAY * (high - low):
        low, high = float(tails.min()), float(tails.max())
    nothing = high - low <= 1e-12 or all(p.effect.share <= NOTHING for p in pictures)
    height = np.inf if nothing else max(high - low, least)
    reach = np.inf if residuals else (RUNAWAY - 1) / 2 * height
    everywhere = [np.ones(len(core), bool) for core in cores]
    for shown in (everywhere, cores):
        ends = [low, high, *np.ravel(residuals)]
        for picture, core in zip(pictures, shown, strict=True):
            found = picture.effect
            ends += [found.fit.min(), found.fit.max()]
            ends += [] if found.atoms is None else [found.atoms.fit.min(), found.atoms.fit.max()]
            if found.se is not None:
                lower, upper = found.band(picture.look.level)
                ends += [lower[core].min(), upper[core].max()]
        if max(ends) - min(ends) <= RUNAWAY * height:
            break
    bottom, top = max(min(ends), low - reach), min(max(ends), high + reach)
    if top - bottom < 1e-12:
        return -1.0, 1.0
    room = 0.06 * (top - bottom)
    return float(bottom - room), float(top + room)


def _draw_pairs(strip: Any, pairs: list[Picture], mask: bool) -> Drawn:
    """Pairs on one scale, as main effects are, with one colour bar for all of them."""
    shape = _shape(len(pairs), _PAIR_COLUMNS)
    columns = shape[1]
    grid = _cells(strip, shape, [any(picture.effect.categories) for picture in pairs])
    # Curves by level have no colours, but are on the same scale.
    limit = max(extent(picture.effect, mask=mask) for picture in pairs)
    limit = max(limit, *(picture.look.least for picture in pairs)) if limit > 0 else limit
    levels = contour_levels(limit)
    axes, notes, strongest = {}, [], (0.0, None)
    for k, picture in enumerate(pairs):
        found = picture.effect
        mixed = sum(found.categories) == 1
        more: dict[str, Any] = {"limit": limit, "bar": False}
        if mixed:  # the legend stands below, so that panels are as wide as each other
            cells = grid[k // columns, k % columns].subgridspec(2, 1, height_ratios=(10, 3))
            ax = strip.add_subplot(cells[0])
            more = {"legend": strip.add_subplot(cells[1])}
        else:
            cell = grid[k // columns, k % columns]
            table = all(found.categories)
            ax = strip.add_subplot(cell.subgridspec(1, 1)[0] if table else cell)
            more |= {"most": MOST_PAGE_CELLS} if table else {}
        look = picture.look.within(compact=True)
        notes += draw_picture(ax, picture, look, mask, **more)
        own = extent(found, mask=mask)
        if mixed:
            low, high = ax.get_ylim()
            ax.set_ylim(min(low, levels[0]), max(high, levels[-1]))
        elif own >= strongest[0]:
            strongest = own, ax.collections[0]
        axes[found.label] = ax
    if limit > 0 and strongest[1] is not None:
        place = None if len(pairs) < columns else strip.add_subplot(grid[:, columns])
        value_bar(ax, strongest[1], levels, pairs[0].look.effect_label, place=place)
    return axes, notes


def _draw_map(strip: Any, frame: pd.DataFrame, triples: pd.DataFrame, side: float) -> Drawn:
    width = strip.bbox.width / strip.dpi
    grid = strip.add_gridspec(1, 2, width_ratios=(side + 0.6, max(width - side - 0.6, 0.5)))
    axes = {MAP: strip.add_subplot(grid[0])}
    draw_map(axes[MAP], frame)
    if len(triples):
        axes[TRIPLES] = strip.add_subplot(grid[1])
        draw_bars(axes[TRIPLES], triples)
    return axes, []


def _draw_triples(strip: Any, triples: pd.DataFrame) -> Drawn:
    ax = strip.add_subplot(strip.add_gridspec(1, 2, width_ratios=(3, 1))[0])
    draw_bars(ax, triples)
    return {TRIPLES: ax}, []
