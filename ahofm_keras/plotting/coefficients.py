"""Coefficients of design columns side by side: linear terms, ridge, lasso."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from ahofm_keras.decomposition.names import check_count, name_parameter
from ahofm_keras.decomposition.parts import readable
from ahofm_keras.errors import DataError
from ahofm_keras.model import AdditiveModel
from ahofm_keras.plotting.texts import link_label, shorten_apart
from ahofm_keras.plotting.theme import (
    LINE,
    SERIES,
    SOFT,
    TEXT,
    headline,
    name_axis,
    note,
    one_axes,
    styled,
    tidy,
)
from ahofm_keras.summaries.coefficients import coef, vcov

_LETTERS = 42
_WIDTH, _ROW, _REST = 5.2, 0.165, 1.2
# A picture of fewer is as high as one of so many.
_LEAST_ROWS = 5


def plot_coefficients(
    model: AdditiveModel,
    term: str | None = None,
    ax: Any = None,
    *,
    level: float = 0.95,
    scaled: bool = True,
    most: int = 60,
    parameter: str | None = None,
) -> Any:
    """Draw the coefficients of linear, ridge and lasso terms with their intervals, the largest first.

    Args:
        model: fitted.
        term: label of one term; by default all that have design columns.
        ax: to draw on; by default a figure that is as high as its rows need.
        level: of the intervals.
        scaled: whether a coefficient is shown per standard deviation of its column, so that those of
            columns in different units can be compared.
        most: coefficients that are shown, at most; those that are 0 are counted below.
        parameter: of the family whose predictor is read, by default the first; only models with several
            predictors have a choice.

    Returns:
        The axes.

    Raises:
        DataError: a model, or a term, without design columns.
        NotFittedError: a model that was never fitted.

    The data behind the picture is `coefficient_data(...)` with the same arguments.
    """
    check_count("most", most, 1)
    frame = coefficient_data(model, term, level=level, scaled=scaled, parameter=parameter)
    predictor = readable(model, parameter)
    unit = link_label(predictor.family.link, predictor.quantity)
    shown = frame[frame["estimate"] != 0].head(most)
    shown = shown if len(shown) else frame.head(1)
    nonzero = int(np.count_nonzero(frame["estimate"]))
    with styled():
        height = _REST + _ROW * max(len(shown), _LEAST_ROWS)
        ax = one_axes(ax, (_WIDTH, height))
        _draw(ax, shown)
        name_axis(ax, "x", f"effect of {'one standard deviation' if scaled else 'one unit'} on {unit}")
        headline(ax, term or "Coefficients")
        note(ax, _left_out(len(frame) - nonzero, nonzero, len(shown)))
    return ax


def coefficient_data(
    model: AdditiveModel,
    term: str | None = None,
    *,
    level: float = 0.95,
    scaled: bool = True,
    parameter: str | None = None,
) -> pd.DataFrame:
    """The data behind `plot_coefficients`: a row per coefficient, the largest first.

    Args:
        model, term, level, scaled, parameter: of `plot_coefficients`.

    Returns:
        A frame with the columns `term`, `coefficient`, `estimate` and, where the model has a posterior,
        `se`, `lower` and `upper`.
    """
    if not 0 < level < 1:
        raise DataError(f"`level` must lie between 0 and 1. Received: {level!r}.")
    predictor = readable(model, parameter)
    own = [span for span in predictor.design.layout.only.spans if span.term.parametric is not None]
    known = [span.term.label for span in own]
    if term is not None:
        own = [span for span in own if span.term.label == term]
    if not own:
        listed = ", ".join(f"`{label}`" for label in known) or "none"
        what = "no design columns" if term is None else f"no design columns of a term `{term}`"
        raise DataError(f"The model has {what}. Terms that have some: {listed}.")
    parts = [_frame(model, span, level, scaled, parameter) for span in own]
    frame = pd.concat(parts, ignore_index=True)
    order = np.argsort(-frame["estimate"].abs().to_numpy(), kind="stable")
    return name_parameter(frame.iloc[order].reset_index(drop=True), predictor.of_parameter)


def _frame(
    model: AdditiveModel, span: Any, level: float, scaled: bool, parameter: str | None
) -> pd.DataFrame:
    """The coefficients of one term."""
    label, scale = span.term.label, np.asarray(span.term.parametric.scale) if scaled else 1.0
    values = coef(model, label, parameter=parameter)
    names = [str(name).removeprefix(f"{label}.") for name in values.index]
    frame = pd.DataFrame({"term": label, "coefficient": names, "estimate": values.to_numpy() * scale})
    if readable(model, parameter).has_posterior:
        variances = np.diag(vcov(model, label, parameter=parameter))
        frame["se"] = np.sqrt(np.maximum(variances, 0.0)) * scale
        reach = stats.norm.ppf((1 + level) / 2) * frame["se"]
        frame["lower"], frame["upper"] = frame["estimate"] - reach, frame["estimate"] + reach
    return frame


def _draw(ax: Any, frame: pd.DataFrame) -> None:
    """A row per coefficient, the first on top."""
    tidy(ax, "x")
    ax.axvline(0, color=SOFT, linewidth=0.7, zorder=1)
    places = np.arange(len(frame))[::-1]
    terms = list(dict.fromkeys(frame["term"]))
    for term, colour in zip(terms, SERIES * (1 + len(terms) // len(SERIES)), strict=False):
        own = (frame["term"] == term).to_numpy()
        if "lower" in frame:
            ends = frame["lower"][own], frame["upper"][own]
            ax.hlines(places[own], *ends, color=colour, linewidth=LINE, alpha=0.45, zorder=2)
        label = shorten_apart(terms, 30)[terms.index(term)]
        ax.plot(
            frame["estimate"][own], places[own], "o", color=colour, markersize=4, zorder=3, label=label
        )
    names = shorten_apart(list(frame["coefficient"]), _LETTERS)
    ax.set_yticks(places, names, fontsize=TEXT - 1.5, parse_math=False)
    ax.yaxis.set_tick_params(length=0)
    ax.set_ylim(-0.7, len(frame) - 0.3)
    if len(terms) > 1:
        ax.legend(loc="best", fontsize=TEXT - 1.5, frameon=False)


def _left_out(zeros: int, others: int, shown: int) -> str:
    """What the picture does not show, in words."""
    said = [f"{others - shown} smaller ones are not shown"] if others > shown else []
    said += [f"{zeros} more {'is' if zeros == 1 else 'are'} 0"] if zeros else []
    return ", ".join(said)
