"""How near are smooths of places and regions to the truth, beside mgcv's?

    python examples/benchmarks/isotropic.py              # twenty simulations: three minutes
    python examples/benchmarks/isotropic.py --seeds 3 --only "tp"

Surfaces are those of mgcv's own examples: two bumps over a square (`gamSim(2)`, 400 rows, noise of
0.1), the same times a parabola of a third feature (`test2` of `?te`, 500 rows, noise of 0.2), and a wave
over 49 regions on a grid, of which two have no rows (300 rows, noise of 0.4). mgcv chooses its smoothing
by REML, with its default k but for `te`; both fit the same rows. The error is the root of the mean
squared distance from the truth at 1,000 places, or at all regions. R with mgcv runs in the same command.
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
from pathlib import Path

import numpy as np
import pandas as pd

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
logging.getLogger("tensorflow").setLevel(logging.ERROR)  # many models in one process are what is wanted

Frame = pd.DataFrame
NEW = 1000
REGIONS = [f"r{i}{j}" for i in range(7) for j in range(7)]
# Without rows.
EMPTY = ("r22", "r45")
NEIGHBOURS = {
    own: [
        other
        for other in REGIONS
        if abs(int(own[1]) - int(other[1])) + abs(int(own[2]) - int(other[2])) == 1
    ]
    for own in REGIONS
}


def bumps(v: np.ndarray, w: np.ndarray) -> np.ndarray:
    """`f2` of `gamSim(2)`, `test1` of `?te`."""
    found = 1.2 * np.exp(-(((v - 0.2) / 0.3) ** 2) - ((w - 0.3) / 0.4) ** 2)
    found += 0.8 * np.exp(-(((v - 0.7) / 0.3) ** 2) - ((w - 0.8) / 0.4) ** 2)
    return np.asarray(np.pi**0.3 * 0.4 * found)


def place_truth(data: Frame) -> np.ndarray:
    return bumps(data.v.to_numpy(), data.w.to_numpy())


def product_truth(data: Frame) -> np.ndarray:
    return place_truth(data) * (data.u.to_numpy() - 0.5) ** 2 * 20


def region_truth(data: Frame) -> np.ndarray:
    i, j = (data.region.str[place].astype(int).to_numpy() for place in (1, 2))
    return np.asarray(np.sin(i / 2) + j / 4)


@dataclass(frozen=True)
class Case:
    """A term here, the same in mgcv, and the truth that both are after.

    Args:
        term: here.
        theirs: mgcv's formula.
        truth: at rows.
        rows: of a simulation.
        noise: its standard deviation.
    """

    term: str
    theirs: str
    truth: Callable[[Frame], np.ndarray]
    rows: int
    noise: float

    def simulate(self, seed: int) -> tuple[Frame, Frame]:
        """Training rows, and rows at which the error is measured, without noise."""
        rng = np.random.default_rng([seed, self.rows])
        if self.truth is region_truth:
            present = [region for region in REGIONS if region not in EMPTY]
            train = pd.DataFrame({"region": [*present, *rng.choice(present, self.rows - len(present))]})
            new = pd.DataFrame({"region": REGIONS})
        else:
            train, new = (
                pd.DataFrame(rng.uniform(size=(n, 3)), columns=list("vwu")) for n in (self.rows, NEW)
            )
            new = train.min() + new * (train.max() - train.min())
        train["y"] = self.truth(train) + self.noise * rng.normal(size=len(train))
        return train, new.assign(y=self.truth(new))


CASES = {
    "tp": Case("s(v, w)", "y ~ s(v, w)", place_truth, 400, 0.1),
    "ds": Case(
        's(v, w, bs="ds", m=(1, 0.5))', 'y ~ s(v, w, bs = "ds", m = c(1, 0.5))', place_truth, 400, 0.1
    ),
    "gp": Case('s(v, w, bs="gp")', 'y ~ s(v, w, bs = "gp")', place_truth, 400, 0.1),
    "te": Case(
        "te(v, w, u, d=(2, 1), k=(30, 5))",
        'y ~ te(v, w, u, k = c(30, 5), d = c(2, 1), bs = c("tp", "cr"))',
        product_truth,
        500,
        0.2,
    ),
    "mrf": Case(
        's(region, bs="mrf")', 'y ~ s(region, bs = "mrf", xt = list(nb = nb))', region_truth, 300, 0.4
    ),
}

R = """
suppressPackageStartupMessages(library(mgcv))
arguments <- commandArgs(TRUE)
formula <- as.formula(arguments[1])
train <- read.csv(arguments[2]); new <- read.csv(arguments[3])
regions <- sort(unique(new$region))
knots <- NULL
if (length(regions)) {
  train$region <- factor(train$region, levels = regions)
  new$region <- factor(new$region, levels = regions)
  i <- as.integer(substr(regions, 2, 2)); j <- as.integer(substr(regions, 3, 3))
  nb <- lapply(seq_along(regions), function(k) regions[abs(i - i[k]) + abs(j - j[k]) == 1])
  names(nb) <- regions
  knots <- list(region = regions)
}
for (seed in unique(train$seed)) {
  fit <- gam(formula, data = train[train$seed == seed, ], method = "REML", knots = knots,
             drop.unused.levels = FALSE)
  own <- new[new$seed == seed, ]
  cat(sqrt(mean((predict(fit, own) - own$y)^2)), sum(fit$edf), "\\n")
}
"""


def fit_own(case: Case, train: Frame, new: Frame) -> tuple[float, float]:
    """Error and degrees of freedom of one fit."""
    import keras

    import ahofm_keras as ak

    keras.utils.clear_session(free_memory=True)
    neighbours = {"neighbours": {"region": NEIGHBOURS}} if "region" in train else {}
    model = ak.AdditiveModel(f"y ~ {case.term}", train, **neighbours)
    history = model.fit(train, verbose=0)
    error = float(np.sqrt(np.mean((model.predict(new) - new.y) ** 2)))
    return error, float(history.history["edf"][-1])


def fit_theirs(case: Case, trains: Frame, news: Frame) -> list[tuple[float, float]]:
    """The same by mgcv, of all simulations in one process."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("fit.R", "train.csv", "new.csv")]
        paths[0].write_text(R)
        trains.to_csv(paths[1], index=False)
        news.to_csv(paths[2], index=False)
        command = ["Rscript", str(paths[0]), case.theirs, *map(str, paths[1:])]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [(float(error), float(edf)) for error, edf in (line.split() for line in lines)]


