"""Do intervals hold what they say for every family, where every parameter depends on features?

    python examples/benchmarks/family_coverage.py                    # 20 simulations a family
    python examples/benchmarks/family_coverage.py --families beta,gamma_ls --simulations 100

Each parameter of a family has a curve along `x` as its predictor, the second also a slope along `z`, and
a model with `s(x) + s(z)` for each of them is fitted to 500 rows. Of 500 others, "mean" is the share
whose true mean lies in its 95 % band, "response" that of new responses in their predictive interval,
each with the standard error over simulations; "wide" that of responses in the fifth of the rows whose
true distribution is widest, "narrow" in the fifth where it is narrowest. A discrete response can be held
more often than 95 %, as intervals end at whole numbers: "discrete" is how often the true distribution's
own quantiles would hold it.
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
from ahofm_keras.families import FAMILIES, Family, get_family

ROWS = 500
LEVEL = 0.95
# Centre and reach of a predictor, by its link; of some parameters others.
ETAS = {
    "identity": (3.0, 1.0),
    "log": (0.7, 0.6),
    "logit": (0.0, 1.0),
    "log_above_2": (1.0, 0.4),
    "logit_1_2": (0.0, 0.4),
}
OWN_ETAS = {
    "scale": (-0.7, 0.4),
    "dispersion": (-0.7, 0.4),
    "zero": (-0.8, 0.6),
    "shape": (0.6, 0.3),
    "precision": (2.3, 0.4),
    "skewness": (0.0, 0.4),
    "tail": (0.0, 0.2),
}


def predictors(family: Family, data: pd.DataFrame) -> dict[str, np.ndarray]:
    """The true predictor of each parameter."""
    found = {}
    for place, (name, link) in enumerate(family.parameters.items()):
        centre, reach = (place and OWN_ETAS.get(name)) or ETAS[link.name]
        wave = np.sin(6 * data.x + place)
        found[name] = (centre + reach * (wave + (place == 1) * (data.z - 0.5))).to_numpy()
    return found


def parameters_at(family: Family, data: pd.DataFrame) -> dict[str, np.ndarray]:
    found = dict(family.inverse_links(predictors(family, data)))
    return found if family.dispersion_known else {**found, "dispersion": np.full(len(data), 0.2)}


def can_be_simulated(family: Family) -> bool:
    """Whether one number is drawn, from a distribution whose links are known here."""
    if (
        family.labelled
        or family.is_loss
        or not {link.name for link in family.parameters.values()} <= set(ETAS)
    ):
        return False
    try:
        family.distribution_of(parameters_at(family, make_features(3, np.random.default_rng(0))))
    except (NotImplementedError, ak.AhofmError):
        return False
    return not family.binary


def make_features(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Both ends of every axis are there, so that none of the fresh rows lies outside."""
    return pd.DataFrame({name: np.r_[0.0, 1.0, rng.uniform(size=rows - 2)] for name in "xz"})


def draw(family: Family, rows: int, rng: np.random.Generator) -> tuple[pd.DataFrame, object]:
    data = make_features(rows, rng)
    true = parameters_at(family, data)
    law = family.distribution_of(true)
    data["mean"] = family.mean_of(true)
    data["y"] = np.asarray(law.rvs(size=rows, random_state=rng), float)
    return data, law


def simulate(name: str, seed: int) -> dict[str, float]:
    family, rng = get_family(name), np.random.default_rng(seed)
    (train, _), (fresh, law) = draw(family, ROWS, rng), draw(family, ROWS, rng)
    sides = [f"{'' if place else 'y '}~ s(x) + s(z)" for place in range(len(family.parameters))]
    formula = dict(zip(family.parameters, sides, strict=True)) if len(sides) > 1 else sides[0]
    model = ak.AdditiveModel(formula, train, family=name)
    model.fit(train, solver="variational", verbose=0)
    band = model.predict(fresh, interval=LEVEL)
    inside = (band.lower <= fresh["mean"]) & (fresh["mean"] <= band.upper)
    held = (band.predictive_lower <= fresh.y) & (fresh.y <= band.predictive_upper)
    order, fifth = np.argsort(law.std()), ROWS // 5
    low, high = law.ppf((1 - LEVEL) / 2), law.ppf((1 + LEVEL) / 2)
    keras.backend.clear_session()
    return {
        "mean": float(inside.mean()),
        "response": float(held.mean()),
        "narrow": float(held.to_numpy()[order[:fifth]].mean()),
        "wide": float(held.to_numpy()[order[-fifth:]].mean()),
        "discrete": float(np.mean(law.cdf(high) - law.cdf(low - 1))) if family.discrete else np.nan,
        "converged": float(model.fit_result.converged),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = [name for name in FAMILIES if can_be_simulated(get_family(name))]
    parser.add_argument("--families", default=",".join(known), help="by default all that can be drawn")
    parser.add_argument("--simulations", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="3 simulations")
    arguments = parser.parse_args()
    count = 3 if arguments.quick else arguments.simulations
    warnings.simplefilter("ignore", ak.AhofmWarning)
    print(f"95 % intervals, {count} simulations of {ROWS} rows")
    columns = ("mean", "(se)", "response", "(se)", "narrow", "wide", "discrete", "converged")
    print(f"{'family':34}{''.join(f'{name:>10}' for name in columns)}")
    for name in arguments.families.split(","):
        found = pd.DataFrame([simulate(name, seed) for seed in range(count)])
        mean, error = found.mean(), found.std() / np.sqrt(count)
        figures = [mean["mean"], error["mean"], mean["response"], error["response"]]
        figures += [mean[key] for key in ("narrow", "wide", "discrete", "converged")]
        cells = [f"{value:10.3f}" if np.isfinite(value) else f"{'-':>10}" for value in figures]
        print(f"{name:34}{''.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
