"""Weights, posterior, record and sample belong together, whoever set the weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import ahofm_keras as ak
from ahofm_keras.solvers import choice
from tests.model.short_fits import COMMON_SOLVERS, fit, new_model

FORMULA = "gaussian ~ s(x1) + ahofm(x1, x2, D=2, F=2, df=5)"
EVERY_SOLVER = pytest.mark.parametrize("solver", COMMON_SOLVERS)


@pytest.fixture(scope="module")
def first(frame: pd.DataFrame) -> ak.AdditiveModel:
    model = ak.AdditiveModel(FORMULA, frame)
    model.fit(frame, verbose=0, restarts=0)
    return model


def with_weights_of(model: ak.AdditiveModel, frame: pd.DataFrame, folder: Path) -> ak.AdditiveModel:
    model.save_weights(folder / "model.weights.h5")
    other = ak.AdditiveModel(FORMULA, frame)
    other.load_weights(folder / "model.weights.h5")
    return other


# Weights that come from a file


def test_loaded_weights_have_their_posterior(
    first: ak.AdditiveModel, frame: pd.DataFrame, tmp_path: Path
) -> None:
    model = with_weights_of(first, frame, tmp_path)
    pd.testing.assert_frame_equal(model.predict(frame, interval=0.9), first.predict(frame, interval=0.9))


def test_blocks_that_no_solver_takes_have_no_posterior(
    frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "LARGEST_BLOCK", 20)
    assert ak.AdditiveModel("gaussian ~ s(x1, k=20)", frame).posterior is not None
    monkeypatch.setattr(choice, "LARGEST_BLOCK", 19)
    assert ak.AdditiveModel("gaussian ~ s(x1, k=20)", frame).posterior is None


def test_a_new_model_says_nothing_of_its_posterior(frame: pd.DataFrame) -> None:
    model = ak.AdditiveModel(FORMULA, frame)
    assert not model.has_posterior
    assert not model.is_fitted
    with pytest.raises(ak.NotFittedError):
        ak.summary(model)


def test_weights_of_a_new_model_fit_a_fitted_one(first: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    model = ak.AdditiveModel(FORMULA, frame)
    model.set_weights(first.get_weights())
    pd.testing.assert_frame_equal(model.predict(frame, interval=0.9), first.predict(frame, interval=0.9))


def test_a_file_without_a_posterior_leaves_none(
    first: ak.AdditiveModel, frame: pd.DataFrame, tmp_path: Path
) -> None:
    old = ak.AdditiveModel(FORMULA, frame)
    old.save(tmp_path / "old.keras")
    old.save_weights(tmp_path / "old.weights.h5")
    assert not keras.models.load_model(tmp_path / "old.keras").has_posterior
    model = with_weights_of(first, frame, tmp_path)
    model.load_weights(tmp_path / "old.weights.h5")
    assert not model.has_posterior
    assert not model.is_fitted


def test_loaded_weights_can_be_read_and_have_no_record(
    first: ak.AdditiveModel, frame: pd.DataFrame, tmp_path: Path
) -> None:
    model = with_weights_of(first, frame, tmp_path)
    assert model.is_fitted
    assert model.fit_result is None
    assert model.sample is None
    found, expected = ak.summary(model), ak.summary(first)
    pd.testing.assert_frame_equal(found.terms[["edf", "share"]], expected.terms[["edf", "share"]])
    assert "deviance explained not known" in " ".join(str(found).split())
    assert found.figures["aic"] is None
    assert "residuals" in str(ak.check(model, frame))
    with pytest.raises(ak.DataError, match="needs rows"):
        ak.check(model)


def load_weights(model: ak.AdditiveModel, folder: Path) -> None:
    other = ak.AdditiveModel(FORMULA, pd.DataFrame(model.sample.columns).assign(gaussian=model.sample.y))
    other.save_weights(folder / "other.weights.h5")
    model.load_weights(folder / "other.weights.h5")


def set_weights(model: ak.AdditiveModel, folder: Path) -> None:
    model.set_weights([0.5 * weight for weight in model.get_weights()])


def assign(model: ak.AdditiveModel, folder: Path) -> None:
    kernel = model.get_layer("s_x1").kernel
    kernel.assign(kernel + 1.0)


def train_on_batch(model: ak.AdditiveModel, folder: Path) -> None:
    sample = model.sample
    columns = {name: tf.constant(values) for name, values in sample.columns.items()}
    model.train_on_batch(columns, sample.y)


@pytest.mark.parametrize("change", [load_weights, set_weights, assign, train_on_batch])
def test_other_weights_have_no_record(
    frame: pd.DataFrame, tmp_path: Path, change: Callable[[ak.AdditiveModel, Path], None]
) -> None:
    model = new_model(frame, FORMULA)
    fit(model, frame, solver="bcd")
    own = model.get_weights()
    assert model.fit_result is not None
    change(model, tmp_path)
    assert model.fit_result is None
    assert model.sample is None
    model.set_weights(own)
    assert model.fit_result is not None
    assert model.fit_result.solver == "bcd"
    assert model.sample is not None


def test_a_copy_without_the_weights_has_no_record(first: ak.AdditiveModel, tmp_path: Path) -> None:
    copy = ak.AdditiveModel.from_config(first.get_config())
    assert copy.fit_result is None
    assert not copy.is_fitted
    first.save(tmp_path / "model.keras")
    assert keras.models.load_model(tmp_path / "model.keras").fit_result == first.fit_result


def test_loaded_weights_are_not_gone_on_from(
    first: ak.AdditiveModel, frame: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody knows on which rows something was switched off."""
    model = with_weights_of(first, frame, tmp_path)
    model.fit(frame, restarts=0, solver="variational")
    assert "The weights are not those of the last fit: starting anew." in capsys.readouterr().out
    np.testing.assert_allclose(model.predict(frame), first.predict(frame), rtol=1e-6)
    assert model.fit_result is not None


