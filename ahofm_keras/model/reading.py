"""Data as the user gives it -> raw columns, response and weights that fit a model, or an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.bases import locate_levels
from ahofm_keras.data import TEXT, kind_of, read_columns, read_labels, shuffled_split
from ahofm_keras.errors import DataError, warn
from ahofm_keras.families import Family
from ahofm_keras.solvers.job import Rows
from ahofm_keras.terms import Design, Term
from ahofm_keras.terms.features import LARGEST, check_finite
from ahofm_keras.transforms import Expression, evaluate_expression, learn_expression

Columns = dict[str, np.ndarray]


def read_inputs(design: Design, data: Any, extrapolation: str) -> Columns:
    """The model's raw columns, checked; warns of unseen levels and of values outside the range.

    Raises:
        DataError: a missing column, a wrong kind, missing values, an expression that is not finite,
            or values outside the range where the model's extrapolation is `"error"`.
    """
    columns = read_columns(data, design.columns, design.columns)
    _check_shapes(design, columns)
    _check_expressions(design, columns)
    _report_unseen_levels(design, columns)
    if extrapolation != "linear":
        _report_outside(design, columns, extrapolation)
    return columns


def _check_shapes(design: Design, columns: Columns) -> None:
    for name, shape in design.shapes.items():
        found = columns[name].shape[1:]
        if found != tuple(shape):
            raise DataError(
                f"The arrays of column `{name}` must have the shape {tuple(shape)}, as in training. "
                f"Received: {found}."
            )


def _check_expressions(design: Design, columns: Columns) -> None:
    expressions = [feature.expression for feature in design.features]
    for term in design.terms:
        expressions += [factor.expression for factor in term.raw_factors]
        expressions += [term.offset] if term.offset else []
    for expression in dict.fromkeys(expressions):
        if not expression.is_column and not expression.is_category:
            check_finite(expression, _evaluate(expression, columns), columns)


def _evaluate(expression: Expression, columns: Mapping[str, np.ndarray]) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(evaluate_expression(expression, columns))


def _report_unseen_levels(design: Design, columns: Columns) -> None:
    levels: dict[Expression, tuple[Any, ...]] = {}
    for feature in design.features:
        if feature.basis.levels:
            levels[feature.expression] = feature.basis.levels
    for term in design.terms:
        levels |= {f.expression: f.levels for f in term.raw_factors if f.levels}
    notes, found = [], set()
    for expression, known in levels.items():
        values = _evaluate(expression, columns)
        unseen = locate_levels(known, values) < 0
        if unseen.any():
            row = int(np.argmax(unseen))
            found.add(expression)
            notes.append(
                f"`{expression}` in {int(unseen.sum()):,} of {len(unseen):,} rows (first at row {row}: "
                f"{_plain(values[row])!r})"
            )
    if notes:
        curves = [term.label for term in design.terms if _is_curve_of(term, design, found)]
        more = ""
        if curves:
            listed = ", ".join(f"`{label}`" for label in curves[:3]) + (", ..." if curves[3:] else "")
            more = f" They have no curve of their own: {listed} are 0 there."
        warn(
            "Levels not seen in training count as the average of the training rows: "
            f"{'; '.join(notes)}.{more}"
        )


def _is_curve_of(term: Term, design: Design, categories: set[Expression]) -> bool:
    """Whether a term is a function of one level of some categories."""
    if term.multiplier is None:
        return False
    by = design.features[term.multiplier]
    return by.expression in categories and len(by.eigenvalues) == 1


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _report_outside(design: Design, columns: Columns, extrapolation: str) -> None:
    notes: dict[Expression, str] = {}
    for feature in design.features:
        for coordinate, (low, high) in zip(
            feature.expression.coordinates, feature.basis.ends, strict=False
        ):
            values = _evaluate(coordinate, columns)
            outside = int(np.sum((values < low) | (values > high)))
            if outside:
                notes[coordinate] = (
                    f"`{coordinate}` in {outside:,} of {len(values):,} rows ([{low:g}, {high:g}])"
                )
    listed = "; ".join([*notes.values(), *_arrays_outside(design, columns)])
    if not listed:
        return
    if extrapolation == "error":
        raise DataError(f"Values outside the training range: {listed}.")
    warn(f"Values outside the training range are clipped to it: {listed}.")


def _arrays_outside(design: Design, columns: Columns) -> list[str]:
    """Rows of arrays with points outside the training range, but for those of weight 0."""
    found = {}
    for sums in (term.weight_function for term in design.terms):
        outside = int(np.sum(sums.outside(columns))) if sums else 0
        if sums and outside:
            low, high = sums.basis.axis[0], sums.basis.axis[-1]
            rows = len(columns[sums.points])
            found[sums.points] = f"`{sums.points}` in {outside:,} of {rows:,} rows ([{low:g}, {high:g}])"
    return list(found.values())


def learn_response(data: Any, expression: Expression, family: Family) -> tuple[Expression, np.ndarray]:
    """The response's expression with what it learned, and its training values, checked."""
    if _has_labels(expression, family):
        y = read_response(data, expression, family)
        check_response_range(y, str(expression), family)
        return expression, y
    columns = read_response_columns(data, expression)
    learned = learn_expression(expression, columns)
    y = family.encode(_response_values(learned, columns), str(learned))
    check_response_range(y, str(expression), family)
    return learned, y


