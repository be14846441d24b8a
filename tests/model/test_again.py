"""A model that is fitted again, copied, or not fitted at all."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak

FORMULA = "y ~ ahofm(x1, x2, D=2, F=2, k=6)"
ROWS = 200


def product_frame(seed: int = 0) -> pd.DataFrame:
    """A response that is a product; pure noise of the same spread in `noise`."""
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({name: rng.normal(size=ROWS) for name in ("x1", "x2")})
    data["y"] = data.x1 * data.x2 + 0.1 * rng.normal(size=ROWS)
    return data.assign(noise=rng.normal(size=ROWS))


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    return product_frame()


@pytest.fixture(scope="module")
def known(data: pd.DataFrame) -> ak.AdditiveModel:
    """A fitted model that nobody changes."""
    model = ak.AdditiveModel(FORMULA, data)
    model.fit(data, verbose=0)
    return model


def error_of(model: ak.AdditiveModel, data: pd.DataFrame) -> float:
    return float(np.std(model.predict(data) - data.y))


def reload(model: ak.AdditiveModel, folder: Path) -> ak.AdditiveModel:
    model.save(folder / "model.keras")
    return keras.models.load_model(folder / "model.keras")


# Fitted again -----------------------------------------------------------------------------------


@pytest.mark.parametrize("loaded", [False, True])
def test_other_rows_bring_back_what_was_switched_off(
    data: pd.DataFrame, known: ak.AdditiveModel, loaded: bool, tmp_path: Path
) -> None:
    noise = data.assign(y=data.noise)
    model = ak.AdditiveModel(FORMULA, data)
    model.fit(noise, verbose=0)
    assert error_of(model, data) > 5 * error_of(known, data)
    if loaded:
        model = reload(model, tmp_path)
    model.fit(data, verbose=0)
    np.testing.assert_allclose(model.predict(data), known.predict(data), atol=1e-4)


def test_starting_anew_is_told(data: pd.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    model = ak.AdditiveModel(FORMULA, data)
    model.fit(data, verbose=0)
    model.fit(product_frame(1).clip(data.min(), data.max(), axis=1))
    assert "The rows are not those of the last fit: starting anew." in capsys.readouterr().out


@pytest.mark.parametrize("loaded", [False, True])
def test_the_same_rows_go_on(data: pd.DataFrame, loaded: bool, tmp_path: Path) -> None:
    model = ak.AdditiveModel(FORMULA, data)
    first = model.fit(data, verbose=0).history["bound"]
    if loaded:
        model = reload(model, tmp_path)
    second = model.fit(data, verbose=0).history["bound"]
    assert len(second) < len(first)
    assert second[0] == pytest.approx(first[-1], abs=0.5)


def test_restarts_of_a_fitted_model_are_not_passed_over(data: pd.DataFrame) -> None:
    model = ak.AdditiveModel(FORMULA, data, starts=2)
    first = model.fit(data, verbose=0).history["bound"]
    again = model.fit(data, restarts=1, verbose=0).history["bound"]
    assert len(again) > len(first)
    assert again[: len(first)] == pytest.approx(first, rel=1e-6)


@pytest.mark.parametrize("solver", ["adam", "bcd"])
def test_what_was_switched_off_stays_off_with_a_warning(data: pd.DataFrame, solver: str) -> None:
    noise = data.assign(y=data.noise)
    model = ak.AdditiveModel(FORMULA, data)
    model.fit(noise, verbose=0)
    with pytest.warns(
        ak.AhofmWarning, match=r"^`ahofm\(x1, x2\)\[2\]`: switched off by a fit to other rows"
    ):
        model.fit(data, solver=solver, verbose=0)
    assert not model.predict(data, type="terms")["ahofm(x1, x2)[2]"].any()


def test_no_epochs_on_other_rows_keep_the_posterior(data: pd.DataFrame) -> None:
    model = ak.AdditiveModel(FORMULA, data)
    model.fit(data, verbose=0)
    before = model.predict(data, interval=0.9)
    model.fit(data.assign(y=data.noise), epochs=0, verbose=0)
    pd.testing.assert_frame_equal(model.predict(data, interval=0.9), before)


def test_a_batch_ends_what_intervals_rest_on(data: pd.DataFrame, known: ak.AdditiveModel) -> None:
    model = copy.deepcopy(known)
    columns = {name: data[name].to_numpy() for name in ("x1", "x2")}
    model.train_on_batch(columns, data.y.to_numpy())
    with pytest.raises(ak.NotFittedError, match="Intervals need"):
        model.predict(data, interval=0.9)


def test_a_fit_without_rows_to_spare_warns(data: pd.DataFrame) -> None:
    few = data.iloc[:8]
    model = ak.AdditiveModel("y ~ s(x1, sp=1e-12) + s(x2, sp=1e-12)", few)
    with pytest.warns(
        ak.AhofmWarning, match=r"degrees of freedom from 8 rows.*intervals are too narrow"
    ):
        model.fit(few, verbose=0)


# Copies -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_models_of_their_own(
    data: pd.DataFrame, known: ak.AdditiveModel, copied: Any
) -> None:
    other = copied(known)
    before = known.predict(data, interval=0.9)
    pd.testing.assert_frame_equal(other.predict(data, interval=0.9), before)
    other.fit(data.assign(y=-data.y), verbose=0)
    pd.testing.assert_frame_equal(known.predict(data, interval=0.9), before)
    np.testing.assert_allclose(other.predict(data), -known.predict(data), atol=1e-3)


def test_keras_clones_the_layers(data: pd.DataFrame, known: ak.AdditiveModel) -> None:
    """A model without weights of the fit, on a dict of arrays; compiled alike."""
    clone = keras.models.clone_model(known)
    columns = {name: data[name].to_numpy() for name in ("x1", "x2")}
    with pytest.warns(ak.AhofmWarning, match="never fitted"):
        fresh = ak.AdditiveModel(FORMULA, data).predict(data)
    with pytest.warns(ak.AhofmWarning, match="never fitted"):
        found = clone.predict(columns, verbose=0)
    np.testing.assert_allclose(found, fresh, rtol=1e-5, atol=1e-6)
    assert clone.loss.family.name == "gaussian"


# Not fitted -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["response", "link", "terms"])
def test_predictions_of_an_unfitted_model_warn(data: pd.DataFrame, kind: str, tmp_path: Path) -> None:
    model = ak.AdditiveModel(FORMULA, data)
    for each in (model, reload(model, tmp_path)):
        with pytest.warns(ak.AhofmWarning, match=r"^The model was never fitted") as caught:
            each.predict(data, type=kind)
        assert caught[0].filename == __file__


def test_weights_that_were_set_are_no_start(data: pd.DataFrame) -> None:
    model = ak.AdditiveModel(FORMULA, data)
    model.set_weights([2.0 * weight + 1.0 for weight in model.get_weights()])
    assert np.isfinite(model.predict(data)).all()


def test_intervals_have_the_noise_of_the_last_fit(data: pd.DataFrame) -> None:
    """Predicted once, fitted to noisier rows, and predicted again."""
    name = str(ak.AdditiveModel(FORMULA, data).response)
    noise = 10 * data[name].std() * np.random.default_rng(0).normal(size=len(data))
    noisy = data.assign(**{name: data[name] + noise})
    model, new = ak.AdditiveModel(FORMULA, data), ak.AdditiveModel(FORMULA, data)
    model.fit(data, verbose=0)
    model.predict(data, interval=0.9)
    for own in (model, new):
        own.fit(noisy, verbose=0)
    found, expected = (own.predict(data, interval=0.9) for own in (model, new))
    pd.testing.assert_frame_equal(found, expected)
