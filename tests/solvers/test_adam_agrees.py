"""Adam and the variational solver have one optimum: for every family, without anything to smooth.

That it is the maximum of the likelihood is held against SciPy in `test_linear_optimum.py`.
"""

from __future__ import annotations

import warnings

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.families import FAMILIES, Family, get_family
from tests.simulated import SIMULATED, simulate

# The bound averages each likelihood over the other predictors: with fewer rows its optimum is another one.
ROWS = 300
# Steps of Adam with all rows, as many as an epoch runs in one call, their rate, and how far it starts away.
STEPS, EPOCHS, RATE, BESIDE = 64, 2, 0.01, 0.15
LABELS = np.array(["low", "middle", "high"])
# What cannot be compared so: rounds of Adam on censored times end earlier, because mini-batches never
# stand still (`tests/model/test_cox.py` holds both to statsmodels); the density of `tweedie`, a sum of
# hundreds of terms, takes Adam a minute (`test_linear_optimum.py` holds the block solvers to SciPy).
LEFT_OUT = ("cox", "tweedie")


def of_classes() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, ROWS)
    hidden = 1.5 * x + rng.logistic(size=ROWS)
    labels = LABELS[(hidden > np.array([[-0.5], [1.0]])).sum(axis=0)]
    return pd.DataFrame({"x": x, "y": pd.Categorical(labels, LABELS, ordered=True)})


def of_numbers() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, ROWS)
    return pd.DataFrame({"x": x, "y": 2 * x + np.exp(0.5 * x) * rng.normal(size=ROWS)})


def of_trials() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    x, trials = rng.uniform(-1, 1, ROWS), rng.integers(1, 9, ROWS)
    made = rng.binomial(trials, 1 / (1 + np.exp(-x)))
    return pd.DataFrame({"x": x, "made": made, "missed": trials - made})


def case(name: str) -> tuple[Family, pd.DataFrame, str]:
    """A family, rows of it, and what stands left of `~`."""
    family = get_family(name)
    if name == "binomial":
        return family, of_trials(), "cbind(made, missed)"
    if family.labelled and not family.binary:
        return family, of_classes(), "y"
    if family.is_loss:
        return family, of_numbers(), "y"
    return family, simulate(name, ROWS, seed=4)[0], "y"


NAMES = [
    name
    for name, own in FAMILIES.items()
    if own.__module__.startswith("ahofm_keras.") and name not in LEFT_OUT
]


def test_simulations_are_of_all_families() -> None:
    others = {"binomial", "categorical", "ordinal", "quantile", "expectile"}
    assert set(NAMES) | set(LEFT_OUT) >= set(SIMULATED) | others
    assert set(NAMES) <= set(SIMULATED) | others


@pytest.mark.parametrize("name", NAMES)
def test_adam_finds_nothing_better_than_the_variational_fit(name: str) -> None:
    """From its weights on, and from weights beside them, to which Adam comes back."""
    family, data, response = case(name)
    first, *others = family.learn(data.get("y"), "y").parameters
    shared = family.shared is not None or not others
    formula = {first: f"{response} ~ x", **dict.fromkeys(others, "~ x")}
    model = ak.AdditiveModel(f"{response} ~ x" if shared else formula, data, family=family)
    model.fit(data, solver="variational", verbose=0)
    found = model.evaluate(data, verbose=0, return_dict=True)["deviance"]
    for layer in model.predictors.values():
        layer.bias.assign_add(BESIDE)
    moved = model.evaluate(data, verbose=0, return_dict=True)["deviance"]
    assert moved > found + 2e-3
    model.compile(optimizer=keras.optimizers.Adam(RATE), jit_compile=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The fit reached its last epoch")
        model.fit(
            data, solver="adam", verbose=0, batch_size=ROWS, steps_per_epoch=STEPS, epochs=EPOCHS,
            validation_split=0.0, shuffle=False,
        )  # fmt: skip
    assert model.evaluate(data, verbose=0, return_dict=True)["deviance"] == pytest.approx(
        found, abs=1e-3
    )