def check_response_range(y: np.ndarray, label: str, family: Family) -> None:
    """Raise a `DataError` where a response varies too little to learn from it."""
    if family.labelled:  # the classes were counted when they were learned
        return
    family.check_training(y, label)
    if np.ptp(y) < 1 / LARGEST:
        raise DataError(f"The response `{label}` varies by {np.ptp(y):g} only. Use another unit.")


def read_response(data: Any, expression: Expression, family: Family) -> np.ndarray:
    """The response of new data, checked."""
    return family.encode(response_values(data, expression, family), str(expression))


def response_values(data: Any, expression: Expression, family: Family) -> Any:
    """The response of new data as it stands there: numbers, or labels of families that have some."""
    if _has_labels(expression, family):
        return read_labels(data, next(iter(expression.columns())))
    return _response_values(expression, read_response_columns(data, expression))


def _has_labels(expression: Expression, family: Family) -> bool:
    return family.labelled and expression.is_column


def as_response(y: Any, expression: Expression, family: Family) -> np.ndarray:
    """A response given beside the data, already on its own scale, checked."""
    label = str(expression)
    if family.labelled:
        return family.encode(read_labels({label: y}, label), label)
    parts = _beside(y, expression)
    values = read_columns(parts, list(parts))
    for name, own in values.items():
        if kind_of(own) == TEXT:
            raise _text_response(name, own)
    columns = [own.astype(float) for own in values.values()]
    return family.encode(columns[0] if len(columns) == 1 else np.stack(columns, axis=-1), label)


def _beside(y: Any, expression: Expression) -> dict[str, Any]:
    """The columns of a response that is given beside the data, by name."""
    names = expression.labels
    if len(names) == 1:
        return {names[0]: np.asarray(y).reshape(-1)}
    if isinstance(y, pd.DataFrame) and set(y.columns) == set(names):
        y = y[names]
    values = np.asarray(y)
    if values.ndim != 2 or values.shape[1] != len(names):
        listed = ", ".join(f"`{name}`" for name in names)
        raise DataError(
            f"`y` must have {len(names)} columns, those of `{expression}`: {listed}. Received: an array "
            f"of the shape {values.shape}."
        )
    return dict(zip(names, values.T, strict=True))


def read_response_columns(data: Any, expression: Expression) -> Columns:
    """The raw columns that the response is computed from, as numbers."""
    columns = read_columns(data, expression.columns())
    for name, values in columns.items():
        if kind_of(values) == TEXT:
            raise _text_response(name, values)
    return {name: values.astype(float) for name, values in columns.items()}


def _text_response(name: str, values: np.ndarray) -> DataError:
    return DataError(
        f"The response `{name}` holds texts (first: {values[0]!r}). Recode it as numbers, two classes "
        'as 0 and 1; or take `family="categorical"`, of texts in an order `"ordinal"`, which have a '
        "probability of each text."
    )


def _response_values(expression: Expression, columns: Columns) -> np.ndarray:
    y = _evaluate(expression, columns)
    if y.ndim != 1 and expression.width == 1:
        raise DataError(f"The response `{expression}` has several columns.")
    check_finite(expression, y, columns)
    return y


def read_weight(data: Any, weight: Any, rows: int) -> np.ndarray | None:
    """Weights given as an array or as the name of a column: not negative, not all 0."""
    if weight is None:
        return None
    label = weight if isinstance(weight, str) else "sample_weight"
    source = data if isinstance(weight, str) else {label: np.asarray(weight).reshape(-1)}
    values = read_columns(source, [label], {label: "number"})[label]
    if len(values) != rows:
        raise DataError(f"`{label}` has {len(values)} values, the data {rows} rows.")
    if (values < 0).any() or not values.any():
        raise DataError(f"`{label}` must not be negative and not all 0.")
    return values


def split_off(rows: Rows, share: float, seed: int) -> tuple[Rows, Rows | None]:
    """Training and validation rows, shuffled; no validation rows where their number rounds to 0."""
    if not round(len(rows) * share):
        return rows, None
    if round(len(rows) * share) >= len(rows):
        raise DataError(f"`validation_split` of {share:g} leaves none of {len(rows)} rows to train on.")
    kept, held_out = shuffled_split(len(rows), share, seed)
    return rows.take(kept), rows.take(held_out)
