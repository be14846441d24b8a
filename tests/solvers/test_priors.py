"""Factorised precisions, what one group of a block has left, smoothing that is reset, prices."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ahofm_keras.solvers import tasks
from ahofm_keras.solvers.moves import try_moves
from ahofm_keras.solvers.moves.reset_smoothing import ResetSmoothing
from ahofm_keras.solvers.precision import Precision
from ahofm_keras.solvers.priors import BlockPrior, Solution, System, switch_off
from ahofm_keras.solvers.single_group import left_for

from .conftest import Run, make_engine

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


def linear_system(run: Run, dispersion: float = 0.3) -> tuple[BlockPrior, System]:
    """Prior and system of the linear block, with nothing else in the model."""
    rhs = run.engine.store.reduce(tasks.linear_sums, run.state)
    system = System(run.linear_gram, rhs, dispersion)
    return run.linear.prior.seeing(run.linear_gram), system


def waves_frame(rows: int = 400, noise: float = 0.5, seed: int = 0) -> pd.DataFrame:
    """x0 has an effect, x1 a correlated one, x2 none."""
    rng = np.random.default_rng(seed)
    x0 = rng.uniform(-2, 2, rows)
    x1 = 0.7 * x0 + rng.normal(size=rows)
    data = pd.DataFrame({"x0": x0, "x1": x1, "x2": rng.normal(size=rows)})
    return data.assign(y=np.sin(2 * x0) + 0.4 * np.cos(x1) + noise * rng.normal(size=rows))


def test_what_was_factorised_is_used_again_and_only_then() -> None:
    engine = make_engine("y ~ s(x0) + s(x1)", waves_frame())

    def factorised() -> Precision:
        engine.update_linear()
        return engine.linear.spread.solution.precision

    first = factorised()
    engine.change(dispersion=0.3)
    assert factorised() is first
    engine.change(linear_gram=engine.linear_gram.copy())
    assert factorised() is not first
    before = factorised()
    parameters = engine.linear.prior.parameters.copy()
    parameters[0, 0] += 1.0
    engine.change_smoothing(parameters)
    assert factorised() is not before
    assert factorised().log_determinant > before.log_determinant


# Smoothing that is looked for again


def without(groups: tuple[int, ...], solution: Solution) -> BlockPrior:
    """Smoothing that was chosen, with some groups switched off."""
    prior = solution.prior
    for group in groups:
        prior = prior.without_effect(group)
    return prior


def reset(run: Run, prior: BlockPrior, dispersion: float = 0.3) -> tuple[Run, float]:
    """Reset the smoothing from some other; by how much that raised the bound."""
    run.change(dispersion=dispersion)
    run.change_linear(prior=prior)
    run.update_linear()
    before = run.bound()
    run.follow(try_moves(run.engine, run.state, [ResetSmoothing()]))
    return run, run.bound() - before


def straight(prior: BlockPrior, group: int) -> BlockPrior:
    """The prior with the lambdas of a group as far up as they can be."""
    parameters = prior.parameters.copy()
    parameters[group, :-1] = prior.start[group, :-1] + 25
    return prior.at(parameters)


@pytest.mark.parametrize("change", [BlockPrior.without_effect, straight])
@pytest.mark.parametrize("group", [0, 1])
def test_what_a_group_would_gain_alone_is_what_the_whole_block_gains(group: int, change: Any) -> None:
    prior, system = linear_system(make_engine("y ~ x2 + s(x0) + s(x1) + s(x2)", waves_frame()))
    chosen = prior.newton_steps(system, 30).prior
    prior = change(chosen, group)
    solution = prior.solve(system)
    left = left_for(group, solution, system)
    gain = chosen.only(group).solve(left).evidence - prior.only(group).solve(left).evidence
    parameters = prior.parameters.copy()
    parameters[group] = chosen.parameters[group]
    whole = prior.at(parameters).solve(system).evidence - solution.evidence
    assert gain > 5
    assert gain == pytest.approx(whole, rel=1e-6)


@pytest.mark.parametrize("shift", [-20.0, -5.0, 0.0, 5.0, 20.0])
def test_what_the_others_leave_against_dense_algebra(shift: float) -> None:
    prior, system = linear_system(make_engine("y ~ x2 + s(x0) + s(x1)", waves_frame()))
    gram, rhs, _ = system
    prior = prior.at(prior.parameters + shift * np.array([[1.0, -1.0], [0.0, 0.0]]))
    own, others = prior.groups == 0, prior.groups != 0
    rest = gram[np.ix_(others, others)] + np.diag(prior.precisions[others])
    across = np.linalg.solve(rest, np.column_stack([gram[np.ix_(others, own)], rhs[others]]))
    expected = gram[np.ix_(own, own)] - gram[np.ix_(own, others)] @ across[:, :-1]
    found = left_for(0, prior.solve(system), system)
    size = np.abs(expected).max()
    np.testing.assert_allclose(found.gram, expected, rtol=1e-6, atol=1e-8 * size)
    left = rhs[own] - gram[np.ix_(own, others)] @ across[:, -1]
    np.testing.assert_allclose(found.rhs, left, rtol=1e-6, atol=1e-8 * np.abs(left).max())


@pytest.mark.parametrize("apart", [1e-6, 1e-8, 0.0])
def test_what_almost_equal_columns_leave_is_a_gram_matrix(apart: float) -> None:
    data = waves_frame()
    data["x1"] = data.x0 + apart * data.x1
    prior, system = linear_system(make_engine("y ~ s(x0, k=20) + s(x1, k=20)", data))
    solution = prior.at(prior.parameters - 25.0).solve(system)
    left, sums, _ = left_for(0, solution, system)
    scale = 1 / np.sqrt(system.gram.diagonal()[prior.groups == 0])
    values, vectors = np.linalg.eigh(left * scale * scale[:, None])
    assert values[0] > -1e-14
    nothing = values < 1e-12
    assert nothing.any()
    np.testing.assert_allclose(vectors[:, nothing].T @ (scale * sums), 0, atol=1e-8 * np.abs(sums).max())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = prior.only(0).newton_steps(System(left, sums, 0.3), 15)
    assert np.isfinite(found.evidence)


def test_functions_that_no_row_sees_leave_the_others_as_they_are() -> None:
    prior, system = linear_system(make_engine("y ~ s(x0) + s(x1)", waves_frame()))
    group = int(prior.groups[-1])
    own, others = prior.groups == group, prior.groups != group
    gram = system.gram.copy()
    unseen = np.flatnonzero(own)[-2:]
    gram[unseen], gram[:, unseen] = 0.0, 0.0
    gram[np.ix_(unseen, unseen)] = [[1e-8, 1e-6], [1e-6, -1e-8]]
    prior = prior.seeing(gram)
    solution = prior.solve(System(gram, system.rhs, 0.5))
    rest = gram[np.ix_(others, others)] + np.diag(prior.precisions[others])
    taken = gram[np.ix_(own, others)] @ np.linalg.solve(rest, gram[np.ix_(others, own)])
    expected = gram[np.ix_(own, own)] - taken
    expected[-2:, -2:] = 0.0
    found = left_for(group, solution, System(gram, system.rhs, 0.5))
    np.testing.assert_allclose(found.gram, expected, rtol=1e-6, atol=1e-8 * gram.max())


@pytest.mark.parametrize("off", [False, True])
def test_half_way_back_smoothing_returns_only_of_what_was_switched_off(off: bool) -> None:
    engine = make_engine("y ~ s(x0) + s(x1)", waves_frame())
    engine.update_linear(newton_steps=5)
    old = engine.linear
    prior = old.prior.without_effect(0) if off else old.prior.at(old.prior.parameters + 1.0)
    nothing = System(engine.linear_gram, 0 * old.mean, 0.3)
    block = old.solved(prior.solve(nothing), 0.3, engine.linear_gram)
    half = block.half_way_to(old)
    np.testing.assert_allclose(half.mean, old.mean / 2)
    kept = old if off else block
    np.testing.assert_array_equal(half.prior.parameters, kept.prior.parameters)
    np.testing.assert_array_equal(half.covariance, kept.covariance)
    assert (old.prior.parameters != prior.parameters).any()


@pytest.mark.parametrize("formula", ["y ~ s(x0) + s(x1)", "y ~ te(x0, x1)"])
def test_a_smooth_that_went_straight_bends_again(formula: str) -> None:
    engine = make_engine(formula, waves_frame())
    prior, system = linear_system(engine)
    best = prior.newton_steps(system, 50)
    solution = straight(best.prior, 0).newton_steps(system, 5)
    assert solution.evidence < best.evidence - 50
    _, gain = reset(engine, solution.prior)
    assert gain > best.evidence - solution.evidence - 0.2


def test_groups_that_explain_something_only_together_are_chosen_together() -> None:
    rng = np.random.default_rng(0)
    common, apart = rng.normal(size=(2, 600))
    data = pd.DataFrame({"x0": common + 0.1 * apart, "x1": common - 0.1 * apart})
    data["y"] = apart + 2.0 * rng.normal(size=600)
    engine = make_engine("y ~ s(x0) + s(x1)", data)
    prior, system = linear_system(engine, 0.8)
    best = prior.newton_steps(system, 50)
    off = without((0, 1), best).solve(system)
    assert off.evidence < best.evidence - 20
    _, gain = reset(engine, off.prior, 0.8)
    assert gain > best.evidence - off.evidence - 0.2
    # From where nothing is found, what was there is kept.
    found = engine.linear.prior
    shape = replace(found.shape, start=found.start + 25)
    _, gain = reset(engine, replace(found, shape=shape), 0.8)
    assert gain == 0
    np.testing.assert_array_equal(engine.linear.prior.parameters, found.parameters)


def test_of_equal_columns_what_they_explain_comes_back() -> None:
    data = waves_frame()
    data["x2"] = data["x0"]
    engine = make_engine("y ~ s(x0) + s(x1) + s(x2)", data)
    prior, system = linear_system(engine)
    best = prior.newton_steps(system, 50)
    off = without((0, 2), best).solve(system)
    assert off.evidence < best.evidence - 300
    reset(engine, off.prior)
    # A reset takes most of the way; the steps of the sweeps that follow take the rest.
    found = engine.linear.prior.newton_steps(system, 50)
    assert found.evidence > best.evidence - 0.2


def test_a_fixed_smooth_is_not_reset() -> None:
    engine = make_engine("y ~ s(x0, sp=1e9) + s(x1)", waves_frame())
    before = engine.linear.prior.parameters[0]
    reset(engine, engine.linear.prior)
    np.testing.assert_array_equal(engine.linear.prior.parameters[0], before)


def test_a_tensor_product_is_on_only_for_more_than_its_price() -> None:
    rng = np.random.default_rng(1)
    data = pd.DataFrame(rng.uniform(-1, 1, (500, 2)), columns=["x", "z"])
    surface = data.x * data.z
    for strength, noise, comes in [(0.0, 1.0, False), (2.0, 0.4, True)]:
        frame = data.assign(y=strength * surface + 0.5 * rng.normal(size=500))
        engine = make_engine("y ~ s(x) + s(z) + ti(x, z)", frame)
        prior, system = linear_system(engine, noise)
        kept = switch_off(prior.newton_steps(system, 20), system)
        assert bool(kept.prior.is_off[2]) is not comes
        assert not kept.prior.is_off[:2].any()  # smooths have no price
        reset(engine, prior.without_effect(2), noise)
        engine.update_linear(prune=True)
        assert bool(engine.linear.prior.is_off[2]) is not comes
