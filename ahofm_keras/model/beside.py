"""What is given beside the data, response and weights: in the order of its rows, and said once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.data import column_names
from ahofm_keras.errors import DataError, NotFittedError, warn
from ahofm_keras.families import Family
from ahofm_keras.model.reading import as_response, read_response
from ahofm_keras.transforms import Expression, is_learned


def response_of(
    data: Any, y: Any, expression: Expression, family: Family, *, tell: bool = True
) -> np.ndarray:
    """The response of each row, checked: given beside the data, else its column.

    Args:
        data: data frame or dict of columns.
        y: response beside the data, on the scale of `expression`, or None.
        expression: the formula's response.
        family: of the response.
        tell: whether to warn of what was put in order, or stands there twice.
    """
    if y is None:
        if not is_learned(expression):
            raise NotFittedError(
                f"The model has not seen its response `{expression}` yet: call `fit` first."
            )
        return read_response(data, expression, family)
    if isinstance(y, str):
        raise DataError(
            f"`y` takes the values of the response, not a name. Received: {y!r}. Leave it out to use "
            f"`{expression}` of the data, which the formula names."
        )
    response = as_response(in_row_order(data, y, "y", tell=tell), expression, family)
    if tell:
        _warn_of_two_responses(data, response, expression, family)
    return response


def in_row_order(data: Any, values: Any, name: str, *, tell: bool = True) -> Any:
    """Values beside a data frame, in the order of its rows where both have the same labels.

    An index that only counts rows from 0 says nothing of them, unless it holds the other's labels.

    Args:
        data: data frame or dict of columns.
        values: given beside it; a pandas object has labels.
        name: of the argument.
        tell: whether to warn.
    """
    if not isinstance(data, pd.DataFrame) or not isinstance(values, pd.Series | pd.DataFrame):
        return values
    rows, own = data.index, values.index
    if own.equals(rows) or len(own) != len(rows):
        return values
    if rows.is_unique and own.is_unique and own.isin(rows).all():
        if tell:
            warn(
                f"`{name}` has the labels of the data in another order, and is put in the order of the "
                f"data's rows. Pass `{name}.to_numpy()` to take it as it stands."
            )
        return values.reindex(rows)
    if tell and not _counts_rows(rows) and not _counts_rows(own):
        warn(
            f"`{name}` has other labels than the data (first: {own[0]!r} and {rows[0]!r}) and is taken "
            f"row by row. Pass `{name}.to_numpy()` if that is meant."
        )
    return values


def _counts_rows(index: pd.Index) -> bool:
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1


def _warn_of_two_responses(
    data: Any, response: np.ndarray, expression: Expression, family: Family
) -> None:
    """The data has the formula's response too, and it is another one."""
    names = list(expression.columns())
    if not set(names) <= set(column_names(data)):
        return
    try:
        other = read_response(data, expression, family)
    except DataError:  # nobody asked for that column
        other = np.full(response.shape, np.nan)
    differs = other != response if len(other) == len(response) else np.zeros((len(response), 1))
    count = int(np.sum(np.any(differs.reshape(len(response), -1), axis=1)))
    if not count:
        return
    scale = "" if expression.is_column else f", which is taken to be on the scale of `{expression}`"
    listed = ", ".join(f"`{name}`" for name in names)
    warn(
        f"`y` is used as the response{scale}; {listed} of the data says another one in {count:,} of "
        f"{len(response):,} rows. Leave `y` out to use the data's own."
    )
