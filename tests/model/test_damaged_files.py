"""Files that were cut off, edited, or are of another kind: one error that says what is wrong."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import keras
import numpy as np
import pytest

import ahofm_keras as ak
from tests.model.careless import DATA, with_random_weights

CONFIG, WEIGHTS = "config.json", "model.weights.h5"
Parts = dict[str, bytes]
Config = dict[str, Any]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """A file, and what is in it."""
    path = tmp_path_factory.mktemp("saved") / "model.keras"
    model = with_random_weights(ak.AdditiveModel("y ~ s(x1, k=6) + g", DATA))
    model.save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    return SimpleNamespace(path=path, parts=parts, model=model)


def write(parts: Parts, path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def edited(parts: Parts, change: Callable[[Config], Any]) -> Parts:
    whole = json.loads(parts[CONFIG])
    change(whole["config"])
    return {**parts, CONFIG: json.dumps(whole).encode()}


def test_a_whole_file_is_loaded(saved: SimpleNamespace) -> None:
    loaded = ak.load_model(str(saved.path))
    assert isinstance(loaded, ak.AdditiveModel)
    np.testing.assert_array_equal(loaded.predict(DATA), saved.model.predict(DATA))


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.9, 0.999])
def test_a_file_that_was_cut_off(share: float, saved: SimpleNamespace, tmp_path: Path) -> None:
    path = tmp_path / "cut.keras"
    whole = saved.path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ak.DataError, match=r"cut\.keras' is (no `\.keras` file, or only a part|empty)"):
        ak.load_model(path)


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS])
def test_bits_that_changed(name: str, saved: SimpleNamespace, tmp_path: Path) -> None:
    path = tmp_path / "bits.keras"
    whole = bytearray(saved.path.read_bytes())
    with zipfile.ZipFile(saved.path) as archive:
        entry = archive.getinfo(name)
    middle = entry.header_offset + 30 + len(name) + entry.compress_size // 2
    whole[middle] ^= 0xFF
    path.write_bytes(whole)
    with pytest.raises(ak.DataError, match=r"bits\.keras'.* is damaged"):
        ak.load_model(path)


def basis_of(config: Config) -> Config:
    return config["state"]["design"]["features"][0]["basis"]  # type: ignore[no-any-return]


NAN = float("nan")
EDITS: dict[str, tuple[Callable[[Config], Any], str]] = {
    "no scale": (lambda c: c["state"].update(scale=0.0), r"its `scale` is 0\.0"),
    "negative scale": (lambda c: c["state"].update(scale=-1.0), r"its `scale` is -1\.0"),
    "missing scale": (lambda c: c["state"].update(scale=NAN), "its `scale` is nan"),
    "scale as text": (lambda c: c["state"].update(scale="1"), "its `scale` is '1'"),
    "infinite shift": (lambda c: c["state"].update(shift=float("inf")), "its `shift` is inf"),
    "missing knot": (lambda c: basis_of(c)["axis"].__setitem__(1, NAN), r"`design\['features'\]\[0\].* not a number"),
    "no design": (lambda c: c["state"].pop("design"), "its state has no `design`"),
    "no state": (lambda c: c.pop("state"), "it has no `state`"),
    "another design": (lambda c: c["state"].update(design=[1, 2]), "does not fit together"),
    "fewer features": (lambda c: c["state"]["design"]["features"].clear(), "does not fit together"),
    "another kind of term": (lambda c: c["state"]["design"]["predictors"]["mean"]["terms"][0].update(kind="u"), "kind 'u'.*which is not known here"),
    "negative smoothing": (lambda c: c["state"]["design"]["predictors"]["mean"]["terms"][0].update(smoothing=-1.0), "does not fit together"),
    "another family": (lambda c: c.update(family="nb"), "Unknown family 'nb'"),
    "a newer format": (lambda c: c.update(format_version=99), "saved in format 99.*Update ahofm_keras"),
    "a format as text": (lambda c: c.update(format_version="3"), "its format is '3'"),
}  # fmt: skip


@pytest.mark.parametrize("load", [ak.load_model, keras.models.load_model], ids=["ours", "keras"])
@pytest.mark.parametrize("case", EDITS)
def test_a_config_that_was_edited(
    case: str, load: Callable[[Path], Any], saved: SimpleNamespace, tmp_path: Path
) -> None:
    change, words = EDITS[case]
    with pytest.raises(ak.DataError, match=words) as caught:
        load(write(edited(saved.parts, change), tmp_path / "edited.keras"))
    assert "\n" not in str(caught.value)


def with_missing_weights(parts: Parts, folder: Path) -> bytes:
    """The weights, of which some are NaN."""
    path = folder / "weights.h5"
    path.write_bytes(parts[WEIGHTS])
    with h5py.File(path, "a") as file:
        file["layers/functional/layers/smooth/vars/0"][...] = np.nan
    return path.read_bytes()


def test_weights_that_do_not_fit(saved: SimpleNamespace, tmp_path: Path) -> None:
    ak.AdditiveModel("y ~ s(x1, k=5) + g", DATA).save(tmp_path / "other.keras")
    with zipfile.ZipFile(tmp_path / "other.keras") as archive:
        others = archive.read(WEIGHTS)
    cases = {
        r"its weights do not fit its config \(ValueError": others,
        r"its weights do not fit its config \(OSError": saved.parts[WEIGHTS][:2000],
        "the weights `s_x1/kernel` hold NaN": with_missing_weights(saved.parts, tmp_path),
    }
    for words, weights in cases.items():
        path = write({**saved.parts, WEIGHTS: weights}, tmp_path / "mixed.keras")
        with pytest.raises(ak.DataError, match=rf"mixed\.keras': The saved model is damaged.*{words}"):
            ak.load_model(path)


@pytest.mark.filterwarnings("ignore:Skipping nested container")
def test_keras_refuses_other_shapes_in_words_of_its_own(saved: SimpleNamespace, tmp_path: Path) -> None:
    ak.AdditiveModel("y ~ s(x1, k=5) + g", DATA).save(tmp_path / "other.keras")
    with zipfile.ZipFile(tmp_path / "other.keras") as archive:
        others = archive.read(WEIGHTS)
    write({**saved.parts, WEIGHTS: others}, tmp_path / "mixed.keras")
    with pytest.raises(ValueError, match="could not be loaded"):
        keras.models.load_model(tmp_path / "mixed.keras")


def test_files_of_another_kind(saved: SimpleNamespace, tmp_path: Path) -> None:
    keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)]).save(tmp_path / "keras.keras")
    (tmp_path / "text.keras").write_text("hello")
    (tmp_path / "model.pkl").write_text("hello")
    write({"a.txt": b"hello"}, tmp_path / "zip.keras")
    write({**saved.parts, CONFIG: saved.parts[CONFIG][:200]}, tmp_path / "json.keras")
    write({**saved.parts, CONFIG: b"[]"}, tmp_path / "list.keras")
    write({CONFIG: saved.parts[CONFIG]}, tmp_path / "bare.keras")
    saved.model.save_weights(tmp_path / "only.weights.h5")
    saved.model.export(tmp_path / "served")
    (tmp_path / "folder").mkdir()
    told = {
        "keras.keras": "holds a Keras model `Sequential`, no `AdditiveModel`",
        "text.keras": r"is no `\.keras` file, or only a part of one",
        "model.pkl": r"A model is saved as a `\.keras` file",
        "zip.keras": r"holds no model: it has no `config\.json`",
        "json.keras": r"its `config\.json` is no JSON",
        "list.keras": "holds no model, no `AdditiveModel`",
        "bare.keras": "its weights do not fit its config",
        "only.weights.h5": r"holds weights alone.*`model\.load_weights\(path\)`",
        "served": r"is an exported model: `tf\.saved_model\.load` reads it",
        "folder": "is a folder",
        "nowhere.keras": "There is no file",
    }
    for name, words in told.items():
        with pytest.raises(ak.DataError, match=words) as caught:
            ak.load_model(tmp_path / name)
        assert name in str(caught.value)
