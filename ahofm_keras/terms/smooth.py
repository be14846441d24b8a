"""Smooth functions of one feature, `s(x)`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ahofm_keras.errors import warn
from ahofm_keras.formula import TermCall, TermSpec
from ahofm_keras.formula.options import calls_of
from ahofm_keras.layers import ShapedSmooth, Smooth
from ahofm_keras.terms.base import Tensor, Term, register_term
from ahofm_keras.terms.blocks import ProductColumns, Sources
from ahofm_keras.terms.features import Feature
from ahofm_keras.terms.functional import as_functional
from ahofm_keras.terms.groups import PRODUCTS, GroupReader
from ahofm_keras.terms.learning import Learning
from ahofm_keras.terms.smoothing import DEFAULT_DF, SURFACE_DF


@register_term
@dataclass(frozen=True)
class SmoothTerm(Term):
    """One smooth function of one feature.

    Args:
        feature: position in `Design.features`.
        smoothing: lambda.
        df: degrees of freedom at that lambda, by the model's definition.
        fixed: whether the user gave lambda (`sp=`), so that no solver chooses it.
        shape: one of `shapes.SHAPES`, that the function is held in; empty where it is free.
    """

    kind: ClassVar[str] = "s"
    word: ClassVar[str] = "smooth"
    calls: ClassVar[Mapping[str, TermCall]] = calls_of("s")
    feature: int
    smoothing: float
    df: float
    fixed: bool = False
    shape: str = ""

    @classmethod
    def learn(cls, spec: TermSpec, learning: Learning) -> SmoothTerm:
        feature, options = spec.features[0], spec.options
        unused = [option for option in ("shape", "pc") if option in options]
        if unused and learning.is_category(feature):
            raise spec.error(f"`{unused[0]}` has no meaning for the category `{feature}`.")
        advice = f'write `s({feature}, bs="re")` or `{feature}`'
        learning.check_category(spec, feature, options, advice)
        # A given lambda is that of a penalty that other software can be given.
        asked = {"atoms": False, **options} if "sp" in options else options
        place = learning.pool.position(feature, learning.request(feature, asked), spec)
        if options.get("bs") == "re" and not learning.is_category(feature):
            _warn_of_a_measurement(spec, learning.pool.features[place])
        if "sp" in options:
            smoothing = float(options["sp"])
        else:
            wanted, default = [options.get("df")], usual_df(spec)
            smoothing = learning.smoother.smoothing([place], wanted, spec, "k" in options, default)[0]
        if "shape" in options and not smoothing and not learning.pool.orthogonal(place).supported.all():
            # Nothing but its neighbours holds a function without rows; in a shape these hang on it.
            raise spec.error(
                f"`{spec.label}` is not penalised, and some of its basis functions have no row: its "
                "shape cannot be held. Choose a smaller `k`, or `sp` above 0."
            )
        reached = learning.smoother.reached(place, smoothing)
        name = learning.name(spec.label)
        shape = options.get("shape", "")
        return cls(spec.label, name, place, smoothing, reached, "sp" in options, shape)

    @classmethod
    def expand(cls, spec: TermSpec, learning: Learning) -> list[TermSpec]:
        return [as_functional(spec, learning) or spec]

    @classmethod
    def degrees_asked(cls, spec: TermSpec) -> list[float]:
        return [float(spec.options.get("df") or usual_df(spec))] * len(spec.features)

    @classmethod
    def is_main_effect(cls, spec: TermSpec) -> bool:
        return len(spec.inputs) == 1

    @property
    def features(self) -> tuple[int, ...]:
        return (self.feature,)

    @property
    def holds_main(self) -> bool:
        return True

    def subsets(self) -> list[tuple[int, ...]]:
        return [self.features]

    def linear_block(self, sources: Sources) -> ProductColumns:
        """A smooth is a tensor product of one margin."""
        features = (sources.features[self.feature],)
        return ProductColumns(
            self.features,
            features,
            (self.smoothing,),
            (self.df,),
            pure=True,
            fixed=self.fixed,
            shape=self.shape,
        )

    def with_smoothing(self, smoothing: tuple[float, ...], fixed: bool) -> SmoothTerm:
        return replace(self, smoothing=smoothing[0], fixed=fixed)

    def connect(self, inputs: Any) -> Tensor:
        ((_, within),), (basis,) = inputs.bases_of(self.features)
        feature = inputs.sources.features[self.feature]
        given = within, feature.transform, feature.eigenvalues, self.smoothing
        if self.shape:
            return ShapedSmooth(*given, shape=self.shape, name=self.name)(basis)
        return Smooth(*given, feature.ridge, name=self.name)(basis)

    def add_groups(self, reader: GroupReader) -> None:
        coordinates = reader.coordinates(self.name)
        kept = np.arange(len(coordinates))
        source = (self.name, 0)
        reader.add_products(1, self.features, (coordinates[:, None],), source, PRODUCTS, kept)


def _warn_of_a_measurement(spec: TermSpec, feature: Feature) -> None:
    """Numbers that stand for levels are whole; others are nearly always measured."""
    if all(float(level).is_integer() for level in feature.basis.levels):
        return
    name = feature.label
    warn(
        f"`{spec.label}` takes each of the {feature.basis.size} different values of the number `{name}` "
        f"as a level with an effect of its own. A smooth function of it is `s({name})`, a line `{name}`."
    )


def usual_df(spec: TermSpec) -> float:
    """Degrees of freedom where none are asked for: of points those of a surface."""
    return SURFACE_DF if spec.features[0].is_point else DEFAULT_DF
