"""Pictures of a `Check`: residuals, quantiles, calibration, bases and concurvity."""

from __future__ import annotations

from typing import Any

import numpy as np

from ahofm_keras.diagnostics import Check
from ahofm_keras.plotting.check_fitted import plot_frequencies, plot_observed
from ahofm_keras.plotting.check_parts import PANEL, check_argument, nothing
from ahofm_keras.plotting.check_rows import plot_pit, plot_quantiles, plot_residuals, plot_spread
from ahofm_keras.plotting.texts import shorten_apart, wrap
from ahofm_keras.plotting.theme import (
    BLUE,
    FAINT,
    GRID,
    INK,
    SMALL,
    SOFT,
    TEXT,
    VERMILLION,
    headline,
    name_axis,
    note,
    one_axes,
    several_axes,
    styled,
    tidy,
)

# Lines of a panel of names, and letters of a name.
_NAMES = 12
_NAME_WIDTH = 16


def plot_check(check: Check, axes: Any = None) -> np.ndarray:
    """A page that shows what speaks against a model.

    Residuals against fitted means, their quantiles and probabilities; their size against fitted means,
    observed against fitted responses, how often each response was observed and expected; the k-index of
    each basis, the concurvity of each term, and the verdicts in words.

    Args:
        check: what `check` returned.
        axes: nine matplotlib axes to draw into, by default those of a new figure.

    Returns:
        The axes, `(3, 3)`.
    """
    check_argument(check)
    panels = (
        plot_residuals, plot_quantiles, plot_pit,
        plot_spread, plot_observed, plot_frequencies,
        plot_bases, plot_concurvity, plot_verdicts,
    )  # fmt: skip
    with styled():
        found = several_axes(axes, (3, 3), PANEL)
        for panel, ax in zip(panels, found.flat, strict=True):
            panel(check, ax)
    return found


def plot_bases(check: Check, ax: Any = None) -> Any:
    """The k-index of each basis; below 1, and marked, where k may be too small.

    Args:
        check: what `check` returned.
        ax: axes to draw into.
    """
    check_argument(check)
    with styled():
        ax = one_axes(ax, PANEL)
        frame = check.basis[check.basis["k_index"].notna()]
        shown = frame.sort_values("p_value", kind="stable").head(_NAMES).sort_index()
        headline(ax, "Is k large enough?")
        if not len(shown):
            return nothing(ax, "no basis of a number")
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
    check_argument(check)
    with styled():
        ax = one_axes(ax, PANEL)
        frame = check.concurvity
        shown = frame.sort_values("observed", ascending=False, kind="stable").head(_NAMES).sort_index()
        headline(ax, "Concurvity")
        if len(frame) < 2:
            return nothing(ax, "one term only")
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
        names = shown["parameter"] + ": " + shown["term"] if "parameter" in shown else shown["term"]
        _names(ax, names.tolist())
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
    check_argument(check)
    with styled():
        ax = one_axes(ax, PANEL)
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


def _names(ax: Any, names: list[str]) -> None:
    """Names along the vertical axis, first on top."""
    tidy(ax, "x")
    ax.set_yticks(np.arange(len(names)), shorten_apart(names, _NAME_WIDTH))
    ax.set_ylim(max(len(names), 3) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def _basis_name(line: Any) -> str:
    return f"{line.parameter}: {_own_name(line)}" if hasattr(line, "parameter") else _own_name(line)


def _own_name(line: Any) -> str:
    if line.terms.startswith(("te(", "ti(")):  # which have bases of their own beside that of an `s()`
        return f"{line.basis} in {line.terms}"
    only = "," not in line.terms and line.terms.startswith("s(")
    return str(line.terms if only else line.basis)


def _hidden(shown: int, all_of_them: int) -> str:
    return "" if shown == all_of_them else f"; the {shown} most telling of {all_of_them}"
