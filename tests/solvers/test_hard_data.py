"""`fit(solver="variational")`: data that cannot break it."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from tests.solvers.conftest import (
    all_features,
    draw_response,
    fit_new,
    pair_frame,
)


def assert_finite(model: ak.AdditiveModel, data: pd.DataFrame) -> None:
    assert all(np.isfinite(np.asarray(values)).all() for values in model.trainable_weights)
    for weight in model.posterior.weights:
        smoothing = "smoothing" in weight.name  # of what is switched off: inf
        assert not np.isnan(np.asarray(weight)).any()
        assert smoothing or np.isfinite(np.asarray(weight)).all()
    assert np.isfinite(model.predict(data)).all()


def count_frame(rows: int = 200) -> pd.DataFrame:
    data = pair_frame(rows, 2, "poisson")
    data["y"] = (
        np.random.default_rng(0).poisson(np.exp(12 + 3 * data.x0 + data.x0 * data.x1)).astype(float)
    )
    return data


def test_huge_counts_are_fitted() -> None:
    data = count_frame()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The fit reached its last", ak.AhofmWarning)
        model, _ = fit_new("y ~ ahofm(x0, x1, D=2, F=2)", data, "poisson", epochs=60, seed=2)
    assert_finite(model, data)
    error = model.predict(data, type="link") - (12 + 3 * data.x0 + data.x0 * data.x1)
    assert np.sqrt(np.mean(error**2)) < 0.1


@pytest.mark.filterwarnings("ignore:Fitted probabilities are 0 or 1")
@pytest.mark.parametrize("formula", ["y ~ ahofm(x0, x1, D=2, F=2)", "y ~ x0 + s(x1)"])
def test_separated_classes_are_fitted(formula: str) -> None:
    data = pair_frame(200, 2)
    data["y"] = (data.x0 > 0.1).astype(float)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The fit reached its last", ak.AhofmWarning)
        model, _ = fit_new(formula, data, "bernoulli", epochs=150)
    assert_finite(model, data)
    assert ((model.predict(data) > 0.5) == (data.y > 0.5)).mean() > 0.97


@pytest.mark.parametrize("solver", ["variational", "bcd"])
def test_separated_classes_are_noticed(solver: str) -> None:
    data = pair_frame(200, 2)
    data["y"] = (data.x0 > 0.1).astype(float)
    with pytest.warns(ak.AhofmWarning) as caught:
        ak.AdditiveModel("y ~ x0", data, family="bernoulli").fit(data, solver=solver, verbose=0)
    told = next(str(w.message) for w in caught if "Fitted probabilities" in str(w.message))
    count = int(told.removeprefix("Fitted probabilities are 0 or 1 in ").partition(" of 200 rows")[0])
    assert 150 < count <= 200


LESS = "take fewer functions (a smaller `k`) or fewer terms."
SMOOTHS = "write linear terms as smooths, which are penalised: `s(x0)`"
LINES = 'use `solver="variational"`, which penalises the straight lines of smooths too.'


@pytest.mark.parametrize(
    ("formula", "rows", "solver", "advice"),
    [
        ("y ~ x0 + s(x1)", 200, "variational", f"Leave it out, or {SMOOTHS}."),
        ("y ~ s(x0) + s(x1)", 4000, "variational", LESS),
        ("y ~ s(x0) + s(x1)", 200, "bcd", f"Leave it out, or {LINES}"),
        ("y ~ x0 + s(x1)", 200, "bcd", f"Leave it out, or {SMOOTHS}, and {LINES}"),
    ],
)
def test_advice_on_separated_classes_fits_the_model(
    formula: str, rows: int, solver: str, advice: str
) -> None:
    data = pair_frame(rows, 2)
    data["y"] = (data.x0 > 0.1).astype(float)
    model = ak.AdditiveModel(formula, data, family="bernoulli")
    with pytest.warns(ak.AhofmWarning) as caught:
        model.fit(data, solver=solver, epochs=150, verbose=0)
    told = next(str(w.message) for w in caught if "Fitted probabilities" in str(w.message))
    assert told.endswith(advice)


@pytest.mark.filterwarnings("error")
def test_classes_that_are_not_separated_are_not_noticed() -> None:
    data = pair_frame(200, 2)
    data["y"] = (data.x0 > 0.1).astype(float)
    data.loc[:20, "y"] = 1 - data.y[:21]
    fit_new("y ~ x0", data, "bernoulli")


def hard_frame(family: str, rows: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(8)
    data = pair_frame(rows, 3)
    data["x1"] = data["x0"]  # equal columns
    data["x2"] = np.append(np.zeros(rows - 1), 1.0)  # constant but for one row
    data["group"] = np.append("rare", rng.choice(["a", "b"], rows - 1))
    data["flag"] = rng.random(rows) < 0.5
    data["y"] = draw_response(family, 2 * data.x0.to_numpy() * (2.0 * data.flag - 1), rng)
    return data


@pytest.mark.filterwarnings("ignore:The predictors of .* leave the range")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("family", ["gaussian", "bernoulli", "poisson", "gamma"])
def test_hard_data_leave_weights_finite(family: str, weighted: bool) -> None:
    data = hard_frame(family)
    weight = np.random.default_rng(0).integers(0, 3, len(data)).astype(float) if weighted else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)
        model, _ = fit_new(
            "y ~ ahofm(x0, x1, x2, group, flag, D=3, F=1)", data, family, sample_weight=weight
        )
    assert_finite(model, data)


@pytest.mark.parametrize("seed", [0, 1])
def test_more_features_than_rows_are_fitted(seed: int) -> None:
    """Not by going through every row: a single feature out of 14 explains 12 rows."""
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(rng.normal(size=(12, 14)), columns=[f"x{j}" for j in range(14)])
    data["y"] = data.x0 + 0.3 * rng.normal(size=12)
    model, history = fit_new(f"y ~ ahofm({all_features(data)}, D=2, F=1)", data)
    assert_finite(model, data)
    assert history["edf"][-1] < 11
    fresh = pd.DataFrame(rng.normal(size=(300, 14)), columns=[f"x{j}" for j in range(14)])
    fresh = fresh.clip(data.min(), data.max(), axis=1)
    assert np.mean((model.predict(fresh) - fresh.x0) ** 2) < 0.6 * np.var(fresh.x0)


# The last of the weights leave one class.
@pytest.mark.filterwarnings("ignore:Fitted probabilities are 0 or 1")
def test_class_weights_shift_the_mean() -> None:
    data = pair_frame(200, 2, "bernoulli")
    means = []
    for weight in (None, {0: 1.0, 1: 5.0}, {0: 1.0, 1: 0.0}):
        model, _ = fit_new("y ~ s(x0) + s(x1)", data, "bernoulli", class_weight=weight)
        assert_finite(model, data)
        means.append(model.predict(data).mean())
    assert means[1] > means[0] + 0.1
    assert means[2] < 0.1


def test_class_weights_are_sample_weights() -> None:
    data = pair_frame(200, 2, "bernoulli")
    first, _ = fit_new("y ~ s(x0) + s(x1)", data, "bernoulli", class_weight={0: 0.5, 1: 3.0})
    weight = np.where(data.y > 0, 3.0, 0.5)
    second, _ = fit_new("y ~ s(x0) + s(x1)", data, "bernoulli", sample_weight=weight)
    np.testing.assert_allclose(first.predict(data), second.predict(data), rtol=1e-6)


def test_a_response_without_noise_is_fitted() -> None:
    data = pair_frame(200, 2)
    data["y"] = 2 + data.x0 * data.x1
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The fit reached its last", ak.AhofmWarning)
        model, _ = fit_new("y ~ ahofm(x0, x1, D=2, F=2)", data)
    assert_finite(model, data)
    assert np.abs(model.predict(data) - data.y).max() < 5e-2


def test_no_intercept_and_nothing_linear_can_be_fitted() -> None:
    data = pair_frame(200, 2)
    data["y"] = 2 * data.x0 * data.x1 + 0.1 * np.random.default_rng(0).normal(size=200)
    model, history = fit_new("y ~ ahofm(x0, x1, D=2, F=1, main=False) - 1", data)
    assert history["deviance"][-1] < 0.05
    assert_finite(model, data)


def test_units_do_not_matter() -> None:
    data = pair_frame(200, 2)
    other = data.assign(y=1000 * data.y - 5, x0=data.x0 / 50 + 3)
    formula = "y ~ ahofm(x0, x1, D=2, F=2)"
    first, second = fit_new(formula, data)[0], fit_new(formula, other)[0]
    np.testing.assert_allclose(second.predict(other), 1000 * first.predict(data) - 5, rtol=0, atol=1)


@pytest.mark.parametrize("family", ["bernoulli", "poisson"])
def test_rows_sorted_by_the_response_are_fitted(family: str) -> None:
    data = pair_frame(20_000, 2, family).sort_values("y")
    model, _ = fit_new("y ~ s(x0) + s(x1)", data, family)
    assert_finite(model, data)


@pytest.mark.parametrize("steepness", [10.0, 30.0, 200.0])
@pytest.mark.parametrize("solver", ["variational", "bcd"])
def test_a_gamma_response_may_span_many_orders_of_magnitude(solver: str, steepness: float) -> None:
    x = np.random.default_rng(0).uniform(size=200)
    data = pd.DataFrame({"x": x, "y": np.exp(steepness * x)})
    model = ak.AdditiveModel("y ~ s(x)", data, family="gamma")
    model.fit(data, solver=solver, verbose=0)
    assert model.fit_result is not None
    assert model.fit_result.converged
    np.testing.assert_allclose(model.predict(data, type="link"), steepness * x, rtol=0, atol=5e-3)
