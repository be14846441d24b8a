"""Surfaces of pairs: the posterior of a tensor product, when they are tried, what files keep of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.solvers.groups import FactorGroup, can_be_surface, find_surface
from ahofm_keras.solvers.moves.search import significant_pairs
from ahofm_keras.solvers.settings import use_settings
from tests.solvers.conftest import Run, dense_functions, draw_response, fit_quietly, make_engine

NAMES = ("a", "b", "c", "d", "e")
FORMULA = "y ~ ahofm(a, b, c, d, e, D=2, k=10)"


def rich_frame(rows: int, pairs: int, seed: int = 0, family: str = "gaussian") -> pd.DataFrame:
    """Pairs that each have a surface of full rank: `mean`, of variance 1 or so, and `y` with noise."""
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(rng.uniform(size=(rows, len(NAMES))), columns=list(NAMES))
    data["mean"] = 0.0
    for one, other in list(combinations(NAMES, 2))[:pairs]:
        weights = rng.normal(size=(4, 4)) / 4
        left, right = (
            np.sqrt(2) * np.cos(np.pi * np.outer(np.arange(1, 5), data[x])) for x in (one, other)
        )
        data["mean"] += np.einsum("fn,fg,gn->n", left, weights, right) / np.sqrt(pairs)
    data["mean"] -= data["mean"].mean()
    scale = 1.0 if family == "gaussian" else 0.7
    return data.assign(y=draw_response(family, scale * data["mean"].to_numpy(), rng))


def noisy_frame() -> pd.DataFrame:
    data = rich_frame(2000, 10, seed=1)
    return data.assign(y=data["mean"] + 1.4 * np.random.default_rng(5).normal(size=2000))


def with_surface(run: Run, pair: tuple[int, int] = (0, 1)) -> FactorGroup:
    """The only group of an engine's state becomes a surface, at some smoothing."""
    (order,) = run.design.layout.only.orders
    group = run.engine.make_surface(order, 0, pair)
    block = group.solved
    own = block.prior.at(np.where(block.prior.free, block.prior.parameters - 2.0, -np.inf))
    run.change(groups=(group.with_block(pair[1], replace(block, prior=own)),), dispersion=0.3)
    return run.state.groups[0]


def dense_surface(run: Run, data: pd.DataFrame, group: FactorGroup) -> tuple[np.ndarray, np.ndarray]:
    """All columns of a surface `(n, r W)`, and the penalty of each as of a tensor product."""
    given, other = (group.blocks[place] for place in group.pair)
    functions = dense_functions(run, data)
    smoothest = given.feature.smoothest(given.rank)
    left = functions[given.position][:, smoothest]
    right = functions[other.position][:, : other.width]
    columns = np.einsum("nf,nm->nfm", left, right).reshape(len(data), -1)
    along, across, shrinkage = np.exp(other.prior.parameters[0])
    penalty = (
        across * given.feature.eigenvalues[smoothest][:, None]
        + along * other.feature.eigenvalues[: other.width]
        + shrinkage
    )
    return columns, penalty.reshape(-1)


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
@pytest.mark.parametrize("pair", [(0, 1), (1, 0)])
def test_a_surface_has_the_posterior_of_a_tensor_product(
    family: str, pair: tuple[int, int], kernels: str
) -> None:
    data = rich_frame(300, 1, family=family)
    run = make_engine("y ~ ahofm(a, b, D=2, k=9)", data, family=family, chunk_rows=128)
    with_surface(run, pair)
    run.state = run.engine.update_surface(run.state, 0)
    group = run.state.groups[0]
    columns, penalty = dense_surface(run, data, group)
    weight, rest = (
        run.weight(),
        run.target() - np.concatenate([c.linear_fit(run.state) for c in run.chunks]),
    )
    precision = columns.T * weight @ columns + np.diag(penalty)
    mean = np.linalg.solve(precision, columns.T @ (weight * rest))
    np.testing.assert_allclose(group.solved.mean, mean, rtol=1e-6, atol=1e-9)
    covariance = run.dispersion * np.linalg.inv(precision)
    np.testing.assert_allclose(group.solved.covariance, covariance, rtol=1e-5, atol=1e-12)
    linear = np.concatenate([chunk.linear_fit(run.state) for chunk in run.chunks])
    np.testing.assert_allclose(run.fit() - linear, columns @ mean, atol=1e-9)
    # What it adds to the expected squares is what its variances on rows sum to.
    by_rows = np.einsum("ni,ij,nj->n", columns, covariance, columns)
    assert group.solved.own_variance == pytest.approx(weight @ by_rows)
    variances = np.concatenate([chunk.sums(group)[1] for chunk in run.chunks])
    np.testing.assert_allclose(variances, by_rows, rtol=1e-6, atol=1e-12)


def test_a_second_update_sums_no_gram_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    data = rich_frame(200, 1)
    run = make_engine("y ~ ahofm(a, b, D=2, k=8)", data)
    with_surface(run)
    run.state = run.engine.update_surface(run.state, 0, newton_steps=1)
    monkeypatch.setattr(type(run.chunks[0]), "surface_gram", lambda *_: pytest.fail("summed again"))
    bound = run.bound()
    for _ in range(3):
        run.state = run.engine.update_surface(run.state, 0, newton_steps=1)
        assert run.bound() >= bound - 1e-9
        bound = run.bound()


