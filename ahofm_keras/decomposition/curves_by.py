"""Curves by another variable: one per level of a category, or the coefficient of a number.

The functional ANOVA takes `s(x, by=g)` apart into a main effect of x, the mean of the curves, and an
interaction; `s(x, by=z)` has a part of z, one of x and one of both. What the terms mean to their users
are sums of these parts: the curve at each level, and the slope of z as a function of x.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ahofm_keras.decomposition.parts import Parts
from ahofm_keras.decomposition.uncertainty import Uncertainty
from ahofm_keras.errors import DataError
from ahofm_keras.terms.groups import FACTORS, Subset

# A grid's values of the parts of a subset, its last axis the by-variable.
Values = tuple[np.ndarray, np.ndarray | None]


def curve_values(parts: Parts, subset: Subset, by: int, grid: Sequence[np.ndarray]) -> Values:
    """The part of a subset at each level of a category: its own, and that of both together.

    Args:
        parts: of a model.
        subset: of variables.
        by: the category.
        grid: values of each variable of the subset and, last, levels.

    Returns:
        Values and, where they are known, standard errors on the grid.
    """
    return _sum_of(parts, [subset, (*subset, by)], grid, lambda values: values)


def slope_values(parts: Parts, subset: Subset, by: int, grid: Sequence[np.ndarray]) -> Values:
    """The slope of a number as a function of a subset: how much one unit more of it adds.

    Args:
        parts: of a model.
        subset: of variables.
        by: the number, which must be linear in the model.
        grid: values of each variable of the subset.

    Raises:
        DataError: a number that is not linear.
    """
    variable, margin = parts.variables[by], parts.margins.single[by]
    bent = [feature for feature in variable.features if feature.basis.kind != "linear"]
    if bent or any(len(product) > 1 or product[0][1] > 0 for product in variable.products):
        names = ", ".join(f'"{parts.variables[v].label}"' for v in (*subset, by))
        raise DataError(
            f"`{variable.label}` is not linear in the model, so that it has no one slope: "
            f"`effect(model, {names})` is the surface."
        )
    ends = np.array([margin.low, margin.high])
    width = ends[1] - ends[0]

    def difference(values: np.ndarray) -> np.ndarray:
        return np.asarray((values[..., 1] - values[..., 0]) / width)

    return _sum_of(parts, [(by,), (*subset, by)], [*grid, ends], difference)


def _sum_of(
    parts: Parts,
    subsets: Sequence[Subset],
    grid: Sequence[np.ndarray],
    read: Callable[[np.ndarray], np.ndarray],
) -> Values:
    """The sum of the parts of some subsets of the last one, which has the grid, as it is read."""
    whole = subsets[-1]
    functions = {v: parts.variables[v].functions(values) for v, values in zip(whole, grid, strict=True)}
    shape = tuple(map(len, grid))
    fit = np.zeros(shape)
    places, rows = [np.zeros(0, int)], [np.zeros((0, read(fit).size))]
    uncertainty = Uncertainty(parts) if parts.model.has_posterior else None
    for subset in subsets:
        own = [functions[variable] for variable in subset]
        fit = fit + _on_grid(parts.evaluate_grid(subset, own), subset, whole, shape)
        if uncertainty is not None:
            found, values = uncertainty.linear_rows(subset, own)
            inner = values.reshape(-1, *(shape[whole.index(v)] for v in subset))
            places.append(found)
            rows += [read(_on_grid(one, subset, whole, shape)).reshape(1, -1) for one in inner]
    if uncertainty is None or _has_factors(parts, subsets):
        return read(fit), None
    variance = uncertainty.variance_of_rows(np.concatenate(places), np.concatenate(rows))
    return read(fit), np.sqrt(np.maximum(variance, 0.0)).reshape(read(fit).shape)


def _on_grid(values: np.ndarray, subset: Subset, whole: Subset, shape: tuple[int, ...]) -> np.ndarray:
    """Values along the axes of a subset on the grid of all."""
    own = [len_ if v in subset else 1 for v, len_ in zip(whole, shape, strict=True)]
    return np.broadcast_to(values.reshape(own), shape)


def _has_factors(parts: Parts, subsets: Sequence[Subset]) -> bool:
    """Whether some part is a product of random factors, whose variances do not add up."""
    return any(
        parts.groups[index].kind == FACTORS and parts.rest(index, subset) is not None
        for subset in subsets
        for index in parts.groups_with(subset)
    )
