"""Smooths that are multiplied: how near are they to the truth, beside mgcv in the same run?

    python examples/benchmarks/by.py            # 20 simulations: five minutes, needs Rscript with mgcv
    python examples/benchmarks/by.py --seeds 5

The data are those of mgcv's own examples, `gamSim(4)` (a curve per level of a factor) and `gamSim(3)` (a
number times a smooth), 400 rows with noise of 2, and 12 groups whose curves deviate from a main one. R
draws them and fits mgcv with its default criterion and with REML; ours is fitted with its defaults.
The error is the root of the mean squared distance from the true predictor at the rows; what is printed
is its mean over the simulations, and ours as a share of mgcv's.
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
logging.getLogger("tensorflow").setLevel(logging.ERROR)  # many models in one process are what is wanted

# For each data set our formulas; those of mgcv stand in the script below.
FORMULAS = {
    "category": {
        "by=": "y ~ fac + s(x2, by=fac) + s(x0)",
        "id=": "y ~ fac + s(x2, by=fac, id=1) + s(x0)",
        "fs": 'y ~ s(x2, fac, bs="fs") + s(x0)',
        "sz": 'y ~ s(x2) + s(x2, fac, bs="sz") + s(x0)',
        "s + ti": "y ~ fac + s(x2) + ti(x2, fac) + s(x0)",
        "afm": "y ~ afm(x2, fac) + s(x0)",
    },
    "number": {
        "by=": "y ~ s(x2, by=x1)",
        "s + ti": "y ~ x1 + s(x2) + ti(x2, x1)",
        "afm": "y ~ afm(x2, x1)",
    },
    "groups": {
        "fs": 'y ~ s(x) + s(x, g, bs="fs")',
        "by=": "y ~ g + s(x, by=g)",
        "re": 'y ~ s(x) + s(g) + s(g, x, bs="re")',
    },
}
SCRIPT = """
suppressPackageStartupMessages(library(mgcv))
seeds <- as.integer(commandArgs(TRUE)[1])
folder <- commandArgs(TRUE)[2]
groups <- function(n = 600, levels = 12) {
  x <- runif(n)
  g <- factor(sample(sprintf("g%02d", 1:levels), n, TRUE))
  a <- rnorm(levels)[g]; b <- rnorm(levels)[g]; c <- runif(levels)[g]
  f <- 2 * sin(2 * pi * x) + 0.5 * a + 0.8 * sin(2 * pi * (x + c)) + 0.5 * b * x
  data.frame(x = x, g = g, f = f, y = f + rnorm(n))
}
make <- list(
  category = function() {
    d <- gamSim(4, n = 400, scale = 2, verbose = FALSE)
    d$f <- ifelse(d$fac == 1, d$f1, ifelse(d$fac == 2, d$f2, d$f3))
    levels(d$fac) <- c("a", "b", "c")
    d
  },
  number = function() { d <- gamSim(3, n = 400, scale = 2, verbose = FALSE); d$f <- d$f * d$x1; d },
  groups = groups)
forms <- list(
  category = list(`by=` = y ~ fac + s(x2, by = fac) + s(x0),
                  `id=` = y ~ fac + s(x2, by = fac, id = 1) + s(x0),
                  fs = y ~ s(x2, fac, bs = "fs") + s(x0),
                  sz = y ~ s(x2) + s(x2, fac, bs = "sz") + s(x0)),
  number = list(`by=` = y ~ s(x2, by = x1)),
  groups = list(fs = y ~ s(x) + s(x, g, bs = "fs"), `by=` = y ~ g + s(x, by = g),
                re = y ~ s(x) + s(g, bs = "re") + s(g, x, bs = "re")))
for (seed in seq_len(seeds)) for (kind in names(make)) {
  set.seed(seed)
  d <- make[[kind]]()
  for (term in names(forms[[kind]])) for (method in c("GCV.Cp", "REML"))
    d[[paste(term, method)]] <- as.numeric(predict(suppressWarnings(
      gam(forms[[kind]][[term]], data = d, method = method))))
  write.csv(d, file.path(folder, paste0(kind, "_", seed, ".csv")), row.names = FALSE)
}
"""


def error(fit: np.ndarray, truth: np.ndarray) -> float:
    return float(np.sqrt(np.mean((np.asarray(fit) - truth) ** 2)))


def compare(seeds: int, kinds: list[str]) -> pd.DataFrame:
    """A line per data set and kind of term."""
    import keras

    import ahofm_keras as ak

    found = []
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "by.R"
        script.write_text(SCRIPT)
        subprocess.run(["Rscript", str(script), str(seeds), folder], check=True)
        for kind in kinds:
            for seed in range(1, seeds + 1):
                data = pd.read_csv(Path(folder) / f"{kind}_{seed}.csv")
                truth = data.f.to_numpy()
                for term, formula in FORMULAS[kind].items():
                    keras.utils.clear_session(free_memory=True)
                    model = ak.fit(formula, data, verbose=0)
                    line = {"data": kind, "term": term, "ours": error(model.predict(data), truth)}
                    for method in ("GCV.Cp", "REML"):
                        if f"{term} {method}" in data:
                            line[method] = error(data[f"{term} {method}"], truth)
                    found.append(line)
    table = pd.DataFrame(found).groupby(["data", "term"], sort=False).mean()
    for method in ("GCV.Cp", "REML"):
        table[f"ours / {method}"] = table["ours"] / table[method]
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="simulations (20)")
    parser.add_argument("--data", nargs="*", default=list(FORMULAS), choices=list(FORMULAS))
    arguments = parser.parse_args()
    if arguments.seeds < 1:
        parser.error("--seeds must be 1 or more")
    warnings.simplefilter("ignore")
    table = compare(arguments.seeds, arguments.data)
    print(table.to_string(float_format=lambda value: f"{value:.3f}", na_rep=""))


if __name__ == "__main__":
    main()
