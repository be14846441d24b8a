"""Formula + training data -> all that a model needs to be built, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.data import TEXT, column_names, kind_of, read_columns, read_levels
from ahofm_keras.errors import DataError, warn
from ahofm_keras.families import Family
from ahofm_keras.formula import Formula, parse_formula
from ahofm_keras.model.reading import learn_response
from ahofm_keras.terms import OffsetTerm, fit_terms
from ahofm_keras.transforms import quote_column

# A column of texts of which this share are numbers was meant to be one of numbers.
_MOSTLY = 0.8


def learn_state(
    formula: str, data: Any, family: Family, df_kind: str, extrapolation: str
) -> dict[str, Any]:
    """Everything that the training data teaches.

    Args:
        formula: text.
        data: data frame or dict of columns.
        family: of the response.
        df_kind: definition of degrees of freedom.
        extrapolation: outside the training range.

    Returns:
        A dict with the `formula` with `.` written out, the `response` expression, the `design`, and
        `shift` and `scale`, between which and the response's own units the predictor translates.
    """
    if data is None:
        raise DataError("`AdditiveModel` needs data to learn its bases from: pass `data=`.")
    parsed = parse_formula(formula, column_names(data))
    columns = read_columns(data, parsed.columns())
    kinds = {name: kind_of(values) for name, values in columns.items()}
    response, y = learn_response(data, parsed.response, family)
    rows = len(next(iter(columns.values())))
    if len(y) != rows:
        raise DataError(f"The response has {len(y)} values, the data {rows} rows.")
    if family.name == "gaussian" and set(np.unique(y)) == {0.0, 1.0}:
        warn(f'The response `{response}` is 0 or 1: `family="bernoulli"` models its probability.')
    levels = read_levels(data, columns)
    _warn_of_numbers_as_texts(parsed, {name: columns[name] for name in columns if name not in levels})
    design = fit_terms(
        parsed, columns, kinds, levels=levels, df_kind=df_kind, extrapolation=extrapolation
    )
    offset = sum((term.evaluate(columns) for term in design.of_kind(OffsetTerm)), start=0.0)
    state = {
        "formula": parsed.text,
        "response": response.to_json(),
        "design": design.to_json(),
        "shift": family.start(y, offset) if parsed.intercept else 0.0,
        "scale": float(np.std(y - offset)) if family.scaled else 1.0,
    }
    # Keras writes tuples in a form of its own; as JSON there are only lists.
    return json.loads(json.dumps(state))


def _warn_of_numbers_as_texts(formula: Formula, columns: Mapping[str, np.ndarray]) -> None:
    """A column with one `n/a` is read as texts from a file, and each of its numbers is a level then.

    Whole numbers alone may be names, such as those of shops.
    """
    meant = {expression for term in formula.terms for expression in term.features}
    for name, values in columns.items():
        if kind_of(values) != TEXT or not any(e.is_column and e.arguments[0] == name for e in meant):
            continue
        levels, counts = np.unique(values.astype(str), return_counts=True)
        numbers = pd.to_numeric(pd.Series(levels), errors="coerce").to_numpy(float)
        others = np.isnan(numbers)
        known = int(counts[~others].sum())
        if known < _MOSTLY * len(values) or (not others.any() and (numbers == np.round(numbers)).all()):
            continue
        odd = f" (another: {str(levels[others][0])!r})" if others.any() else ""
        warn(
            f"Column `{name}` holds texts, of which {known:,} of {len(values):,} are numbers{odd}: it "
            f"is taken as a category with {len(levels):,} levels. Write `C({quote_column(name)})` if "
            'that is meant, else convert it with `pandas.to_numeric(..., errors="coerce")`.'
        )
