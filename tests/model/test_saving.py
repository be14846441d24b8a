"""Saved, reloaded and exported models predict the same, without training data or custom objects."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import ahofm_keras as ak
from ahofm_keras.serving import serving_names
from tests.model.careless import with_random_weights


def test_keras_file_predicts_the_same(
    fitted: ak.AdditiveModel, frame: pd.DataFrame, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.formula == fitted.formula
    for kind in ("response", "link"):
        np.testing.assert_array_equal(loaded.predict(frame, type=kind), fitted.predict(frame, type=kind))
    pd.testing.assert_frame_equal(
        loaded.predict(frame, type="terms"), fitted.predict(frame, type="terms")
    )
    assert loaded.evaluate(frame) == pytest.approx(fitted.evaluate(frame))
    pd.testing.assert_frame_equal(
        loaded.predict(frame, interval=0.95), fitted.predict(frame, interval=0.95)
    )


def test_loaded_model_goes_on_fitting_with_its_optimizer(frame: pd.DataFrame, tmp_path: Path) -> None:
    model = ak.AdditiveModel("gaussian ~ s(x1)", frame)
    arguments = {"epochs": 2, "verbose": 0, "batch_size": 60, "validation_split": 0.0}
    with pytest.warns(ak.AhofmWarning):
        model.fit(frame, **arguments)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.optimizer.iterations.numpy() == model.optimizer.iterations.numpy() == 8
    for each in (model, loaded):
        with pytest.warns(ak.AhofmWarning):
            each.fit(frame, **arguments)
    np.testing.assert_allclose(loaded.predict(frame), model.predict(frame), rtol=1e-6)


def test_config_round_trip(fitted: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    config = json.loads(json.dumps(fitted.get_config()))
    copy = ak.AdditiveModel.from_config(config)
    copy.set_weights(fitted.get_weights())
    np.testing.assert_array_equal(copy.predict(frame), fitted.predict(frame))
    assert copy.get_config() == fitted.get_config()


def test_clone_model(fitted: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    copy = fitted.__class__.from_config(fitted.get_config())
    assert [w.path for w in copy.weights] == [w.path for w in fitted.weights]


def test_a_newer_format_is_refused(frame: pd.DataFrame) -> None:
    config = ak.AdditiveModel("gaussian ~ x1", frame).get_config() | {"format_version": 99}
    with pytest.raises(ak.DataError, match=r"saved in format 99.*Update ahofm_keras"):
        ak.AdditiveModel.from_config(config)


def test_config_holds_the_format_version(fitted: ak.AdditiveModel, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model.keras")
    with zipfile.ZipFile(tmp_path / "model.keras") as archive:
        config = json.loads(archive.read("config.json"))
    assert config["config"]["format_version"] == 7


def serving_inputs(model: ak.AdditiveModel, frame: pd.DataFrame) -> dict[str, tf.Tensor]:
    kinds = {"number": "float64", "text": "string", "boolean": "bool"}
    return {
        name: tf.constant(frame[name].tolist(), dtype=kinds[kind])
        for name, kind in model.design.columns.items()
    }


def test_saved_model_parity(fitted: ak.AdditiveModel, frame: pd.DataFrame, tmp_path: Path) -> None:
    fitted.export(tmp_path / "serving" / "1")
    served = tf.saved_model.load(str(tmp_path / "serving" / "1"))
    inputs = serving_inputs(fitted, frame)
    outputs = served.signatures["serving_default"](**inputs)
    assert set(outputs) == {"response", "link"}
    np.testing.assert_allclose(outputs["response"], fitted.predict(frame), rtol=1e-5)
    link = fitted.predict(frame, type="link")
    np.testing.assert_allclose(outputs["link"], link, rtol=1e-5, atol=1e-6)
    terms = served.signatures["terms"](**inputs)
    expected = fitted.predict(frame, type="terms")
    np.testing.assert_allclose(sum(terms.values()), expected.sum(axis=1), rtol=1e-4, atol=1e-5)
    assert len(terms) == expected.shape[1]
    spread = served.signatures["uncertainty"](**inputs)
    expected = fitted.predict(frame, type="link", interval=0.95)
    np.testing.assert_allclose(spread["link"], expected.link, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(spread["link_se"], expected.se, rtol=1e-4)


def test_saved_model_loads_where_the_package_was_never_imported(
    frame: pd.DataFrame, tmp_path: Path
) -> None:
    formula = 'gaussian ~ s(x1) + group + flag + s(Q("km/h"))'
    model = with_random_weights(ak.AdditiveModel(formula, with_odd_name(frame)))
    model.export(tmp_path / "1")
    program = f"""
