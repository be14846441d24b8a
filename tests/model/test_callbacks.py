"""Keras callbacks: what they see, what they may do, with every solver."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from tests.model.short_fits import (
    COMMON_SOLVERS,
    assert_same_weights,
    fit,
    learned_weights,
    new_model,
    unit_deviance,
    weights_differ,
)


class Recorder(keras.callbacks.Callback):
    """Counts batches; notes one weight at the end of each epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[int] = []
        self.weights: list[np.ndarray] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.batches.append(batch)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.weights.append(self.model.get_weights()[0].copy())


def test_callback_sees_every_batch_and_the_weights(frame: pd.DataFrame) -> None:
    model, recorder = new_model(frame), Recorder()
    fit(model, frame, validation_split=0.0, callbacks=[recorder])
    assert recorder.batches == [0, 1, 2, 3] * 2
    assert not np.allclose(recorder.weights[0], recorder.weights[1])
    np.testing.assert_array_equal(recorder.weights[1], model.get_weights()[0])


def test_lambda_callback_sees_every_batch(frame: pd.DataFrame) -> None:
    seen: list[int] = []
    callback = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append(batch))
    fit(new_model(frame), frame, validation_split=0.0, callbacks=[callback])
    assert seen == [0, 1, 2, 3] * 2


def test_old_names_of_batch_hooks_see_every_batch(frame: pd.DataFrame) -> None:
    class Old(keras.callbacks.Callback):
        seen = 0

        def on_batch_end(self, batch: int, logs: Any = None) -> None:
            self.seen += 1

    callback = Old()
    fit(new_model(frame), frame, validation_split=0.0, callbacks=[callback])
    assert callback.seen == 8


def test_watching_batches_does_not_change_the_fit(plain: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    watched = new_model(frame)
    fit(watched, frame, callbacks=[Recorder()])
    assert_same_weights(watched, plain, rtol=1e-5, atol=1e-6)


EVERY_SOLVER = pytest.mark.parametrize("solver", COMMON_SOLVERS)
# A model that no solver fits in one sweep.
PRODUCT = "gaussian ~ ahofm(x1, x2, D=2, F=2, df=5)"


@EVERY_SOLVER
def test_lambda_callback_sees_the_weights_and_logs(frame: pd.DataFrame, solver: str) -> None:
    model = new_model(frame, PRODUCT)
    seen: list[tuple[np.ndarray, set[str]]] = []
    callback = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: seen.append((model.get_weights()[0].copy(), set(logs)))
    )
    fit(model, frame, callbacks=[callback], solver=solver, validation_split=0.15)
    assert not np.array_equal(seen[0][0], seen[1][0])
    assert seen[0][1] >= {"deviance", "loss", "val_deviance", "val_loss"}


@EVERY_SOLVER
def test_weights_are_in_the_model_at_the_end_of_an_epoch(frame: pd.DataFrame, solver: str) -> None:
    """What the logs say of the validation rows is what the model predicts for them at that moment."""
    held_out = frame.iloc[:50]
    model = new_model(frame, PRODUCT)
    seen: list[float] = []

    def predict(epoch: int, logs: Any) -> None:
        mean = model.predict(held_out)
        seen.append(unit_deviance("gaussian", held_out.gaussian.to_numpy(), mean).mean())

    callback = keras.callbacks.LambdaCallback(on_epoch_end=predict)
    history = fit(
        model, frame, callbacks=[callback], solver=solver, epochs=3, validation_data=held_out
    ).history
    np.testing.assert_allclose(history["val_deviance"], seen, rtol=1e-4)


@EVERY_SOLVER
def test_hooks_come_in_order(frame: pd.DataFrame, solver: str) -> None:
    seen: list[str] = []

    class Record(keras.callbacks.Callback):
        def on_train_begin(self, logs: Any = None) -> None:
            seen.append("begin")

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            seen.append(f"epoch {epoch}")

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            seen.append("batch")

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            seen.append(f"end {epoch}")

        def on_train_end(self, logs: Any = None) -> None:
            seen.append("end")

    history = fit(new_model(frame, PRODUCT), frame, callbacks=[Record()], solver=solver, initial_epoch=1)
    assert history.epoch == [1]
    assert [entry for entry in seen if entry != "batch"] == ["begin", "epoch 1", "end 1", "end"]
    assert seen.count("batch") >= 1


@EVERY_SOLVER
def test_csv_logger(frame: pd.DataFrame, tmp_path: Path, solver: str) -> None:
    callback = keras.callbacks.CSVLogger(str(tmp_path / "log.csv"))
    history = fit(
        new_model(frame, PRODUCT), frame, epochs=3, callbacks=[callback], solver=solver,
        validation_split=0.15,
    ).history  # fmt: skip
    log = pd.read_csv(tmp_path / "log.csv")
    np.testing.assert_allclose(log.val_deviance, history["val_deviance"], rtol=1e-6)


@EVERY_SOLVER
def test_a_callback_may_stop_the_training(frame: pd.DataFrame, solver: str) -> None:
    model = new_model(frame, PRODUCT)

    def stop(epoch: int, logs: Any) -> None:
        model.stop_training = epoch == 2

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        history = model.fit(
            frame,
            epochs=50,
            verbose=0,
            solver=solver,
            callbacks=[keras.callbacks.LambdaCallback(on_epoch_end=stop)],
        )
    assert history.epoch == [0, 1, 2]


