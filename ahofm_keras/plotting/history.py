"""Learning curves of a fit, whatever its solver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.errors import DataError
from ahofm_keras.plotting.theme import (
    BLUE,
    INK,
    LINE,
    SOFT,
    TEXT,
    VERMILLION,
    headline,
    log_axis,
    name_axis,
    several_axes,
    styled,
    tidy,
)
from ahofm_keras.texts import number

_PANEL = (3.5, 2.8)
_TITLES = {"bound": "evidence bound", "edf": "effective df", "deviance": "mean deviance"}
_ORDER = ("bound", "deviance", "loss", "edf")
# A curve that falls by this factor is read better on a logarithmic axis.
_FALL = 20.0


def plot_history(history: Any, axes: Any = None) -> np.ndarray:
    """Draw the learning curves of a fit: a panel per quantity, training and validation together.

    The epoch that was best is marked: that of the lowest validation deviance (or loss) where rows were
    held out, else that of the highest evidence bound or the lowest loss.

    Args:
        history: what `fit` returned, or its `history` dict.
        axes: as many axes as there are quantities.

    Returns:
        The axes, one a quantity.

    Raises:
        DataError: nothing recorded.

    The data behind the picture is `history_data(history)`.
    """
    frame = history_data(history)
    panels = _panels(frame)
    best = best_epoch(frame)
    step = "sweep" if {"bound", "edf"} & set(frame.columns) else "epoch"
    with styled():
        found: np.ndarray = several_axes(axes, (1, len(panels)), _PANEL)[0]
        for ax, name in zip(found, panels, strict=True):
            _draw(ax, frame, name, best)
            name_axis(ax, "x", step)
            ax.xaxis.get_major_locator().set_params(integer=True)
        if best is not None:
            _tell_best(found[panels.index(_base(best[0]))], frame, best, step)
    return found


def history_data(history: Any) -> pd.DataFrame:
    """The data behind `plot_history`: a row per epoch or sweep, from 1 on, and a column per quantity."""
    values = getattr(history, "history", history)
    if isinstance(values, pd.DataFrame):
        return values
    if not isinstance(values, Mapping) or not values:
        raise DataError(
            "`history` must be what `fit` returned, with at least one epoch. "
            f"Received: {type(history).__name__}."
        )
    longest = max(len(own) for own in values.values())
    epochs = getattr(history, "epoch", None)
    index = [epoch + 1 for epoch in epochs] if epochs else list(range(1, longest + 1))
    # A quantity that is validated in some epochs only has fewer values: they belong to the last of each.
    frame = pd.DataFrame(index=pd.Index(index, name="epoch"))
    for name, own in values.items():
        every = max(1, longest // max(len(own), 1))
        column = np.full(longest, np.nan)
        column[every - 1 :: every][: len(own)] = np.asarray(own, float)[
            : len(column[every - 1 :: every])
        ]
        frame[name] = column
    return frame


def best_epoch(frame: pd.DataFrame) -> tuple[str, int] | None:
    """The quantity that tells which epoch is best, and that epoch."""
    for name in ("val_deviance", "val_loss", "bound", "loss"):
        if name in frame and frame[name].notna().any():
            values = frame[name].to_numpy(float)
            place = np.nanargmax(values) if name == "bound" else np.nanargmin(values)
            return name, int(frame.index.to_numpy()[place])
    return None


def _panels(frame: pd.DataFrame) -> list[str]:
    """Quantities that get a panel; the loss of a variational fit is its bound once more."""
    names = list(dict.fromkeys(_base(name) for name in frame.columns))
    if "bound" in names and "loss" in names:
        names.remove("loss")
    known = [name for name in _ORDER if name in names]
    return known + [name for name in names if name not in known]


def _base(name: str) -> str:
    return name.removeprefix("val_")


def _draw(ax: Any, frame: pd.DataFrame, name: str, best: tuple[str, int] | None) -> None:
    tidy(ax)
    smallest, largest = np.inf, -np.inf
    both = f"val_{name}" in frame and name in frame
    for column, colour, dash, label in (
        (name, BLUE, "-", "training"),
        (f"val_{name}", VERMILLION, (0, (4, 1.2)), "validation"),
    ):
        if column in frame:
            own = frame[column].dropna()
            ax.plot(own.index, own, color=colour, linestyle=dash, linewidth=LINE - 0.2, label=label)
            if len(own) == 1:
                ax.plot(own.index, own, "o", color=colour, markersize=4)
            smallest, largest = min(smallest, own.min()), max(largest, own.max())
    if smallest > 0 and largest > _FALL * smallest:
        log_axis(ax, "y")
    if both:
        ax.legend(loc="upper right", fontsize=TEXT - 1, frameon=False)
    if best is not None:
        ax.axvline(best[1], color=SOFT, linewidth=0.7, linestyle=(0, (2, 2)), zorder=1)
    headline(ax, _TITLES.get(name, name))


def _tell_best(ax: Any, frame: pd.DataFrame, best: tuple[str, int], step: str) -> None:
    """A dot at the best epoch; its value in the title."""
    name, epoch = best
    value = float(frame[name].to_numpy(float)[frame.index.to_numpy() == epoch][0])
    ax.plot([epoch], [value], "o", color=INK, markersize=4.5, zorder=5)
    ax.set_title(f"best: {step} {epoch}, {number(value, 4)}", loc="right", fontsize=TEXT - 1, color=SOFT)
