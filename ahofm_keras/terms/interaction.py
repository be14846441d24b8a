"""All interactions of some features: `ahofm()` of smooth functions, `hofm()` of straight lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from ahofm_keras.formula import TermCall, TermSpec
from ahofm_keras.formula.options import calls_of
from ahofm_keras.formula.orders import interaction_orders, is_automatic_order
from ahofm_keras.layers import FactorizedInteraction
from ahofm_keras.terms.base import TERMS, Tensor, Term, register_term
from ahofm_keras.terms.blocks import InteractionOrder, Sources
from ahofm_keras.terms.features import Request
from ahofm_keras.terms.groups import FACTORS, GroupReader
from ahofm_keras.terms.learning import Learning, bare
from ahofm_keras.terms.rank import USUAL_RANK, group_size, is_automatic, ranks
from ahofm_keras.terms.smoothing import DEFAULT_DF
from ahofm_keras.terms.term_options import basis_options, df_by_order, option_of, with_own_smooth
from ahofm_keras.transforms import Expression

DEFAULT_RIDGE = 1.0


@dataclass(frozen=True)
class Order:
    """The interactions of one order within an `InteractionTerm`.

    Args:
        order: d.
        rank: number of factors F_d, at most, of one fit.
        smoothing: lambda of each feature.
        df: degrees of freedom of each feature at that lambda.
        automatic: whether the data chooses the rank, up to this one.
        groups: number of groups of factors that there is room for. The average of K fits of G groups is
            a fit of K G groups.
        optional: whether the data chooses if there are factors at all.
    """

    order: int
    rank: int
    smoothing: tuple[float, ...]
    df: tuple[float, ...]
    automatic: bool = False
    groups: int = 1
    optional: bool = False

    @property
    def size(self) -> int:
        """Number of factors of a group."""
        return USUAL_RANK if self.automatic else group_size(self.rank)

    @property
    def groups_of_fit(self) -> int:
        """Number of groups that a fit may have."""
        return -(-self.rank // self.size)

    @property
    def started(self) -> int:
        """Number of factors that mini-batches learn: they cannot tell how many are needed."""
        if self.optional:
            return 0
        return self.size if self.automatic else self.rank


@register_term
@dataclass(frozen=True)
class InteractionTerm(Term):
    """All interactions of some features, of one or several orders, of smooth functions.

    Args:
        members: positions of the features in `Design.features`.
        orders: ascending.
        fixed: whether the user gave lambda (`sp=`), so that no solver chooses it.
    """

    kind: ClassVar[str] = "ahofm"
    word: ClassVar[str] = "interaction"
    calls: ClassVar[Mapping[str, TermCall]] = calls_of("ahofm")
    members: tuple[int, ...]
    orders: tuple[Order, ...]
    fixed: bool = False

    @classmethod
    def learn(cls, spec: TermSpec, learning: Learning) -> InteractionTerm:
        options = spec.options
        orders = interaction_orders(options, len(spec.features))
        degrees = [df_by_order(spec, feature, orders) for feature in spec.features]
        places = [_basis(spec, feature, learning) for feature in spec.features]
        fitted = []
        for order, rank in ranks(options, orders, len(spec.features), learning.rows):
            wanted = [df[order] for df in degrees]
            smoothing = learning.smoother.smoothing(places, wanted, spec, "k" in options)
            reached = tuple(map(learning.smoother.reached, places, smoothing))
            automatic, optional = is_automatic(options), is_optional(options, order)
            fitted.append(Order(order, rank, tuple(smoothing), reached, automatic, optional=optional))
        own = cls(spec.label, learning.name(spec.label), tuple(places), tuple(fitted))
        return own.with_starts(1)

    @classmethod
    def degrees_asked(cls, spec: TermSpec) -> list[float]:
        asked = [option_of(spec, "df", feature) for feature in spec.features]
        return [float(max(df) if isinstance(df, tuple) else df or DEFAULT_DF) for df in asked]

    @classmethod
    def expand(cls, spec: TermSpec, learning: Learning) -> list[TermSpec]:
        """A main effect stands once: the formula's own, else the first that an interaction adds."""
        if not spec.options.get("main", True):
            return [spec]
        own = {
            bare(feature)
            for term in learning.formula.terms
            if TERMS[term.kind].is_main_effect(term)
            for feature in term.features
        }
        missing = [f for f in spec.features if bare(f) not in own | learning.main_effects]
        learning.main_effects.update(map(bare, missing))
        return [*(cls.main_effect(spec, feature, learning) for feature in missing), spec]

    @classmethod
    def main_effect(cls, spec: TermSpec, feature: Expression, learning: Learning) -> TermSpec:
        """The main effect that the interaction adds for one of its features."""
        options: dict[str, Any] = {"center": spec.options.get("center", True)}
        if not learning.is_category(feature):
            options |= basis_options(spec, feature)
        df = option_of(spec, "df", feature)
        if df is not None:
            options["df"] = df[0] if isinstance(df, tuple) else df
        return replace(spec, kind="s", features=(feature,), options=options, call="s")

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> InteractionTerm:
        orders = tuple(
            Order(
                o["order"], o["rank"], tuple(o["smoothing"]), tuple(o["df"]), o["automatic"],
                o["groups"], o["optional"],
            )
            for o in config["orders"]
        )  # fmt: skip
        fixed = config.get("fixed", False)
        return cls(config["label"], config["name"], tuple(config["members"]), orders, fixed)

    @property
    def features(self) -> tuple[int, ...]:
        return self.members

    @property
    def column_labels(self) -> tuple[str, ...]:
        return tuple(f"{self.label}[{order.order}]" for order in self.orders)

    def with_starts(self, starts: int) -> Self:
        return self.with_groups([starts * order.groups_of_fit for order in self.orders])

    def with_groups(self, counts: Sequence[int]) -> Self:
        own = zip(self.orders, counts, strict=True)
        return replace(self, orders=tuple(replace(order, groups=count) for order, count in own))

    def factor_blocks(self, sources: Sources) -> tuple[InteractionOrder, ...]:
        features = tuple(sources.features[place] for place in self.members)
        return tuple(
            InteractionOrder(
                self.name, label, index, own.order, own.rank, own.size, own.groups, own.automatic,
                own.optional, self.members, features, own.smoothing, own.df, self.fixed,
            )
            for index, (label, own) in enumerate(zip(self.column_labels, self.orders, strict=True))
        )  # fmt: skip

    def connect(self, inputs: Any) -> Tensor:
        places, tensors = inputs.bases_of(self.members)
        features = [inputs.sources.features[position] for position in self.members]
        layer = FactorizedInteraction(
            places,
            [feature.transform for feature in features],
            [feature.eigenvalues for feature in features],
            [
                {
                    "order": order.order,
                    "started": order.started,
                    "slots": inputs.starts * order.groups_of_fit * order.size,
                    "smoothing": list(order.smoothing),
                }
                for order in self.orders
            ],
            ridges=[feature.ridge for feature in features],
            seed=inputs.next_seed(),
            name=self.name,
        )
        return layer(tensors)

    def add_groups(self, reader: GroupReader) -> None:
        widths = [len(reader.model.design.features[place].eigenvalues) for place in self.members]
        for index, order in enumerate(self.orders):
            values = reader.coordinates(self.name, index)
            kept = np.flatnonzero(np.abs(values).max(axis=(0, 1)) > 0)
            factors = tuple(values[j, :width][:, kept] for j, width in enumerate(widths))
            source = (self.name, index)
            reader.add_products(order.order, self.members, factors, source, FACTORS, kept)


