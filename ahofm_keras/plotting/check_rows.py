"""Pictures of the rows of a `Check`: residuals, their distribution, observed and fitted responses."""

from __future__ import annotations

from typing import Any

import numpy as np

from ahofm_keras.diagnostics import Check
from ahofm_keras.diagnostics.curves import pit_frame, qq_frame, trend_frame
from ahofm_keras.errors import DataError
from ahofm_keras.plotting.theme import (
    BLUE,
    DASHES,
    FAINT,
    INK,
    SEQUENTIAL,
    SERIES,
    SOFT,
    VERMILLION,
    headline,
    log_axis,
    name_axis,
    note,
    one_axes,
    styled,
    tidy,
)
from ahofm_keras.texts import percent, shorten

PANEL = (4.1, 3.5)
# More rows than this are shown as a density.
_SCATTER_ROWS = 1500
_HEXAGONS = 38
# Points of a QQ line that are drawn on each side and between.
_QQ_POINTS = 300
# Residuals further out would leave the picture to themselves.
_FAR = 7.0
_LEAST_TREND_ROWS = 20
# Classes whose calibration is drawn.
_CLASSES = 6
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
        fitted, residuals = check.residuals["fitted"].to_numpy(), check.residuals["quantile"].to_numpy()
        log = _is_log(check, fitted)
        far = np.abs(residuals) > _FAR
        _cloud(ax, fitted[~far], residuals[~far], log, False)
        ax.plot(
            fitted[far], np.sign(residuals[far]) * _FAR, "D", color=VERMILLION, markersize=3.5, mew=0
        )
        ax.axhline(0, color=INK, linewidth=0.8)
        notes = [f"{far.sum():,} beyond ±{_FAR:g} at the edge"] if far.any() else []
        if len(fitted) >= _LEAST_TREND_ROWS and np.ptp(fitted) > 0:
            _trend(ax, fitted, residuals, log)
            notes.append("thick: trend; dashed: its 95% range if the model is right")
        note(ax, "; ".join(notes))
        tidy(ax)
        headline(ax, "Residuals and fitted")
        name_axis(ax, "x", f"fitted {shorten(check.response, 30)}")
        name_axis(ax, "y", "quantile residual")
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
        residuals = check.residuals["quantile"].to_numpy() / check.residuals.attrs["spread"]
        fitted, size = check.residuals["fitted"].to_numpy(), np.sqrt(np.abs(residuals))
        log = _is_log(check, fitted)
        _cloud(ax, fitted, np.minimum(size, np.sqrt(_FAR)), log, False)
        ax.axhline(_ROOT_MEAN, color=INK, linewidth=0.8)
        if len(fitted) >= _LEAST_TREND_ROWS and np.ptp(fitted) > 0:
            _trend(ax, fitted, size, log, _ROOT_MEAN, _ROOT_SD)
            note(ax, "thick: trend; dashed: its 95% range if the model is right")
        tidy(ax)
        headline(ax, "Spread and fitted")
        name_axis(ax, "x", f"fitted {shorten(check.response, 30)}")
        name_axis(ax, "y", "root of |quantile residual|")
    return ax


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
        headline(ax, "Frequencies")
        if check.classes:
            ax.set_xticks(np.arange(len(check.classes)), [shorten(own, 12) for own in check.classes])
        name_axis(ax, "x", shorten(check.response, 40))
        name_axis(ax, "y", "root of the number of rows")
        note(ax, "line: expected; bars hang from it and should end in the grey")
    return ax


def _calibration_of_classes(ax: Any, check: Check) -> Any:
    """Observed shares of each class by bins of its probability; bars as far as chance goes."""
    ax.plot([0, 1], [0, 1], color=INK, linewidth=0.8)
    groups = list(check.calibration.groupby("class", sort=False))
    for place, (own, bins) in enumerate(groups[:_CLASSES]):
        colour, name = SERIES[place], shorten(str(own), 14)
        ax.vlines(
            bins["fitted"],
            bins["lower"].clip(0, 1),
            bins["upper"].clip(0, 1),
            color=FAINT,
            linewidth=1.4,
        )
        ax.plot(bins["fitted"], bins["observed"], color=colour, linewidth=1.2, linestyle=DASHES[place])
        ax.plot(bins["fitted"], bins["observed"], "o", color=colour, markersize=4.0, mec="white")
        ax.plot([], [], "o-", color=colour, markersize=4.0, mec="white", label=name)
    ax.legend(loc="upper left", handlelength=1.2)
    hidden = len(groups) - min(len(groups), _CLASSES)
    rest = f"; the first {_CLASSES} of {len(groups)} classes" if hidden else ""
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    tidy(ax, "both")
    headline(ax, "Calibration of classes")
    note(ax, f"dots: means of bins; bars: 95% range if the model is right{rest}")
    name_axis(ax, "x", "predicted probability")
    name_axis(ax, "y", "observed share")
    return ax


