"""Rows that a model is read on: those given, else a sample of those it was fitted to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ahofm_keras.decomposition.parts import Parts
from ahofm_keras.errors import DataError
from ahofm_keras.model import AdditiveModel
from ahofm_keras.transforms import evaluate_expression

# Rows that variances over rows are computed from, at most and, for very many subsets, at least.
MOST_ROWS = 5000
_LEAST_ROWS = 500
_VALUES = 10_000_000
# Numbers in memory at once.
_PIECE = 4_000_000

Columns = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class ReadRows:
    """Functions of all variables at some rows.

    Args:
        functions: `(m, n)` of each variable.
        weight: of each row `(n,)`, with the sum 1.
        opaque: what opaque terms add there `(n,)`, by label.
    """

    functions: list[np.ndarray]
    weight: np.ndarray
    opaque: dict[str, np.ndarray]

    def link(self, parts: Parts) -> np.ndarray:
        """The link without the offset at the rows."""
        return parts.link(self.functions) + sum(self.opaque.values(), 0.0)

    def variances(self, values: np.ndarray) -> np.ndarray:
        """Variances over the rows of values `(..., n)`."""
        centred = values - (values @ self.weight)[..., None]
        return centred**2 @ self.weight


def find_rows(model: AdditiveModel, data: Any, purpose: str | None = None) -> Columns | None:
    """Raw columns of some rows, None where there are none.

    Args:
        model: fitted.
        data: data frame or dict of columns, or None.
        purpose: what they are for; where it is given and there are no rows, an error says so.
    """
    if data is not None:
        return model.read_inputs(data)
    if model.sample is not None:
        return model.sample.columns
    if purpose is not None:
        raise DataError(
            f"{purpose} needs rows, and a model that was loaded keeps none of its training data: "
            "pass `data=`."
        )
    return None


def read_rows(parts: Parts, data: Any, most: int, purpose: str | None = None) -> ReadRows | None:
    """At most so many of the rows given, or of the fit with their weights; None where there are none."""
    columns = find_rows(parts.model, data, purpose)
    if columns is None:
        return None
    rows = len(next(iter(columns.values())))
    weight, sample = np.ones(rows), parts.model.sample
    if data is None and sample is not None and sample.weight is not None:
        weight = np.asarray(sample.weight, float)
    # Evenly spread over all rows, which may be sorted.
    counted = np.flatnonzero(weight)
    chosen = counted[np.linspace(0, len(counted) - 1, min(len(counted), most)).round().astype(int)]
    columns = {name: values[chosen] for name, values in columns.items()}
    weight = weight[chosen] / weight[chosen].sum()
    return ReadRows(functions_on(parts, columns), weight, opaque_on(parts, columns))


def functions_on(parts: Parts, columns: Columns) -> list[np.ndarray]:
    """All functions of all variables at rows, `(m, n)` each."""
    found = []
    for variable in parts.variables:
        values = np.asarray(evaluate_expression(variable.expression, columns))
        found.append(variable.functions(values))
    return found


def opaque_on(parts: Parts, columns: Columns) -> dict[str, np.ndarray]:
    """What opaque terms add at rows less their means, `(n,)` each, in units of the link, by label."""
    if not parts.opaque:
        return {}
    terms = parts.model.predict(dict(columns), type="terms")
    return {own.label: terms[own.label].to_numpy() - own.mean for own in parts.opaque}


def row_variances(parts: Parts, subsets: np.ndarray, rows: ReadRows) -> tuple[np.ndarray, np.ndarray]:
    """Variances over rows of the parts of many subsets `(K,)`, and the sum of these parts `(n,)`."""
    count = len(rows.weight)
    found, total = np.zeros(len(subsets)), np.zeros(count)
    piece = max(1, _PIECE // count)
    for start in range(0, len(subsets), piece):
        values = parts.evaluate_many(subsets[start : start + piece], rows.functions)
        found[start : start + piece] = rows.variances(values)
        total += values.sum(axis=0)
    return found, total


def rows_for(subsets: int) -> int:
    """How many rows variances over rows are computed from: fewer for very many subsets."""
    return int(np.clip(_VALUES // max(subsets, 1), _LEAST_ROWS, MOST_ROWS))
