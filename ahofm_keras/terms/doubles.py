"""Terms that hold the same part of a model twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations

import numpy as np

from ahofm_keras.errors import warn
from ahofm_keras.terms.features import Feature
from ahofm_keras.terms.linear import design_columns
from ahofm_keras.terms.records import LinearTerm, PenalisedTerm, SmoothTerm, TensorTerm, Term

Part = frozenset[str]


# Columns have variance 1; less than this is left of one that others explain.
_NOTHING_LEFT = 1e-10
# Products of rows and columns that may be summed up to look for such columns.
_MOST_PRODUCTS = 10**10


def warn_of_doubles(
    terms: Sequence[Term], features: Sequence[Feature], columns: Mapping[str, np.ndarray]
) -> None:
    """Warn of a straight line, a main effect or an interaction that two terms hold.

    Args:
        terms: of the design.
        features: of the design.
        columns: training data.
    """
    _warn_of_lines(terms, features)
    _warn_of_dependent_columns([term for term in terms if isinstance(term, LinearTerm)], columns)
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


def _warn_of_dependent_columns(terms: Sequence[LinearTerm], columns: Mapping[str, np.ndarray]) -> None:
    """Coefficients of linear terms that the data cannot tell apart, such as those of x and 2 x + 1."""
    names = [name for term in terms for name in term.coefficients]
    rows = len(next(iter(columns.values())))
    if len(names) < 2 or rows * len(names) ** 2 > _MOST_PRODUCTS:
        return
    parts = [
        (design_columns(term.factors, term.columns, columns, np) - term.centre) / term.scale
        for term in terms
    ]
    design = np.concatenate(parts, axis=1)
    listed = ", ".join(f"`{names[place]}`" for place in _dependent(design.T @ design / rows))
    if listed:
        warn(
            f"Linear terms explain each other: {listed} can be computed from those before. Their "
            "coefficients cannot be told apart. Leave one out."
        )


def _dependent(gram: np.ndarray) -> list[int]:
    """Columns of which the ones before leave nothing; those that are 0 themselves are not meant."""
    left, found = gram.copy(), []
    for place, size in enumerate(gram.diagonal()):
        if size <= 0:
            continue
        if left[place, place] <= _NOTHING_LEFT * size:
            found.append(place)
        else:
            left -= np.outer(left[:, place], left[place]) / left[place, place]
    return found


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
