"""Units of the response and of the weights of rows change nothing that has no unit."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from tests.solvers.conftest import pair_frame

FORMULA = "y ~ x2 + s(x0, df=5) + ahofm(x0, x1, D=2, F=2, main=False)"


@cache
def in_unit_1(
    family: str, solver: str, weighted: bool = False, zeros: int = 0
) -> tuple[pd.DataFrame, np.ndarray | None, ak.AdditiveModel]:
    """Data, weights and the fit that fits in other units are held against."""
    data, weight = pair_frame(200, 3, family), None
    if weighted:
        weight = np.random.default_rng(0).uniform(0.2, 2.0, 200)
        weight[:zeros] = 0
    return data, weight, fitted(data, family, solver, weight)


def fitted(
    data: pd.DataFrame, family: str, solver: str, weight: np.ndarray | None = None
) -> ak.AdditiveModel:
    model = ak.AdditiveModel(FORMULA, data, family=family)
    options = {"epochs": 5} if solver == "adam" else {}
    if solver == "adam":
        model.compile(jit_compile=False)  # which takes longer than five epochs
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The fit reached its last epoch", ak.AhofmWarning)
        model.fit(data, solver=solver, sample_weight=weight, verbose=0, **options)
    return model


@pytest.mark.parametrize("unit", [1e-100, 1e-12, 1e-6, 1e6, 1e100])
@pytest.mark.parametrize("solver", ["variational", "bcd"])
def test_a_gamma_response_may_have_any_unit(solver: str, unit: float) -> None:
    data, _, first = in_unit_1("gamma", solver)
    second = fitted(data.assign(y=unit * data.y), "gamma", solver)
    columns = ["mean", "lower", "upper"]
    found, expected = (m.predict(data, interval=0.9)[columns] for m in (second, first))
    np.testing.assert_allclose(found / unit, expected, rtol=1e-4)
    figures = [ak.summary(model).figures for model in (first, second)]
    assert figures[1]["edf"] == pytest.approx(figures[0]["edf"], rel=1e-4)
    assert figures[1]["dispersion"] == pytest.approx(figures[0]["dispersion"], rel=1e-4)


@pytest.mark.parametrize("unit", [1e-30, 1e-9, 1e9, 1e30])
@pytest.mark.parametrize("family", ["gaussian", "gamma"])
def test_weights_may_have_any_unit_where_the_dispersion_is_estimated(family: str, unit: float) -> None:
    data, weight, first = in_unit_1(family, "variational", weighted=True, zeros=5)
    second = fitted(data, family, "variational", unit * weight)
    columns = ["mean", "lower", "upper"]
    found, expected = (m.predict(data, interval=0.9)[columns] for m in (second, first))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    tables = [ak.summary(model) for model in (first, second)]
    # A row of weight 1 has the dispersion of the summary: it and the smoothing are in units of weights.
    assert tables[1].figures["dispersion"] == pytest.approx(unit * tables[0].figures["dispersion"])
    assert tables[1].figures["edf"] == pytest.approx(tables[0].figures["edf"], rel=1e-4)
    assert tables[0].figures["edf"] > 4
    smooth = [table.terms.loc["s(x0)"] for table in tables]
    assert smooth[1]["lambda_max"] == pytest.approx(unit * smooth[0]["lambda_max"], rel=1e-3)


def test_a_second_fit_with_large_weights_stays() -> None:
    data = pair_frame(200, 3)
    model = ak.AdditiveModel(FORMULA, data)
    weight = np.full(200, 1e9)
    for _ in range(2):
        model.fit(data, solver="variational", sample_weight=weight, restarts=0, verbose=0)
        figures = ak.summary(model).figures
    alone = ak.AdditiveModel(FORMULA, data)
    alone.fit(data, solver="variational", restarts=0, verbose=0)
    assert figures["edf"] == pytest.approx(ak.summary(alone).figures["edf"], rel=0.02)


@pytest.mark.filterwarnings("ignore:Fitted probabilities are 0 or 1")
@pytest.mark.parametrize("formula", ["y ~ te(x0, x1)", "y ~ te(x0, x1, k=6)", "y ~ ti(x0, x1) + s(x0)"])
@pytest.mark.parametrize("wrong", [0, 2])
def test_what_is_switched_off_has_no_effect(formula: str, wrong: int) -> None:
    """A sweep that switches a term off may be halved: then it is on, with its variance."""
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"x0": rng.normal(size=200), "x1": rng.normal(size=200)})
    data["y"] = (data.x0 + data.x1 > 0).astype(float)
    data.loc[: wrong - 1, "y"] = 1 - data.y[:wrong]
    model = ak.AdditiveModel(formula, data, family="bernoulli")
    model.fit(data, solver="variational", verbose=0)
    terms = ak.summary(model).terms
    off = terms["edf"] < 1e-3
    assert (terms["share"][off] < 1e-6).all()
    assert terms["share"].sum() == pytest.approx(1)


@pytest.mark.filterwarnings("ignore:Fitted probabilities are 0 or 1")
@pytest.mark.parametrize("solver", ["variational", "bcd"])
@pytest.mark.parametrize("family", ["bernoulli", "poisson"])
def test_a_weight_of_2_is_the_row_twice_where_the_dispersion_is_known(family: str, solver: str) -> None:
    data = pair_frame(300, 3, family)
    weighted, doubled = ak.AdditiveModel(FORMULA, data, family), ak.AdditiveModel(FORMULA, data, family)
    weighted.fit(data, solver=solver, sample_weight=np.full(300, 2.0), verbose=0)
    doubled.fit(pd.concat([data, data], ignore_index=True), solver=solver, verbose=0)
    bands = [model.predict(data, interval=0.9) for model in (weighted, doubled)]
    np.testing.assert_allclose(bands[0], bands[1], rtol=1e-6, atol=1e-8)
    tables = [ak.summary(model) for model in (weighted, doubled)]
    np.testing.assert_allclose(tables[0].terms["edf"], tables[1].terms["edf"], rtol=1e-6, atol=1e-8)
    # The model's weights are in single precision.
    assert tables[0].figures["deviance"] == pytest.approx(tables[1].figures["deviance"], rel=1e-6)


@pytest.mark.parametrize("family", ["bernoulli", "poisson"])
def test_a_weight_of_2_is_the_row_twice_for_adam(family: str) -> None:
    """As far as mini-batches go: a step on all rows, weighted or doubled, is the same step."""
    data = pair_frame(200, 3, family)
    models = [ak.AdditiveModel(FORMULA, data, family) for _ in range(2)]
    options = {"solver": "adam", "shuffle": False, "validation_split": 0.0, "epochs": 5, "verbose": 0}
    with pytest.warns(ak.AhofmWarning, match="last epoch"):
        models[0].fit(data, sample_weight=np.full(200, 2.0), batch_size=200, **options)
    with pytest.warns(ak.AhofmWarning, match="last epoch"):
        models[1].fit(pd.concat([data, data], ignore_index=True), batch_size=400, **options)
    np.testing.assert_allclose(models[0].predict(data), models[1].predict(data), rtol=1e-4)


@pytest.mark.parametrize("unit", [1e-6, 0.01, 100.0])
@pytest.mark.parametrize("solver", ["bcd", "adam"])
@pytest.mark.parametrize("family", ["gaussian", "gamma"])
def test_no_solver_knows_the_unit_of_weights(family: str, solver: str, unit: float) -> None:
    data, weight, first = in_unit_1(family, solver, weighted=True)
    models = first, fitted(data, family, solver, unit * weight)
    edf = [ak.summary(model).figures["edf"] for model in models]
    means = [model.predict(data) for model in models]
    assert edf[1] == pytest.approx(edf[0], rel=1e-4)
    np.testing.assert_allclose(means[1], means[0], rtol=1e-4, atol=1e-4)
