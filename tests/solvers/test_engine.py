"""Block updates and the bound against dense linear algebra and sums over all subsets."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.job import Rows
from ahofm_keras.solvers.priors import FREEDOM
from tests.solvers.conftest import all_features, dense_functions, draw_posterior, make_engine, pair_frame

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


def mixed_engine(random: bool, **options: Any) -> tuple[Engine, list[np.ndarray]]:
    data = mixed_frame()
    engine = make_engine(FORMULA, data, weight=weights(), random=random, chunk_rows=17, **options)
    draw_posterior(engine, seed=2)
    return engine, dense_functions(engine, data)


def gather(engine: Engine, name: str) -> np.ndarray:
    return np.concatenate([getattr(chunk, name) for chunk in engine.chunks])


def group_moments(engine: Engine, index: int, functions: list[np.ndarray]) -> list[tuple[Any, Any]]:
    """Means `(F, n)` and covariances `(F, F, n)` of the factors of each feature."""
    moments = []
    for block in engine.groups[index].blocks:
        X = functions[block.position]
        rank, width = block.factors.shape
        covariance = block.covariance.reshape(rank, width, rank, width)
        if not engine.random:
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


def linear_columns(engine: Engine, functions: list[np.ndarray]) -> np.ndarray:
    """All columns of the linear block `(n, q)`."""
    columns = np.concatenate([chunk.columns for chunk in engine.chunks], axis=1)
    smooths = [functions[own.term.feature] for own in engine.linear.terms]
    return np.hstack([np.ones((columns.shape[1], 1)), columns.T, *smooths])


def group_means(engine: Engine, functions: list[np.ndarray]) -> list[np.ndarray]:
    parts = []
    for index, group in enumerate(engine.groups):
        moments = group_moments(engine, index, functions)
        parts.append(sum(product_mean(moments, 0, group.order, f, f) for f in range(group.rank)))
    return parts


def expected_system(
    engine: Engine, index: int, feature: int, functions: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Gram matrix and right hand side of the expected square in one block, without its own prior."""
    group, w = engine.groups[index], gather(engine, "weight")
    others = group_moments(engine, index, functions)
    others.pop(feature)
    X = functions[group.blocks[feature].position]
    parts = group_means(engine, functions)
    parts.pop(index)
    rest = gather(engine, "target") - linear_columns(engine, functions) @ engine.linear.mean - sum(parts)
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
@pytest.mark.parametrize("random", [False, True], ids=["fixed", "no spread"])
def test_a_block_without_spread_is_penalised_least_squares(
    order: int, feature: int, random: bool
) -> None:
    engine, functions = mixed_engine(random)
    index = order - 2
    for group in engine.groups if random else ():
        for block in group.blocks:
            block.set_posterior(
                block.mean, np.zeros_like(block.covariance) + 1e-300 * np.eye(len(block.mean))
            )
    engine.rebuild()
    block = engine.groups[index].blocks[feature]
    others = group_moments(engine, index, functions)
    others.pop(feature)
    X = functions[block.position]
    columns = [X * product_mean(others, 0, order - 1, f, f)[:, None] for f in range(block.rank)]
    parts = group_means(engine, functions)
    own = sum(product_mean(others, 0, order, f, f) for f in range(block.rank))
    parts[index] = own
    fit = linear_columns(engine, functions) @ engine.linear.mean + sum(parts)
    root = np.sqrt(gather(engine, "weight"))
    precisions = block.prior.precisions()
    A = np.vstack([root[:, None] * np.hstack(columns), np.diag(np.sqrt(precisions))])
    b = np.concatenate([root * (gather(engine, "target") - fit), np.zeros(len(precisions))])
    engine.update_factors(index, feature)
    assert_equal(block.mean, np.linalg.lstsq(A, b, rcond=None)[0], 1e-7)


@every_feature
@every_order
def test_a_block_is_solved_for_the_expected_square(order: int, feature: int) -> None:
    engine, functions = mixed_engine(random=True)
    block = engine.groups[order - 2].blocks[feature]
    gram, rhs = expected_system(engine, order - 2, feature, functions)
    A = gram + np.diag(block.prior.precisions())
    engine.update_factors(order - 2, feature)
    assert_equal(block.mean, np.linalg.solve(A, rhs))
    assert_equal(block.covariance, engine.dispersion * np.linalg.inv(A))
    assert block.log_determinant == pytest.approx(np.linalg.slogdet(block.covariance)[1], abs=1e-6)
    assert_equal(block.edf, np.linalg.solve(A, gram).diagonal())


@pytest.mark.parametrize("random", [False, True])
def test_the_linear_block_is_weighted_penalised_least_squares(random: bool) -> None:
    engine, functions = mixed_engine(random)
    X, w = linear_columns(engine, functions), gather(engine, "weight")
    rest = gather(engine, "target") - sum(group_means(engine, functions))
    A = X.T @ (w[:, None] * X) + np.diag(engine.linear.prior.precisions())
    engine.update_linear()
    assert_equal(engine.linear.mean, np.linalg.solve(A, X.T @ (w * rest)), 1e-7)
    assert_equal(engine.linear.covariance, engine.dispersion * np.linalg.inv(A), 1e-7)
    assert_equal(gather(engine, "linear"), X @ engine.linear.mean)


