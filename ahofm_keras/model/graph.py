"""Design + family -> the functional graph: inputs, places, bases, terms, predictors, response."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from math import prod
from typing import Any

import keras
import numpy as np

from ahofm_keras.data import ROWS
from ahofm_keras.families import Family
from ahofm_keras.layers import (
    BasisExpansion,
    MeanResponse,
    Offset,
    OrthogonalComplement,
    ParametricColumns,
    Positions,
    Posterior,
    Predictor,
    RadialExpansion,
    RangeLimit,
    Response,
)
from ahofm_keras.layers.basis import Functions, all_functions, one_feature
from ahofm_keras.layers.factor_covariances import factor_shapes
from ahofm_keras.layers.inputs import RawColumns
from ahofm_keras.serving import serving_names
from ahofm_keras.terms import Design, Feature, InteractionOrder, Network, Sources, Span
from ahofm_keras.terms.encoded import OFFSET
from ahofm_keras.terms.margins import CENTRED
from ahofm_keras.transforms import Expression

# Between the seeds of terms with random weights.
_SEED_STEP = 1000
POSTERIOR = "posterior"
_DTYPES = {"number": "float64", "text": "string", "boolean": "bool", "array": "float32"}

Tensor = Any
Naming = Callable[[str], str]


@dataclass(frozen=True)
class Bases:
    """Basis expansions, and where each feature stands among them."""

    tensors: list[Functions]
    place: dict[int, tuple[int, int]]


class TermInputs:
    """The tensors that a term may start from.

    Args:
        bases: basis expansions.
        columns: design columns of all terms `(n, C)`, or None.
        sources: what the design knows of both.
        seed: of random weights.
        starts: of how many fits there is room for the factors.
        encoded: what the encoders of a term give, by its name.

    Attributes:
        spans: the linear block of the predictor whose terms are connected.
        intercept: whether it has one.
        complements: by the name of the term, what is left of a network, and the columns of structured
            terms that it was projected on, or None.
        free: gives a name that no other layer has.
    """

    def __init__(
        self,
        bases: Bases,
        columns: Tensor | None,
        sources: Sources,
        seed: int,
        starts: int = 1,
        encoded: Mapping[str, Sequence[Tensor]] | None = None,
        free: Naming = str,
    ) -> None:
        self.encoded = encoded or {}
        self.spans: tuple[Span, ...] = ()
        self.intercept = True
        self.complements: dict[str, tuple[OrthogonalComplement, Tensor | None]] = {}
        self.free = free
        self.starts = starts
        self.bases = bases
        self.columns = columns
        self.sources = sources
        self._seeds = count(seed, _SEED_STEP)

    def bases_of(self, positions: Sequence[int]) -> tuple[list[tuple[int, int]], list[Functions]]:
        """The basis expansions that hold some features, and where each feature stands among them."""
        places = [self.bases.place[position] for position in positions]
        groups = sorted({group for group, _ in places})
        return [(groups.index(group), within) for group, within in places], [
            self.bases.tensors[group] for group in groups
        ]

    def functions_of(self, position: int) -> Tensor:
        """All functions of a feature `(M, n)`, where a term needs more than those that are not zero."""
        (where,), bases = self.bases_of([position])
        return all_functions(one_feature(bases, where), self.sources.features[position].basis.size)

    def next_seed(self) -> int:
        """A seed that no other term has."""
        return next(self._seeds)


@dataclass(frozen=True)
class Graph:
    """The tensors of a model that others start from or stop at.

    Args:
        inputs: raw columns by name, each of shape `()`; the tensor's own name is the column's, with
            what Keras does not allow in a name (`/`) replaced.
        encoders: what never changes in training: `positions` on the axes of bases, design `columns`, and
            the `offset` of each predictor, as far as they occur, and what terms encode themselves, by
            the layers that compute them.
        contributions: tensor `(n, c)` of each term, by layer name, inside the model's scale.
        limits: layers that hold the sum of some terms, and their tensors `(n, 2)`, by parameter of the
            family.
        links: the predictors, by parameter of the family.
        response: the mean; with several predictors all parameters `(n, K)`.
        mean: the mean of the response; of classes the probabilities `(n, K)`.
        predictors: the layers that hold the intercepts, by parameter of the family.
        bases: basis expansions, and where each feature stands among them.
        columns: design columns of the linear terms, or None.
        complements: of the networks, by the name of the term, with the columns of structured terms that
            they are projected on, or None.
    """

    inputs: dict[str, Tensor]
    encoders: dict[str, tuple[RawColumns, Tensor]]
    contributions: dict[str, Tensor]
    limits: dict[str, tuple[RangeLimit, Tensor]]
    links: dict[str, Tensor]
    response: Tensor
    mean: Tensor
    predictors: dict[str, Predictor]
    bases: Bases
    columns: Tensor | None
    complements: dict[str, tuple[OrthogonalComplement, Tensor | None]]

    @property
    def link(self) -> Tensor:
        """The first predictor, that of the mean."""
        return next(iter(self.links.values()))

    @property
    def predictor(self) -> Predictor:
        """The layer of the first predictor."""
        return next(iter(self.predictors.values()))

    @property
    def encoded(self) -> list[Tensor]:
        """What training and prediction of rows in memory start from."""
        return [tensor for _, tensor in self.encoders.values()]


def build_graph(
    design: Design,
    family: Family,
    units: Mapping[str, tuple[float, float]],
    seed: int,
    starts: int = 1,
) -> Graph:
    """Connect the layers of all terms.

    Args:
        design: of the model.
        family: of the response.
        units: shift and scale of each predictor, by parameter of the family.
        seed: of random weights.
        starts: of how many fits there is room for the factors.
    """
    inputs = _inputs(design)
    taken = {tensor.name for tensor in inputs.values()} | {term.name for term in design.terms}
    free = partial(_free_name, taken=taken)
    encoders: dict[str, tuple[RawColumns, Tensor]] = {}
    bases = _expand_bases(design, inputs, encoders, free)
    columns = _design_columns(design, inputs, encoders, free)
    encoded = _encode_own(design, inputs, encoders, free)
    sources = TermInputs(bases, columns, design.sources, seed, starts, encoded, free)
    contributions: dict[str, Tensor] = {}
    limits: dict[str, tuple[RangeLimit, Tensor]] = {}
    predictors: dict[str, Predictor] = {}
    links: dict[str, Tensor] = {}
    suffixes = layer_suffixes(design)
    for name, own in design.predictors.items():
        suffix = suffixes[name] if predictors else ""
        key = f"{OFFSET}_{name}" if predictors else OFFSET
        offset = _offset(list(own.offsets.values()), key, free(f"{OFFSET}{suffix}"), inputs, encoders)
        sources.spans, sources.intercept = design.layout[name].spans, own.intercept
        parts = {term.name: term.connect(sources) for term in own.terms if term.offset is None}
        contributions |= parts
        held = {term.name for term in design.held_terms(name)}
        summed = [tensor for term, tensor in parts.items() if term not in held]
        if held:
            limit = RangeLimit(name=free(f"limit{suffix}"))
            limits[name] = limit, limit([parts[term] for term in parts if term in held])
            summed.append(limits[name][1][:, :1])
        shift, scale = units[name]
        unit = family.dispersion_unit(shift, scale) if scale and len(units) == 1 else 1.0
        layer = Predictor(shift, scale, own.intercept, unit, name=free(f"predictor{suffix}"))
        predictors[name] = layer
        links[name] = layer(summed or [_nothing(encoders)], offset)
    several = list(links.values()) if len(links) > 1 else next(iter(links.values()))
    response = Response(family, name=free("response"))(several)
    mean = response
    if len(links) > 1 or family.labelled:
        mean = MeanResponse(family, name=free("mean_response"))(response)
    return Graph(
        inputs, encoders, contributions, limits, links, response, mean, predictors, bases, columns,
        sources.complements,
    )  # fmt: skip


def layer_suffixes(design: Design) -> dict[str, str]:
    """What names of layers end in, by parameter: classes are called anything."""
    return {name: f"_{safe}" for name, safe in serving_names(design.predictors).items()}


def _inputs(design: Design) -> dict[str, Tensor]:
    inputs: dict[str, Tensor] = {}
    taken, precise = set[str](), design.axis_columns
    for column, kind in design.columns.items():
        name = "rows" if column == ROWS else column.replace("/", "_") or "_"
        name = _free_name(name, taken)
        taken.add(name)
        shape = design.shapes.get(column, ())
        dtype = "float64" if column in precise else _DTYPES[kind]
        inputs[column] = keras.Input(shape=shape, name=name, dtype=dtype)
    return inputs


def _free_name(name: str, taken: set[str]) -> str:
    """The name, lengthened while a column or term has it already: Keras wants them all to differ."""
    while name in taken:
        name += "_"
    return name


def _expand_bases(
    design: Design,
    inputs: dict[str, Tensor],
    encoders: dict[str, tuple[RawColumns, Tensor]],
    free: Naming,
) -> Bases:
    if not design.features:
        return Bases([], {})
    pairs = [(feature.expression, feature.basis) for feature in design.features]
    used = {name: inputs[name] for e, _ in pairs for name in e.columns()}
    layer = Positions(pairs, name=free("positions"))
    places = layer(used)
    encoders["positions"] = layer, places
    groups: dict[tuple[Any, ...], list[int]] = {}
    for position, feature in enumerate(design.features):
        groups.setdefault(_group(feature, position), []).append(position)
    tensors: list[Functions] = []
    where: dict[int, tuple[int, int]] = {}
    for group, members in enumerate(groups.values()):
        tensors.append(_expansion(members, design, free)(places))
        where |= {position: (group, within) for within, position in enumerate(members)}
    return Bases(tensors, where)


def _group(feature: Feature, position: int) -> tuple[Any, ...]:
    """Features of one degree and shape of axis are expanded together; those of points each alone."""
    basis = feature.basis
    if basis.radial is not None:
        return (position, basis.kind)
    return None if basis.kind == "linear" else basis.degree, basis.kind == "cp"


def _expansion(members: list[int], design: Design, free: Naming) -> BasisExpansion | RadialExpansion:
    bases = [design.features[position].basis for position in members]
    columns = [design.place_columns[position].start for position in members]
    first = bases[0]
    if first.radial is not None:
        return RadialExpansion(columns[0], first.radial, name=free(f"basis_distances_{members[0]}"))
    degree = None if first.kind == "linear" else first.degree
    kind = "levels" if degree == 0 else "columns" if degree is None else f"splines_{degree}"
    cyclic = first.kind == "cp"
    return BasisExpansion(
        columns,
        [basis.size for basis in bases],
        degree,
        cyclic,
        first.is_straight_beyond,
        [len(basis.atoms) for basis in bases],
        name=free(f"basis_{'cyclic_' if cyclic else ''}{kind}"),
    )


def _design_columns(
    design: Design,
    inputs: dict[str, Tensor],
    encoders: dict[str, tuple[RawColumns, Tensor]],
    free: Naming,
) -> Tensor | None:
    """Design columns of all terms that have some, side by side as `Design.sources` says."""
    designs = [term.design_columns for term in design.terms if term.design_columns is not None]
    if not designs and design.features:
        return None
    used = {name: inputs[name] for own in designs for name in own.names}
    used = used or inputs  # no columns, of as many rows
    layer = ParametricColumns([own.config() for own in designs], name=free("parametric_columns"))
    columns = layer(used)
    encoders["columns"] = layer, columns
    return columns


def _encode_own(
    design: Design,
    inputs: dict[str, Tensor],
    encoders: dict[str, tuple[RawColumns, Tensor]],
    free: Naming,
) -> dict[str, list[Tensor]]:
    """What terms take from raw columns by layers of their own, by the name of the term."""
    found: dict[str, list[Tensor]] = {}
    for term in design.terms:
        for place, layer in enumerate(term.encoders(free)):
            tensor = layer({name: inputs[name] for name in sorted(term.raw_columns(design.features))})
            encoders[f"{term.name}_{place}"] = layer, tensor
            found.setdefault(term.name, []).append(tensor)
    return found


def _nothing(encoders: dict[str, tuple[RawColumns, Tensor]]) -> Tensor:
    """What a predictor without terms adds up, `(n, 0)`."""
    _, tensor = encoders.get("columns") or encoders["positions"]
    return tensor[:, :0]


def _offset(
    expressions: Sequence[Expression],
    key: str,
    name: str,
    inputs: dict[str, Tensor],
    encoders: dict[str, tuple[RawColumns, Tensor]],
) -> Tensor | None:
    if not expressions:
        return None
    used = {column: inputs[column] for expression in expressions for column in expression.columns()}
    layer = Offset(expressions, name=name)
    offset = layer(used)
    encoders[key] = layer, offset
    return offset


def start_networks(model: keras.Model, design: Design, networks: Mapping[str, Network]) -> None:
    """Let the networks of terms start from the weights that they are given with."""
    for term in design.terms:
        for layer, name in term.networks.items():
            if name in networks:
                model.get_layer(layer).set_weights(networks[name].weights)


def count_posterior(design: Design) -> int:
    """How many numbers the posterior of a design holds, but for small ones."""
    total = sum(layout.size**2 for layout in design.layout.values())
    means = design.function_means()
    for order in design.orders:
        shapes = factor_shapes(_order(order, means), order.groups)
        total += sum(prod(shape) for shape in shapes.values())
    return total


def build_posteriors(graph: Graph, design: Design, starts: int) -> dict[str, tuple[Posterior, Tensor]]:
    """The posterior of each predictor, by parameter of the family; predictors are independent there."""
    if len(design.predictors) == 1:
        return {name: build_posterior(graph, design.part(name), starts) for name in design.predictors}
    return {
        name: build_posterior(graph, design.part(name), starts, f"{POSTERIOR}{suffix}")
        for name, suffix in layer_suffixes(design).items()
    }


def build_posterior(
    graph: Graph, design: Design, starts: int, name: str = POSTERIOR
) -> tuple[Posterior, Tensor]:
    """The layer that holds the posterior of all coefficients, and the variance of the predictor.

    Args:
        graph: of the model.
        design: of one predictor.
        starts: of how many fits there is room for the factors.
        name: of the layer.
    """
    layout, means = design.layout.only, design.function_means()
    interactions = [
        {**_order(order, means), "features": [list(graph.bases.place[p]) for p in order.positions]}
        for order in layout.orders
    ]
    layer = Posterior(
        layout.intercept,
        [span.block.describe(graph.bases.place) for span in layout.spans],
        interactions,
        max((order.groups for order in design.with_starts(starts).orders), default=1),
        name=name,
    )
    return layer, layer(graph.bases.tensors, graph.columns)


def _order(order: InteractionOrder, means: Mapping[int, np.ndarray]) -> dict[str, Any]:
    """What the posterior must know of an order, but for where its features are in the graph."""
    own = [means[position] for position in order.positions if position in means]
    centred = all(np.linalg.norm(mean) < CENTRED for mean in own)
    return {
        "order": order.order,
        "rank": order.size,
        "transforms": [feature.transform for feature in order.features],
        "lambdas": max(len(feature.penalties) for feature in order.features),
        "widths": [feature.basis.width for feature in order.features],
        "means": [] if centred else own,
    }
