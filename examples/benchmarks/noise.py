"""What is left of features that have no effect?

    python examples/benchmarks/noise.py            # ten simulations of each kind: ten minutes
    python examples/benchmarks/noise.py --seeds 2

Two kinds of data. "noise": 400 rows, six features, none of which has an effect. "two of twenty": 150
rows, twenty features, of which two have one. Fitted are the main effects, and these with all pairs, each
with the library's defaults; beside them mgcv's `gam` with method = "REML", with and without select =
TRUE, where Rscript and mgcv are found (P-splines, k = 10, of twenty features k = 6: more coefficients
than rows are refused).

The error is the mean squared distance from the true mean on 2,000 fresh rows, clipped to the training
range: over the variance of the noise for the first kind, over that of the true mean for the second. The
edf are those of the whole model without its intercept.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
logging.getLogger("tensorflow").setLevel(logging.ERROR)  # many models in one process are what is wanted

FRESH_ROWS = 2000
_NOISE = 0.5

_GAM = """
arguments <- commandArgs(trailingOnly = TRUE)
here <- function(name) file.path(arguments[1], name)
suppressPackageStartupMessages(library(mgcv))
model <- gam(as.formula(readLines(here("formula.txt"))), data = read.csv(here("train.csv")),
             method = "REML", select = arguments[2] == "TRUE")
write.csv(data.frame(mean = predict(model, read.csv(here("fresh.csv"))), edf = sum(model$edf) - 1),
          here("fitted.csv"), row.names = FALSE)
"""


@dataclass(frozen=True)
class Kind:
    """What is simulated.

    Args:
        rows: of the training data.
        features: number of features.
        mean: the true mean of features `(n, p)`.
        k: functions of a smooth of mgcv's.
    """

    rows: int
    features: int
    mean: Callable[[np.ndarray], np.ndarray]
    k: int

    @property
    def names(self) -> list[str]:
        return [f"x{j}" for j in range(self.features)]


KINDS = {
    "noise": Kind(400, 6, lambda x: np.zeros(len(x)), 10),
    "two of twenty": Kind(150, 20, lambda x: 0.5 * np.sin(2 * x[:, 0]) + 0.3 * x[:, 1], 6),
}

Frame = pd.DataFrame
# Means of the fresh rows and degrees of freedom, from training rows and fresh ones.
Method = Callable[[Kind, Frame, Frame], tuple[np.ndarray, float]]


def simulate(kind: Kind, seed: int) -> tuple[Frame, Frame]:
    """Training rows with `y`, and fresh rows with their true `mean`."""
    rng = np.random.default_rng(seed)
    x, fresh = rng.normal(size=(kind.rows, kind.features)), rng.normal(size=(FRESH_ROWS, kind.features))
    fresh = np.clip(fresh, x.min(axis=0), x.max(axis=0))
    train = pd.DataFrame(x, columns=kind.names)
    train["y"] = kind.mean(x) + _NOISE * rng.normal(size=kind.rows)
    return train, pd.DataFrame(fresh, columns=kind.names).assign(mean=kind.mean(fresh))


def fit_own(terms: str, kind: Kind, train: Frame, fresh: Frame) -> tuple[np.ndarray, float]:
    import keras

    import ahofm_keras as ak

    keras.utils.clear_session(free_memory=True)
    model = ak.AdditiveModel(f"y ~ {terms}", train)
    history = model.fit(train, verbose=0)
    return model.predict(fresh[kind.names]), history.history["edf"][-1] - 1


def fit_mgcv(select: bool, kind: Kind, train: Frame, fresh: Frame) -> tuple[np.ndarray, float]:
    with tempfile.TemporaryDirectory() as folder:
        train.to_csv(Path(folder) / "train.csv", index=False)
        fresh.to_csv(Path(folder) / "fresh.csv", index=False)
        smooths = [f"s({name}, bs = 'ps', k = {kind.k})" for name in kind.names]
        (Path(folder) / "formula.txt").write_text(f"y ~ {' + '.join(smooths)}\n")
        (Path(folder) / "fit.R").write_text(_GAM)
        call = ["Rscript", "--vanilla", str(Path(folder) / "fit.R"), folder, str(select).upper()]
        subprocess.run(call, check=True, capture_output=True)
        fitted = pd.read_csv(Path(folder) / "fitted.csv")
    return fitted["mean"].to_numpy(), float(fitted["edf"].iloc[0])


def methods() -> dict[str, Method]:
    """Ours, and mgcv's where it is there."""
    own: dict[str, Method] = {
        "main effects": partial(fit_own, "s(.)"),
        "all pairs": partial(fit_own, "ahofm(., D=2)"),
    }
    call = ["Rscript", "--vanilla", "-e", "library(mgcv)"]
    if not shutil.which("Rscript") or subprocess.run(call, capture_output=True, check=False).returncode:
        print("mgcv is left out: Rscript with mgcv was not found")
        return own
    return own | {"mgcv": partial(fit_mgcv, False), "mgcv, select": partial(fit_mgcv, True)}


def compare(name: str, seeds: int, chosen: dict[str, Method]) -> Frame:
    """A line a method: the mean of its error and edf."""
    kind, lines = KINDS[name], []
    for seed in range(seeds):
        train, fresh = simulate(kind, seed)
        size = np.var(fresh["mean"]) or _NOISE**2
        for label, method in chosen.items():
            mean, edf = method(kind, train, fresh)
            error = float(np.mean((mean - fresh["mean"]) ** 2)) / size
            lines.append({"data": name, "fit": label, "error": error, "edf": edf})
    return pd.DataFrame(lines).groupby(["data", "fit"], sort=False).mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10, help="simulations of each kind (10)")
    seeds = parser.parse_args().seeds
    if seeds < 1:
        parser.error("--seeds must be 1 or more")
    warnings.simplefilter("ignore")
    chosen = methods()
    table = pd.concat([compare(name, seeds, chosen) for name in KINDS])
    print(table.to_string(float_format=lambda value: f"{value:.3g}"))


if __name__ == "__main__":
    main()
