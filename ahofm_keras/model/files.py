"""Checks of what is saved, exported and loaded, before a file is touched."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ahofm_keras.errors import DataError
from ahofm_keras.model.arguments import check_unknown

FORMAT_VERSION = 3


def check_save(filepath: Any, overwrite: bool) -> None:
    """A `.keras` file that may be written."""
    if not str(filepath).endswith(".keras") or os.path.basename(filepath) == ".keras":
        raise DataError(f"A model is saved as a `.keras` file. Received: {str(filepath)!r}.")
    if not overwrite and os.path.exists(filepath):
        raise DataError(f"{str(filepath)!r} exists already and overwrite=False.")


def check_export(arguments: Mapping[str, Any]) -> None:
    """The one format that there is, and no argument that nobody reads."""
    if arguments.get("format", "tf_saved_model") != "tf_saved_model":
        raise DataError(f"Only the format 'tf_saved_model' is exported. Received: {arguments}.")
    check_unknown(arguments, ("format", "verbose"), "export()")


def check_format(version: int | None) -> None:
    """A format that this version of the package reads."""
    if version is None or version > FORMAT_VERSION:
        raise DataError(
            f"The model was saved in format {version}; this version of ahofm_keras reads up to "
            f"{FORMAT_VERSION}. Update ahofm_keras."
        )