def compare(case: Case, seeds: int) -> dict[str, object]:
    """One line of the table: mean errors of both, their ratio, degrees of freedom."""
    data = [case.simulate(seed) for seed in range(seeds)]
    own = np.array([fit_own(case, *pair) for pair in data])
    together = [
        pd.concat([frame.assign(seed=k) for k, frame in enumerate(side)])
        for side in zip(*data, strict=True)
    ]
    line: dict[str, object] = {"term": case.term, "error": own[:, 0].mean(), "edf": own[:, 1].mean()}
    if shutil.which("Rscript") is None:
        return line
    theirs = np.array(fit_theirs(case, *together))
    return line | {
        "error, mgcv": theirs[:, 0].mean(),
        "edf, mgcv": theirs[:, 1].mean(),
        "ratio": own[:, 0].mean() / theirs[:, 0].mean(),
        "no larger": f"{int((own[:, 0] <= theirs[:, 0]).sum())} of {seeds}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="simulations (20)")
    parser.add_argument("--only", choices=CASES, help="one of the terms")
    given = parser.parse_args()
    if given.seeds < 1:
        parser.error("--seeds must be 1 or more")
    warnings.simplefilter("ignore")
    chosen = [given.only] if given.only else list(CASES)
    if shutil.which("Rscript") is None:
        print("Rscript is not installed: mgcv is left out.")
    lines = [compare(CASES[name], given.seeds) for name in chosen]
    print(pd.DataFrame(lines).to_string(index=False, float_format=lambda value: f"{value:.3g}"))


if __name__ == "__main__":
    main()
