"""Behaviour of `fit`, mostly with solver="adam": rows, epochs, words, forms of data."""

from __future__ import annotations

import warnings

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import ahofm_keras as ak
from tests.model.short_fits import (
    assert_same_weights,
    fit,
    learned_weights,
    new_model,
    unit_deviance,
    weights_differ,
)

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
    ended, started = learned_weights(model), []
    record = keras.callbacks.LambdaCallback(
        on_train_begin=lambda logs: started.extend(learned_weights(model))
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
    outside = pytest.warns(ak.AhofmWarning, match="outside the training range")
    with pytest.warns(ak.AhofmWarning, match="reached its last epoch"), outside as caught:
        new_model(frame).fit(
            frame, solver="adam", epochs=1, verbose=0, validation_data=frame.assign(x1=2.0)
        )
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
    weight = np.resize([0.4, 1.6], len(frame))  # a mean of 1: that of a dataset is not known
    columns = {name: frame[name].to_numpy() for name in ("x1", "x3")}
    dataset = tf.data.Dataset.from_tensor_slices((columns, frame.gaussian.to_numpy(), weight)).batch(60)
    first, second = new_model(frame), new_model(frame)
    fit(first, frame, shuffle=False, validation_split=0.0, sample_weight=weight)
    fit(second, dataset)
    assert_same_weights(first, second, rtol=1e-4, atol=1e-5)
