"""Pictures of a `Check`: residuals, quantiles, calibration, bases and concurvity."""

from __future__ import annotations

from typing import Any

import numpy as np

from ahofm_keras.diagnostics import Check
from ahofm_keras.diagnostics.curves import qq_frame, trend_frame
from ahofm_keras.errors import DataError
from ahofm_keras.plotting.texts import shorten_apart, wrap
from ahofm_keras.plotting.theme import (
    BLUE,
    FAINT,
    GRID,
    INK,
    SEQUENTIAL,
    SMALL,
    SOFT,
    TEXT,
    VERMILLION,
    headline,
    log_axis,
    name_axis,
    note,
    one_axes,
    several_axes,
    styled,
    tidy,
)
from ahofm_keras.texts import percent, shorten

# More rows than this are shown as a density.
_SCATTER_ROWS = 1500
_HEXAGONS = 38
# Lines of a panel of names, and letters of a name.
_NAMES = 12
_NAME_WIDTH = 16
# Points of a QQ line that are drawn on each side and between.
_QQ_POINTS = 300
_PANEL = (4.1, 3.5)
# Residuals further out would leave the picture to themselves.
_FAR = 7.0
_LEAST_TREND_ROWS = 20


def plot_check(check: Check, axes: Any = None) -> np.ndarray:
    """A page that shows what speaks against a model.

    Residuals against fitted means, their quantiles, observed against fitted responses; the k-index of
    each basis, the concurvity of each term, and the verdicts in words.

    Args:
        check: what `check` returned.
        axes: six matplotlib axes to draw into, by default those of a new figure.

    Returns:
        The axes, `(2, 3)`.
    """
    _check_argument(check)
    with styled():
        found = several_axes(axes, (2, 3), _PANEL)
        plot_residuals(check, found[0, 0])
        plot_quantiles(check, found[0, 1])
        plot_observed(check, found[0, 2])
        plot_bases(check, found[1, 0])
        plot_concurvity(check, found[1, 1])
        plot_verdicts(check, found[1, 2])
    return found


def plot_residuals(check: Check, ax: Any = None) -> Any:
    """Quantile residuals against the fitted mean, with their trend.

    Args:
        check: what `check` returned.
        ax: axes to draw into.
    """
    _check_argument(check)
    with styled():
        ax = one_axes(ax, _PANEL)
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
    _check_argument(check)
    with styled():
        ax = one_axes(ax, _PANEL)
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


def plot_observed(check: Check, ax: Any = None) -> Any:
    """Observed against fitted responses; of 0 and 1 the calibration curve.

    Args:
        check: what `check` returned.
        ax: axes to draw into.
    """
    _check_argument(check)
    with styled():
        ax = one_axes(ax, _PANEL)
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


def plot_bases(check: Check, ax: Any = None) -> Any:
    """The k-index of each basis; below 1, and marked, where k may be too small.

    Args:
        check: what `check` returned.
        ax: axes to draw into.
    """
    _check_argument(check)
    with styled():
        ax = one_axes(ax, _PANEL)
        frame = check.basis[check.basis["k_index"].notna()]
        shown = frame.sort_values("p_value", kind="stable").head(_NAMES).sort_index()
        headline(ax, "Is k large enough?")
        if not len(shown):
            return _nothing(ax, "no basis of a number")
        place, index = np.arange(len(shown)), shown["k_index"].to_numpy()
        low, middle, high = check.basis.attrs["random_orders"]
        ax.axvspan(low, high, color=GRID, linewidth=0)
        ax.axvline(middle, color=SOFT, linewidth=0.8)
        ax.hlines(place, index, middle, color=FAINT, linewidth=1.2)
        ok = shown["ok"].to_numpy(bool)
        for chosen, colour, marker in ((ok, BLUE, "o"), (~ok, VERMILLION, "D")):
            ax.plot(index[chosen], place[chosen], marker, color=colour, markersize=5.5, mec="white")
        left, right = min(low, index.min()), max(high, index.max())
        # Room on the right for the degrees of freedom.
        ax.set_xlim(left - 0.08 * (right - left), right + 0.42 * (right - left))
        for at, edf, largest in zip(place, shown["edf"], shown["k'"], strict=True):
            aside = {"transform": ax.get_yaxis_transform(), "ha": "right", "va": "center"}
            ax.text(0.99, at, f"{edf:.1f} of {largest}", **aside, fontsize=SMALL, color=SOFT)
        _names(ax, [_basis_name(line) for line in shown.itertuples()])
        ax.set_title("edf of k'", loc="right", fontsize=SMALL, color=SOFT)
        ax.locator_params(axis="x", nbins=5)
        name_axis(ax, "x", "k-index")
        rest = _hidden(len(shown), len(frame))
        note(ax, f"grey: random orders of the rows; diamonds: look at k{rest}")
    return ax


