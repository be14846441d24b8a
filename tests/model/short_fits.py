"""Short fits, and what they are held against."""

from __future__ import annotations

import warnings
from typing import Any

import keras
import numpy as np
import pandas as pd

import ahofm_keras as ak
from ahofm_keras.solvers import SOLVERS

# Of any model; the other one takes turns with the networks of a model.
COMMON_SOLVERS = sorted(set(SOLVERS) - {"hybrid"})
FAMILIES = ("gaussian", "bernoulli", "poisson", "gamma")
FORMULA = "gaussian ~ s(x1, k=6) + x3"


def new_model(data: pd.DataFrame, formula: str = FORMULA, **options: Any) -> ak.AdditiveModel:
    """A model without XLA, which takes longer to compile than these fits take."""
    model = ak.AdditiveModel(formula, data, **options)
    model.compile(jit_compile=False)
    return model


def fit(model: ak.AdditiveModel, data: Any, *arguments: Any, **options: Any) -> keras.callbacks.History:
    """A fit of 2 epochs of 4 batches unless told otherwise; that it did not converge is no news."""
    options = {"epochs": 2, "verbose": 0, "solver": "adam"} | options
    if options["solver"] == "adam":
        options = {"batch_size": 60} | options
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The fit reached its last epoch", ak.AhofmWarning)
        return model.fit(data, *arguments, **options)


def learned_weights(model: ak.AdditiveModel) -> list[np.ndarray]:
    """All that an optimizer changes."""
    return [weight.numpy().copy() for weight in model.trainable_variables]


def assert_same_weights(first: ak.AdditiveModel, second: ak.AdditiveModel, **tolerance: float) -> None:
    for a, b in zip(learned_weights(first), learned_weights(second), strict=True):
        np.testing.assert_allclose(a, b, **({"rtol": 0.0} | tolerance))


def weights_differ(first: ak.AdditiveModel, second: ak.AdditiveModel) -> bool:
    pairs = zip(learned_weights(first), learned_weights(second), strict=True)
    return any(not np.allclose(a, b, rtol=1e-4) for a, b in pairs)


def unit_deviance(family: str, y: np.ndarray, mean: np.ndarray) -> np.ndarray:
    if family == "gaussian":
        return (y - mean) ** 2
    if family == "bernoulli":
        return -2 * np.where(y == 1, np.log(mean), np.log(1 - mean))
    if family == "poisson":
        return 2 * (np.where(y > 0, y * np.log(np.where(y > 0, y, 1) / mean), 0) - y + mean)
    return 2 * (y / mean - 1 - np.log(y / mean))
