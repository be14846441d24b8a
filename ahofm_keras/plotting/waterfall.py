"""One prediction taken apart, as a waterfall."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.decomposition import Explanation
from ahofm_keras.decomposition.explain import HELD
from ahofm_keras.decomposition.names import check_count
from ahofm_keras.errors import DataError
from ahofm_keras.plotting.texts import join_names, signed
from ahofm_keras.plotting.theme import (
    BLUE,
    FAINT,
    INK,
    SMALL,
    TEXT,
    VERMILLION,
    headline,
    name_axis,
    one_axes,
    styled,
    tidy,
)
from ahofm_keras.texts import number, shorten

_HEIGHT = 0.62
_NAME, _VALUE = 34, 18
# Inches of a bar and its gap, by the lines of the longest name.
_ROW = {1: 0.3, 2: 0.3, 3: 0.4}
_INVISIBLE = 1e-3
# How `explain` calls the interactions of an order that it adds up.
_SUMMED = r"[\d,]+ other interactions? of order \d+"


def plot_explanation(explanation: Explanation, ax: Any = None, most: int = 12) -> Any:
    """Draw how the parts of one prediction lead from the intercept to the link.

    Args:
        explanation: of `explain(model, row)`.
        ax: axes to draw on.
        most: parts shown, the largest ones; the others are added up in one bar.

    Returns:
        The axes.

    The data behind the picture is `explanation_data(explanation, most)`.
    """
    frame = explanation_data(explanation, most)
    with styled():
        names = [_name(row) for row in frame.itertuples()]
        lines = max(name.count("\n") + 1 for name in names)
        ax = one_axes(ax, (7.8, 1.1 + _ROW[min(lines, 3)] * len(frame)))
        tidy(ax, "x")
        places = np.arange(len(frame))[::-1]
        largest = frame["contribution"][frame["kind"] != "total"].abs().max()
        for place, row in zip(places, frame.itertuples(), strict=True):
            _draw_bar(ax, place, row, largest)
        ax.vlines(
            frame["end"].to_numpy()[:-1], places[1:] - _HEIGHT / 2, places[:-1] + _HEIGHT / 2,
            color=FAINT, linewidth=0.8, zorder=1,
        )  # fmt: skip
        ax.set_yticks(places, names, linespacing=1.1)
        for label, name in zip(ax.get_yticklabels(), names, strict=True):
            label.set_fontsize(SMALL if "\n" in name else TEXT - 1)
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        ax.set_ylim(-0.7, len(frame) - 0.3)
        _make_room(ax, frame)
        name_axis(ax, "x", f"link of {explanation.response_label}")
        headline(ax, _title(explanation))
    return ax


def explanation_data(explanation: Explanation, most: int = 12) -> pd.DataFrame:
    """The data behind `plot_explanation`: a row per bar.

    Returns:
        `part`, `value` (of the features), `contribution`, `start` and `end` of the bar in units of the
        link, `kind`: `start` (intercept and offset), `part`, `rest` or `total`.
    """
    if not isinstance(explanation, Explanation):
        raise DataError(
            "`explanation` must come from `explain(model, row)`. "
            f"Received: {type(explanation).__name__}."
        )
    check_count("most", most, 1, none=False)
    table = explanation.table
    held = table["part"] == HELD
    first, parts = table[(table["order"] == 0) & ~held], table[table["order"] > 0]
    summed = parts["part"].str.fullmatch(_SUMMED).to_numpy(bool)
    own, others = parts[~summed], parts[summed]
    sizes = own["contribution"].abs().to_numpy()
    own = own.iloc[np.argsort(-sizes, kind="stable")]
    # A bar too short to see tells nothing of its own.
    count = min(most, int((sizes > _INVISIBLE * sizes.max(initial=0.0)).sum()))
    if len(own) - count == 1:
        count = len(own)
    shown, small = own.iloc[:count], own.iloc[count:]
    lines = [(row.part, row.value, row.contribution, "start") for row in first.itertuples()]
    lines += [(row.part, row.value, row.contribution, "part") for row in shown.itertuples()]
    if len(small):
        lines.append((f"{len(small)} smaller parts", "", small["contribution"].sum(), "rest"))
    lines += [(row.part, "", row.contribution, "rest") for row in others.itertuples()]
    lines += [(row.part, "", row.contribution, "rest") for row in table[held].itertuples()]
    frame = pd.DataFrame(lines, columns=["part", "value", "contribution", "kind"])
    ends = frame["contribution"].cumsum()
    frame["start"], frame["end"] = ends - frame["contribution"], ends
    total = {"part": "prediction", "value": "", "contribution": explanation.link, "kind": "total",
             "start": 0.0, "end": explanation.link}  # fmt: skip
    frame = pd.concat([frame, pd.DataFrame([total])], ignore_index=True)
    return frame[["part", "value", "contribution", "start", "end", "kind"]]


def _draw_bar(ax: Any, place: int, row: Any, largest: float) -> None:
    is_level = row.kind in ("start", "total") and row.start == 0
    if is_level:
        # A level, not a step: it has no direction, and 0 may be far from all that happens.
        ax.vlines(row.end, place - _HEIGHT / 2, place + _HEIGHT / 2, color=INK, linewidth=2.2, zorder=3)
        text = number(row.end, 4)
    else:
        colour = VERMILLION if row.contribution > 0 else BLUE
        ax.barh(
            place, row.contribution, left=row.start, height=_HEIGHT, color=colour, zorder=2,
            alpha=0.55 if row.kind == "rest" else 0.9,
        )  # fmt: skip
        text = signed(row.contribution) if abs(row.contribution) > 1e-4 * largest else "0"
    end = row.end if is_level else max(row.start, row.end)
    ax.annotate(
        text, (end, place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=TEXT - 1,
        color=INK,
    )  # fmt: skip


def _name(row: Any) -> str:
    if row.kind != "part":
        return shorten(str(row.part), _NAME + _VALUE)
    names, values = str(row.part).split(":"), str(row.value)
    whole = f"{' : '.join(names)} = {values}"
    if len(whole) <= _NAME + _VALUE:
        return whole
    own = values.split(", ")
    if len(own) != len(names):  # a level with a comma in its name
        name = join_names(names, _NAME)
        return f"{name} = {shorten(values, _NAME + _VALUE - len(name))}"
    pairs = zip(names, own, strict=True)
    return "\n".join(f"{shorten(name, _NAME)} = {shorten(value, _VALUE)}" for name, value in pairs)


def _make_room(ax: Any, frame: pd.DataFrame) -> None:
    """Room for the numbers on the right of the bars."""
    ends = np.concatenate([frame["end"], frame["start"][1:-1]])
    low, high = ends.min(), ends.max()
    width = (high - low) or 1.0
    ax.set_xlim(low - 0.04 * width, high + 0.2 * width)


def _title(explanation: Explanation) -> str:
    response = f"{shorten(explanation.response_label, 26)}: predicted {number(explanation.response, 4)}"
    if np.isclose(explanation.link, explanation.response):
        return response
    return f"{response} (link {number(explanation.link, 4)})"