def _places(low: np.ndarray, high: np.ndarray, discrete: bool) -> tuple[np.ndarray, float]:
    """Centres of bins, of which the outer ones may have no end, and the width of the bars."""
    low, high = low.copy(), high + discrete  # of whole numbers the next bin begins there
    sizes = np.diff(low[1:])
    width = float(np.median(sizes)) if len(sizes) else 1.0
    # The outer bins are drawn no wider than the others.
    low[0], high[-1] = max(low[0], high[0] - width), min(high[-1], low[-1] + width)
    return (low + high - discrete) / 2, width


def plot_observed(check: Check, ax: Any = None) -> Any:
    """Observed against fitted responses; of 0 and 1 the calibration curve.

    Args:
        check: what `check` returned.
        ax: axes to draw into.
    """
    check_argument(check)
    with styled():
        ax = one_axes(ax, PANEL)
        if check.classes:
            return _calibration_of_classes(ax, check)
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
            log = _is_log(check, fitted, observed)
            _cloud(ax, fitted, observed, log, log)
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


def check_argument(check: Any) -> None:
    """Raise where it is no `Check`."""
    if not isinstance(check, Check):
        raise DataError(
            f"A `Check` is needed: `plot_check(check(model))`. Received: {type(check).__name__}."
        )


def _is_log(check: Check, *values: np.ndarray) -> bool:
    """Whether axes of the response are logarithmic: as the link is, where no value is 0."""
    return check.link.partition(",")[0] == "log" and all(v.min() > 0 for v in values)


def _cloud(ax: Any, x: np.ndarray, y: np.ndarray, log_x: bool, log_y: bool) -> None:
    """Rows as points, or as a density where they are many."""
    if len(x) <= _SCATTER_ROWS:
        size = 14 if len(x) <= 300 else 7
        ax.scatter(x, y, s=size, color=BLUE, alpha=0.45, linewidth=0, rasterized=len(x) > 500)
    else:
        ax.hexbin(
            x,
            y,
            gridsize=(_HEXAGONS, int(_HEXAGONS / 1.6)),
            bins="log",
            mincnt=1,
            cmap=SEQUENTIAL,
            xscale="log" if log_x else "linear",
            yscale="log" if log_y else "linear",
            linewidths=0.1,
            edgecolors="face",
        )
    if log_x:
        log_axis(ax, "x")
    if log_y:
        log_axis(ax, "y")


def _trend(
    ax: Any, fitted: np.ndarray, values: np.ndarray, log: bool, mean: float = 0.0, sd: float = 1.0
) -> None:
    """The trend of values of one mean and deviation, and how far it strays by chance."""
    trend = trend_frame(np.log(fitted) if log else fitted, values)
    x, reach = np.exp(trend["fitted"]) if log else trend["fitted"], sd * trend["reach"]
    ax.plot(x, mean + reach, x, mean - reach, color=SOFT, linewidth=0.9, linestyle=(0, (4, 2)))
    ax.plot(x, trend["trend"], color=VERMILLION, linewidth=2.0)


def _classes(ax: Any, fitted: np.ndarray, observed: np.ndarray) -> None:
    """Histograms of the rows of 0 and of 1 along the fitted probability, below and above."""
    edges = np.linspace(0, 1, 41)
    counts = [np.histogram(fitted[observed == outcome], edges)[0] for outcome in (0, 1)]
    unit = 0.1 / max(1, *(int(count.max()) for count in counts))
    ax.stairs(-0.02 - unit * counts[0], edges, baseline=-0.02, fill=True, color=FAINT)
    ax.stairs(1.02 + unit * counts[1], edges, baseline=1.02, fill=True, color=FAINT)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.14, 1.14), yticks=np.linspace(0, 1, 6))


def _thinned(count: int) -> np.ndarray:
    """Places of a sorted sample that a line needs: all at the ends, some between."""
    if count <= 3 * _QQ_POINTS:
        return np.arange(count)
    ends = np.arange(_QQ_POINTS)
    between = np.linspace(_QQ_POINTS, count - 1 - _QQ_POINTS, _QQ_POINTS).astype(int)
    return np.unique(np.concatenate([ends, between, count - 1 - ends]))
