"""The paper's five models, and a neural additive model, ready-made over the columns of a data frame.

Each takes a keyword per further parameter of the family, by its name or one that other packages have
for it: `True` for the same model, a formula such as `"~ s(x1)"`, or a list of the columns that the same
model is to have. Parameters without one are constant. `df` is always the smoothing: the degrees of
freedom of a t distribution are `nu`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import pandas as pd

from ahofm_keras.data import column_names, kind_of, read_columns, type_name
from ahofm_keras.errors import DataError, did_you_mean
from ahofm_keras.families import Family, get_family
from ahofm_keras.model.additive import AdditiveModel
from ahofm_keras.model.arguments import MODEL_ARGUMENTS, check_units
from ahofm_keras.model.formulas import family_with
from ahofm_keras.transforms import quote_column


def gam(
    data: Any, response: str, columns: Sequence[str] | None = None, *, df: Any = None, k: Any = None,
    **kwargs: Any,
) -> AdditiveModel:  # fmt: skip
    """Generalized additive model: a smooth of every number, the levels of every category.

    Args:
        data: data frame or dict of columns.
        response: name of the response.
        columns: features, by default all other columns.
        df: degrees of freedom of every smooth.
        k: number of basis functions of every smooth.
        **kwargs: of `AdditiveModel`, e.g. `family`; or a further parameter of the family: `True` for the
            same model, a formula `"~ s(x)"`, or a list of features.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"a": range(30), "b": range(30, 60), "y": [1, 2, 4] * 10})
        >>> gam(frame, "y").formula
        'y ~ s(a) + s(b)'
        >>> gam(frame, "y", ["a"], family="gaussian_ls", scale=["b"]).formula
        {'loc': 'y ~ s(a)', 'scale': 'y ~ s(b)'}
    """
    arguments = _arguments(df=df, k=k)

    def right_side(names: list[str]) -> str:
        kinds = {name: kind_of(values) for name, values in read_columns(data, names).items()}
        terms = [
            f"s({quote_column(name)}{arguments})" if kinds[name] == "number" else quote_column(name)
            for name in names
        ]
        return " + ".join(terms)

    return _build("gam", data, response, columns, right_side, kwargs)


def nam(
    data: Any, response: str, columns: Sequence[str] | None = None, *,
    units: Sequence[int] = (32, 32), activation: str = "tanh", **kwargs: Any,
) -> AdditiveModel:  # fmt: skip
    """Neural additive model: a small network of every number, the levels of every category.

    Each network is a term `deep(x, net="x")`, whose curve `effects` and `plot` show. Smooths of
    `gam` do the same with intervals and without tuning; networks follow jumps and kinks more easily.

    Args:
        data: data frame or dict of columns.
        response: name of the response.
        columns: features, by default all other columns.
        units: of the hidden layers of every network.
        activation: of these, by its Keras name.
        **kwargs: of `AdditiveModel`, e.g. `family`; or a further parameter of the family: `True` for the
            same model, a formula `"~ s(x)"`, or a list of features.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"a": range(30), "g": ["u", "v"] * 15, "y": [1, 2, 4] * 10})
        >>> nam(frame, "y").formula
        'y ~ deep(a, net="a") + g'
    """
    check_units(units, activation)
    if "nets" in kwargs:
        raise DataError("`nam()` makes its networks itself: leave `nets` out, or write a formula.")
    nets: dict[str, Any] = {}

    def right_side(names: list[str]) -> str:
        kinds = {name: kind_of(values) for name, values in read_columns(data, names).items()}
        terms = []
        for name in names:
            column = quote_column(name)
            if kinds[name] != "number":
                terms.append(column)
                continue
            nets.setdefault(name, _small_network(units, activation, kwargs.get("seed", 0) + len(nets)))
            terms.append(f"deep({column}, net={json.dumps(name, ensure_ascii=False)})")
        return " + ".join(terms)

    kwargs["nets"] = nets
    return _build("nam", data, response, columns, right_side, kwargs)


def _small_network(units: Sequence[int], activation: str, seed: int) -> keras.Model:
    """Dense layers from one number to one number."""
    layers: list[Any] = [keras.Input((1,))]
    for place, size in enumerate(units):
        start = keras.initializers.GlorotUniform(seed=100 * seed + place)
        layers.append(keras.layers.Dense(int(size), activation, kernel_initializer=start))
    start = keras.initializers.GlorotUniform(seed=100 * seed + len(units))
    return keras.Sequential([*layers, keras.layers.Dense(1, kernel_initializer=start)])


def fm(
    data: Any, response: str, columns: Sequence[str] | None = None, *, F: Any = None, **kwargs: Any
) -> AdditiveModel:
    """Factorization machine: linear effects and all products of pairs, of rank F."""
    return _machine("fm", data, response, columns, {"F": F}, kwargs)


def hofm(
    data: Any, response: str, columns: Sequence[str] | None = None, *, D: int = 3, F: Any = None,
    **kwargs: Any,
) -> AdditiveModel:  # fmt: skip
    """Higher-order factorization machine: linear effects and all products up to order D."""
    return _machine("hofm", data, response, columns, {"D": D, "F": F}, kwargs)


def afm(
    data: Any, response: str, columns: Sequence[str] | None = None, *, F: Any = None, df: Any = None,
    k: Any = None, **kwargs: Any,
) -> AdditiveModel:  # fmt: skip
    """Additive factorization machine: smooths and all smooth interactions of pairs."""
    return _machine("afm", data, response, columns, {"F": F, "df": df, "k": k}, kwargs)


def ahofm(
    data: Any, response: str, columns: Sequence[str] | None = None, *, D: int = 3, F: Any = None,
    df: Any = None, k: Any = None, **kwargs: Any,
) -> AdditiveModel:  # fmt: skip
    """Additive higher-order factorization machine: smooths and all interactions up to order D."""
    options = {"D": D, "F": F, "df": df, "k": k}
    return _machine("ahofm", data, response, columns, options, kwargs)


def _machine(
    term: str,
    data: Any,
    response: str,
    columns: Sequence[str] | None,
    options: dict[str, Any],
    kwargs: dict[str, Any],
) -> AdditiveModel:
    def right_side(names: list[str]) -> str:
        return f"{term}({', '.join(map(quote_column, names))}{_arguments(**options)})"

    return _build(term, data, response, columns, right_side, kwargs)


def _build(
    function: str,
    data: Any,
    response: Any,
    columns: Sequence[str] | None,
    right_side: Callable[[list[str]], str],
    kwargs: dict[str, Any],
) -> AdditiveModel:
    """The model of a formula that is written here, and of those of further parameters.

    Args:
        function: its name.
        data: data frame or dict of columns.
        response: name of the response.
        columns: features, by default all other columns.
        right_side: the formula over some features.
        kwargs: of `AdditiveModel`, and formulas by parameter.
    """
    response = _response(function, data, response)
    text = f"{quote_column(response)} ~ {right_side(_features(data, response, columns))}"
    asked = {name: kwargs.pop(name) for name in list(kwargs) if name not in MODEL_ARGUMENTS}
    if not asked:
        return AdditiveModel(text, data, **kwargs)
    family = family_with(get_family(kwargs.get("family", "gaussian")), asked)
    first, *others = family.parameters
    formulas = {first: text}
    for name, wanted in asked.items():
        own = family.own_parameter(name)
        if own not in others:
            raise _not_further(function, name, own, family)
        if own in formulas:
            raise DataError(f"The parameter `{own}` was given twice, once as `{name}`.")
        if wanted is True or isinstance(wanted, list | tuple):
            features = _features(data, response, columns if wanted is True else wanted)
            formulas[own] = f"~ {right_side(features)}"
        elif isinstance(wanted, str) and wanted.lstrip().startswith("~"):
            formulas[own] = wanted
        elif wanted is not None and wanted is not False:
            raise DataError(
                f'`{name}` must be True (the same model), a formula such as "~ s(x1)" or a list of '
                f"columns. Received: {wanted!r}."
            )
    return AdditiveModel(formulas, data, **kwargs)


def _not_further(function: str, name: str, own: str | None, family: Family) -> DataError:
    """The error for a keyword that is no further parameter of the family."""
    first, *others = family.parameters
    if own == first:
        return DataError(
            f"`{name}` is what `{function}()` models itself, with the features that `columns` names."
        )
    hint = did_you_mean(name, [*others, *family.aliases, *MODEL_ARGUMENTS, "columns"])
    listed = ", ".join(f"`{other}`" for other in others) or "none"
    return DataError(
        f"`{function}()` has no argument `{name}`.{hint} Further parameters of the {family.name} "
        f"family: {listed}."
    )


def _features(data: Any, response: str, columns: Sequence[str] | None) -> list[str]:
    known = column_names(data)
    if columns is None:
        names = [name for name in known if name != response]
        if not names:
            raise DataError(f"The data has no column besides the response `{response}`.")
        return names
    if isinstance(columns, str) or not len(columns):
        raise DataError(f"`columns` must be a list of column names. Received: {columns!r}.")
    names = [str(name) for name in columns]
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise DataError(f"`{twice[0]}` stands twice in `columns`.")
    return names


def _response(function: str, data: Any, response: Any) -> str:
    """The response's name as text; names that are numbers are allowed."""
    known = column_names(data) if isinstance(data, pd.DataFrame | Mapping) else []
    if any(isinstance(given, str) and "~" in given and given not in known for given in (data, response)):
        raise DataError(
            f'`{function}()` writes the formula itself: `ak.{function}(data, "y")`. With a formula of '
            "your own it is `ak.AdditiveModel(formula, data)`."
        )
    if response is None:
        raise DataError("`response` must be the name of a column. Received: None.")
    if np.ndim(response):
        raise DataError(
            f"`response` must be the name of a column. Received: {type_name(response)}. Where the "
            f'response is no column yet: `ak.{function}(X.assign(y=y), "y")`.'
        )
    read_columns(data, [str(response)])
    return str(response)


def _arguments(**options: Any) -> str:
    given = {name: value for name, value in options.items() if value is not None}
    return "".join(f", {name}={_literal(value)}" for name, value in given.items())


def _literal(value: Any) -> str:
    """A value as a formula writes it; NumPy's numbers would write their type beside them."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_literal(v)}" for key, v in value.items()) + "}"
    if isinstance(value, tuple | list):
        return "(" + "".join(f"{_literal(item)}, " for item in value) + ")"
    return repr(value.item() if isinstance(value, np.generic) else value)
