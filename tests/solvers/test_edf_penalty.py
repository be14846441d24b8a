"""Degrees of freedom of smooths have a price: what the data does not bend is straight."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from ahofm_keras.solvers import blocks, variational
from ahofm_keras.solvers.ascent import climb
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.moves import main_effects
from ahofm_keras.solvers.moves.main_effects import MainEffectsOnly
from ahofm_keras.solvers.moves.move import Move, Proposal, try_moves
from ahofm_keras.solvers.settings import Settings
from ahofm_keras.solvers.state import State
from ahofm_keras.solvers.steps import Steps, finish
from ahofm_keras.solvers.variational import ascend

from .conftest import Run, make_engine

ODDS, PENALTY = Settings().log_prior_odds, Settings().edf_penalty


def ascended(formula: str, data: pd.DataFrame, **given: object) -> Run:
    engine = make_engine(formula, data, **given)
    run(engine)
    return engine


def noise_frame(seed: int, rows: int = 400, features: int = 6) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(rng.normal(size=(rows, features)), columns=[f"x{j}" for j in range(features)])
    return data.assign(y=rng.normal(size=rows))


def test_smooths_of_noise_are_almost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    formula = "y ~ " + " + ".join(f"s(x{j})" for j in range(6))

    def edf(penalty: float) -> list[float]:
        frames = [noise_frame(seed) for seed in range(5)]
        return [ascended(formula, frame, edf_penalty=penalty).edf() - 1 for frame in frames]

    priced, unpriced = edf(PENALTY), edf(0.0)
    monkeypatch.setattr(blocks, "_least_penalty", lambda features: 0.0)
    free = edf(0.0)
    assert np.mean(priced) < 1.5 < np.mean(unpriced)
    assert np.mean(priced) < 0.5 * np.mean(free)


def test_what_the_data_bends_stays_as_it_is() -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.uniform(-1, 1, 500), "z": rng.uniform(-1, 1, 500)})
    data["y"] = np.sin(6 * data.x) + np.abs(data.z) + 0.3 * rng.normal(size=500)
    priced = ascended("y ~ s(x) + s(z)", data)
    free = ascended("y ~ s(x) + s(z)", data, edf_penalty=0.0)
    assert priced.edf() == pytest.approx(free.edf(), rel=0.1)
    apart = priced.fit() - free.fit()
    # A tenth of the standard error of a mean with as many degrees of freedom.
    assert np.mean(apart**2) < 0.01 * free.dispersion * free.edf() / 500


@pytest.mark.parametrize(("height", "seed"), [(0.3, 1), (0.4, 10)])
def test_weak_waves_are_not_taken_for_lines(height: float, seed: int) -> None:
    """A penalty of twice as much would make a line of them, and miss by a third more on average."""
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({"x": rng.uniform(-1, 1, 200), "z": rng.uniform(-1, 1, 200)})
    data["y"] = height * np.sin(4 * data.x) + rng.normal(size=200)
    assert ascended("y ~ s(x) + s(z)", data).edf() > 3
    assert ascended("y ~ s(x) + s(z)", data, edf_penalty=0.4).edf() < 1.5


@pytest.mark.parametrize(
    ("term", "price"),
    [("s(x, k=8)", 7 * PENALTY), ("s(x, k=8, sp=1)", 0.0), ("s(g)", 0.0), ("x", 0.0),
     ("ti(x, z, k=4)", 2 * ODDS + 9 * PENALTY)],
)  # fmt: skip
def test_only_roughness_that_the_data_chooses_has_a_price(term: str, price: float) -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(size=(300, 3)), columns=["x", "z", "y"])
    data["g"] = rng.choice(list("abcdef"), 300)
    engine = make_engine(f"y ~ {term}", data)
    prior = engine.linear.prior
    # All degrees of freedom that there are.
    engine.change_smoothing(np.where(prior.free, -50.0, prior.parameters))
    engine.update_linear()
    assert engine.linear.spread.price == pytest.approx(price, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_price_does_not_depend_on_the_size_of_weights(scale: float) -> None:
    engines = [make_engine("y ~ s(x0)", noise_frame(0), weight=np.full(400, w)) for w in (1.0, scale)]
    engines[1].change_smoothing(engines[0].linear.prior.parameters + np.log(scale))
    for engine in engines:
        engine.update_linear()
    assert engines[1].linear.spread.price == pytest.approx(engines[0].linear.spread.price, rel=1e-6)
    assert engines[0].linear.spread.price > PENALTY


def test_a_second_start_pays_what_the_first_one_did() -> None:
    """Weights are not 1: a new start must not take the number of rows for what they see."""
    data, weight = noise_frame(1), np.random.default_rng(1).uniform(0.1, 5, 400)
    engine = ascended("y ~ s(x0) + ahofm(x1, x2, x3, D=2, F=1)", data, weight=weight)
    np.testing.assert_array_equal(engine.linear.prior.gram_diagonal, engine.linear_gram.diagonal())
    first = engine.bound()
    run(engine)
    assert engine.bound() == pytest.approx(first, rel=1e-10)


# What interactions are worth


def pair_engine(strength: float, **settings: object) -> Run:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.uniform(-1, 1, (300, 3)), columns=["a", "b", "c"])
    data["y"] = data.a + strength * data.b * data.c + 0.3 * rng.normal(size=300)
    return make_engine("y ~ ahofm(a, b, c, D=2, F=2)", data, **settings)


def run(engine: Run) -> list[object]:
    return engine.follow(ascend(engine.engine, 0))


def test_a_fit_is_worth_no_less_than_its_main_effects() -> None:
    """Of 150 rows and 190 pairs chance has much to offer, and steps do not lead away from it."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame({f"x{j}": rng.uniform(-1, 1, 150) for j in range(20)})
    data["y"] = data.x0 + rng.normal(size=150)
    names = ", ".join(f"x{j}" for j in range(20))
    plain = ascended("y ~ " + " + ".join(f"s(x{j})" for j in range(20)), data)
    pairs = ascended(f"y ~ ahofm({names}, D=2, F=3)", data)
    assert pairs.score() > plain.bound() - 1


