"""Effects of networks of one column, as a neural additive model is made of: curves on a grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ahofm_keras.data import ARRAY, BOOLEAN, TEXT
from ahofm_keras.decomposition.parts import Parts
from ahofm_keras.decomposition.ranking import over

_POINTS = 120


@dataclass(frozen=True, eq=False)
class NetworkCurve:
    """What a network of one column adds, less its mean over the training rows.

    Args:
        label: of the term.
        feature: the column.
        grid: its values, over the training range.
        fit: in units of the link.
        share: of the variance of the link.
        is_category: whether the column is one.
    """

    label: str
    feature: str
    grid: np.ndarray
    fit: np.ndarray
    share: float
    is_category: bool


def network_curves(parts: Parts, points: int | None = None) -> list[NetworkCurve]:
    """Those of all networks that are a function of one column alone, in the formula's order.

    Args:
        parts: of the model.
        points: along the axis of a number.
    """
    model, known = parts.model, {own.name: own for own in parts.opaque}
    spans = model.design.layout.only.spans
    found = []
    for term in model.design.only.terms:
        axis = term.axis
        # What was taken out of it may depend on other columns: a surface of this one and another.
        taken = [s.term for s in spans if term.takes_out(s, model.design.features)]
        own = term.raw_columns(model.design.features)
        if axis is None or any(not t.raw_columns(model.design.features) <= own for t in taken):
            continue
        (name,) = own
        grid = _grid(axis, points or _POINTS)
        columns = {column: _blank(model, column, len(grid)) for column in model.design.columns}
        columns[name] = grid
        fit = _contributions(model, columns, term.label) - known[term.name].mean
        share = float(over(known[term.name].variance, parts.total_variance))
        found.append(NetworkCurve(term.label, name, grid, fit, share, bool(axis.levels)))
    return found


def _grid(axis: Any, points: int) -> np.ndarray:
    if not axis.levels:
        return np.linspace(axis.low, axis.high, points)
    return np.array(axis.levels, object if isinstance(axis.levels[0], str) else None)


def _blank(model: Any, column: str, rows: int) -> np.ndarray:
    """A column that the term does not depend on."""
    kind = model.design.columns[column]
    if kind == ARRAY:
        return np.zeros((rows, *model.design.shapes[column]), np.float32)
    if kind == TEXT:
        return np.full(rows, "", object)
    return np.zeros(rows, bool if kind == BOOLEAN else float)


def _contributions(model: Any, columns: dict[str, np.ndarray], label: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        rows = model._reader.encode(columns)
    found: np.ndarray = model._outputs.run("terms", [rows], model.of_parameter)[label]
    return found
