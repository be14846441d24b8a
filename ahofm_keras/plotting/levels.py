"""Drawings of the effect of a category."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.decomposition import Effect
from ahofm_keras.plotting.curves import limit_to_residuals, open_axis
from ahofm_keras.plotting.look import Look
from ahofm_keras.plotting.rug import thinned
from ahofm_keras.plotting.texts import level_name, shorten_apart
from ahofm_keras.plotting.theme import BLUE, LINE, SMALL, SOFT, TEXT, inches, name_axis, tidy
from ahofm_keras.texts import number

MOST_LEVELS, MOST_COMPACT_LEVELS = 25, 12
# Inches that a letter of a level's name takes, side by side with others.
_LETTER_WIDTH = 0.075
# Letters of a level's name along the vertical axis.
_LETTERS, _COMPACT_LETTERS = 34, 18


def draw_levels(ax: Any, effect: Effect, look: Look) -> list[str]:
    """The levels of a category as points with bars, in the order of `level_frame`.

    Long names stand along the vertical axis. Of very many levels the largest effects are shown.
    """
    frame = level_frame(effect, look.level, MOST_COMPACT_LEVELS if look.compact else MOST_LEVELS)
    shown = frame[frame["shown"]]
    names = shorten_apart(
        [str(value) for value in shown["level"]], _COMPACT_LETTERS if look.compact else _LETTERS
    )
    flat = lies_flat(ax, effect)
    tidy(ax, "x" if flat else "y")
    places = np.arange(len(shown))
    line = ax.axvline if flat else ax.axhline
    line(0, color=SOFT, linewidth=0.7, zorder=1)
    notes = _draw_residuals(ax, effect, look, shown, flat)
    fit = shown["fit"].to_numpy()
    if effect.se is not None:
        lower, upper = shown["lower"].to_numpy(), shown["upper"].to_numpy()
        bars = ax.hlines if flat else ax.vlines
        bars(places, lower, upper, color=BLUE, linewidth=LINE, alpha=0.45, zorder=2)
    ax.plot(*((fit, places) if flat else (places, fit)), "o", color=BLUE, markersize=5, zorder=3)
    open_axis(ax, effect, look, "x" if flat else "y")
    _name_levels(ax, names, _counts(effect, look, shown), flat)
    if look.compact:
        (ax.xaxis if flat else ax.yaxis).get_major_locator().set_params(nbins=5)
    else:
        (feature,) = effect.features
        name_axis(ax, "y" if flat else "x", feature)
        name_axis(ax, "x" if flat else "y", look.effect_label)
    hidden = frame[~frame["shown"]]
    if len(hidden):
        span = f"{number(hidden['fit'].min())} to {number(hidden['fit'].max())}"
        levels = f"{len(shown)} of {len(frame)} levels, the largest effects"
        notes.append(f"{effect.label}: {levels} (others: {span})")
    return notes


def level_frame(effect: Effect, level: float, most: int = MOST_LEVELS) -> pd.DataFrame:
    """Levels from the lowest to the highest effect; those with an order of their own in that order.

    True and false, numbers, and the categories of a pandas Categorical have one; texts that stand in
    the order of the alphabet have none.

    Returns:
        `level`, `fit`, where known `lower` and `upper`, and `shown`: which ones fit on a picture.
    """
    frame = pd.DataFrame({"level": effect.grid[0], "fit": effect.fit})
    if effect.se is not None:
        frame["lower"], frame["upper"] = effect.band(level)
    strongest = np.argsort(-np.abs(frame["fit"].to_numpy()), kind="stable")
    frame["shown"] = np.isin(np.arange(len(frame)), strongest[:most])
    levels = list(effect.grid[0])
    if isinstance(levels[0], str) and levels == sorted(levels):
        frame = frame.sort_values("fit", kind="stable")
    return frame.reset_index(drop=True)


def level_size(effect: Effect) -> tuple[float, float]:
    """Inches of a figure for the effect of a category."""
    longest = min(max(len(str(level)) for level in effect.grid[0]), _LETTERS)
    shown = min(len(effect.grid[0]), MOST_LEVELS)
    return 4.8 + _LETTER_WIDTH * max(longest - _COMPACT_LETTERS, 0), max(3.4, 1.0 + 0.19 * shown)


def lies_flat(ax: Any, effect: Effect) -> bool:
    """Whether the names of a category's levels need the vertical axis of a panel to be read."""
    return needs_rows(effect, inches(ax)[0])


def needs_rows(effect: Effect, width: float) -> bool:
    """The same for a width in inches."""
    letters = sum(len(level_name(level)) + 2 for level in effect.grid[0])
    return _LETTER_WIDTH * letters > width


def _name_levels(ax: Any, names: list[str], counts: list[str], flat: bool) -> None:
    places = np.arange(len(names))
    room = 72 * 0.7 * inches(ax)[1] / len(names)
    size = min(TEXT - 1, max(4.0, room / 1.1)) if flat else TEXT - 1
    axis = ax.yaxis if flat else ax.xaxis
    axis.set_ticks(places, names, fontsize=size)
    axis.set_tick_params(length=0)
    limits = (-0.6, len(names) - 0.4)
    (ax.set_ylim if flat else ax.set_xlim)(*limits)
    if counts and not flat:  # room below the bars
        low, high = ax.get_ylim()
        ax.set_ylim(low - 0.08 * (high - low), high)
    for place, count in zip(places, counts, strict=False):
        if flat:
            ax.text(
                1.01, place, count, transform=ax.get_yaxis_transform(), va="center", fontsize=SMALL,
                color=SOFT,
            )  # fmt: skip
        else:
            ax.text(
                place, 0.01, count, transform=ax.get_xaxis_transform(), ha="center", fontsize=SMALL,
                color=SOFT,
            )  # fmt: skip


def _counts(effect: Effect, look: Look, shown: pd.DataFrame) -> list[str]:
    if look.rows is None:
        return []
    counts = look.rows[effect.features[0]].value_counts()
    return [f"n={int(counts.get(level, 0)):,}" for level in shown["level"]]


def _draw_residuals(ax: Any, effect: Effect, look: Look, shown: pd.DataFrame, flat: bool) -> list[str]:
    if look.residuals is None:
        return []
    rows = thinned(look.residuals, residuals=True)
    place = {level: k for k, level in enumerate(shown["level"])}
    places = rows["value"].map(place).to_numpy(float)
    known = np.isfinite(places)
    # The spread beside a level has no meaning: golden-ratio steps keep points of a level apart.
    aside = (np.arange(len(places)) * 0.618034 % 1 - 0.5) * 0.4
    values = rows["partial_residual"].to_numpy()[known]
    at = (places + aside)[known]
    ax.plot(
        *((values, at) if flat else (at, values)), ".", color=SOFT, markersize=2.6, alpha=0.4, zorder=1.5
    )
    return limit_to_residuals(ax, effect, values, "x" if flat else "y", look.level)
