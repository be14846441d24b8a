"""Checks of what is saved, exported and loaded, before a file is touched."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import isfinite, isnan
from typing import Any

import numpy as np

from ahofm_keras.errors import AhofmError, DataError
from ahofm_keras.model.arguments import check_unknown

FORMAT_VERSION = 7
_LINE = 150
_FACTS = ("formula", "response", "design", "shift", "scale", "starts")


def state_of(model: Any, fit: Any) -> dict[str, Any]:
    """What a model has learned, as JSON.

    Args:
        model: an `AdditiveModel`.
        fit: its last fit, as JSON.
    """
    known = model.scale > 0
    units = {name: (float(own.shift), float(own.scale)) for name, own in model.predictors.items()}
    return {
        "formula": model.formula,
        "response": model.response.to_json(),
        # Keras writes tuples in a form of its own; as JSON there are only lists.
        "design": json.loads(json.dumps(model.design.to_json())),
        "shift": model.shift if known else None,
        "scale": model.scale if known else None,
        **({"units": units if known else None} if len(units) > 1 else {}),
        "starts": model.room,
        "fit": fit,
    }


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


def _check_config(config: Mapping[str, Any]) -> None:
    """A config of `get_config`, in a format that is known, with numbers that a model can have.

    Raises:
        DataError: saying what is wrong with it.
    """
    _check_format(config.get("format_version"))
    state = config.get("state")
    if not isinstance(state, Mapping):
        raise damaged("it has no `state`")
    missing = [fact for fact in _FACTS if fact not in state]
    if missing:
        raise damaged(f"its state has no `{missing[0]}`")
    for fact in ("shift", "scale"):
        value = state[fact]
        if value is None and state["shift"] is state["scale"]:
            continue  # no response was seen yet
        if not isinstance(value, int | float) or not isfinite(value) or (fact == "scale" and value <= 0):
            raise damaged(f"its `{fact}` is {value!r}")
    place = _place_of_nan(state["design"], "design")
    if place:
        raise damaged(f"`{place}` is not a number")


def _check_format(version: Any) -> None:
    if not isinstance(version, int):
        raise damaged(f"its format is {version!r}")
    if version < FORMAT_VERSION:
        raise DataError(
            f"The model was saved in format {version}, before the first release; this version of "
            f"ahofm_keras reads format {FORMAT_VERSION}. Fit the model again and save it."
        )
    if version > FORMAT_VERSION:
        raise DataError(
            f"The model was saved in format {version}; this version of ahofm_keras reads up to "
            f"{FORMAT_VERSION}. Update ahofm_keras."
        )


def _place_of_nan(value: Any, place: str) -> str:
    """Where a missing number stands among nested lists and dicts; empty where none does."""
    if isinstance(value, Mapping | list):
        inner = value.items() if isinstance(value, Mapping) else enumerate(value)
        return next(filter(None, (_place_of_nan(v, f"{place}[{key!r}]") for key, v in inner)), "")
    return place if isinstance(value, float) and isnan(value) else ""


def damaged(what: str) -> DataError:
    """The error for a saved model that nobody can have saved so."""
    return DataError(f"The saved model is damaged or was edited: {what}. Save it anew.")


@contextmanager
def reading_config(config: Mapping[str, Any]) -> Iterator[None]:
    """Check a config; errors inside that are not ours come from one that does not fit together."""
    _check_config(config)
    try:
        with np.errstate(all="ignore"):  # the error says it
            yield
    except AhofmError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise damaged(f"its config does not fit together ({brief(error)})") from error


def brief(error: BaseException) -> str:
    """An error of others in one line."""
    said = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {said[:_LINE]}{'...' if said[_LINE:] else ''}"


@contextmanager
def loading_weights(model: Any, filepath: Any) -> Iterator[None]:
    """Load weights into a model; where they do not fit it stays as it was, and the error says why."""
    before = model.get_weights()
    try:
        with warnings.catch_warnings():
            # Keras, of where else it looks for weights that do not fit; the error is enough.
            warnings.filterwarnings("ignore", "Skipping nested container", UserWarning)
            yield
    except BaseException as error:
        model.set_weights(before)
        misfit = isinstance(error, ValueError) and re.search("shape|not be loaded", str(error))
        if not misfit:
            raise
        raise DataError(
            f"The weights in {str(filepath)!r} have other shapes than those of this model. Make "
            "the model with the formula, the data and the `starts` of the one that they come from; a "
            "file of `model.save` needs none of them."
        ) from error
