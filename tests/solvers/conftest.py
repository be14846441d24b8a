"""Engines and data of the solvers' tests, without a Keras model."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

import ahofm_keras as ak
from ahofm_keras.bases import evaluate_basis, locate, locate_levels
from ahofm_keras.data import kind_of, read_columns
from ahofm_keras.families import get_family
from ahofm_keras.formula import parse_formula
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.job import Rows
from ahofm_keras.solvers.kernels import use_kernels
from ahofm_keras.terms import Design, LinearTerm, OffsetTerm, fit_terms
from ahofm_keras.transforms import evaluate_expression

# As `fit` does: threads inside small products only wait for each other.
threadpool_limits(1, "blas")

FAMILIES = ("gaussian", "bernoulli", "poisson", "gamma")
KERNELS = ["numpy", *(["numba"] if find_spec("numba") else [])]


@pytest.fixture(scope="module", autouse=True)
def _forget_graphs() -> Iterator[None]:
    yield
    keras.backend.clear_session()


@pytest.fixture(params=KERNELS)
def kernels(request: pytest.FixtureRequest) -> Iterator[str]:
    """The same test with each way to compute on rows."""
    with use_kernels(request.param):
        yield request.param


def learn_design(formula: str, data: Any) -> tuple[Design, dict[str, np.ndarray]]:
    """A design and the columns that it was learned from."""
    parsed = parse_formula(formula, list(data))
    columns = read_columns(data, parsed.columns())
    kinds = {name: kind_of(values) for name, values in columns.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)  # few values do not reach every df
        return fit_terms(parsed, columns, kinds), columns


def encode(design: Design, columns: dict[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    """What the upper half of a model's graph computes, in float64."""
    places = []
    for feature in design.features:
        values = evaluate_expression(feature.expression, columns)
        categories = feature.basis.kind == "re"
        find = (
            locate_levels(feature.basis.levels, values) if categories else locate(feature.basis, values)
        )
        places.append(np.asarray(find, float))
    linear = []
    for term in design.of_kind(LinearTerm):
        assert len(term.factors) == 1, "numbers only"
        values = evaluate_expression(term.factors[0].expression, columns)
        linear.append((values - term.centre[0]) / term.scale[0])
    offsets = [term.evaluate(columns) for term in design.of_kind(OffsetTerm)]
    arrays = [np.stack(part, axis=1) for part in (places, linear) if part]
    return (*arrays, *([sum(offsets)] if offsets else []))


def make_engine(
    formula: str,
    data: Any,
    *,
    family: str = "gaussian",
    weight: np.ndarray | None = None,
    random: bool = True,
    **options: Any,
) -> Engine:
    """An engine on the response `y` of some data, with its working response and weights."""
    design, columns = learn_design(formula, data)
    y = np.asarray(data["y"], float)
    kind = get_family(family)
    scale = float(y.std()) if kind.is_linear else 1.0
    rows = Rows(encode(design, columns), y, weight)
    engine = Engine(design, kind, rows, kind.start(y), scale, random=random, **options)
    engine.linearise()
    return engine


def dense_functions(engine: Engine, data: Any) -> list[np.ndarray]:
    """Functions of each feature in the coordinates of its blocks, `(n, r)`."""
    columns = read_columns(data, engine.design.columns)
    return [
        evaluate_basis(feature.basis, evaluate_expression(feature.expression, columns))
        @ feature.transform
        for feature in engine.design.features
    ]


def draw_posterior(engine: Engine, seed: int, spread: float = 0.3) -> None:
    """Any means and, where the engine has them, covariances of all blocks."""
    rng = np.random.default_rng(seed)
    engine.dispersion = 0.4 if engine.random else 1.0
    for block in engine.blocks:
        size = len(block.mean)
        root = spread * rng.normal(size=(size, size)) / np.sqrt(size)
        mean = spread * rng.normal(size=size)
        if block is engine.linear or not engine.random:
            block.mean = mean
        else:
            block.set_posterior(mean, root @ root.T + 1e-3 * np.eye(size))
    if engine.random:
        engine.update_linear()
    engine.rebuild()


def fit_quietly(
    model: ak.AdditiveModel, data: Any, solver: str, **options: Any
) -> dict[str, list[float]]:
    return model.fit(data, solver=solver, verbose=0, **options).history


def fit_new(
    formula: str, data: pd.DataFrame, family: str = "gaussian", seed: int = 0, **options: Any
) -> tuple[ak.AdditiveModel, dict[str, list[float]]]:
    model = ak.AdditiveModel(formula, data, family=family, seed=seed)
    return model, fit_quietly(model, data, "variational", **options)


def draw_response(family: str, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if family == "gaussian":
        return eta + 0.3 * rng.normal(size=len(eta))
    if family == "bernoulli":
        return (rng.random(len(eta)) < 1 / (1 + np.exp(-eta))).astype(float)
    if family == "poisson":
        return rng.poisson(np.exp(eta)).astype(float)
    return np.exp(eta) * rng.gamma(5.0, 0.2, len(eta))


def pair_frame(rows: int, features: int = 3, family: str = "gaussian", seed: int = 0) -> pd.DataFrame:
    """One smooth main effect and one true pair: sin(3 x0) + 2 x0 x1."""
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({f"x{j}": rng.uniform(-1, 1, rows) for j in range(features)})
    data["y"] = draw_response(family, true_pair(data), rng)
    return data


def true_pair(data: pd.DataFrame) -> np.ndarray:
    return np.sin(3 * data.x0.to_numpy()) + 2 * (data.x0 * data.x1).to_numpy()


def all_features(data: pd.DataFrame) -> str:
    return ", ".join(name for name in data if name != "y")
