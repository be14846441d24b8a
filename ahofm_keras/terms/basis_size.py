"""How many functions the basis of a feature has."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from ahofm_keras.formula import TermSpec

if TYPE_CHECKING:
    from ahofm_keras.terms.features import Request

LEAST_SIZE = 10
# Where there are many rows, a feature has a function for each so many of them: the penalty, not k, says
# how smooth it is, and functions that it leaves nothing of cost nothing. So many at most: predictions
# take longer with more. And so many of all features together, whose covariance a model holds.
ROWS_OF_A_FUNCTION = 20
MOST_USUAL = 200
MOST_TOGETHER = 2000
# Functions of a margin of a tensor product, beyond its df, and products that it should have at most.
_MARGIN_SPARE = 2
_USUAL_PRODUCTS = 256
_LEAST_MARGIN = 4
# Functions of a smooth: their Gram matrix is dense.
_MOST_FUNCTIONS = 1000


def choose_size(request: Request, usual: int, distinct: int, spec: TermSpec) -> tuple[int, int]:
    """Number of functions and their degree.

    As many as the user says, else as usual, but fewer where there are few distinct values, down to a
    parabola (3 values) or a straight line (2).
    """
    cyclic = request.kind == "cp"
    if cyclic and (distinct < 4 or (request.size or 4) < 4):
        raise spec.error(
            f"A cyclic smooth needs k of at least 4 and 4 distinct values; "
            f"`{spec.label}` has k={request.size or 'not given'} and {distinct} distinct values."
        )
    if request.size is not None:
        if request.size > _MOST_FUNCTIONS:
            raise spec.error(
                f"`k` must not exceed {_MOST_FUNCTIONS:,}: the penalty holds most of so many functions "
                f"down, and they take minutes.\n    Received: k={request.size} in `{spec.label}`."
            )
        return request.size, min(request.degree, request.size - 1)
    least = 4 if cyclic else min(3, distinct)
    # Each value may have a step of its own.
    most = distinct if request.degree == 0 else distinct - 1
    size = max(least, min(usual, most, _MOST_FUNCTIONS))
    return size, min(request.degree, size - 1)


def usual_size(request: Request, rows: int, sharing: int) -> int:
    """Number of functions where the user does not say.

    About df + 5, at least 10, so that the df can be reached and lambda does the rest; with many rows as
    many as these can tell apart. A margin of a tensor product has at most 10, of three margins 7, of
    four 5, unless its df asks for more.

    Args:
        request: of the term.
        rows: n.
        sharing: number of features that have smooths.
    """
    if request.margins == 1:
        many = min(rows // ROWS_OF_A_FUNCTION, MOST_USUAL, MOST_TOGETHER // max(sharing, 1))
        return max(LEAST_SIZE, ceil(request.df) + 5, many)
    # One function is lost to centring.
    shared = int(_USUAL_PRODUCTS ** (1 / request.margins) + 1e-9) + 1
    return max(min(max(shared, _LEAST_MARGIN), LEAST_SIZE), ceil(request.df) + _MARGIN_SPARE)
