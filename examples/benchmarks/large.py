"""Real tables of 17,000 to 46,000 rows: this library beside boosting and EBM.

    AHOFM_DATA=folder python examples/benchmarks/large.py                      # seeds 0 to 2: hours
    AHOFM_DATA=folder python examples/benchmarks/large.py --seeds 100 101      # to choose constants on
    AHOFM_DATA=folder python examples/benchmarks/large.py --sets protein --rows 5000
    AHOFM_DATA=folder python examples/benchmarks/large.py --redo ours          # after a change of ours

The tables are in the folder `large` of AHOFM_DATA: california (value of a house), bike (rentals in an
hour, here as numbers with a squared error) and protein (rmsd). Rows are permuted by
`numpy.random.default_rng(seed)`, the first fifth is the test set. Figures are reported on the splits of
seeds 0 to 2; constants are chosen on those of seeds from 100 on. With --rows the split is one of so many
rows, drawn at random. All libraries have their defaults; `single-d2` and `single-d3` are ours with one
start in place of the average of several. Every fit is a process of its own, on one core and one thread.
Figures are kept in --out, and what it holds is not computed again (--redo does). A library that is not
installed is left out. EBM takes many minutes a fit, and more than --limit on protein by default.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from comparison.command import add_options, all_cells, answer_one, check_sets, compute, names_of
from comparison.problems import LARGE
from comparison.ratios import render

OUT = Path(__file__).parent / "results" / "large.jsonl"
DEFAULT_PEERS = ["ours-d2", "ours-d3", "lightgbm", "boosting", "ebm"]


def read_arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser, OUT)
    parser.add_argument("--sets", type=names_of, default=list(LARGE), help=f"of {','.join(LARGE)}")
    parser.add_argument("--rows", type=int, help="so many of a table's rows, training and test together")
    arguments = parser.parse_args(given)
    if arguments.one:
        return arguments
    arguments.peers = arguments.peers or DEFAULT_PEERS
    arguments.seeds = arguments.seeds or [0, 1, 2]
    if arguments.rows is not None:
        arguments.sets = [f"{name}:{arguments.rows}" for name in arguments.sets]
    check_sets(arguments.sets, parser)
    return arguments


def main(given: list[str] | None = None) -> None:
    arguments = read_arguments(given)
    if arguments.one:
        answer_one(arguments.one)
        return
    results = compute(arguments, Path(__file__), all_cells(arguments, arguments.sets))
    print(render(results, arguments.sets, arguments.peers, arguments.seeds, arguments.markdown))


if __name__ == "__main__":
    main()