def plot_concurvity(check: Check, ax: Any = None) -> Any:
    """How much of each term the other terms can write.

    Args:
        check: what `check` returned.
        ax: axes to draw into.
    """
    _check_argument(check)
    with styled():
        ax = one_axes(ax, _PANEL)
        frame = check.concurvity
        shown = frame.sort_values("observed", ascending=False, kind="stable").head(_NAMES).sort_index()
        headline(ax, "Concurvity")
        if len(frame) < 2:
            return _nothing(ax, "one term only")
        place = np.arange(len(shown))
        high = ~shown["ok"].to_numpy(bool)
        ax.barh(place[~high], shown["observed"][~high], 0.6, color=BLUE)
        ax.barh(place[high], shown["observed"][high], 0.6, color=VERMILLION, hatch="///", ec="white")
        ax.plot(shown["estimate"], place, "|", color=INK, markersize=9, mew=1.4)
        ax.plot(shown["worst"], place, "|", color=SOFT, markersize=9, mew=1.4)
        for at, share in zip(place, shown["observed"], strict=True):
            if np.isfinite(share):
                ax.text(1.04, at, f"{share:.2f}", va="center", fontsize=SMALL, color=SOFT)
        ax.set_xlim(0, 1.2)
        ax.set_xticks(np.linspace(0, 1, 6))
        _names(ax, shown["term"].tolist())
        name_axis(ax, "x", "share that the other terms can write")
        rest = _hidden(len(shown), len(frame))
        note(ax, f"bar: fitted function; black: on average; grey: at worst{rest}")
    return ax


def plot_verdicts(check: Check, ax: Any = None) -> Any:
    """What was found, in words.

    Args:
        check: what `check` returned.
        ax: axes to write into.
    """
    _check_argument(check)
    with styled():
        ax = one_axes(ax, _PANEL)
        ax.set_axis_off()
        headline(ax, "Verdict")
        texts = check.verdicts or ["Nothing found that speaks against the model."]
        lines = [wrap(f"– {text}", 48, 7, separators=" ").replace("\n", "\n   ") for text in texts]
        room, used = 17, list[str]()
        for text in lines:
            height = text.count("\n") + 1
            if height > room:
                used.append(f"– and {len(lines) - len(used)} more: print the check")
                break
            room -= height
            used.append(text)
        head = wrap(f"{check.family} ({check.link}), {check.source}", 56, 2, separators=" ")
        ax.text(0, 0.98, head, transform=ax.transAxes, va="top", fontsize=SMALL + 0.5, color=SOFT)
        ax.text(0, 0.88, "\n".join(used), transform=ax.transAxes, va="top", fontsize=TEXT - 1, color=INK)
    return ax


def _check_argument(check: Any) -> None:
    if not isinstance(check, Check):
        raise DataError(
            f"A `Check` is needed: `plot_check(check(model))`. Received: {type(check).__name__}."
        )


def _is_log(check: Check, *values: np.ndarray) -> bool:
    """Whether axes of the response are logarithmic: as the link is, where no value is 0."""
    return check.link == "log" and all(v.min() > 0 for v in values)


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


def _trend(ax: Any, fitted: np.ndarray, residuals: np.ndarray, log: bool) -> None:
    """The trend of residuals, and how far it strays by chance."""
    trend = trend_frame(np.log(fitted) if log else fitted, residuals)
    x, reach = np.exp(trend["fitted"]) if log else trend["fitted"], trend["reach"]
    ax.plot(x, reach, x, -reach, color=SOFT, linewidth=0.9, linestyle=(0, (4, 2)))
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


def _names(ax: Any, names: list[str]) -> None:
    """Names along the vertical axis, first on top."""
    tidy(ax, "x")
    ax.set_yticks(np.arange(len(names)), shorten_apart(names, _NAME_WIDTH))
    ax.set_ylim(max(len(names), 3) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def _basis_name(line: Any) -> str:
    if line.terms.startswith(("te(", "ti(")):  # which have bases of their own beside that of an `s()`
        return f"{line.basis} in {line.terms}"
    only = "," not in line.terms and line.terms.startswith("s(")
    return str(line.terms if only else line.basis)


def _hidden(shown: int, all_of_them: int) -> str:
    return "" if shown == all_of_them else f"; the {shown} most telling of {all_of_them}"


def _nothing(ax: Any, text: str) -> Any:
    ax.set_axis_off()
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", color=SOFT, fontsize=TEXT)
    return ax
