"""`fit(solver="variational")`: what it finds, and what it leaves out."""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.bases import evaluate_basis
from ahofm_keras.solvers.averaging import average_states
from ahofm_keras.solvers.settings import Settings
from ahofm_keras.solvers.variational import ascend, sample_sizes
from ahofm_keras.terms.interaction import InteractionTerm
from tests.reference import terms_of
from tests.solvers.conftest import (
    all_features,
    fit_new,
    fit_quietly,
    make_engine,
    pair_frame,
    true_pair,
)


def interaction_edf(model: ak.AdditiveModel) -> float:
    return float(sum(np.asarray(edf).sum() for edf in model.posterior.factor_edf))


def subset_variances(model: ak.AdditiveModel, data: pd.DataFrame) -> dict[tuple[int, ...], float]:
    """Variance of the effect of each subset of features, over the product of their margins."""
    variances: dict[tuple[int, ...], float] = {}
    for term in terms_of(model.design, InteractionTerm):
        layer = model.get_layer(term.name)
        for place, order in enumerate(term.orders):
            second = []
            for position, factors in zip(
                term.features, np.asarray(layer.coefficients(place)), strict=True
            ):
                feature = model.design.features[position]
                B = evaluate_basis(feature.basis, data[feature.label].to_numpy())
                phi = B @ factors[: B.shape[1]]
                second.append(phi.T @ phi / len(data))
            for subset in combinations(range(len(term.features)), order.order):
                variances[subset] = float(np.prod([second[j] for j in subset], axis=0).sum())
    return variances


# What it finds


