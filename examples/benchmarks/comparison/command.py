"""What the commands of comparisons share: options, and fitting what a file of figures does not hold."""

from __future__ import annotations

import argparse
import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

from comparison.registry import PEERS, select
from comparison.runs import Cell, Results, fill, run_apart, run_here
from comparison.sets import is_known_set, needs_data


def names_of(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def peers_of(text: str) -> list[str]:
    try:
        return select(names_of(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def seeds_of(text: str) -> list[int]:
    """`0-9`, `3` or `0,1,5`."""
    first, dash, last = text.partition("-")
    return list(range(int(first), int(last) + 1)) if dash else [int(seed) for seed in names_of(text)]


class Joined(argparse.Action):
    """Keeps the lists of several values as one."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        setattr(namespace, self.dest, [item for value in values for item in value])


def add_options(parser: argparse.ArgumentParser, out: Path) -> None:
    """Options of every comparison."""
    parser.add_argument("--peers", type=peers_of, help=f"of {','.join(PEERS)}; ours: all of ours")
    parser.add_argument(
        "--seeds", type=seeds_of, nargs="+", action=Joined, help="0-9, or 0,1,5, or 0 1 5"
    )
    parser.add_argument(
        "--limit", type=float, default=600, help="seconds of processor time of a fit (600)"
    )
    parser.add_argument("--memory", type=float, default=12, help="gigabytes of a fit (12)")
    parser.add_argument(
        "--budget", type=float, default=float("inf"), help="begin no fit after s seconds"
    )
    parser.add_argument("--redo", type=peers_of, default=[], help="peers to compute anew: ours")
    parser.add_argument("--out", type=Path, default=out, help=f"file of figures ({out.name})")
    parser.add_argument("--markdown", action="store_true", help="tables in markdown")
    parser.add_argument("--one", help=argparse.SUPPRESS)


def check_sets(sets: list[str], parser: argparse.ArgumentParser) -> None:
    """End with an error where a set is unknown, or its data are not there."""
    unknown = [name for name in sets if not is_known_set(name)]
    if unknown:
        parser.error(f"unknown sets: {', '.join(unknown)}")
    if "AHOFM_DATA" not in os.environ and any(map(needs_data, sets)):
        parser.error("set AHOFM_DATA to the folder of airfoil.csv, concrete.csv, ..., large")


def all_cells(arguments: argparse.Namespace, sets: list[str]) -> list[Cell]:
    """Every library on every split of every set."""
    peers, seeds = arguments.peers, arguments.seeds
    return [Cell(name, seed, peer) for seed in seeds for name in sets for peer in peers]


def compute(arguments: argparse.Namespace, script: Path, cells: list[Cell]) -> Results:
    """Fit what the file of figures does not hold, each fit in a process of its own.

    Args:
        arguments: of the command, complete.
        script: of the command, which is started again with `--one` for each fit.
        cells: what is to be fitted.
    """
    results = Results(arguments.out)
    for cell in cells:
        if cell.peer in arguments.redo:
            results.forget(cell)
    limits = {"seconds": arguments.limit, "gigabytes": arguments.memory}
    run = partial(run_apart, script=script, **limits)
    left = fill(cells, results, run, budget=arguments.budget, **limits)
    if left:
        print(f"{left} of {len(cells)} cells are left: call again", file=sys.stderr)
    return results


def answer_one(text: str) -> None:
    """What the process of one fit does: print its figures."""
    cell, seconds, gigabytes = json.loads(text)
    print(json.dumps(run_here(Cell(**cell), seconds, gigabytes)))
