"""Pictures of the rows of a `Check`: residuals, their distribution, observed and fitted responses."""

from __future__ import annotations

from typing import Any

import numpy as np

from ahofm_keras.diagnostics import Check
from ahofm_keras.diagnostics.curves import pit_frame, qq_frame
from ahofm_keras.plotting.check_parts import (
    NO_CHANCES,
    PANEL,
    check_argument,
    cloud,
    draw_trend,
    has_chances,
    is_log,
    name_of_fitted,
    nothing,
)
from ahofm_keras.plotting.theme import (
    BLUE,
    FAINT,
    INK,
    VERMILLION,
    headline,
    name_axis,
    note,
    one_axes,
    styled,
    tidy,
)
from ahofm_keras.texts import percent

# Points of a QQ line that are drawn on each side and between.
_QQ_POINTS = 300
# Residuals further out would leave the picture to themselves.
_FAR = 7.0
# The mean and the standard deviation of the root of |r|, r gaussian.
_ROOT_MEAN, _ROOT_SD = 0.822179, 0.349150


def plot_residuals(check: Check, ax: Any = None) -> Any:
    """Quantile residuals against the fitted mean, with their trend.

    Args:
        check: what `check` returned.
        ax: axes to draw into.
    """
    check_argument(check)
    with styled():
        ax = one_axes(ax, PANEL)
        fitted, (name, residuals) = check.residuals["fitted"].to_numpy(), _own_residuals(check)
        log = is_log(check, fitted)
        far = np.abs(residuals) > _FAR
        cloud(ax, fitted[~far], residuals[~far], log, False)
        ax.plot(
            fitted[far], np.sign(residuals[far]) * _FAR, "D", color=VERMILLION, markersize=3.5, mew=0
        )
        ax.axhline(0, color=INK, linewidth=0.8)
        notes = [f"{far.sum():,} beyond ±{_FAR:g} at the edge"] if far.any() else []
        notes.append(draw_trend(ax, fitted, residuals, log))
        note(ax, "; ".join(filter(None, notes)))
        tidy(ax)
        headline(ax, "Residuals and fitted")
        name_axis(ax, "x", name_of_fitted(check))
        name_axis(ax, "y", name)
    return ax


def plot_quantiles(check: Check, ax: Any = None) -> Any:
    """Quantile residuals against gaussian quantiles, with the band of 95 of 100 samples.

    Args:
        check: what `check` returned.
        ax: axes to draw into.
    """
    check_argument(check)
    with styled():
        ax = one_axes(ax, PANEL)
        if not has_chances(check):
            headline(ax, "Quantiles of residuals")
            return nothing(ax, NO_CHANCES)
        spread = check.residuals.attrs["spread"]
        frame = qq_frame(check.residuals["quantile"].to_numpy() / spread)
        outside = np.mean((frame["sample"] < frame["lower"]) | (frame["sample"] > frame["upper"]))
        frame = frame.iloc[_thinned(len(frame))]
        x = frame["theoretical"]
        ax.fill_between(x, frame["lower"], frame["upper"], color=FAINT, alpha=0.5, linewidth=0)
        ends = [x.iloc[0], x.iloc[-1]]
        ax.plot(ends, ends, color=INK, linewidth=0.8)
        inside = (frame["sample"] >= frame["lower"]) & (frame["sample"] <= frame["upper"])
        for shown, colour, marker in ((inside, BLUE, "o"), (~inside, VERMILLION, "D")):
            points = frame[shown]
            ax.plot(points["theoretical"], points["sample"], marker, color=colour, markersize=2.6, mew=0)
        tidy(ax, "both")
        headline(ax, "Quantiles of residuals")
        name_axis(ax, "x", "gaussian quantile")
        name_axis(ax, "y", "quantile residual")
        clipped = check.residuals.attrs.get("clipped", 0)
        rest = f"; {clipped:,} residuals clipped" if clipped else ""
        note(ax, f"{percent(float(outside))} of the rows are outside the 95% band{rest}")
    return ax


def plot_pit(check: Check, ax: Any = None) -> Any:
    """The histogram of Phi(quantile residual), flat where the predicted distributions are right.

    A hump in the middle says that they are too wide, a valley that they are too narrow, a slope that
    they lie too low or too high.

    Args:
        check: what `check` returned.
        ax: axes to draw into.
    """
    check_argument(check)
    with styled():
        ax = one_axes(ax, PANEL)
        if not has_chances(check):
            headline(ax, "Probabilities of responses")
            return nothing(ax, NO_CHANCES)
        frame = pit_frame(check.residuals["quantile"].to_numpy() / check.residuals.attrs["spread"])
        lower, upper = frame.attrs["range"]
        ax.axhspan(lower, upper, color=FAINT, alpha=0.5, linewidth=0)
        ax.axhline(1, color=INK, linewidth=0.8)
        inside = frame["density"].between(lower, upper).to_numpy()
        width = 1 / len(frame)
        for shown, colour in ((inside, BLUE), (~inside, VERMILLION)):
            ax.bar(
                frame["low"][shown], frame["density"][shown], width, align="edge",
                color=colour, alpha=0.75, edgecolor="white", linewidth=0.8,
            )  # fmt: skip
        ax.set(xlim=(0, 1), ylim=(0, max(1.5, 1.08 * float(frame["density"].max()), 1.05 * upper)))
        tidy(ax)
        headline(ax, "Probabilities of responses")
        name_axis(ax, "x", "predicted P(at most the response)")
        name_axis(ax, "y", "density")
        note(ax, "grey: 95% range of a bar if the model is right")
    return ax


def plot_spread(check: Check, ax: Any = None) -> Any:
    """The size of quantile residuals along the fitted mean: level where the scale is right everywhere.

    Args:
        check: what `check` returned.
        ax: axes to draw into.
    """
    check_argument(check)
    with styled():
        ax = one_axes(ax, PANEL)
        if not has_chances(check):
            headline(ax, "Spread and fitted")
            return nothing(ax, NO_CHANCES)
        residuals = check.residuals["quantile"].to_numpy() / check.residuals.attrs["spread"]
        fitted, size = check.residuals["fitted"].to_numpy(), np.sqrt(np.abs(residuals))
        log = is_log(check, fitted)
        cloud(ax, fitted, np.minimum(size, np.sqrt(_FAR)), log, False)
        ax.axhline(_ROOT_MEAN, color=INK, linewidth=0.8)
        note(ax, draw_trend(ax, fitted, size, log, _ROOT_MEAN, _ROOT_SD))
        tidy(ax)
        headline(ax, "Spread and fitted")
        name_axis(ax, "x", name_of_fitted(check))
        name_axis(ax, "y", "root of |quantile residual|")
    return ax


def _own_residuals(check: Check) -> tuple[str, np.ndarray]:
    """Those that are drawn, and what they are called: of a loss without chances how rows pull at it."""
    if has_chances(check):
        return "quantile residual", check.residuals["quantile"].to_numpy()
    found = check.residuals["pull"].to_numpy()
    return "weighted residual, in sd", found / max(float(found.std()), np.finfo(float).tiny)


def _thinned(count: int) -> np.ndarray:
    """Places of a sorted sample that a line needs: all at the ends, some between."""
    if count <= 3 * _QQ_POINTS:
        return np.arange(count)
    ends = np.arange(_QQ_POINTS)
    between = np.linspace(_QQ_POINTS, count - 1 - _QQ_POINTS, _QQ_POINTS).astype(int)
    return np.unique(np.concatenate([ends, between, count - 1 - ends]))
