"""Which effects of a model its page shows, and what it says of the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ahofm_keras.decomposition import Parts
from ahofm_keras.decomposition.parts import NOTHING
from ahofm_keras.decomposition.ranking import over
from ahofm_keras.plotting.texts import shorten_apart
from ahofm_keras.texts import percent

# The map needs this many features to say more than the panels above it.
_LEAST_MAP = 4
# Features without an effect that are named, and letters of their names.
_MOST_SILENT, _NAME = 8, 24


@dataclass(frozen=True, eq=False)
class Choice:
    """What a page shows and what it leaves out.

    Args:
        main: labels of main effects, the strongest first.
        pairs: labels of pairs, the strongest first.
        shares: of each order.
        left_out: what is not shown, in words.
        map: whether there is an interaction map.
    """

    main: list[str]
    pairs: list[tuple[str, str]]
    shares: dict[int, float]
    left_out: list[str]
    map: bool


def choose(parts: Parts, curves: int, surfaces: int) -> Choice:
    """The strongest effects, as many as asked for."""
    total = parts.total_variance
    shares = {order: float(over(v, total)) for order, v in parts.variance_by_order.items()}
    left_out: list[str] = []
    labels = [variable.label for variable in parts.variables]
    main = _ranked(parts, 1)
    strong = [(subset, share) for subset, share in main if share > NOTHING]
    silent = [labels[subset[0]] for subset, share in main if share <= NOTHING]
    if not strong:
        strong, silent = main, []
    _say(left_out, "main effects", strong[curves:])
    pairs = [entry for entry in _ranked(parts, 2) if entry[1] > NOTHING]
    _say(left_out, "pairs", pairs[surfaces:])
    mapped = len({v for subset, _ in pairs for v in subset}) >= _LEAST_MAP

    higher = share_from_3(shares)
    if higher > NOTHING and not mapped:
        left_out.append(f"not shown: interactions of order 3 and above ({percent(higher)} of variance)")
    if silent:
        short = dict(zip(labels, shorten_apart(labels, _NAME), strict=True))
        listed = ", ".join(short[name] for name in silent[:_MOST_SILENT])
        beyond = len(silent) - _MOST_SILENT
        more = f" and {beyond} more" if beyond > 0 else ""
        left_out.append(f"without a main effect: {listed}{more}")
    return Choice(
        [labels[subset[0]] for subset, _ in strong[:curves]],
        [(labels[a], labels[b]) for (a, b), _ in pairs[:surfaces]],
        shares,
        left_out,
        mapped,
    )


def share_from_3(shares: dict[int, float]) -> float:
    """What interactions of order 3 and above have together."""
    return sum(share for order, share in shares.items() if order > 2)


def _ranked(parts: Parts, order: int) -> list[tuple[tuple[int, ...], float]]:
    if order > parts.largest_order:
        return []
    subsets = parts.subsets(order)
    found = over(parts.variances(subsets), parts.total_variance)
    best = np.argsort(-found, kind="stable")
    return [(tuple(map(int, subsets[k])), float(found[k])) for k in best]


def _say(left_out: list[str], what: str, rest: list[tuple[tuple[int, ...], float]]) -> None:
    if rest:
        share = percent(sum(share for _, share in rest))
        name = what if len(rest) > 1 else what.removesuffix("s")
        left_out.append(f"not shown: {len(rest):,} more {name} ({share} of variance)")
