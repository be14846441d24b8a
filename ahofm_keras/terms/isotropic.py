"""Bases of distances between points: how many functions, and which, from what a term asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ahofm_keras.bases import Basis, make_distances
from ahofm_keras.errors import DataError, warn
from ahofm_keras.formula import TermSpec
from ahofm_keras.radial import CORRELATIONS, count_polynomials, make_duchon, make_process, usual_order
from ahofm_keras.transforms import Expression

if TYPE_CHECKING:
    from ahofm_keras.terms.features import Request

# Functions where the user does not say: at least so many in 1, 2, 3 and more dimensions, with many rows
# one for so many of them, and no more than MOST_USUAL. Of a margin of a tensor product so many per
# dimension, in product.
_LEAST = (10, 30, 60)
_ROWS_OF_A_FUNCTION = 20
_MOST_USUAL = 100
_OF_A_MARGIN = 5
_MOST_OF_A_MARGIN = 64
# Their Gram matrix is dense, and all of them are computed for each row.
_MOST_FUNCTIONS = 500
# Number of the correlation function, its unit (0: the largest distance) and its power, where `m` does
# not say: as in mgcv.
_PROCESS = (3.0, 0.0, 1.0)
# Coordinates of which one spreads so many times as far as another are hardly of one unit.
_UNITS = 20.0
# Points whose spread along some direction is this share of that along another lie on a line.
_FLAT = 1e-9


def learn_distances(
    request: Request, expression: Expression, points: np.ndarray, rows: int, extrapolation: str,
    spec: TermSpec,
) -> Basis:  # fmt: skip
    """The basis of distances that a term asks for.

    Args:
        request: of the term.
        expression: whose values the points are.
        points: distinct training values `(n, d)`, or `(n,)` of one coordinate.
        rows: number of training rows.
        extrapolation: outside the training range.
        spec: of the term, for messages.
    """
    points = np.asarray(points, float).reshape(len(points), -1)
    dimension = points.shape[1]
    _check_points(expression, points, spec)
    if request.kind == "gp":
        number, reach, power = (*request.form, *_PROCESS[len(request.form) :])
        free = 1 if number < 0 else dimension + 1
        size = _choose_size(request, dimension, free, len(points), rows, spec)
        radial = make_process(
            points, size, CORRELATIONS[abs(int(number))], reach or None, power, number < 0
        )
    else:
        order, s = _orders(request, dimension, spec)
        free = count_polynomials(order, dimension)
        size = _choose_size(request, dimension, free, len(points), rows, spec)
        radial = make_duchon(points, size, order, s)
    return make_distances(request.kind, radial, extrapolation)


def _orders(request: Request, dimension: int, spec: TermSpec) -> tuple[int, float]:
    """Order of the derivatives in the penalty, and the power of frequencies beside it."""
    if request.kind == "tp":
        order, s = int(request.form[0]) if request.form else usual_order(dimension), 0.0
    else:
        first, s = request.form or (2.0, max(0.0, (dimension - 3) / 2))
        order = int(first)
    if not -dimension / 2 < s < dimension / 2 or order + s <= dimension / 2:
        given = f"m={order}" if request.kind == "tp" else f"m=({order}, {s:g})"
        raise spec.error(
            f"`{spec.label}` has {dimension} coordinates: `m` must exceed {dimension / 2:g} together "
            f"with its second number, which lies between {-dimension / 2:g} and {dimension / 2:g}, or "
            f"the function would not be continuous.\n    Received: {given}."
        )
    return order, float(s)


def _choose_size(
    request: Request, dimension: int, free: int, distinct: int, rows: int, spec: TermSpec
) -> int:
    """Number of functions: as the user says, else by rows; no more than there are points."""
    least = free + 1
    if distinct <= least:
        raise DataError(
            f"`{spec.label}` needs more than {least} different points, the data has {distinct}. Write a "
            "linear term, or a category."
        )
    if request.size is not None:
        if not least <= request.size <= _MOST_FUNCTIONS:
            raise spec.error(
                f"`k` of `{spec.label}` must lie between {least} and {_MOST_FUNCTIONS}, {free} of them "
                f"polynomials without penalty.\n    Received: k={request.size}."
            )
        if request.size > distinct:
            raise spec.error(
                f"`k` of `{spec.label}` must not exceed the number of different points, {distinct}.\n"
                f"    Received: k={request.size}."
            )
        return request.size
    if request.margins > 1:
        usual = min(_OF_A_MARGIN**dimension, _MOST_OF_A_MARGIN)
    else:
        usual = max(_LEAST[min(dimension, 3) - 1], min(rows // _ROWS_OF_A_FUNCTION, _MOST_USUAL))
    usual = max(usual, least, int(np.ceil(request.df)) + 5)
    return min(usual, distinct, _MOST_FUNCTIONS)


def _check_points(expression: Expression, points: np.ndarray, spec: TermSpec) -> None:
    """Raise where points lie on a line or in a plane; warn where units differ."""
    if not expression.is_point:
        return
    names = [str(own) for own in expression.coordinates]
    spreads = points.std(axis=0)
    for name, spread in zip(names, spreads, strict=True):
        if spread == 0:
            raise DataError(
                f"`{name}` is constant, so `{spec.label}` has no distances along it. Leave it out."
            )
    scaled = (points - points.mean(axis=0)) / spreads
    sizes = np.linalg.svd(scaled, compute_uv=False)
    if sizes[-1] < _FLAT * sizes[0]:
        raise DataError(
            f"The points of `{spec.label}` lie on a straight line or in a plane: one of "
            f"{', '.join(f'`{name}`' for name in names)} follows from the others. Leave one out."
        )
    widest, narrowest = int(np.argmax(spreads)), int(np.argmin(spreads))
    if spreads[widest] > _UNITS * spreads[narrowest]:
        warn(
            f"`{spec.label}` takes distances in one unit for all coordinates, but `{names[widest]}` "
            f"spreads {spreads[widest] / spreads[narrowest]:.0f} times as far as "
            f"`{names[narrowest]}`. If they are not of one unit, write `te({', '.join(names)})`."
        )
