"""Block updates and the bound against dense linear algebra and sums over all subsets."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

from ahofm_keras.solvers import tasks
from ahofm_keras.solvers.job import Rows
from ahofm_keras.solvers.moves import try_moves
from ahofm_keras.solvers.moves.reset_smoothing import ResetSmoothing
from ahofm_keras.solvers.settings import Settings
from ahofm_keras.solvers.state import Rough
from ahofm_keras.solvers.store import add_up
from ahofm_keras.terms import EncodedRows
from tests.solvers.conftest import (
    Run,
    all_features,
    dense_functions,
    draw_posterior,
    make_engine,
    pair_frame,
)

pytestmark = pytest.mark.usefixtures("kernels")
every_order = pytest.mark.parametrize("order", [2, 3])
every_feature = pytest.mark.parametrize("feature", [0, 3])
FORMULA = "y ~ x0 + s(x1, k=6) + ahofm(x0, x1, x2, group, D=3, F=2, k=6)"


def mixed_frame(rows: int = 40, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    data = pair_frame(rows, seed=seed)
    data["group"] = rng.choice(["a", "b", "c", "d"], rows)
    return data


def weights(rows: int = 40) -> np.ndarray:
    return np.random.default_rng(1).uniform(0.2, 3.0, rows)


def mixed_engine(variational: bool, **options: Any) -> tuple[Run, list[np.ndarray]]:
    data = mixed_frame()
    engine = make_engine(
        FORMULA, data, weight=weights(), variational=variational, chunk_rows=17, **options
    )
    draw_posterior(engine, seed=2)
    return engine, dense_functions(engine, data)


def group_moments(engine: Run, index: int, functions: list[np.ndarray]) -> list[tuple[Any, Any]]:
    """Means `(F, n)` and covariances `(F, F, n)` of the factors of each feature."""
    moments = []
    for block in engine.groups[index].blocks:
        X = functions[block.position]
        rank, width = block.factors.shape
        covariance = block.covariance.reshape(rank, width, rank, width)
        if not engine.engine.variational:
            covariance = 0 * covariance
        moments.append((block.factors @ X.T, np.einsum("na,fagb,nb->fgn", X, covariance, X)))
    return moments


def product_mean(moments: list[tuple[Any, Any]], a: int, b: int, f: int, g: int) -> np.ndarray:
    """E e_a(phi_.f) e_b(phi_.g), subset by subset; features are independent."""
    total = np.zeros(moments[0][0].shape[1])
    for first in combinations(range(len(moments)), a):
        for second in combinations(range(len(moments)), b):
            value = np.ones_like(total)
            for j, (mean, covariance) in enumerate(moments):
                if j in first and j in second:
                    value = value * (mean[f] * mean[g] + covariance[f, g])
                elif j in first or j in second:
                    value = value * mean[f if j in first else g]
            total += value
    return total


def linear_columns(engine: Run, functions: list[np.ndarray]) -> np.ndarray:
    """All columns of the linear block `(n, q)`."""
    columns = np.concatenate([chunk.columns for chunk in engine.chunks], axis=1)
    smooths = [functions[own.term.feature] for own in engine.linear.columns.layout.penalised]
    return np.hstack([np.ones((columns.shape[1], 1)), columns.T, *smooths])


def group_means(engine: Run, functions: list[np.ndarray]) -> list[np.ndarray]:
    parts = []
    for index, group in enumerate(engine.groups):
        moments = group_moments(engine, index, functions)
        parts.append(sum(product_mean(moments, 0, group.order, f, f) for f in range(group.rank)))
    return parts


def expected_system(
    engine: Run, index: int, feature: int, functions: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Gram matrix and right hand side of the expected square in one block, without its own prior."""
    group, w = engine.groups[index], engine.weight()
    others = group_moments(engine, index, functions)
    others.pop(feature)
    X = functions[group.blocks[feature].position]
    parts = group_means(engine, functions)
    parts.pop(index)
    rest = engine.target() - linear_columns(engine, functions) @ engine.linear.mean - sum(parts)
    d, rank = group.order, group.rank
    gram = np.zeros((rank, X.shape[1], rank, X.shape[1]))
    rhs = np.zeros((rank, X.shape[1]))
    for f in range(rank):
        slope = rest * product_mean(others, d - 1, 0, f, f)
        for g in range(rank):
            gram[f, :, g] = (X.T * w * product_mean(others, d - 1, d - 1, f, g)) @ X
            slope = slope - product_mean(others, d - 1, d, f, g)
        rhs[f] = X.T @ (w * slope)
    return gram.reshape(rhs.size, rhs.size), rhs.reshape(-1)


