"""Labels of classes: in their own type, in order, and as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.errors import DataError, did_you_mean

Label = str | int | float | bool

# More distinct values than this are no classes, of numbers that are not whole fewer.
_MOST = 100
_MOST_FRACTIONS = 20
# How many labels an error lists.
_LISTED = 8


def plain(value: Any) -> Label:
    """A label as Python has it, which JSON keeps."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    own = value.item() if isinstance(value, np.generic) else value
    return own if isinstance(own, str | int | float) else float(own)


def listed(labels: Sequence[Label]) -> str:
    """Labels in a sentence; of many the first."""
    shown = ", ".join(repr(own) for own in labels[:_LISTED])
    return f"{shown}, ... ({len(labels):,} in all)" if len(labels) > _LISTED else shown


def check_labels(labels: Any) -> tuple[Label, ...]:
    """Classes as a user gives them, in order.

    Raises:
        DataError: fewer than two, one twice, something that is no label.
    """
    if isinstance(labels, str) or not hasattr(labels, "__iter__"):
        raise DataError(
            "`classes` must be a list of labels in their order, e.g. ['low', 'high']. Received: "
            f"{labels!r}."
        )
    given = [own.item() if isinstance(own, np.generic) else own for own in labels]
    odd = [own for own in given if not isinstance(own, str | int | float) or own != own]
    if odd:
        raise DataError(f"`classes` must be texts, numbers or booleans. Received: {odd[0]!r}.")
    if len({isinstance(own, str) for own in given}) > 1:
        raise DataError(f"`classes` must be all texts, or all numbers. Received: {listed(given)}.")
    twice = [own for place, own in enumerate(given) if own in given[:place]]
    if twice:
        raise DataError(f"{twice[0]!r} stands twice in `classes`.")
    if len(given) < 2:
        raise DataError(f"`classes` must be at least two. Received: {given!r}.")
    return tuple(given)


def find_labels(values: Any, label: str, *, by_value: bool) -> tuple[Label, ...]:
    """The classes that occur: of a pandas Categorical in the order of its categories, others sorted.

    Args:
        values: series or array without missing values.
        label: the formula's response.
        by_value: whether numbers are sorted even where an unordered Categorical has another order.

    Raises:
        DataError: one class only, or so many that these are no classes.
    """
    values = pd.Series(values)
    if isinstance(values.dtype, pd.CategoricalDtype):
        occurring = values.cat.remove_unused_categories().cat.categories
        found = [plain(own) for own in occurring]
        texts = {isinstance(own, str) for own in found}
        if len(texts) > 1:
            raise DataError(
                f"The categories of the response `{label}` are texts and numbers: {listed(found)}. Make "
                "them all texts, or all numbers."
            )
        if by_value and not values.cat.ordered and texts == {False}:
            found = sorted(found)
    else:
        found = sorted({plain(own) for own in pd.unique(values)})  # type: ignore[type-var]
    _check_number(found, label, len(values))
    return tuple(found)


def _check_number(found: Sequence[Label], label: str, rows: int) -> None:
    if len(found) == 1:
        raise DataError(
            f"The response `{label}` has one class only, {found[0]!r}, in all {rows:,} rows: nothing to "
            "learn."
        )
    numbers = not isinstance(found[0], str)
    whole = not numbers or all(float(own).is_integer() for own in found)
    if len(found) <= (_MOST if whole else _MOST_FRACTIONS):
        return
    advice = (
        'Numbers of this kind are hardly classes: take a family of numbers, such as "gaussian", or cut '
        "them into classes with `pandas.cut`"
        if numbers
        else "Texts of this kind are hardly classes: join rare ones"
    )
    raise DataError(
        f"The response `{label}` has {len(found):,} distinct values in {rows:,} rows. {advice}; if all "
        "are classes, say so with `classes=` of the family."
    )


def has_order(values: Any) -> bool:
    """Whether labels have an order of their own: numbers, booleans, an ordered Categorical."""
    values = pd.Series(values)
    if isinstance(values.dtype, pd.CategoricalDtype):
        return bool(values.cat.ordered) or not any(isinstance(c, str) for c in values.cat.categories)
    return not isinstance(plain(values.iloc[0]), str)


def encode_labels(values: Any, classes: Sequence[Label], label: str) -> np.ndarray:
    """The place of each label among the classes `(n,)`.

    Raises:
        DataError: naming and counting labels that are none of the classes.
    """
    codes, distinct = pd.factorize(pd.Series(values))
    place = {own: number for number, own in enumerate(classes)}
    known = [plain(own) for own in distinct]
    found = np.array([place.get(own, -1) for own in known], float)[codes]
    new = found < 0
    if new.any():
        counts = np.bincount(codes, minlength=len(known))
        told = [
            f"{own!r} ({counts[number]:,}, first at row {int(np.argmax(codes == number))})"
            for number, own in enumerate(known)
            if own not in place
        ]
        more = f" and {len(told) - 5:,} others" if len(told) > 5 else ""
        first = next(own for own in known if own not in place)
        hint = did_you_mean(str(first), [str(own) for own in classes])
        raise DataError(
            f"The response `{label}` has {int(new.sum()):,} of {len(found):,} values that are none of "
            f"the classes: {', '.join(told[:5])}{more}.{hint} Classes: {listed(list(classes))}."
        )
    return found


def decode_labels(codes: np.ndarray, classes: Sequence[Label]) -> np.ndarray:
    """The labels at some places, in their own type."""
    texts = any(isinstance(own, str) for own in classes)
    return np.array(classes, dtype=object if texts else None)[np.asarray(codes, int)]