@register_term
@dataclass(frozen=True)
class LinearInteractionTerm(InteractionTerm):
    """All interactions of straight lines and levels: a factorization machine, with a ridge penalty."""

    kind: ClassVar[str] = "hofm"
    calls: ClassVar[Mapping[str, TermCall]] = calls_of("hofm")

    @classmethod
    def learn(cls, spec: TermSpec, learning: Learning) -> LinearInteractionTerm:
        orders = interaction_orders(spec.options, len(spec.features))
        places = [
            learning.pool.position(
                feature,
                Request("re", center=False) if learning.is_category(feature) else Request("linear"),
                spec,
            )
            for feature in spec.features
        ]
        ridge = float(spec.options.get("sp", DEFAULT_RIDGE))
        reached = tuple(learning.smoother.reached(place, ridge) for place in places)
        fitted = tuple(
            Order(
                order, rank, (ridge,) * len(places), reached, is_automatic(spec.options),
                optional=is_optional(spec.options, order),
            )
            for order, rank in ranks(spec.options, orders, 0, learning.rows)
        )  # fmt: skip
        name = learning.name(spec.label)
        return cls(spec.label, name, tuple(places), fitted, "sp" in spec.options).with_starts(1)

    @classmethod
    def main_effect(cls, spec: TermSpec, feature: Expression, learning: Learning) -> TermSpec:
        return replace(spec, kind="linear", features=(feature,), options={}, call="")


def is_optional(options: Mapping[str, Any], order: int) -> bool:
    """Whether the data chooses if there are interactions of an order; pairs are always fitted."""
    return is_automatic_order(options) and order > 2


def _basis(spec: TermSpec, feature: Expression, learning: Learning) -> int:
    """The feature's basis: what the interaction does not say is as in its own `s()`, cyclic say."""
    asked = {"bs": option_of(spec, "bs", feature) or "re"}
    learning.check_category(spec, feature, asked, 'leave its `bs` out, or use "re"')
    options = with_own_smooth(spec, feature, learning.own_smooth(feature))
    options["center"] = spec.options.get("center", True)
    return learning.pool.position(feature, learning.request(feature, options), spec)
