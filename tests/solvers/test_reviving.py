"""Factorised precisions, and smooths that come back."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.precision import Precision
from ahofm_keras.solvers.priors import BlockPrior
from ahofm_keras.solvers.reviving import _find, choose_anew, left_for, revive_groups

from .conftest import make_engine

# Precisions


@pytest.mark.filterwarnings("error")
def test_of_what_is_no_gram_matrix_nothing_is_told() -> None:
    precision = Precision.factorise(np.array([[1.0, 3.0], [3.0, 1.0]]), np.zeros(2))
    assert np.isnan(precision.log_determinant)
    assert np.isnan(precision.solve(np.ones(2))).all()


@pytest.mark.parametrize("size", [0, 1, 7, 60])
def test_a_precision_against_dense_algebra(size: int) -> None:
    rng = np.random.default_rng(size)
    columns = rng.normal(size=(80, size))
    gram, own = columns.T @ columns, np.exp(rng.uniform(-5, 5, size))
    precision, dense = Precision.factorise(gram, own), gram + np.diag(own)
    rhs = rng.normal(size=size)
    np.testing.assert_allclose(precision.solve(rhs), np.linalg.solve(dense, rhs), rtol=1e-9)
    np.testing.assert_allclose(precision.inverse, np.linalg.inv(dense), rtol=1e-8, atol=1e-12)
    assert precision.log_determinant == pytest.approx(np.linalg.slogdet(dense)[1], rel=1e-10)
    assert (precision.inverse == precision.inverse.T).all()
    assert precision.inverse.flags.c_contiguous


def test_a_precision_of_equal_columns_and_of_twenty_orders_of_magnitude() -> None:
    column = np.random.default_rng(0).normal(size=(50, 1))
    gram = np.repeat(np.repeat(column.T @ column, 3, axis=0), 3, axis=1)
    precision = Precision.factorise(gram, np.array([1e-12, 1e-12, 1e14]))
    mean = precision.solve(gram[0])
    assert np.isfinite(precision.inverse).all()
    np.testing.assert_allclose(mean[:2].sum(), 1.0, rtol=1e-4)
    assert abs(mean[2]) < 1e-10


def linear_system(engine: Engine) -> tuple[BlockPrior, np.ndarray, np.ndarray]:
    """Prior, Gram matrix and sums of the linear block, with nothing else in the model."""
    rhs = sum(engine.linear.sums(chunk, chunk.weight * chunk.target) for chunk in engine.chunks)
    return engine.linear.prior, engine.linear_gram, np.asarray(rhs)


def waves_frame(rows: int = 400, noise: float = 0.5, seed: int = 0) -> pd.DataFrame:
    """x0 has an effect, x1 a correlated one, x2 none."""
    rng = np.random.default_rng(seed)
    x0 = rng.uniform(-2, 2, rows)
    x1 = 0.7 * x0 + rng.normal(size=rows)
    data = pd.DataFrame({"x0": x0, "x1": x1, "x2": rng.normal(size=rows)})
    return data.assign(y=np.sin(2 * x0) + 0.4 * np.cos(x1) + noise * rng.normal(size=rows))


def test_what_was_factorised_is_used_again_and_only_then() -> None:
    prior, gram, rhs = linear_system(make_engine("y ~ s(x0) + s(x1)", waves_frame()))
    first = prior.solve(gram, rhs, 1.0).precision
    assert prior.solve(gram, 2 * rhs, 0.3).precision is first
    assert prior.solve(gram.copy(), rhs, 1.0).precision is not first
    before = prior.solve(gram, rhs, 1.0)
    prior.parameters = prior.parameters.copy()
    prior.parameters[0, 0] += 1.0  # in place, too
    after = prior.solve(gram, rhs, 1.0)
    assert after.precision is not before.precision
    assert after.log_determinant > before.log_determinant


# Reviving


def fit_and_switch_off(
    groups: tuple[int, ...], prior: BlockPrior, gram: np.ndarray, rhs: np.ndarray, dispersion: float
) -> float:
    """Choose the smoothing, then do without some groups; the evidence with them."""
    best = prior.adapt(gram, rhs, dispersion, 50).evidence
    for group in groups:
        prior.parameters = prior.without_effect(group)
    return best


def straight(prior: BlockPrior, group: int) -> np.ndarray:
    """The parameters with the lambdas of a group as far up as they can be."""
    parameters = prior.parameters.copy()
    parameters[group, :-1] = prior.start[group, :-1] + 25
    return parameters


@pytest.mark.parametrize("change", [BlockPrior.without_effect, straight])
@pytest.mark.parametrize("group", [0, 1])
def test_what_a_group_would_gain_alone_is_what_the_whole_block_gains(group: int, change: Any) -> None:
    prior, gram, rhs = linear_system(make_engine("y ~ x2 + s(x0) + s(x1) + s(x2)", waves_frame()))
    prior.adapt(gram, rhs, 0.3, 30)
    prior.parameters = change(prior, group)
    solution = prior.solve(gram, rhs, 0.3)
    gain, parameters = _find(prior, solution, gram, rhs, 0.3)[group]
    revived = prior.parameters.copy()
    revived[group] = parameters
    whole = prior.solve(gram, rhs, 0.3, revived).evidence - solution.evidence
    assert gain > 5
    assert gain == pytest.approx(whole, rel=1e-6)


@pytest.mark.parametrize("shift", [-20.0, -5.0, 0.0, 5.0, 20.0])
def test_what_the_others_leave_against_dense_algebra(shift: float) -> None:
    prior, gram, rhs = linear_system(make_engine("y ~ x2 + s(x0) + s(x1)", waves_frame()))
    prior.parameters = prior.parameters + shift * np.array([[1.0, -1.0], [0.0, 0.0]])
    own, others = prior.groups == 0, prior.groups != 0
    rest = gram[np.ix_(others, others)] + np.diag(prior.precisions()[others])
    across = np.linalg.solve(rest, np.column_stack([gram[np.ix_(others, own)], rhs[others]]))
    expected = gram[np.ix_(own, own)] - gram[np.ix_(own, others)] @ across[:, :-1]
    system, sums = left_for(prior, 0, prior.solve(gram, rhs, 0.3), gram, rhs)
    size = np.abs(expected).max()
    np.testing.assert_allclose(system, expected, rtol=1e-6, atol=1e-8 * size)
    left = rhs[own] - gram[np.ix_(own, others)] @ across[:, -1]
    np.testing.assert_allclose(sums, left, rtol=1e-6, atol=1e-8 * np.abs(left).max())


@pytest.mark.parametrize("apart", [1e-6, 1e-8, 0.0])
def test_what_almost_equal_columns_leave_is_a_gram_matrix(apart: float) -> None:
    data = waves_frame()
    data["x1"] = data.x0 + apart * data.x1
    prior, gram, rhs = linear_system(make_engine("y ~ s(x0, k=20) + s(x1, k=20)", data))
    prior.parameters = prior.parameters - 25.0
    solution = prior.solve(gram, rhs, 0.3)
    system, sums = left_for(prior, 0, solution, gram, rhs)
    scale = 1 / np.sqrt(gram.diagonal()[prior.groups == 0])
    values, vectors = np.linalg.eigh(system * scale * scale[:, None])
    assert values[0] > -1e-14
    nothing = values < 1e-12
    assert nothing.any()
    np.testing.assert_allclose(vectors[:, nothing].T @ (scale * sums), 0, atol=1e-8 * np.abs(sums).max())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _find(prior, solution, gram, rhs, 0.3).keys() <= {0, 1}


@pytest.mark.parametrize("off", [False, True])
def test_half_way_back_smoothing_returns_only_of_what_was_switched_off(off: bool) -> None:
    engine = make_engine("y ~ s(x0) + s(x1)", waves_frame())
    engine.linearise()
    engine.update_linear(adapt=5)
    old, block = engine.linear.copy(), engine.linear
    block.prior.parameters = block.prior.without_effect(0) if off else block.prior.parameters + 1.0
    changed = block.prior.parameters
    block.accept(block.prior.solve(engine.linear_gram, 0 * old.mean, 0.3), 0.3, engine.linear_gram)
    covariance = block.covariance
    block.go_half_way(old)
    np.testing.assert_allclose(block.mean, old.mean / 2)
    np.testing.assert_array_equal(block.prior.parameters, old.prior.parameters if off else changed)
    np.testing.assert_array_equal(block.covariance, old.covariance if off else covariance)
    assert (old.prior.parameters != changed).any()


def test_a_smooth_that_went_straight_bends_again() -> None:
    for formula in ("y ~ s(x0) + s(x1)", "y ~ te(x0, x1)"):
        prior, gram, rhs = linear_system(make_engine(formula, waves_frame()))
        best = prior.adapt(gram, rhs, 0.3, 50).evidence
        prior.parameters = straight(prior, 0)
        prior.adapt(gram, rhs, 0.3, 5)
        assert prior.solve(gram, rhs, 0.3).evidence < best - 50
        revive_groups(prior, gram, rhs, 0.3)
        assert prior.solve(gram, rhs, 0.3).evidence > best - 0.2


def test_groups_that_explain_something_only_together_are_chosen_together() -> None:
    rng = np.random.default_rng(0)
    common, apart = rng.normal(size=(2, 600))
    data = pd.DataFrame({"x0": common + 0.1 * apart, "x1": common - 0.1 * apart})
    data["y"] = apart + 2.0 * rng.normal(size=600)
    prior, gram, rhs = linear_system(make_engine("y ~ s(x0) + s(x1)", data))
    best = fit_and_switch_off((0, 1), prior, gram, rhs, 0.8)
    assert prior.solve(gram, rhs, 0.8).evidence < best - 20
    choose_anew(prior, gram, rhs, 0.8)
    assert prior.solve(gram, rhs, 0.8).evidence > best - 0.2
    kept = prior.parameters
    prior.start = prior.start + 25  # from there nothing is found
    choose_anew(prior, gram, rhs, 0.8)
    assert prior.parameters is kept


def test_what_explains_nothing_stays_off() -> None:
    prior, gram, rhs = linear_system(make_engine("y ~ s(x0) + s(x1) + s(x2)", waves_frame()))
    prior.adapt(gram, rhs, 0.3, 30)
    prior.parameters = prior.without_effect(2)
    own = prior.groups == 2
    rhs[own] = gram[own] @ prior.solve(gram, rhs, 0.3).mean  # nothing is left for it
    kept = prior.parameters
    revive_groups(prior, gram, rhs, 0.3)
    assert prior.parameters is kept


def test_of_equal_columns_what_they_explain_comes_back() -> None:
    data = waves_frame()
    data["x2"] = data["x0"]
    prior, gram, rhs = linear_system(make_engine("y ~ s(x0) + s(x1) + s(x2)", data))
    best = fit_and_switch_off((0, 2), prior, gram, rhs, 0.3)
    assert prior.solve(gram, rhs, 0.3).evidence < best - 5
    revive_groups(prior, gram, rhs, 0.3)
    assert prior.solve(gram, rhs, 0.3).evidence > best - 0.2


def test_a_fixed_smooth_is_not_chosen_anew() -> None:
    prior, gram, rhs = linear_system(make_engine("y ~ s(x0, sp=1e9) + s(x1)", waves_frame()))
    kept = prior.parameters[0].copy()
    revive_groups(prior, gram, rhs, 0.3)
    np.testing.assert_array_equal(prior.parameters[0], kept)


def test_a_tensor_product_comes_back_only_for_more_than_its_price() -> None:
    rng = np.random.default_rng(1)
    data = pd.DataFrame(rng.uniform(-1, 1, (500, 2)), columns=["x", "z"])
    surface = data.x * data.z
    for strength, noise, comes in [(0.0, 1.0, False), (2.0, 0.4, True)]:
        frame = data.assign(y=strength * surface + 0.5 * rng.normal(size=500))
        prior, gram, rhs = linear_system(make_engine("y ~ s(x) + s(z) + ti(x, z)", frame))
        prior.parameters = prior.without_effect(2)
        revive_groups(prior, gram, rhs, noise)
        assert bool(prior._off(prior.parameters)[2]) is not comes
