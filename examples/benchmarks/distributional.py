"""Log scores: families whose scale has a formula, beside one spread for all rows and other libraries.

    AHOFM_DATA=folder python examples/benchmarks/distributional.py                 # ten splits: hours
    AHOFM_DATA=folder python examples/benchmarks/distributional.py --sets yacht --seeds 0
    AHOFM_DATA=folder python examples/benchmarks/distributional.py --budget 0 --markdown   # the tables

Splits are those of peers.py, and so is everything else that is not said here. The log score is the
mean negative log density of test rows: smaller is better. `ours-ls` is `gaussian_ls`, `ours-t` is
`student_t`: `ahofm(., D=2)` in the location, `s(.)` in the scale, nothing is tuned. `ours-d2` and
`ours-d3` have one spread for all rows. mgcv: `gaulss` (main effects in the mean, with or without the
three strongest pairs, and main effects in the logarithm of the standard deviation) and `scat`; the
formula is chosen by the density of a fifth of the training rows. NGBoost at its defaults, and with the
number of trees chosen in the same way.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from comparison.command import (
    add_options,
    all_cells,
    answer_one,
    check_sets,
    compute,
    names_of,
    seeds_of,
)
from comparison.problems import TASKS
from comparison.table import COSTS, ERROR, LOG_SCORE, Tables, as_markdown, as_text

OUT = Path(__file__).parent / "results" / "distributional.jsonl"
DEFAULT_PEERS = (
    "ours-d2 ours-d3 ours-ls ours-ls-d3 ours-t mgcv-tuned mgcv-gaulss mgcv-scat ngboost ngboost-tuned "
    "mean"
).split()


def read_arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser, OUT)
    parser.add_argument("--sets", type=names_of, default=list(TASKS), help=f"of {','.join(TASKS)}")
    arguments = parser.parse_args(given)
    if arguments.one:
        return arguments
    arguments.peers = arguments.peers or DEFAULT_PEERS
    arguments.seeds = arguments.seeds or seeds_of("0-9")
    check_sets(arguments.sets, parser)
    return arguments


def render(tables: Tables, markdown: bool) -> str:
    """Log scores first, then errors and seconds."""
    layout = as_markdown if markdown else as_text

    def mark(text: str) -> str:
        return f"**{text}**" if markdown else f"*{text}"

    quantities = (LOG_SCORE, ERROR, COSTS[0])
    tabled = ((quantity.title, tables.cells(quantity, mark)) for quantity in quantities)
    return "\n\n".join(layout(title, cells) for title, cells in tabled if not cells.empty)


def main(given: list[str] | None = None) -> None:
    arguments = read_arguments(given)
    if arguments.one:
        answer_one(arguments.one)
        return
    results = compute(arguments, Path(__file__), all_cells(arguments, arguments.sets))
    tables = Tables(results, arguments.sets, arguments.peers, arguments.seeds)
    if arguments.markdown:  # for a page, which need not say what was never tried
        sets, peers = arguments.sets, arguments.peers
        peers = [own for own in peers if any(tables.figures(own, name) for name in sets)]
        sets = [name for name in sets if any(tables.figures(own, name) for own in peers)]
        tables = Tables(results, sets, peers, arguments.seeds)
    print(render(tables, arguments.markdown))


if __name__ == "__main__":
    main()