# Fits that are interrupted


class Interruption(keras.callbacks.Callback):
    """Ctrl-C at the end of an epoch."""

    def __init__(self, epoch: int = 1) -> None:
        super().__init__()
        self.last = epoch

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if epoch == self.last:
            raise KeyboardInterrupt


def fitted_twice(frame: pd.DataFrame, solver: str, callback: Any) -> ak.AdditiveModel:
    model = new_model(frame, FORMULA)
    fit(model, frame, solver=solver, epochs=3)
    other = frame.assign(gaussian=frame.gaussian + 2 * frame.x2)
    with pytest.raises(KeyboardInterrupt):
        fit(model, other, solver=solver, epochs=8, callbacks=[callback])
    return model


@EVERY_SOLVER
def test_an_interrupted_second_fit_leaves_no_record_of_the_first(
    frame: pd.DataFrame, solver: str, tmp_path: Path
) -> None:
    model = fitted_twice(frame, solver, Interruption())
    assert model.is_fitted
    assert model.fit_result is None
    assert model.sample is None
    assert ak.summary(model).figures["deviance"] is None
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.fit_result is None
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))


@EVERY_SOLVER
def test_a_fit_after_an_interrupted_one_has_a_record(frame: pd.DataFrame, solver: str) -> None:
    model = fitted_twice(frame, solver, Interruption())
    fit(model, frame, solver=solver, epochs=3)
    assert model.fit_result is not None
    assert (
        model.fit_result.deviance
        == pytest.approx(float(np.sum((frame.gaussian - model.predict(frame)) ** 2)), rel=1e-4)
        or solver == "adam"
    )
    assert model.sample is not None


def test_an_interrupted_variational_fit_can_be_gone_on_from(
    frame: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    model = new_model(frame, FORMULA)
    with pytest.raises(KeyboardInterrupt):
        fit(model, frame, solver="variational", epochs=8, callbacks=[Interruption(2)])
    assert model.has_posterior
    fit(model, frame, solver="variational", epochs=2, verbose=2)
    assert "anew" not in capsys.readouterr().out


class EarlyInterruption(keras.callbacks.Callback):
    """Ctrl-C before the first epoch."""

    def on_train_begin(self, logs: Any = None) -> None:
        raise KeyboardInterrupt


def test_a_fit_that_is_interrupted_before_it_begins_changes_nothing(frame: pd.DataFrame) -> None:
    model = new_model(frame, FORMULA)
    fit(model, frame, solver="bcd", epochs=3)
    weights, result = model.get_weights(), model.fit_result
    with pytest.raises(KeyboardInterrupt):
        fit(model, frame.iloc[:100], solver="bcd", epochs=8, callbacks=[EarlyInterruption()])
    assert result is not None
    assert model.fit_result == result
    for found, expected in zip(model.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_an_interrupted_write_of_the_posterior_leaves_none(
    frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ahofm_keras.solvers import posterior

    def interrupt(*given: Any) -> None:
        raise KeyboardInterrupt

    model = new_model(frame, FORMULA)
    fit(model, frame, solver="bcd", epochs=3)
    monkeypatch.setattr(posterior, "_write_groups", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fit(model, frame, solver="bcd", epochs=4)
    assert not model.has_posterior
    assert model.fit_result is None
