"""The factors phi_jf of a feature: the first of the paper's three views."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pandas as pd

from ahofm_keras.decomposition import Parts
from ahofm_keras.decomposition.names import check_order, find_subset
from ahofm_keras.errors import DataError
from ahofm_keras.model import AdditiveModel
from ahofm_keras.moments import elementary_symmetric
from ahofm_keras.plotting.grids import choose_grid, levels_of
from ahofm_keras.plotting.texts import shorten_apart
from ahofm_keras.plotting.theme import (
    DASHES,
    FAINT,
    LINE,
    SERIES,
    SOFT,
    TEXT,
    headline,
    log_axis,
    name_axis,
    name_places,
    note,
    several_axes,
    styled,
    tidy,
)
from ahofm_keras.terms import Group
from ahofm_keras.terms.groups import FACTORS

_PANEL = (4.2, 3.2)
_MOST_LINES = 6
_LEVEL_LETTERS = 18


def plot_factors(
    model: AdditiveModel,
    feature: str,
    order: int | None = None,
    axes: Any = None,
    parameter: str | None = None,
) -> np.ndarray:
    """Draw the factors of a feature: one panel per order of each interaction term, one line per factor.

    The effect of a subset is the sum over f of the products of its features' factors, so signs and sizes
    of single factors have no meaning of their own: a factor may be doubled in one feature and halved in
    another. Strong factors come first and in colour; those that the fit switched off are counted only.

    Args:
        model: fitted.
        feature: name.
        order: only factors of this order.
        axes: as many axes as there are panels.
        parameter: of the family whose predictor is read, by default the first; only models with several
            predictors have a choice.

    Returns:
        The axes.

    Raises:
        DataError: an unknown feature, or one that is in no interaction term.

    The data behind the picture is `factor_data(model, feature, order)`.
    """
    frame = factor_data(model, feature, order, parameter)
    panels = list(frame.groupby(["term", "order"], sort=False))
    several_terms = frame["term"].nunique() > 1
    with styled():
        found: np.ndarray = several_axes(axes, (1, len(panels)), _PANEL)[0]
        for ax, (key, own) in zip(found, panels, strict=True):
            term, size = cast("tuple[str, int]", key)
            _draw(ax, own, frame.attrs["category"], frame.attrs["log"])
            headline(ax, f"{term}, order {size}" if several_terms else f"order {size}")
            name_axis(ax, "x", frame.attrs["feature"])
            note(ax, _switched_off(frame, (term, size), last=ax is found[-1]))
        name_axis(found[0], "y", "factor")
    return found


def factor_data(
    model: AdditiveModel, feature: str, order: int | None = None, parameter: str | None = None
) -> pd.DataFrame:
    """The data behind `plot_factors`.

    Returns:
        One row per point of each factor: `term`, `order`, `factor` (from 1 on, the strongest first,
        the same for all features), `value` of the feature, `phi`, and `strength`: the standard
        deviation, in units of the link, of the sum of all products of the factor, centred,
        under the product of the training margins. `attrs` has `switched_off`: how many factors
        of the feature are 0, by term and order.
    """
    parts = Parts(model, parameter)
    variable = _one(parts, feature)
    if order is not None:
        check_order(parts, order)
    own = parts.variables[variable]
    grid = choose_grid(parts, (variable,))
    values = levels_of(own) if own.is_category else grid.at[own.label]
    functions = own.functions(values)
    frames, off = [], {}
    for label, slots, group in _groups(parts, variable, order):
        strength = factor_strengths(parts, group)
        phi = group.weight_of(variable).T @ functions
        ranked = np.argsort(-strength, kind="stable")
        kept = [(place, f) for place, f in enumerate(ranked, start=1) if np.abs(phi[f]).max() > 0]
        off[label, group.order] = slots - len(kept)
        for place, f in kept:
            points = {"factor": place, "value": values, "phi": phi[f], "strength": strength[f]}
            frames.append(pd.DataFrame({"term": label, "order": group.order, **points}))
    if not frames:
        of_order = "" if order is None else f" of order {order}"
        why = "the fit switched its factors off" if off else f"it is in no `ahofm()`{of_order}"
        raise DataError(f"`{feature}` has no factors{of_order}: {why}.")
    frame = pd.concat(frames, ignore_index=True)
    frame.attrs |= {
        "feature": own.label,
        "switched_off": off,
        "category": own.is_category,
        "log": any(stretch.log for stretch in grid.stretches.values()),
    }
    return frame


def _switched_off(frame: pd.DataFrame, shown: tuple[str, int], last: bool) -> str:
    """What the fit switched off, in words: of a panel, and below the last one of orders without any."""
    counts = frame.attrs["switched_off"]
    texts = [f"{counts[shown]} more switched off by the fit"] if counts.get(shown) else []
    drawn = set(zip(frame["term"], frame["order"], strict=True))
    gone = [f"order {key[1]}" for key, count in counts.items() if count and key not in drawn]
    if last and gone:
        texts.append(f"all factors of {', '.join(gone)} were switched off by the fit")
    return "; ".join(texts)


def _groups(parts: Parts, variable: int, order: int | None) -> Iterator[tuple[str, int, Group]]:
    """Orders of interaction terms that a variable is in: the term, its room for factors, the group."""
    labels = {term.name: term.label for term in parts.model.design.only.terms}
    layout = parts.model.design.layout.only
    for group in parts.groups:
        if group.kind == FACTORS and variable in group.members and order in (None, group.order):
            own = layout.orders[layout.order_index[group.source]]
            # Of a rank that the data chose nothing was switched off that was asked for.
            slots = len(group.scale) if own.automatic else own.rank * parts.model.starts
            yield labels[group.source[0]], slots, group


def factor_strengths(parts: Parts, group: Group) -> np.ndarray:
    """Standard deviations of the sums of all centred products of each factor, `(F,)`."""
    if not len(group.scale):
        return np.zeros(0)
    variances = np.stack([parts.factor_covariance(group, v).diagonal() for v in group.members])
    products = elementary_symmetric(variances, group.order)
    return np.sqrt(np.maximum(products, 0.0)) * np.abs(group.scale)


def _draw(ax: Any, frame: pd.DataFrame, is_category: bool, log: bool) -> None:
    tidy(ax)
    ax.axhline(0, color=SOFT, linewidth=0.7, zorder=1)
    factors = sorted(set(frame["factor"].tolist()))
    lines: list[Any] = []
    for factor in reversed(factors):
        own, place = frame[frame["factor"] == factor], factor - 1
        x = np.arange(len(own)) if is_category else own["value"].to_numpy(float)
        look: dict[str, Any] = {"color": FAINT, "linewidth": 0.8}
        if place < _MOST_LINES:
            look = {"color": SERIES[place], "linestyle": DASHES[place], "linewidth": LINE - 0.2}
        (line,) = ax.plot(x, own["phi"], marker="o" if is_category else None, markersize=4, **look)
        lines.insert(0, line)
    if is_category:
        _name_levels(ax, frame["value"][frame["factor"] == factors[0]].tolist())
    else:
        if log:
            log_axis(ax, "x")
        ax.set_xlim(frame["value"].min(), frame["value"].max())
    strong = [factor for factor in factors if factor <= _MOST_LINES]
    weak = len(factors) - len(strong)
    ax.legend(
        lines[: len(strong)], strong, loc="upper left", bbox_to_anchor=(1.0, 1.02),
        title="factor" if weak <= 0 else f"factor\n({weak} weaker\nin grey)", alignment="left",
        fontsize=TEXT - 1, title_fontsize=TEXT - 1, handlelength=1.8, borderaxespad=0.2,
        labelspacing=0.3, frameon=False,
    )  # fmt: skip


def _name_levels(ax: Any, levels: list[Any]) -> None:
    names = shorten_apart([str(level) for level in levels], _LEVEL_LETTERS)
    name_places(ax, names, TEXT - 1)


def _one(parts: Parts, feature: str) -> int:
    found = find_subset(parts, (feature,))
    if len(found) != 1:
        raise DataError(f"Factors are those of one feature. Received: `{feature}`.")
    return found[0]
