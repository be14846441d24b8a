"""Block solvers of several predictors: rounds as epochs, an objective that rises, what a user may give."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.solvers import predictors
from ahofm_keras.solvers.settings import use_settings

LINEAR = {"loc": "y ~ x + z", "scale": "~ x"}
SMOOTH = {"loc": "y ~ s(x, k=8)", "scale": "~ s(z, k=8)"}
every_solver = pytest.mark.parametrize("solver", ["variational", "bcd"])


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.uniform(-1, 1, 400), "z": rng.uniform(-1, 1, 400)})
    data["w"] = rng.integers(0, 3, 400).astype(float)
    data["y"] = 2 * data.x + data.z + np.exp(data.x - 0.5) * rng.normal(size=400)
    return data


def fit(formula: Any, data: pd.DataFrame, *, given: Any = None, **options: Any) -> ak.AdditiveModel:
    model = ak.AdditiveModel(formula, data, family="gaussian_ls")
    model.fit(data if given is None else given, verbose=0, **options)
    return model


def parameters(model: ak.AdditiveModel, data: pd.DataFrame) -> np.ndarray:
    return model.predict(data, type="parameters").to_numpy()


class Recorder(keras.callbacks.Callback):
    """Notes logs and predictions of each epoch."""

    def __init__(self, data: pd.DataFrame) -> None:
        super().__init__()
        self.data = data
        self.epochs: list[int] = []
        self.logs: list[dict[str, float]] = []
        self.deviances: list[float] = []

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        self.epochs.append(epoch)
        self.logs.append(dict(logs or {}))
        self.deviances.append(self.model.evaluate(self.data, return_dict=True, verbose=0)["deviance"])


@every_solver
def test_a_round_is_an_epoch_with_logs(solver: str, data: pd.DataFrame) -> None:
    recorder = Recorder(data)
    model = ak.AdditiveModel(SMOOTH, data, family="gaussian_ls")
    history = model.fit(
        data, solver=solver, verbose=0, callbacks=[recorder], validation_data=data.iloc[:100]
    )
    assert recorder.epochs == history.epoch == list(range(model.fit_result.epochs))
    assert model.fit_result.converged
    found = [logs["deviance"] for logs in recorder.logs]
    np.testing.assert_allclose(found, recorder.deviances, rtol=1e-5, atol=1e-5)
    last = model.evaluate(data.iloc[:100], return_dict=True, verbose=0)
    assert recorder.logs[-1]["val_deviance"] == pytest.approx(last["deviance"], abs=1e-3)
    assert recorder.logs[-1]["edf"] > 4
    assert ("bound" in recorder.logs[-1]) == (solver == "variational")


@every_solver
def test_the_objective_never_falls(solver: str, data: pd.DataFrame) -> None:
    model = ak.AdditiveModel(SMOOTH, data, family="student_t")
    losses = model.fit(data, solver=solver, verbose=0).history["loss"]
    assert (np.diff(losses) < 1e-4).all()


@every_solver
def test_epochs_are_rounds_and_a_second_fit_goes_on(solver: str, data: pd.DataFrame) -> None:
    model = ak.AdditiveModel(SMOOTH, data, family="gaussian_ls")
    with pytest.warns(ak.AhofmWarning, match=r"last epoch \(round 1 over all predictors\)"):
        history = model.fit(data, solver=solver, epochs=1, verbose=0)
    assert history.epoch == [0]
    assert not model.fit_result.converged
    with pytest.warns(ak.AhofmWarning, match=r"round 2 over all"):
        history = model.fit(data, solver=solver, epochs=2, initial_epoch=1, verbose=0)
    assert history.epoch == [1]
    model.fit(data, solver=solver, verbose=0)
    whole = fit(SMOOTH, data, solver=solver)
    np.testing.assert_allclose(parameters(model, data), parameters(whole, data), atol=0.02)


def test_a_callback_may_stop_it(data: pd.DataFrame) -> None:
    class Stop(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.model.stop_training = True

    model = ak.AdditiveModel(SMOOTH, data, family="student_t")
    history = model.fit(data, verbose=0, callbacks=[Stop()])
    assert history.epoch == [0]


@every_solver
def test_a_weight_of_2_is_a_row_twice(solver: str, data: pd.DataFrame) -> None:
    twice = data.loc[data.index.repeat(data.w.astype(int))]
    weighted = fit(LINEAR, data, solver=solver, sample_weight="w")
    repeated = fit(LINEAR, data, given=twice, solver=solver)
    np.testing.assert_allclose(
        parameters(weighted, data), parameters(repeated, data), rtol=2e-3, atol=2e-3
    )
    plain = parameters(fit(LINEAR, data, solver=solver), data)
    assert np.abs(parameters(weighted, data) - plain).max() > 0.02


@every_solver
def test_each_predictor_has_its_own_offset(solver: str, data: pd.DataFrame) -> None:
    """An offset that terms can take up changes nothing; left out of one predictor it would."""
    plain = fit(LINEAR, data, solver=solver)
    moved = fit(
        {"loc": "y ~ x + z + offset(I(3 * z))", "scale": "~ x + offset(I(2 * x))"}, data, solver=solver
    )
    np.testing.assert_allclose(parameters(moved, data), parameters(plain, data), rtol=2e-3, atol=2e-3)


def test_what_ends_badly_is_told_once_and_by_name(data: pd.DataFrame) -> None:
    model = ak.AdditiveModel(SMOOTH, data, family="gaussian_ls")
    with use_settings(variational_sweeps=1), pytest.warns(ak.AhofmWarning) as caught:
        model.fit(data, verbose=0)
    messages = [str(own.message) for own in caught]
    assert len(messages) == len(set(messages)) == 2
    assert messages[0].endswith("(The predictor of `loc`.)")
    assert messages[1].endswith("(The predictor of `scale`.)")
    assert model.fit_result.warnings == tuple(messages)
    assert not model.fit_result.converged


def test_several_starts_are_averaged(data: pd.DataFrame) -> None:
    formula = {"loc": "y ~ ahofm(x, z, D=2, F=1, k=6)", "scale": "~ x"}
    model = ak.AdditiveModel(formula, data, family="gaussian_ls", starts=2)
    model.fit(data, restarts=1, verbose=0)
    assert model.parameter("loc").starts == 2
    assert model.parameter("scale").starts == 1
    single = fit(formula, data, restarts=0)
    difference = parameters(model, data) - parameters(single, data)
    assert np.abs(difference).max() < 0.3


@every_solver
def test_links_are_those_of_the_graph(solver: str, data: pd.DataFrame) -> None:
    """Rounds compute predictors and their errors from blocks, predictions from layers."""
    model, seen = ak.AdditiveModel(SMOOTH, data, family="gaussian_ls"), []
    kept = predictors.Rounds.stand_still

    def spy(rounds: predictors.Rounds) -> bool:
        seen.append((rounds.links, predictors.links_and_errors(rounds.model, rounds.rows)))
        return kept(rounds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(predictors.Rounds, "stand_still", spy)
        model.fit(data, solver=solver, verbose=0)
    blocks, graph = seen[-1]
    for name, (mean, error) in blocks.items():
        np.testing.assert_allclose(mean, graph[name][0], atol=1e-5)
        assert (error > 0).any() == (solver == "variational")
        assert (error <= graph[name][1] * 1.001 + 1e-9).all()
        assert (error >= graph[name][1] * 0.7).all()
