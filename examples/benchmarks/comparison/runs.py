"""One fit in a process of its own, on one core, with limits; and the file that keeps the figures."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from typing import Any

from memory import peak_megabytes

from comparison.fitted import SCORES, beyond, log_score_of, missed
from comparison.problems import Split
from comparison.registry import PEERS, Peer
from comparison.sets import rows_of

Figures = dict[str, Any]

# For every library: one thread, so that times compare.
ONE_THREAD = dict.fromkeys(
    [
        "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS", "TF_NUM_INTRAOP_THREADS",
        "TF_NUM_INTEROP_THREADS",
    ],
    "1",
)  # fmt: skip
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", "CUDA_VISIBLE_DEVICES": "-1"}
# A process that sleeps never reaches its limit of processor time.
PATIENCE = 5.0


@dataclass(frozen=True)
class Cell:
    """One fit: which library on which split of which set.

    Args:
        set: name of a data set, or "simulation:rows".
        seed: of the split, of the simulation and of the library.
        peer: a key of `PEERS`.
    """

    set: str
    seed: int
    peer: str

    @property
    def key(self) -> str:
        return f"{self.set}/{self.seed}/{self.peer}"


def measure(peer: Peer, rows: Split) -> Figures:
    """Fit and predict in this process.

    Returns:
        `error` of the response's family (also as `rmse` where it is that), `missed` where the truth is
        known, how far predictions lie `beyond` the training responses, `log_score` where there is a
        predictive distribution, seconds of processor time (`fit`, `predict`) and of the clock
        (`fit_wall`, `predict_wall`), megabytes at the peak of fit and prediction (`peak`) and without
        what imports and data took (`grown`), `warnings` by category.
    """

    def clock() -> tuple[float, float]:
        return time.process_time(), time.perf_counter()

    imported = peak_megabytes()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        marks = [clock()]
        fitted = peer.fit(rows)
        marks.append(clock())
        mean = fitted.mean(rows.test)
        marks.append(clock())
    peak = peak_megabytes()
    (fit, fit_wall), (predict, predict_wall) = (
        (after[0] - before[0], after[1] - before[1]) for before, after in pairwise(marks)
    )
    y = rows.test[rows.response]
    figures = {
        "error": SCORES[rows.family](mean, y), "beyond": beyond(mean, rows.y), "fit": fit,
        "predict": predict, "fit_wall": fit_wall, "predict_wall": predict_wall, "peak": peak,
        "grown": peak - imported,
        "warnings": dict(Counter(warning.category.__name__ for warning in heard)),
    }  # fmt: skip
    if rows.family == "gaussian":
        figures["rmse"] = figures["error"]
    if rows.truth is not None:
        figures["missed"] = missed(mean, rows.truth)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        score = log_score_of(fitted, rows.test, rows.response)
    if score is not None:
        figures["log_score"] = score
    if fitted.setting:
        figures["setting"] = fitted.setting
    return figures | dict(fitted.own or {})


def limit_resources(seconds: float, gigabytes: float) -> None:
    """From now on so much processor time, and so much memory, of this process and of those it starts."""
    used = int(time.process_time()) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (used + int(seconds), used + int(seconds) + 5))
    size = int(gigabytes * 1024**3)
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def run_here(cell: Cell, seconds: float, gigabytes: float) -> Figures:
    """What the process of one cell does."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    peer = PEERS[cell.peer]
    rows = rows_of(cell.set, cell.seed)
    if peer.module != "R":
        import_module(peer.module)
    limit_resources(seconds, gigabytes)
    try:
        figures = measure(peer, rows)
    except MemoryError:
        return {"memory": gigabytes}
    except TimeoutError:
        return {"limit": seconds}
    try:
        return figures | {"version": version(peer.package)}
    except PackageNotFoundError:
        return figures


