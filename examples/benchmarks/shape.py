"""Are rising smooths nearer to a rising truth than free ones, and do their bands cover it?

    python examples/benchmarks/shape.py             # 20 simulations of six truths: four minutes
    python examples/benchmarks/shape.py --seeds 2 --sizes 100

Six functions that rise from 0 to 1, of one feature with even rows, in noise; `s(x, shape="increasing")`
beside the free `s(x)` and, where Rscript and mgcv are installed, mgcv's `s(x, bs="ps", k=20)` by REML.
`exp` is convex as well, `root` concave: they are fitted with both words too. The error is the root of
the mean squared distance from the truth on a grid, in shares of mgcv's (of the free smooth's without
mgcv); `cover` is the share of the grid where the band of 95 % holds the truth.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
logging.getLogger("tensorflow").setLevel(logging.ERROR)  # many models in one process are what is wanted

FIRST_SEED = 100
NOISE = 0.3
TRUTHS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "line": lambda x: x,
    "logistic": lambda x: 1 / (1 + np.exp(-20 * (x - 0.5))),
    "flat, then a line": lambda x: np.maximum(x - 0.6, 0) * 2.5,
    "root": np.sqrt,
    "exp": lambda x: np.expm1(3 * x) / np.expm1(3),
    "two steps": lambda x: 0.5 + np.tanh(15 * (x - 0.25)) / 4 + np.tanh(15 * (x - 0.75)) / 4,
}
WAYS = {
    "free": "s(x)",
    "increasing": 's(x, shape="increasing")',
    "both words": 's(x, shape="increasing {}")',
}
BENT = {"root": "concave", "exp": "convex"}
GRID = np.linspace(0.01, 0.99, 99)
_R = """
library(mgcv)
d <- read.csv("rows.csv"); grid <- data.frame(x = read.csv("grid.csv")$x)
fits <- lapply(split(d, d$id), function(own) {
  predict(gam(y ~ s(x, bs = "ps", k = 20), data = own, method = "REML"), grid)
})
write.csv(do.call(cbind, fits), "fits.csv", row.names = FALSE)
"""
Frame = pd.DataFrame


def simulate(truth: str, rows: int, seed: int) -> Frame:
    """Rows of one simulation."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=rows)
    return pd.DataFrame({"x": x, "y": TRUTHS[truth](x) + NOISE * rng.normal(size=rows)})


def fit_own(term: str, data: Frame, truth: np.ndarray) -> tuple[float, float]:
    """Error on the grid, and share of it that the band holds."""
    import keras

    import ahofm_keras as ak

    keras.utils.clear_session(free_memory=True)
    model = ak.AdditiveModel(f"y ~ {term}", data)
    model.fit(data, verbose=0)
    band = model.predict({"x": GRID}, interval=0.95)
    covered = (band["lower"] <= truth) & (truth <= band["upper"])
    return root_mean_square(band["mean"] - truth), float(np.mean(covered))


def root_mean_square(values: object) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def fit_mgcv(data: Sequence[Frame]) -> np.ndarray | None:
    """mgcv's curves on the grid, `(g, k)` of k sets of rows; None where it is not installed."""
    if shutil.which("Rscript") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        frames = [own.assign(id=number) for number, own in enumerate(data)]
        pd.concat(frames).to_csv(place / "rows.csv", index=False)
        pd.DataFrame({"x": GRID}).to_csv(place / "grid.csv", index=False)
        ended = subprocess.run(["Rscript", "-e", _R], cwd=place, capture_output=True, check=False)
        return pd.read_csv(place / "fits.csv").to_numpy() if ended.returncode == 0 else None


def compare(truth: str, rows: int, seeds: int) -> dict[str, float]:
    """Mean errors of one truth, as shares, and coverages."""
    wanted = TRUTHS[truth](GRID)
    data = [simulate(truth, rows, FIRST_SEED + number) for number in range(seeds)]
    found: dict[str, float] = {}
    for way, term in WAYS.items():
        if "{}" in term and truth not in BENT:
            continue
        own = [fit_own(term.format(BENT.get(truth)), each, wanted) for each in data]
        found[way], found[f"cover, {way}"] = np.mean(own, axis=0).tolist()
    curves = fit_mgcv(data)
    if curves is not None:
        found["mgcv"] = float(np.mean([root_mean_square(own - wanted) for own in curves.T]))
    against = found.get("mgcv", found["free"])
    shares = {way: found[way] / against for way in WAYS if way in found}
    covers = {name: value for name, value in found.items() if name.startswith("cover")}
    return {"error": against, **shares, **covers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="simulations of each truth (20)")
    parser.add_argument("--sizes", default="100,400", help="numbers of rows, with commas (100,400)")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = {
        (rows, truth): compare(truth, rows, given.seeds)
        for rows in map(int, given.sizes.split(","))
        for truth in TRUTHS
    }
    table = pd.DataFrame(lines).T.rename_axis(["rows", "truth"])
    print(table.to_string(float_format=lambda value: f"{value:.3f}", na_rep=""))
    print("geometric means of the shares:")
    print(np.exp(np.log(table[list(WAYS)]).mean()).round(3).to_string())


if __name__ == "__main__":
    main()
