"""Unpenalised levels that few rows have, more rows than a sample holds, and fits that went astray."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.families import get_family
from ahofm_keras.model import fitting
from ahofm_keras.solvers import variational
from ahofm_keras.solvers.settings import use_settings
from ahofm_keras.solvers.state import State
from tests.solvers.conftest import FAMILIES, draw_response

ROWS = 50_000
MAIN = "y ~ x + job + school + default + month + offset(o)"
every_family = pytest.mark.parametrize("family", FAMILIES)
# `school[unknown]` is `job[unknown]`: that is what is tested.
pytestmark = pytest.mark.filterwarnings("ignore:Linear terms explain each other")


def rare_frame(family: str, rows: int = ROWS, seed: int = 0) -> pd.DataFrame:
    """Fifteen rows are `unknown` in two columns at once, three have a level that hardly exists."""
    rng = np.random.default_rng(seed)
    unknown = rng.permutation(rows) < 15
    data = pd.DataFrame(
        {
            "x": rng.uniform(-1, 1, rows),
            "job": np.where(unknown, "unknown", rng.choice(list("abcdefgh"), rows)),
            "school": np.where(unknown, "unknown", rng.choice(list("pqr"), rows)),
            "default": np.where(rng.permutation(rows) < 3, "yes", "no"),
            "month": rng.choice(["jan", "feb", "mar"], rows, p=[0.6, 0.39, 0.01]),
            "o": rng.uniform(-0.5, 0.5, rows),
        }
    )
    eta = data.x + 0.5 * (data.job == "a") - 0.3 * (data.month == "jan") - 1.5 + data.o
    data["y"] = draw_response(family, eta.to_numpy(), rng)
    # Both responses at each rare level, so that a maximum exists; a sample may see only one of them.
    for rare in (unknown, data.default == "yes"):
        data.loc[data.index[rare][:1], "y"] = 1.0
        data.loc[data.index[rare][1:], "y"] = {"gaussian": 0.0, "gamma": 0.2}.get(family, 0.0)
    return data


def dense_means(data: pd.DataFrame, family: str) -> np.ndarray:
    """Maximum likelihood by Fisher scoring with pseudo-inverses."""
    kind = get_family(family)
    columns = ["job", "school", "default", "month"]
    dummies = pd.get_dummies(data[columns], drop_first=True, dtype=float)
    X = np.column_stack([np.ones(len(data)), data.x, dummies])
    y, offset = data.y.to_numpy(), data.o.to_numpy()
    eta = np.asarray(kind.link_function((y + y.mean()) / 2))
    for _ in range(30):
        mean = kind.inverse_link(eta, np)
        slope = {"gaussian": np.ones_like(eta), "bernoulli": mean * (1 - mean)}.get(family, mean)
        weight = slope if family in ("bernoulli", "poisson") else np.ones_like(eta)
        target = eta - offset + (y - mean) / slope
        eta = X @ (np.linalg.pinv((X.T * weight) @ X) @ (X.T @ (weight * target))) + offset
    return np.asarray(kind.inverse_link(eta, np))


@every_family
def test_rare_levels_beyond_a_sample_have_their_maximum_likelihood(family: str) -> None:
    data = rare_frame(family)
    model = ak.AdditiveModel(MAIN, data, family=family)
    model.fit(data, verbose=0)
    assert model.fit_result is not None
    assert model.fit_result.converged
    # A fit ends where the bound stands still: of the rarest levels that leaves a few hundredths.
    link = get_family(family).link_function
    expected = link(dense_means(data, family))
    np.testing.assert_allclose(model.predict(data, type="link"), expected, rtol=0, atol=0.04)
    assert np.abs(model.predict(data, type="link") - expected).mean() < 1e-4
    # The solution of least norm: two columns that are the same have the same coefficient.
    coefficients = ak.coef(model)
    assert coefficients["job[unknown]"] == pytest.approx(coefficients["school[unknown]"], rel=1e-3)


@pytest.mark.parametrize("solver", ["variational", "bcd"])
@every_family
def test_levels_without_rows_have_no_effect(family: str, solver: str) -> None:
    """The model knows levels, one of two columns at once, that the rows of this fit lack."""
    data = rare_frame(family, 4000)
    model = ak.AdditiveModel(MAIN, data, family=family)
    rows = data[(data.job != "unknown") & (data.default == "no")].reset_index(drop=True)
    model.fit(rows, solver=solver, verbose=0)
    coefficients = ak.coef(model)
    missing = ["job[unknown]", "school[unknown]", "default[yes]"]
    assert np.abs([coefficients[name] for name in missing]).max() < 1e-2
    np.testing.assert_allclose(model.predict(rows), dense_means(rows, family), rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("family", ["bernoulli", "poisson"])
def test_rare_levels_inside_interactions_do_not_lead_astray(family: str) -> None:
    data = rare_frame(family, 6000)
    alone, beside = (
        ak.AdditiveModel(MAIN + more, data, family=family)
        for more in ("", " + ahofm(x, job, school, default, D=2, F=2, main=False)")
    )
    for model in (alone, beside):
        model.fit(data, verbose=0)
    assert alone.fit_result is not None
    assert beside.fit_result is not None
    assert beside.fit_result.converged
    assert beside.fit_result.deviance <= 1.001 * alone.fit_result.deviance
    assert np.abs(beside.predict(data, type="link")).max() < 30


def test_a_separated_level_stays_in_sight() -> None:
    data = rare_frame("bernoulli", 3000)
    data.loc[data.job == "a", "y"] = 0.0
    model = ak.AdditiveModel("y ~ x + job", data, family="bernoulli")
    model.fit(data, solver="bcd", verbose=0)
    assert model.fit_result is not None
    assert model.fit_result.converged
    assert -40 < ak.coef(model)["(Intercept)"] < -10
    others = data[data.job != "a"]
    assert model.predict(others).mean() == pytest.approx(others.y.mean(), rel=1e-3)


def test_a_sample_that_leads_astray_is_left_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    data = rare_frame("bernoulli", 3000)
    model = ak.AdditiveModel(MAIN, data, family="bernoulli")
    model.fit(data, verbose=0)
    expected = model.predict(data)

    def astray(engine: Any, *others: Any) -> variational.Steps:
        def leave() -> State:
            state = engine.start()
            linear = replace(state.linear, mean=state.linear.mean + 100.0)
            return engine.linearise(replace(state, linear=linear))

        return (yield from variational.announced(engine, leave))

    monkeypatch.setattr(variational, "_from_samples", astray)
    again = ak.AdditiveModel(MAIN, data, family="bernoulli")
    with (
        use_settings(sample_rows=1000),
        pytest.warns(ak.AhofmWarning, match="sample of 1,000 rows started went astray on all 3,000"),
    ):
        again.fit(data, verbose=0)
    np.testing.assert_allclose(again.predict(data), expected, atol=1e-6)


@every_family
def test_less_than_the_intercept_explains_is_never_called_converged(
    monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    data = rare_frame(family, 500)
    model = ak.AdditiveModel("y ~ s(x)", data, family=family)
    solve = fitting.SOLVERS["bcd"]

    def badly(model: Any, job: Any) -> Any:
        history = solve(model, job)
        model.predictor.bias.assign_add(2.0)
        return history

    monkeypatch.setitem(fitting.SOLVERS, "bcd", badly)
    with pytest.warns(ak.AhofmWarning, match="The fit went astray: its deviance"):
        model.fit(data, solver="bcd", verbose=0)
    assert model.fit_result is not None
    assert not model.fit_result.converged
    assert any(note.startswith("The fit went astray") for note in model.fit_result.warnings)
    assert "did NOT converge" in str(ak.summary(model))