def assert_equal(found: np.ndarray, wanted: np.ndarray, rtol: float = 1e-8) -> None:
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= rtol * np.abs(wanted).max()


# One block


@every_feature
@every_order
@pytest.mark.parametrize("variational", [False, True], ids=["fixed", "no spread"])
def test_a_block_without_spread_is_penalised_least_squares(
    order: int, feature: int, variational: bool
) -> None:
    engine, functions = mixed_engine(variational)
    index = order - 2
    for at, group in enumerate(engine.groups if variational else ()):
        for j, block in enumerate(group.blocks):
            engine.set_posterior(at, j, block.mean, 1e-300 * np.eye(len(block.mean)))
    block = engine.groups[index].blocks[feature]
    others = group_moments(engine, index, functions)
    others.pop(feature)
    X = functions[block.position]
    columns = [X * product_mean(others, 0, order - 1, f, f)[:, None] for f in range(block.rank)]
    parts = group_means(engine, functions)
    own = sum(product_mean(others, 0, order, f, f) for f in range(block.rank))
    parts[index] = own
    fit = linear_columns(engine, functions) @ engine.linear.mean + sum(parts)
    root = np.sqrt(engine.weight())
    precisions = block.prior.precisions
    A = np.vstack([root[:, None] * np.hstack(columns), np.diag(np.sqrt(precisions))])
    b = np.concatenate([root * (engine.target() - fit), np.zeros(len(precisions))])
    engine.update_factors(index, feature)
    block = engine.groups[index].blocks[feature]
    assert_equal(block.mean, np.linalg.lstsq(A, b, rcond=None)[0], 1e-7)


@every_feature
@every_order
def test_a_block_is_solved_for_the_expected_square(order: int, feature: int) -> None:
    engine, functions = mixed_engine(variational=True)
    block = engine.groups[order - 2].blocks[feature]
    gram, rhs = expected_system(engine, order - 2, feature, functions)
    A = gram + np.diag(block.prior.precisions)
    engine.update_factors(order - 2, feature)
    block = engine.groups[order - 2].blocks[feature]
    assert_equal(block.mean, np.linalg.solve(A, rhs))
    assert_equal(block.covariance, engine.dispersion * np.linalg.inv(A))
    assert block.spread.log_determinant == pytest.approx(
        np.linalg.slogdet(block.covariance)[1], abs=1e-6
    )
    assert_equal(block.edf, np.linalg.solve(A, gram).diagonal())


@pytest.mark.parametrize("variational", [False, True])
def test_the_linear_block_is_weighted_penalised_least_squares(variational: bool) -> None:
    engine, functions = mixed_engine(variational)
    X, w = linear_columns(engine, functions), engine.weight()
    rest = engine.target() - sum(group_means(engine, functions))
    A = X.T @ (w[:, None] * X) + np.diag(engine.linear.prior.precisions)
    engine.update_linear()
    assert_equal(engine.linear.mean, np.linalg.solve(A, X.T @ (w * rest)), 1e-7)
    assert_equal(engine.linear.covariance, engine.dispersion * np.linalg.inv(A), 1e-7)
    fits = [chunk.linear_fit(engine.state) for chunk in engine.chunks]
    assert_equal(np.concatenate(fits), X @ engine.linear.mean)


def test_weights_change_the_linear_block() -> None:
    data = mixed_frame()
    means = []
    for weight in (None, weights()):
        engine = make_engine(FORMULA, data, weight=weight)
        engine.update_linear()
        means.append(engine.linear.mean)
    assert np.abs(means[0] - means[1]).max() > 1e-2


def test_precisions_are_lambda_times_the_penalty_over_the_rows() -> None:
    engine = make_engine(FORMULA, mixed_frame(), variational=False)
    design = engine.design
    for group in engine.groups:
        for block, smoothing in zip(group.blocks, group.factors.smoothing, strict=True):
            wanted = np.tile(engine.rows * smoothing * design.features[block.position].eigenvalues, 2)
            np.testing.assert_allclose(block.prior.precisions, wanted, rtol=1e-12)
    np.testing.assert_array_equal(engine.linear.prior.precisions[:2], 0)


