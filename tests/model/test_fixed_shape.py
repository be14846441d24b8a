"""The shape of a model is fixed when it is made, so it can be handled as any Keras model."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.model import starts as room
from tests.model.short_fits import fit, new_model

FORMULA = "y ~ s(d) + ahofm(a, b, c, D=3, F=2, k=8, df=6)"
PACKAGE = Path(ak.__file__).parent
# What Keras keeps to itself, as far as anybody here might be tempted.
PRIVATES = (
    "_tracker _untrack_variable _track_variable _lock _keras_history _run_through_graph "
    "_compile_config _learning_rate _trainable_variables _non_trainable_variables _build_shapes_dict "
    "_eval_epoch_iterator _use_cached_eval_dataset"
)


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.uniform(-1, 1, (160, 4)), columns=list("abcd"))
    mean = np.sin(3 * frame.a) * frame.b + frame.a * frame.b * frame.c
    return frame.assign(y=7 + mean + 0.5 * rng.normal(size=160))


def make(data: pd.DataFrame, starts: int = 3) -> ak.AdditiveModel:
    return ak.AdditiveModel(FORMULA, data, starts=starts)


@pytest.fixture(scope="module")
def single(data: pd.DataFrame) -> ak.AdditiveModel:
    model = make(data)
    model.fit(data, restarts=0, verbose=0)
    return model


@pytest.fixture(scope="module")
def averaged(data: pd.DataFrame) -> ak.AdditiveModel:
    model = make(data)
    model.fit(data, restarts=1, verbose=0)
    return model


@pytest.fixture(params=["single", "averaged"])
def fitted(request: pytest.FixtureRequest) -> ak.AdditiveModel:
    return request.getfixturevalue(request.param)


def assert_same(found: ak.AdditiveModel, expected: ak.AdditiveModel, data: pd.DataFrame) -> None:
    assert (found.has_posterior, found.starts) == (expected.has_posterior, expected.starts)
    for how in ({}, {"type": "terms"}, {"interval": 0.9}):
        np.testing.assert_array_equal(found.predict(data, **how), expected.predict(data, **how))


def by_set_weights(model: ak.AdditiveModel, other: ak.AdditiveModel, folder: Path) -> None:
    other.set_weights(model.get_weights())


def by_file(model: ak.AdditiveModel, other: ak.AdditiveModel, folder: Path) -> None:
    model.save_weights(folder / "m.weights.h5")
    other.load_weights(folder / "m.weights.h5")


def by_layer(model: ak.AdditiveModel, other: ak.AdditiveModel, folder: Path) -> None:
    for layer in [*model.network.layers, model.posterior]:
        other.get_layer(layer.name).set_weights(layer.get_weights())


TRANSFERS = pytest.mark.parametrize("transfer", [by_set_weights, by_file, by_layer])
Transfer = Callable[[ak.AdditiveModel, ak.AdditiveModel, Path], None]


@TRANSFERS
def test_weights_go_from_one_model_to_another(
    fitted: ak.AdditiveModel, data: pd.DataFrame, tmp_path: Path, transfer: Transfer
) -> None:
    other = make(data)
    with pytest.warns(ak.AhofmWarning, match="never fitted"):
        other.predict(data)  # traced with the weights of a new model
    transfer(fitted, other, tmp_path)
    assert other.is_fitted
    assert other.fit_result is None
    assert_same(other, fitted, data)


@TRANSFERS
def test_weights_of_a_new_model_make_a_fitted_one_new(
    data: pd.DataFrame, tmp_path: Path, transfer: Transfer
) -> None:
    model, new = make(data), make(data)
    model.fit(data, restarts=1, verbose=0)
    model.predict(data)
    transfer(new, model, tmp_path)
    assert not model.is_fitted
    assert not model.has_posterior
    assert model.starts == 1
    with pytest.warns(ak.AhofmWarning, match="never fitted"):
        found, expected = (own.predict(data) for own in (model, new))
    np.testing.assert_array_equal(found, expected)


def test_no_fit_changes_a_shape(data: pd.DataFrame) -> None:
    model = make(data)
    weights = [(id(w), w.shape) for w in model.weights]
    optimizer = model.optimizer
    slots = [v.shape for v in optimizer.variables]
    for how in ({"restarts": 1}, {"solver": "bcd"}, {"solver": "adam"}, {"restarts": 0}):
        with np.errstate(all="ignore"):
            fit(model, data, **({"solver": "variational", "epochs": None} | how))
        assert [(id(w), w.shape) for w in model.weights] == weights
        assert model.optimizer is optimizer
        assert [v.shape for v in optimizer.variables] == slots


def test_a_clone_is_a_new_model_of_the_same_shape(fitted: ak.AdditiveModel, data: pd.DataFrame) -> None:
    clone = keras.models.clone_model(fitted)
    assert type(clone) is ak.AdditiveModel
    assert not clone.is_fitted
    assert not clone.has_posterior
    clone.set_weights(fitted.get_weights())
    assert_same(clone, fitted, data)


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("solver", ["adam", "variational"])
def test_checkpoints(data: pd.DataFrame, tmp_path: Path, solver: str, weights_only: bool) -> None:
    path = tmp_path / ("m.weights.h5" if weights_only else "m.keras")
    keep = keras.callbacks.ModelCheckpoint(str(path), save_weights_only=weights_only)
    model = new_model(data, FORMULA, starts=2)
    # Rows that are held out may be held in the range of the others, which is learned at the end.
    fit(model, data, solver=solver, epochs=3, callbacks=[keep], validation_split=0.0)
    if weights_only:
        loaded = make(data, starts=2)
        loaded.load_weights(path)
    else:
        loaded = keras.models.load_model(path)
    assert loaded.is_fitted
    np.testing.assert_array_equal(loaded.predict(data), model.predict(data))
    if solver == "variational":
        assert_same(loaded, model, data)


def test_backup_and_restore(data: pd.DataFrame, tmp_path: Path) -> None:
    class Stop(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if epoch == 1:
                raise KeyboardInterrupt

    whole, interrupted = new_model(data, FORMULA, starts=2), new_model(data, FORMULA, starts=2)
    fit(whole, data, epochs=4, shuffle=False, validation_split=0.0)
    how = {"epochs": 4, "shuffle": False, "validation_split": 0.0}
    with pytest.raises(KeyboardInterrupt):
        fit(
            interrupted,
            data,
            **how,
            callbacks=[keras.callbacks.BackupAndRestore(tmp_path / "b"), Stop()],
        )
    again = new_model(data, FORMULA, starts=2)
    history = fit(again, data, **how, callbacks=[keras.callbacks.BackupAndRestore(tmp_path / "b")])
    assert history.epoch == [2, 3]
    np.testing.assert_allclose(again.predict(data), whole.predict(data), rtol=1e-5)


def test_summary_shows_every_layer(fitted: ak.AdditiveModel) -> None:
    lines: list[str] = []
    fitted.summary(print_fn=lambda text, **_: lines.append(text))
    shown = "\n".join(lines)
    for name in ("s_d", "ahofm_a_b_c", "posterior", "predictor"):
        assert name in shown


def test_starts_that_are_not_used_cost_nothing_in_a_file(data: pd.DataFrame, tmp_path: Path) -> None:
    sizes = []
    for starts in (1, 12):
        model = make(data, starts=starts)
        model.compile(optimizer=keras.optimizers.SGD())  # Adam has slots for all weights
        model.save(tmp_path / "m.keras")
        sizes.append((tmp_path / "m.keras").stat().st_size)
    assert sizes[1] < 1.02 * sizes[0] + 4000


def test_starts_that_are_not_used_are_not_computed(data: pd.DataFrame) -> None:
    """Layers read as much of their weights as is in use."""
    model = make(data, starts=4)
    layer = model.get_layer("ahofm_a_b_c")
    assert layer.coefficients(0).shape[2] == 2
    model.fit(data, restarts=2, verbose=0)
    (last,) = np.flatnonzero(layer.coordinates(0).any(axis=(0, 1)))[-1:]
    assert layer.coefficients(0).shape[2] == last + 1 > 2
    assert layer.coordinates(0).shape[2] == 8


def test_more_starts_than_there_is_room_for(data: pd.DataFrame) -> None:
    model = make(data, starts=2)
    message = re.escape(
        "`restarts=2` is the average of 3 fits; the model has room for 2. Make it with room for more: "
        "`AdditiveModel(formula, data, starts=3)`."
    )
    with pytest.raises(ak.DataError, match=message):
        model.fit(data, restarts=2, verbose=0)
    fit(model, data, solver="bcd", restarts=2)  # of which the best is kept
    plain = ak.AdditiveModel("y ~ s(a)", data)
    plain.fit(data, restarts=2, verbose=0)  # nothing is laid side by side


def test_room_follows_from_design_and_rows(data: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "ROWS_OF_STARTS", 40_000)
    assert make(data, starts="auto").room == 12
    assert ak.AdditiveModel("y ~ s(a)", data).room == 1
    monkeypatch.setattr(room, "ROWS_OF_STARTS", 160 * 4 + 1)
    assert make(data, starts="auto").room == 5
    numbers = room.count_posterior(make(data).design.with_starts(3))
    monkeypatch.setattr(room, "MOST_NUMBERS", numbers)
    assert make(data, starts="auto").room == 3
    monkeypatch.setattr(room, "MOST_NUMBERS", 1)
    assert make(data, starts="auto").room == 1
    assert make(data, starts=7).room == 7


def test_adam_leaves_the_rest_of_the_room_empty(data: pd.DataFrame) -> None:
    small, large = new_model(data, FORMULA, starts=1), new_model(data, FORMULA, starts=5)
    for model in (small, large):
        fit(model, data, epochs=3)
    np.testing.assert_allclose(small.predict(data), large.predict(data), rtol=1e-6)
    for further in large.get_layer("ahofm_a_b_c").further.values():
        assert not np.asarray(further).any()


def test_no_keras_private_is_touched() -> None:
    pattern = re.compile(rf"\.({'|'.join(PRIVATES.split())})\b")
    found = [
        f"{path.name}:{number}: {line.strip()}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found


# Models that see their response in the first fit only


@pytest.mark.parametrize("solver", ["variational", "bcd", "adam"])
def test_the_response_may_come_with_the_fit(data: pd.DataFrame, solver: str, tmp_path: Path) -> None:
    known, later = new_model(data, FORMULA), new_model(data.drop(columns="y"), FORMULA)
    assert later.scale == 0
    for model in (known, later):
        fit(model, data, solver=solver, epochs=4)
    assert (later.shift, later.scale) == (known.shift, known.scale)
    np.testing.assert_array_equal(later.predict(data), known.predict(data))
    later.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(loaded.predict(data), known.predict(data))
    assert loaded.evaluate(data) == pytest.approx(known.evaluate(data))
    new = ak.AdditiveModel(FORMULA, data.drop(columns="y"))
    new.set_weights(known.get_weights())
    np.testing.assert_array_equal(new.predict(data), known.predict(data))


def test_a_model_that_never_saw_its_response(data: pd.DataFrame, tmp_path: Path) -> None:
    model = ak.AdditiveModel("center(y) ~ s(a)", data.drop(columns="y"))
    with pytest.warns(ak.AhofmWarning, match="never fitted"):
        np.testing.assert_array_equal(model.predict(data), np.zeros(len(data)))
    model.save(tmp_path / "m.keras")
    model = keras.models.load_model(tmp_path / "m.keras")
    with pytest.raises(ak.NotFittedError, match="has not seen its response"):
        model.evaluate(data)
    with pytest.raises(ak.DataError, match="has not seen its response yet: call `fit` before this"):
        model.train_on_batch({"a": data.a.to_numpy()}, data.y.to_numpy())
    with pytest.raises(ak.DataError, match="constant"):
        model.fit(data.assign(y=1.0), verbose=0)
    model.fit(data, verbose=0)
    known = ak.AdditiveModel("center(y) ~ s(a)", data)
    known.fit(data, verbose=0)
    np.testing.assert_array_equal(model.predict(data), known.predict(data))


def test_warnings_of_the_response_come_with_it(data: pd.DataFrame) -> None:
    model = ak.AdditiveModel("z ~ a", data)
    with pytest.warns(ak.AhofmWarning, match="tells the response `z` exactly"):
        model.fit(data.assign(z=1 + 2 * data.a), verbose=0)
