"""mgcv through Rscript, where both are present."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

# Reads train.csv, formula.txt and, where they are there, the rows to predict; writes what was asked for.
_SCRIPT = """
folder <- commandArgs(trailingOnly = TRUE)[1]
suppressPackageStartupMessages(library(mgcv))
peak <- function() {
  if (!file.exists("/proc/self/status")) return(sum(gc()[, 6]))
  line <- grep("^VmHWM", readLines("/proc/self/status"), value = TRUE)
  as.numeric(gsub("[^0-9]", "", line)) / 1024
}
here <- function(name) file.path(folder, name)
train <- read.csv(here("train.csv"))
formula <- as.formula(readLines(here("formula.txt")))
before <- peak()
start <- proc.time()
model <- bam(formula, data = train)
took <- proc.time() - start
after <- peak()
keep <- function(values, name) write.csv(values, here(name), row.names = FALSE)
if (file.exists(here("fresh.csv")))
  keep(data.frame(mean = predict(model, read.csv(here("fresh.csv")))), "mean.csv")
if (file.exists(here("grid.csv")))
  keep(predict(model, read.csv(here("grid.csv")), type = "terms"), "terms.csv")
cat(sprintf('{"seconds": %.3f, "processor": %.3f, "peak": %.1f, "grown": %.1f}\\n',
  took[["elapsed"]], took[["user.self"]] + took[["sys.self"]], after, after - before))
"""


@cache
def is_present() -> bool:
    """Whether Rscript and mgcv are there."""
    if shutil.which("Rscript") is None:
        return False
    call = ["Rscript", "--vanilla", "-e", "library(mgcv)"]
    return subprocess.run(call, capture_output=True, check=False).returncode == 0


def fit_bam(
    formula: str, train: pd.DataFrame, fresh: pd.DataFrame | None = None,
    grid: pd.DataFrame | None = None, limit: float | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Fit `bam` (fREML, no discretisation).

    Returns:
        `seconds` of the fit, `processor` seconds, `peak` memory, by how much it has `grown` over R with
        the data (MB), and, where asked for, `mean` of the fresh rows and `terms` on the grid; `limit`
        alone if it was stopped.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, frame in (("train", train), ("fresh", fresh), ("grid", grid)):
            if frame is not None:
                frame.to_csv(folder / f"{file}.csv", index=False)
        (folder / "formula.txt").write_text(formula + "\n")
        (folder / "fit.R").write_text(_SCRIPT)
        call = ["Rscript", "--vanilla", str(folder / "fit.R"), name]
        try:
            answer = subprocess.run(call, capture_output=True, text=True, check=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return {"limit": limit}
        figures = json.loads(answer.stdout.splitlines()[-1])
        if fresh is not None:
            figures["mean"] = pd.read_csv(folder / "mean.csv")["mean"].to_numpy()
        if grid is not None:
            figures["terms"] = pd.read_csv(folder / "terms.csv", dtype=float)
        return figures