def test_a_feature_that_dominates_leaves_the_others_their_digits() -> None:
    engine, functions = mixed_engine(variational=True)
    large = engine.groups[1].blocks[0]
    engine.set_posterior(1, 0, 1e7 * large.mean, 1e14 * large.covariance)
    gram, rhs = expected_system(engine, 1, 0, functions)
    engine.update_factors(1, 0)
    found = engine.groups[1].blocks[0].mean
    assert_equal(found, np.linalg.solve(gram + np.diag(large.prior.precisions), rhs))
    fit = engine.fit()
    fresh = np.concatenate([chunk.evaluate(engine.state) for chunk in engine.chunks])
    np.testing.assert_allclose(fresh, fit, rtol=0, atol=1e-7 * np.abs(fit).max())


# The bound


def dense_bound(engine: Run, functions: list[np.ndarray]) -> float:
    """E log p(y, coefficients) + entropy, less the price of freedom, from the definitions."""
    w, target = engine.weight(), engine.target()
    X = linear_columns(engine, functions)
    mean = X @ engine.linear.mean
    variance = np.einsum("na,ab,nb->n", X, engine.linear.covariance, X)
    for index, group in enumerate(engine.groups):
        moments = group_moments(engine, index, functions)
        pairs = [(f, g) for f in range(group.rank) for g in range(group.rank)]
        own = sum(product_mean(moments, 0, group.order, f, f) for f in range(group.rank))
        variance = variance + sum(product_mean(moments, group.order, group.order, *p) for p in pairs)
        mean, variance = mean + own, variance - own**2
    noise = engine.dispersion
    total = (
        -(engine.rows * np.log(2 * np.pi * noise) + w @ ((target - mean) ** 2 + variance) / noise) / 2
    )
    for block in engine.blocks:
        q = block.prior.precisions
        second = block.mean**2 + block.covariance.diagonal()
        proper = q > 0
        total += (np.log(q[proper] / (2 * np.pi * noise)) - q[proper] * second[proper] / noise).sum() / 2
        entropy = len(q) * (1 + np.log(2 * np.pi)) + np.linalg.slogdet(block.covariance)[1]
        total += (entropy - (len(q) - proper.sum()) * np.log(2 * np.pi)) / 2
    return float(total) - price_of_freedom(engine, X)


def price_of_freedom(engine: Run, X: np.ndarray) -> float:
    """`edf_penalty` times what each function of a smooth would have if it were alone, from the rows."""
    w, q, price = engine.weight(), engine.linear.prior.precisions, 0.0
    for _, own, place in engine.linear.columns.layout.penalised:
        if own.features[0].basis.is_spline:
            seen = w @ X[:, place] ** 2
            price += Settings().edf_penalty * float((seen / (seen + q[place])).sum())
    return price


def test_the_bound_is_its_definition() -> None:
    engine, functions = mixed_engine(variational=True)
    assert engine.bound() == pytest.approx(dense_bound(engine, functions), rel=1e-9)


def test_without_interactions_the_bound_is_the_evidence() -> None:
    data = mixed_frame()
    engine = make_engine("y ~ s(x0, k=6) + s(x1) + s(group) - 1", data, weight=weights())
    engine.change(dispersion=0.3)
    engine.update_linear()
    X = np.hstack(dense_functions(engine, data))
    covariance = X / engine.linear.prior.precisions @ X.T + np.diag(1 / weights())
    evidence = multivariate_normal(cov=0.3 * covariance).logpdf(engine.target())
    price = price_of_freedom(engine, X)
    assert price > 1
    assert engine.bound() == pytest.approx(evidence - price - np.log(weights()).sum() / 2, rel=1e-8)


@every_feature
@every_order
def test_no_other_mean_or_covariance_of_a_block_has_a_higher_bound(order: int, feature: int) -> None:
    engine, _ = mixed_engine(variational=True)
    engine.update_factors(order - 2, feature)
    best, block = engine.bound(), engine.groups[order - 2].blocks[feature]
    mean, covariance = block.mean, block.covariance
    root, rng = np.linalg.cholesky(covariance), np.random.default_rng(3)
    for step in (0.3, 0.01):
        for _ in range(5):
            shift = root @ rng.normal(size=len(mean))
            skew = rng.normal(size=root.shape) / len(root)
            spread = np.eye(len(root)) + step * (skew + skew.T)
            others = [(mean + step * shift, covariance), (mean, root @ spread @ root.T)]
            for other in others:
                engine.set_posterior(order - 2, feature, *other)
                assert engine.bound() < best
    engine.set_posterior(order - 2, feature, mean, covariance)
    assert engine.bound() == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("factor", [0.9, 0.999, 1.001, 1.1])
