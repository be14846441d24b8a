"""Design + family -> the functional graph: inputs, places, bases, terms, predictor, response."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import keras

from ahofm_keras.families import Family
from ahofm_keras.layers import (
    BasisExpansion,
    FactorizedInteraction,
    Linear,
    Offset,
    ParametricColumns,
    Positions,
    Posterior,
    Predictor,
    Response,
    Smooth,
    TensorProduct,
)
from ahofm_keras.layers.inputs import RawColumns
from ahofm_keras.tensors import count_products
from ahofm_keras.terms import (
    Design,
    Feature,
    InteractionTerm,
    LinearTerm,
    OffsetTerm,
    PenalisedTerm,
    SmoothTerm,
    TensorTerm,
)

_DTYPES = {"number": "float64", "text": "string", "boolean": "bool"}

Tensor = Any
Naming = Callable[[str], str]


@dataclass(frozen=True)
class Bases:
    """Basis expansions, and where each feature stands among them."""

    tensors: list[Tensor]
    place: dict[int, tuple[int, int]]


@dataclass(frozen=True)
class Graph:
    """The tensors of a model that others start from or stop at.

    Args:
        inputs: raw columns by name, each of shape `()`; the tensor's own name is the column's, with
            what Keras does not allow in a name (`/`) replaced.
        encoders: what never changes in training: places, design columns, offset, as far as they occur,
            by the layers that compute them.
        contributions: tensor `(n, c)` of each term, by layer name, inside the model's scale.
        link: the predictor.
        response: the mean.
        predictor: the layer that holds the intercept.
        bases: basis expansions, and where each feature stands among them.
        columns: design columns of the linear terms, or None.
    """

    inputs: dict[str, Tensor]
    encoders: dict[RawColumns, Tensor]
    contributions: dict[str, Tensor]
    link: Tensor
    response: Tensor
    predictor: Predictor
    bases: Bases
    columns: Tensor | None

    @property
    def encoded(self) -> list[Tensor]:
        """What training and prediction of rows in memory start from."""
        return list(self.encoders.values())


def build_graph(design: Design, family: Family, shift: float, scale: float, seed: int) -> Graph:
    """Connect the layers of all terms."""
    inputs = _inputs(design)
    taken = {tensor.name for tensor in inputs.values()} | {term.name for term in design.terms}
    free = partial(_free_name, taken=taken)
    encoders: dict[RawColumns, Tensor] = {}
    bases = _expand_bases(design, inputs, encoders, free)
    contributions: dict[str, Tensor] = {}
    for seed_step, term in enumerate(design.of_kind(InteractionTerm)):
        contributions[term.name] = _interaction(term, design, bases, seed + 1000 * seed_step)
    for term in design.of_kind(SmoothTerm):
        contributions[term.name] = _smooth(term, design, bases)
    for term in design.of_kind(TensorTerm):
        contributions[term.name] = _tensor(term, design, bases)
    linear, columns = _linear_terms(design, inputs, encoders, free)
    contributions |= linear
    offset = _offset(design, inputs, encoders, free)
    ordered = {
        term.name: contributions[term.name] for term in design.terms if term.name in contributions
    }
    predictor = Predictor(shift, scale, design.intercept, name=free("predictor"))
    link = predictor(list(ordered.values()), offset)
    response = Response(family, name=free("response"))(link)
    return Graph(inputs, encoders, ordered, link, response, predictor, bases, columns)


def _inputs(design: Design) -> dict[str, Tensor]:
    inputs: dict[str, Tensor] = {}
    taken: set[str] = set()
    for column, kind in design.columns.items():
        name = _free_name(column.replace("/", "_") or "_", taken)
        taken.add(name)
        inputs[column] = keras.Input(shape=(), name=name, dtype=_DTYPES[kind])
    return inputs


def _free_name(name: str, taken: set[str]) -> str:
    """The name, lengthened while a column or term has it already: Keras wants them all to differ."""
    while name in taken:
        name += "_"
    return name


def _expand_bases(
    design: Design, inputs: dict[str, Tensor], encoders: dict[RawColumns, Tensor], free: Naming
) -> Bases:
    if not design.features:
        return Bases([], {})
    pairs = [(feature.expression, feature.basis) for feature in design.features]
    used = {name: inputs[name] for e, _ in pairs for name in e.columns()}
    layer = Positions(pairs, name=free("positions"))
    places = encoders[layer] = layer(used)
    groups: dict[tuple[int | None, bool], list[int]] = {}
    for position, feature in enumerate(design.features):
        groups.setdefault(_group(feature), []).append(position)
    tensors: list[Tensor] = []
    where: dict[int, tuple[int, int]] = {}
    for group, (key, members) in enumerate(groups.items()):
        tensors.append(_expansion(key, members, design, free)(places))
        where |= {position: (group, within) for within, position in enumerate(members)}
    return Bases(tensors, where)


def _group(feature: Feature) -> tuple[int | None, bool]:
    """Features of one degree and shape of axis are expanded together."""
    degree = None if feature.basis.kind == "linear" else feature.basis.degree
    return degree, feature.basis.kind == "cp"


def _expansion(
    key: tuple[int | None, bool], members: list[int], design: Design, free: Naming
) -> BasisExpansion:
    degree, cyclic = key
    bases = [design.features[position].basis for position in members]
    straight = bases[0].is_spline and not cyclic and bases[0].extrapolation == "linear"
    kind = "levels" if degree == 0 else "columns" if degree is None else f"splines_{degree}"
    return BasisExpansion(
        members,
        [basis.size for basis in bases],
        degree,
        cyclic,
        [float(basis.intervals) for basis in bases] if straight else [],
        name=free(f"basis_{'cyclic_' if cyclic else ''}{kind}"),
    )


def _smooth(term: SmoothTerm, design: Design, bases: Bases) -> Tensor:
    group, within = bases.place[term.feature]
    feature = design.features[term.feature]
    layer = Smooth(within, feature.transform, feature.eigenvalues, term.smoothing, name=term.name)
    return layer(bases.tensors[group])


def _tensor(term: TensorTerm, design: Design, bases: Bases) -> Tensor:
    places, tensors = _choose_bases(term.features, bases)
    features = [design.features[position] for position in term.features]
    layer = TensorProduct(
        places,
        [feature.transform for feature in features],
        [feature.eigenvalues for feature in features],
        term.smoothing,
        term.pure,
        name=term.name,
    )
    return layer(tensors)


def _choose_bases(
    positions: tuple[int, ...], bases: Bases
) -> tuple[list[tuple[int, int]], list[Tensor]]:
    """The basis expansions that hold some features, and where each feature stands among them."""
    places = [bases.place[position] for position in positions]
    groups = sorted({group for group, _ in places})
    return [(groups.index(group), within) for group, within in places], [
        bases.tensors[group] for group in groups
    ]


def _interaction(term: InteractionTerm, design: Design, bases: Bases, seed: int) -> Tensor:
    places, tensors = _choose_bases(term.features, bases)
    features = [design.features[position] for position in term.features]
    layer = FactorizedInteraction(
        places,
        [feature.transform for feature in features],
        [feature.eigenvalues for feature in features],
        [
            {"order": order.order, "rank": order.slots, "smoothing": list(order.smoothing)}
            for order in term.orders
        ],
        seed=seed,
        name=term.name,
    )
    return layer(tensors)


def _linear_terms(
    design: Design, inputs: dict[str, Tensor], encoders: dict[RawColumns, Tensor], free: Naming
) -> tuple[dict[str, Tensor], Tensor | None]:
    terms: list[LinearTerm] = design.of_kind(LinearTerm)
    if not terms:
        return {}, None
    config = [
        {
            "factors": [(factor.expression, factor.levels) for factor in term.factors],
            "columns": term.columns,
            "centre": term.centre,
            "scale": term.scale,
        }
        for term in terms
    ]
    used = {
        name: inputs[name]
        for term in terms
        for factor in term.factors
        for name in factor.expression.columns()
    }
    layer = ParametricColumns(config, name=free("parametric_columns"))
    columns = encoders[layer] = layer(used)
    contributions, start = {}, 0
    for term in terms:
        stop = start + len(term.columns)
        contributions[term.name] = Linear(start, stop, name=term.name)(columns)
        start = stop
    return contributions, columns


def _offset(
    design: Design, inputs: dict[str, Tensor], encoders: dict[RawColumns, Tensor], free: Naming
) -> Tensor | None:
    terms: list[OffsetTerm] = design.of_kind(OffsetTerm)
    if not terms:
        return None
    used = {name: inputs[name] for term in terms for name in term.expression.columns()}
    layer = Offset([term.expression for term in terms], name=free("offset"))
    offset = encoders[layer] = layer(used)
    return offset


def _random_effect(term: PenalisedTerm, design: Design) -> list[float] | None:
    """Eigenvalues of the penalty where a term is a random effect, of which there may be new levels."""
    feature = design.features[term.places[0]]
    is_random = isinstance(term, SmoothTerm) and feature.basis.kind == "re"
    return feature.eigenvalues.tolist() if is_random else None


def count_posterior(design: Design) -> int:
    """How many numbers the posterior of a design holds, but for small ones."""
    linear = int(design.intercept) + sum(len(term.columns) for term in design.of_kind(LinearTerm))
    for penalised in design.penalised():
        widths = [design.features[position].transform.shape[1] for position in penalised.places]
        linear += count_products(widths, penalised.pure)
    total = linear**2
    for term in design.of_kind(InteractionTerm):
        width = max(design.features[position].transform.shape[1] for position in term.features)
        total += sum(len(term.features) * order.slots * order.rank * width**2 for order in term.orders)
    return total


def attach_posterior(graph: Graph, design: Design, starts: int) -> tuple[Posterior, Tensor]:
    """The layer that holds the posterior of all coefficients, and the variance of the predictor.

    Args:
        graph: of the model.
        design: of the model.
        starts: how many fits' factors have covariances of their own.
    """
    penalised = [
        {
            "pure": term.pure,
            "features": [list(graph.bases.place[position]) for position in term.places],
            "transforms": [design.features[position].transform for position in term.places],
            "eigenvalues": _random_effect(term, design),
        }
        for term in design.penalised()
    ]
    interactions = [
        {
            "order": order.order,
            "rank": order.slots,
            "starts": starts,
            "features": [list(graph.bases.place[position]) for position in term.features],
            "transforms": [design.features[position].transform for position in term.features],
        }
        for term in design.of_kind(InteractionTerm)
        for order in term.orders
    ]
    columns = sum(len(term.columns) for term in design.of_kind(LinearTerm))
    layer = Posterior(design.intercept, columns, penalised, interactions, name="posterior")
    return layer, layer(graph.bases.tensors, graph.columns)
