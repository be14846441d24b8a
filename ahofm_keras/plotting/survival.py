"""Survival curves of a proportional hazards model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.errors import DataError
from ahofm_keras.model import AdditiveModel
from ahofm_keras.plotting.theme import (
    LINE,
    SERIES,
    TEXT,
    headline,
    name_axis,
    several_axes,
    styled,
    tidy,
)
from ahofm_keras.survival_curves import survival
from ahofm_keras.texts import shorten

_PANEL = (4.6, 3.2)


def plot_survival(
    model: AdditiveModel, x: Any, times: Any = None, interval: float | None = 0.95, ax: Any = None
) -> Any:
    """Draw the survival curves of some rows as steps, each with its credible band.

    Args:
        model: of the cox family, fitted.
        x: up to seven rows, a data frame or dict of columns; the index names the curves.
        times: see `survival`.
        interval: level of the bands; None for curves alone.
        ax: to draw on.

    Returns:
        The axes.

    Raises:
        DataError: more rows than can be told apart.

    The data behind the picture is `survival(model, x, times, interval)`.
    """
    frame = survival(model, x, times, interval)
    rows = list(dict.fromkeys(frame["row"]))
    if len(rows) > len(SERIES):
        raise DataError(
            f"A picture shows up to {len(SERIES)} survival curves. Received: {len(rows):,} rows; pass "
            "some of them, e.g. `x.iloc[:3]`."
        )
    with styled():
        ax = several_axes(None if ax is None else np.array([ax]), (1, 1), _PANEL)[0][0]
        for row, colour in zip(rows, SERIES, strict=False):
            _draw(ax, frame[frame["row"] == row], colour, str(row))
        tidy(ax)
        ax.set_ylim(-0.02, 1.02)
        ax.set_xlim(left=0.0)
        name_axis(ax, "x", "time")
        name_axis(ax, "y", "still without the event")
        if len(rows) > 1:
            ax.legend(loc="best", fontsize=TEXT - 1, frameon=False)
        headline(ax, f"Survival: {shorten(str(model.response), 40)}")
    return ax


def _draw(ax: Any, frame: pd.DataFrame, colour: str, label: str) -> None:
    time = frame["time"].to_numpy()
    label = shorten(label, 24)
    ax.step(time, frame["survival"], where="post", color=colour, linewidth=LINE, label=label)
    if "lower" in frame:
        ax.fill_between(
            time, frame["lower"], frame["upper"], step="post", color=colour, alpha=0.15, linewidth=0
        )