import sys, json, tensorflow as tf
served = tf.saved_model.load({str(tmp_path / "1")!r})
assert not any(name.startswith("ahofm_keras") for name in sys.modules)
signature = served.signatures["serving_default"]
names = sorted(signature.structured_input_signature[1])
values = dict(x1=tf.constant([0.3], tf.float64), group=tf.constant(["b"]), flag=tf.constant([True]))
values["km_h"] = tf.constant([50.0], tf.float64)
print(json.dumps([names, float(signature(**values)["response"][0])]))
"""
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    names, value = json.loads(answer.stdout.splitlines()[-1])
    assert names == ["flag", "group", "km_h", "x1"]
    row = {"x1": 0.3, "group": "b", "flag": True, "km/h": 50.0}
    assert value == pytest.approx(model.predict(row)[0], rel=1e-6)


def with_odd_name(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.rename(columns={"x3": "km/h"})


def test_columns_of_any_name(frame: pd.DataFrame, tmp_path: Path) -> None:
    odd = {"x1": "a b", "x2": "response", "x3": "km/h", "hour": "predictor", "group": "größe"}
    data = frame.rename(columns=odd)
    formula = 'gaussian ~ Q("a b") + s(response) + s(Q("km/h")) + s(predictor) + größe'
    model = with_random_weights(ak.AdditiveModel(formula, data))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded.predict(data), model.predict(data))
    model.export(tmp_path / "1")
    assert "serving_default" in tf.saved_model.load(str(tmp_path / "1")).signatures


def test_served_names_never_collide() -> None:
    """Nor do they depend on the order or on other names, but for whether one is taken."""
    names = [
        "grün",
        "grun",
        "grün ",
        "年",
        "齢",
        "!",
        "?",
        "a b",
        "a/b",
        "a_b",
        "a_b_806c5cd3",
        "1",
        "_1",
    ]
    found = serving_names(names)
    assert list(found) == names
    assert len(set(found.values())) == len(names)
    assert all(re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", own) for own in found.values())
    assert serving_names(reversed(names[:10])) == serving_names(names[:10])
    assert [found[own] for own in ("grun", "a_b", "年", "_1")] == ["grun", "a_b", "u5e74", "_1"]
    assert serving_names(["grün", "straße"]) == {"grün": "grun", "straße": "strasse"}


class InterruptedSaveError(Exception):
    pass


def test_interrupted_save_leaves_the_old_model(
    frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ak.AdditiveModel("gaussian ~ x1", frame)
    model.save(tmp_path / "model.keras")
    before = (tmp_path / "model.keras").read_bytes()

    def fail(*args: object, **kwargs: object) -> None:
        raise InterruptedSaveError

    monkeypatch.setattr(keras.Model, "save", fail)
    with pytest.raises(InterruptedSaveError):
        model.save(tmp_path / "model.keras")
    assert (tmp_path / "model.keras").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["model.keras"]


def test_interrupted_export_leaves_the_old_model(
    frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ak.AdditiveModel("gaussian ~ x1", frame)
    model.export(tmp_path / "1")
    before = sorted(path.name for path in (tmp_path / "1").iterdir())

    def fail(inputs: object, endpoints: object, path: Path) -> None:
        path.mkdir()
        (path / "half.pb").write_text("half")
        raise InterruptedSaveError

    monkeypatch.setattr("ahofm_keras.model.additive.export_saved_model", fail)
    with pytest.raises(InterruptedSaveError):
        model.export(tmp_path / "1")
    assert sorted(path.name for path in (tmp_path / "1").iterdir()) == before
    assert [path.name for path in tmp_path.iterdir()] == ["1"]


def test_save_refuses_other_formats(frame: pd.DataFrame, tmp_path: Path) -> None:
    model = ak.AdditiveModel("gaussian ~ x1", frame)
    with pytest.raises(ak.DataError, match=r"saved as a `\.keras` file"):
        model.save(tmp_path / "model.h5")
