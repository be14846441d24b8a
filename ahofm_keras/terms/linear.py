"""Linear terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

from ahofm_keras.formula import TermSpec
from ahofm_keras.layers import Linear
from ahofm_keras.terms.base import Tensor, Term, as_tuple, register_term
from ahofm_keras.terms.blocks import DesignColumns, Sources
from ahofm_keras.terms.groups import GroupReader
from ahofm_keras.terms.learning import Learning
from ahofm_keras.terms.parametric import Factor, Parametric
from ahofm_keras.transforms import Expression


@register_term
@dataclass(frozen=True)
class LinearTerm(Term):
    """A parametric term, `x`, `group`, `a:b`: its coefficients are not penalised.

    Args:
        factors, columns, coefficients, centre, scale: of its `Parametric` design columns.
    """

    kind: ClassVar[str] = "linear"
    word: ClassVar[str] = "linear"
    factors: tuple[Factor, ...]
    columns: tuple[tuple[int, ...], ...]
    coefficients: tuple[str, ...]
    centre: tuple[float, ...]
    scale: tuple[float, ...]

    @classmethod
    def learn(cls, spec: TermSpec, learning: Learning) -> LinearTerm:
        design = learning.coder.code(spec)
        name = learning.name(f"linear_{spec.label}")
        return cls(
            spec.label, name, design.factors, design.columns, design.coefficients, design.centre,
            design.scale,
        )  # fmt: skip

    @classmethod
    def is_main_effect(cls, spec: TermSpec) -> bool:
        return len(spec.features) == 1

    def to_json(self) -> dict[str, Any]:
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**own, "kind": self.kind, "factors": [f.to_json() for f in self.factors]}

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> LinearTerm:
        factors = tuple(Factor.from_json(factor) for factor in config["factors"])
        plain = {k: as_tuple(v) for k, v in config.items() if k not in ("kind", "factors")}
        return cls(factors=factors, **plain)

    @cached_property
    def parametric(self) -> Parametric:
        return Parametric(self.factors, self.columns, self.coefficients, self.centre, self.scale)

    @property
    def lines(self) -> tuple[Expression, ...]:
        return (self.factors[0].expression,) if len(self.factors) == 1 else ()

    def linear_block(self, sources: Sources) -> DesignColumns | None:
        return DesignColumns(self.parametric, sources.column_slices[self.name])

    def connect(self, inputs: Any) -> Tensor:
        own = inputs.sources.column_slices[self.name]
        return Linear(own.start, own.stop, name=self.name)(inputs.columns)

    def add_groups(self, reader: GroupReader) -> None:
        reader.add_columns(self.parametric, self.name)
