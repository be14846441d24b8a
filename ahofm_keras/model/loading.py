"""`load_model`: a `.keras` file -> the model that was saved, or what is wrong with the file."""

from __future__ import annotations

import json
import os
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import keras
import numpy as np

from ahofm_keras.errors import AhofmError, DataError
from ahofm_keras.model.additive import AdditiveModel
from ahofm_keras.model.files import brief, damaged

_CONFIG = "config.json"
_ELSE = "`keras.models.load_model` reads other models."


def load_model(filepath: str | os.PathLike[str]) -> AdditiveModel:
    """The model of a file that `AdditiveModel.save` has written.

    `keras.models.load_model` loads it too; this looks at the file first and says what is wrong with it.

    Args:
        filepath: of a `.keras` file.

    Raises:
        DataError: no such file; one that is cut off, was edited, or is of another kind.

    Example:
        >>> import tempfile
        >>> import pandas as pd
        >>> data = pd.DataFrame({"x": range(30), "y": [1, 2, 4] * 10})
        >>> path = Path(tempfile.mkdtemp()) / "model.keras"
        >>> AdditiveModel("y ~ s(x)", data).save(path)
        >>> load_model(path)
        <AdditiveModel gaussian(identity): y ~ s(x)>
    """
    path = Path(filepath)
    _check_place(path)
    _check_class(path, _read_config(path))
    try:
        with warnings.catch_warnings():
            # Before an error about weights that do not fit; the error is enough.
            warnings.filterwarnings("ignore", "Skipping nested container", UserWarning)
            model = keras.models.load_model(path)
    except AhofmError as error:
        raise type(error)(f"{_shown(path)}: {error}") from error
    except Exception as error:  # whatever Keras, HDF5 and zip say of weights that do not fit
        message = damaged(f"its weights do not fit its config ({brief(error)})")
        raise DataError(f"{_shown(path)}: {message}") from error
    for weight in model.weights:
        if np.isnan(np.asarray(weight)).any():
            raise DataError(f"{_shown(path)}: {damaged(f'the weights `{weight.path}` hold NaN')}")
    return model


def _shown(path: Path) -> str:
    return repr(str(path))


def _check_place(path: Path) -> None:
    if path.is_dir():
        served = (path / "saved_model.pb").exists()
        kind = "an exported model: `tf.saved_model.load` reads it" if served else "a folder, not a file"
        raise DataError(f"{_shown(path)} is {kind}.")
    if not path.exists():
        raise DataError(f"There is no file {_shown(path)}.")
    if path.name.endswith((".h5", ".hdf5")):
        raise DataError(
            f"{_shown(path)} holds weights alone: make the model anew, then `model.load_weights(path)`; "
            "`model.save` writes a `.keras` file with everything."
        )
    if path.suffix != ".keras":
        raise DataError(f"A model is saved as a `.keras` file. Received: {_shown(path)}.")


def _read_config(path: Path) -> Any:
    """The config of a whole archive."""
    if not path.stat().st_size:
        raise DataError(f"The file {_shown(path)} is empty.")
    if not zipfile.is_zipfile(path):
        raise DataError(
            f"The file {_shown(path)} is no `.keras` file, or only a part of one: it was not copied or "
            "written to its end."
        )
    try:
        with zipfile.ZipFile(path) as archive:
            broken = archive.testzip()
            if broken is not None:
                raise DataError(f"The file {_shown(path)} is damaged: `{broken}` in it cannot be read.")
            if _CONFIG not in archive.namelist():
                raise DataError(f"The file {_shown(path)} holds no model: it has no `{_CONFIG}`.")
            return json.loads(archive.read(_CONFIG))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DataError(f"The file {_shown(path)} is damaged: {error}.") from error
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"The file {_shown(path)} is damaged: its `{_CONFIG}` is no JSON.") from error


def _check_class(path: Path, config: Any) -> None:
    name = config.get("class_name") if isinstance(config, dict) else None
    if name != AdditiveModel.__name__:
        kind = f"a Keras model `{name}`" if name else "no model"
        raise DataError(f"The file {_shown(path)} holds {kind}, no `AdditiveModel`. {_ELSE}")
