"""Fitted terms: frozen, and JSON in and out, so that a model needs no training data once it is built.

Terms name their features by position in `Design.features`: a basis that several terms use is
learned, stored and evaluated once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ahofm_keras.transforms import Expression, evaluate_expression

Array = Any
Namespace = Any


@dataclass(frozen=True)
class Term:
    """What all terms share.

    Args:
        label: as tables and predictions name it, e.g. `s(x1)`.
        name: of its Keras layer, e.g. `s_x1`.
    """

    kind: ClassVar[str]
    label: str
    name: str

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> Term:
        return cls(**{key: _as_tuple(value) for key, value in config.items() if key != "kind"})

    @property
    def column_labels(self) -> tuple[str, ...]:
        """Names of the term's columns in `predict(type="terms")`."""
        return (self.label,)


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class SmoothTerm(Term):
    """One smooth function of one feature.

    Args:
        feature: position in `Design.features`.
        smoothing: lambda.
        df: degrees of freedom at that lambda, by the model's definition.
        fixed: whether the user gave lambda (`sp=`), so that no solver chooses it.
    """

    kind: ClassVar[str] = "s"
    feature: int
    smoothing: float
    df: float
    fixed: bool = False

    @property
    def pure(self) -> bool:
        """A smooth is a pure tensor product of one margin."""
        return True

    @property
    def places(self) -> tuple[int, ...]:
        """Positions of its margins in `Design.features`."""
        return (self.feature,)

    @property
    def lambdas(self) -> tuple[float, ...]:
        """Lambda of each margin."""
        return (self.smoothing,)


@dataclass(frozen=True)
class TensorTerm(Term):
    """An exact tensor product: a surface of all products of its margins' functions.

    A `ti()` is pure: every one of its functions has mean zero along each margin. A `te()` holds the main
    effects, and all lower orders, beside that, with the same lambdas.

    Args:
        features: positions of the margins in `Design.features`.
        smoothing: lambda of each margin.
        df: degrees of freedom of each margin at that lambda.
        pure: whether it is a `ti()`.
        fixed: whether the user gave lambda (`sp=`), so that no solver chooses it.
    """

    kind: ClassVar[str] = "te"
    features: tuple[int, ...]
    smoothing: tuple[float, ...]
    df: tuple[float, ...]
    pure: bool
    fixed: bool = False

    @property
    def places(self) -> tuple[int, ...]:
        """Positions of its margins in `Design.features`."""
        return self.features

    @property
    def lambdas(self) -> tuple[float, ...]:
        """Lambda of each margin."""
        return self.smoothing


# What solvers take together: linear in its coefficients, with one quadratic penalty a margin.
PenalisedTerm = SmoothTerm | TensorTerm


@dataclass(frozen=True)
class Order:
    """The interactions of one order within an `InteractionTerm`.

    Args:
        order: d.
        rank: number of factors F_d.
        smoothing: lambda of each feature.
        df: degrees of freedom of each feature at that lambda.
        starts: number of fits that are averaged. The average of K fits of rank F is a fit of rank K F.
    """

    order: int
    rank: int
    smoothing: tuple[float, ...]
    df: tuple[float, ...]
    starts: int = 1

    @property
    def slots(self) -> int:
        """Number of factors that there is room for."""
        return self.rank * self.starts


@dataclass(frozen=True)
class InteractionTerm(Term):
    """All interactions of some features, of one or several orders.

    Args:
        features: positions in `Design.features`.
        orders: ascending.
        fixed: whether the user gave lambda (`sp=`), so that no solver chooses it.
    """

    kind: ClassVar[str] = "ahofm"
    features: tuple[int, ...]
    orders: tuple[Order, ...]
    fixed: bool = False

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> InteractionTerm:
        orders = tuple(
            Order(o["order"], o["rank"], tuple(o["smoothing"]), tuple(o["df"]), o.get("starts", 1))
            for o in config["orders"]
        )
        fixed = config.get("fixed", False)
        return cls(config["label"], config["name"], tuple(config["features"]), orders, fixed)

    @property
    def column_labels(self) -> tuple[str, ...]:
        return tuple(f"{self.label}[{order.order}]" for order in self.orders)

    def with_starts(self, starts: int) -> InteractionTerm:
        """The term with room for the average of several fits."""
        return replace(self, orders=tuple(replace(order, starts=starts) for order in self.orders))


@dataclass(frozen=True)
class Factor:
    """One factor of a linear term: a numeric expression, or the levels of a category."""

    expression: Expression
    levels: tuple[Any, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"expression": self.expression.to_json(), "levels": list(self.levels)}

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> Factor:
        return cls(Expression.from_json(config["expression"]), tuple(config["levels"]))


@dataclass(frozen=True)
class LinearTerm(Term):
    """A parametric term: columns that are products of the components of its factors.

    The columns are standardised inside, so that a coefficient of any unit is learned at one speed;
    without an intercept they are only scaled.

    Args:
        factors: of the product `a:b`.
        columns: for each column of the design, the component taken of each factor; -1: none.
        coefficients: name of each column, e.g. `group[b]`.
        centre: subtracted from each column.
        scale: each column is divided by.
    """

    kind: ClassVar[str] = "linear"
    factors: tuple[Factor, ...]
    columns: tuple[tuple[int, ...], ...]
    coefficients: tuple[str, ...]
    centre: tuple[float, ...]
    scale: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            **super().to_json(),
            "factors": [factor.to_json() for factor in self.factors],
        }

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> LinearTerm:
        factors = tuple(Factor.from_json(factor) for factor in config["factors"])
        plain = {k: _as_tuple(v) for k, v in config.items() if k not in ("kind", "factors")}
        return cls(factors=factors, **plain)


@dataclass(frozen=True)
class OffsetTerm(Term):
    """An expression added to the predictor as it is, with no coefficient."""

    kind: ClassVar[str] = "offset"
    expression: Expression

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "expression": self.expression.to_json()}

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> OffsetTerm:
        return cls(config["label"], config["name"], Expression.from_json(config["expression"]))

    def evaluate(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        return evaluate_expression(self.expression, columns)


TERMS: dict[str, type[Term]] = {
    term.kind: term for term in (LinearTerm, SmoothTerm, TensorTerm, InteractionTerm, OffsetTerm)
}
