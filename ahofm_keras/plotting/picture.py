"""What a user wants to see -> the effect behind it, on a grid that fills the picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.decomposition import Effect, Parts, effect, effects
from ahofm_keras.decomposition.effect_records import check_by
from ahofm_keras.decomposition.grids import Axis, axes_of
from ahofm_keras.decomposition.names import check_count, find_subset
from ahofm_keras.decomposition.parts import NOTHING
from ahofm_keras.decomposition.weight_functions import find_functional
from ahofm_keras.errors import DataError
from ahofm_keras.model import AdditiveModel
from ahofm_keras.model.arguments import check_level
from ahofm_keras.plotting.grids import Grid, choose_grid
from ahofm_keras.plotting.look import Look
from ahofm_keras.plotting.rug import residual_data, rug_data
from ahofm_keras.plotting.texts import link_label, shorten_apart
from ahofm_keras.texts import number, shorten

# Quantiles of a third feature that its slices are taken at, and levels of a category, at most.
SLICES = (0.1, 0.5, 0.9)
_MOST_LEVEL_SLICES = 4
# Letters of a feature's name in a panel.
_SHORT_NAME = 28


@dataclass(frozen=True, eq=False)
class Picture:
    """An effect with all that its drawing needs.

    Args:
        effect: on the grid that is drawn.
        look: of the drawing.
        notes: what the reader of the picture must know.
        slices: what the values of a third feature are, e.g. `10%` for a quantile.
    """

    effect: Effect
    look: Look
    notes: tuple[str, ...] = ()
    slices: tuple[str, ...] = ()


def read_effect(
    source: AdditiveModel | Effect,
    features: tuple[str, ...],
    *,
    at: Mapping[str, Any] | None = None,
    points: int | None = None,
    log: bool | None = None,
    trim: bool = True,
    purify: bool = False,
    data: Any = None,
    level: float = 0.95,
    rug: bool = False,
    residuals: bool = False,
    parameter: str | None = None,
    by: str | None = None,
) -> Picture:
    """The effect of features of a model, or one that was computed before; arguments as `plot_effect`."""
    check_level("level", level)
    if isinstance(source, Effect):
        _check_alone(features if by is None else (by,), rug, residuals)
        if parameter not in (None, source.parameter):
            raise DataError("An effect is that of one parameter: `parameter` goes with a model.")
        of = "" if source.parameter is None else f" of {source.parameter}"
        return Picture(source, Look(f"the link{of}", level=level, spread=_spread_behind(source)))
    check_count("points", points, 2)
    parts = Parts(source, parameter)
    source = parts.model
    if find_functional(parts, features, by) is not None:
        if rug or residuals:
            raise DataError("A rug and residuals are drawn for features of one value per row.")
        found = effect(source, *features, points=points, at=at, purify=purify, by=by)
        return Picture(found, _look_of_curve(parts, found, level))
    if by is not None:
        return _read_by(parts, features, by, at, points, log, trim, purify, data, level, rug, residuals)
    subset = find_subset(parts, features)
    labels = [parts.variables[v].label for v in subset]
    at = {name: _ascending(values) for name, values in (at or {}).items()}
    asides: tuple[str, ...] = ()
    notes: list[str] = []
    axes = axes_of(parts, subset)
    if len(axes) == 3 and axes[2].name not in at and not any(map(_is_one, at.values())):
        at[axes[2].name], asides, notes = default_slices(axes[2])
    grid = choose_grid(parts, subset, at, points, log, trim)
    found = effect(source, *labels, at=grid.at, purify=purify, data=data)
    look = look_of(parts, subset, grid, level)
    if rug:
        look = look.within(rows=rug_data(source, *labels, data=data))
    if residuals:
        if len(axes) > 1:
            raise DataError("Partial residuals are drawn for one feature; `rug=True` shows rows of two.")
        look = look.within(residuals=residual_data(source, labels[0], data, purify))
    return Picture(found, look, (*grid.notes, *notes), asides)


def _read_by(
    parts: Parts,
    features: tuple[str, ...],
    by: str,
    at: Mapping[str, Any] | None,
    points: int | None,
    log: bool | None,
    trim: bool,
    purify: bool,
    data: Any,
    level: float,
    rug: bool,
    residuals: bool,
) -> Picture:
    """Curves per level of a category, or the slope of a number."""
    check_by(by, features, purify)
    if residuals:
        raise DataError("Partial residuals are drawn for one feature, without `by`.")
    subset = find_subset(parts, (*features, by))
    shown = subset if parts.variables[subset[-1]].is_category else subset[:-1]
    at = {name: _ascending(values) for name, values in (at or {}).items()}
    grid = choose_grid(parts, shown, at, points, log, trim)
    labels = [parts.variables[v].label for v in subset]
    found = effect(parts.model, *labels[:-1], at=grid.at, by=labels[-1])
    look = look_of(parts, shown, grid, level)
    if found.slope_of is not None:
        look = look.within(unit=f"{look.unit} per unit of {found.slope_of}", spread=0.0)
    if rug:
        look = look.within(rows=rug_data(parts.model, *found.features, data=data))
    return Picture(found, look, tuple(grid.notes))


def read_networks(parts: Parts, *, level: float = 0.95, **_: Any) -> list[Picture]:
    """Pictures of the networks that are functions of one column, without bands, and of terms of arrays.

    Args:
        parts: of the model.
        level: of the bands of other effects.
    """
    known = {own.label for own in parts.opaque}
    own = [found for found in effects(parts.model, order=1) if found.label in known]
    return [Picture(found, _look_of_curve(parts, found, level)) for found in own]


def _look_of_curve(parts: Parts, found: Effect, level: float) -> Look:
    """How the curve of a term is drawn that is no function of features."""
    unit = link_label(parts.model.family.link, parts.model.quantity)
    if found.slope_of is not None:
        return Look(unit=f"{unit} per unit of {found.slope_of}", level=level, spread=0.0)
    return Look(unit=unit, level=level, spread=float(np.sqrt(parts.total_variance)))


def squeeze(picture: Picture) -> Picture:
    """The picture along the features that take more than one value; a note tells those that do not."""
    found, notes = picture.effect, list(picture.notes)
    for axis in reversed(range(found.order)):
        if len(found.grid[axis]) == 1 and found.order > 1:
            found = _last(found, axis)
            name = shorten(found.features[-1], 24)
            ((value, found),) = slices_of(found)
            notes.append(f"at {name} = {value}")
    if len(found.grid[0]) == 1 and not found.categories[0]:
        raise DataError(f"A picture needs more than one value of `{found.features[0]}`.")
    return replace(picture, effect=found, notes=tuple(notes))


def _last(found: Effect, axis: int) -> Effect:
    """The same effect with one of its features moved to the end."""
    order = [k for k in range(found.order) if k != axis] + [axis]
    return replace(
        found,
        features=tuple(found.features[k] for k in order),
        grid=tuple(found.grid[k] for k in order),
        fit=found.fit.transpose(order),
        se=None if found.se is None else found.se.transpose(order),
        near_data=None if found.near_data is None else found.near_data.transpose(order),
        categories=tuple(found.categories[k] for k in order),
    )


def _ascending(values: Any) -> Any:
    """Numbers in ascending order, as axes need them; anything else as it is."""
    array = np.asarray(values)
    return np.unique(array) if array.dtype.kind in "iuf" else values


def _is_one(values: Any) -> bool:
    return np.ndim(values) == 0 or len(values) == 1


def look_of(parts: Parts, subset: tuple[int, ...], grid: Grid, level: float) -> Look:
    """How the effects of a model are drawn."""
    model = parts.model
    quantiles = [
        (axis.name, axis.margin.quantiles) for axis in axes_of(parts, subset) if not axis.is_category
    ]
    labels = [variable.label for variable in parts.variables]
    return Look(
        short=tuple(zip(labels, shorten_apart(labels, _SHORT_NAME), strict=True)),
        unit=link_label(model.family.link, model.quantity),
        level=level,
        log=frozenset(name for name, stretch in grid.stretches.items() if stretch.log),
        quantiles=tuple(quantiles),
        spread=float(np.sqrt(parts.total_variance)),
    )


def _spread_behind(found: Effect) -> float:
    """About the standard deviation of the link that an effect is a part of, from its share."""
    if not found.share > NOTHING:
        return 0.0
    return float(np.sqrt(np.mean(found.fit**2) / found.share))


def default_slices(axis: Axis) -> tuple[list[Any], tuple[str, ...], list[str]]:
    """Low, middle and high quantile of a number; levels of a category, the most frequent of many.

    Returns:
        Values, what each of them is, and notes.
    """
    margin, own = axis.margin, axis.variable
    if not own.is_category:
        places = {float(margin.quantiles[round(q * (len(margin.quantiles) - 1))]): q for q in SLICES}
        return list(places), tuple(f"{q:.0%}" for q in places.values()), []
    frequent = np.argsort(-margin.frequencies, kind="stable")[:_MOST_LEVEL_SLICES]
    values = [own.levels[k] for k in sorted(frequent)]
    left_out = len(own.levels) - len(values)
    note = [f"the most frequent {len(values)} of {len(own.levels)} levels of {own.label}"]
    return values, ("",) * len(values), note if left_out else []


def slices_of(found: Effect, asides: tuple[str, ...] = ()) -> list[tuple[str, Effect]]:
    """Effects of the first features at each value of the last one, and that value in words."""
    values = found.grid[-1]
    names = shorten_apart([str(value) for value in values], 18)
    slices = []
    for k, value in enumerate(values):
        shown = names[k] if found.categories[-1] else number(float(value))
        aside = f" ({asides[k]})" if k < len(asides) and asides[k] else ""
        own = replace(
            found,
            features=found.features[:-1],
            grid=found.grid[:-1],
            fit=found.fit[..., k],
            se=None if found.se is None else found.se[..., k],
            near_data=None if found.near_data is None else found.near_data[..., k],
            categories=found.categories[:-1],
        )
        slices.append((f"{shown}{aside}", own))
    return slices


def effect_frame(picture: Picture) -> pd.DataFrame:
    """The data behind the picture of an effect."""
    frame = picture.effect.frame(picture.look.level)
    if picture.effect.near_data is not None and picture.effect.order > 1:
        frame["near_data"] = picture.effect.near_data.reshape(-1)
    return frame


def _check_alone(features: tuple[str, ...], rug: bool, residuals: bool) -> None:
    if features:
        raise DataError("An effect knows its features: give either an effect, or a model and features.")
    if rug or residuals:
        raise DataError(
            "An effect knows no rows: for a rug or residuals give the model and the names of features."
        )
