"""Models of random weights: nothing is pruned, and every kind of term has something to say."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import chain, combinations

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.decomposition import Parts
from ahofm_keras.decomposition.read_rows import functions_on
from ahofm_keras.model.fit_result import FitResult, Sample
from ahofm_keras.transforms import evaluate_expression
from tests.model.conftest import mixed_frame

Subset = tuple[int, ...]


@pytest.fixture(scope="module", autouse=True)
def _forget_graphs() -> Iterator[None]:
    yield
    keras.backend.clear_session()


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    """Of all kinds of columns; two numbers are correlated, and one has names that need quotes."""
    data = mixed_frame(200)
    rng = np.random.default_rng(1)
    data["x2"] = data.x1 + 0.3 * data.x2
    data["digit"] = rng.integers(0, 4, len(data)).astype(float)
    data["a b"] = rng.normal(size=len(data))
    data["c:d"] = rng.normal(size=len(data))
    return data


def build(formula: str, data: pd.DataFrame, family: str = "gaussian", **options: object):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)  # few values do not reach every df
        return ak.AdditiveModel(formula, data, family=family, **options)


def mark_fitted(model: ak.AdditiveModel, data: pd.DataFrame | None = None, weight=None) -> None:
    """As after a fit, with the rows in memory where they are given."""
    sample = None
    if data is not None:
        sample = Sample(model.read_inputs(data), np.zeros(len(data)), weight)
    model.keep_fit(FitResult("adam", 1, 0.0, True, ()), sample)


def random_model(
    formula: str, data: pd.DataFrame, family: str = "gaussian", seed: int = 0, **options: object
) -> ak.AdditiveModel:
    """A model with weights that nobody fitted, which passes as fitted and remembers its rows."""
    model = build(formula, data, family, **options)
    rng = np.random.default_rng(seed)
    for layer in model.fitted_layers():
        for weight in layer.trainable_weights:
            weight.assign(rng.normal(size=weight.shape))
    mark_fitted(model, data)
    return model


def all_subsets(parts: Parts) -> list[Subset]:
    orders = range(1, parts.largest_order + 1)
    return [tuple(map(int, s)) for s in chain.from_iterable(parts.subsets(order) for order in orders)]


def on_rows(
    model: ak.AdditiveModel, parts: Parts, data: pd.DataFrame
) -> tuple[list[np.ndarray], np.ndarray]:
    """Functions of all variables, and the offset."""
    columns = model.read_inputs(data)
    offsets = [evaluate_expression(e, columns) for e in model.design.only.offsets.values()]
    return functions_on(parts, columns), sum(offsets, start=np.zeros(len(data)))


def brute_force(values: np.ndarray) -> dict[Subset, np.ndarray]:
    """The decomposition of values on a full grid, by the definition: means over all other axes, signed."""
    axes = range(values.ndim)
    subsets = [s for size in range(values.ndim + 1) for s in combinations(axes, size)]
    means = {s: values.mean(axis=tuple(a for a in axes if a not in s), keepdims=True) for s in subsets}
    return {
        s: sum((-1) ** (len(s) - len(t)) * means[t] for t in subsets if set(t) <= set(s))
        for s in subsets
    }


@pytest.fixture(scope="session")
def small() -> tuple[ak.AdditiveModel, pd.DataFrame, np.ndarray]:
    """A model of nine rows, and its link at all 9^4 combinations of their values."""
    rng = np.random.default_rng(3)
    data = pd.DataFrame({f"x{j}": rng.normal(size=9) for j in (1, 2, 3)})
    data["group"] = [*"abcabca", *"ab"]
    data["y"] = rng.normal(size=9)
    formula = (
        "y ~ group + x3:group + x1:x2 + s(x1, k=5) + ahofm(x1, x2, group, D=3, F=2, center=False)"
        " + ahofm(x2, x3, x1, D=2, F=2) + te(x1, x3, k=4) + ti(x2, x3, group, k=4)"
        " + s(x2, by=x1, k=4) + s(x3, group, bs='sz', k=4) + te(x1, x2, by=group, k=4)"
    )
    model = random_model(formula, data, seed=1)
    names = [variable.label for variable in Parts(model).variables]
    mesh = np.meshgrid(*(np.arange(9) for _ in names), indexing="ij")
    grid = pd.DataFrame(
        {name: data[name].to_numpy()[own.reshape(-1)] for name, own in zip(names, mesh, strict=True)}
    )
    return model, data, model.predict(grid, type="link").reshape(mesh[0].shape)
