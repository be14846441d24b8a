"""Terms of a fitted model -> sums of products of functions of single variables."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ahofm_keras.effects.splitting import margin_blocks, split_tensor
from ahofm_keras.model import AdditiveModel
from ahofm_keras.terms import (
    InteractionTerm,
    LinearTerm,
    PenalisedTerm,
    Variable,
    split_column,
    variables_by_key,
)
from ahofm_keras.terms.variables import centre_components

Subset = tuple[int, ...]
CENTRES = -1


@dataclass(frozen=True, eq=False)
class Group:
    """A sum over factors f, and over all subsets of `order` members, of products of functions.

    Args:
        order: number of functions in a product.
        members: variables.
        weights: for each member `(m, F)`: factor f is weights_f' u.
        scale: `(F,)`, of each factor's product in units of the link.
        source: the term's name and the place of the order in it; `CENTRES` where it holds what a linear
            term subtracts from its columns.
        kept: which factors of the order, columns of the linear term, or coefficients of the smooth or
            tensor product these are; none of an order that was switched off.
        features: positions in the design of the features whose functions they are, one a member; none
            for a linear term.
    """

    order: int
    members: Subset
    weights: tuple[np.ndarray, ...]
    scale: np.ndarray
    source: tuple[str, int]
    kept: np.ndarray
    features: Subset = ()

    def weight_of(self, variable: int) -> np.ndarray:
        return self.weights[self.members.index(variable)]

    def feature_of(self, variable: int) -> int:
        return self.features[self.members.index(variable)]

    def part(self, chosen: np.ndarray) -> Group:
        """The sum over some of the factors of an interaction, by their places in this one."""
        weights = tuple(own[:, chosen] for own in self.weights)
        return replace(self, weights=weights, scale=self.scale[chosen], kept=self.kept[chosen])


def places_by_start(model: AdditiveModel, group: Group) -> list[np.ndarray]:
    """Which of a group's factors have covariances in common: those of one start of an average."""
    everything = np.arange(len(group.scale))
    orders = {term.name: term.orders for term in model.design.of_kind(InteractionTerm)}
    name, place = group.source
    if name not in orders:
        return [everything]
    start = group.kept // orders[name][place].rank
    return [everything[start == own] for own in np.unique(start)]


def read_groups(model: AdditiveModel, variables: list[Variable]) -> tuple[float, list[Group]]:
    """The link without the offset: a constant, and groups that add up to the rest."""
    reader = _Reader(model, variables)
    for term in model.design.terms:
        if isinstance(term, PenalisedTerm):
            reader.add_penalised(term)
        elif isinstance(term, InteractionTerm):
            reader.add_interaction(term)
        elif isinstance(term, LinearTerm):
            reader.add_linear(term)
    return reader.constant, reader.groups


class _Reader:
    def __init__(self, model: AdditiveModel, variables: list[Variable]) -> None:
        self.model = model
        self.variables = variables
        self.known = variables_by_key(variables)
        self.place = {place: i for i, v in enumerate(variables) for place in v.places}
        self.groups: list[Group] = []
        bias = model.predictor.bias
        intercept = 0.0 if bias is None else float(np.asarray(bias))
        self.constant = model.shift + model.scale * intercept

    def add_penalised(self, term: PenalisedTerm) -> None:
        """A sum of products for each subset of margins that the term has functions of."""
        coordinates = self.model.get_layer(term.name).coordinates().astype(float)
        for block in margin_blocks(term, coordinates.shape):
            features = tuple(term.places[margin] for margin in block.margins)
            factors = split_tensor(coordinates[block.index])
            weights = tuple(self._spread(f, own) for f, own in zip(features, factors, strict=True))
            scale = self._scale(factors[0].shape[1])
            self._add(len(features), features, weights, scale, (term.name, 0), block.coefficients)

    def add_interaction(self, term: InteractionTerm) -> None:
        layer = self.model.get_layer(term.name)
        for place, order in enumerate(term.orders):
            values = layer.coordinates(place).astype(float)
            kept = np.flatnonzero(np.abs(values).max(axis=(0, 1)) > 0)
            weights = tuple(
                self._spread(feature, values[j, : self._width(feature)][:, kept])
                for j, feature in enumerate(term.features)
            )
            scale = self._scale(len(kept))
            self._add(order.order, term.features, weights, scale, (term.name, place), kept)

    def add_linear(self, term: LinearTerm) -> None:
        """A column of a linear term is one product; columns of the same variables are one group."""
        kernel = np.asarray(self.model.get_layer(term.name).kernel, float)
        slopes = self.model.scale * kernel / np.asarray(term.scale)
        found: dict[Subset, list[tuple[int, dict[int, int]]]] = {}
        for column, components in enumerate(term.columns):
            places = self._places(term, components)
            found.setdefault(tuple(sorted(places)), []).append((column, places))
        for members, columns in found.items():
            weights = self._choose(members, [places for _, places in columns])
            kept = np.array([column for column, _ in columns])
            group = Group(len(members), members, weights, slopes[kept], (term.name, 0), kept)
            self.groups.append(group)
        self._subtract_centres(term, float(slopes @ np.asarray(term.centre)))

    def _subtract_centres(self, term: LinearTerm, total: float) -> None:
        """A constant, but at a level that is not of the training data a linear term is 0 altogether."""
        places = self._places(term, centre_components(term))
        if not places:
            self.constant -= total
        elif total:
            members = tuple(sorted(places))
            weights = self._choose(members, [places])
            source, nothing = (term.name, CENTRES), np.zeros(0, int)
            group = Group(len(members), members, weights, np.array([-total]), source, nothing)
            self.groups.append(group)

    def _places(self, term: LinearTerm, components: tuple[int, ...]) -> dict[int, int]:
        """The variables of a column of a linear term, and which of their functions it multiplies."""
        return {
            self.variables.index(variable): variable.column_of(product)
            for variable, product in split_column(self.known, term, components)
        }

    def _choose(self, members: Subset, places: list[dict[int, int]]) -> tuple[np.ndarray, ...]:
        """Weights that choose one function of each member for each product."""
        weights = []
        for member in members:
            own = np.zeros((self.variables[member].size, len(places)))
            own[[chosen[member] for chosen in places], np.arange(len(places))] = 1.0
            weights.append(own)
        return tuple(weights)

    def _add(
        self,
        order: int,
        features: Subset,
        weights: tuple[np.ndarray, ...],
        scale: np.ndarray,
        source: tuple[str, int],
        kept: np.ndarray,
    ) -> None:
        """Products of functions of some features."""
        members = tuple(self.place[feature] for feature in features)
        self.groups.append(Group(order, members, weights, scale, source, kept, features))

    def _spread(self, place: int, coordinates: np.ndarray) -> np.ndarray:
        """Coordinates `(r, F)` of a feature among all functions of its variable, `(m, F)`."""
        variable = self.variables[self.place[place]]
        weights = np.zeros((variable.size, coordinates.shape[1]))
        weights[variable.columns_of(place)] = coordinates
        return weights

    def _width(self, place: int) -> int:
        return len(self.model.design.features[place].eigenvalues)

    def _scale(self, rank: int) -> np.ndarray:
        return np.full(rank, self.model.scale)
