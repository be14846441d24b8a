"""Raw columns of a model -> what can be set in the page: sliders over numbers, lists of levels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import brentq

from ahofm_keras.decomposition.parts import Parts
from ahofm_keras.reporting.encoding import pack
from ahofm_keras.terms import Margin, Variable
from ahofm_keras.terms.margins import QUANTILES
from ahofm_keras.transforms import Expression, evaluate_expression

# Where the range of a column is searched for that is only known through a function of it.
_MAGNITUDES = np.geomspace(1e-9, 1e12, 2101)
_SEARCHED = np.concatenate([-_MAGNITUDES[::-1], [0.0], _MAGNITUDES])
# Share of whole numbers among the quantiles of whole numbers; elsewhere there are hardly any.
_WHOLE = 0.3
# Functions that take a value more often than this have no range of their argument.
_MOST_CROSSINGS = 4


def describe_inputs(parts: Parts, columns: Mapping[str, np.ndarray] | None) -> list[dict[str, Any]]:
    """One entry a raw column, in the order of the model's variables.

    A category has `levels` and `start`, the most frequent one's index. A number has `quantiles` of the
    training data and starts at the median; where nothing is known of its range they are None.

    Args:
        parts: of the model.
        columns: raw columns of some rows, for what the margins do not tell; or None.
    """
    return [_input(parts, name, columns) for name in input_names(parts)]


def levels_of(parts: Parts, name: str) -> tuple[Any, ...]:
    """Levels of a raw column, empty where it is a number in all terms."""
    for variable in parts.variables:
        if variable.is_category and list(variable.expression.columns()) == [name]:
            return variable.levels
    return ()


def input_names(parts: Parts) -> list[str]:
    """Raw columns in the order of the model's variables, those of offsets last.

    Not those that networks alone take: a page cannot compute these.
    """
    used = [name for variable in parts.variables for name in variable.expression.columns()]
    predictors = parts.model.whole().design.predictors.values()
    offsets = [own for predictor in predictors for own in predictor.offsets.values()]
    rest = {name for own in offsets for name in own.columns()}
    return list(dict.fromkeys([*used, *(name for name in parts.model.design.columns if name in rest)]))


def _input(parts: Parts, name: str, columns: Mapping[str, np.ndarray] | None) -> dict[str, Any]:
    users = [
        (variable, margin)
        for variable, margin in zip(parts.variables, parts.margins.single, strict=True)
        if name in variable.expression.columns()
    ]
    entry: dict[str, Any] = {"name": name, "only_offset": not users}
    for variable, margin in users:
        if variable.is_category:
            most_frequent = int(np.argmax(margin.frequencies))
            return {**entry, "levels": list(variable.levels), "start": most_frequent}
    quantiles = _quantiles(name, users, columns)
    if quantiles is None:
        return {**entry, "quantiles": None, "start": _neutral(parts, name), "whole": False}
    whole = _is_whole(quantiles)
    median = float(quantiles[len(quantiles) // 2])
    start = float(np.round(median)) if whole else median
    return {**entry, "quantiles": pack(quantiles), "start": start, "whole": whole}


def _quantiles(
    name: str, users: list[tuple[Variable, Margin]], columns: Mapping[str, np.ndarray] | None
) -> np.ndarray | None:
    """Quantiles of a column: its own, else those of rows, else the range that a function of it had."""
    for variable, margin in users:
        for coordinate, axis in zip(variable.expression.coordinates, margin.axes, strict=True):
            if coordinate.is_column and coordinate.arguments[0] == name:
                return axis.quantiles
    if columns is not None:
        return np.quantile(columns[name], np.linspace(0, 1, QUANTILES))
    for variable, margin in users:
        for coordinate, axis in zip(variable.expression.coordinates, margin.axes, strict=True):
            if list(coordinate.columns()) != [name]:
                continue
            ends = _solve_range(coordinate, name, axis)
            if ends is not None:
                return np.linspace(*ends, QUANTILES)
    return None


def _is_whole(quantiles: np.ndarray) -> bool:
    """Whether these are quantiles of whole numbers; some may lie between two of them."""
    values = np.unique(quantiles)
    return float(np.mean(values == np.round(values))) > _WHOLE


def _solve_range(expression: Expression, name: str, margin: Margin) -> tuple[float, float] | None:
    """Smallest and largest value of a column at which a function of it had its training range."""
    found: list[float] = []
    for end in (margin.low, margin.high):

        def excess(x: float, end: float = end) -> float:
            return float(_evaluate(expression, {name: np.array([x])})[0]) - end

        values = _evaluate(expression, {name: _SEARCHED}) - end
        finite = np.isfinite(values[:-1]) & np.isfinite(values[1:])
        crossings = np.flatnonzero(finite & (values[:-1] * values[1:] <= 0))
        if len(crossings) > _MOST_CROSSINGS:
            return None
        found += [float(brentq(excess, _SEARCHED[i], _SEARCHED[i + 1])) for i in crossings]
    return (min(found), max(found)) if found and min(found) < max(found) else None


def _neutral(parts: Parts, name: str) -> float:
    """A value of a column of unknown range: 0 or 1, whichever makes the offset smaller."""
    sizes = []
    for value in (0.0, 1.0):
        columns = {other: np.array([value]) for other in parts.model.design.columns}
        offsets = [
            float(np.sum(_evaluate(offset, columns)))
            for predictor in parts.model.whole().design.predictors.values()
            for offset in predictor.offsets.values()
            if name in offset.columns()
        ]
        size = abs(sum(offsets)) if offsets else 1.0 - value
        sizes.append(size if np.isfinite(size) else np.inf)
    return float(np.argmin(sizes))


def _evaluate(expression: Expression, columns: Mapping[str, np.ndarray]) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(evaluate_expression(expression, columns), float)
