"""What a formula becomes: `Formula` and `TermSpec`, frozen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ahofm_keras.errors import FormulaError
from ahofm_keras.formula.options import TERM_CALLS
from ahofm_keras.formula.source import Source
from ahofm_keras.transforms import Expression


@dataclass(frozen=True)
class TermSpec:
    """A term as the formula asks for it, before any data is seen.

    Args:
        kind: `"linear"`, `"s"`, `"te"` (also `ti`), `"ahofm"`, `"hofm"`, `"deep"` or `"offset"`.
        features: its expressions; for `"linear"` the factors of a product (`a:b`).
        options: keyword arguments that were given, checked; `orders` in rising order; for `"te"` also
            `pure`, and no dicts: tuples with one entry per margin.
        call: the name it was called by (`afm`), empty for linear terms.
        named: what tables call it, where that is not made of its features.
    """

    kind: str
    features: tuple[Expression, ...]
    options: dict[str, Any] = field(default_factory=dict)
    call: str = ""
    source: Source = field(default=Source(), repr=False, compare=False)
    span: tuple[int, int] = field(default=(0, 0), repr=False, compare=False)
    named: str = ""

    @property
    def label(self) -> str:
        """How tables name the term: `s(x1)`, `ahofm(x1, x2, x3)`, `a:b`, `s(x):z` for `s(x, by=z)`."""
        if self.named:
            return self.named
        names = [str(feature) for feature in self.features]
        if self.kind == "linear":
            return ":".join(names)
        if len(names) > 6:
            names = [*names[:2], "...", names[-1]]
        own = f"{self.call}({', '.join(names)})"
        return own if self.by is None else f"{own}:{self.by}"

    @property
    def by(self) -> Expression | None:
        """What the term is multiplied with: a number, or the levels of a category."""
        found: Expression | None = self.options.get("by")
        return found

    @property
    def inputs(self) -> tuple[Expression, ...]:
        """Its features, and what it is multiplied with."""
        return self.features if self.by is None else (*self.features, self.by)

    def error(self, message: str) -> FormulaError:
        """A `FormulaError` that points at this term."""
        return self.source.error(message, *self.span)


@dataclass(frozen=True)
class Formula:
    """A parsed formula.

    Args:
        text: as the user wrote it, with `.` written out.
        response: expression left of `~`.
        terms: term specifications, in the order of the formula.
        intercept: whether the model has one.
        dotted: columns that a `.` of the formula stands for.
    """

    text: str
    response: Expression
    terms: tuple[TermSpec, ...]
    intercept: bool
    dotted: tuple[str, ...] = field(default=(), compare=False)

    def columns(self) -> list[str]:
        """Raw columns that the right-hand side uses, each once."""
        features = (feature for term in self.terms for feature in term.inputs)
        return list(dict.fromkeys(name for feature in features for name in feature.columns()))

    def array_columns(self) -> set[str]:
        """Those whose rows may be arrays: they stand by their bare names, in terms that take arrays."""
        bare, others = set[str](), set[str]()
        for term in self.terms:
            takes = term.call in TERM_CALLS and TERM_CALLS[term.call].takes_arrays
            for feature in term.inputs:
                (bare if takes and feature.is_column else others).update(feature.columns())
        return bare - others
