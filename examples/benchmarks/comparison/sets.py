"""Data sets by the names that options take: of the paper, large tables, simulations."""

from __future__ import annotations

import os
import re
from pathlib import Path

from comparison.kinds import KINDS, simulate_kind, simulate_pairs
from comparison.problems import LARGE, SIMULATIONS, TASKS, Split, load, load_large, simulate, split

PAIRS = re.compile(r"pairs(\d+)")


def is_known_set(name: str) -> bool:
    """A set of the paper, a large table (or `name:rows`, some of its rows), or `simulation:rows`.

    The simulation `pairs9` has nine features, `pairs12` twelve.
    """
    kind, colon, rows = name.partition(":")
    if not colon:
        return name in TASKS or name in LARGE
    known = kind in SIMULATIONS or kind in KINDS or kind in LARGE or PAIRS.fullmatch(kind)
    return rows.isdigit() and bool(known)


def needs_data(name: str) -> bool:
    """Whether a set is read from the folder `AHOFM_DATA`."""
    return name in TASKS or name.partition(":")[0] in LARGE


def rows_of(name: str, seed: int) -> Split:
    """Training and test rows of a set."""
    kind, _, rows = name.partition(":")
    if pairs := PAIRS.fullmatch(kind):
        return simulate_pairs(int(pairs[1]), int(rows), seed)
    if kind in KINDS:
        return simulate_kind(kind, int(rows), seed)
    if kind in SIMULATIONS:
        return split(simulate(kind, int(rows), seed), "y", seed)
    folder = Path(os.environ["AHOFM_DATA"])
    if kind in LARGE:
        return load_large(folder, kind, int(rows) if rows else None, seed)
    return split(load(folder, name), TASKS[name].response, seed)
