"""How many factors an order of an interaction has: as the formula says, or as the data asks for."""

from __future__ import annotations

from collections.abc import Mapping
from math import comb
from typing import Any

AUTO = "auto"
# Factors of a group. Those of a group covary, so time and memory grow with the square of their number;
# in the number of groups they are linear.
USUAL_RANK = 5
_LARGEST_GROUP = 8
# Groups of a fit whose rank the data chooses, at most, and rows for each of them at least.
_MOST_GROUPS = 32
_ROWS_OF_GROUP = 250
# The same of surfaces: a group for each pair.
_MOST_SURFACES = 120
_ROWS_OF_SURFACE = 80


def group_size(rank: int) -> int:
    """Number of factors of each group that some factors fall into."""
    return rank if rank <= _LARGEST_GROUP else -(-rank // -(-rank // USUAL_RANK))


def is_automatic(options: Mapping[str, Any]) -> bool:
    """Whether the data chooses the rank."""
    return options.get("F", AUTO) == AUTO


def ranks(
    options: Mapping[str, Any], orders: tuple[int, ...], features: int, rows: int
) -> list[tuple[int, int]]:
    """Each order of an interaction with its number of factors, at most.

    Args:
        options: of the term.
        orders: that it has.
        features: that pairs of may have surfaces; 0 where they are straight lines.
        rows: of the data.
    """
    rank = options.get("F", AUTO)
    if rank == AUTO:
        most = _most_groups(features if 2 in orders else 0, rows)
        return [(order, USUAL_RANK * most) for order in orders]
    ranks = rank if isinstance(rank, tuple) else (rank,) * len(orders)
    return list(zip(orders, ranks, strict=True))


def _most_groups(features: int, rows: int) -> int:
    """Groups of random products, and one for each pair of features if a group is not enough for all.

    All orders of a term have room for the same number.
    """
    groups = max(1, min(_MOST_GROUPS, rows // _ROWS_OF_GROUP))
    surfaces = min(comb(features, 2), _MOST_SURFACES, rows // _ROWS_OF_SURFACE)
    return groups + surfaces if surfaces > USUAL_RANK else groups
