"""Pictures of a `Check` that hold observed responses against what was fitted."""

from __future__ import annotations

from typing import Any

import numpy as np

from ahofm_keras.diagnostics import Check
from ahofm_keras.plotting.check_parts import NO_CHANCES, PANEL, check_argument, cloud, is_log, nothing
from ahofm_keras.plotting.theme import (
    BLUE,
    DASHES,
    FAINT,
    INK,
    SERIES,
    SOFT,
    VERMILLION,
    headline,
    name_axis,
    note,
    one_axes,
    styled,
    tidy,
)
from ahofm_keras.texts import shorten

# Classes, quantiles or times whose calibration is drawn.
_SERIES = 6


def plot_frequencies(check: Check, ax: Any = None) -> Any:
    """A hanging rootogram: roots of the observed numbers of rows hang from those that are expected.

    Bars that do not reach 0 are responses that were rarer than the model says, bars below 0 such as were
    more frequent.

    Args:
        check: what `check` returned.
        ax: axes to draw into.
    """
    check_argument(check)
    with styled():
        ax = one_axes(ax, PANEL)
        frame = check.frequencies
        headline(ax, "Events by time" if check.censored else "Frequencies")
        if not len(frame):
            return nothing(ax, "no events" if check.censored else NO_CHANCES)
        if check.levels:  # which lie so close together at the ends that bars would have no width
            frame = frame.assign(low=np.arange(len(frame)) - 0.5, high=np.arange(len(frame)) + 0.5)
        place, width = _places(frame["low"].to_numpy(), frame["high"].to_numpy(), check.discrete)
        top, observed = np.sqrt(frame["expected"]), np.sqrt(frame["observed"])
        # The variance of the root of a count is 1/4.
        ax.axhspan(-1, 1, color=FAINT, alpha=0.5, linewidth=0)
        off = np.abs(top - observed) > 1
        for shown, colour in ((~off, BLUE), (off, VERMILLION)):
            ax.bar(
                place[shown], observed[shown], 0.82 * width, bottom=(top - observed)[shown],
                color=colour, alpha=0.75, linewidth=0,
            )  # fmt: skip
        ax.plot(place, top, "-", color=INK, linewidth=1.3)
        if len(place) <= 60:
            ax.plot(place, top, "o", color=INK, markersize=2.6, mew=0)
        ax.axhline(0, color=INK, linewidth=0.8)
        tidy(ax)
        if check.classes:
            ax.set_xticks(np.arange(len(check.classes)), [shorten(own, 12) for own in check.classes])
        if check.levels:
            # Between two bars lies the quantile that parts them.
            ax.set_xticks(np.arange(len(check.levels)) + 0.5, [f"{own:g}" for own in check.levels])
        along = "time" if check.censored else shorten(check.response, 40)
        name_axis(ax, "x", f"quantiles of {along}, by their levels" if check.levels else along)
        name_axis(ax, "y", f"root of the number of {'events' if check.censored else 'rows'}")
        note(ax, "line: expected; bars hang from it and should end in the grey")
    return ax


def plot_observed(check: Check, ax: Any = None) -> Any:
    """Observed against fitted responses; of 0 and 1 the calibration curve.

    Args:
        check: what `check` returned.
        ax: axes to draw into.
    """
    check_argument(check)
    with styled():
        ax = one_axes(ax, PANEL)
        if check.classes or check.censored:
            return _calibration_of_chances(ax, check)
        if check.levels:
            return _calibration_of_levels(ax, check)
        fitted, observed = check.residuals["fitted"].to_numpy(), check.residuals["observed"].to_numpy()
        bins = check.calibration
        if check.binary:
            _classes(ax, fitted, observed)
            headline(ax, "Calibration")
            note(
                ax,
                "dots: means of bins; bars: 95% range if the model is right; grey: rows of 1 and 0",
            )
        else:
            log = is_log(check, fitted, observed)
            cloud(ax, fitted, observed, log, log)
            headline(ax, "Observed and fitted")
            note(ax, "dots: means of bins; bars: their 95% range if the model is right")
        low, high = (float(edge(fitted)) for edge in (np.min, np.max))
        ax.plot([low, high], [low, high], color=INK, linewidth=0.8)
        lower, upper = bins["lower"], bins["upper"]
        if check.binary:
            lower, upper = lower.clip(0, 1), upper.clip(0, 1)
        ax.vlines(bins["fitted"], lower, upper, color=SOFT, linewidth=1.6)
        ax.plot(bins["fitted"], bins["observed"], color=VERMILLION, linewidth=1.2)
        ax.plot(bins["fitted"], bins["observed"], "o", color=VERMILLION, markersize=4.5, mec="white")
        tidy(ax, "both")
        name_axis(ax, "x", f"fitted {shorten(check.response, 30)}")
        name_axis(ax, "y", f"observed {shorten(check.response, 30)}")
    return ax


