"""A surface for every pair of features: error, time and memory beside mgcv's bam.

    python examples/benchmarks/pairs.py                             # p = 3 to 96, 6,000 rows: an hour
    python examples/benchmarks/pairs.py --features 3 6 --peers ours-d2,bam-discrete
    python examples/benchmarks/pairs.py --rows 100000 1000000       # p = 10
    python examples/benchmarks/pairs.py --redo ours                 # after a change of ours

The data are those of the paper's section 5.1: uniform features, for each pair a surface of its own, of
full rank, half as much signal as noise. The error is the mean squared distance of predictions from the
true means of fresh rows, over the variance of these: 0 is the truth, 1 no model. Features are
independent and have no main effects, so it is also the mean error of a surface, over its variance.

bam has an `s` of each feature and a `ti` of each pair, at mgcv's default sizes, and runs up to p = 12;
`bam(discrete = TRUE)` too, and bam up to 20,000 rows only. mgcv is faster with OpenBLAS (of Debian the
package libopenblas0). Where Rscript with mgcv is not found it is left out. `single-d2` is ours with one
start in place of the average of several. Every fit is a process of its own, on one core and one thread;
figures are kept in --out, and what it holds is not computed again (--redo does).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from comparison.command import add_options, all_cells, answer_one, compute
from comparison.ratios import OTHERS
from comparison.table import Tables, as_markdown, as_text

OUT = Path(__file__).parent / "results" / "pairs.jsonl"
DEFAULT_PEERS = ["ours-d2", "bam", "bam-discrete"]
BAM_FEATURES = 12
BAM_ROWS = 20_000
SHOWN = [quantity for quantity in OTHERS if quantity.key != "beyond"]


def is_tried(peer: str, features: int, rows: int) -> bool:
    """Whether a library is asked for a fit of this size at all."""
    if peer == "bam":
        return features <= BAM_FEATURES and rows <= BAM_ROWS
    return peer != "bam-discrete" or features <= BAM_FEATURES


def slope(sizes: Sequence[float], figures: Sequence[float]) -> float:
    """Of the logarithms; NaN with fewer than two sizes."""
    known = [(size, figure) for size, figure in zip(sizes, figures, strict=True) if figure > 0]
    if len(known) < 2:
        return float("nan")
    x, y = np.log(np.array(known)).T
    return float(np.polyfit(x, y, 1)[0])


def read_arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser, OUT)
    parser.add_argument("--features", type=int, nargs="+", help="p (3 6 9 12 24 48 96; 10 with --rows)")
    parser.add_argument("--rows", type=int, nargs="+", help="training rows (6000)")
    arguments = parser.parse_args(given)
    if arguments.one:
        return arguments
    arguments.features = arguments.features or ([10] if arguments.rows else [3, 6, 9, 12, 24, 48, 96])
    arguments.rows = arguments.rows or [6000]
    arguments.peers = arguments.peers or DEFAULT_PEERS
    arguments.seeds = arguments.seeds or [0]
    return arguments


def main(given: list[str] | None = None) -> None:
    arguments = read_arguments(given)
    if arguments.one:
        answer_one(arguments.one)
        return
    sizes = {f"pairs{p}:{n}": (p, n) for n in arguments.rows for p in arguments.features}
    cells = [cell for cell in all_cells(arguments, list(sizes)) if is_tried(cell.peer, *sizes[cell.set])]
    results = compute(arguments, Path(__file__), cells)
    tables = Tables(results, list(sizes), arguments.peers, arguments.seeds)
    layout = as_markdown if arguments.markdown else as_text
    for quantity in SHOWN:
        print(layout(quantity.title, tables.cells(quantity, str)), end="\n\n")
    print_ratios(tables)
    print_slopes(tables, sizes)


def print_ratios(tables: Tables) -> None:
    """Ours over bam's, where both were measured."""
    error, seconds = tables.means("missed"), tables.means("fit")
    for own in (peer for peer in tables.peers if peer.startswith(("ours", "single"))):
        for other in (peer for peer in tables.peers if peer.startswith("bam")):
            less, time = error.loc[own] / error.loc[other], seconds.loc[own] / seconds.loc[other]
            for name in less.dropna().index:
                print(f"{name}: {own} has {less[name]:.2f} of the error of {other}", end="")
                print(f" in {time[name]:.2f} of its time")


def print_slopes(tables: Tables, sizes: dict[str, tuple[int, int]]) -> None:
    """Powers of p and of n with which seconds grow, and of n with which the error falls."""
    error, seconds = tables.means("missed"), tables.means("fit")
    for peer in tables.peers:
        for rows in dict.fromkeys(n for _, n in sizes.values()):
            own = [name for name, (_, n) in sizes.items() if n == rows]
            power = slope([sizes[name][0] for name in own], list(seconds.loc[peer, own]))
            if np.isfinite(power):
                print(f"{peer}, n = {rows:,}: seconds grow with p to the power of {power:.2f}")
        for features in dict.fromkeys(p for p, _ in sizes.values()):
            own = [name for name, (p, _) in sizes.items() if p == features]
            power = slope([sizes[name][1] for name in own], list(error.loc[peer, own]))
            if np.isfinite(power):
                print(f"{peer}, p = {features}: the error goes with n to the power of {power:.2f}")


if __name__ == "__main__":
    main()
