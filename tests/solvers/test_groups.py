"""Factors in groups: as many as the data asks for, and no more than a formula allows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.solvers.moves.grow_group import GrowGroup, fit_group
from ahofm_keras.solvers.moves.move import Proposal
from ahofm_keras.solvers.settings import use_settings
from ahofm_keras.terms.rank import group_size
from tests.solvers.conftest import Run, draw_posterior, fit_quietly, make_engine

NAMES = ("a", "b", "c", "d")


def surfaces(rows: int, rank: int, seed: int = 0) -> pd.DataFrame:
    """Pairs that are sums of so many products of cosines: `mean`, and `y` with noise."""
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(rng.uniform(size=(rows, 4)), columns=list(NAMES))
    data["mean"] = 0.0
    for one, other in (("a", "b"), ("c", "d"), ("a", "d")):
        weights = rng.normal(size=(rank, rank))
        left, right = (
            np.stack([np.sqrt(2) * np.cos(np.pi * (f + 1) * data[x]) for f in range(rank)])
            for x in (one, other)
        )
        data["mean"] += np.einsum("fn,fg,gn->n", left, weights, right) / rank
    return data.assign(y=data["mean"] + 0.3 * rng.normal(size=rows))


def count_factors(model: ak.AdditiveModel, place: int = 0) -> int:
    layer = model.get_layer("ahofm_a_b_c_d")
    return int(layer.coordinates(place).any(axis=(0, 1)).sum())


def test_the_rank_follows_the_data() -> None:
    """Two pairs with a and one without it, of rank 3, need six products."""
    data = surfaces(3000, 3)
    few, auto = (
        ak.AdditiveModel(f"y ~ ahofm(a, b, c, d, D=2, k=12, F={rank})", data) for rank in ("5", '"auto"')
    )
    errors = []
    for model in (few, auto):
        fit_quietly(model, data, "variational", restarts=0)
        errors.append(float(np.mean((model.predict(data) - data["mean"]) ** 2)))
    assert count_factors(few) == 5
    assert 6 <= count_factors(auto) <= 10
    assert errors[1] < 0.5 * errors[0]
    assert errors[1] < 0.1 * 0.3**2
    (row,) = auto.summary_table().terms.query("kind == 'interaction'").itertuples()
    assert row.factors == count_factors(auto)
    assert pd.isna(row.factors_asked)


def test_one_product_needs_few() -> None:
    rng = np.random.default_rng(1)
    data = pd.DataFrame(rng.uniform(-1, 1, size=(1500, 4)), columns=list(NAMES))
    data["y"] = 2 * data.a * data.b + 0.5 * rng.normal(size=1500)
    model = ak.AdditiveModel("y ~ ahofm(a, b, c, d, D=2)", data)
    fit_quietly(model, data, "variational", restarts=0)
    assert 1 <= count_factors(model) <= 2


@pytest.mark.parametrize("rank", [1, 5, 8, 9, 13, 20])
def test_a_rank_that_is_given_is_not_exceeded(rank: int) -> None:
    data = surfaces(1200, 4)
    with use_settings(log_prior_odds=0.0, trial_sweeps=1):  # nothing has a price
        model = ak.AdditiveModel(f"y ~ ahofm(a, b, c, d, D=2, F={rank}, k=8)", data)
        fit_quietly(model, data, "variational", restarts=0)
    (order,) = model.design.layout.only.orders
    assert count_factors(model) <= rank
    assert sum(len(order.factors_of(group)) for group in range(order.groups)) == rank
    assert group_size(rank) <= 8


def test_what_is_off_for_good_adds_nothing() -> None:
    """A block without any factor is skipped; with the prior as its posterior the bound is the same."""
    engine = make_engine("y ~ ahofm(a, b, c, d, D=2, F=2, k=7)", surfaces(200, 2))
    draw_posterior(engine, 0)
    group = engine.groups[0]
    prior = group.blocks[2].prior.without_effect(0).without_effect(1)
    off = group.blocks[2].__class__(
        prior, np.zeros(len(group.blocks[2].mean)), group.blocks[2].spread.nothing(len(prior.groups)),
        group.blocks[2].feature, group.blocks[2].position, True,
    )  # fmt: skip
    state = engine.state.with_group(group.with_block(2, off))
    assert off.is_off
    assert off not in state.blocks
    swept = engine.engine.sweep(state)
    assert swept.groups[0].blocks[2] is off
    assert np.isfinite(engine.engine.bound(swept))
    solved = engine.engine.update_factors(swept, 0, 2).groups[0].blocks[2]
    full = swept.with_group(swept.groups[0].with_block(2, solved))
    np.testing.assert_allclose(np.abs(solved.mean).max(), 0, atol=1e-6)
    own = solved.bound - solved.expected_penalty / swept.dispersion
    own -= solved.prior.size * np.log(swept.dispersion)
    assert own == pytest.approx(0, abs=1e-4)
    np.testing.assert_allclose(engine.engine.means(full), engine.engine.means(swept), atol=1e-6)


def test_the_bound_never_falls_while_a_new_group_is_fitted() -> None:
    engine: Run = make_engine('y ~ ahofm(a, b, c, d, D=2, F="auto", k=8)', surfaces(800, 3))
    engine.change(groups=engine.groups[:1])
    engine.update_linear()
    (order,) = engine.design.layout.only.orders
    proposal = GrowGroup(order).propose(engine.engine, engine.state, frozenset())
    assert proposal is not None
    bounds, state = [], proposal.state
    for _ in range(6):
        state = fit_group(engine.engine, Proposal("", state, group=proposal.group), 1)
        bounds.append(engine.engine.bound(state))
    assert (np.diff(bounds) > -1e-6).all()