def test_no_other_dispersion_has_a_higher_bound(factor: float) -> None:
    engine, _ = mixed_engine(variational=True)
    engine.update_dispersion()
    best = engine.bound()
    engine.change(dispersion=factor * engine.dispersion)
    assert engine.bound() < best


def test_no_other_linear_block_has_a_higher_bound() -> None:
    engine, _ = mixed_engine(variational=True)
    engine.update_linear()
    best, mean, rng = engine.bound(), engine.linear.mean, np.random.default_rng(4)
    for _ in range(10):
        engine.change_linear(mean=mean + 1e-3 * rng.normal(size=len(mean)))
        assert engine.bound() < best


@every_order
def test_smoothing_steps_raise_the_bound_to_where_it_is_flat(order: int) -> None:
    engine, _ = mixed_engine(variational=True)
    engine.update_factors(order - 2, 1)
    before = engine.bound()
    engine.update_factors(order - 2, 1, newton_steps=200)
    best, block = engine.bound(), engine.groups[order - 2].blocks[1]
    assert best > before + 0.1
    found, reach = block.prior.parameters, block.prior.start + 24
    for at in np.argwhere(block.prior.free & (np.abs(found) < np.abs(reach))):
        for step in (-0.3, 0.3):
            parameters = found.copy()
            parameters[tuple(at)] += step
            other = replace(block, prior=block.prior.at(parameters))
            engine.state = engine.state.with_factors(order - 2, 1, other)
            engine.update_factors(order - 2, 1)
            assert engine.bound() < best + 1e-4


def test_resetting_keeps_smoothing_that_was_better() -> None:
    engine, _ = mixed_engine(variational=True)
    engine.update_linear(newton_steps=50)
    best, prior = engine.bound(), engine.linear.prior
    # Where the evidence is flat and steps do not come back from.
    shape = replace(prior.shape, start=prior.parameters + 20)
    engine.change_linear(prior=replace(prior, shape=shape))
    engine.update_linear()
    engine.follow(try_moves(engine.engine, engine.state, [ResetSmoothing()]))
    assert engine.bound() >= best - 1e-8 * engine.rows


def test_resetting_brings_a_smooth_back() -> None:
    engine, _ = mixed_engine(variational=True)
    engine.update_linear(newton_steps=50)
    best = engine.bound()
    engine.change_smoothing(engine.linear.prior.parameters + 20)
    engine.update_linear(newton_steps=1)
    assert engine.bound() < best - 1
    engine.follow(try_moves(engine.engine, engine.state, [ResetSmoothing()]))
    assert engine.bound() > best - 0.1


def random_problem(seed: int) -> tuple[str, pd.DataFrame, np.ndarray | None]:
    """Small data with all that makes block updates hard."""
    rng = np.random.default_rng([seed, 7])
    n, p = int(rng.integers(20, 81)), int(rng.integers(2, 6))
    data = pd.DataFrame(rng.normal(size=(n, p)), columns=[f"x{j}" for j in range(p)])
    if rng.random() < 0.3:
        data["x1"] = data["x0"]
    if rng.random() < 0.3:
        data["x0"] = rng.integers(0, rng.integers(2, 6), n).astype(float)
        data.loc[:1, "x0"] = [0.0, 1.0]
    if rng.random() < 0.3:
        data["level"] = np.array(list("abcde"))[np.append([0, 1], rng.integers(0, 5, n - 2))]
    data["y"] = rng.normal(size=n) + rng.choice([0, 1, 5]) * data.iloc[:, 0] * data.iloc[:, 1].map(
        as_number
    )
    D = int(rng.integers(2, 1 + min(4, data.shape[1] - 1)))
    rank = int(rng.integers(1, 7))
    weight = rng.uniform(0, 3, n) * (rng.random(n) < 0.9) if rng.random() < 0.3 else None
    return f"y ~ ahofm({all_features(data)}, D={D}, F={rank})", data, weight


