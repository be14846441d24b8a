"""`plot_effect`: the picture of any effect of up to three features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.decomposition import Effect
from ahofm_keras.errors import DataError
from ahofm_keras.model import AdditiveModel
from ahofm_keras.plotting.curves import (
    MOST_LINES,
    draw_curve,
    draw_curves_by_level,
    level_curves,
    typical_levels,
)
from ahofm_keras.plotting.levels import draw_levels, level_size, lies_flat
from ahofm_keras.plotting.look import Look
from ahofm_keras.plotting.picture import Picture, effect_frame, read_effect, slices_of, squeeze
from ahofm_keras.plotting.surfaces import (
    contour_levels,
    draw_surface,
    draw_table,
    extent,
    table_size,
    value_bar,
)
from ahofm_keras.plotting.texts import join_names, share_text
from ahofm_keras.plotting.theme import (
    INK,
    TITLE,
    headline,
    note,
    one_axes,
    several_axes,
    styled,
)

_SLICES_TITLE = 84
# Inches for the legend of a category's levels.
_LEGEND = 1.2
# Of the width of a panel, beside names of levels.
_FLAT_ROOM, _TABLE_ROOM = 0.6, 0.72
_CURVE, _PAIR, _SLICE = (4.8, 3.4), (5.0, 3.8), (2.9, 3.2)


def plot_effect(
    source: AdditiveModel | Effect,
    *features: str,
    ax: Any = None,
    level: float = 0.95,
    rug: bool = False,
    residuals: bool = False,
    mask: bool = True,
    log: bool | None = None,
    trim: bool = True,
    points: int | None = None,
    at: Mapping[str, Any] | None = None,
    purify: bool = False,
    data: Any = None,
    parameter: str | None = None,
    by: str | None = None,
) -> Any:
    """Draw the effect of one, two or three features.

    A number is a curve with its band, a category points with bars, two numbers a surface, a category and
    a number one curve per level, two categories a table of coloured cells. Three features are slices:
    the effect of the first two at a low, a middle and a high value of the third, or at its levels.

    Args:
        source: a fitted model, with the names of features; or an effect, as `effect()` gives it.
        features: names, e.g. `"x1", "x2"`.
        ax: axes to draw on; for three features as many as there are slices.
        level: of the pointwise bands; a model without posterior has none.
        rug: show the rows: ticks, or points on a surface, or counts of levels. Otherwise the ticks below
            a curve are the deciles of the training rows.
        residuals: show partial residuals of one feature.
        mask: cover parts of a surface where no training rows are near.
        log: logarithmic axes for positive numbers; by default where their distribution is very skewed.
        trim: leave out a long tail beyond the 1% or 99% quantile; a note on the picture says so.
        points: along each axis that is a number.
        at: values of some features to draw at, e.g. of the third one.
        purify: see `effect`.
        data: rows for rug, residuals or purification, by default those of the fit. A model that was
            loaded has none.
        parameter: of the family whose predictor is read, by default the first; only models with several
            predictors have a choice.
        by: a category, with a curve per level, or a number, whose slope is drawn; see `effect`.

    Returns:
        The axes; for three features an array of them.

    Raises:
        DataError: an unknown feature, more features than the model's highest order or than three, or
            rows asked for that a loaded model does not have.

    The data behind the picture is `effect_data(...)` with the same arguments, those of the drawing left
    out; that of a rug is `rug_data`, that of residuals `residual_data`.
    """
    picture = read_effect(
        source, features, at=at, points=points, log=log, trim=trim, purify=purify, data=data,
        level=level, rug=rug, residuals=residuals, parameter=parameter, by=by,
    )  # fmt: skip
    picture = squeeze(picture)
    order = picture.effect.order
    if order > 3:
        raise DataError(f"Pictures show up to three features. Received: {order}.")
    with styled():
        if order == 3:
            return _plot_slices(picture, ax, mask)
        outside = ax is None
        ax = one_axes(ax, _size(picture.effect))
        draw_picture(ax, picture, picture.look.within(legend_outside=outside), mask)
        if outside and order > 1:
            # Names of levels and a legend take room that is known only when all has its place.
            ax.figure.draw_without_rendering()
            _add_title(ax, picture.effect, picture.look)
    return ax


def _size(found: Effect) -> tuple[float, float]:
    """Inches of a figure for the effect of one or two features."""
    if all(found.categories):
        return level_size(found) if found.order == 1 else table_size(found)
    if any(found.categories):
        return _PAIR[0] + _LEGEND, _PAIR[1]
    return _CURVE if found.order == 1 else _PAIR


def effect_data(
    source: AdditiveModel | Effect,
    *features: str,
    level: float = 0.95,
    log: bool | None = None,
    trim: bool = True,
    points: int | None = None,
    at: Mapping[str, Any] | None = None,
    purify: bool = False,
    data: Any = None,
    parameter: str | None = None,
    by: str | None = None,
) -> pd.DataFrame:
    """The data behind `plot_effect`: one row per point of its grid.

    Args:
        source: as `plot_effect`, and so on.
        features: names.
        level: of the bands.
        log: logarithmic axes.
        trim: leave out long tails.
        points: along each axis.
        at: values to draw at.
        purify: see `effect`.
        data: rows to purify on.
        parameter: of the family.
        by: a category or a number.

    Returns:
        The features, `fit`; `se`, `lower` and `upper` where the model has a posterior; `near_data`, for
        two features or more, where it is known.
    """
    picture = read_effect(
        source, features, at=at, points=points, log=log, trim=trim, purify=purify, data=data,
        level=level, parameter=parameter, by=by,
    )  # fmt: skip
    return effect_frame(picture)


def draw_picture(ax: Any, picture: Picture, look: Look, mask: bool = True, **more: Any) -> list[str]:
    """Draw an effect of one or two features with its title; its whole label is that of the axes.

    Args:
        ax: to draw on.
        picture: of the effect.
        look: of the drawing.
        mask: whether places without rows near them are covered.
        more: `limit` and `bar` of a surface or table, `legend` of curves by level.

    Returns:
        Notes. They stand below the axes, unless it is one of many.
    """
    found = picture.effect
    notes = list(picture.notes)
    ax.set_label(found.label)
    if found.order == 1:
        notes += (draw_levels if found.categories[0] else draw_curve)(ax, found, look)
    else:
        notes += _draw_pair(ax, found, look, mask, **more)
    _add_title(ax, found, look)
    if not look.compact:
        note(ax, "; ".join(notes))
    return notes


def _add_title(ax: Any, found: Effect, look: Look) -> None:
    """Names of a pair, and of a panel's feature; the share."""
    words = not look.compact
    if found.by is not None:
        title = (
            found.label
            if found.slope_of is None
            else f"slope of {found.slope_of} by {found.features[0]}"
        )
        headline(ax, title, found.share, words)
    elif found.order > 1:
        room = _TABLE_ROOM if all(found.categories) and look.compact else 1.0
        headline(ax, [look.name(own) for own in found.names], found.share, words, room=room)
    else:
        room = _FLAT_ROOM if found.categories[0] and lies_flat(ax, found) else 1.0
        headline(ax, look.name(found.label) if look.compact else "", found.share, words, room=room)


