"""Design columns of linear terms: numbers, treatment-coded categories, their products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from patsy import Term as PatsyTerm
from patsy.redundancy import pick_contrasts_for_term

from ahofm_keras.formula import TermSpec
from ahofm_keras.layers.inputs import ABSENT
from ahofm_keras.terms.features import constant_column, feature_values, find_levels
from ahofm_keras.terms.parametric import Factor, Parametric, design_columns
from ahofm_keras.transforms import Expression, learn_expression


class LinearCoder:
    """Codes linear terms one after another.

    Which levels of a category a term needs depends on the terms before it: after an intercept `a`
    leaves its first level out, `a:b` without `a` does not. patsy's own rule decides.
    """

    def __init__(
        self,
        columns: Mapping[str, np.ndarray],
        levels: Mapping[str, tuple[str, ...]],
        intercept: bool,
    ) -> None:
        self.columns = columns
        self.levels = levels
        self.intercept = intercept
        # What is used up depends on the numbers that the levels are multiplied with.
        self._used: dict[frozenset[Expression], set[Any]] = {}
        if intercept:
            pick_contrasts_for_term(PatsyTerm([]), set(), self._used.setdefault(frozenset(), set()))

    def code(self, spec: TermSpec) -> Parametric:
        """The design columns of a linear term."""
        factors = tuple(self._factor(expression, spec) for expression in spec.features)
        numeric = frozenset(factor.expression for factor in factors if not factor.levels)
        used = self._used.setdefault(numeric, set())
        term = PatsyTerm([factor.expression for factor in factors])
        codings = pick_contrasts_for_term(term, numeric, used)
        components = [self._components(factor) for factor in factors]
        columns: list[tuple[int, ...]] = []
        for coding in codings:
            choices = [
                _choose(factor, count, coding) for factor, count in zip(factors, components, strict=True)
            ]
            columns += product(*choices)
        return self._standardised(factors, columns)

    def side_by_side(self, spec: TermSpec, features: Sequence[Expression]) -> Parametric:
        """The columns of some features beside each other, for a term that penalises them.

        The penalty needs no reference level: a category has a column per level. Of two levels one column
        says all, and a second would only share its coefficient.
        """
        factors = tuple(self._factor(expression, spec) for expression in features)
        columns: list[tuple[int, ...]] = []
        for place, factor in enumerate(factors):
            count = self._components(factor)
            for component in range(1 if len(factor.levels) == 2 else 0, count):
                column = [ABSENT] * len(factors)
                column[place] = component
                columns.append(tuple(column))
        return self._standardised(factors, columns)

    def _standardised(self, factors: tuple[Factor, ...], columns: list[tuple[int, ...]]) -> Parametric:
        design = design_columns(factors, tuple(columns), self.columns)
        centre = design.mean(axis=0) if self.intercept else np.zeros(design.shape[1])
        spread = np.sqrt(np.mean((design - centre) ** 2, axis=0))
        return Parametric(
            factors,
            tuple(columns),
            tuple(_coefficient(factors, column) for column in columns),
            tuple(centre.tolist()),
            tuple(np.where(spread > 0, spread, 1.0).tolist()),
        )

    def _factor(self, expression: Expression, spec: TermSpec) -> Factor:
        values = feature_values(expression, self.columns, spec)
        if expression.is_category or values.dtype.kind != "f":
            levels = find_levels(expression, values, self.levels)
            if len(levels) < 2:
                raise constant_column(expression, spec)
            return Factor(expression, levels)
        if self.intercept and np.ptp(values.reshape(len(values), -1)[:, 0]) == 0:
            raise constant_column(expression, spec)
        return Factor(learn_expression(expression, self.columns))

    def _components(self, factor: Factor) -> int:
        if factor.levels:
            return len(factor.levels)
        return int(factor.expression.arguments[1].arguments[0]) if _is_poly(factor) else 1


def _is_poly(factor: Factor) -> bool:
    return factor.expression.function == "poly"


def _choose(factor: Factor, components: int, coding: Mapping[Expression, bool]) -> list[int]:
    """Components of a factor that enter: all, all but the first level, or -1 for none."""
    if not factor.levels:
        return list(range(components))
    if factor.expression not in coding:
        return [-1]
    return list(range(0 if coding[factor.expression] else 1, components))


def _coefficient(factors: tuple[Factor, ...], column: tuple[int, ...]) -> str:
    parts = []
    for factor, component in zip(factors, column, strict=True):
        if component < 0:
            continue
        if factor.levels:
            parts.append(f"{factor.expression}[{factor.levels[component]}]")
        elif _is_poly(factor):
            parts.append(f"{factor.expression}[{component + 1}]")
        else:
            parts.append(str(factor.expression))
    return ":".join(parts)