def test_weights_change_the_linear_block() -> None:
    data = mixed_frame()
    means = []
    for weight in (None, weights()):
        engine = make_engine(FORMULA, data, weight=weight)
        engine.update_linear()
        means.append(engine.linear.mean)
    assert np.abs(means[0] - means[1]).max() > 1e-2


def test_precisions_are_lambda_times_the_penalty_over_the_rows() -> None:
    engine = make_engine(FORMULA, mixed_frame(), random=False)
    design = engine.design
    for group in engine.groups:
        for block, smoothing in zip(group.blocks, group.term.orders[group.place].smoothing, strict=True):
            wanted = np.tile(engine.rows * smoothing * design.features[block.position].eigenvalues, 2)
            np.testing.assert_allclose(block.prior.precisions(), wanted, rtol=1e-12)
    np.testing.assert_array_equal(engine.linear.prior.precisions()[:2], 0)


def test_a_feature_that_dominates_leaves_the_others_their_digits() -> None:
    engine, functions = mixed_engine(random=True)
    large = engine.groups[1].blocks[0]
    large.set_posterior(1e7 * large.mean, 1e14 * large.covariance)
    engine.rebuild()
    gram, rhs = expected_system(engine, 1, 0, functions)
    engine.update_factors(1, 0)
    assert_equal(large.mean, np.linalg.solve(gram + np.diag(large.prior.precisions()), rhs))
    fit = sum(chunk.moments[1].total.sum() for chunk in engine.chunks)
    engine.rebuild()
    assert sum(chunk.moments[1].total.sum() for chunk in engine.chunks) == pytest.approx(fit, rel=1e-7)


# The bound


def dense_bound(engine: Engine, functions: list[np.ndarray]) -> float:
    """E log p(y, coefficients) + entropy, less the price of freedom, from the definitions."""
    w, target = gather(engine, "weight"), gather(engine, "target")
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
        q = block.prior.precisions()
        second = block.mean**2 + block.covariance.diagonal()
        proper = q > 0
        total += (np.log(q[proper] / (2 * np.pi * noise)) - q[proper] * second[proper] / noise).sum() / 2
        entropy = len(q) * (1 + np.log(2 * np.pi)) + np.linalg.slogdet(block.covariance)[1]
        total += (entropy - (len(q) - proper.sum()) * np.log(2 * np.pi)) / 2
    return float(total) - price_of_freedom(engine, X)


def price_of_freedom(engine: Engine, X: np.ndarray) -> float:
    """`FREEDOM` times what each function of a smooth would have if it were alone, from the rows."""
    w, q, price = gather(engine, "weight"), engine.linear.prior.precisions(), 0.0
    for own, place in zip(engine.linear.terms, engine.linear.slices, strict=True):
        if own.features[0].basis.is_spline:
            seen = w @ X[:, place] ** 2
            price += FREEDOM * float((seen / (seen + q[place])).sum())
    return price


def test_the_bound_is_its_definition() -> None:
    engine, functions = mixed_engine(random=True)
    assert engine.bound() == pytest.approx(dense_bound(engine, functions), rel=1e-9)


def test_without_interactions_the_bound_is_the_evidence() -> None:
    data = mixed_frame()
    engine = make_engine("y ~ s(x0, k=6) + s(x1) + s(group) - 1", data, weight=weights())
    engine.dispersion = 0.3
    engine.update_linear()
    X = np.hstack(dense_functions(engine, data))
    covariance = X / engine.linear.prior.precisions() @ X.T + np.diag(1 / weights())
    evidence = multivariate_normal(cov=0.3 * covariance).logpdf(gather(engine, "target"))
    price = price_of_freedom(engine, X)
    assert price > 1
    assert engine.bound() == pytest.approx(evidence - price - np.log(weights()).sum() / 2, rel=1e-8)


@every_feature
@every_order
def test_no_other_mean_or_covariance_of_a_block_has_a_higher_bound(order: int, feature: int) -> None:
    engine, _ = mixed_engine(random=True)
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
                block.set_posterior(*other)
                engine.rebuild()
                assert engine.bound() < best
    block.set_posterior(mean, covariance)
    engine.rebuild()
    assert engine.bound() == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("factor", [0.9, 0.999, 1.001, 1.1])
def test_no_other_dispersion_has_a_higher_bound(factor: float) -> None:
    engine, _ = mixed_engine(random=True)
    engine.update_dispersion()
    best = engine.bound()
    engine.dispersion *= factor
    assert engine.bound() < best


def test_no_other_linear_block_has_a_higher_bound() -> None:
    engine, _ = mixed_engine(random=True)
    engine.update_linear()
    best, block = engine.bound(), engine.linear
    mean, rng = block.mean, np.random.default_rng(4)
    for _ in range(10):
        block.mean = mean + 1e-3 * rng.normal(size=len(mean))
        engine.rebuild()
        assert engine.bound() < best


