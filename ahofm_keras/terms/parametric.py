"""Design columns of parametric terms: products of components of factors, standardised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ahofm_keras.layers.inputs import ABSENT
from ahofm_keras.transforms import Expression, evaluate_expression

# A component of a factor: of `group` the level, of `poly(x, 2)` the power. ANY_LEVEL of a category is 1
# at the levels of the training data, 0 elsewhere: a linear term is 0 at other levels. A column that is
# ABSENT from a factor does not depend on it.
ANY_LEVEL = -1


@dataclass(frozen=True)
class Factor:
    """One factor of a design column: a numeric expression, or the levels of a category."""

    expression: Expression
    levels: tuple[Any, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"expression": self.expression.to_json(), "levels": list(self.levels)}

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> Factor:
        return cls(Expression.from_json(config["expression"]), tuple(config["levels"]))


@dataclass(frozen=True)
class Parametric:
    """Columns that are products of the components of some factors.

    They are standardised inside a model, so that a coefficient of any unit is learned at one speed;
    without an intercept they are only scaled.

    Args:
        factors: of the product `a:b`, or, side by side, of columns each of which depends on one.
        columns: for each column, the component taken of each factor; `ANY_LEVEL` or `ABSENT`: none.
        coefficients: name of each column, e.g. `group[b]`.
        centre: subtracted from each column.
        scale: each column is divided by.
    """

    factors: tuple[Factor, ...]
    columns: tuple[tuple[int, ...], ...]
    coefficients: tuple[str, ...]
    centre: tuple[float, ...]
    scale: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def centre_columns(self) -> tuple[tuple[int, ...], ...]:
        """What the centre of each column is multiplied with, as a column."""
        return tuple(
            tuple(ABSENT if component == ABSENT else ANY_LEVEL for component in column)
            for column in self.columns
        )

    @cached_property
    def is_side_by_side(self) -> bool:
        """Whether each column depends on one factor alone."""
        chosen = np.asarray(self.columns, int).reshape(len(self), -1)
        return bool((np.count_nonzero(chosen != ABSENT, axis=1) == 1).all())

    @property
    def names(self) -> tuple[str, ...]:
        """Of the raw columns."""
        found = (name for factor in self.factors for name in factor.expression.columns())
        return tuple(dict.fromkeys(found))

    def config(self) -> dict[str, Any]:
        """As the layer `ParametricColumns` takes it."""
        return {
            "factors": [(factor.expression, factor.levels) for factor in self.factors],
            "columns": self.columns,
            "centre": self.centre,
            "scale": self.scale,
        }

    def raw(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """The columns as they are, before they are standardised, `(n, C)`."""
        return design_columns(self.factors, self.columns, columns)


def design_columns(
    factors: tuple[Factor, ...],
    columns: tuple[tuple[int, ...], ...],
    raw: Mapping[str, np.ndarray],
) -> np.ndarray:
    """Raw design `(n, C)`, in NumPy: for learning its centre and scale."""
    result = np.ones((len(next(iter(raw.values()))), len(columns)))
    chosen = np.asarray(columns, int).reshape(-1, len(factors))
    for place, factor in enumerate(factors):
        values = np.asarray(evaluate_expression(factor.expression, raw))
        if factor.levels:
            values = np.column_stack([values == level for level in factor.levels]).astype(float)
        own = np.flatnonzero(chosen[:, place] >= 0)
        result[:, own] *= values.reshape(len(result), -1)[:, chosen[own, place]]
    return result
