"""One visual language for all pictures: colours, sizes, axes and their titles.

Matplotlib is imported inside functions, so that the package works without it. Nothing here changes
matplotlib's global settings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ahofm_keras.errors import DataError
from ahofm_keras.plotting.texts import share_text, wrap
from ahofm_keras.plotting.ticks import log_ticks, plain_ticks
from ahofm_keras.texts import shorten

# Colours of Okabe and Ito: told apart by all kinds of colour vision, and in a grey print by their order.
BLUE, VERMILLION, GREEN = "#0072B2", "#D55E00", "#009E73"
SERIES = (BLUE, VERMILLION, GREEN, "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = (
    "-",
    (0, (5, 1.5)),
    (0, (1, 1)),
    (0, (5, 1.5, 1, 1.5)),
    (0, (8, 2)),
    (0, (3, 1, 1, 1, 1, 1)),
    "-",
)
INK, SOFT, FAINT, GRID = "#262626", "#6B6B6B", "#BDBDBD", "#E8E8E8"
MASK = "#F2F2F2"
DIVERGING = "RdBu_r"
SEQUENTIAL = "Blues"

TITLE, TEXT, SMALL = 10.0, 9.0, 7.5
LINE = 1.8
# Width of a letter by its size.
LETTER = 0.6
# Letters of a title that words beside it must leave.
_LEAST_TITLE = 16

_STYLE = {
    "font.size": TEXT,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": SOFT,
    "axes.linewidth": 0.7,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "axes.labelsize": TEXT,
    "axes.titlesize": TITLE,
    "axes.titlelocation": "left",
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": TEXT - 1,
    "ytick.labelsize": TEXT - 1,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "savefig.facecolor": "white",
    "figure.dpi": 110,
    "hatch.linewidth": 0.5,
    "hatch.color": FAINT,
    "legend.frameon": False,
    "legend.fontsize": TEXT - 1,
    "lines.solid_capstyle": "round",
    # A name with dollar signs is no formula.
    "text.parse_math": False,
}


def pyplot() -> Any:
    """The module `matplotlib.pyplot`.

    Raises:
        ImportError: saying which extra to install.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Pictures need matplotlib: install the extra, `pip install 'ahofm_keras[plot]'`."
        ) from error
    return plt


@contextmanager
def styled() -> Iterator[Any]:
    """`pyplot` under our settings; the user's come back at the end."""
    plt = pyplot()
    with plt.rc_context(_STYLE):
        yield plt


def one_axes(ax: Any, size: tuple[float, float]) -> Any:
    """The axes given, or those of a new figure; called inside `styled`."""
    if ax is None:
        return new_figure(size).add_subplot()
    if not hasattr(ax, "plot"):
        raise DataError(f"`ax` must be matplotlib axes. Received: {type(ax).__name__}.")
    return ax


def several_axes(
    axes: Any,
    shape: tuple[int, int],
    size: tuple[float, float],
    least: tuple[float, float] = (0.0, 0.0),
    **share: Any,
) -> np.ndarray:
    """The axes given, checked, or those of a new figure, as an array of a shape; inside `styled`.

    Args:
        axes: of the user: as many as the shape has, in any nesting; or None.
        shape: rows and columns.
        size: of one panel, in inches.
        least: of the figure.
        share: `sharex` and `sharey` of a new figure.
    """
    wanted = shape[0] * shape[1]
    if axes is not None:
        given = np.asarray(axes, object).reshape(-1)
        if len(given) != wanted or not all(hasattr(ax, "plot") for ax in given):
            raise DataError(f"`axes` must be {wanted} matplotlib axes. Received: {len(given)}.")
        return given.reshape(shape)
    figure_size = max(shape[1] * size[0], least[0]), max(shape[0] * size[1], least[1])
    found = new_figure(figure_size).subplots(*shape, squeeze=False, **share)
    return np.asarray(found, object)


def new_figure(size: tuple[float, float]) -> Any:
    """A figure whose layout keeps labels apart; called inside `styled`."""
    figure = pyplot().figure(figsize=size, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.06, wspace=0.03, hspace=0.03)
    return figure


