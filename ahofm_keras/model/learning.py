"""Formula + training data -> all that a model needs to be built, as JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ahofm_keras.data import column_names, kind_of, read_columns, read_levels
from ahofm_keras.errors import DataError, warn
from ahofm_keras.families import Family
from ahofm_keras.formula import parse_formula
from ahofm_keras.model.reading import learn_response
from ahofm_keras.terms import OffsetTerm, fit_terms


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
