"""Checks of plain arguments, so that a wrong one is named before it reaches Keras."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import keras
import numpy as np
import pandas as pd

from ahofm_keras.bases import EXTRAPOLATIONS
from ahofm_keras.data import type_name
from ahofm_keras.errors import DataError, did_you_mean
from ahofm_keras.families import Family, get_family
from ahofm_keras.penalties import DF_KINDS

# Those of `AdditiveModel` beside formula and data.
_OF_KERAS = ("trainable", "dtype")
MODEL_ARGUMENTS = (
    "family", "df_kind", "extrapolation", "seed", "starts", "neighbours", "nets", "name", *_OF_KERAS,
)  # fmt: skip


def check_order(formula: Any, data: Any, family: Any) -> None:
    """The formula first, then the data with the response among its columns.

    Raises:
        DataError: with the call that was meant, where rows stand in the place of the formula (as in
            `fit(X, y)` of other libraries), or a response in that of the family.
    """
    by_parameter = isinstance(formula, Mapping) and all(isinstance(t, str) for t in formula.values())
    if isinstance(formula, str) or by_parameter:
        if hasattr(family, "shape"):
            raise DataError(
                "The response is a column of the data, which the formula names: `AdditiveModel(formula, "
                f"X.assign(y=y))`. Received: {type_name(family)} in the place of `family`."
            )
        return
    tabular = hasattr(formula, "columns") and not callable(formula.columns)
    if formula is None or not (isinstance(formula, Iterable) or tabular):
        return
    swapped = isinstance(data, str)
    example = f"AdditiveModel({data!r}, data)" if swapped else 'AdditiveModel("y ~ ahofm(.)", data)'
    beside = not swapped and data is not None and not isinstance(data, Mapping | pd.DataFrame)
    known = ", where `data = X.assign(y=y)`." if beside else "."
    raise DataError(
        f"The formula comes first, then the data with the response among its columns: `{example}`{known}"
        f" Received: {type_name(formula)} in the place of the formula."
    )


def check_construction(
    formula: Any,
    data: Any,
    family: Any,
    df_kind: Any,
    extrapolation: Any,
    seed: Any,
    neighbours: Any,
    others: Mapping[str, Any],
) -> None:
    """The arguments of `AdditiveModel`, where they are described; others are those of a Keras layer."""
    check_order(formula, data, family)
    get_family(family)
    check_choice("df_kind", df_kind, DF_KINDS)
    check_choice("extrapolation", extrapolation, EXTRAPOLATIONS)
    check_given(0, seed=seed)
    if neighbours is not None and not isinstance(neighbours, Mapping):
        raise DataError(
            "`neighbours` must be a dict from the name of a column to the neighbours of its regions. "
            f"Received: {type_name(neighbours)}."
        )
    known = ("formula", "data", *MODEL_ARGUMENTS)
    unknown = {key: value for key, value in others.items() if key not in _OF_KERAS}
    check_unknown(unknown, [name for name in known if name not in _OF_KERAS], "AdditiveModel()")


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """One of some texts."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise DataError(f"`{name}` must be one of {listed}. Received: {value!r}.")


def check_units(units: Any, activation: Any) -> None:
    """Sizes of the hidden layers of a network, and what stands between them."""
    sizes = list(units) if isinstance(units, Sequence) and not isinstance(units, str) else []
    if not sizes or not all(isinstance(own, Integral) and int(own) > 0 for own in sizes):
        raise DataError(f"`units` must be sizes of hidden layers, e.g. (32, 32). Received: {units!r}.")
    try:
        keras.activations.get(activation)
    except ValueError:
        raise DataError(
            f'`activation` must be one of Keras, e.g. "relu". Received: {activation!r}.'
        ) from None


def check_whole(least: int, **arguments: Any) -> None:
    """Whole numbers of at least `least`, or None."""
    check_given(least, **{name: value for name, value in arguments.items() if value is not None})


def check_given(least: int, **arguments: Any) -> None:
    """Whole numbers of at least `least`."""
    for name, value in arguments.items():
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not (whole and value >= least):
            raise DataError(f"`{name}` must be a whole number of at least {least}. Received: {value!r}.")


def check_verbose(verbose: Any) -> None:
    """As Keras has it."""
    if not isinstance(verbose, str | int) or verbose not in ("auto", 0, 1, 2):
        raise DataError(f"`verbose` must be 'auto', 0, 1 or 2. Received: {verbose!r}.")


def check_share(name: str, value: Any) -> None:
    """A number in [0, 1), or None."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if value is not None and not (number and 0 <= value < 1):
        raise DataError(f"`{name}` must lie in [0, 1). Received: {value!r}.")


def check_level(name: str, value: Any) -> None:
    """The level of intervals or bands: a number between 0 and 1."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not (number and 0 < value < 1):
        raise DataError(f"`{name}` must lie between 0 and 1, e.g. 0.95. Received: {value!r}.")


def check_callbacks(callbacks: Any) -> list[keras.callbacks.Callback]:
    """A list of Keras callbacks."""
    if callbacks is None:
        return []
    wrong = None
    if not isinstance(callbacks, list | tuple):
        wrong = callbacks
    else:
        others = [c for c in callbacks if not isinstance(c, keras.callbacks.Callback)]
        wrong = others[0] if others else None
    if wrong is not None:
        raise DataError(
            f"`callbacks` must be a list of Keras callbacks (objects, not classes). Received: {wrong!r}."
        )
    return list(callbacks)


def check_class_weight(class_weight: Any, family: Family, sample_weight: Any) -> None:
    """A dict from the labels 0 and 1 to weights, of a bernoulli response, without other weights."""
    if class_weight is None:
        return
    if not family.binary:
        raise DataError(f"`class_weight` needs the bernoulli family; this model is {family.name}.")
    if sample_weight is not None:
        raise DataError("`class_weight` and `sample_weight` cannot be given together.")
    right = isinstance(class_weight, Mapping) and set(class_weight) == {0, 1}
    if not right or any(not isinstance(w, int | float) or w < 0 for w in class_weight.values()):
        raise DataError(
            "`class_weight` must go from the labels 0 and 1 to weights that are not negative, e.g. "
            f"{{0: 1.0, 1: 5.0}}. Received: {class_weight!r}."
        )


def check_unknown(arguments: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    """No argument that nobody reads."""
    for name in set(arguments) - set(known):
        raise DataError(f"Unknown argument `{name}` of `{where}`.{did_you_mean(name, known)}")
