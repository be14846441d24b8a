"""Identifiability: terms that hold the same part of a predictor twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from ahofm_keras.errors import warn
from ahofm_keras.terms.base import Term
from ahofm_keras.terms.features import Feature
from ahofm_keras.terms.parametric import Parametric

Part = frozenset[str]


# Columns have variance 1; less than this is left of one that others explain.
_NOTHING_LEFT = 1e-10
# Products of rows and columns that may be summed up to look for such columns.
_MOST_PRODUCTS = 10**10


def warn_if_not_identifiable(
    terms: Sequence[Term], features: Sequence[Feature], columns: Mapping[str, np.ndarray]
) -> None:
    """Warn of a straight line, a main effect or an interaction that two terms hold.

    Args:
        terms: of the design.
        features: of the design.
        columns: training data.
    """
    _warn_of_lines(terms, features)
    _warn_of_coordinates(terms, features)
    free = [term.parametric for term in terms if term.parametric and not term.has_penalty]
    _warn_of_dependent_columns(free, columns)
    for first, second, part in _shared_parts(terms, features):
        kind = "main effect" if len(part) == 1 else "interaction"
        listed = ", ".join(f"`{name}`" for name in sorted(part))
        warn(
            f"`{first.label}` and `{second.label}` both hold the {kind} of {listed}: the two cannot be "
            "told apart. Leave one out, or write `ti()` for `te()`."
        )


def _warn_of_lines(terms: Sequence[Term], features: Sequence[Feature]) -> None:
    """A straight line that is there twice has no coefficient of its own.

    Linear terms among themselves are looked at by their columns, see `_warn_of_dependent_columns`.
    """
    smooth = {
        features[place].expression: term.label
        for term in terms
        if term.holds_main
        for place in term.features
        if features[place].basis.difference > 1  # penalised differences of first order hold lines down
    }
    penalised = {line: term for term in terms if term.has_penalty for line in term.lines}
    for term in terms:
        for line in term.lines:
            other = penalised.get(line, term)
            holder = smooth.get(line) or (other.label if other is not term else None)
            if holder is not None:
                own = f"`{line}` of `{term.label}`" if term.has_penalty else f"`{term.label}`"
                warn(
                    f"{own} stands as a linear term and inside `{holder}`, which "
                    "holds the straight line already: the two cannot be told apart. Leave one out."
                )


def _warn_of_coordinates(terms: Sequence[Term], features: Sequence[Feature]) -> None:
    """A smooth of points holds nearly all smooth functions of each of its coordinates."""
    main = {term: [features[place].expression for (place,) in _mains(term)] for term in terms}
    for points, point in ((term, own) for term in terms for own in main[term] if own.is_point):
        for other in terms:
            held = {*main[other], *other.lines} & {*point.coordinates} if other is not points else set()
            if held:
                listed = ", ".join(f"`{own}`" for own in point.coordinates if own in held)
                warn(
                    f"`{points.label}` and `{other.label}` both hold functions of {listed}: the two "
                    "cannot be told apart. Leave one out."
                )


def _mains(term: Term) -> list[tuple[int, ...]]:
    """Features of which a term holds a main effect."""
    return [subset for subset in map(tuple, term.subsets()) if len(subset) == 1]


def _warn_of_dependent_columns(designs: Sequence[Parametric], columns: Mapping[str, np.ndarray]) -> None:
    """Coefficients of linear terms that the data cannot tell apart, such as those of x and 2 x + 1."""
    names = [name for own in designs for name in own.coefficients]
    rows = len(next(iter(columns.values())))
    if len(names) < 2 or rows * len(names) ** 2 > _MOST_PRODUCTS:
        return
    parts = [(own.raw(columns) - own.centre) / own.scale for own in designs]
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
) -> Iterator[tuple[Term, Term, Part]]:
    """Pairs of terms, one of which holds several parts, and the largest part that both hold."""
    parts = {
        term: {frozenset(features[place].label for place in subset) for subset in term.subsets()}
        for term in terms
        if term.subsets()
    }
    several = [term for term in parts if len(parts[term]) > 1]
    pairs = [(term, other) for term in several for other in parts if len(parts[other]) == 1]
    for first, second in (*combinations(several, 2), *pairs):
        shared = parts[first] & parts[second]
        if shared:
            yield first, second, max(sorted(shared, key=sorted), key=len)
