"""Exact tensor products, `te()` and `ti()`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar

from ahofm_keras.formula import TermCall, TermSpec
from ahofm_keras.formula.margins import margin_option, said_of_margin
from ahofm_keras.formula.options import DISTANCES, LINEAR, calls_of
from ahofm_keras.layers import TensorProduct
from ahofm_keras.tensors import count_products, margin_blocks, split_tensor, tensor_shape
from ahofm_keras.terms.base import Tensor, Term, register_term
from ahofm_keras.terms.blocks import ProductColumns, Sources
from ahofm_keras.terms.features import Feature, Request
from ahofm_keras.terms.groups import PRODUCTS, GroupReader
from ahofm_keras.terms.learning import Learning, asked_atoms
from ahofm_keras.terms.smoothing import SURFACE_DF
from ahofm_keras.terms.term_options import basis_form
from ahofm_keras.transforms import Expression

# A layer and its penalty still work with so many; what is beyond is a slip, or a case for `ahofm()`.
MOST_PRODUCTS = 10_000


@register_term
@dataclass(frozen=True)
class TensorTerm(Term):
    """An exact tensor product: a surface of all products of its margins' functions.

    A `ti()` is pure: every one of its functions has mean zero along each margin. A `te()` holds the main
    effects, and all lower orders, beside that, with the same lambdas.

    Args:
        margins: positions of the margins in `Design.features`.
        smoothing: lambda of each margin.
        df: degrees of freedom of each margin at that lambda.
        pure: whether it is a `ti()`.
        fixed: whether the user gave lambda (`sp=`), so that no solver chooses it.
    """

    kind: ClassVar[str] = "te"
    word: ClassVar[str] = "tensor"
    calls: ClassVar[Mapping[str, TermCall]] = calls_of("te")
    has_small_bases: ClassVar[bool] = True
    margins: tuple[int, ...]
    smoothing: tuple[float, ...]
    df: tuple[float, ...]
    pure: bool
    fixed: bool = False

    @classmethod
    def learn(cls, spec: TermSpec, learning: Learning) -> TensorTerm:
        """Each margin has its own lambda, from its own df."""
        options, count = spec.options, len(spec.features)
        requests = [_margin_request(spec, margin, learning) for margin in range(count)]
        places = [
            learning.pool.position(*pair, spec) for pair in zip(spec.features, requests, strict=True)
        ]
        _check_products(spec, [learning.pool.features[place] for place in places])
        smoothing = []
        for margin, (place, df) in enumerate(zip(places, margin_degrees(spec), strict=True)):
            given = margin_option(options, "sp", margin)
            if given is None and learning.pool.features[place].basis.kind == LINEAR:
                given = 0.0  # a slope is not held, as those of linear terms
            if given is None:
                sized = margin_option(options, "k", margin) is not None
                default = default_margin_df(count, spec.features[margin])
                given = learning.smoother.smoothing([place], [df], spec, sized, default)[0]
            smoothing.append(float(given))
        reached = tuple(map(learning.smoother.reached, places, smoothing))
        return cls(
            spec.label, learning.name(spec.label), tuple(places), tuple(smoothing), reached,
            options["pure"], "sp" in options,
        )  # fmt: skip

    @classmethod
    def degrees_asked(cls, spec: TermSpec) -> list[float]:
        count, pairs = len(spec.features), zip(margin_degrees(spec), spec.features, strict=True)
        return [df or default_margin_df(count, feature) for df, feature in pairs]

    @classmethod
    def is_main_effect(cls, spec: TermSpec) -> bool:
        return not spec.options["pure"] and spec.by is None

    @property
    def features(self) -> tuple[int, ...]:
        return self.margins

    @property
    def is_surface(self) -> bool:
        return True

    @property
    def holds_main(self) -> bool:
        return not self.pure

    def subsets(self) -> list[tuple[int, ...]]:
        count = len(self.margins)
        sizes = [count] if self.pure else range(1, count + 1)
        return [subset for size in sizes for subset in combinations(self.margins, size)]

    def linear_block(self, sources: Sources) -> ProductColumns:
        features = tuple(sources.features[place] for place in self.margins)
        return ProductColumns(self.margins, features, self.smoothing, self.df, self.pure, self.fixed)

    def with_smoothing(self, smoothing: tuple[float, ...], fixed: bool) -> TensorTerm:
        return replace(self, smoothing=smoothing[: len(self.margins)], fixed=fixed)

    def connect(self, inputs: Any) -> Tensor:
        places, tensors = inputs.bases_of(self.margins)
        features = [inputs.sources.features[position] for position in self.margins]
        layer = TensorProduct(
            places,
            [feature.transform for feature in features],
            [feature.eigenvalues for feature in features],
            self.smoothing,
            self.pure,
            ridges=[feature.ridge for feature in features],
            name=self.name,
        )
        return layer(tensors)

    def add_groups(self, reader: GroupReader) -> None:
        """A sum of products for each subset of margins that the term has functions of."""
        coordinates = reader.coordinates(self.name)
        for block in margin_blocks(coordinates.shape, self.pure):
            features = tuple(self.margins[margin] for margin in block.margins)
            factors = tuple(split_tensor(coordinates[block.index]))
            source, order = (self.name, 0), len(features)
            reader.add_products(order, features, factors, source, PRODUCTS, block.coefficients)


def default_margin_df(margins: int, feature: Expression) -> float:
    """Degrees of freedom of a margin where none are asked for; of points so many per coordinate."""
    return float(SURFACE_DF ** (1 / margins)) * len(feature.coordinates)


def margin_degrees(spec: TermSpec) -> list[float | None]:
    """Degrees of freedom that a tensor product asks of each margin, None where it does not say.

    A single df is split evenly: the product of the margins' df is the df that was asked for.
    """
    count, df = len(spec.features), spec.options.get("df")
    if df is None or isinstance(df, tuple):
        return [margin_option(spec.options, "df", place) for place in range(count)]
    if df <= 1:
        raise spec.error(
            f"`df` of `{spec.label}` must be above 1: it is split evenly over the margins, each of "
            f"which needs more than 1.\n    Received: df={df:g}."
        )
    return [float(df ** (1 / count))] * count


def _margin_request(spec: TermSpec, margin: int, learning: Learning) -> Request:
    """The basis of a margin: as the term asks, else of the kind that its own `s()` has (cyclic).

    Smaller than that of an `s()` where the user does not choose k: sizes multiply.
    """
    feature, said = spec.features[margin], said_of_margin(spec.options, margin)
    learning.check_category(spec, feature, said, 'leave its `bs` out, or use "re"')
    bs, knots, m = said.get("bs"), *(margin_option(spec.options, o, margin) for o in ("knots", "m"))
    atoms, own = margin_option(spec.options, "atoms", margin), learning.own_smooth(feature)
    if bs is None and knots is None and m is None and own is not None:
        bs, knots, m = (own.options.get(name) for name in ("bs", "knots", "m"))
        atoms = own.options.get("atoms") if atoms is None else atoms
    if bs == "mrf":
        return Request("mrf")
    if learning.is_category(feature) or bs == "re":
        return Request("re")
    size, reach = margin_option(spec.options, "k", margin), learning.reach[feature, True]
    if feature.is_point or bs in DISTANCES:
        return Request(bs or "tp", size, reach, margins=len(spec.features))
    if bs == LINEAR:
        return Request(LINEAR)
    (kind, degree, difference), margins = basis_form(bs, m), len(spec.features)
    # A circle has no ends. Given lambdas are those of a penalty that other software can be given.
    ends = kind == "ps" and "sp" not in spec.options
    return Request(
        kind,
        size,
        reach,
        knots or "adaptive",
        margins=margins,
        ends=ends,
        degree=degree,
        difference=difference,
        atoms=asked_atoms(kind, degree, atoms),
    )


def _check_products(spec: TermSpec, features: Sequence[Feature]) -> None:
    """Raise a `FormulaError` where a tensor product has more functions than any solver can take."""
    widths, pure = [len(feature.eigenvalues) for feature in features], spec.options["pure"]
    count = count_products(widths, pure)
    if count > MOST_PRODUCTS:
        listed = " x ".join(map(str, tensor_shape(widths, pure)))
        names = ", ".join(str(feature) for feature in spec.features)
        raise spec.error(
            f"`{spec.label}` has {count:,} coefficients ({listed}), more than {MOST_PRODUCTS:,}. Choose "
            f"a smaller `k` or merge levels; or write `ahofm({names})`, whose size is the sum of its "
            "features' and not their product."
        )
