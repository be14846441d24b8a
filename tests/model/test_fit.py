"""Behaviour of `fit`, mostly with solver="adam", of callbacks with every solver, and of `evaluate`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import ahofm_keras as ak
from ahofm_keras.solvers import SOLVERS

FAMILIES = ("gaussian", "bernoulli", "poisson", "gamma")
FORMULA = "gaussian ~ s(x1, k=6) + x3"


def new_model(data: pd.DataFrame, formula: str = FORMULA, **options: Any) -> ak.AdditiveModel:
    """A model without XLA, which takes longer to compile than these fits take."""
    model = ak.AdditiveModel(formula, data, **options)
    model.compile(jit_compile=False)
    return model


def fit(model: ak.AdditiveModel, data: Any, *arguments: Any, **options: Any) -> keras.callbacks.History:
    """A fit of 2 epochs of 4 batches unless told otherwise; that it did not converge is no news."""
    options = {"epochs": 2, "verbose": 0, "solver": "adam"} | options
    if options["solver"] == "adam":
        options = {"batch_size": 60} | options
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The fit reached its last epoch", ak.AhofmWarning)
        return model.fit(data, *arguments, **options)


def assert_same_weights(first: ak.AdditiveModel, second: ak.AdditiveModel, **tolerance: float) -> None:
    for a, b in zip(first.get_weights(), second.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, **({"rtol": 0.0} | tolerance))


def weights_differ(first: ak.AdditiveModel, second: ak.AdditiveModel) -> bool:
    pairs = zip(first.get_weights(), second.get_weights(), strict=True)
    return any(not np.allclose(a, b, rtol=1e-4) for a, b in pairs)


def unit_deviance(family: str, y: np.ndarray, mean: np.ndarray) -> np.ndarray:
    if family == "gaussian":
        return (y - mean) ** 2
    if family == "bernoulli":
        return -2 * np.where(y == 1, np.log(mean), np.log(1 - mean))
    if family == "poisson":
        return 2 * (np.where(y > 0, y * np.log(np.where(y > 0, y, 1) / mean), 0) - y + mean)
    return 2 * (y / mean - 1 - np.log(y / mean))


@pytest.fixture(scope="module")
def plain(frame: pd.DataFrame) -> ak.AdditiveModel:
    """The fit that others are held against."""
    model = new_model(frame)
    fit(model, frame)
    return model


# Split, shuffling, seeds ------------------------------------------------------------------------


def test_same_seed_same_weights_other_seed_others(plain: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    again, other, own = new_model(frame), new_model(frame), new_model(frame, seed=1)
    fit(again, frame)
    fit(other, frame, seed=1)
    fit(own, frame)
    assert_same_weights(plain, again)
    assert weights_differ(plain, other)
    assert_same_weights(other, own)


def test_global_seed_does_not_matter(plain: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    second = new_model(frame)
    tf.random.set_seed(99)
    try:
        fit(second, frame)
    finally:
        tf.random.set_seed(87654321)  # what TensorFlow takes where none was set
    assert_same_weights(plain, second)


def test_validation_rows_are_shuffled(frame: pd.DataFrame) -> None:
    """Rows at the end of sorted data would be a validation set of another kind."""
    data = frame.sort_values("gaussian", ignore_index=True)
    model = new_model(data)
    history = fit(model, data, epochs=1).history
    last = data.iloc[-36:]
    at_the_end = unit_deviance("gaussian", last.gaussian, model.predict(last)).mean()
    assert history["val_deviance"][0] < 0.6 * at_the_end


def test_no_validation(frame: pd.DataFrame) -> None:
    model = new_model(frame)
    history = fit(model, frame, validation_split=0.0)
    assert set(history.history) == {"deviance", "loss"}
    assert model.optimizer.iterations.numpy() == 8


@pytest.mark.parametrize("form", ["frame", "tuple", "weighted", "batches", "dataset"])
def test_validation_data(frame: pd.DataFrame, form: str) -> None:
    held_out = frame.iloc[:50]
    columns = {name: held_out[name].to_numpy() for name in ("x1", "x3")}
    y = held_out.gaussian.to_numpy()
    data = {
        "frame": held_out,
        "tuple": (held_out.drop(columns="gaussian"), y),
        "weighted": (held_out, y, np.full(50, 2.0)),
        "batches": columns | {"gaussian": y},
        "dataset": tf.data.Dataset.from_tensor_slices((columns, y)).batch(20),
    }[form]
    model = new_model(frame)
    size = 20 if form == "batches" else None
    history = fit(model, frame, epochs=1, validation_data=data, validation_batch_size=size).history
    expected = unit_deviance("gaussian", y, model.predict(held_out)).mean()
    assert history["val_deviance"] == pytest.approx([expected], rel=1e-4)
    assert model.optimizer.iterations.numpy() == 4  # no row was split off


def test_validation_now_and_then(frame: pd.DataFrame) -> None:
    history = fit(new_model(frame), frame, epochs=4, validation_freq=2).history
    assert len(history["deviance"]) == 4
    assert len(history["val_deviance"]) == 2


# Going on, epochs, steps ------------------------------------------------------------------------


def test_history_has_losses_and_deviances(frame: pd.DataFrame) -> None:
    history = fit(new_model(frame), frame, epochs=3)
    assert set(history.history) == {"deviance", "loss", "val_deviance", "val_loss"}
    assert {len(values) for values in history.history.values()} == {3}
    assert history.epoch == [0, 1, 2]


def test_second_fit_goes_on(frame: pd.DataFrame) -> None:
    model = new_model(frame)
    options = {"epochs": 5, "validation_split": 0.0}
    first = fit(model, frame, **options).history["loss"]
    assert model.optimizer.iterations.numpy() == 20
    second = fit(model, frame, **options).history["loss"]
    assert model.optimizer.iterations.numpy() == 40
    assert second[-1] < first[-1] < first[0]
    # Losses of single epochs are noisy; that it starts where the last fit ended is exact.
    ended, started = model.get_weights(), []
    record = keras.callbacks.LambdaCallback(
        on_train_begin=lambda logs: started.extend(model.get_weights())
    )
    fit(model, frame, **options, callbacks=[record])
    for before, after in zip(ended, started, strict=True):
        np.testing.assert_array_equal(before, after)


def test_steps_get_smaller_on_a_plateau_and_the_next_fit_starts_anew(frame: pd.DataFrame) -> None:
    """Adam at one rate circles the optimum: group means would be off by more than this."""
    model = ak.AdditiveModel("gaussian ~ group", frame)
    rates: list[float] = []
    record = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: rates.append(float(model.optimizer.learning_rate))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)
        model.fit(frame, validation_split=0.0, verbose=0, callbacks=[record], batch_size=32)
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < 0.2 * rates[0]
    assert float(model.optimizer.learning_rate) == pytest.approx(rates[0])
    means = frame.groupby("group").gaussian.transform("mean")
    assert np.abs(model.predict(frame) - means).max() < 0.02 * frame.gaussian.std()


def test_initial_epoch(frame: pd.DataFrame) -> None:
    model = new_model(frame)
    history = fit(model, frame, epochs=5, initial_epoch=3, validation_split=0.0)
    assert history.epoch == [3, 4]
    assert model.optimizer.iterations.numpy() == 8


@pytest.mark.parametrize("shuffle", [True, False])
def test_steps_per_epoch(frame: pd.DataFrame, shuffle: bool) -> None:
    model = new_model(frame)
    fit(model, frame, steps_per_epoch=3, validation_split=0.0, shuffle=shuffle)
    assert model.optimizer.iterations.numpy() == 6


def test_no_epochs_leave_the_weights(frame: pd.DataFrame) -> None:
    model, other = new_model(frame), new_model(frame)
    assert fit(model, frame, epochs=0).history == {}
    assert_same_weights(model, other)


def test_batch_larger_than_the_data(frame: pd.DataFrame) -> None:
    model = new_model(frame)
    fit(model, frame, batch_size=10_000, validation_split=0.0)
    assert model.optimizer.iterations.numpy() == 2


def test_training_is_compiled_with_texts(frame: pd.DataFrame) -> None:
    model = ak.AdditiveModel("gaussian ~ group + s(x1, k=6)", frame)
    fit(model, frame, epochs=1)
    assert model.jit_compile is True


# Callbacks --------------------------------------------------------------------------------------


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


EVERY_SOLVER = pytest.mark.parametrize("solver", sorted(SOLVERS))
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


@EVERY_SOLVER
def test_early_stopping_of_the_user_restores_its_best_weights(frame: pd.DataFrame, solver: str) -> None:
    """A callback that thinks the first epoch was the best gets all of its state back."""
    model = new_model(frame, PRODUCT)
    kept: list[list[np.ndarray]] = []
    record = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda e, logs: kept.append(model.get_weights())
    )
    stopping = keras.callbacks.EarlyStopping(
        "deviance", mode="max", patience=2, restore_best_weights=True
    )
    fit(model, frame, epochs=20, solver=solver, callbacks=[record, stopping])
    for found, expected in zip(model.get_weights(), kept[stopping.best_epoch], strict=True):
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


# Words ------------------------------------------------------------------------------------------


def test_warning_at_the_last_epoch(frame: pd.DataFrame) -> None:
    model = new_model(frame)
    with pytest.warns(ak.AhofmWarning) as caught:
        history = model.fit(frame, epochs=2, batch_size=60, verbose=0).history
    best = 1 + int(np.argmin(history["val_deviance"]))
    assert [str(w.message) for w in caught] == [
        f"The fit reached its last epoch (2) without stopping: `val_deviance` was best at epoch {best}. "
        "Call `fit` again to go on, or raise `epochs`."
    ]
    assert caught[0].filename == __file__


def test_warning_of_validation_data_points_to_the_caller(frame: pd.DataFrame) -> None:
    with pytest.warns(ak.AhofmWarning, match="outside the training range") as caught:
        fit(new_model(frame), frame, epochs=1, validation_data=frame.assign(x1=2.0))
    assert {w.filename for w in caught} == {__file__}


def test_silence(frame: pd.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    model = new_model(frame, "log(gamma) ~ s(x1, k=6)")
    fit(model, frame)
    model.predict(frame)
    model.evaluate(frame)
    assert capsys.readouterr() == ("", "")


def test_one_line_where_there_is_no_terminal(
    frame: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    history = fit(new_model(frame), frame, epochs=3, verbose="auto").history
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("\n") == 1
    assert out.endswith(" s\n")
    assert out.startswith(f"epoch    3  deviance {history['deviance'][-1]:<9.5g}")
    assert f"best {min(history['val_deviance']):.5g} (epoch " in out


# Forms of data ----------------------------------------------------------------------------------


def test_dict_of_arrays_is_a_frame(plain: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    second, third = new_model(frame), new_model(frame)
    fit(second, {name: frame[name].to_numpy() for name in ("x1", "x3", "gaussian")})
    fit(third, frame[["x1", "x3"]], frame.gaussian)
    assert_same_weights(plain, second)
    assert_same_weights(plain, third)


def test_dataset_of_the_same_batches_gives_the_same_fit(frame: pd.DataFrame) -> None:
    formula = "gaussian ~ s(x1, k=6) + group + flag"
    columns = {name: frame[name].to_numpy() for name in ("x1", "flag")}
    columns["group"] = frame.group.to_numpy().astype(str)
    dataset = tf.data.Dataset.from_tensor_slices((columns, frame.gaussian.to_numpy())).batch(50)
    first, second = new_model(frame, formula), new_model(frame, formula)
    memory = fit(first, frame, batch_size=50, shuffle=False, validation_split=0.0).history
    streamed = fit(second, dataset).history
    assert first.optimizer.iterations.numpy() == second.optimizer.iterations.numpy() == 10
    assert_same_weights(first, second, rtol=1e-4, atol=1e-5)
    assert memory["deviance"] == pytest.approx(streamed["deviance"], rel=1e-4)


def test_weights_of_a_dataset(frame: pd.DataFrame) -> None:
    weight = np.resize([0.5, 2.0], len(frame))
    columns = {name: frame[name].to_numpy() for name in ("x1", "x3")}
    dataset = tf.data.Dataset.from_tensor_slices((columns, frame.gaussian.to_numpy(), weight)).batch(60)
    first, second = new_model(frame), new_model(frame)
    fit(first, frame, shuffle=False, validation_split=0.0, sample_weight=weight)
    fit(second, dataset)
    assert_same_weights(first, second, rtol=1e-4, atol=1e-5)


# Weights of rows --------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [None, 50])
def test_whole_weights_are_repeated_rows(frame: pd.DataFrame, batch_size: int | None) -> None:
    model = new_model(frame)
    weight = np.random.default_rng(0).integers(0, 4, len(frame))
    repeated = frame.loc[frame.index.repeat(weight)]
    by_weight = model.evaluate(frame, sample_weight=weight, batch_size=batch_size, return_dict=True)
    by_rows = model.evaluate(repeated, batch_size=batch_size, return_dict=True)
    assert by_weight["deviance"] == pytest.approx(by_rows["deviance"], rel=1e-6)


def test_weight_by_name_or_values(frame: pd.DataFrame) -> None:
    model = new_model(frame)
    by_name = model.evaluate(frame, sample_weight="exposure")
    assert by_name == pytest.approx(model.evaluate(frame, sample_weight=frame.exposure))
    assert by_name != pytest.approx(model.evaluate(frame), rel=1e-6)


def test_weight_of_zero_leaves_a_row_out(frame: pd.DataFrame) -> None:
    spoilt = frame.copy()
    spoilt.loc[:50, "gaussian"] += 1e4
    weight = (np.arange(len(frame)) > 50).astype(float)
    options = {"sample_weight": weight, "validation_split": 0.0}
    first, second = new_model(frame), new_model(frame)
    fit(first, frame, **options)
    fit(second, spoilt, **options)
    assert_same_weights(first, second, rtol=1e-5, atol=1e-6)


def test_class_weight_is_the_weight_of_the_rows_of_a_class(frame: pd.DataFrame) -> None:
    formula, options = "bernoulli ~ s(x1, k=6)", {"validation_split": 0.0}
    first, second, third = (new_model(frame, formula, family="bernoulli") for _ in range(3))
    fit(first, frame, class_weight={0: 1.0, 1: 3.0}, **options)
    fit(second, frame, sample_weight=1.0 + 2.0 * frame.bernoulli, **options)
    fit(third, frame, **options)
    assert_same_weights(first, second, rtol=1e-4, atol=1e-6)
    assert weights_differ(first, third)


# Deviance ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_evaluated_deviance(frame: pd.DataFrame, family: str) -> None:
    model = new_model(frame, f"{family} ~ x1 + group + offset(log(exposure))", family=family)
    rng = np.random.default_rng(0)
    model.set_weights([0.5 * rng.normal(size=weight.shape) for weight in model.get_weights()])
    expected = unit_deviance(family, frame[family].to_numpy(float), model.predict(frame))
    for batch_size in (None, 50):
        found = model.evaluate(frame, batch_size=batch_size, return_dict=True)["deviance"]
        assert found == pytest.approx(expected.mean(), rel=1e-5)
    weight = rng.uniform(size=len(frame))
    found = model.evaluate(frame, sample_weight=weight, return_dict=True)["deviance"]
    assert found == pytest.approx(np.average(expected, weights=weight), rel=1e-5)


@pytest.mark.parametrize("batch_size", [None, 50, 100, 7])
def test_evaluated_deviance_after_a_fit(
    plain: ak.AdditiveModel, frame: pd.DataFrame, batch_size: int | None
) -> None:
    """A fit runs several steps in one call; evaluation has another number of steps."""
    expected = unit_deviance("gaussian", frame.gaussian.to_numpy(), plain.predict(frame)).mean()
    found = plain.evaluate(frame, batch_size=batch_size, return_dict=True)["deviance"]
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("batch_size", [50, 100, 7])
def test_prediction_after_a_fit(plain: ak.AdditiveModel, frame: pd.DataFrame, batch_size: int) -> None:
    np.testing.assert_allclose(
        plain.predict(frame, batch_size=batch_size), plain.predict(frame), rtol=1e-6
    )


@pytest.fixture(scope="module")
def simulated() -> pd.DataFrame:
    """A strong effect for every family: the true mean halves the deviance, or nearly so."""
    rng = np.random.default_rng(7)
    data = pd.DataFrame({"x": rng.uniform(size=800), "exposure": rng.uniform(0.2, 5.0, 800)})
    eta = 2.5 * np.sin(2 * np.pi * data.x)
    data["gaussian"] = 1000 + 10 * (eta + rng.normal(size=800))
    data["bernoulli"] = (rng.random(800) < 1 / (1 + np.exp(-1.5 * eta))).astype(int)
    data["poisson"] = rng.poisson(data.exposure * np.exp(0.5 * eta))
    data["gamma"] = np.exp(0.5 * eta) * rng.gamma(4.0, 0.25, 800)
    return data


@pytest.mark.parametrize("family", FAMILIES)
def test_fit_improves_on_the_null_model(simulated: pd.DataFrame, family: str) -> None:
    offset = " + offset(log(exposure))" if family == "poisson" else ""
    model = new_model(simulated, f"{family} ~ s(x){offset}", family=family)
    y = simulated[family].to_numpy(float)
    null = np.full(len(y), y.mean())
    if family == "poisson":
        null = simulated.exposure.to_numpy() * y.sum() / simulated.exposure.sum()
    fit(model, simulated, epochs=20, batch_size=None)
    deviance = model.evaluate(simulated, return_dict=True)["deviance"]
    assert deviance < 0.6 * unit_deviance(family, y, null).mean()
    assert model.predict(simulated).mean() == pytest.approx(y.mean(), rel=0.1)


def test_exposure_recovers_a_rate() -> None:
    rng = np.random.default_rng(3)
    data = pd.DataFrame({"x": rng.uniform(size=3000), "t": rng.uniform(1, 20, 3000)})
    data["n"] = rng.poisson(data.t * np.exp(-1 + data.x))
    model = new_model(data, "n ~ x + offset(log(t))", family="poisson")
    fit(model, data, epochs=60, batch_size=None)
    rate = model.predict({"x": [0.0, 1.0], "t": 1.0})
    np.testing.assert_allclose(rate, np.exp([-1.0, 0.0]), rtol=0.08)
    np.testing.assert_allclose(model.predict({"x": [0.0, 1.0], "t": 7.0}), 7 * rate, rtol=1e-5)