def _draw_pair(ax: Any, found: Effect, look: Look, mask: bool, **more: Any) -> list[str]:
    if all(found.categories):
        return draw_table(ax, found, look, mask, **more)
    if any(found.categories):
        return draw_curves_by_level(ax, found, look, **more)
    return draw_surface(ax, found, look, mask, **more)


def _plot_slices(picture: Picture, axes: Any, mask: bool) -> np.ndarray:
    """Slices side by side, on one scale."""
    found, look = picture.effect, picture.look
    slices = slices_of(found, picture.slices)
    shown: np.ndarray = several_axes(axes, (1, len(slices)), _slice_size(found), least=(5.0, 0.0))[0]
    limit = extent(*(own for _, own in slices), mask=mask)
    limit = max(limit, look.least) if limit > 0 else limit
    notes = list(picture.notes)
    mixed = sum(found.categories[:2]) == 1
    coloured = None
    if mixed:  # the same levels in all slices
        curves = np.concatenate([level_curves(own) for _, own in slices], axis=1)
        coloured = typical_levels(curves, MOST_LINES)
    for k, ((value, own), ax) in enumerate(zip(slices, shown, strict=True)):
        last = k == len(slices) - 1
        if mixed:
            own_look = look.within(compact=k > 0, legend_outside=axes is None)
            notes += draw_curves_by_level(ax, own, own_look, legend=last, coloured=coloured)
        else:
            notes += _draw_pair(ax, own, look.within(compact=True), mask, limit=limit, bar=False)
        headline(ax, (found.features[-1], value), between=" = ")
        if k:
            ax.set_ylabel("")
            ax.tick_params(labelleft=False)
    _finish_slices(shown, found, look, limit, mixed)
    note(shown[len(shown) // 2], "; ".join(dict.fromkeys(notes)))
    return shown


def _slice_size(found: Effect) -> tuple[float, float]:
    """Inches of a slice: tables of many levels need more than surfaces."""
    if not all(found.categories[:2]):
        return _SLICE
    width, height = table_size(found)
    return max(_SLICE[0], width - 1.4), max(_SLICE[1], height + 0.4)


def _finish_slices(shown: np.ndarray, found: Effect, look: Look, limit: float, mixed: bool) -> None:
    """One vertical axis or one colour bar for all slices, and the title of the whole."""
    if mixed:
        limits = np.array([ax.get_ylim() for ax in shown])
        for ax in shown:
            ax.set_ylim(limits[:, 0].min(), limits[:, 1].max())
    elif limit > 0:
        value_bar(shown[-1], shown[-1].collections[0], contour_levels(limit), look.effect_label, shown)
    for ax in shown:
        ax.set_label(found.label)
    figure = shown[0].figure
    if len(figure.axes) <= len(shown) + 1:  # a figure of ours, not one of many panels
        title = f"{join_names(found.names, _SLICES_TITLE)}   {share_text(found.share)}"
        figure.suptitle(title, fontsize=TITLE, color=INK, x=0.01, ha="left")