def _calibration_of_chances(ax: Any, check: Check) -> Any:
    """Observed shares by bins of their chance, of each class, or to survive each time."""
    ax.plot([0, 1], [0, 1], color=INK, linewidth=0.8)
    hidden = _series(ax, check, "time" if check.censored else "class", "fitted")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    tidy(ax, "both")
    what = "survival" if check.censored else "classes"
    headline(ax, f"Calibration of {what}")
    note(ax, f"dots: means of bins; bars: 95% range if the model is right{hidden}")
    name_axis(ax, "x", "predicted chance to survive" if check.censored else "predicted probability")
    name_axis(ax, "y", "Kaplan-Meier share" if check.censored else "observed share")
    return ax


def _calibration_of_levels(ax: Any, check: Check) -> Any:
    """Shares of responses below each quantile by bins of that."""
    for level in check.levels:
        ax.axhline(level, color=INK, linewidth=0.8)
    hidden = _series(ax, check, "quantile", "fitted")
    ax.set(ylim=(-0.04, 1.04))
    tidy(ax, "both")
    headline(ax, "Calibration of levels")
    note(ax, f"lines: levels; dots: bins; bars: 95% range if the model is right{hidden}")
    name_axis(ax, "x", f"fitted quantile of {shorten(check.response, 24)}")
    name_axis(ax, "y", "share of responses below it")
    return ax


def _series(ax: Any, check: Check, by: str, along: str) -> str:
    """Observed shares of each class, quantile or time; says how many were left out."""
    groups = list(check.calibration.groupby(by, sort=False))
    for place, (own, bins) in enumerate(groups[:_SERIES]):
        colour = SERIES[place]
        name = f"{own:.3g}" if isinstance(own, float) else shorten(str(own), 14)
        low, high = bins["lower"].clip(0, 1), bins["upper"].clip(0, 1)
        ax.vlines(bins[along], low, high, color=FAINT, linewidth=1.4)
        ax.plot(bins[along], bins["observed"], color=colour, linewidth=1.2, linestyle=DASHES[place])
        ax.plot(bins[along], bins["observed"], "o", color=colour, markersize=4.0, mec="white")
        ax.plot([], [], "o-", color=colour, markersize=4.0, mec="white", label=name)
    ax.legend(loc="best", handlelength=1.2, title="until" if by == "time" else None)
    left_out = len(groups) - min(len(groups), _SERIES)
    many = {"class": "classes", "quantile": "quantiles", "time": "times"}[by]
    return f"; the first {_SERIES} of {len(groups)} {many}" if left_out else ""


def _classes(ax: Any, fitted: np.ndarray, observed: np.ndarray) -> None:
    """Histograms of the rows of 0 and of 1 along the fitted probability, below and above."""
    edges = np.linspace(0, 1, 41)
    counts = [np.histogram(fitted[observed == outcome], edges)[0] for outcome in (0, 1)]
    unit = 0.1 / max(1, *(int(count.max()) for count in counts))
    ax.stairs(-0.02 - unit * counts[0], edges, baseline=-0.02, fill=True, color=FAINT)
    ax.stairs(1.02 + unit * counts[1], edges, baseline=1.02, fill=True, color=FAINT)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.14, 1.14), yticks=np.linspace(0, 1, 6))


def _places(low: np.ndarray, high: np.ndarray, discrete: bool) -> tuple[np.ndarray, float]:
    """Centres of bins, of which the outer ones may have no end, and the width of the bars."""
    low, high = low.copy(), high + discrete  # of whole numbers the next bin begins there
    sizes = np.diff(low[1:])
    width = float(np.median(sizes)) if len(sizes) else 1.0
    # The outer bins are drawn no wider than the others.
    low[0], high[-1] = max(low[0], high[0] - width), min(high[-1], low[-1] + width)
    return (low + high - discrete) / 2, width
