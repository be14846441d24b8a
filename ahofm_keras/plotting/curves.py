"""Drawings of curves: of a number, and of a number at the levels of a category."""

from __future__ import annotations

from typing import Any

import numpy as np

from ahofm_keras.decomposition import Effect
from ahofm_keras.decomposition.parts import NOTHING
from ahofm_keras.plotting.look import Look
from ahofm_keras.plotting.rug import thinned
from ahofm_keras.plotting.texts import level_name, shorten_apart
from ahofm_keras.plotting.theme import (
    BLUE,
    DASHES,
    FAINT,
    INK,
    LINE,
    SERIES,
    SMALL,
    SOFT,
    TEXT,
    log_axis,
    name_axis,
    tidy,
)

MOST_LINES, _MOST_COMPACT_LINES = 6, 4
_MOST_BANDS = 3
# Partial residuals outside this share of them do not stretch the axis.
_RESIDUALS_SHOWN = 0.98
# A curve with its band that is so many times as high in the tails does not stretch the axis.
RUNAWAY = 4.0
# By how much of the axis an atom may be beyond the curve's end, which stands beside it.
_EDGE = 1e-5


def draw_curve(ax: Any, effect: Effect, look: Look) -> list[str]:
    """The curve of a number with its band; ticks at the deciles of the training rows.

    Returns:
        Notes.
    """
    (feature,), (x,) = effect.features, effect.grid
    x = np.asarray(x, float)
    tidy(ax)
    ax.axhline(0, color=SOFT, linewidth=0.7, zorder=1)
    if effect.se is not None:
        ax.fill_between(x, *effect.band(look.level), color=BLUE, alpha=0.18, linewidth=0, zorder=2)
    ax.plot(x, effect.fit, color=BLUE, linewidth=LINE, zorder=3)
    if effect.atoms is not None:
        _draw_atoms(ax, effect.atoms, x, look)
    if feature in look.log:
        log_axis(ax, "x")
    notes = _draw_residuals(ax, effect, look)
    if look.residuals is None and not look.compact:  # panels of a page share their limits
        notes += _limit_to_rows(ax, effect, look)
    ax.set_xlim(x.min(), x.max())
    open_axis(ax, effect, look)
    _draw_rug(ax, feature, look)
    if not look.compact:
        name_axis(ax, "x", feature)
        name_axis(ax, "y", look.effect_label)
    return notes


def _draw_atoms(ax: Any, atoms: Effect, curve: np.ndarray, look: Look) -> None:
    """Points beside the curve, with their intervals, where it is drawn."""
    x = np.asarray(atoms.grid[0], float)
    shown = (x >= curve.min() - _EDGE * np.ptp(curve)) & (x <= curve.max() + _EDGE * np.ptp(curve))
    if atoms.se is not None:
        low, high = atoms.band(look.level)
        ax.vlines(x[shown], low[shown], high[shown], color=BLUE, linewidth=1.0, zorder=3.5)
    style = {"color": BLUE, "markersize": 3.0 if look.compact else 4.5, "linewidth": 0}
    # Whole also where a point is at the end of the axis.
    ax.plot(x[shown], atoms.fit[shown], "o", zorder=4, clip_on=False, label="atoms", **style)


def _draw_rug(ax: Any, feature: str, look: Look) -> None:
    bottom = ax.get_xaxis_transform()
    if look.rows is not None:
        values = thinned(look.rows)[feature].to_numpy(float)
        look_of_rug = {"color": INK, "linewidth": 0.6, "alpha": 0.35}
        ax.vlines(values, 0, 0.03, transform=bottom, zorder=4, label="rug", **look_of_rug)
    elif (deciles := look.quantiles_of(feature, *np.arange(0.1, 0.95, 0.1))) is not None:
        low, high = ax.get_xlim()
        shown = deciles[(deciles >= low) & (deciles <= high)]
        ax.vlines(
            shown, 0, 0.025, transform=bottom, color=SOFT, linewidth=0.9, zorder=4, label="deciles"
        )


def _draw_residuals(ax: Any, effect: Effect, look: Look) -> list[str]:
    if look.residuals is None:
        return []
    shown = thinned(look.residuals, residuals=True)
    values = shown["partial_residual"].to_numpy()
    x = shown["value"].to_numpy(float)
    inside = (x >= min(effect.grid[0])) & (x <= max(effect.grid[0]))
    ax.plot(
        x[inside], values[inside], ".", color=SOFT, markersize=2.6, alpha=0.45, zorder=1.5, linewidth=0
    )
    return limit_to_residuals(ax, effect, values[inside], "y", look.level)


def limit_to_residuals(
    ax: Any, effect: Effect, values: np.ndarray, axis: str, level: float
) -> list[str]:
    """Room for most residuals and for the whole band; a few far ones do not stretch the axis."""
    tail = (1 - _RESIDUALS_SHOWN) / 2
    ends = [*np.quantile(values, [tail, 1 - tail]), effect.fit.min(), effect.fit.max()]
    if effect.se is not None:
        lower, upper = effect.band(level)
        ends += [lower.min(), upper.max()]
    room = 0.08 * (max(ends) - min(ends) or 1.0)
    low, high = min(ends) - room, max(ends) + room
    if low <= values.min() and values.max() <= high:
        return []
    (ax.set_ylim if axis == "y" else ax.set_xlim)(low, high)
    outside = int(((values < low) | (values > high)).sum())
    return [f"{effect.label}: {outside} of {len(values):,} partial residuals lie outside"]


