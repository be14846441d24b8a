"""The grid of marginals: the last of the paper's three views."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import qmc

from ahofm_keras.decomposition import Parts
from ahofm_keras.decomposition.names import check_count, check_order, find_subset
from ahofm_keras.decomposition.parts import NOTHING
from ahofm_keras.decomposition.ranking import over
from ahofm_keras.errors import DataError
from ahofm_keras.model import AdditiveModel
from ahofm_keras.plotting.grids import choose_stretch, levels_of
from ahofm_keras.plotting.look import Look
from ahofm_keras.plotting.texts import link_label, share_text, shorten_apart, wrap
from ahofm_keras.plotting.theme import (
    BLUE,
    FAINT,
    INK,
    LINE,
    SMALL,
    SOFT,
    TEXT,
    TITLE,
    log_axis,
    name_places,
    several_axes,
    styled,
    tidy,
)
from ahofm_keras.terms import Margin, Variable
from ahofm_keras.texts import shorten

_POINTS = 45
# Values of the other features, spread evenly over the product of their margins.
_DRAWS = 512
_PANEL = (1.75, 1.45)
# Inches that the names of subsets take.
_NAMES = 1.7
_MOST_COLUMNS = 8
_QUANTILES = {"low": 0.05, "quarter": 0.25, "three_quarters": 0.75, "high": 0.95}


def plot_marginals(
    model: AdditiveModel,
    order: int = 3,
    top: int = 5,
    subsets: Iterable[Sequence[str] | str] | None = None,
    lower: bool = False,
    axes: Any = None,
    parameter: str | None = None,
) -> np.ndarray:
    """Draw marginals of the strongest interactions: one row per subset, one column per feature.

    In each panel the line is the mean of the subset's effect along one feature, over the product of the
    other features' training margins; grey vertical lines reach from the 5% to the 95% quantile over
    them, darker ones hold the middle half. Features that are not in a subset stay flat.

    An effect of a subset alone has mean 0 along each feature: what smaller subsets explain is in theirs.
    So the spread is what counts. With `lower=True` the effects of all smaller subsets that hold the
    feature are added: the line is then its main effect, the spread how the others in the subset change
    it.

    Args:
        model: fitted.
        order: number of features in a subset.
        top: how many subsets, the strongest first.
        subsets: these instead, e.g. `["x1:x2:x3"]`.
        lower: add the effects of smaller subsets.
        axes: as many axes as there are panels.
        parameter: of the family whose predictor is read, by default the first; only models with several
            predictors have a choice.

    Returns:
        The axes, `(subsets, features)`.

    Raises:
        DataError: an order that the model does not have, or unknown features.

    The data behind the picture is `marginal_data(...)` with the same arguments.
    """
    frame = marginal_data(model, order, top, subsets, lower, parameter)
    rows = list(dict.fromkeys(frame["subset"]))
    columns = list(dict.fromkeys(frame["feature"]))
    with styled():
        found = several_axes(
            axes,
            (len(rows), len(columns)),
            _PANEL,
            least=(_NAMES + _PANEL[0] * len(columns), 2.4),
            sharey="row",
            sharex="col",
        )
        panels = dict(iter(frame.groupby(["subset", "feature"], sort=False)))
        for i, subset in enumerate(rows):
            for j, feature in enumerate(columns):
                _draw(
                    found[i, j],
                    panels[subset, feature],
                    feature in frame.attrs["categories"],
                    feature in frame.attrs["log"],
                )
            _scale_row(found[i], frame[frame["subset"] == subset], frame.attrs["least"])
            _name_row(found[i, 0], frame.attrs["names"][subset], frame.attrs["shares"][subset])
        for j, feature in enumerate(columns):
            found[0, j].set_title(wrap(feature, 16, 2), loc="center", fontsize=TEXT, color=INK)
        for ax in found[:-1].reshape(-1):
            ax.tick_params(labelbottom=False)
        for ax in found[:, 1:].reshape(-1):
            ax.tick_params(labelleft=False)
        if axes is None:
            _finish(found, frame, lower)
    return found


def marginal_data(
    model: AdditiveModel,
    order: int = 3,
    top: int = 5,
    subsets: Iterable[Sequence[str] | str] | None = None,
    lower: bool = False,
    parameter: str | None = None,
) -> pd.DataFrame:
    """The data behind `plot_marginals`.

    Returns:
        One row per point of each panel: `subset`, `feature`, `value`, `mean`, and the quantiles over the
        other features `low` (5%), `quarter`, `three_quarters`, `high` (95%). `attrs` has the `shares` of
        the subsets.
    """
    parts = Parts(model, parameter)
    model = parts.model
    chosen = _chosen(parts, order, top, subsets)
    used = sorted({v for subset in chosen for v in subset})
    everything = list(range(len(parts.variables)))
    in_products = [v for v in everything if any(v in g.members for g in parts.groups if g.order > 1)]
    columns = in_products if len(in_products) <= _MOST_COLUMNS else used
    columns = [v for v in columns if not parts.variables[v].is_point]  # a point has no line to go along
    if not columns:
        raise DataError("Marginals go along single features; the model's interactions have none.")
    axes = {v: _axis(parts.variables[v], parts.margins.single[v]) for v in columns}
    frames = []
    for subset in chosen:
        for v in columns:
            panel = _marginal(parts, subset, v, axes[v], lower)
            panel.insert(0, "subset", parts.label(subset))
            panel.insert(1, "feature", parts.variables[v].label)
            frames.append(panel)
    frame = pd.concat(frames, ignore_index=True)
    total = parts.total_variance
    frame.attrs |= {
        "shares": {parts.label(s): float(over(parts.variance(s), total)) for s in chosen},
        "names": {parts.label(s): [parts.variables[v].label for v in s] for s in chosen},
        "least": Look(spread=float(np.sqrt(total))).least,
        "unit": link_label(model.family.link, model.quantity),
        "categories": {parts.variables[v].label for v in columns if parts.variables[v].is_category},
        "log": {
            parts.variables[v].label
            for v in columns
            if not parts.variables[v].is_category and choose_stretch(parts.margins.single[v]).log
        },
    }
    return frame


def _chosen(
    parts: Parts, order: int, top: int, subsets: Iterable[Sequence[str] | str] | None
) -> list[tuple[int, ...]]:
    """The subsets asked for, or the strongest of an order."""
    if subsets is not None:
        names = [(given,) if isinstance(given, str) else tuple(given) for given in subsets]
        found = [find_subset(parts, own) for own in names]
        if not found:
            raise DataError("`subsets` is empty: name at least one, e.g. `x1:x2:x3`.")
        return found
    check_order(parts, order)
    if order < 2:
        raise DataError("Marginals are those of interactions: `order` is 2 or more.")
    check_count("top", top, 1, none=False)
    everything = parts.subsets(order)
    variances = parts.variances(everything)
    best = np.argsort(-variances, kind="stable")[:top]
    strong = best[variances[best] > NOTHING * parts.total_variance]
    if not len(strong):
        raise DataError(f"All interactions of order {order} are 0: the fit switched them off.")
    return [tuple(map(int, everything[k])) for k in strong]


def _axis(variable: Variable, margin: Margin) -> np.ndarray:
    if variable.is_category:
        return levels_of(variable)
    return choose_stretch(margin).points(_POINTS)


def _marginal(
    parts: Parts, subset: tuple[int, ...], variable: int, values: np.ndarray, lower: bool
) -> pd.DataFrame:
    """Mean and quantiles of a subset's effect along a variable, over the others' margins."""
    frame = pd.DataFrame({"value": values.astype(object)})
    frame["mean"] = 0.0
    for name in _QUANTILES:
        frame[name] = 0.0
    if variable not in subset:
        return frame
    others = [v for v in subset if v != variable]
    drawn = dict(zip(others, _draw_margins(parts, others), strict=True))
    along = parts.variables[variable].functions(values)
    functions = {v: np.tile(own, (1, len(values))) for v, own in drawn.items()}
    functions[variable] = np.repeat(along, _DRAWS, axis=1)
    total = np.zeros(len(values) * _DRAWS)
    smaller = range(len(others)) if lower else ()
    for part in [
        subset,
        *(tuple(sorted((variable, *w))) for k in smaller for w in combinations(others, k)),
    ]:
        total += parts.evaluate(part, [functions[v] for v in part])
    # Parts of two or more features have mean 0 along each, exactly.
    if lower:
        frame["mean"] = parts.evaluate((variable,), [along])
    table = total.reshape(len(values), _DRAWS)
    for name, probability in _QUANTILES.items():
        frame[name] = np.quantile(table, probability, axis=1)
    return frame


def _draw_margins(parts: Parts, variables: list[int]) -> list[np.ndarray]:
    """Functions of variables at values spread over the product of their margins, `(m, draws)` each."""
    places = qmc.Halton(len(variables), scramble=False).random(_DRAWS + 1)[1:]
    found = []
    for v, place in zip(variables, places.T, strict=True):
        variable, margin = parts.variables[v], parts.margins.single[v]
        if variable.is_category:
            upto = np.cumsum(margin.frequencies)
            level = np.minimum(np.searchsorted(upto, place, side="right"), len(upto) - 1)
            values = levels_of(variable)[level]
        elif variable.is_point:
            points = variable.typical_points
            values = points[np.minimum((place * len(points)).astype(int), len(points) - 1)]
        else:
            values = np.interp(place, np.linspace(0, 1, len(margin.quantiles)), margin.quantiles)
        found.append(variable.functions(values))
    return found


def _draw(ax: Any, frame: pd.DataFrame, is_category: bool, log: bool) -> None:
    tidy(ax)
    x = np.arange(len(frame)) if is_category else frame["value"].to_numpy(float)
    width = 2.4 if is_category else 1.6
    ax.vlines(x, frame["low"], frame["high"], color=FAINT, linewidth=width, zorder=2, alpha=0.8)
    ax.vlines(
        x, frame["quarter"], frame["three_quarters"], color=SOFT, linewidth=width, zorder=2.5, alpha=0.7
    )
    ax.plot(
        x, frame["mean"], color=BLUE, linewidth=LINE - 0.2, zorder=3,
        marker="o" if is_category else None, markersize=3.5, linestyle="none" if is_category else "-",
    )  # fmt: skip
    if is_category:
        name_places(ax, shorten_apart([str(level) for level in frame["value"]], 14), SMALL)
        ax.set_xlim(-0.6, len(frame) - 0.4)
    else:
        if log:
            log_axis(ax, "x")
        ax.set_xlim(x.min(), x.max())
        if not log:
            ax.xaxis.get_major_locator().set_params(nbins=3)
    ax.tick_params(labelsize=SMALL)


def _scale_row(row: np.ndarray, frame: pd.DataFrame, least: float) -> None:
    """One scale for the panels of a subset; one that is next to nothing looks small."""
    low = min(frame[["low", "mean"]].min().min(), -least)
    high = max(frame[["high", "mean"]].max().max(), least)
    room = 0.08 * ((high - low) or 1.0)
    for ax in row:
        ax.set_ylim(low - room, high + room)
        ax.yaxis.get_major_locator().set_params(nbins=4)


def _name_row(ax: Any, names: Sequence[str], share: float) -> None:
    names = [shorten(name, 22) for name in names]
    label = " : ".join(names) if len(" : ".join(names)) <= 24 else " :\n".join(names)
    text = f"{label}\n{share_text(share, words=False)}"
    ax.set_ylabel(text, fontsize=TEXT - 1, rotation=0, ha="right", va="center")


def _finish(found: np.ndarray, frame: pd.DataFrame, lower: bool) -> None:
    """Title of the figure and what its lines mean."""
    figure = found[0, 0].figure
    with_lower = ", smaller subsets added" if lower else ""
    figure.suptitle(
        f"Interactions along each feature (effect on {frame.attrs['unit']}{with_lower})",
        fontsize=TITLE, color=INK, x=0.01, ha="left",
    )  # fmt: skip
    figure.supxlabel(
        "blue: mean over the other features; grey: their middle 50% and 90%", fontsize=SMALL, color=SOFT
    )