def tidy(ax: Any, grid: str | None = "y") -> None:
    """Thin spines left and below only, plain numbers, a light grid along `x`, `y`, `both` or none."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set(linewidth=0.7, color=SOFT)
    ax.tick_params(length=3, width=0.7, color=SOFT, labelsize=TEXT - 1, labelcolor=INK)
    for axis in (ax.xaxis, ax.yaxis):
        if axis.get_scale() == "linear":
            plain_ticks(axis, TEXT - 1)
    ax.grid(False)
    if grid:
        ax.grid(True, axis=grid, color=GRID, linewidth=0.7)
    ax.set_axisbelow(True)


def headline(
    ax: Any,
    title: str | Sequence[str],
    share: float | None = None,
    words: bool = True,
    between: str = " : ",
    room: float = 1.0,
) -> None:
    """Title on the left, share of the variance in grey on the right of its last line.

    Args:
        ax: axes.
        title: a text; or several, names of features say, that have a line each where there is no room
            for them side by side.
        share: of the variance.
        words: whether there is room to say what the share is.
        between: several texts.
        room: the part of the width that names at the vertical axis leave.
    """
    aside = "" if share is None else share_text(share, words)
    # Labels of the vertical axis take some of the width.
    length = room * inches(ax)[0]
    width = max(10, int(0.88 * 72 * length / (LETTER * TITLE)))
    if share is not None and title and width - len(aside) < _LEAST_TITLE:
        aside = share_text(share, words=False)
    last = max(8, width - math.ceil(0.9 * len(aside)) - 1)
    text = title if isinstance(title, str) else between.join(title)
    taken = text_width(text, TITLE) + text_width(f"  {aside}", TEXT - 1)
    if taken > 72 * length:
        whole = isinstance(title, str)
        text = wrap(text, width, 2, last=last) if whole else _lines(title, width, last, between)
    ax.set_title(text, loc="left", fontsize=TITLE, color=INK, parse_math=False)
    ax.set_title(aside, loc="right", fontsize=TEXT - 1, color=SOFT)


def _lines(texts: Sequence[str], width: int, last: int, between: str) -> str:
    mark = between.rstrip()
    lines = [shorten(text, width - len(mark)) + mark for text in texts[:-1]]
    return "\n".join([*lines, shorten(texts[-1], last)])


def name_axis(ax: Any, axis: str, text: str, lines: int = 2) -> None:
    """Label an axis, broken so that it fits its length."""
    # Titles above take some of the height.
    width = int((0.9 if axis == "y" else 1.0) * _characters(ax, TEXT, vertical=axis == "y"))
    setter = ax.set_xlabel if axis == "x" else ax.set_ylabel
    setter(wrap(text, width, lines, even=True), fontsize=TEXT, color=INK, parse_math=False)


def log_axis(ax: Any, axis: str) -> None:
    """A logarithmic axis with plain numbers."""
    (ax.set_xscale if axis == "x" else ax.set_yscale)("log")
    log_ticks(ax.xaxis if axis == "x" else ax.yaxis, TEXT - 1)


def name_places(ax: Any, names: Sequence[str], size: float) -> None:
    """Names at whole numbers of the horizontal axis: slanted or upright where they are long.

    Where not even upright names have room, some are left out; their ticks stay.
    """
    room = 72 * 0.8 * inches(ax)[0] / max(len(names), 1)
    longest = max(map(len, names), default=0)
    if (longest + 1) * LETTER * size <= room:
        turn: dict[str, Any] = {"rotation": 0, "ha": "center"}
    elif 1.8 * size <= room:
        turn = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
    else:
        turn = {"rotation": 90, "ha": "center"}
    every = max(1, math.ceil(1.2 * size / room)) if turn["rotation"] == 90 else 1
    shown = [name if place % every == 0 else "" for place, name in enumerate(names)]
    ax.set_xticks(range(len(names)), shown, fontsize=size, **turn)


def note(ax: Any, text: str) -> None:
    """A remark below the label of the horizontal axis, in small grey letters."""
    if not text:
        return
    if not ax.get_xlabel():
        ax.set_xlabel(" ", fontsize=1)
    width = max(30, int(1.1 * _characters(ax, SMALL)))
    ax.annotate(
        wrap(text, width, 5, separators=" "),
        # Along the right edge: names at the vertical axis leave room on the left.
        xy=(1, 0),
        xycoords=("axes fraction", ax.xaxis.label),
        xytext=(0, -2),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=SMALL,
        color=SOFT,
        annotation_clip=False,
    )


def colour_bar(
    ax: Any, drawn: Any, label: str, axes: Sequence[Any] | None = None, place: Any = None
) -> Any:
    """A slim colour bar beside an axes, or beside several, or on axes of its own.

    Beside one axes it is tied to it and as high, where the figure's layout makes room for that. A bar
    that only shares a cell of the layout drifts away when a neighbour needs more room.
    """
    if place is None and axes is None and _makes_room(ax.figure):
        place = ax.inset_axes([1.03, 0.0, 0.035, 1.0])
    if place is not None:
        bar = ax.figure.colorbar(drawn, cax=place)
    else:
        bar = ax.figure.colorbar(drawn, ax=ax if axes is None else list(axes), pad=0.02, aspect=28)
    bar.outline.set(linewidth=0.5, edgecolor=SOFT)
    bar.ax.tick_params(length=2, width=0.5, color=SOFT, labelsize=TEXT - 1.5, labelcolor=INK)
    letters = _characters(ax, TEXT - 1, vertical=True)
    bar.set_label(wrap(label, letters, 2, even=True), fontsize=TEXT - 1, color=INK)
    return bar


def _makes_room(figure: Any) -> bool:
    engine = figure.get_layout_engine()
    return engine is not None and not engine.adjust_compatible


def text_width(text: str, size: float) -> float:
    """Points that a line of text takes."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    return float(text_to_path.get_text_width_height_descent(text, FontProperties(size=size), False)[0])


def inches(ax: Any) -> tuple[float, float]:
    """Width and height of an axes, before the layout makes room for labels."""
    dpi = ax.figure.dpi
    return ax.bbox.width / dpi, ax.bbox.height / dpi


def _characters(ax: Any, size: float, vertical: bool = False) -> int:
    """About how many letters of a size fit along an axes."""
    return max(10, int(inches(ax)[vertical] * 72 / (LETTER * size)))
