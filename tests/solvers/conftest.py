"""Engines and data of the solvers' tests, without a Keras model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
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
from ahofm_keras.solvers.blocks import Block, LinearBlock
from ahofm_keras.solvers.chunks import Chunk
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.groups import FactorGroup
from ahofm_keras.solvers.job import Rows
from ahofm_keras.solvers.kernels import use_kernels
from ahofm_keras.solvers.settings import current_settings
from ahofm_keras.solvers.state import Rough, State
from ahofm_keras.terms import Design, EncodedRows, fit_terms
from ahofm_keras.terms.linear import LinearTerm
from ahofm_keras.transforms import evaluate_expression
from tests.reference import terms_of

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


def encode(design: Design, columns: dict[str, np.ndarray]) -> EncodedRows:
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
    for term in terms_of(design, LinearTerm):
        assert len(term.factors) == 1, "numbers only"
        values = evaluate_expression(term.factors[0].expression, columns)
        linear.append((values - term.centre[0]) / term.scale[0])
    offsets = [evaluate_expression(e, columns) for e in design.only.offsets.values()]
    arrays = {"positions": places, "columns": linear}
    encoded = {name: np.stack(part, axis=1) for name, part in arrays.items() if part}
    rows = len(next(iter(columns.values())))
    return EncodedRows(encoded | ({"offset": sum(offsets)} if offsets else {}), rows)


@dataclass
class Run:
    """An engine and the state that tests bring it to; states themselves do not change."""

    engine: Engine
    state: State

    @property
    def design(self) -> Design:
        return self.engine.design

    @property
    def rows(self) -> int:
        return self.engine.rows

    @property
    def scale(self) -> float:
        return self.engine.response.scale

    @property
    def shift(self) -> float:
        return self.engine.response.shift

    @property
    def chunks(self) -> list[Chunk]:
        return self.engine.store.chunks

    @property
    def dispersion(self) -> float:
        return self.state.dispersion

    @property
    def linear(self) -> LinearBlock:
        return self.state.linear

    @property
    def groups(self) -> tuple[FactorGroup, ...]:
        return self.state.groups

    @property
    def blocks(self) -> list[Block]:
        return self.state.blocks

    @property
    def linear_gram(self) -> np.ndarray:
        return self.state.gram

    def change(self, **fields: Any) -> None:
        """Another state."""
        self.state = replace(self.state, **fields)

    def change_linear(self, **fields: Any) -> None:
        """Another linear block."""
        self.change(linear=replace(self.linear, **fields))

    def change_smoothing(self, parameters: np.ndarray) -> None:
        """Other smoothing of the linear block."""
        self.change_linear(prior=self.linear.prior.at(parameters))

    def set_posterior(self, index: int, feature: int, mean: np.ndarray, covariance: np.ndarray) -> None:
        """A posterior of the factors of a feature."""
        block = self.groups[index].blocks[feature]
        self.state = self.state.with_factors(index, feature, block.known(mean, covariance))

    def set_means(self, means: Callable[[Block], np.ndarray]) -> None:
        """Other means of all factors."""
        for index, group in enumerate(self.groups):
            for feature, block in enumerate(group.blocks):
                own = replace(block, mean=means(block))
                self.state = self.state.with_factors(index, feature, own)

    def linearise(self, rough: Rough = Rough.NONE) -> None:
        self.state = self.engine.linearise(self.state, rough)

    def update_linear(self, **how: Any) -> None:
        self.state = self.engine.update_linear(self.state, **how)

    def update_factors(self, index: int, feature: int, **how: Any) -> None:
        self.state = self.engine.update_factors(self.state, index, feature, **how)

    def update_dispersion(self) -> None:
        self.state = self.engine.update_dispersion(self.state)

    def sweep(self, **how: Any) -> None:
        self.state = self.engine.sweep(self.state, **how)

    def bound(self) -> float:
        return self.engine.bound(self.state)

    def score(self) -> float:
        return self.engine.score(self.state)

    def edf(self) -> float:
        return self.state.edf

    def deviance(self) -> float:
        return self.engine.deviance(self.state)

    def means(self) -> np.ndarray:
        return self.engine.means(self.state)

    def fit(self) -> np.ndarray:
        """Predictor of all rows in the model's scale, without offset."""
        return np.concatenate([chunk.fit(self.state) for chunk in self.chunks])

    def target(self) -> np.ndarray:
        """Working response of all rows."""
        return np.concatenate([chunk.working(self.state)[0] for chunk in self.chunks])

    def weight(self) -> np.ndarray:
        """Working weights of all rows."""
        return np.concatenate([chunk.working(self.state)[1] for chunk in self.chunks])

    def follow(self, steps: Generator[Any, None, State]) -> list[Any]:
        """Go to where some steps lead; what they yield on the way."""
        seen = []
        while True:
            try:
                seen.append(next(steps))
            except StopIteration as end:
                self.state = end.value
                return seen


def make_engine(
    formula: str,
    data: Any,
    *,
    family: str = "gaussian",
    weight: np.ndarray | None = None,
    variational: bool = True,
    **settings: Any,
) -> Run:
    """An engine on the response `y` of some data, with its working response and weights.

    Args:
        formula, data, family, weight: of the model.
        variational: whether blocks have variances.
        settings: that are not those of the library.
    """
    design, columns = learn_design(formula, data)
    y = np.asarray(data["y"], float)
    kind = get_family(family)
    scale = float(y.std()) if kind.is_linear else 1.0
    rows = Rows(encode(design, columns), y, weight)
    engine = Engine(
        design, kind, rows, kind.start(y), scale, variational=variational,
        settings=replace(current_settings(), **settings),
    )  # fmt: skip
    return Run(engine, engine.linearise(engine.start()))


def dense_functions(engine: Run | Engine, data: Any) -> list[np.ndarray]:
    """Functions of each feature in the coordinates of its blocks, `(n, r)`."""
    columns = read_columns(data, engine.design.columns)
    return [
        evaluate_basis(feature.basis, evaluate_expression(feature.expression, columns))
        @ feature.transform
        for feature in engine.design.features
    ]


def draw_posterior(run: Run, seed: int, spread: float = 0.3) -> None:
    """Any means and, where the engine has them, covariances of all blocks."""
    rng, variational = np.random.default_rng(seed), run.engine.variational
    run.change(dispersion=0.4 if variational else 1.0)

    def draw(size: int) -> tuple[np.ndarray, np.ndarray]:
        root = spread * rng.normal(size=(size, size)) / np.sqrt(size)
        return spread * rng.normal(size=size), root @ root.T + 1e-3 * np.eye(size)

    run.change_linear(mean=draw(len(run.linear.mean))[0])
    for index, group in enumerate(run.groups):
        for feature, block in enumerate(group.blocks):
            mean, covariance = draw(len(block.mean))
            own = block.known(mean, covariance) if variational else replace(block, mean=mean)
            run.state = run.state.with_factors(index, feature, own)
    if variational:
        run.update_linear()


def fit_quietly(
    model: ak.AdditiveModel, data: Any, solver: str, **options: Any
) -> dict[str, list[float]]:
    return model.fit(data, solver=solver, verbose=0, **options).history


def fit_new(
    formula: str,
    data: pd.DataFrame,
    family: str = "gaussian",
    seed: int = 0,
    starts: int = 1,
    **options: Any,
) -> tuple[ak.AdditiveModel, dict[str, list[float]]]:
    model = ak.AdditiveModel(formula, data, family=family, seed=seed, starts=starts)
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