@pytest.mark.parametrize(
    ("features", "D", "seed"), [(5, 2, 0), (5, 2, 1), (5, 3, 2), (8, 2, 3), (8, 3, 4)]
)
def test_noise_has_no_interactions(features: int, D: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(rng.normal(size=(400, features)), columns=[f"x{j}" for j in range(features)])
    data["y"] = rng.normal(size=400)
    model, _ = fit_new(f"y ~ ahofm({all_features(data)}, D={D})", data, seed=seed)
    assert interaction_edf(model) < 1
    assert float(model.posterior.dispersion) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("rows", [150, 300])
def test_few_rows_are_not_interpolated(rows: int) -> None:
    """Factors of 20 features can explain every one of 150 rows; the evidence is against it."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame({f"x{j}": rng.uniform(-1, 1, rows) for j in range(20)})
    data["y"] = data.x0 + rng.normal(size=rows)
    fresh = pd.DataFrame({f"x{j}": rng.uniform(-0.9, 0.9, 1000) for j in range(20)})
    model, history = fit_new(f"y ~ ahofm({all_features(data)}, D=2, F=3)", data, restarts=0)
    assert history["edf"][-1] < 0.6 * rows
    assert float(model.posterior.dispersion) * model.scale**2 > 0.3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)
        missed = np.mean((model.predict(fresh) - fresh.x0) ** 2) / np.var(fresh.x0)
    assert missed < 1


def test_samples_of_many_rows_grow_tenfold() -> None:
    assert sample_sizes(20_000, Settings()) == []
    assert sample_sizes(20_001, Settings()) == [10_000]
    assert sample_sizes(150_000, Settings()) == [15_000]
    assert sample_sizes(1_000_000, Settings()) == [10_000, 100_000]
    assert sample_sizes(30_000_000, Settings()) == [10_000, 30_000, 300_000, 3_000_000]


def test_one_true_pair_is_found_among_45() -> None:
    data, rng = pair_frame(1000, 10), np.random.default_rng(0)
    data["y"] = np.sin(3 * data.x3) * data.x7 * 2 + data.x0 + 0.5 * rng.normal(size=1000)
    model, _ = fit_new(f"y ~ ahofm({all_features(data)}, D=2)", data)
    variances = subset_variances(model, data)
    assert len(variances) == 45
    assert max(variances, key=variances.get) == (3, 7)
    assert variances[3, 7] > 0.95 * sum(variances.values())
    error = model.predict(data) - (np.sin(3 * data.x3) * data.x7 * 2 + data.x0)
    assert np.mean(error**2) < 0.1 * 0.25


def test_a_true_triple_is_found() -> None:
    data = pair_frame(500, 4)
    truth = 4 * data.x0 * data.x1 * data.x2
    data["y"] = truth + 0.2 * np.random.default_rng(0).normal(size=500)
    model, _ = fit_new("y ~ ahofm(x0, x1, x2, x3, D=3)", data)
    variances = subset_variances(model, data)
    assert variances[0, 1, 2] > 0.9 * sum(variances.values())
    assert np.mean((model.predict(data) - truth) ** 2) < 0.3 * 0.04


def test_the_dispersion_is_that_of_the_noise() -> None:
    data = pair_frame(600, 3)
    model, _ = fit_new("y ~ ahofm(x0, x1, x2, D=2)", data)
    noise = float(model.posterior.dispersion) * model.scale**2
    assert noise == pytest.approx(0.09, rel=0.15)


def test_rows_of_weight_zero_do_not_lower_the_dispersion() -> None:
    data = pair_frame(600, 2)
    data.loc[300:, "y"] += 50
    model = ak.AdditiveModel("y ~ s(x0) + s(x1) + ahofm(x0, x1, D=2)", data)
    weight = np.repeat([1.0, 0.0], 300)
    fit_quietly(model, data, "variational", sample_weight=weight)
    assert float(model.posterior.dispersion) * model.scale**2 == pytest.approx(0.09, rel=0.2)


@pytest.mark.filterwarnings("ignore:The predictors of .* leave the range")
@pytest.mark.parametrize("family", ["bernoulli", "poisson", "gamma"])
def test_other_families_find_the_truth_as_well_as_the_true_terms_do(family: str) -> None:
    data, test = pair_frame(800, 3, family), pair_frame(4000, 3, family, seed=1)
    ends = data.abs().max()
    test = test[(test[["x0", "x1", "x2"]].abs() < 0.99 * ends[["x0", "x1", "x2"]]).all(axis=1)]
    model, _ = fit_new("y ~ ahofm(x0, x1, x2, D=2, F=2)", data, family)
    known = ak.AdditiveModel("y ~ s(x0, df=4) + x0:x1", data, family=family)
    fit_quietly(known, data, "bcd")
    assert model.evaluate(test)[1] <= 1.03 * known.evaluate(test)[1]
    link = model.predict(test, type="link")
    assert np.corrcoef(link, true_pair(test))[0, 1] > 0.97
    assert np.polyfit(true_pair(test), link, 1)[0] == pytest.approx(1, abs=0.15)


# Exact where the model is linear


def test_smooths_alone_are_the_bayesian_linear_model() -> None:
    data = pair_frame(150, 2)
    data["group"] = np.random.default_rng(0).choice(["a", "b", "c"], 150)
    formula = "y ~ x1 + s(x0) + s(group)"
    model, history = fit_new(formula, data)
    layer = model.posterior
    engine = make_engine(formula, data)
    features = [
        engine.design.features[own.term.feature] for own in engine.linear.columns.layout.penalised
    ]
    parts = [
        evaluate_basis(feature.basis, data[feature.label].to_numpy()) @ feature.transform
        for feature in features
    ]
    X = np.column_stack([np.ones(150), (data.x1 - data.x1.mean()) / data.x1.std(ddof=0), *parts])
    precisions = [np.zeros(2)]
    for (smoothing, shrinkage), feature in zip(
        np.asarray(layer.linear_smoothing), features, strict=True
    ):
        precisions.append(np.exp(smoothing) * feature.eigenvalues + np.exp(shrinkage))
    A = X.T @ X + np.diag(np.concatenate(precisions))
    target = (data.y - model.shift) / model.scale
    eta = X @ np.linalg.solve(A, X.T @ target)
    np.testing.assert_allclose(model.predict(data), model.shift + model.scale * eta, atol=1e-4)
    root = np.asarray(layer.linear_root)
    wanted = float(layer.dispersion) * np.linalg.inv(A)
    np.testing.assert_allclose(root @ root.T, wanted, rtol=1e-4, atol=1e-6 * np.abs(wanted).max())
    np.testing.assert_allclose(layer.linear_edf, np.linalg.solve(A, X.T @ X).diagonal(), atol=1e-5)
    assert history["edf"][-1] == pytest.approx(np.trace(np.linalg.solve(A, X.T @ X)), abs=1e-4)


def test_a_lambda_that_is_given_stays() -> None:
    data = pair_frame(200, 2)
    model, _ = fit_new("y ~ s(x0, sp=0.3) + s(x1)", data)
    given, chosen = np.exp(np.asarray(model.posterior.linear_smoothing))
    assert given[0] == pytest.approx(200 * 0.3, rel=1e-9)
    assert given[1] == 0
    assert abs(np.log(chosen[0] / (200 * model.design.terms[1].smoothing))) > 1e-3
    other, _ = fit_new("y ~ s(x0, sp=3000.0) + s(x1)", data)
    assert other.posterior.linear_edf[1:].numpy().sum() < model.posterior.linear_edf[1:].numpy().sum()


# Starts, seeds, chunks


def test_same_seed_same_weights_other_seed_others() -> None:
    data = pair_frame(150, 3)
    formula = "y ~ ahofm(x0, x1, x2, D=2, F=2)"
    models = [fit_new(formula, data, seed=seed)[0] for seed in (0, 0, 1)]
    first, again, other = [model.get_layer("ahofm_x0_x1_x2").coordinates(0) for model in models]
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3


def test_the_seed_of_the_fit_goes_before_that_of_the_model() -> None:
    data = pair_frame(150, 3)
    formula = "y ~ ahofm(x0, x1, x2, D=2, F=2)"
    one, _ = fit_new(formula, data, seed=1)
    other = ak.AdditiveModel(formula, data)
    fit_quietly(other, data, "variational", seed=1)
    np.testing.assert_array_equal(*(m.get_layer("ahofm_x0_x1_x2").coordinates(0) for m in (one, other)))


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_chunks_change_nothing(family: str) -> None:
    data = pair_frame(120, 3, family)
    engines = []
    for chunk_rows in (13, 120):
        engine = make_engine(
            "y ~ ahofm(x0, x1, x2, D=2, F=1)", data, family=family, chunk_rows=chunk_rows
        )
        engine.follow(ascend(engine.engine, seed=0))
        engines.append(engine)
    assert len(engines[0].chunks) > 9
    assert engines[0].bound() == pytest.approx(engines[1].bound(), rel=1e-8)
    for first, second in zip(engines[0].blocks, engines[1].blocks, strict=True):
        np.testing.assert_allclose(first.mean, second.mean, rtol=1e-6, atol=1e-8)


def test_restarts_are_averaged() -> None:
    data = pair_frame(150, 5, seed=5)
    data["y"] += data.x2 * np.sin(4 * data.x3) + data.x3 * data.x4 * data.x1 + 0.3 * data.x0
    formula = "y ~ ahofm(x0, x1, x2, x3, x4, D=2, F=2)"
    alone = [fit_new(formula, data, seed=seed)[1]["bound"][-1] for seed in range(3)]
    model, history = fit_new(formula, data, starts=3, restarts=2)
    assert np.ptp(alone) > 1e-3
    assert history["bound"][-1] == pytest.approx(np.mean(alone), rel=1e-6)
    assert len(history["bound"]) > 3 * 20
    assert interaction_edf(model) > 3


def test_covariance_and_smoothing_of_an_average_fit() -> None:
    """Tests of terms read the Gram matrix from them."""
    engine = make_engine("y ~ ahofm(x0, x1, x2, D=2, F=2, k=7)", pair_frame(150, 3, seed=3))
    states = []
    for seed in range(2):
        engine.follow(ascend(engine.engine, seed))
        states.append(engine.state)
    average = average_states(states, [1.0, 2.0], engine.design.with_starts(2))
    block = average.linear
    information = average.dispersion * np.linalg.inv(block.covariance) - np.diag(block.prior.precisions)
    scale = np.sqrt(engine.linear_gram.diagonal())
    np.testing.assert_allclose(
        information / scale / scale[:, None], engine.linear_gram / scale / scale[:, None], atol=1e-4
    )
    np.testing.assert_allclose(block.mean, (states[0].linear.mean + states[1].linear.mean) / 2)


def test_bounds_rise_and_are_reported() -> None:
    data = pair_frame(150, 3)
    model, history = fit_new("y ~ ahofm(x0, x1, x2, D=2, F=3)", data)
    bounds = np.array(history["bound"])
    np.testing.assert_allclose(history["loss"], -bounds / 150, rtol=1e-12)
    assert bounds[-1] > bounds[0]
    assert history["deviance"][-1] == pytest.approx(model.evaluate(data)[1], rel=1e-5)


def test_a_sweep_is_an_epoch_and_the_last_one_warns() -> None:
    data = pair_frame(100, 2)
    model = ak.AdditiveModel("y ~ ahofm(x0, x1, D=2, F=1)", data)
    with pytest.warns(ak.AhofmWarning, match="The fit reached its last"):
        history = fit_quietly(model, data, "variational", epochs=4)
    assert len(history["bound"]) == 4
    assert float(model.posterior.dispersion) > 0
