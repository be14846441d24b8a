"""Do intervals hold what they say? Simulations with a known truth, for each family and each way.

    python examples/benchmarks/interval_coverage.py            # 100 simulations each, half an hour
    python examples/benchmarks/interval_coverage.py --quick      # 10 each

Two main effects, one pair and a feature that does nothing; 400 rows to fit, 400 to look at. "mean" is
the share of rows whose true mean lies in its 95 % band, "response" that of new responses in their
predictive interval, "curve" that of points on a grid where the band of the effect of `a` holds the true
curve; "width" is the average width of the band over the spread of the true mean. The posterior is that
of the variational solver, or the Laplace approximation at the weights of the others. Conformal intervals
come from 200 further rows, and are those of responses only.
"""

from __future__ import annotations

import argparse
import os
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import pandas as pd

import ahofm_keras as ak
from ahofm_keras.families import get_family

FORMULA = "y ~ ahofm(a, b, c, d, D=2, F=2, df=6)"
WAYS = ("variational", "bcd", "adam", "conformal")
ROWS = 400


def link(data: pd.DataFrame) -> np.ndarray:
    pair = 4 * (data.b - 0.5) * np.sin(3 * data.c)
    return (np.sin(6 * data.a) + 1.5 * data.b**2 + pair).to_numpy()


def draw(rows: int, family: str, rng: np.random.Generator) -> pd.DataFrame:
    """Rows with both ends of every axis, so that none of the fresh ones lies outside."""
    data = pd.DataFrame({name: np.r_[0.0, 1.0, rng.uniform(size=rows - 2)] for name in "abcd"})
    mean = get_family(family).inverse_link(link(data), np)
    dispersion = {"gaussian": 0.09, "gamma": 0.2}.get(family, 1.0)
    data["mean"] = mean
    data["y"] = get_family(family).distribution(mean, dispersion).rvs(random_state=rng).astype(float)
    return data


def simulate(family: str, way: str, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    train, calibration, fresh = (draw(rows, family, rng) for rows in (ROWS, ROWS // 2, ROWS))
    model = ak.AdditiveModel(FORMULA, train, family=family)
    model.fit(train, solver="variational" if way == "conformal" else way, verbose=0)
    figures: dict[str, float] = {}
    if way == "conformal":
        band = model.predict(fresh, interval=0.95, method="conformal", calibration=calibration)
    else:
        band = model.predict(fresh, interval=0.95)
        figures["mean"] = float(((band.lower <= fresh["mean"]) & (fresh["mean"] <= band.upper)).mean())
        figures["width"] = float((band.upper - band.lower).mean() / fresh["mean"].std())
        figures["curve"] = curve_coverage(model, train)
    held = (band.predictive_lower <= fresh.y) & (fresh.y <= band.predictive_upper)
    figures["response"] = float(held.mean())
    keras.backend.clear_session()
    return figures


def curve_coverage(model: ak.AdditiveModel, train: pd.DataFrame) -> float:
    """Of the effect of `a`, which is sin(6 a) less its mean over the rows of the fit."""
    effect = ak.effect(model, "a")
    truth = np.sin(6 * effect.grid[0]) - np.sin(6 * train.a).mean()
    lower, upper = effect.band(0.95)
    return float(((lower <= truth) & (truth <= upper)).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="10 simulations instead of 100")
    parser.add_argument("--simulations", type=int, help="how many")
    parser.add_argument("--ways", default=",".join(WAYS), help=f"of {','.join(WAYS)}")
    parser.add_argument("--families", default="gaussian,poisson,bernoulli,gamma")
    arguments = parser.parse_args()
    count = arguments.simulations or (10 if arguments.quick else 100)
    print(f"95 % intervals, {count} simulations of {ROWS} rows")
    columns = ("mean", "response", "curve", "width")
    print(f"{'family':12}{'posterior':14}{''.join(f'{name:>10}' for name in columns)}")
    warnings.simplefilter("ignore", ak.AhofmWarning)
    for family in arguments.families.split(","):
        for way in arguments.ways.split(","):
            if way == "conformal" and family == "bernoulli":
                continue
            found = pd.DataFrame([simulate(family, way, seed) for seed in range(count)]).mean()
            cells = [f"{found[name]:10.3f}" if name in found else f"{'-':>10}" for name in columns]
            print(f"{family:12}{way:14}{''.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
