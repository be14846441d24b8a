"""Places that a model is saved or exported to: nothing of the user is overwritten."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest

import ahofm_keras as ak
from tests.model.careless import DATA


def test_save_makes_folders(models: SimpleNamespace, tmp_path: Path) -> None:
    models.labels.save(tmp_path / "new" / "folder" / "model.keras")
    loaded = keras.models.load_model(tmp_path / "new" / "folder" / "model.keras")
    np.testing.assert_array_equal(loaded.predict(DATA), models.labels.predict(DATA))


def test_save_does_not_overwrite_where_told(models: SimpleNamespace, tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    path.write_text("precious")
    with pytest.raises(ak.DataError, match=r"exists already and overwrite=False\.$"):
        models.labels.save(path, overwrite=False)
    assert path.read_text() == "precious"


def test_save_leaves_a_folder_of_the_user_alone(models: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "model.keras").mkdir()
    (tmp_path / "model.keras" / "thesis.txt").write_text("years of work")
    with pytest.raises(ak.DataError, match=r"model\.keras"):
        models.labels.save(tmp_path / "model.keras")
    assert (tmp_path / "model.keras" / "thesis.txt").read_text() == "years of work"


def test_export_leaves_a_folder_of_the_user_alone(models: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "thesis.txt").write_text("years of work")
    with pytest.raises(ak.DataError, match="project"):
        models.labels.export(tmp_path / "project")
    assert (tmp_path / "project" / "thesis.txt").read_text() == "years of work"


def test_export_leaves_a_file_of_the_user_alone(models: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(ak.DataError, match="file"):
        models.labels.export(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_export_to_the_current_folder(
    models: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ak.DataError):
        models.labels.export(".")


@pytest.mark.parametrize("method", ["save", "export"])
def test_place_that_cannot_be_written(method: str, models: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises((ak.DataError, OSError), match="file"):
        getattr(models.labels, method)(tmp_path / "file" / "model.keras")