@pytest.mark.filterwarnings("ignore:The fit went astray")  # the worst epoch is called the best
@EVERY_SOLVER
def test_early_stopping_of_the_user_restores_its_best_weights(frame: pd.DataFrame, solver: str) -> None:
    """A callback that thinks the first epoch was the best gets all of its state back."""
    model = new_model(frame, PRODUCT)
    kept: list[list[np.ndarray]] = []

    def state() -> list[np.ndarray]:
        """The variational solver's posterior belongs to it; the others', and limits, come in the end."""
        if solver != "variational":
            return learned_weights(model)
        return [weight.numpy().copy() for weight in model.weights if "limit" not in weight.path]

    record = keras.callbacks.LambdaCallback(on_epoch_end=lambda e, logs: kept.append(state()))
    stopping = keras.callbacks.EarlyStopping(
        "deviance", mode="max", patience=2, restore_best_weights=True
    )
    fit(model, frame, epochs=20, solver=solver, callbacks=[record, stopping])
    for found, expected in zip(state(), kept[stopping.best_epoch], strict=True):
        np.testing.assert_array_equal(found, expected)


@EVERY_SOLVER
def test_checkpoint_can_be_loaded(frame: pd.DataFrame, tmp_path: Path, solver: str) -> None:
    model = new_model(frame, PRODUCT)
    callback = keras.callbacks.ModelCheckpoint(str(tmp_path / "epoch_{epoch}.keras"))
    fit(model, frame, validation_split=0.0, callbacks=[callback], solver=solver)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["epoch_1.keras", "epoch_2.keras"]
    loaded = keras.models.load_model(tmp_path / "epoch_2.keras")
    np.testing.assert_allclose(loaded.predict(frame), model.predict(frame), rtol=1e-6)
    assert weights_differ(keras.models.load_model(tmp_path / "epoch_1.keras"), model)


@pytest.fixture(scope="module")
def stopped(frame: pd.DataFrame) -> tuple[ak.AdditiveModel, keras.callbacks.History, pd.DataFrame]:
    """A fit that overfits its few rows and stops early, with a callback of the user beside."""
    held_out = frame.iloc[30:]
    model = new_model(frame.iloc[:30], "gaussian ~ s(x1, k=12, sp=0) + s(x2, k=12, sp=0)")
    model.optimizer.learning_rate = 0.1
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Values outside the training range")
        history = model.fit(
            frame.iloc[:30],
            solver="adam",
            verbose=0,
            validation_data=held_out,
            callbacks=[keras.callbacks.History()],
        )
    return model, history, held_out


def test_early_stopping_stays_beside_callbacks_of_the_user(stopped: Any) -> None:
    _, history, _ = stopped
    best = int(np.argmin(history.history["val_deviance"]))
    assert len(history.epoch) == best + 1 + 50
    assert len(history.epoch) < 1000


def test_early_stopping_restores_the_best_weights(stopped: Any) -> None:
    model, history, held_out = stopped
    with pytest.warns(ak.AhofmWarning, match="outside the training range"):
        deviance = model.evaluate(held_out, return_dict=True)["deviance"]
    values = history.history["val_deviance"]
    assert deviance == pytest.approx(min(values), rel=1e-5)
    assert deviance < 0.99 * values[-1]


BLOCK_SOLVERS = pytest.mark.parametrize("solver", ["bcd", "variational"])


@BLOCK_SOLVERS
def test_a_fit_that_nobody_watches_ends_with_the_same_weights(frame: pd.DataFrame, solver: str) -> None:
    watched, alone = new_model(frame, PRODUCT), new_model(frame, PRODUCT)
    fit(watched, frame, solver=solver, epochs=8, callbacks=[Recorder()])
    fit(alone, frame, solver=solver, epochs=8)
    assert_same_weights(watched, alone, rtol=0, atol=0)


@pytest.mark.parametrize("callbacks", [[], [Recorder()]])
def test_a_fit_that_ends_with_a_start_is_the_fit_of_that_start(
    frame: pd.DataFrame, callbacks: list[Any]
) -> None:
    """Before the last sweep was looked at the solver had begun with the next start."""
    single = new_model(frame, PRODUCT)
    sweeps = len(fit(single, frame, solver="variational", epochs=None, restarts=0).epoch)
    several = new_model(frame, PRODUCT, starts=2)
    fit(several, frame, solver="variational", epochs=sweeps, restarts=1, callbacks=callbacks)
    np.testing.assert_allclose(several.predict(frame), single.predict(frame), rtol=1e-5)
    spread, expected = (model.predict(frame, interval=0.9) for model in (several, single))
    pd.testing.assert_frame_equal(spread, expected, rtol=1e-4)


@BLOCK_SOLVERS
def test_an_interrupted_fit_leaves_what_it_reached(
    frame: pd.DataFrame, solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ahofm_keras.solvers.engine import Engine
    from ahofm_keras.solvers.state import State

    whole, sweeps = Engine.sweep, []

    def interrupted(engine: Engine, *given: Any, **named: Any) -> State:
        if len(sweeps) == 3:
            raise KeyboardInterrupt
        sweeps.append(1)
        return whole(engine, *given, **named)

    model, short = new_model(frame, PRODUCT), new_model(frame, PRODUCT)
    fit(short, frame, solver=solver, epochs=3)
    monkeypatch.setattr(Engine, "sweep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit(model, frame, solver=solver, epochs=8)
    assert_same_weights(model, short, rtol=0, atol=0)
    assert not model.has_posterior