def _limit_to_rows(ax: Any, effect: Effect, look: Look) -> list[str]:
    """Where a curve runs away beyond nearly all rows, the axis stays with the rows."""
    core = core_of(effect, look)
    ends = [effect.fit] if effect.se is None else [*effect.band(look.level)]
    low, high = min(end[core].min() for end in ends), max(end[core].max() for end in ends)
    width = high - low
    if width <= 0 or max(e.max() for e in ends) - min(e.min() for e in ends) < RUNAWAY * width:
        return []
    bottom, top = low - 0.5 * width, high + 0.5 * width
    ax.set_ylim(bottom, top)
    left = effect.fit.min() < bottom or effect.fit.max() > top
    return [f"{effect.label}: {'' if left else 'band '}leaves the scale where rows are few"]


def core_of(effect: Effect, look: Look) -> np.ndarray:
    """Points of a curve between the 1% and the 99% quantile of the rows; all levels of a category."""
    ends = look.quantiles_of(effect.features[0], 0.01, 0.99)
    if ends is None:
        return np.ones(len(effect.fit), bool)
    x = np.asarray(effect.grid[0], float)
    core = (x >= ends[0]) & (x <= ends[1])
    return core if core.any() else np.ones(len(x), bool)


def open_axis(ax: Any, effect: Effect, look: Look, axis: str = "y") -> None:
    """An effect that is next to nothing looks small, and one of 0 is no rounding errors blown up."""
    setter, getter = (ax.set_ylim, ax.get_ylim) if axis == "y" else (ax.set_xlim, ax.get_xlim)
    if look.least > 0:
        low, high = getter()
        setter(min(low, -look.least), max(high, look.least))
    elif effect.se is None and (effect.share <= NOTHING or np.ptp(effect.fit) < 1e-12):
        setter(-1, 1)


def draw_curves_by_level(
    ax: Any, effect: Effect, look: Look, legend: Any = True, coloured: list[int] | None = None
) -> list[str]:
    """One curve per level of the category, over the number; typical ones in colour, others in grey.

    Args:
        ax: to draw on.
        effect: of a category and a number.
        look: of the drawing.
        legend: whether to add one; or axes of its own for it.
        coloured: places of the levels in colour, by default typical ones.
    """
    category = effect.categories.index(True)
    levels, x = effect.grid[category], np.asarray(effect.grid[1 - category], float)
    fit = level_curves(effect)
    band = None
    if effect.se is not None:
        band = [end if category == 0 else end.T for end in effect.band(look.level)]
    if coloured is None:
        coloured = typical_levels(fit, _MOST_COMPACT_LINES if look.compact else MOST_LINES)
    tidy(ax)
    ax.axhline(0, color=SOFT, linewidth=0.7, zorder=1)
    named = []
    for place, k in enumerate(coloured):
        colour, dash = SERIES[place % len(SERIES)], DASHES[place % len(DASHES)]
        if band is not None and len(coloured) <= _MOST_BANDS:
            ax.fill_between(x, band[0][k], band[1][k], color=colour, alpha=0.12, linewidth=0, zorder=2)
        named += ax.plot(x, fit[k], color=colour, linestyle=dash, linewidth=LINE - 0.3, zorder=3)
    others = [k for k in range(len(levels)) if k not in coloured]
    for k in others:
        (grey,) = ax.plot(x, fit[k], color=FAINT, linewidth=0.8, zorder=1.5)
    names = shorten_apart([str(levels[k]) for k in coloured], 14 if look.compact else 28)
    if others:
        named, names = [*named, grey], [*names, f"{len(others)} other levels"]
    feature = effect.features[1 - category]
    if feature in look.log:
        log_axis(ax, "x")
    ax.set_xlim(x.min(), x.max())
    open_axis(ax, effect, look)
    _draw_rug(ax, feature, look)
    name_axis(ax, "x", look.name(feature))
    if not look.compact:
        name_axis(ax, "y", look.effect_label)
    if legend:
        _add_legend(ax if legend is True else legend, named, names, effect.features[category], look)
    return []


def level_curves(effect: Effect) -> np.ndarray:
    """The curves of a category's levels over a number, `(L, n)`."""
    return effect.fit if effect.categories[0] else effect.fit.T


def typical_levels(fit: np.ndarray, most: int) -> list[int]:
    """Levels `(L, n)` with the strongest curve and those least like the ones before, in their own order.

    All of them where there are few.
    """
    if len(fit) <= most + 1:
        return list(range(len(fit)))
    chosen = [int(np.argmax((fit**2).sum(axis=1)))]
    distance = np.full(len(fit), np.inf)
    while len(chosen) < most:
        distance = np.minimum(distance, ((fit - fit[chosen[-1]]) ** 2).sum(axis=1))
        chosen.append(int(np.argmax(distance)))
    return sorted(set(chosen))


def _add_legend(ax: Any, lines: list[Any], names: list[str], title: str, look: Look) -> None:
    own = ax not in [line.axes for line in lines]
    place: dict[str, Any] = {"loc": "best"}
    if own:
        ax.set_axis_off()
        place = {"loc": "upper left", "ncols": 2, "columnspacing": 1.0}
    elif look.legend_outside:
        place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.02)}
    size = SMALL if look.compact else TEXT - 1
    legend = ax.legend(
        lines, names, title=None if own else level_name(title, 17 if look.compact else 30),
        alignment="left", fontsize=size, title_fontsize=size, handlelength=1.6, borderaxespad=0.2,
        labelspacing=0.3, frameon=not look.legend_outside, framealpha=0.85, edgecolor="none", **place,
    )  # fmt: skip
    legend.set_zorder(6)
    # On axes of its own it has its room.
    legend.set_in_layout(not own)
