"""Tables of the comparison: a row a library, a column a data set, as text or as markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from comparison.problems import TASKS
from comparison.registry import PEERS
from comparison.runs import Cell, Results


@dataclass(frozen=True)
class Quantity:
    """What a table shows.

    Args:
        key: of the figures.
        title: of the table.
        digits: decimals for a set whose best value is given.
        ranked: whether ranks are averaged over sets.
        spread: whether the standard deviation over splits is shown.
        optional: whether a library may have none by its nature, and is left out then.
    """

    key: str
    title: str
    digits: Callable[[str, float], int]
    ranked: bool = False
    spread: bool = False
    optional: bool = False


def error_digits(name: str, best: float) -> int:
    """Decimals by which the best error has three digits; simulated ones are all about 1."""
    return max(2 - int(np.floor(np.log10(best))), 0) if name in TASKS else 3


def always(digits: int) -> Callable[[str, float], int]:
    return lambda name, best: digits


ERROR = Quantity("rmse", "Test error (RMSE)", error_digits, ranked=True, spread=True)
LOG_SCORE = Quantity(
    "log_score", "Log score (mean negative log predictive density)", always(3),
    ranked=True, spread=True, optional=True,
)  # fmt: skip
COSTS = (
    Quantity("fit", "Fit, seconds of one core (tuning included)", always(2)),
    Quantity("predict", "Prediction of the test rows, seconds of one core", always(3)),
    Quantity("peak", "Peak memory, MB (libraries and data included)", always(0)),
)


class Tables:
    """Values of every library, set and split.

    Args:
        results: the figures.
        sets: columns.
        peers: rows.
        seeds: of the splits.
    """

    def __init__(
        self, results: Results, sets: Sequence[str], peers: Sequence[str], seeds: Sequence[int]
    ) -> None:
        self.results, self.sets, self.peers, self.seeds = results, sets, peers, seeds

    def figures(self, peer: str, name: str) -> list[dict[str, Any]]:
        known = (self.results.get(Cell(name, seed, peer)) for seed in self.seeds)
        return [figures for figures in known if figures is not None]

    def values(self, peer: str, name: str, key: str) -> list[float]:
        return [figures[key] for figures in self.figures(peer, name) if key in figures]

    def has(self, peer: str, key: str) -> bool:
        return any(self.values(peer, name, key) for name in self.sets)

    def means(self, key: str) -> pd.DataFrame:
        """`(peers, sets)`; NaN where there is no figure."""
        return pd.DataFrame(
            {
                name: {
                    peer: np.mean(values) if (values := self.values(peer, name, key)) else np.nan
                    for peer in self.peers
                }
                for name in self.sets
            }
        )

    def tried(self) -> pd.DataFrame:
        """`(peers, sets)`: whether a fit was at least begun."""
        return pd.DataFrame(
            {
                name: {
                    peer: any("missing" not in figures for figures in self.figures(peer, name))
                    for peer in self.peers
                }
                for name in self.sets
            }
        )

    def ranks(self, key: str) -> pd.DataFrame:
        """1 is the best; who was stopped or failed shares the last places, who was not run has none."""
        return self.means(key).fillna(np.inf).where(self.tried()).rank(method="average")

    def reason(self, peer: str, name: str, key: str) -> str:
        """Why there is no figure."""
        known = self.figures(peer, name)
        if not known:
            return "not run"
        last = known[-1]
        if "limit" in last:
            return f"stopped after {last['limit']:.0f} s"
        if "memory" in last:
            return f"more than {last['memory']:g} GB"
        if "missing" in last:
            return "not installed"
        return "failed" if "failed" in last else "-"

    def cell(self, peer: str, name: str, quantity: Quantity) -> str:
        """Mean (standard deviation) [number of splits, where others have more]."""
        values = self.values(peer, name, quantity.key)
        if not values:
            return self.reason(peer, name, quantity.key)
        digits = quantity.digits(name, self.means(quantity.key)[name].min())
        text = f"{np.mean(values):.{digits}f}"
        if quantity.spread and len(values) > 1:
            text += f" ({np.std(values, ddof=1):.{digits}f})"
        most = max(len(self.values(other, name, quantity.key)) for other in self.peers)
        return text if len(values) == most else f"{text} [{len(values)}]"

    def winners(self, key: str) -> pd.DataFrame:
        means = self.means(key)
        return means.eq(means.min())

    def cells(self, quantity: Quantity, mark: Callable[[str], str]) -> pd.DataFrame:
        """Texts of a table, with ranks where the quantity has any."""
        won = self.winners(quantity.key)
        peers = [peer for peer in self.peers if not quantity.optional or self.has(peer, quantity.key)]
        texts = pd.DataFrame(
            {
                name: {
                    peer: mark(text) if won.loc[peer, name] else text
                    for peer in peers
                    for text in [self.cell(peer, name, quantity)]
                }
                for name in self.sets
            }
        )
        if quantity.ranked:
            ranks = Tables(self.results, self.sets, peers, self.seeds).ranks(quantity.key)
            texts["mean rank"] = mean_ranks(ranks, mark)
        return texts.rename(index={peer: PEERS[peer].label for peer in peers})

    def rank_cells(self, key: str) -> pd.DataFrame:
        ranks = self.ranks(key)
        texts = ranks.map(lambda rank: f"{rank:g}" if np.isfinite(rank) else "-")
        return texts.rename(index={peer: PEERS[peer].label for peer in self.peers})


def mean_ranks(ranks: pd.DataFrame, mark: Callable[[str], str]) -> list[str]:
    """Over all sets; none for a peer that was not run on one of them."""
    mean = ranks.mean(axis=1, skipna=False)
    texts = mean.map(lambda rank: f"{rank:.2f}" if np.isfinite(rank) else "-")
    return [mark(text) if value == mean.min() else text for text, value in zip(texts, mean, strict=True)]


def as_text(title: str, cells: pd.DataFrame) -> str:
    first = 2 + max(len(label) for label in cells.index)
    widths = [2 + max(len(str(name)), *(len(text) for text in cells[name])) for name in cells]
    head = " " * first + "".join(f"{name:>{w}}" for name, w in zip(cells, widths, strict=True))
    lines = [
        f"{label:{first}}" + "".join(f"{text:>{w}}" for text, w in zip(row, widths, strict=True))
        for label, row in zip(cells.index, cells.to_numpy(), strict=True)
    ]
    return "\n".join([title, head, *lines])


def as_markdown(title: str, cells: pd.DataFrame) -> str:
    head = f"| {title} | " + " | ".join(str(name) for name in cells) + " |"
    rule = "|---|" + "--:|" * cells.shape[1]
    lines = [
        f"| {label} | " + " | ".join(row) + " |"
        for label, row in zip(cells.index, cells.to_numpy(), strict=True)
    ]
    return "\n".join([head, rule, *lines])


def one_table(tables: Tables, mark: Callable[[str], str]) -> pd.DataFrame:
    """Errors with their mean rank, the mean rank by log score, and the range of the fits' seconds."""
    cells = tables.cells(ERROR, mark)
    scores = tables.cells(LOG_SCORE, mark)
    cells["rank by log score"] = scores["mean rank"].reindex(cells.index).fillna("")
    seconds = tables.means("fit")
    cells["seconds a fit"] = [
        f"{_short(own.min())} to {_short(own.max())}" if own.notna().any() else ""
        for _, own in seconds.iterrows()
    ]
    return cells


def _short(seconds: float) -> str:
    return f"{seconds:.1f}" if seconds < 10 else f"{seconds:.0f}"


def render(tables: Tables, markdown: bool, brief: bool = False) -> str:
    """All tables, or one; the best of a column is bold, or has an asterisk in plain text."""
    layout = as_markdown if markdown else as_text

    def mark(text: str) -> str:
        return f"**{text}**" if markdown else f"*{text}"

    if brief:
        return layout(ERROR.title, one_table(tables, mark))
    parts = [layout(ERROR.title, tables.cells(ERROR, mark))]
    parts.append(layout("Rank by test error", tables.rank_cells(ERROR.key)))
    others = ((quantity, tables.cells(quantity, mark)) for quantity in (LOG_SCORE, *COSTS))
    parts += [layout(quantity.title, cells) for quantity, cells in others if not cells.empty]
    return "\n\n".join(parts)
