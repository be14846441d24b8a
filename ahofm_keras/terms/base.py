"""What all terms share, and the registry of their kinds.

A term owns its behaviour: what a formula may say of it, what it learns from the training columns, its
Keras layer, its coefficients as solvers and the posterior see them, and its functions as readers of a
model see them. Nobody else asks which kind a term is of.

Terms name their features by position in `Design.features`: a basis that several terms use is learned,
stored and evaluated once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ahofm_keras.errors import DataError
from ahofm_keras.formula import TERM_CALLS, TermCall, TermSpec
from ahofm_keras.transforms import Expression

if TYPE_CHECKING:
    from ahofm_keras.layers.inputs import RawColumns
    from ahofm_keras.layers.weighted_sums import WeightedSums
    from ahofm_keras.terms.blocks import Columns, InteractionOrder, Sources
    from ahofm_keras.terms.features import Feature
    from ahofm_keras.terms.groups import GroupReader
    from ahofm_keras.terms.layout import Span
    from ahofm_keras.terms.learning import Learning
    from ahofm_keras.terms.parametric import Factor, Parametric

Tensor = Any


@dataclass(frozen=True)
class Term:
    """A fitted term: frozen, and JSON in and out, so that a model needs no training data once built.

    A new kind is a subclass with a `kind`, a `word`, its `calls`, `learn` and `connect`; `register_term`
    makes it known. With `linear_block` or `factor_blocks` all solvers can fit it, else mini-batches
    alone; with `add_groups` readers can take it apart.

    Args:
        label: as tables and predictions name it, e.g. `s(x1)`.
        name: of its Keras layer, e.g. `s_x1`.
    """

    kind: ClassVar[str]
    word: ClassVar[str]  # for tables
    calls: ClassVar[Mapping[str, TermCall]] = {}  # how a formula calls it
    has_small_bases: ClassVar[bool] = False  # bases of its own, because their sizes multiply
    label: str
    name: str

    # Learning ------------------------------------------------------------------------------------

    @classmethod
    def learn(cls, spec: TermSpec, learning: Learning) -> Term:
        """The term that a formula asks for, from the training columns."""
        raise NotImplementedError

    @classmethod
    def expand(cls, spec: TermSpec, learning: Learning) -> list[TermSpec]:
        """The specifications that one in the formula stands for, such as main effects and itself."""
        return [spec]

    @classmethod
    def degrees_asked(cls, spec: TermSpec) -> list[float]:
        """The largest degrees of freedom asked of each feature's basis; empty where it has none."""
        return []

    @classmethod
    def is_main_effect(cls, spec: TermSpec) -> bool:
        """Whether the term holds the main effect of each of its features."""
        return False

    # Files ---------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> Term:
        return cls(**{key: as_tuple(value) for key, value in config.items() if key != "kind"})

    # Rows ----------------------------------------------------------------------------------------

    @property
    def features(self) -> tuple[int, ...]:
        """Positions in the design of the features that it has a basis of."""
        return ()

    @property
    def parametric(self) -> Parametric | None:
        """Design columns of its own, computed from raw columns."""
        return None

    @property
    def design_columns(self) -> Parametric | WeightedSums | None:
        """What computes its design columns from raw columns, be they parametric or sums along arrays."""
        return self.parametric

    @property
    def weight_function(self) -> WeightedSums | None:
        """Sums along arrays that it consists of: w_ij f(t_ij) over j, for a function f of an axis."""
        return None

    @property
    def offset(self) -> Expression | None:
        """What it adds to the predictor as it is, with no coefficient."""
        return None

    @property
    def smooth_features(self) -> tuple[int, ...]:
        """Those of its features whose basis has a size that may be too small."""
        return self.features

    @property
    def raw_factors(self) -> tuple[Factor, ...]:
        """Numbers and categories that it takes from raw columns, other than by a basis."""
        return self.parametric.factors if self.parametric else ()

    @property
    def arrays(self) -> Mapping[str, tuple[int, ...]]:
        """Raw columns whose rows are arrays, with the shape of these."""
        return {}

    def encoders(self, free: Callable[[str], str]) -> Sequence[RawColumns]:
        """Layers of its own between raw columns and the trainable half of the graph.

        Args:
            free: gives a name that no other layer has.
        """
        return ()

    @property
    def networks(self) -> Mapping[str, str]:
        """The user's networks in it: name of the layer -> name that the user gave."""
        return {}

    def raw_columns(self, features: Sequence[Feature]) -> set[str]:
        """Names of the raw columns that it depends on.

        Args:
            features: of the design.
        """
        expressions = [factor.expression for factor in self.raw_factors]
        expressions += [features[place].expression for place in self.features]
        return {name for expression in expressions for name in expression.columns()} | {*self.arrays}

    def connect(self, inputs: Any) -> Tensor | None:
        """Its contribution `(n, c)` to the predictor, as a tensor of the model's graph.

        Args:
            inputs: a `TermInputs`, the tensors that it may start from.
        """
        raise NotImplementedError

    @property
    def column_labels(self) -> tuple[str, ...]:
        """Names of the term's columns in `predict(type="terms")`."""
        return (self.label,)

    def takes_out(self, span: Span, features: Sequence[Feature]) -> bool:
        """Whether it leaves to another term of its predictor what that can say too.

        Args:
            span: of that term in the linear block.
            features: of the design.
        """
        return False

    # Coefficients --------------------------------------------------------------------------------

    def linear_block(self, sources: Sources) -> Columns | None:
        """Its coefficients that the predictor is linear in, as columns of the linear block."""
        return None

    def factor_blocks(self, sources: Sources) -> tuple[InteractionOrder, ...]:
        """Its orders of factorized interactions, rising."""
        return ()

    def with_starts(self, starts: int) -> Term:
        """The term with room for the average of several fits."""
        return self

    def with_groups(self, counts: Sequence[int]) -> Term:
        """The term with room for so many groups of factors in each of its orders."""
        return self

    def with_smoothing(self, smoothing: tuple[float, ...], fixed: bool) -> Term:
        """The term with other lambdas, one per penalty of its columns.

        Args:
            smoothing: of each penalty.
            fixed: whether no solver may choose others.
        """
        raise NotImplementedError

    def relabelled(self, label: str) -> Term:
        """The term with another label."""
        return replace(self, label=label)

    # Readers -------------------------------------------------------------------------------------

    @property
    def multiplier(self) -> int | None:
        """Position in the design of what it is multiplied with, if anything."""
        return None

    @property
    def is_surface(self) -> bool:
        """Whether it is one function of all its features together."""
        return False

    @property
    def holds_main(self) -> bool:
        """Whether it has functions of each of its features alone."""
        return False

    @property
    def has_curves(self) -> bool:
        """Whether it follows any shape along each of its features, on its own or at some level."""
        return self.holds_main

    @property
    def axis(self) -> Any | None:
        """What a term that cannot be taken apart is a function of, where that is one column.

        It has the `expression`, and its `levels`, or its `low` and `high` end in training.
        """
        return None

    @property
    def lines(self) -> tuple[Expression, ...]:
        """The expressions that it has straight lines of."""
        return ()

    @property
    def has_penalty(self) -> bool:
        """Whether design columns of its own are penalised, so that they may explain each other."""
        return False

    def subsets(self) -> list[tuple[int, ...]]:
        """Subsets of its features that it holds the exact effect of."""
        return []

    def add_groups(self, reader: GroupReader) -> None:
        """Give a reader the products of functions of single variables whose sum the term is."""
        raise DataError(
            f"`{self.label}` cannot be taken apart into functions of single features. Its contribution "
            'is that of `model.predict(data, type="terms")`.'
        )