def test_what_is_kept_of_a_surface_says_what_its_smoothing_is() -> None:
    data = rich_frame(200, 1)
    run = make_engine("y ~ ahofm(a, b, D=2, k=8)", data)
    block = with_surface(run).solved
    kept = block.factor_smoothing
    assert kept.shape == (block.rank, 2)
    precisions = np.exp(kept[:, :1]) * block.feature.eigenvalues[: block.width] + np.exp(kept[:, 1:])
    np.testing.assert_allclose(precisions.reshape(-1), block.prior.precisions)
    again = replace(block, prior=block.prior.at(block.prior.start)).with_factor_smoothing(kept)
    np.testing.assert_allclose(again.prior.parameters, block.prior.parameters)


def test_significant_pairs_are_those_beyond_their_price() -> None:
    data = rich_frame(3000, 2, seed=1)
    run = make_engine("y ~ ahofm(a, b, c, d, D=2)", data)
    run.change(groups=())
    template = run.engine.make_group(run.design.layout.only.orders[0], rank=1)
    for _ in range(5):
        run.update_linear(newton_steps=1)
        run.update_dispersion()
    found = significant_pairs(run.engine, run.state, template, set())
    assert {tuple(sorted(signal.pair)) for signal in found[:2]} == {(0, 1), (0, 2)}
    assert found[1].mean > 10
    assert all(signal.mean < found[1].mean / 10 for signal in found[2:])  # by chance
    known = [tuple(sorted(found[0].pair))]
    assert significant_pairs(run.engine, run.state, template, known) == found[1:]


def test_the_smoother_feature_of_a_pair_is_given() -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.uniform(-1, 1, size=(2000, 2)), columns=["a", "b"])
    data["y"] = np.cos(4 * np.pi * data.a) * data.b + 0.3 * rng.normal(size=2000)
    run = make_engine("y ~ ahofm(a, b, D=2)", data)
    run.change(groups=())
    template = run.engine.make_group(run.design.layout.only.orders[0], rank=1)
    (found,) = significant_pairs(run.engine, run.state, template, set())
    assert found.pair == (1, 0)


def test_what_may_be_given() -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"a": rng.uniform(size=400), "y": rng.normal(size=400)})
    data["few"] = rng.choice(list("xyz"), 400)
    data["many"] = rng.choice([f"l{i}" for i in range(12)], 400)
    run = make_engine("y ~ ahofm(a, few, many, D=2)", data)
    (order,) = run.design.layout.only.orders
    possible = {
        pair
        for pair in [(0, 1), (0, 2), (1, 0), (2, 0), (1, 2), (2, 1)]
        if can_be_surface(order, *pair, 5)
    }
    assert possible == {(0, 1), (0, 2), (1, 0), (1, 2)}


@pytest.fixture(scope="module")
def rich() -> tuple[ak.AdditiveModel, pd.DataFrame]:
    data = noisy_frame()
    model = ak.AdditiveModel(FORMULA, data, starts=2)
    fit_quietly(model, data, "variational")
    return model, data


def surfaces_of(model: ak.AdditiveModel) -> list[tuple[int, int]]:
    layer = model.posterior
    (order,) = model.design.layout.only.orders
    found = []
    for number in range(layer.in_use[0]):
        slots = np.array(order.factors_of(number))
        means, edf = (np.asarray(own[0])[:, slots] for own in (layer.factor_means, layer.factor_edf))
        pair = find_surface(order, means, edf)
        found += [pair] if pair else []
    return found


def test_pairs_of_full_rank_become_surfaces(rich: tuple[ak.AdditiveModel, pd.DataFrame]) -> None:
    model, data = rich
    assert {tuple(sorted(pair)) for pair in surfaces_of(model)} == set(combinations(range(5), 2))
    assert model.starts == 1  # whatever the start, the fit is the same
    products = ak.AdditiveModel(FORMULA, data, starts=1)
    with use_settings(moves_off=("surfaces", "grow group", "grow")):
        fit_quietly(products, data, "variational", restarts=0)
    assert not surfaces_of(products)
    errors = [float(np.mean((own.predict(data) - data["mean"]) ** 2)) for own in (model, products)]
    assert errors[0] < 0.95 * errors[1]


def test_bands_of_surfaces_cover_the_mean(rich: tuple[ak.AdditiveModel, pd.DataFrame]) -> None:
    model, data = rich
    frame = model.predict(data, interval=0.95)
    covered = (frame["lower"] < data["mean"]) & (data["mean"] < frame["upper"])
    assert 0.85 < covered.mean() < 0.99


def test_surfaces_are_read_back(rich: tuple[ak.AdditiveModel, pd.DataFrame], tmp_path: Path) -> None:
    model, data = rich
    model.save(tmp_path / "model.keras")
    loaded = ak.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded.predict(data), model.predict(data), atol=1e-5)
    before = surfaces_of(model)
    history = fit_quietly(loaded, data, "variational", restarts=0)
    assert surfaces_of(loaded) == before
    assert history["bound"][-1] >= model.history.history["bound"][-1]
    assert np.std(loaded.predict(data) - model.predict(data)) < 0.03


def test_clear_signals_are_left_to_products() -> None:
    data = noisy_frame()
    model = ak.AdditiveModel(FORMULA, data, starts=1)
    with use_settings(surface_signal=1.0, moves_off=("grow", "grow group")):
        fit_quietly(model, data, "variational", restarts=0)
    assert not surfaces_of(model)


def test_few_pairs_are_left_to_products() -> None:
    """A group has five factors: for three pairs that is enough to begin with."""
    data = rich_frame(1500, 2)
    model = ak.AdditiveModel(FORMULA, data, starts=1)
    fit_quietly(model, data, "variational", restarts=0)
    assert not surfaces_of(model)
