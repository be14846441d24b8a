"""What the ascent missed is found in the residuals, and taken in if it is worth its price."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.solvers.ascent import grow
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.groups import FactorGroup
from ahofm_keras.solvers.moves import grow as grow_file
from ahofm_keras.solvers.moves import move as move_file
from ahofm_keras.solvers.moves import search as search_file
from ahofm_keras.solvers.moves.move import Proposal, is_effective
from ahofm_keras.solvers.moves.search import (
    Finding,
    Sample,
    affordable,
    best_product,
    smoothest,
    strongest_subsets,
)
from ahofm_keras.solvers.settings import Settings
from ahofm_keras.solvers.state import State
from tests.solvers.conftest import Run, all_features, dense_functions, fit_quietly, make_engine

SETTINGS = Settings()


def draw_frame(rows: int, features: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({f"x{j}": rng.uniform(-1, 1, rows) for j in range(features)})


def wave(values: pd.Series) -> np.ndarray:
    return np.sqrt(2) * np.cos(np.pi * values.to_numpy())


def without_interactions(formula: str, data: pd.DataFrame, **options: object) -> Run:
    """An engine whose linear block is fitted and whose interactions were all given up."""
    engine = make_engine(formula, data, **options)
    engine.change(groups=())
    for _ in range(5):
        engine.linearise()
        engine.update_linear(newton_steps=1)
        engine.update_dispersion()
    return engine


def templates(run: Run) -> dict[int, FactorGroup]:
    orders = run.design.layout.only.orders
    return {order.order: run.engine.make_group(order, rank=1) for order in orders}


def search(run: Run, template: FactorGroup, tried: set[tuple[int, ...]], products: int = 1) -> Finding:
    found = search_file.search(run.engine, run.state, template, tried, products)
    assert found is not None
    return found


def find_in_turn(monkeypatch: pytest.MonkeyPatch, size: float) -> None:
    """A search that names pairs in turn, whatever the residuals say."""

    def search(
        engine: Engine, state: State, template: FactorGroup, tried: frozenset[object], products: int
    ) -> Finding:
        return Finding((len(tried), 3), [[np.full(3, size)] * 2], 99.0)

    monkeypatch.setattr(grow_file, "search", search)


def draw_sample(counts: tuple[int, ...], rows: int = 40, seed: int = 0) -> Sample:
    rng = np.random.default_rng(seed)
    functions = [rng.normal(size=(count, rows)) for count in counts]
    return Sample(functions, rng.normal(size=rows), rng.uniform(0.5, 2, rows), 0.7, 1.0, SETTINGS)


def excess(sample: Sample, subset: tuple[int, ...]) -> float:
    """By how much the squares of the sums of a subset are beyond noise, in units of noise."""
    total = 0.0
    for places in product(*(range(len(sample.functions[j])) for j in subset)):
        lines = [sample.functions[j][m] for j, m in zip(subset, places, strict=True)]
        phi = np.prod(lines, axis=0)
        noise = sample.dispersion * np.sum(sample.weight * phi**2)
        total += np.sum(sample.weight * sample.residuals * phi) ** 2 / noise - 1
    return total


@pytest.mark.parametrize("order", [2, 3, 4])
def test_subsets_are_ranked_as_by_brute_force(order: int) -> None:
    sample = draw_sample((2, 3, 1, 2, 3, 2))
    every = list(combinations(range(6), order))
    ranked = sorted(every, key=lambda subset: excess(sample, subset), reverse=True)
    assert strongest_subsets(sample, order, set()) == ranked[: SETTINGS.search_candidates]
    tried = set(ranked[:2])
    assert strongest_subsets(sample, order, tried)[0] == ranked[2]


def whole_product(vectors: list[np.ndarray]) -> np.ndarray:
    total = vectors[0]
    for vector in vectors[1:]:
        total = np.multiply.outer(total, vector)
    return total


@pytest.mark.parametrize("order", [2, 3, 4])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_product_in_the_residuals_is_found_as_it_is(order: int, sign: float) -> None:
    sample = draw_sample((2, 3, 2, 2)[:order], rows=4000)
    rng = np.random.default_rng(order)
    vectors = [rng.normal(size=len(own)) for own in sample.functions]
    phi = sign * np.prod([v @ own for v, own in zip(vectors, sample.functions, strict=True)], axis=0)
    found = best_product(replace(sample, residuals=phi), tuple(range(order)))
    np.testing.assert_allclose(
        whole_product(found.coefficients[0]), sign * whole_product(vectors), atol=0.25
    )
    sizes = [np.linalg.norm(vector) for vector in found.coefficients[0]]
    np.testing.assert_allclose(sizes, sizes[0])
    most = np.sum(sample.weight * phi**2) / (2 * sample.dispersion)
    assert 0.95 * most < found.gain <= most


def test_the_gain_is_that_of_least_squares_on_the_product() -> None:
    sample = draw_sample((3, 2))
    found = best_product(sample, (0, 1))
    phi = np.prod([v @ u for v, u in zip(found.coefficients[0], sample.functions, strict=True)], axis=0)
    before = np.sum(sample.weight * sample.residuals**2)
    after = np.sum(sample.weight * (sample.residuals - phi) ** 2)
    assert found.gain == pytest.approx((before - after) / (2 * sample.dispersion))


def test_nothing_in_the_residuals_is_no_finding() -> None:
    sample = draw_sample((2, 2))
    assert best_product(replace(sample, residuals=np.zeros(40)), (0, 1)).gain == 0


@pytest.mark.parametrize(("order", "subset"), [(2, (1, 4)), (3, (0, 2, 5))])
@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_a_search_names_the_true_subset(
    order: int, subset: tuple[int, ...], family: str, kernels: str
) -> None:
    data = draw_frame(1500, 6)
    rng = np.random.default_rng(1)
    effect = 0.6 * np.prod([wave(data[f"x{j}"]) for j in subset], axis=0)
    data["y"] = rng.poisson(np.exp(effect)) if family == "poisson" else effect + rng.normal(size=1500)
    engine = without_interactions(f"y ~ ahofm({all_features(data)}, D=3)", data, family=family)
    found = search(engine, templates(engine)[order], set())
    assert found is not None
    assert found.subset == subset
    assert search(engine, templates(engine)[order], {subset}).subset != subset


def test_the_best_product_may_be_that_of_a_subset_that_is_not_the_strongest() -> None:
    """All products of a pair together are strong, and none of them is: no single factor has them."""
    data, rng = draw_frame(3000, 4), np.random.default_rng(0)
    many = [np.cos(m * np.pi * data.x0) * np.cos(m * np.pi * data.x1) for m in (1, 2, 3)]
    data["y"] = np.sum(many, axis=0) + 0.6 * wave(data.x2) * wave(data.x3) + rng.normal(size=3000)
    formula = f"y ~ ahofm({all_features(data)}, D=2)"
    engine, hasty = (
        without_interactions(formula, data, **own) for own in ({}, {"search_candidates": 1})
    )
    assert search(hasty, templates(hasty)[2], set()).subset == (0, 1)
    assert search(engine, templates(engine)[2], set()).subset == (2, 3)


def test_the_start_of_a_factor_is_the_effect_in_size_and_sign() -> None:
    data = draw_frame(4000, 4)
    effect = -0.7 * wave(data.x0) * wave(data.x3)
    data["y"] = effect + 0.1 * np.random.default_rng(0).normal(size=4000)
    engine = without_interactions(f"y ~ ahofm({all_features(data)}, D=2)", data)
    template = templates(engine)[2]
    found = search(engine, template, set())
    phi = []
    for j, own in zip(found.subset, found.coefficients[0], strict=True):
        block = template.blocks[j]
        functions = dense_functions(engine, data)[block.position]
        phi.append(functions[:, smoothest(block, len(own))] @ own)
    started = engine.scale * phi[0] * phi[1]
    assert np.mean((started - effect) ** 2) < 0.03 * np.mean(effect**2)


def in_rounds(data: pd.DataFrame, rng: np.random.Generator) -> None:
    """The pair acts in every second row only: a search that takes every other row would miss it."""
    odd = np.tile([0.0, 1.0], len(data) // 2)
    data["y"] = 2 * odd * wave(data.x1) * wave(data.x2) + rng.normal(size=len(data))


def late(data: pd.DataFrame, rng: np.random.Generator) -> None:
    """The pair acts in the last third of the rows only."""
    acts = np.arange(len(data)) >= 2 * len(data) // 3
    data["y"] = 2 * acts * wave(data.x1) * wave(data.x2) + rng.normal(size=len(data))


@pytest.mark.parametrize("respond", [in_rounds, late])
def test_rows_of_a_search_are_drawn_from_all(respond: Callable[..., None]) -> None:
    data = draw_frame(3000, 4)
    respond(data, np.random.default_rng(0))
    formula = f"y ~ ahofm({all_features(data)}, D=2)"
    engine = without_interactions(formula, data, chunk_rows=500, search_rows=500)
    assert search(engine, templates(engine)[2], set()).subset == (1, 2)


def test_rows_without_weight_are_not_looked_at() -> None:
    data = draw_frame(6000, 3)
    weight = np.tile([0.0, 1.0], 3000)
    data["y"] = np.where(weight > 0, wave(data.x0) * wave(data.x1), 30 * wave(data.x1) * wave(data.x2))
    data["y"] += np.random.default_rng(0).normal(size=6000)
    engine = without_interactions("y ~ ahofm(x0, x1, x2, D=2)", data, weight=weight)
    assert search(engine, templates(engine)[2], set()).subset == (0, 1)


def test_skewed_features_that_move_together_do_not_hide_a_triple() -> None:
    """Products of their functions have a hundred times the variance of independent ones."""
    rng = np.random.default_rng(0)
    data = draw_frame(1000, 4)
    size = np.exp(rng.normal(size=1000))
    for j in range(4, 9):
        data[f"x{j}"] = size * np.exp(0.15 * rng.normal(size=1000))
    data["y"] = 0.6 * wave(data.x0) * wave(data.x1) * wave(data.x2) + rng.normal(size=1000)
    engine = without_interactions(f"y ~ ahofm({all_features(data)}, orders=(3,))", data)
    assert search(engine, templates(engine)[3], set()).subset == (0, 1, 2)


def test_a_search_stays_within_its_budget() -> None:
    assert affordable(20, 3, 10**6, SETTINGS) == (5, 12_000)
    assert affordable(9, 2, 10**6, SETTINGS) == (5, 100_000)
    functions, rows = affordable(100, 3, 10**6, SETTINGS)
    assert (100 * functions) ** 3 / 6 * rows <= SETTINGS.search_budget
    assert rows >= 500
    assert affordable(1500, 2, 10**6, SETTINGS)[0] == 1  # a matrix of all functions by all functions
    assert affordable(5000, 3, 10**6, SETTINGS) is None
    assert affordable(5, 3, 80, SETTINGS) == (5, 80)


def test_no_free_factor_is_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    data = draw_frame(400, 3)
    data["y"] = wave(data.x0) * wave(data.x1)
    engine = make_engine("y ~ ahofm(x0, x1, x2, D=2, F=2)", data)
    monkeypatch.setattr(grow_file, "search", lambda *_: pytest.fail("searched"))
    assert engine.follow(grow(engine.engine, engine.state)) == []


def test_what_is_not_worth_its_price_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    data = draw_frame(300, 5)
    data["y"] = data.x0 + np.random.default_rng(3).normal(size=300)
    engine = without_interactions(f"y ~ ahofm({all_features(data)}, D=2, F=5)", data)
    before, fit, state = engine.score(), engine.fit(), engine.state
    find_in_turn(monkeypatch, 0.3)
    steps = engine.follow(grow(engine.engine, engine.state))
    assert len(steps) == 4  # two attempts, announced and done
    assert engine.state is state
    assert engine.score() == before
    np.testing.assert_allclose(engine.fit(), fit, atol=1e-12)


def test_growing_raises_the_score_and_keeps_the_factors_that_are_there() -> None:
    data = draw_frame(800, 5)
    pair, triple = wave(data.x0) * wave(data.x1), wave(data.x1) * wave(data.x2) * wave(data.x4)
    data["y"] = pair + triple + 0.5 * np.random.default_rng(0).normal(size=800)
    engine = without_interactions(f"y ~ ahofm({all_features(data)}, D=3)", data)
    before = engine.score()
    engine.follow(grow(engine.engine, engine.state))
    assert engine.score() > before + 100
    kept = {group.order: group.kept for group in engine.groups}
    assert kept[2][0] == 0
    assert kept[3][0] == 0
    residual = np.var((engine.target() - engine.fit()) * engine.scale)
    assert residual < 0.3


@pytest.mark.parametrize("seed", [0, 1])
def test_a_triple_beside_a_pair_is_found_among_165(seed: int) -> None:
    """The ascent alone misses it: random factors of order 3 see noise where pairs are not yet fitted."""
    data = draw_frame(1500, 11, seed)
    pair = wave(data.x0) * wave(data.x1)
    triple = wave(data.x3) * wave(data.x5) * wave(data.x8)
    data["y"] = pair + triple + np.random.default_rng(seed).normal(size=1500)
    model = ak.AdditiveModel(f"y ~ ahofm({all_features(data)}, D=3)", data, seed=seed)
    fit_quietly(model, data, "variational", restarts=0)
    triples = ak.interactions(model, order=3, top=None).set_index("label")["share"]
    assert len(triples) == 165
    assert triples.idxmax() == "x3:x5:x8"
    assert triples.max() > 0.95 * triples.sum()
    assert np.mean((model.predict(data) - pair - triple) ** 2) < 0.2


def test_a_factor_that_dies_in_its_trial_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps raise the score by themselves; that is not the merit of a factor that went to zero."""
    data = draw_frame(500, 4)
    data["y"] = data.x0 + np.random.default_rng(0).normal(size=500)
    engine = without_interactions("y ~ ahofm(x0, x1, x2, x3, D=2, F=5)", data)
    find_in_turn(monkeypatch, 0.1)
    monkeypatch.setattr(Engine, "score", lambda *_: -1e9)
    monkeypatch.setattr(grow_file, "price_of_search", lambda _: 0.0)
    monkeypatch.setattr(move_file, "is_effective", lambda *_: False)
    assert len(engine.follow(grow(engine.engine, engine.state))) == 4
    assert engine.groups == ()
    monkeypatch.undo()
    died = templates(engine)[2]
    proposal = Proposal("pair", engine.state, group=died.key, factors=died.kept)
    assert not is_effective(engine.state, proposal)  # it is not there
    assert not is_effective(engine.state.with_group(died), proposal)  # nothing of it is active


@pytest.mark.parametrize("seed", range(3))
def test_chance_among_many_pairs_is_not_kept(seed: int) -> None:
    """The strongest of 300 pairs is strong by chance: having searched has its price."""
    data = draw_frame(300, 25, seed)
    data["y"] = np.random.default_rng([seed, 7]).normal(size=300)
    engine = without_interactions(f"y ~ ahofm({all_features(data)}, D=2, k=6, df=4)", data)
    engine.follow(grow(engine.engine, engine.state))
    assert engine.groups == ()
