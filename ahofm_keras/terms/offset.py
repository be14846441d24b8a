"""Offsets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ahofm_keras.errors import DataError
from ahofm_keras.formula import TermCall, TermSpec
from ahofm_keras.formula.options import calls_of
from ahofm_keras.terms.base import Term, register_term
from ahofm_keras.terms.features import feature_values
from ahofm_keras.terms.groups import GroupReader
from ahofm_keras.terms.learning import Learning
from ahofm_keras.transforms import Expression, learn_expression


@register_term
@dataclass(frozen=True)
class OffsetTerm(Term):
    """An expression added to the predictor as it is, with no coefficient."""

    kind: ClassVar[str] = "offset"
    word: ClassVar[str] = "offset"
    calls: ClassVar[Mapping[str, TermCall]] = calls_of("offset")
    expression: Expression

    @classmethod
    def learn(cls, spec: TermSpec, learning: Learning) -> OffsetTerm:
        values = feature_values(spec.features[0], learning.columns, spec)
        if values.dtype.kind != "f":
            raise DataError(f"`{spec.label}` needs numbers.")
        learned = learn_expression(spec.features[0], learning.columns)
        return cls(spec.label, learning.name(spec.label), learned)

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "expression": self.expression.to_json()}

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> OffsetTerm:
        return cls(config["label"], config["name"], Expression.from_json(config["expression"]))

    @property
    def offset(self) -> Expression:
        return self.expression

    @property
    def column_labels(self) -> tuple[str, ...]:
        return ()

    def connect(self, inputs: Any) -> None:
        return None  # offsets are added up before the graph's trainable half

    def add_groups(self, reader: GroupReader) -> None:
        pass
