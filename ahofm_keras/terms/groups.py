"""Terms of a fitted model as sums of products of functions of single variables."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ahofm_keras.terms.parametric import Parametric
from ahofm_keras.terms.variables import Variable, split_column, variables_by_key

Subset = tuple[int, ...]

# Where the coefficients of a group stand: in the linear block, as products of functions of features or
# as design columns; nowhere, as what a linear term subtracts from its columns; or in blocks of factors.
PRODUCTS, DESIGN, CENTRES, FACTORS = "products", "linear", "centres", "factors"


@dataclass(frozen=True, eq=False)
class Group:
    """A sum over factors f, and over all subsets of `order` members, of products of functions.

    Args:
        order: number of functions in a product.
        members: variables.
        weights: for each member `(m, F)`: factor f is weights_f' u.
        scale: `(F,)`, of each factor's product in units of the link.
        source: the term's name and the index of the order in it.
        kind: `PRODUCTS`, `DESIGN`, `CENTRES` or `FACTORS`.
        kept: which factors of the order, columns of the linear term, or coefficients of the smooth or
            tensor product these are; none of an order that was switched off.
        features: positions in the design of the features whose functions they are, one per member; none
            of design columns.
        unit: `(F,)`, what one unit of a design column's coefficient multiplies.
        centre: `(F,)`, what is subtracted from each design column.
    """

    order: int
    members: Subset
    weights: tuple[np.ndarray, ...]
    scale: np.ndarray
    source: tuple[str, int]
    kind: str
    kept: np.ndarray
    features: Subset = ()
    unit: np.ndarray = field(default_factory=lambda: np.zeros(0))
    centre: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def weight_of(self, variable: int) -> np.ndarray:
        return self.weights[self.members.index(variable)]

    def feature_of(self, variable: int) -> int:
        return self.features[self.members.index(variable)]

    def part(self, chosen: np.ndarray) -> Group:
        """The sum over some of the factors of an interaction, by their places in this one."""
        weights = tuple(own[:, chosen] for own in self.weights)
        return replace(self, weights=weights, scale=self.scale[chosen], kept=self.kept[chosen])


@dataclass(frozen=True)
class Opaque:
    """A term that is no sum of products of functions, such as a network.

    Args:
        label, name: of the term.
        mean, variance: of its contribution over the training rows, in units of the link.
    """

    label: str
    name: str
    mean: float
    variance: float


class GroupReader:
    """Collects the groups of a fitted model; terms add theirs.

    Args:
        model: an `AdditiveModel`.
        variables: of its design.

    Attributes:
        constant: the link where all groups are 0, without the offset.
        groups: add up to the rest of it, but for opaque terms.
        opaque: terms that are no such products; their means are in the constant.
    """

    def __init__(self, model: Any, variables: list[Variable]) -> None:
        self.model = model
        self.variables = variables
        self.known = variables_by_key(variables)
        self.variable_of = {place: i for i, v in enumerate(variables) for place in v.places}
        self.groups: list[Group] = []
        self.opaque: list[Opaque] = []
        bias = model.predictor.bias
        intercept = 0.0 if bias is None else float(np.asarray(bias))
        self.constant = model.shift + model.scale * intercept

    def coordinates(self, name: str, *index: int) -> np.ndarray:
        """Weights of a term's layer in Demmler-Reinsch coordinates."""
        values: np.ndarray = self.model.get_layer(name).coordinates(*index).astype(float)
        return values

    def add_opaque(self, label: str, name: str, mean: float, variance: float) -> None:
        """A term that readers show as a whole.

        Args:
            label, name: of the term.
            mean, variance: of its contribution over the training rows, inside the model's scale.
        """
        own = Opaque(label, name, self.model.scale * mean, self.model.scale**2 * variance)
        self.constant += own.mean
        self.opaque.append(own)

    def add_products(
        self,
        order: int,
        features: Subset,
        factors: tuple[np.ndarray, ...],
        source: tuple[str, int],
        kind: str,
        kept: np.ndarray,
    ) -> None:
        """Products of functions of some features, each with coordinates `(r, F)`."""
        members = tuple(self.variable_of[feature] for feature in features)
        weights = tuple(self._spread(f, own) for f, own in zip(features, factors, strict=True))
        scale = np.full(factors[0].shape[1], self.model.scale)
        self.groups.append(Group(order, members, weights, scale, source, kind, kept, features))

    def add_columns(self, parametric: Parametric, name: str) -> None:
        """A design column is one product; columns of the same variables are one group."""
        scale, centre = np.asarray(parametric.scale), np.asarray(parametric.centre)
        slopes = self.model.scale * self.coordinates(name) / scale
        found: dict[Subset, list[tuple[int, dict[int, int]]]] = {}
        for column, components in enumerate(parametric.columns):
            places = self._places(parametric, components)
            found.setdefault(tuple(sorted(places)), []).append((column, places))
        for members, columns in found.items():
            weights = self._choose(members, [places for _, places in columns])
            kept = np.array([column for column, _ in columns])
            self.groups.append(
                Group(
                    len(members), members, weights, slopes[kept], (name, 0), DESIGN, kept,
                    unit=1 / scale[kept], centre=centre[kept],
                )
            )  # fmt: skip
        shifts: dict[tuple[int, ...], float] = {}
        for components, shift in zip(parametric.centre_columns, slopes * centre, strict=True):
            shifts[components] = shifts.get(components, 0.0) + float(shift)
        for components, shift in shifts.items():
            self._subtract_centres(parametric, name, components, shift)

    def _subtract_centres(
        self, parametric: Parametric, name: str, components: tuple[int, ...], total: float
    ) -> None:
        """A constant, but at a level that is not of the training data a linear term is 0 altogether."""
        places = self._places(parametric, components)
        if not places:
            self.constant -= total
        elif total:
            members = tuple(sorted(places))
            weights, scale = self._choose(members, [places]), np.array([-total])
            nothing = np.zeros(0, int)
            self.groups.append(Group(len(members), members, weights, scale, (name, 0), CENTRES, nothing))

    def _places(self, parametric: Parametric, components: tuple[int, ...]) -> dict[int, int]:
        """The variables of a design column, and which of their functions it multiplies."""
        return {
            self.variables.index(variable): variable.column_of(product)
            for variable, product in split_column(self.known, parametric, components)
        }

    def _choose(self, members: Subset, places: list[dict[int, int]]) -> tuple[np.ndarray, ...]:
        """Weights that choose one function of each member for each product."""
        weights = []
        for member in members:
            own = np.zeros((self.variables[member].size, len(places)))
            own[[chosen[member] for chosen in places], np.arange(len(places))] = 1.0
            weights.append(own)
        return tuple(weights)

    def _spread(self, place: int, coordinates: np.ndarray) -> np.ndarray:
        """Coordinates `(r, F)` of a feature among all functions of its variable, `(m, F)`."""
        variable = self.variables[self.variable_of[place]]
        weights = np.zeros((variable.size, coordinates.shape[1]))
        weights[variable.columns_of(place)] = coordinates
        return weights
