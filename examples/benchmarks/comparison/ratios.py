"""Tables of comparisons with a verdict: errors over the smallest one, seconds, far predictions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from comparison.registry import PEERS
from comparison.runs import Results
from comparison.table import Quantity, Tables, always, as_markdown, as_text

# Within so much of the first counts as first.
NEAR = 1.02


def significant(digits: int) -> Quantity:
    """The error of a set's own family, with so many digits."""
    title = "Error (RMSE; log loss where binary, mean deviance where counts)"
    return Quantity(
        "error", title, lambda name, best: max(digits - 1 - int(np.floor(np.log10(best))), 0)
    )


ERROR = significant(4)
OTHERS = (
    Quantity("missed", "Mean squared distance from the true means, over their variance", always(4)),
    Quantity("fit", "Fit, seconds of processor time", always(1)),
    Quantity("beyond", "Farthest prediction beyond the responses, in widths of their range", always(2)),
    Quantity("peak", "Peak memory, MB (libraries and data included)", always(0)),
)


def ratios(tables: Tables, key: str = "error") -> pd.DataFrame:
    """`(peers, sets)`: mean errors over the smallest one of a set; the truth is no competitor."""
    means = tables.means(key)
    return means / means.drop(index="truth", errors="ignore").min()


def render(
    results: Results, sets: Sequence[str], peers: Sequence[str], seeds: Sequence[int], markdown: bool
) -> str:
    """All tables: a row a library, a column a set."""
    tables = Tables(results, sets, peers, seeds)
    layout = as_markdown if markdown else as_text

    def mark(text: str) -> str:
        return text

    over = ratios(tables).map(lambda ratio: f"{ratio:.3f}" if np.isfinite(ratio) else "-")
    over = over.rename(index={peer: PEERS[peer].label for peer in peers})
    parts = [layout(ERROR.title, tables.cells(ERROR, mark)), layout("Over the smallest error", over)]
    shown = [quantity for quantity in OTHERS if any(tables.has(peer, quantity.key) for peer in peers)]
    parts += [layout(quantity.title, tables.cells(quantity, mark)) for quantity in shown]
    return "\n\n".join(parts)


def count_first(tables: Tables, peer: str, key: str = "error") -> tuple[int, int]:
    """In how many sets a peer is first or nearly so, and of how many."""
    own = ratios(tables, key).loc[peer].dropna()
    return int((own <= NEAR).sum()), len(own)
