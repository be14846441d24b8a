"""The paper's five models, ready-made over the columns of a data frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.data import column_names, kind_of, read_columns, type_name
from ahofm_keras.errors import DataError
from ahofm_keras.model.additive import AdditiveModel
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
        **kwargs: of `AdditiveModel`, e.g. `family`.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"a": range(30), "b": range(30, 60), "y": [1, 2, 4] * 10})
        >>> gam(frame, "y").formula
        'y ~ s(a) + s(b)'
    """
    response = _response("gam", data, response)
    names = _features(data, response, columns)
    arguments = _arguments(df=df, k=k)
    kinds = {name: kind_of(values) for name, values in read_columns(data, names).items()}
    terms = [
        f"s({quote_column(name)}{arguments})" if kinds[name] == "number" else quote_column(name)
        for name in names
    ]
    return AdditiveModel(f"{quote_column(response)} ~ {' + '.join(terms)}", data, **kwargs)


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
    response = _response(term, data, response)
    names = [quote_column(name) for name in _features(data, response, columns)]
    formula = f"{quote_column(response)} ~ {term}({', '.join(names)}{_arguments(**options)})"
    return AdditiveModel(formula, data, **kwargs)


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
