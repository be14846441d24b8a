"""When climbs end, and what further starts leave out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from ahofm_keras.solvers.ascent import climb, grow, least_gain, settle
from ahofm_keras.solvers.moves.grow_group import GrowGroup
from ahofm_keras.solvers.moves.prune import PruneFactors
from ahofm_keras.solvers.steps import finish
from tests.solvers.conftest import Run, make_engine


def draw(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    data = pd.DataFrame(rng.uniform(-1, 1, size=(rows, 3)), columns=list("abc"))
    return data.assign(y=data.a * data.b + data.c + 0.3 * rng.normal(size=rows))


@pytest.mark.parametrize(
    ("rows", "edf", "wanted"),
    [
        (50, 60.0, 4e-4 * 100),  # few rows count as a hundred
        (1000, 60.0, 4e-4 * 1000),
        (5000, 60.0, 0.01 * 60),
        (5000, 3.0, 0.01 * 25),  # few degrees of freedom as 25
    ],
)
def test_a_climb_goes_on_by_rows_or_by_degrees_of_freedom(
    rows: int, edf: float, wanted: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine: Run = make_engine("y ~ s(a)", draw(rows))
    monkeypatch.setattr(type(engine.state), "edf", edf)
    assert least_gain(engine.engine, engine.state) == pytest.approx(wanted)


def test_a_climb_ends_where_a_window_gains_less() -> None:
    engine: Run = make_engine("y ~ ahofm(a, b, c, D=2, F=2, k=8)", draw(400))
    engine.update_linear()
    state, bounds = engine.state, [engine.engine.bound(engine.state)]
    for step in climb(engine.engine, state):
        if step is not None:
            state = step.state
            bounds.append(engine.engine.bound(state))
    window, settings = engine.engine.settings.window, engine.engine.settings
    least = window * least_gain(engine.engine, state)
    assert bounds[-1] - bounds[-1 - window] < least
    before = len(bounds) - 2
    if before % settings.round >= window:
        assert bounds[before] - bounds[before - window] >= least


def fitted_with_one_group() -> Run:
    engine: Run = make_engine('y ~ ahofm(a, b, c, D=2, F="auto", k=8)', draw(600))
    engine.change(groups=engine.groups[:1])
    engine.update_linear()
    return engine


@pytest.mark.parametrize(("groups", "tried"), [(None, True), (0, False), (1, False), (2, True)])
def test_random_groups_are_tried_where_another_start_had_some(
    groups: int | None, tried: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = fitted_with_one_group()
    every = engine.engine.start().groups
    assert len(every) == 2
    other = None if groups is None else replace(engine.state, groups=every[:groups])
    asked = []
    monkeypatch.setattr(GrowGroup, "propose", lambda self, *given: asked.append(self.order))
    finish(grow(engine.engine, engine.state, other))
    assert bool(asked) == tried


def test_where_nothing_is_pruned_nothing_is_swept_again(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = fitted_with_one_group()
    monkeypatch.setattr(PruneFactors, "propose", lambda *given: None)
    climbed = sum(step is not None for step in climb(engine.engine, engine.state))
    settled = sum(step is not None for step in settle(engine.engine, engine.state))
    assert settled == climbed
