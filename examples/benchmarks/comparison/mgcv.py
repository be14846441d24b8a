"""mgcv through Rscript: `gam` with its defaults, `bam` where rows are many, and a choice of formulas."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from comparison.encoding import as_known, numbers, strongest_pairs
from comparison.fitted import Fitted
from comparison.problems import Split, split

SCRIPT = Path(__file__).with_name("mgcv.R")
ROWS_OF_GAM = 10_000
ALL_PAIRS_UP_TO = 9
SOME_PAIRS = 10
FEW_PAIRS = 3


@cache
def installed() -> bool:
    if shutil.which("Rscript") is None:
        return False
    call = ["Rscript", "--vanilla", "-e", "library(mgcv)"]
    return subprocess.run(call, capture_output=True, check=False).returncode == 0


class Formulas:
    """Formulas in which features are called v1, v2, ... and the response is y.

    Args:
        rows: a number of few values is linear, none has more functions than values, and one that
            repeats another is left out.
    """

    FEW = 4

    def __init__(self, rows: Split) -> None:
        self.rows = rows
        self.alias = {name: f"v{j + 1}" for j, name in enumerate(rows.features)}
        self.sizes = {name: rows.train[name].nunique() for name in numbers(rows, distinct=True)}
        self.curved = [name for name, size in self.sizes.items() if size >= self.FEW]

    def mains(self, functions: int, shrink_texts: bool = False) -> list[str]:
        terms = [
            f"s({self.alias[name]}, k = {min(functions, size)})"
            if name in self.curved
            else self.alias[name]
            for name, size in self.sizes.items()
        ]
        texts = [self.alias[name] for name in self.rows.texts]
        return terms + [f's({name}, bs = "re")' if shrink_texts else name for name in texts]

    def pairs(self) -> list[str]:
        """`ti` of all pairs of up to nine features, else of the strongest; as rich as rows allow."""
        few = len(self.curved) <= ALL_PAIRS_UP_TO
        every = list(combinations(self.curved, 2))
        chosen = every if few else strongest_pairs(self.rows, self.curved, SOME_PAIRS)
        # mgcv wants fewer coefficients than rows, whatever the penalties.
        room = 0.9 * len(self.rows.train) - sum(min(10, size) for size in self.sizes.values())
        for functions in (5, 4, 3):
            if len(chosen) * (functions - 1) ** 2 <= room:
                break
        else:
            chosen = strongest_pairs(self.rows, self.curved, max(int(room // 4), 0))
        return [self.ti(pair, functions) for pair in chosen]

    def ti(self, pair: tuple[str, str], functions: int) -> str:
        sizes = ", ".join(str(min(functions, self.sizes[name])) for name in pair)
        return f"ti({self.alias[pair[0]]}, {self.alias[pair[1]]}, k = c({sizes}))"


def formula(terms: list[str]) -> str:
    return f"y ~ {' + '.join(terms)}"


def default_calls(rows: Split) -> list[str]:
    function = "gam" if len(rows.train) <= ROWS_OF_GAM else "bam"
    return [f"{function}({formula(Formulas(rows).mains(10))}, data = rows)"]


def tuned_calls(rows: Split) -> list[str]:
    inner = Formulas(split(rows.train, rows.response, rows.seed))
    choices = [
        inner.mains(10, shrink_texts=True),
        inner.mains(20, shrink_texts=True),
        inner.mains(10, shrink_texts=True) + inner.pairs(),
    ]
    return [f"bam({formula(terms)}, data = rows, discrete = TRUE, select = TRUE)" for terms in choices]


def location_scale_calls(rows: Split) -> list[str]:
    """`gaulss`: a formula of the mean, main effects for the logarithm of the standard deviation."""
    choices = pair_choices(rows)
    spread = " + ".join(
        Formulas(split(rows.train, rows.response, rows.seed)).mains(5, shrink_texts=True)
    )
    return [
        f"gam(list({formula(terms)}, ~ {spread}), family = gaulss(), data = rows)" for terms in choices
    ]


def heavy_tails_calls(rows: Split) -> list[str]:
    """`scat`: a t distribution of one scale."""
    choices = pair_choices(rows)
    return [f"bam({formula(terms)}, family = scat(), data = rows, discrete = TRUE)" for terms in choices]


def pair_choices(rows: Split) -> list[list[str]]:
    """Main effects, and with them the strongest pairs: all of them would take `gaulss` hours."""
    inner = Formulas(split(rows.train, rows.response, rows.seed))
    mains = inner.mains(10, shrink_texts=True)
    pairs = strongest_pairs(inner.rows, inner.curved, FEW_PAIRS)
    return [mains, mains + [inner.ti(pair, 5) for pair in pairs]]


def write_rows(rows: Split, folder: Path) -> None:
    """Training and test rows, and the numbers of those training rows that choose among calls."""
    names = Formulas(rows).alias
    for label, data in (("train", rows.train), ("test", rows.test)):
        frame = as_known(rows, data).rename(columns=names).assign(y=data[rows.response])
        frame.to_csv(folder / f"{label}.csv", index=False)
    held_out = np.random.default_rng(rows.seed).permutation(len(rows.train))[: len(rows.train) // 5]
    np.savetxt(folder / "held_out.txt", held_out + 1, fmt="%d")


def run(rows: Split, calls: list[str]) -> Fitted:
    """Fit in a process of R; of several calls the one that predicts held out training rows best.

    Raises:
        MemoryError: where R could not allocate.
        RuntimeError: with the last line that R printed.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_rows(rows, folder)
        (folder / "calls.txt").write_text("\n".join(calls) + "\n")
        call = ["Rscript", "--vanilla", str(SCRIPT), name]
        answer = subprocess.run(call, capture_output=True, text=True, check=False)
        if answer.returncode:
            said = answer.stderr.strip().splitlines() or [f"ended with {answer.returncode}"]
            if answer.returncode < 0:
                raise TimeoutError(f"R was ended by signal {-answer.returncode}")
            raise (MemoryError if "allocate" in answer.stderr else RuntimeError)(said[-1])
        figures = json.loads(answer.stdout.splitlines()[-1])
        predicted = pd.read_csv(folder / "predicted.csv")
    best = calls[figures.pop("choice") - 1]
    return Fitted(
        lambda data: predicted["mean"].to_numpy(),
        log_density=lambda data: predicted["log_density"].to_numpy(),
        setting=best if len(calls) > 1 else "",
        own=figures,
    )


def default(rows: Split) -> Fitted:
    return run(rows, default_calls(rows))


def all_pairs(rows: Split, discrete: bool = False) -> Fitted:
    """`bam` with an `s` of each feature and a `ti` of each pair, at mgcv's default sizes."""
    own = Formulas(rows)
    terms = own.mains(10) + [own.ti(pair, 5) for pair in combinations(own.curved, 2)]
    return run(rows, [f"bam({formula(terms)}, data = rows, discrete = {str(discrete).upper()})"])


def chosen(rows: Split, calls_of: Callable[[Split], list[str]] = tuned_calls) -> Fitted:
    start = time.process_time()
    calls = calls_of(rows)
    screening = time.process_time() - start
    fitted = run(rows, calls)
    own = dict(fitted.own or {})
    # Looking for strong pairs is part of the fit.
    own |= {name: own[name] + screening for name in ("fit", "fit_wall")}
    return replace(fitted, own=own)