def as_tuple(value: Any) -> Any:
    """Lists, as JSON has them, as tuples."""
    return tuple(map(as_tuple, value)) if isinstance(value, list | tuple) else value


TERMS: dict[str, type[Term]] = {}

AnyTerm = TypeVar("AnyTerm", bound=type[Term])


def register_term(term: AnyTerm) -> AnyTerm:
    """Make a kind of term known to formulas and files; also as a decorator of its class.

    Args:
        term: a subclass of `ahofm_keras.terms.Term`.

    Raises:
        DataError: a kind or a call that another term has.
    """
    if not (isinstance(term, type) and issubclass(term, Term)):
        raise DataError(f"`register_term` takes a subclass of `Term`. Received: {term!r}.")
    known = TERMS.get(term.kind)
    # A cell of a notebook that runs again replaces its own class.
    if known is not None and known.__qualname__ != term.__qualname__:
        raise DataError(f"A term of kind {term.kind!r} is registered already: {known.__name__}.")
    for name, call in term.calls.items():
        if not name.isidentifier():
            raise DataError(f"A formula cannot call {name!r}: choose a name of letters and digits.")
        if name in TERM_CALLS and TERM_CALLS[name].kind != term.kind:
            raise DataError(f"Formulas have a term `{name}()` already. Choose another name.")
        if call.kind != term.kind:
            raise DataError(f"The call `{name}()` is of kind {call.kind!r}, the term of {term.kind!r}.")
    TERM_CALLS.update(term.calls)
    TERMS[term.kind] = term
    return term
