"""Variables: what a reader of the model calls a feature, with all functions that terms have of it.

`s(x)`, the `x` of an `ahofm()`, a linear `x` or `poly(x, 2)` are functions of one variable `x`. Each is
a combination of the same few functions u(x): the Demmler-Reinsch coordinates of each basis on it, and
the factors of linear terms. So every term is a sum of products of combinations of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ahofm_keras.bases import evaluate_basis, locate_levels
from ahofm_keras.terms.base import Term
from ahofm_keras.terms.features import Feature
from ahofm_keras.terms.parametric import ANY_LEVEL, Factor, Parametric
from ahofm_keras.transforms import Expression, column, evaluate_expression

Component = tuple[Factor, int]
# What a column of a linear term is as a function of one variable: a product of components.
Product = tuple[Component, ...]
# Text of the expression, and whether it is taken as a category.
Key = tuple[str, bool]

_AXIS = "axis"


@dataclass(frozen=True, eq=False)
class Variable:
    """A variable and the functions that terms have of it.

    Args:
        label: e.g. `x1` or `log(x2)`; of points `lon, lat`.
        expression: of raw columns, whose values are the variable's.
        levels: of a category, empty for a number.
        places: positions of its features in the design.
        features: the same features.
        products: functions that linear terms have of it.
    """

    label: str
    expression: Expression
    levels: tuple[Any, ...]
    places: list[int] = field(default_factory=list)
    features: list[Feature] = field(default_factory=list)
    products: list[Product] = field(default_factory=list)

    @property
    def is_category(self) -> bool:
        return bool(self.levels)

    @property
    def is_point(self) -> bool:
        """Whether its values are points `(n, d)`."""
        return self.expression.is_point

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of its axes: of a point those of its coordinates, else its own."""
        return tuple(map(str, self.expression.coordinates)) if self.is_point else (self.label,)

    @property
    def size(self) -> int:
        """Number of functions m."""
        return sum(len(feature.eigenvalues) for feature in self.features) + len(self.products)

    @property
    def atoms(self) -> np.ndarray:
        """Values with functions of their own, rising."""
        return np.unique([atom for feature in self.features for atom in feature.basis.atoms])

    @property
    def typical_points(self) -> np.ndarray:
        """Points that lie as those of the training rows do, `(m, d)`: the knots of its functions."""
        radial = next(f.basis.radial for f in self.features if f.basis.radial is not None)
        return np.asarray(radial.centre + radial.unit * radial.knots)

    def columns_of(self, place: int) -> slice:
        """Where the functions of a feature of the design stand among the variable's."""
        start = 0
        for own, feature in zip(self.places, self.features, strict=True):
            stop = start + len(feature.eigenvalues)
            if own == place:
                return slice(start, stop)
            start = stop
        raise KeyError(place)

    def column_of(self, product: Product) -> int:
        """Where a function of a linear term stands among the variable's."""
        return self.size - len(self.products) + self.products.index(product)

    def functions(self, values: np.ndarray) -> np.ndarray:
        """u at values of the variable, `(m, n)`."""
        parts = [(evaluate_basis(f.basis, values) @ f.transform).T for f in self.features]
        return np.concatenate([*parts, self.product_columns(values)])

    def product_columns(self, values: np.ndarray) -> np.ndarray:
        """The functions of linear terms at values of the variable, `(products, n)`."""
        if not self.products:
            return np.zeros((0, len(values)))
        # Of a category the level, of a number the values themselves.
        axis = locate_levels(self.levels, values) if self.is_category else values
        return np.stack([_evaluate_product(product, axis) for product in self.products])


def _evaluate_product(product: Product, axis: np.ndarray) -> np.ndarray:
    result = np.ones(len(axis))
    for factor, component in product:
        if factor.levels:
            result = result * (axis >= 0 if component == ANY_LEVEL else axis == component)
        else:
            found = np.asarray(evaluate_expression(_on_axis(factor.expression), {_AXIS: axis}))
            result = result * found.reshape(len(axis), -1)[:, component]
    return result


def find_variables(features: Sequence[Feature], terms: Iterable[Term]) -> list[Variable]:
    """All variables of a design, in the order of its terms' first use of them."""
    found: dict[Key, Variable] = {}
    for term in terms:
        design = term.parametric
        if design is not None:
            for components in dict.fromkeys((*design.columns, *design.centre_columns)):
                for variable, product in split_column(found, design, components):
                    if product not in variable.products:
                        variable.products.append(product)
        for place in term.features:
            variable = _variable(found, features[place].expression, features[place].basis.levels)
            if place not in variable.places:
                variable.places.append(place)
                variable.features.append(features[place])
    # `x` may be a number in one term and a category in another: two variables, told apart by name.
    doubles = {label for label, category in found if category and (label, False) in found}
    return [
        replace(v, label=f"C({v.label})") if v.is_category and v.label in doubles else v
        for v in found.values()
    ]


def split_column(
    variables: dict[Key, Variable], design: Parametric, components: tuple[int, ...]
) -> list[tuple[Variable, Product]]:
    """A design column as a product of functions of single variables."""
    products: dict[Key, list[Component]] = {}
    for factor, component in zip(design.factors, components, strict=True):
        if component >= 0 or (component == ANY_LEVEL and factor.levels):
            _variable(variables, factor.expression, factor.levels)
            key = _key(factor.expression, factor.levels)
            products.setdefault(key, []).append((factor, component))
    return [(variables[key], tuple(product)) for key, product in products.items()]


def variables_by_key(variables: Iterable[Variable]) -> dict[Key, Variable]:
    """The variables as `split_column` looks them up."""
    return {_key(variable.expression, variable.levels): variable for variable in variables}


def _variable(found: dict[Key, Variable], expression: Expression, levels: tuple[Any, ...]) -> Variable:
    key = _key(expression, levels)
    if key not in found:
        found[key] = Variable(key[0], _axis_expression(expression), levels)
    return found[key]


def _key(expression: Expression, levels: tuple[Any, ...]) -> Key:
    return str(_axis_expression(expression)), bool(levels)


def _axis_expression(expression: Expression) -> Expression:
    """The expression whose values are the variable's: that inside `C()` or `poly()`."""
    return expression.arguments[0] if expression.function in ("C", "poly") else expression


def _on_axis(expression: Expression) -> Expression:
    """The same function of the variable's own values."""
    if expression.function != "poly":
        return column(_AXIS)
    return replace(expression, arguments=(column(_AXIS), *expression.arguments[1:]))