@pytest.mark.parametrize(("strength", "again"), [(0.0, False), (0.25, True), (2.0, False)])
def test_main_effects_are_tried_where_interactions_hardly_help(
    strength: float, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def run_nothing(move: Move, engine: object, proposal: Proposal) -> State:
        tried.append(proposal)
        return proposal.state

    monkeypatch.setattr(MainEffectsOnly, "run", run_nothing)
    engine = pair_engine(strength)
    run(engine)
    assert bool(tried) is again
    assert bool(engine.groups) is (strength > 0)


def nothing_found(engine: Engine, state: State) -> Steps:
    """A search that does not find the pair."""
    yield from ()
    return state


@pytest.mark.parametrize(("margin", "kept"), [(0.0, True), (1e6, False)])
def test_what_was_reached_is_kept_if_it_is_better(
    margin: float, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = pair_engine(2.0, crowded_margin=margin, crowded_share=0.0, clear_margin=1e9)
    start = engine.engine.start()
    plain = pair_engine(2.0)
    plain.state = plain.engine.linearise(replace(start, groups=()))
    plain.follow(climb(plain.engine, plain.state))
    run(pair := pair_engine(2.0))
    engine.state, worth = pair.state, pair.bound()
    monkeypatch.setattr(main_effects, "complete", nothing_found)
    engine.state = finish(try_moves(engine.engine, engine.state, [MainEffectsOnly(plain.state)]))
    assert bool(engine.groups) is kept
    assert engine.bound() == pytest.approx(worth if kept else plain.bound(), abs=0.1)


def test_a_second_look_counts_as_one_sweep_that_does_not_lower_the_bound() -> None:
    """A fit that is stopped at any sweep has what it had reached."""
    engine = pair_engine(0.25)
    sweeps = run(engine)
    scores = [step.engine.score(step.state) for step in sweeps if step is not None]
    assert sweeps[-2] is None
    assert scores[-1] >= scores[-2] - 1e-6


def test_noise_is_underestimated_before_factors_start(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, found = pair_engine(0.0), []
    draw = variational.draw_factors

    def watched(state: State, seed: int, variance: float) -> State:
        found.append(state.dispersion)
        return draw(state, seed, variance)

    monkeypatch.setattr(variational, "draw_factors", watched)
    run(engine)
    assert found[0] < 0.9 * engine.dispersion  # there is nothing but noise for the factors


def test_a_smooth_without_effect_is_no_white_noise() -> None:
    """Of the evidence of these smooths the largest optimum had 6 and 9 edf, when tau did not tie lambda.

    mgcv (REML, select = TRUE, P-splines of k = 20) gives the feature without effect 1.91 and 0.66 edf.
    """
    for seed, most in ((8, 2.2), (9, 1.0)):
        rng = np.random.default_rng(seed)
        data = pd.DataFrame(rng.uniform(size=(150, 3)), columns=list("abc"))
        data["y"] = np.sin(5 * data.a) + 0.7 * rng.normal(size=150)
        engine = ascended("y ~ s(a) + s(b) + s(c)", data)
        edf = engine.linear.prior.edf(engine.linear.spread.solution, engine.linear_gram)
        assert edf[2] < most
        assert 3 < edf[0] < 6


def test_the_smoothing_that_is_kept_holds_what_tau_adds() -> None:
    """lambda s + tau of what is kept are the precisions that the solver has."""
    prior = ascended("y ~ s(x0) + s(x1)", noise_frame(0)).linear.prior
    known = np.exp(prior.smoothing())
    plain = known[prior.groups, 0] * prior.shape.eigenvalues[0] + known[prior.groups, -1]
    np.testing.assert_allclose(np.where(prior.groups >= 0, plain, 0.0), prior.precisions, rtol=1e-10)
    again = prior.with_smoothing(prior.smoothing())
    np.testing.assert_allclose(again.precisions, prior.precisions, rtol=1e-9)
