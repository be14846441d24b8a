"""A user's Keras network as a term: `deep(x1, x2, net="name")`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from keras import ops

from ahofm_keras.errors import did_you_mean
from ahofm_keras.formula import TermCall, TermSpec
from ahofm_keras.formula.options import calls_of
from ahofm_keras.layers import BlockColumns, NetInput, OrthogonalComplement
from ahofm_keras.terms.base import Tensor, Term, as_tuple, register_term
from ahofm_keras.terms.features import Feature, constant_column, feature_values, find_levels
from ahofm_keras.terms.groups import GroupReader
from ahofm_keras.terms.layout import Span
from ahofm_keras.terms.learning import Learning
from ahofm_keras.terms.networks import Shape, make_network
from ahofm_keras.terms.parametric import Factor
from ahofm_keras.transforms import Expression, learn_expression

ALL = "all"


@dataclass(frozen=True)
class NetPart:
    """What a feature gives to an input of a network.

    Args:
        expression: of raw columns.
        levels: of a category, which has an indicator per level.
        centre, scale: a number is standardised by.
        low, high: ends of its training range.
        shape: of arrays, which go in as they are; () of all others.
    """

    expression: Expression
    levels: tuple[Any, ...] = ()
    centre: float = 0.0
    scale: float = 1.0
    low: float = 0.0
    high: float = 0.0
    shape: tuple[int, ...] = ()

    @property
    def width(self) -> int | None:
        """Number of columns side by side; None of arrays of more than one axis."""
        if len(self.shape) > 1:
            return None
        return self.shape[0] if self.shape else len(self.levels) or 1

    def to_json(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "expression": self.expression.to_json(),
            "levels": list(self.levels),
            "shape": list(self.shape),
        }

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> NetPart:
        rest = {key: as_tuple(value) for key, value in config.items() if key != "expression"}
        return cls(Expression.from_json(config["expression"]), **rest)


@dataclass(frozen=True)
class DeepTerm(Term):
    """A network on columns and arrays. Its weights are in no block: mini-batches fit it.

    Args:
        net: name of the network.
        config: of the network, see `Network`.
        layer: its name in the model's graph.
        inputs: the parts that fill each input of the network.
        shapes: of a row of each input.
        orthogonalize: whether what structured terms of the same features (`"all"`: all terms) can say is
            theirs after a fit.
    """

    kind: ClassVar[str] = "deep"
    word: ClassVar[str] = "network"
    calls: ClassVar[Mapping[str, TermCall]] = calls_of("deep")
    net: str
    config: str
    layer: str
    inputs: tuple[tuple[NetPart, ...], ...]
    shapes: tuple[Shape, ...]
    orthogonalize: bool | str = True

    @classmethod
    def learn(cls, spec: TermSpec, learning: Learning) -> DeepTerm:
        asked = spec.options["net"]
        network = learning.networks.get(asked)
        if network is None:
            known = ", ".join(f"`{name}`" for name in learning.networks) or "none"
            hint = did_you_mean(asked, learning.networks)
            raise spec.error(
                f"`nets` has no network `{asked}`.{hint} Given beside the data: {known}; write "
                f'`AdditiveModel(formula, data, nets={{"{asked}": keras_model}})`.'
            )
        parts = [_learn_part(feature, learning, spec) for feature in spec.features]
        name = learning.name(spec.label)
        inputs, shapes = _fill(parts, network.inputs, asked, spec)
        wanted = spec.options.get("orthogonalize", True)
        layer = learning.name(f"{spec.label} net")
        return cls(spec.label, name, asked, network.config, layer, inputs, shapes, wanted)

    def to_json(self) -> dict[str, Any]:
        inputs = [[part.to_json() for part in own] for own in self.inputs]
        return {**super().to_json(), "inputs": inputs}

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> DeepTerm:
        inputs = tuple(tuple(map(NetPart.from_json, own)) for own in config["inputs"])
        rest = {k: as_tuple(v) for k, v in config.items() if k not in ("kind", "inputs")}
        return cls(inputs=inputs, **rest)

    @property
    def parts(self) -> tuple[NetPart, ...]:
        """Of all inputs."""
        return tuple(part for own in self.inputs for part in own)

    @property
    def raw_factors(self) -> tuple[Factor, ...]:
        return tuple(Factor(part.expression, part.levels) for part in self.parts if not part.shape)

    @property
    def arrays(self) -> dict[str, tuple[int, ...]]:
        return {part.expression.arguments[0]: part.shape for part in self.parts if part.shape}

    @property
    def networks(self) -> dict[str, str]:
        return {self.layer: self.net}

    def encoders(self, free: Callable[[str], str]) -> tuple[NetInput, ...]:
        filled = zip(self.inputs, self.shapes, strict=True)
        return tuple(
            NetInput([part.to_json() for part in own], shape, name=free(f"{self.name}_input_{place}"))
            for place, (own, shape) in enumerate(filled)
        )

    def connect(self, inputs: Any) -> Tensor:
        network = make_network(self.config, self.layer)
        given = [
            tensor if tensor.dtype == own.dtype else ops.cast(tensor, own.dtype)
            for tensor, own in zip(inputs.encoded[self.name], network.inputs, strict=True)
        ]
        output = network(given[0] if len(given) == 1 else given)
        blocks = [
            {**span.block.describe(inputs.bases.place), "kept": span.block.leading.tolist()}
            for span in inputs.spans
            if self.takes_out(span, inputs.sources.features)
        ]
        columns = None
        if blocks:
            columns = BlockColumns(blocks, name=inputs.free(f"{self.name}_columns"))(
                inputs.bases.tensors, inputs.columns
            )
        centred = bool(self.orthogonalize) and inputs.intercept
        size = sum(len(block["kept"]) for block in blocks)
        complement = OrthogonalComplement(size, centred, name=self.name)
        inputs.complements[self.name] = complement, columns
        return complement(output, columns)

    def takes_out(self, span: Span, features: Sequence[Feature]) -> bool:
        if span.block.shape:  # what is added to its coefficients might break the shape
            return False
        if self.orthogonalize == ALL:
            return True
        own = {name for part in self.parts for name in part.expression.columns()}
        return bool(self.orthogonalize) and bool(own & span.term.raw_columns(features))

    @property
    def axis(self) -> NetPart | None:
        parts = self.parts
        if len(parts) > 1 or parts[0].shape:
            return None
        inner = parts[0].expression
        return parts[0] if inner.is_column or inner.is_category else None

    def add_groups(self, reader: GroupReader) -> None:
        layer = reader.model.get_layer(self.name)
        reader.add_opaque(self.label, self.name, float(layer.mean), float(layer.variance))


register_term(DeepTerm)


def _learn_part(feature: Expression, learning: Learning, spec: TermSpec) -> NetPart:
    rows = learning.columns[feature.arguments[0]] if feature.is_column else np.zeros(0)
    if rows.ndim > 1:
        return NetPart(feature, shape=rows.shape[1:])
    values = feature_values(feature, learning.columns, spec)
    if feature.is_category or values.dtype == object:
        levels = find_levels(feature, values, learning.coder.levels)
        if len(levels) < 2:
            raise constant_column(feature, spec)
        return NetPart(feature, levels)
    numbers = values.astype(float)
    if np.ptp(numbers) == 0:
        raise constant_column(feature, spec)
    learned = learn_expression(feature, learning.columns)
    centre, spread = float(numbers.mean()), float(numbers.std())
    return NetPart(learned, (), centre, spread, float(numbers.min()), float(numbers.max()))


def _fill(
    parts: Sequence[NetPart], shapes: Sequence[Shape], net: str, spec: TermSpec
) -> tuple[tuple[tuple[NetPart, ...], ...], tuple[Shape, ...]]:
    """The features, in order, fill the inputs of the network in order.

    An input that is a vector takes columns, indicators and vectors until it is full; one of more axes
    takes the arrays of one column.
    """
    left, inputs, found = list(parts), list[tuple[NetPart, ...]](), list[Shape]()
    for place, shape in enumerate(shapes):
        taken: list[NetPart] = []
        if len(shape) > 1:
            if left and _fits(left[0].shape, shape):
                taken.append(left.pop(0))
        else:
            wanted = shape[0] if shape else 1
            width = 0
            while left and left[0].width is not None and (wanted is None or width < wanted):
                width += left[0].width
                taken.append(left.pop(0))
            if wanted is not None and width != wanted:
                taken = []
        if not taken:
            raise _misfit(parts, shapes, net, spec, place)
        inputs.append(tuple(taken))
        widths = sum(part.width or 0 for part in taken)
        found.append((widths,) if len(shape) == 1 else shape and taken[0].shape)
    if left:
        raise _misfit(parts, shapes, net, spec, None)
    return tuple(inputs), tuple(found)


def _fits(shape: Shape, wanted: Shape) -> bool:
    return len(shape) == len(wanted) and all(
        own == other for own, other in zip(shape, wanted, strict=True) if other is not None
    )


def _misfit(
    parts: Sequence[NetPart], shapes: Sequence[Shape], net: str, spec: TermSpec, place: int | None
) -> Exception:
    given = ", ".join(
        f"`{part.expression}` {f'arrays of the shape {part.shape}' if part.shape else part.width}"
        for part in parts
    )
    wanted = ", ".join(str(tuple(shape)) for shape in shapes)
    where = (
        "features are left over"
        if place is None
        else f"input {place + 1} cannot be filled"
        if len(shapes) > 1
        else "its input cannot be filled"
    )
    return spec.error(
        f"The network `{net}` takes rows of the shape {wanted}, which the features do not fit: {where}. "
        "In order, each number is 1 column, a category one per level, arrays are as they are.\n"
        f"    Received: {given}."
    )
