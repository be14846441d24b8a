"""Data of all kinds, and calls on it that are refused: what tests of careless input share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import ahofm_keras as ak

ROWS = 60


def make_data() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(
        {
            "x1": np.linspace(0, 1, ROWS),
            "x2": rng.normal(size=ROWS),
            "g": np.resize(["a", "b", "c"], ROWS),
            "f": np.resize([True, False], ROWS),
            "e": np.linspace(0.5, 2, ROWS),
        }
    )
    data["y"] = np.sin(5 * data.x1) + data.x2
    data["b"] = np.resize([0, 1, 1], ROWS)
    data["c"] = np.resize([3, 0, 2, 1], ROWS)
    return data


DATA = make_data()
KNOWN = "The data has: `x1`, `x2`, `g`, `f`, `e`, `y`, `b`, `c`."


def with_random_weights(model: ak.AdditiveModel) -> ak.AdditiveModel:
    rng = np.random.default_rng(1)
    for weight in model.trainable_weights:
        weight.assign(rng.normal(size=weight.shape))
    return model


def without(*names: str) -> pd.DataFrame:
    return DATA.drop(columns=list(names))


def at(column: str, row: int, value: Any) -> pd.DataFrame:
    values = DATA[column].astype(object).tolist()
    values[row] = value
    return DATA.assign(**{column: pd.Series(values)})


def build(formula: str, data: Any = DATA, **options: Any) -> Callable[[Any], Any]:
    return lambda models: ak.AdditiveModel(formula, data, **options)


def predict(data: Any, model: str = "mixed", **options: Any) -> Callable[[Any], Any]:
    return lambda models: getattr(models, model).predict(data, **options)


def fit(data: Any = DATA, *arguments: Any, model: str = "mixed", **options: Any) -> Callable[[Any], Any]:
    options = {"epochs": 1, "verbose": 0} | options
    return lambda models: getattr(models, model).fit(data, *arguments, **options)


def evaluate(data: Any, *arguments: Any, model: str = "counts", **options: Any) -> Callable[[Any], Any]:
    return lambda models: getattr(models, model).evaluate(data, *arguments, **options)