def as_number(value: Any) -> float:
    return float(value) if not isinstance(value, str) else float(value == "a")


@pytest.mark.parametrize("seed", range(200))
def test_the_bound_never_falls(seed: int) -> None:
    formula, data, weight = random_problem(seed)
    engine = make_engine(formula, data, weight=weight)
    draw_posterior(engine, seed, spread=0.5)
    engine.sweep()
    bound = engine.bound()
    for steps, prune in [(0, False), (1, False), (1, True), (1, False)]:
        engine.sweep(newton_steps=steps, prune_linear=prune)
        previous, bound = bound, engine.bound()
        assert np.isfinite(bound)
        assert bound >= previous - 1e-8 * engine.rows


def test_most_random_problems_have_more_coefficients_than_rows() -> None:
    sizes = []
    for seed in range(0, 200, 5):
        formula, data, _ = random_problem(seed)
        engine = make_engine(formula, data)
        sizes.append(sum(len(block.mean) for block in engine.blocks) > engine.rows)
    assert np.mean(sizes) > 0.8


# Rows and copies


def test_chunks_change_nothing() -> None:
    data = mixed_frame()
    states = []
    for chunk_rows in (7, 40):
        engine = make_engine(FORMULA, data, weight=weights(), chunk_rows=chunk_rows)
        draw_posterior(engine, seed=5)
        for _ in range(4):
            engine.sweep(newton_steps=1, prune_linear=True)
        states.append(engine)
    assert len(states[0].chunks) == 6
    for first, second in zip(states[0].blocks, states[1].blocks, strict=True):
        np.testing.assert_allclose(first.mean, second.mean, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(first.covariance, second.covariance, rtol=1e-8, atol=1e-10)
    assert states[0].bound() == pytest.approx(states[1].bound(), rel=1e-8)


@pytest.mark.parametrize("family", ["bernoulli", "poisson", "gamma"])
def test_chunks_change_nothing_at_the_start_of_other_families(family: str) -> None:
    data = pair_frame(90, family=family)
    targets = []
    for chunk_rows in (20, 90):
        engine = make_engine("y ~ s(x0, k=6)", data, family=family, chunk_rows=chunk_rows)
        engine.linearise(Rough.ALL)
        targets.append(engine.target())
    assert_equal(targets[0], targets[1])


WORKING = {  # slope of the mean by the predictor, and variance, as functions of the mean
    "gaussian": (np.ones_like, np.ones_like),
    "bernoulli": (lambda mean: mean * (1 - mean), lambda mean: mean * (1 - mean)),
    "poisson": (lambda mean: mean, lambda mean: mean),
    "gamma": (lambda mean: mean, np.square),
}


@pytest.mark.parametrize("family", WORKING)
def test_working_weights_and_responses(family: str) -> None:
    """w = slope^2 / variance and z = eta + (y - mean) / slope, in the model's scale."""
    data = pair_frame(90, family=family)
    engine = make_engine("y ~ x0 + s(x1, k=6)", data, family=family, weight=weights(90), chunk_rows=20)
    engine.update_linear()
    engine.linearise()
    eta = engine.shift + engine.scale * engine.fit()
    mean = {"gaussian": eta, "bernoulli": 1 / (1 + np.exp(-eta))}.get(family, np.exp(eta))
    slope, variance = (function(mean) for function in WORKING[family])
    np.testing.assert_allclose(engine.weight(), weights(90) * slope**2 / variance, rtol=1e-9)
    response = eta - engine.shift + (data.y.to_numpy() - mean) / slope
    np.testing.assert_allclose(engine.target(), response / engine.scale, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("family", ["bernoulli", "poisson"])
def test_a_chunk_of_zeros_has_a_start(family: str) -> None:
    data = pair_frame(90, family=family).sort_values("y")
    engine = make_engine("y ~ s(x0, k=6)", data, family=family, chunk_rows=10)
    assert not engine.chunks[0].y.any()
    engine.linearise(Rough.ALL)
    engine.update_linear()
    assert np.isfinite(engine.linear.mean).all()


def test_a_state_does_not_change() -> None:
    engine, _ = mixed_engine(variational=True)
    engine.sweep(newton_steps=1)
    kept, bound = engine.state, engine.bound()
    arrays = [(block.mean.copy(), block.prior.parameters.copy()) for block in kept.blocks]
    for _ in range(3):
        engine.sweep(newton_steps=1, prune_linear=True)
    assert engine.bound() > bound + 0.1
    engine.state = replace(kept)  # a state that nothing is known of
    assert engine.bound() == pytest.approx(bound, rel=1e-10)
    engine.sweep(newton_steps=1)
    again = engine.bound()
    engine.state = kept
    engine.sweep(newton_steps=1)
    assert engine.bound() == pytest.approx(again, rel=1e-10)
    for block, (mean, parameters) in zip(kept.blocks, arrays, strict=True):
        np.testing.assert_array_equal(block.mean, mean)
        np.testing.assert_array_equal(block.prior.parameters, parameters)
    with pytest.raises(FrozenInstanceError):
        kept.linear.mean = np.zeros(1)


@pytest.mark.parametrize("numbers", [0.0, 1e4, 1e9])
@pytest.mark.parametrize("family", ["gaussian", "gamma"])
def test_rows_follow_whatever_state_a_task_brings(family: str, numbers: float) -> None:
    """Caches of chunks, with room for more or fewer moments, against chunks without a state before."""
    data = mixed_frame()
    data["y"] = np.exp(data.y / data.y.std())
    engine = make_engine(FORMULA, data, family=family, chunk_rows=17, moment_numbers=numbers)
    draw_posterior(engine, seed=3, spread=0.1)
    states = [engine.state]
    for index, feature in [(0, 1), (1, 2), (0, 1)]:
        engine.update_factors(index, feature)
        states.append(engine.state)
    engine.linearise(Rough.FAR)
    states.append(engine.state)
    engine.sweep(newton_steps=1)
    states += [engine.state, replace(engine.state, groups=engine.groups[1:])]
    states.append(states[0].half_way_to(states[2]))
    rng = np.random.default_rng(0)
    for at in rng.permutation(np.repeat(np.arange(len(states)), 3)):
        state = replace(states[at])
        if rng.random() < 0.5 and state.groups:  # leaves a feature out of the moments
            engine.engine.factor_system(state, len(state.groups) - 1, 0)
        fresh = make_engine(FORMULA, data, family=family, chunk_rows=17).engine
        for task in (tasks.fit_sums, tasks.deviance, tasks.linear_sums, tasks.linear_gram):
            found, wanted = (own.store.reduce(task, state) for own in (engine.engine, fresh))
            if task is tasks.linear_gram:
                found, wanted = map(state.linear.columns.to_coordinates, (found, wanted))
            np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-8)


def test_tasks_and_states_can_be_sent_elsewhere() -> None:
    engine, _ = mixed_engine(variational=True)
    task, state = pickle.loads(pickle.dumps((tasks.fit_sums, engine.state)))
    found = engine.engine.store.reduce(task, state)
    wanted = engine.engine.store.reduce(tasks.fit_sums, engine.state)
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_what_adds_up() -> None:
    parts = [(1.0, [np.ones(2)], np.eye(2)), (2.0, [np.zeros(1)], np.eye(2))]
    number, rows, matrix = add_up(parts)
    assert number == 3.0
    assert [len(own) for own in rows] == [2, 1]
    np.testing.assert_array_equal(matrix, 2 * np.eye(2))
    np.testing.assert_array_equal(parts[0][2], np.eye(2))


def test_predictions_on_training_rows_are_the_fit() -> None:
    data = mixed_frame()
    engine, functions = mixed_engine(variational=True)
    X = linear_columns(engine, functions)
    eta = X @ engine.linear.mean + sum(group_means(engine, functions))
    other = make_engine(FORMULA, data, weight=weights())
    rows = read_rows(other)
    means = engine.engine.store_rows(rows).collect(tasks.means, engine.state)
    assert_equal(means, engine.shift + engine.scale * eta)
    assert_equal(engine.means(), means)
    deviance = weights() @ (data.y.to_numpy() - means) ** 2
    assert engine.deviance() == pytest.approx(deviance, rel=1e-9)


def read_rows(engine: Run) -> Rows:
    places = np.stack(
        [
            np.concatenate([c.bases[j].places for c in engine.chunks])
            for j in range(len(engine.design.features))
        ],
        axis=1,
    )
    columns = np.concatenate([chunk.columns.T for chunk in engine.chunks])
    encoded = EncodedRows({"positions": places, "columns": columns}, len(places))
    return Rows(encoded, np.concatenate([chunk.y for chunk in engine.chunks]))
