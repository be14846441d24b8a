"""Arguments, progress, tables, figures and the record of a run."""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
# Many models in one process are what is wanted here; TensorFlow would warn of it.
logging.getLogger("tensorflow").setLevel(logging.ERROR)

DEFAULT_FOLDER = Path("paper_results")
SizeType = TypeVar("SizeType")


@dataclass(frozen=True)
class Run:
    """One call of an experiment.

    Args:
        name: of the experiment; its files start with it.
        form: `"quick"`, `"full"` or `"tiny"`.
        size: what is simulated and fitted, a dataclass of the experiment.
        out: folder of tables and figures.
        again: compute fits anew that are stored there.
        changed: what was changed of the form's size, as it was given.
    """

    name: str
    form: str
    size: Any
    out: Path
    again: bool = False
    changed: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        changes = f" --with {' '.join(self.changed)}" if self.changed else ""
        return f"python examples/paper/{self.name}.py --{self.form}{changes}"


def read_run(name: str, description: str, sizes: Mapping[str, SizeType]) -> Run:
    """The run that the command line asks for."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument(
        "--quick", dest="form", action="store_const", const="quick", help="minutes; default"
    )
    forms.add_argument(
        "--full", dest="form", action="store_const", const="full", help="the paper's size"
    )
    forms.add_argument("--tiny", dest="form", action="store_const", const="tiny", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=DEFAULT_FOLDER, help=f"folder ({DEFAULT_FOLDER})")
    parser.add_argument("--again", action="store_true", help="compute stored fits anew")
    known = ", ".join(field.name for field in fields(next(iter(sizes.values()))))
    parser.add_argument("--with", dest="changed", nargs="+", default=[], metavar="name=value",
                        help=f"other sizes, e.g. seeds=3 rows=2000,4000; names: {known}")  # fmt: skip
    given = parser.parse_args()
    form = given.form or "quick"
    size = change(sizes[form], given.changed)
    return Run(name, form, size, given.out, given.again, tuple(given.changed))


def change(size: Any, changes: list[str]) -> Any:
    """A size with some of its fields replaced: `["seeds=3", "rows=2000,4000"]`."""
    known = {field.name: getattr(size, field.name) for field in fields(size)}
    new = {}
    for text in changes:
        name, _, value = text.partition("=")
        if name not in known:
            raise SystemExit(f"--with knows {', '.join(known)}. Received: {name}.")
        old = known[name]
        if isinstance(old, tuple):
            new[name] = tuple(type(old[0])(part) for part in value.split(",") if part)
        else:
            new[name] = type(old)(value)
    return replace(size, **new)


class Store:
    """Figures of fits by what was fitted, in a file of JSON lines.

    A run that was stopped goes on where it was; a larger one takes over what a smaller one had.

    Args:
        run: its folder and experiment name the file.
        name: of the file where experiments share fits.
    """

    def __init__(self, run: Run, name: str | None = None) -> None:
        self.path = run.out / f"{name or run.name}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        stored = [json.loads(line) for line in lines]
        self.figures = {self._text(line["key"]): line["figures"] for line in stored}
        self.again, self._fresh = run.again, set()

    def get(self, key: Mapping[str, Any], compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        text = self._text(key)
        if text not in self.figures or (self.again and text not in self._fresh):
            start = time.perf_counter()
            self.figures[text] = json.loads(json.dumps(compute()))
            self._fresh.add(text)
            with self.path.open("a") as file:
                file.write(json.dumps({"key": dict(key), "figures": self.figures[text]}) + "\n")
            shown = ", ".join(f"{name} {value}" for name, value in key.items())
            print(f"{shown}: {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
        return self.figures[text]

    @staticmethod
    def _text(key: Mapping[str, Any]) -> str:
        return json.dumps(dict(key), sort_keys=True)


def write_table(run: Run, name: str, table: pd.DataFrame, title: str, digits: int = 4) -> None:
    """Print a table, and write it as CSV."""
    print(f"\n{title}")
    print(table.to_string(index=False, float_format=lambda value: f"{value:.{digits}g}"), flush=True)
    run.out.mkdir(parents=True, exist_ok=True)
    table.to_csv(run.out / f"{name}.csv", index=False, float_format="%.6g")


def save_figure(run: Run, name: str, figure: Any) -> None:
    """Write a figure as PNG and PDF."""
    run.out.mkdir(parents=True, exist_ok=True)
    for suffix in ("png", "pdf"):
        figure.savefig(run.out / f"{name}.{suffix}", dpi=130, bbox_inches="tight")
    import matplotlib.pyplot as plt

    plt.close(figure)


def write_record(run: Run, seconds: float) -> None:
    """Write what was run and on what, for the page."""
    record = {
        "command": run.command,
        "form": run.form,
        "size": asdict(run.size),
        "seconds": round(seconds, 1),
        "machine": machine(),
    }
    (run.out / f"{run.name}.json").write_text(json.dumps(record, indent=1))


def machine() -> dict[str, Any]:
    affinity = getattr(os, "sched_getaffinity", None)
    packages = {}
    for package in ("tensorflow", "keras", "numpy"):
        try:
            packages[package] = version(package)
        except PackageNotFoundError:  # e.g. tensorflow under another name
            packages[package] = "?"
    cores = len(affinity(0)) if affinity else os.cpu_count()
    return {"cores": cores, "python": platform.python_version(), **packages}


def execute(
    name: str, description: str, sizes: Mapping[str, Any], experiment: Callable[[Run], None]
) -> None:
    """Run an experiment from the command line."""
    import matplotlib

    matplotlib.use("Agg")
    run = read_run(name, description, sizes)
    print(run.command)
    start = time.perf_counter()
    experiment(run)
    seconds = time.perf_counter() - start
    write_record(run, seconds)
    print(f"\n{seconds:.0f} seconds; tables and figures are in {run.out}")
