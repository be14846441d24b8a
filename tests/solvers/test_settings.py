"""Settings of fits, moves that are switched off, and sweeps of which no step is good."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

import ahofm_keras as ak
from ahofm_keras.solvers import ascent
from ahofm_keras.solvers.damping import damped
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.moves import Move, Proposal, try_moves
from ahofm_keras.solvers.settings import Settings, current_settings, use_settings
from ahofm_keras.solvers.state import State
from tests.solvers.conftest import Run, draw_posterior, fit_quietly, make_engine, pair_frame


def test_settings_are_those_of_the_innermost_context() -> None:
    assert current_settings() == Settings()
    with use_settings(edf_penalty=0.0) as own:
        assert current_settings() is own
        with use_settings(window=3):
            assert (current_settings().edf_penalty, current_settings().window) == (0.0, 3)
        assert current_settings().window == Settings().window
    assert current_settings() == Settings()
    with pytest.raises(FrozenInstanceError):
        own.window = 4


def test_a_fit_takes_the_settings_of_its_context() -> None:
    data = pair_frame(150, 2)
    model = ak.AdditiveModel("y ~ s(x0) + s(x1)", data)
    with (
        use_settings(variational_sweeps=3),
        pytest.warns(ak.AhofmWarning, match=r"reached its last epoch \(sweep 3\)"),
    ):
        assert len(fit_quietly(model, data, "variational")["bound"]) == 3


# Moves


class Shrink(Move):
    """Smaller factors, which are worth less; each proposal is another."""

    name = "shrink"

    def __init__(self, price: float) -> None:
        self.price = price

    def propose(self, engine: Engine, state: State, refused: frozenset[Hashable]) -> Proposal | None:
        if len(refused) == 3:
            return None
        block = state.groups[0].blocks[0]
        if np.abs(block.mean).max() < 1e-3:
            return None
        smaller = replace(block, mean=0.9 * block.mean)
        return Proposal(len(refused), state.with_factors(0, 0, smaller), self.price)

    def run(self, engine: Engine, proposal: Proposal) -> State:
        return proposal.state


def drawn() -> Run:
    engine = make_engine("y ~ ahofm(x0, x1, x2, D=2, F=2, k=6)", pair_frame(60))
    draw_posterior(engine, 0)
    return engine


def test_what_is_not_worth_its_price_is_refused_and_changes_nothing() -> None:
    engine = drawn()
    before = engine.state
    steps = engine.follow(try_moves(engine.engine, engine.state, [Shrink(1e6)]))
    assert engine.state is before
    assert len(steps) == 6  # three proposals, announced and done
    assert all(step.state is before for step in steps[1::2])


def test_what_is_worth_its_price_is_taken_until_nothing_is_left_of_it() -> None:
    engine = drawn()
    engine.follow(try_moves(engine.engine, engine.state, [Shrink(-1e9)]))
    assert 0.9e-3 < np.abs(engine.groups[0].blocks[0].mean).max() < 1e-3


def test_the_price_decides() -> None:
    engine = drawn()
    proposed = Shrink(0.0).propose(engine.engine, engine.state, frozenset())
    assert proposed is not None
    worth = engine.engine.score(proposed.state) - engine.score()
    for price, taken in [(worth - 1e-6, True), (worth + 1e-6, False)]:
        steps = try_moves(engine.engine, engine.state, [Shrink(price)])
        next(steps)
        assert (next(steps).state is not engine.state) is taken


def test_a_move_that_is_switched_off_is_not_made() -> None:
    engine = make_engine("y ~ ahofm(x0, x1, x2, D=2, F=2)", pair_frame(60), moves_off=("shrink",))
    assert engine.follow(try_moves(engine.engine, engine.state, [Shrink(-1e9)])) == []


# Sweeps of which no step is good


def test_steps_are_halved_until_one_is_good() -> None:
    engine = drawn()
    start = engine.state

    def far(state: State) -> State:
        return replace(state, linear=replace(state.linear, mean=state.linear.mean + 8.0))

    def distance(state: State) -> float:
        return float(np.abs(state.linear.mean - start.linear.mean).max())

    for most, halvings, wanted in [(9.0, 3, 8.0), (2.5, 3, 2.0), (1.1, 3, 1.0), (0.9, 3, None)]:
        found = damped(engine.engine, start, [far], lambda s, m=most: distance(s) <= m, halvings)
        assert (None if found is None else pytest.approx(distance(found))) == wanted


def test_a_fit_that_ends_with_sweeps_that_led_nowhere_is_not_converged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = pair_frame(150, 2, "poisson")
    model = ak.AdditiveModel("y ~ s(x0) + s(x1)", data, family="poisson")
    monkeypatch.setattr(ascent, "damped", lambda *_: None)
    fit_quietly(model, data, "variational")
    assert model.fit_result.converged  # the start is as good as the optimum, from where no step is good
    model = ak.AdditiveModel("y ~ s(x0) + s(x1)", data, family="poisson")
    with (
        use_settings(linear_updates=0),
        pytest.warns(ak.AhofmWarning, match="The fit stalled: in its last 5 sweeps no step"),
    ):
        fit_quietly(model, data, "variational")
    assert not model.fit_result.converged


def test_a_descent_that_cannot_go_on_is_not_converged() -> None:
    data = pair_frame(150, 2, "poisson")
    model = ak.AdditiveModel("y ~ s(x0) + s(x1)", data, family="poisson")
    model.predictor.bias.assign(-8.0)  # from there whole steps are far too long
    with (
        use_settings(descent_halvings=0),
        pytest.warns(ak.AhofmWarning, match="The fit stalled: in its last sweep no step"),
    ):
        fit_quietly(model, data, "bcd")
    assert model.fit_result is not None
    assert not model.fit_result.converged
