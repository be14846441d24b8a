"""Terms that hold the same part of a model twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations

from ahofm_keras.errors import warn
from ahofm_keras.terms.features import Feature
from ahofm_keras.terms.records import LinearTerm, PenalisedTerm, SmoothTerm, TensorTerm, Term

Part = frozenset[str]


def warn_of_doubles(terms: Sequence[Term], features: Sequence[Feature]) -> None:
    """Warn of a straight line, a main effect or an interaction that two terms hold."""
    _warn_of_lines(terms, features)
    for first, second, part in _shared_parts(terms, features):
        kind = "main effect" if len(part) == 1 else "interaction"
        listed = ", ".join(f"`{name}`" for name in sorted(part))
        warn(
            f"`{first.label}` and `{second.label}` both hold the {kind} of {listed}: the two cannot be "
            "told apart. Leave one out, or write `ti()` for `te()`."
        )


def _warn_of_lines(terms: Sequence[Term], features: Sequence[Feature]) -> None:
    """A straight line that is there twice has no coefficient of its own."""
    smooth = {
        features[place].expression: term.label
        for term in terms
        if isinstance(term, SmoothTerm) or (isinstance(term, TensorTerm) and not term.pure)
        for place in term.places
    }
    for term in terms:
        if isinstance(term, LinearTerm) and len(term.factors) == 1:
            holder = smooth.get(term.factors[0].expression)
            if holder is not None:
                warn(
                    f"`{term.label}` stands as a linear term and inside `{holder}`, which "
                    "holds the straight line already: the two cannot be told apart. Leave one out."
                )


def _shared_parts(
    terms: Sequence[Term], features: Sequence[Feature]
) -> Iterator[tuple[PenalisedTerm, PenalisedTerm, Part]]:
    """Pairs of terms, one of them a `te()`, and the largest part that both hold."""
    kept = [term for term in terms if isinstance(term, SmoothTerm | TensorTerm)]
    whole = [term for term in kept if not term.pure]
    pairs = [(te, other) for te in whole for other in kept if other.pure]
    for first, second in (*combinations(whole, 2), *pairs):
        shared = _parts(first, features) & _parts(second, features)
        if shared:
            yield first, second, max(sorted(shared, key=sorted), key=len)


def _parts(term: PenalisedTerm, features: Sequence[Feature]) -> set[Part]:
    """The subsets of features that a term holds an effect of."""
    names = [features[place].label for place in term.places]
    sizes = [len(names)] if term.pure else range(1, len(names) + 1)
    return set(map(frozenset, chain.from_iterable(combinations(names, size) for size in sizes)))
