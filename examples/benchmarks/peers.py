"""This library beside those that people use: errors, log scores, times and memory, on the same splits.

    AHOFM_DATA=folder python examples/benchmarks/peers.py                     # everything: many hours
    AHOFM_DATA=folder python examples/benchmarks/peers.py --quick             # minutes
    AHOFM_DATA=folder python examples/benchmarks/peers.py --sets yacht,friedman:10000 --seeds 0-2
    AHOFM_DATA=folder python examples/benchmarks/peers.py --redo ours         # after a change of ours
    AHOFM_DATA=folder python examples/benchmarks/peers.py --budget 0 --markdown   # only the tables

Splits are those of accuracy.py: rows permuted by `numpy.random.default_rng(seed)`, the first fifth is
the test set. `friedman:n` and `steps:n` are simulated, n rows in all. Every fit is a process of its
own, on one core and one thread; seconds are those of the processor, on a quiet machine those of the
clock. Imports and reading of data are in no time, but in the peak memory. The prediction is the first
one after the fit: what is compiled for it counts. Figures are appended to --out as they come, and what
it holds is not computed again (--redo does). A fit that reaches --limit is stopped, and neither other
splits nor larger simulations are tried for it then.

Defaults are what a user gets who names columns and nothing else. mgcv: `gam`, or `bam` above 10,000
training rows, an `s()` a feature; with fewer functions for features of few values, which are linear
below 4. pyGAM: an `s()` a feature. GLMGam: B-splines of 10 functions, no penalty. splines + ridge:
`SplineTransformer()` and `Ridge()`. EBM and histogram boosting: no arguments; "EBM, 4 bags" has 4 in
place of 14 outer bags.

Tuned settings are those with the smallest error on a fifth of the training rows (split by the same
rule), fitted to all training rows; their time includes the search. The grids are the same for all
sets, and no test error was used to choose them:

    EBM                 defaults, all pairs (up to 45), or shorter smoothing rounds; compared with 4 bags
    histogram boosting  learning rate 0.03, 0.1; 7, 31 leaves; 5, 20 rows a leaf; early stopping
    mgcv                `bam(discrete = TRUE, select = TRUE)`: k = 10, k = 20, or k = 10 and `ti` of all
                        pairs (above nine features of the ten strongest), k = 5 or what rows allow
    pyGAM               its own grid search with no, 3 or 6 `te` of the strongest pairs
    splines + ridge     5, 10, 20 knots or all products of the functions of 5 knots; alpha 0.001 to 10
    GLMGam              10, 20 functions; alpha 0 and 1e-6 to 100 (features on [0, 1])
    ours                D = 1, or D = 2, 3 with F = 5, 10

Texts are categories where a library has them (EBM, histogram boosting, ours), factors (mgcv, pyGAM) or
indicators; a level without training rows counts as the most frequent one where a library refuses it.
Constant columns are dropped for all, repeated ones for mgcv and GLMGam. GLMGam gets test rows clipped
to the training range, outside of which it refuses. The log score is that of the normal predictive
distribution that a library offers; EBM, boosting and ridge offer none.
"""

from __future__ import annotations

import argparse
import os
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
from comparison.registry import COMPARED
from comparison.table import Tables, render

SIMULATED = ("friedman:10000", "steps:10000", "friedman:100000", "friedman:1000000")


def read_arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = ",".join([*TASKS, *SIMULATED])
    parser.add_argument("--sets", type=names_of, help=f"of {known}, or another number of rows")
    add_options(parser, Path("peers.jsonl"))
    parser.add_argument("--quick", action="store_true", help="a small and a simulated set, cheap peers")
    parser.add_argument("--brief", action="store_true", help="one table: errors, ranks, seconds")
    arguments = parser.parse_args(given)
    if arguments.one is None:
        complete(arguments, parser)
    return arguments


def complete(arguments: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Fill in what was not given, and refuse what cannot be."""
    quick, has_data = arguments.quick, "AHOFM_DATA" in os.environ
    sets = (["yacht"] * has_data + ["friedman:1000"]) if quick else [*TASKS, *SIMULATED]
    cheap = [peer for peer in COMPARED if not peer.startswith("ebm") and not peer.endswith("tuned")]
    arguments.sets = arguments.sets or sets
    arguments.peers = arguments.peers or (cheap if quick else COMPARED)
    arguments.seeds = arguments.seeds or (seeds_of("0-1") if quick else seeds_of("0-9"))
    check_sets(arguments.sets, parser)


def main(given: list[str] | None = None) -> None:
    arguments = read_arguments(given)
    if arguments.one:
        answer_one(arguments.one)
        return
    sets, peers, seeds = arguments.sets, arguments.peers, arguments.seeds
    results = compute(arguments, Path(__file__), all_cells(arguments, sets))
    for group in (
        [name for name in sets if name in TASKS],
        [name for name in sets if name not in TASKS],
    ):
        if group:
            tables = Tables(results, group, peers, seeds)
            print(render(tables, arguments.markdown, arguments.brief), end="\n\n")


if __name__ == "__main__":
    main()
