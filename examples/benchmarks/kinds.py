"""Tables of the kinds that are hard for splines: this library beside boosting and EBM.

    python examples/benchmarks/kinds.py                  # some rows of each kind
    python examples/benchmarks/kinds.py --full           # as many as real tables have: hours
    python examples/benchmarks/kinds.py --kinds heaps,map:5000 --seeds 0-2
    python examples/benchmarks/kinds.py --redo ours      # after a change of ours

The kinds (`comparison/kinds.py` has their formulas):

    heavy-tails  amounts over powers of ten, changes with two tails; effects level off, pairs, a triple
    heaps        binary; hours, half of them 40, and gains, most of them 0: such values have own effects
    weak-counts  a tenth of an event a row, effects that only many rows show
    many-rows    smooth functions with more turns than twenty functions can follow, pairs, a triple
    full-rank    a surface of its own and of full rank for each of 28 pairs (paper, section 5.1)
    map          prices around forty towns: fine and broad bumps of longitude and latitude
    stepped      jumps of one, two and three features, for reference: splines do not jump

All libraries have their defaults. Errors are those of 20,000 fresh rows; "the truth" is what the true
means have. Every fit is a process of its own, on one core and one thread. Figures are kept in --out, and
what it holds is not computed again (--redo does). A library that is not installed is left out. Without
EBM (--peers ours-d2,ours-d3,lightgbm,boosting,truth) it takes minutes; EBM takes minutes for each kind.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from comparison.command import add_options, all_cells, answer_one, check_sets, compute, names_of
from comparison.kinds import KINDS
from comparison.ratios import count_first, render
from comparison.table import Tables

OUT = Path(__file__).parent / "results" / "kinds.jsonl"
DEFAULT_PEERS = ["ours-d2", "ours-d3", "lightgbm", "boosting", "ebm", "truth"]


def with_rows(name: str, full: bool) -> str:
    """`kind:rows`, where only the kind was given."""
    if name not in KINDS:
        return name
    return f"{name}:{KINDS[name].full if full else KINDS[name].rows}"


def read_arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser, OUT)
    parser.add_argument("--kinds", type=names_of, default=list(KINDS), help="all, or kind:rows")
    parser.add_argument("--full", action="store_true", help="as many rows as real tables have")
    arguments = parser.parse_args(given)
    if arguments.one:
        return arguments
    arguments.peers = arguments.peers or DEFAULT_PEERS
    arguments.seeds = arguments.seeds or [0]
    arguments.kinds = [with_rows(name, arguments.full) for name in arguments.kinds]
    check_sets(arguments.kinds, parser)
    return arguments


def main(given: list[str] | None = None) -> None:
    arguments = read_arguments(given)
    if arguments.one:
        answer_one(arguments.one)
        return
    kinds, peers, seeds = arguments.kinds, arguments.peers, arguments.seeds
    results = compute(arguments, Path(__file__), all_cells(arguments, kinds))
    print(render(results, kinds, peers, seeds, arguments.markdown))
    print_verdicts(Tables(results, [name for name in kinds if not is_stepped(name)], peers, seeds))


def is_stepped(name: str) -> bool:
    return KINDS[name.partition(":")[0]].stepped


def print_verdicts(tables: Tables) -> None:
    """How often ours is first: by the error, most of which may be noise, and by what is missed."""
    words = {"error": "error", "missed": "distance from the true means"}
    for peer in (peer for peer in tables.peers if peer.startswith(("ours", "single"))):
        for key, text in words.items():
            first, count = count_first(tables, peer, key)
            print(
                f"\n{peer}, {text}: first or within 2 % of it in {first} of {count} kinds without steps"
            )


if __name__ == "__main__":
    main()