def run_apart(cell: Cell, script: Path, seconds: float, gigabytes: float) -> Figures:
    """Run a cell in a process of its own.

    Returns:
        Its figures; or only `limit` (seconds) where it was stopped, `memory` (gigabytes) where it needed
        more, `missing` where the library is not installed, `failed` with the last words of another end.
    """
    if not PEERS[cell.peer].installed:
        return {"missing": True}
    order = json.dumps([asdict(cell), seconds, gigabytes])
    call = [sys.executable, str(script), "--one", order]
    environment = os.environ | ONE_THREAD | QUIET
    with subprocess.Popen(
        call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            output, complaint = process.communicate(timeout=PATIENCE * seconds + 60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # its group: R may run below it
            return {"limit": seconds}
    if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return {"limit": seconds}
    if process.returncode:
        last = (complaint.strip().splitlines() or ["no words"])[-1]
        return (
            {"memory": gigabytes} if "emory" in last or "bad_alloc" in last else {"failed": last[:300]}
        )
    return json.loads(output.splitlines()[-1])


class Results:
    """Figures by cell in a file of JSON lines; the last line of a cell counts.

    Args:
        path: of the file, made where there is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.figures: dict[str, Figures] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                entry = json.loads(line)
                self._take(entry.pop("cell"), entry)

    def _take(self, key: str, figures: Figures) -> None:
        if figures.get("forgotten"):
            self.figures.pop(key, None)
        else:
            self.figures[key] = figures

    def get(self, cell: Cell) -> Figures | None:
        return self.figures.get(cell.key)

    def add(self, cell: Cell, figures: Figures) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps({"cell": cell.key, **figures}) + "\n")
        self._take(cell.key, figures)

    def forget(self, cell: Cell) -> None:
        """So that it is computed anew, now or by a later call."""
        if cell.key in self.figures:
            self.add(cell, {"forgotten": True})

    def settles(self, cell: Cell, seconds: float, gigabytes: float) -> bool:
        """Whether nothing new is to be expected: a larger limit or a new package is a reason to try."""
        known = self.get(cell)
        if known is None or "missing" in known:
            return False
        return known.get("limit", seconds) >= seconds and known.get("memory", gigabytes) >= gigabytes


Run = Callable[[Cell], Figures]


def smaller_sets(name: str, names: list[str]) -> list[str]:
    """The same simulation with fewer rows."""
    kind, _, rows = name.partition(":")
    if not rows:
        return []
    parts = [other.partition(":") for other in names]
    return [f"{k}:{r}" for k, _, r in parts if k == kind and r and int(r) < int(rows)]


def hopeless(cell: Cell, results: Results, names: list[str], seconds: float) -> Figures | None:
    """The limit that another seed or fewer rows of the same set ran into already."""
    for key, figures in results.figures.items():
        name, _, peer = key.split("/")
        same = peer == cell.peer and name in (cell.set, *smaller_sets(cell.set, names))
        if same and figures.get("limit", 0) >= seconds:
            return {"limit": figures["limit"], "untried": True}
    return None


def fill(
    cells: list[Cell], results: Results, run: Run, seconds: float, gigabytes: float, budget: float
) -> int:
    """Compute what the file does not hold.

    Args:
        cells: in this order.
        results: that grow.
        run: computes a cell.
        seconds: limit of a fit.
        gigabytes: limit of its memory.
        budget: no fit begins after so many seconds.

    Returns:
        How many cells are left.
    """
    start, names, left = time.monotonic(), sorted({cell.set for cell in cells}), 0
    for cell in cells:
        if results.settles(cell, seconds, gigabytes):
            continue
        if time.monotonic() - start > budget:
            left += 1
            continue
        figures = hopeless(cell, results, names, seconds) or run(cell)
        results.add(cell, figures)
        print(f"{cell.key}: {told(figures)}", file=sys.stderr, flush=True)
    return left


def told(figures: Figures) -> str:
    if "error" in figures:
        return f"{figures['error']:.5g} in {figures['fit']:.1f} s"
    return ", ".join(f"{name} {value}" for name, value in figures.items())
