"""How near is the surface of a `te()` to the truth?

    python examples/benchmarks/tensor.py            # eight simulations: half a minute
    python examples/benchmarks/tensor.py --seeds 2

The data are those of the example of mgcv's own `te()`: 500 rows, two bumps, noise of 0.2. They are
stored with the errors of mgcv's fits in tests/fixtures/mgcv_surface.csv and .json; the R script beside
them made both, so that R is not needed here. The error is the root of the mean squared distance from the
true surface, at the training rows and on a grid of 30 x 30, clipped to their range here.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
logging.getLogger("tensorflow").setLevel(logging.ERROR)  # many models in one process are what is wanted

FIXTURES = Path(__file__).resolve().parents[2] / "tests" / "fixtures"
# Ours, and mgcv's fit beside which it stands: the same margins, or the defaults of both.
PAIRS = {
    "te(x, z, k=5, knots='even')": "ps5",
    "te(x, z, k=7, knots='even')": "ps7",
    "te(x, z, k=10, knots='even')": "ps10",
    "te(x, z)": "default",
}
Frame = pd.DataFrame


def true_surface(data: Frame) -> np.ndarray:
    """`test1` of mgcv's example."""
    x, z = 20 * data.x.to_numpy(), data.z.to_numpy()
    bumps = 1.2 * np.exp(-(((x - 0.2) / 0.3) ** 2) - ((z - 0.3) / 0.4) ** 2)
    bumps += 0.8 * np.exp(-(((x - 0.7) / 0.3) ** 2) - ((z - 0.8) / 0.4) ** 2)
    return np.pi**0.3 * 0.4 * bumps


def make_grid(points: int = 30) -> Frame:
    x, z = np.meshgrid(np.linspace(0, 1 / 20, points), np.linspace(0, 1, points))
    return pd.DataFrame({"x": x.ravel(), "z": z.ravel()})


def fit_own(term: str, train: Frame) -> dict[str, float]:
    """Errors and degrees of freedom of one fit."""
    import keras

    import ahofm_keras as ak

    keras.utils.clear_session(free_memory=True)
    model = ak.AdditiveModel(f"y ~ {term}", train)
    history = model.fit(train, verbose=0)
    errors = {
        place: float(np.sqrt(np.mean((model.predict(own) - true_surface(own)) ** 2)))
        for place, own in (("rows", train), ("grid", make_grid()))
    }
    return errors | {"edf": history.history["edf"][-1]}


def compare(seeds: int) -> Frame:
    """One line per term: our errors, mgcv's, and in how many simulations ours is no larger."""
    data = pd.read_csv(FIXTURES / "mgcv_surface.csv")
    stored = json.loads((FIXTURES / "mgcv_surface.json").read_text())
    lines = []
    for term, other in PAIRS.items():
        chosen = stored["seeds"][:seeds]
        own = pd.DataFrame([fit_own(term, data[data.seed == s][["x", "z", "y"]]) for s in chosen])
        peer = pd.DataFrame(stored["fits"][other]).head(len(chosen))
        line: dict[str, object] = {"term": term, "mgcv's": stored["fits"][other]["call"]}
        for kind in ("rows", "grid", "edf"):
            line |= {kind: own[kind].mean(), f"{kind}, mgcv": peer[kind].mean()}
        line["no larger"] = f"{int((own.grid <= peer.grid).sum())} of {len(chosen)}"
        lines.append(line)
    return pd.DataFrame(lines).set_index(["term", "mgcv's"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=8, help="simulations (8, which are all)")
    seeds = parser.parse_args().seeds
    if seeds < 1:
        parser.error("--seeds must be 1 or more")
    warnings.simplefilter("ignore")
    print(compare(seeds).to_string(float_format=lambda value: f"{value:.3g}"))


if __name__ == "__main__":
    main()
