"""Functions that the penalty leaves nothing of: the rule, dense algebra, and fits without the rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.solvers.functions_in_use import FunctionGroups
from ahofm_keras.solvers.precision import Precision
from ahofm_keras.solvers.priors import BlockPrior, Solution, System
from ahofm_keras.solvers.settings import Settings, use_settings
from tests.solvers.conftest import Run, make_engine

PAIRS = "y ~ ahofm(x0, x1, x2, D=2, F=2, k=60)"
SMOOTHS = "y ~ s(x0, k=60) + s(x1, k=60) + x2"


def wavy_frame(rows: int = 500, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(rng.uniform(-1, 1, (rows, 3)), columns=["x0", "x1", "x2"])
    mean = np.sin(3 * data.x0) * data.x1 + np.cos(2 * data.x1) + data.x2
    return data.assign(y=mean + 0.4 * rng.normal(size=rows))


# The rule


@pytest.mark.parametrize("seed", range(20))
def test_as_many_are_left_out_as_the_sum_of_squares_allows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    settings = Settings(left_out=10.0 ** rng.uniform(-6, -1), few_functions=int(rng.integers(0, 6)))
    groups = rng.integers(-1, 4, 60)
    shares = 10.0 ** rng.uniform(-6, 0, 60)
    found = FunctionGroups(groups).in_use(shares, settings)
    assert found[groups < 0].all()
    for group in range(groups.max() + 1):
        own = np.flatnonzero(groups == group)
        rising = own[np.argsort(shares[own])]
        count = 0
        while (
            count < len(own) - settings.few_functions
            and np.sum(shares[rising[: count + 1]] ** 2) <= settings.left_out
        ):
            count += 1
        assert set(np.flatnonzero(~found & (groups == group))) == set(rising[:count])


def test_nothing_is_left_out_of_nothing() -> None:
    assert FunctionGroups(np.zeros(0, int)).in_use(np.zeros(0), Settings()).shape == (0,)


def test_the_usual_number_of_functions_is_always_in_use() -> None:
    assert Settings().few_functions >= 20
    run = make_engine("y ~ s(x0) + ahofm(x1, x2, D=2, F=2)", wavy_frame(200))
    for block in run.blocks:
        block = block.prior.at(block.prior.parameters + 20)
        assert block.in_use(block.gram_diagonal).all()


# Dense algebra


def draw_system(size: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, 2 * size))
    return root @ root.T, 10.0 ** rng.uniform(-2, 3, size), np.flatnonzero(rng.random(size) < 0.6)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_not_in_use_stands_on_the_diagonal_alone(seed: int) -> None:
    gram, precisions, in_use = draw_system(12, seed)
    rhs = np.random.default_rng(seed).normal(size=12)
    others = np.setdiff1d(np.arange(12), in_use)
    assert len(others)
    own = gram.copy()
    for other in others:
        own[other] = own[:, other] = 0.0
        own[other, other] = gram[other, other]
    dense = own + np.diag(precisions)
    found = Precision.factorise(gram, precisions, in_use)
    np.testing.assert_allclose(found.inverse, np.linalg.inv(dense), rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(found.inverse_diagonal, np.linalg.inv(dense).diagonal(), rtol=1e-9)
    np.testing.assert_allclose(found.explained(gram), (found.inverse @ own).diagonal(), rtol=1e-9)
    assert found.log_determinant == pytest.approx(np.linalg.slogdet(dense)[1], rel=1e-12)
    wanted = np.linalg.solve(dense, np.where(np.isin(np.arange(12), in_use), rhs, 0.0))
    np.testing.assert_allclose(found.solve(rhs), wanted, rtol=1e-9, atol=1e-14)


def solved_smooths() -> tuple[Solution, System]:
    run = make_engine(SMOOTHS, wavy_frame(), left_out=1e-3)
    run.update_linear(newton_steps=10)
    system = System(run.linear_gram, run.linear_gram @ run.linear.mean, 0.2)
    prior = run.linear.prior.seeing(run.linear_gram)
    return prior.solve(system), system


def test_steps_on_the_smoothing_follow_the_evidence() -> None:
    """Derivatives against differences, where some functions are not in use."""
    solution, system = solved_smooths()
    prior = solution.prior
    assert solution.precision.in_use is not None
    assert 30 < len(solution.precision.in_use) < 100

    def evidence(shift: np.ndarray) -> float:
        # The same functions in use: the derivatives know nothing of one more.
        moved = prior.at(prior.parameters + shift.reshape(prior.parameters.shape))
        precision = Precision.factorise(
            system.gram,
            np.where(moved.shape.penalised, moved.precisions, 1e-7),
            solution.precision.in_use,
        )
        return moved.solve(system, precision).evidence

    gradient, hessian = prior._derivatives(solution, system.dispersion)
    free, step = np.flatnonzero(prior.free), 1e-3
    for a in free:
        one = step * (np.arange(prior.free.size) == a)
        slope = (evidence(one) - evidence(-one)) / (2 * step)
        assert gradient[a] == pytest.approx(slope, rel=1e-4, abs=1e-5)
        for b in free:
            other = step * (np.arange(prior.free.size) == b)
            corners = evidence(one + other) - evidence(one - other)
            corners += evidence(-one - other) - evidence(other - one)
            assert hessian[a, b] == pytest.approx(corners / (4 * step**2), rel=1e-3, abs=1e-3)


# Blocks of factors


def solved_pairs(**settings: float) -> Run:
    run = make_engine(PAIRS, wavy_frame(), **settings)
    run.set_means(lambda block: np.tile(np.eye(block.width)[1] + np.eye(block.width)[2], block.rank))
    for _ in range(6):
        run.sweep(newton_steps=1)
    return run


def test_a_smooth_factor_holds_few_functions_and_a_rough_one_all() -> None:
    run = solved_pairs()
    block = run.groups[0].blocks[0]
    assert len(block.feature.eigenvalues) == 59
    assert run.engine.settings.few_functions <= block.width < 59
    assert block.transform.shape == (60, block.width)
    rough = block.prior.at(block.prior.parameters - 20)
    assert replace(block, prior=rough).needed == 59
    assert block.prepared(59).width == 59
    ready = block.prepared()
    assert ready.width <= block.width
    assert block.whole().prepared().width == ready.width


def test_a_block_is_the_same_function_with_more_functions() -> None:
    block = solved_pairs().groups[0].blocks[1]
    whole, dispersion = block.whole(), block.spread.dispersion
    assert whole.width == 59 > block.width
    own, other = block.posterior, whole.posterior
    np.testing.assert_allclose(other.coefficients, own.coefficients, rtol=0, atol=1e-12)
    np.testing.assert_allclose(whole.resized(block.width).covariance, block.covariance)
    np.testing.assert_allclose(whole.resized(block.width).prior.precisions, block.prior.precisions)
    assert whole.edf.sum() == pytest.approx(block.edf.sum())
    # What is new has the variance of the prior, and covaries with nothing.
    new = np.tile(np.arange(59) >= block.width, 2)
    wanted = np.diag(dispersion / whole.prior.precisions[new])
    np.testing.assert_allclose(whole.covariance[np.ix_(new, new)], wanted)
    assert not whole.covariance[np.ix_(new, ~new)].any()


def test_factors_of_blocks_of_different_widths_stand_side_by_side() -> None:
    block = solved_pairs().groups[0].blocks[1]
    wide = block.resized(50)
    both = block.beside(wide)
    assert (both.rank, both.width) == (4, 50)
    for factors in (both.factors[:2], both.factors[2:]):
        np.testing.assert_array_equal(factors, wide.factors)
    np.testing.assert_array_equal(both.without(0).factors, both.factors[1:])
    mean = replace(wide, mean=3 * wide.mean).half_way_to(block).mean
    np.testing.assert_allclose(mean, 2 * wide.mean)


def test_a_prior_of_more_functions_is_that_of_a_new_block() -> None:
    run = make_engine(PAIRS, wavy_frame(), variational=False)
    other = make_engine(PAIRS, wavy_frame(), variational=False, left_out=0.0)
    for block, wanted in zip(run.groups[0].blocks, other.groups[0].blocks, strict=True):
        found: BlockPrior = block.whole().prior
        assert wanted.width == 59
        np.testing.assert_array_equal(found.groups, wanted.prior.groups)
        np.testing.assert_array_equal(found.precisions, wanted.prior.precisions)
        assert found.size == wanted.prior.size < 118  # straight lines are free


# Fits


@pytest.mark.parametrize("formula", [SMOOTHS, PAIRS])
def test_the_bound_hardly_falls_while_the_number_of_functions_changes(formula: str) -> None:
    run = make_engine(formula, wavy_frame(), few_functions=10)
    if run.groups:
        run = solved_pairs()
    bounds, widths = [], set()
    for number in range(12):
        run.sweep(newton_steps=min(number, 1))
        bounds.append(run.bound())
        used = run.linear.spread.solution.precision.in_use
        widths.add(
            (None if used is None else len(used), *(b.width for g in run.groups for b in g.blocks))
        )
    assert len(widths) > 1
    assert np.diff(bounds).min() > -0.02


@pytest.mark.parametrize(
    ("formula", "family"), [(SMOOTHS, "gaussian"), (PAIRS, "gaussian"), (SMOOTHS, "poisson")]
)
def test_fits_are_those_of_all_functions(formula: str, family: str) -> None:
    data = wavy_frame()
    if family == "poisson":
        data["y"] = np.random.default_rng(0).poisson(np.exp(0.5 * data.y))
    found = []
    for left_out in (Settings().left_out, 0.0):
        with use_settings(left_out=left_out, bound_gain=1e-6):
            model = ak.fit(formula, data, family=family, restarts=0, verbose=0)
        found.append(model.predict(data, interval=0.9))
    for column in ("mean", "lower", "upper"):
        difference = (found[0][column] - found[1][column]).to_numpy()
        assert np.sqrt(np.mean(difference**2)) < 1e-3 * float(data.y.std())
