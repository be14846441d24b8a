"""Drawings of surfaces: contours of two numbers, a table of two categories."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

from ahofm_keras.decomposition import Effect
from ahofm_keras.decomposition.parts import NOTHING
from ahofm_keras.plotting.look import Look
from ahofm_keras.plotting.rug import thinned
from ahofm_keras.plotting.texts import even_numbers, shorten_apart
from ahofm_keras.plotting.theme import (
    DIVERGING,
    FAINT,
    INK,
    MASK,
    SMALL,
    TEXT,
    colour_bar,
    log_axis,
    name_axis,
    name_places,
    tidy,
)
from ahofm_keras.texts import number

_STEPS, _FEW_STEPS = 14, 8
# Shades between two levels of a scale that several surfaces share.
_SHADES = 4
_ROUNDING = 1.4
_PEAK = 1.3
# Levels of a table at most: in a figure that is as high as it needs, and in a panel of a page.
_MOST_CELLS, MOST_PAGE_CELLS = 20, 8
# Letters of the names of levels, across and down.
_LETTERS, _COMPACT_LETTERS = (18, 30), (12, 16)
_MOST_NUMBERS = 120
NO_ROWS = "hatched: no rows near"
NOTHING_THERE = "no effect: 0 everywhere"


def extent(*effects: Effect, mask: bool = True) -> float:
    """The size of effects that colours reach to; 0 where they have no effect.

    A peak in a corner would leave one pale colour to the rest: where the largest 2% are much larger than
    all others, the colours end before them.
    """
    sizes = []
    for own in effects:
        size = np.abs(own.fit)
        if mask and own.near_data is not None and own.near_data.any():
            size = size[own.near_data]
        sizes.append(size.reshape(-1))
    together = np.concatenate(sizes)
    largest = float(together.max())
    if largest < 1e-12 or max(own.share for own in effects) <= NOTHING:
        return 0.0
    most = float(np.quantile(together, 0.98))
    return most if 0 < _PEAK * most < largest else largest


def colour_limit(effect: Effect, look: Look, mask: bool = True) -> float:
    """What the colours of an effect on its own reach to: one that is next to nothing stays pale."""
    own = extent(effect, mask=mask)
    return max(own, look.least) if own > 0 else own


def contour_levels(limit: float, steps: int = _STEPS) -> np.ndarray:
    """Round levels, even in number on both sides of 0, that reach a limit."""
    from matplotlib.ticker import MaxNLocator

    if limit <= 0:
        return np.array([-1.0, -0.5, 0.5, 1.0])  # 0 has the colour of neither sign
    levels = MaxNLocator(nbins=steps, steps=[1, 2, 2.5, 5, 10]).tick_values(-limit, limit)
    step = float(f"{levels[1] - levels[0]:.6g}")
    count = int(np.ceil(limit / step))
    return step * np.arange(-count, count + 1)


def draw_surface(
    ax: Any,
    effect: Effect,
    look: Look,
    mask: bool = True,
    limit: float | None = None,
    bar: bool = True,
) -> list[str]:
    """Filled contours of two numbers around 0; negative lines are dashed, for prints without colour.

    Args:
        ax: to draw on.
        effect: of two numbers.
        look: of the drawing.
        mask: whether places without rows near them are covered.
        limit: of the colours, by default `colour_limit`.
        bar: whether to add the colour bar.
    """
    x, y = (np.asarray(values, float) for values in effect.grid)
    levels = contour_levels(colour_limit(effect, look, mask) if limit is None else limit)
    fit = effect.fit.T
    tidy(ax, None)
    own = extent(effect, mask=mask)
    # On a scale for several the colours say how large an effect is, its own lines which shape it has.
    shared = limit is not None and limit > 0
    fill = np.linspace(levels[0], levels[-1], _SHADES * (len(levels) - 1) + 1) if shared else levels
    drawn = ax.contourf(x, y, fit, levels=fill, cmap=DIVERGING, extend=_beyond(effect, levels, mask))
    if own > 0:
        lines = contour_levels(max(own, look.least), _FEW_STEPS) if shared else levels
        _draw_lines(ax, x, y, fit, lines, labelled=not look.compact)
    notes = _cover(ax, x, y, effect) if mask else []
    if look.rows is not None:
        shown = thinned(look.rows)
        first, second = (shown[name].to_numpy(float) for name in effect.features)
        ax.plot(first, second, ".", color=INK, markersize=2.2, alpha=0.35, linewidth=0, zorder=5)
    for axis, name in zip("xy", effect.features, strict=True):
        if name in look.log:
            log_axis(ax, axis)
        elif look.compact:
            (ax.xaxis if axis == "x" else ax.yaxis).get_major_locator().set_params(nbins=5)
        name_axis(ax, axis, look.name(name))
    ax.set_xlim(x.min(), x.max())
    ax.set_ylim(y.min(), y.max())
    if extent(effect, mask=mask) == 0:
        notes.append(NOTHING_THERE)
    elif bar:
        value_bar(ax, drawn, levels, "" if look.compact else look.effect_label)
    return notes


def _draw_lines(
    ax: Any, x: np.ndarray, y: np.ndarray, fit: np.ndarray, levels: np.ndarray, labelled: bool
) -> None:
    """Lines between the colours: of 0 thick, below 0 dashed."""
    zero = np.abs(levels) < 1e-9 * levels[-1]
    widths = np.where(zero, 1.1, np.where(levels < 0, 0.7, 0.4))
    dashes = [
        (0, (4, 2.5)) if level < 0 and not own else "solid"
        for level, own in zip(levels, zero, strict=True)
    ]
    lines = ax.contour(
        x, y, fit, levels=levels, colors=INK, linewidths=widths, linestyles=dashes, alpha=0.6
    )
    if labelled:
        chosen = levels[(len(levels) // 2) % 2 :: 2]
        texts = dict(zip(chosen, even_numbers(chosen), strict=True))
        for text in ax.clabel(lines, levels=chosen, fmt=texts, fontsize=SMALL - 1, inline_spacing=2):
            text.set_zorder(2.5)  # below the cover of places without rows


def _beyond(effect: Effect, levels: np.ndarray, mask: bool) -> str:
    """Whether an effect leaves the colours, below or above, where it is seen."""
    seen = effect.near_data if mask and effect.near_data is not None else np.ones(effect.fit.shape, bool)
    below = bool((effect.fit[seen] < levels[0]).any())
    above = bool((effect.fit[seen] > levels[-1]).any())
    return {(True, True): "both", (True, False): "min", (False, True): "max"}.get(
        (below, above), "neither"
    )


def value_bar(
    ax: Any, drawn: Any, levels: np.ndarray, label: str, axes: Any = None, place: Any = None
) -> Any:
    """A colour bar with a few of the levels as ticks, 0 among them."""
    found = colour_bar(ax, drawn, label, axes, place)
    every = -(-len(levels) // 9)
    ticks = levels[(len(levels) // 2) % every :: every]
    found.set_ticks(ticks, labels=even_numbers(ticks))
    found.ax.minorticks_off()
    return found


def _cover(ax: Any, x: np.ndarray, y: np.ndarray, effect: Effect) -> list[str]:
    """Cover places where no rows are near."""
    if effect.near_data is None or effect.near_data.all():
        return []
    # Rows are counted in cells: without rounding, the border would be a staircase.
    far = gaussian_filter((~effect.near_data).T.astype(float), _ROUNDING, mode="nearest")
    ax.contourf(x, y, far, levels=[0.5, 1.5], colors=[MASK], hatches=["////"], zorder=3)
    ax.contour(x, y, far, levels=[0.5], colors=[FAINT], linewidths=0.6, zorder=3)
    return [NO_ROWS]


def draw_table(
    ax: Any,
    effect: Effect,
    look: Look,
    mask: bool = True,
    limit: float | None = None,
    bar: bool = True,
    most: int = _MOST_CELLS,
) -> list[str]:
    """The effect of two categories as coloured cells with numbers; longer names stand on the left.

    Of more than `most` levels those with the largest effects are shown.
    """
    across = _across(effect)
    rows, columns = effect.grid[1 - across], effect.grid[across]
    fit = effect.fit if across == 1 else effect.fit.T
    near = effect.near_data
    far = np.zeros(fit.shape, bool) if near is None or not mask else ~(near if across == 1 else near.T)
    kept = [_kept(fit, 1, most), _kept(fit, 0, most)]
    fit, far = fit[np.ix_(*kept)], far[np.ix_(*kept)]
    levels = contour_levels(colour_limit(effect, look, mask) if limit is None else limit)
    limit = float(levels[-1])
    tidy(ax, None)
    edges = [np.arange(size + 1) - 0.5 for size in fit.shape]
    drawn = ax.pcolormesh(
        edges[1], edges[0], np.ma.masked_array(fit, far), cmap=DIVERGING, vmin=-limit, vmax=limit,
        edgecolors="white", linewidth=1.0,
    )  # fmt: skip
    _hatch_cells(ax, far)
    if fit.size <= _MOST_NUMBERS:
        seen = np.zeros_like(fit) if extent(effect, mask=mask) == 0 else fit
        _write_cells(ax, seen, far, limit, SMALL if fit.size > 30 or look.compact else TEXT - 1)
    letters = _COMPACT_LETTERS if look.compact else _LETTERS
    _name_cells(ax, rows[kept[0]], columns[kept[1]], letters)
    name_axis(ax, "y", look.name(effect.features[1 - across]))
    name_axis(ax, "x", look.name(effect.features[across]))
    notes = [NO_ROWS] if far.any() else []
    if extent(effect, mask=mask) == 0:
        notes.append(NOTHING_THERE)
    elif bar:
        value_bar(ax, drawn, levels, "" if look.compact else look.effect_label)
    if fit.shape != effect.fit.shape and fit.T.shape != effect.fit.shape:
        shown = " x ".join(map(str, fit.shape))
        notes.append(
            f"{effect.label}: {shown} of {len(rows)} x {len(columns)} levels, the largest effects"
        )
    return notes


def table_size(effect: Effect) -> tuple[float, float]:
    """Inches of a figure for the effect of two categories."""
    across = _across(effect)
    rows, columns = (min(len(effect.grid[k]), _MOST_CELLS) for k in (1 - across, across))
    return float(np.clip(2.8 + 0.42 * columns, 5.0, 11.0)), float(np.clip(1.6 + 0.27 * rows, 3.6, 8.0))


def _across(effect: Effect) -> int:
    """Which of two categories stands along the horizontal axis: the one with shorter names."""
    longest = [max(len(str(level)) for level in grid) for grid in effect.grid[:2]]
    return 1 if longest[1] <= longest[0] else 0


def _kept(fit: np.ndarray, axis: int, most: int) -> np.ndarray:
    size = np.abs(fit).max(axis=axis)
    return np.sort(np.argsort(-size, kind="stable")[:most])


def _hatch_cells(ax: Any, far: np.ndarray) -> None:
    from matplotlib.patches import Rectangle

    for row, column in np.argwhere(far):
        ax.add_patch(
            Rectangle(
                (column - 0.5, row - 0.5),
                1,
                1,
                facecolor=MASK,
                edgecolor=FAINT,
                hatch="////",
                linewidth=0,
            )
        )


def _write_cells(ax: Any, fit: np.ndarray, far: np.ndarray, limit: float, size: float) -> None:
    for row, column in np.argwhere(~far):
        value = fit[row, column]
        # White letters on the dark ends of the colours.
        colour = "white" if abs(value) > 0.62 * limit else INK
        text = number(0.0 if abs(value) < 5e-4 * limit else value, 2)
        ax.text(column, row, text, ha="center", va="center", fontsize=size, color=colour)


def _name_cells(ax: Any, rows: np.ndarray, columns: np.ndarray, letters: tuple[int, int]) -> None:
    across = shorten_apart([str(level) for level in columns], letters[0])
    down = shorten_apart([str(level) for level in rows], letters[1])
    size = TEXT - 1 if max(len(across), len(down)) <= 14 else SMALL - 0.5
    name_places(ax, across, size)
    ax.set_yticks(np.arange(len(down)), down, fontsize=size)
    ax.invert_yaxis()
    ax.tick_params(length=0)
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