@every_order
def test_smoothing_steps_raise_the_bound_to_where_it_is_flat(order: int) -> None:
    engine, _ = mixed_engine(random=True)
    engine.update_factors(order - 2, 1)
    before = engine.bound()
    engine.update_factors(order - 2, 1, adapt=200)
    best, prior = engine.bound(), engine.groups[order - 2].blocks[1].prior
    assert best > before + 0.1
    found, reach = prior.parameters, prior.start + 24
    for place in np.argwhere(prior.free & (np.abs(found) < np.abs(reach))):
        for step in (-0.3, 0.3):
            prior.parameters = found.copy()
            prior.parameters[tuple(place)] += step
            engine.update_factors(order - 2, 1)
            assert engine.bound() < best + 1e-4
            prior.parameters = found
            engine.update_factors(order - 2, 1)


def test_reviving_keeps_smoothing_that_was_better() -> None:
    engine, _ = mixed_engine(random=True)
    engine.update_linear(adapt=50)
    best, prior = engine.bound(), engine.linear.prior
    prior.start = prior.parameters + 20  # where the evidence is flat and steps do not come back from
    engine.update_linear(revive=True)
    assert engine.bound() >= best - 1e-8 * engine.rows


def test_reviving_brings_a_smooth_back() -> None:
    engine, _ = mixed_engine(random=True)
    engine.update_linear(adapt=50)
    best, prior = engine.bound(), engine.linear.prior
    prior.parameters = prior.parameters + 20
    engine.update_linear(adapt=1)
    assert engine.bound() < best - 1
    engine.update_linear(revive=True)
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
    for adapt, revive in [(0, False), (1, False), (1, True), (1, False)]:
        engine.sweep(adapt, revive)
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
            engine.sweep(adapt=1, revive=True)
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
        engine.linearise(start=True)
        targets.append(gather(engine, "target"))
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
    eta = engine.shift + engine.scale * np.concatenate([chunk.fit() for chunk in engine.chunks])
    mean = {"gaussian": eta, "bernoulli": 1 / (1 + np.exp(-eta))}.get(family, np.exp(eta))
    slope, variance = (function(mean) for function in WORKING[family])
    np.testing.assert_allclose(gather(engine, "weight"), weights(90) * slope**2 / variance, rtol=1e-9)
    response = eta - engine.shift + (data.y.to_numpy() - mean) / slope
    np.testing.assert_allclose(gather(engine, "target"), response / engine.scale, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("family", ["bernoulli", "poisson"])
def test_a_chunk_of_zeros_has_a_start(family: str) -> None:
    data = pair_frame(90, family=family).sort_values("y")
    engine = make_engine("y ~ s(x0, k=6)", data, family=family, chunk_rows=10)
    assert not engine.chunks[0].y.any()
    engine.linearise(start=True)
    engine.update_linear()
    assert np.isfinite(engine.linear.mean).all()


def test_a_state_can_be_restored() -> None:
    engine, _ = mixed_engine(random=True)
    engine.sweep(adapt=1)
    kept, bound = engine.state(), engine.bound()
    for _ in range(3):
        engine.sweep(adapt=1, revive=True)
    assert engine.bound() > bound + 0.1
    engine.restore(kept)
    assert engine.bound() == pytest.approx(bound, rel=1e-10)
    engine.sweep(adapt=1)
    again = engine.bound()
    engine.restore(kept)
    engine.sweep(adapt=1)
    assert engine.bound() == pytest.approx(again, rel=1e-10)


def test_a_reset_engine_is_a_new_one() -> None:
    engine = make_engine(FORMULA, mixed_frame())
    new = engine.state()
    for _ in range(2):
        engine.sweep(adapt=1)
    engine.reset()
    assert engine.dispersion == 1
    for found, wanted in zip(engine.blocks, new.blocks, strict=True):
        np.testing.assert_array_equal(found.mean, wanted.mean)
        np.testing.assert_array_equal(found.prior.parameters, wanted.prior.parameters)
    assert all(not chunk.fit().any() for chunk in engine.chunks)


def test_predictions_on_training_rows_are_the_fit() -> None:
    data = mixed_frame()
    engine, functions = mixed_engine(random=True)
    X = linear_columns(engine, functions)
    eta = X @ engine.linear.mean + sum(group_means(engine, functions))
    other = make_engine(FORMULA, data, weight=weights())
    rows = read_rows(other)
    assert_equal(engine.predict(rows), engine.shift + engine.scale * eta)
    deviance = weights() @ (data.y.to_numpy() - engine.predict(rows)) ** 2
    assert engine.deviance() == pytest.approx(deviance, rel=1e-9)


def read_rows(engine: Engine) -> Rows:
    places = np.stack(
        [
            np.concatenate([c.bases[j].places for c in engine.chunks])
            for j in range(len(engine.design.features))
        ],
        axis=1,
    )
    columns = np.concatenate([chunk.columns.T for chunk in engine.chunks])
    return Rows((places, columns), gather(engine, "y"))
