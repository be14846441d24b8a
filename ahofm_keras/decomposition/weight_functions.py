"""The functions f of terms sum_j w_ij f(t_ij), read as curves along the axis of t."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ahofm_keras.decomposition.names import check_count
from ahofm_keras.decomposition.parts import Parts
from ahofm_keras.decomposition.ranking import over
from ahofm_keras.decomposition.uncertainty import Uncertainty
from ahofm_keras.errors import DataError
from ahofm_keras.terms import Term

_POINTS = 120


@dataclass(frozen=True, eq=False)
class WeightFunction:
    """f on a grid: what a unit of the weight at a point adds to the link.

    Args:
        label: of the term.
        points: column of the points, the axis.
        weights: column of the weights; None where all are 1.
        grid: points `(n,)`.
        fit: f there, in units of the link.
        se: standard errors; None where the model has no posterior.
        share: of the variance of the link that the term has.
    """

    label: str
    points: str
    weights: str | None
    grid: np.ndarray
    fit: np.ndarray
    se: np.ndarray | None
    share: float


def functional_terms(parts: Parts) -> list[Term]:
    """The terms of a predictor that sum along arrays, in the formula's order."""
    return [term for term in parts.model.design.only.terms if term.weight_function is not None]


def find_functional(parts: Parts, features: tuple[str, ...], by: str | None) -> Term | None:
    """The term of given points, and weights where several have these; None where no term has them.

    Raises:
        DataError: several terms, or other weights.
    """
    found = {
        term: term.weight_function.names
        for term in functional_terms(parts)
        if term.weight_function is not None
    }
    own = [term for term, names in found.items() if features in (names[:1], (term.label,))]
    axis = next((names[0] for names in found.values() if names[0] in features), None)
    if not own and axis is not None:
        raise DataError(f"`{axis}` holds arrays, whose effect stands alone: name no other feature.")
    if not own:
        return None
    chosen = [term for term in own if by is None or found[term][1:] == (by,)]
    if len(chosen) == 1:
        return chosen[0]
    listed = ", ".join(f"`{found[term][1]}`" if found[term][1:] else "none" for term in own)
    raise DataError(
        f"`{features[0]}` has the weights {listed}: choose one by `by=`."
        if by is None
        else f"`{features[0]}` has the weights {listed}. Received: by={by!r}."
    )


def read_weight_function(
    parts: Parts, term: Term, points: int | None = None, at: Mapping[str, Any] | None = None
) -> WeightFunction:
    """f of a term on an even grid, or at given points.

    Args:
        parts: of the model.
        term: one of `functional_terms`.
        points: along the axis.
        at: values of the points' column instead.

    Raises:
        DataError: values of other columns, or that are not finite.
    """
    sums = term.weight_function
    assert sums is not None
    check_count("points", points, 2)
    odd = next((name for name in at or {} if name != sums.points), None)
    if odd is not None:
        raise DataError(f"The effect of `{sums.points}` has no axis `{odd}`.")
    if at:
        grid = np.atleast_1d(np.asarray(at[sums.points], float))
        if grid.ndim > 1 or not np.isfinite(grid).all():
            raise DataError(f"`at` of `{sums.points}` must be finite numbers.")
    else:
        grid = np.linspace(sums.basis.axis[0], sums.basis.axis[-1], points or _POINTS)
    functions, scale = np.asarray(sums.functions(grid)), parts.model.scale
    fit = scale * functions @ parts.model.get_layer(term.name).coordinates().astype(float)
    se = None
    if parts.model.has_posterior:
        where = parts.model.design.layout.only.by_name[term.name].where
        places = np.arange(where.start, where.stop)
        se = np.sqrt(np.maximum(Uncertainty(parts).variance_of_rows(places, functions.T), 0.0))
    (variance,) = (own.variance for own in parts.opaque if own.name == term.name)
    share = float(over(np.array(variance), parts.total_variance))
    return WeightFunction(term.label, sums.points, sums.weights, grid, fit, se, share)
