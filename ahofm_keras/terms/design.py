"""Formulas + training columns -> `Design`: every term with its bases, penalties and lambdas."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ahofm_keras.errors import DataError
from ahofm_keras.formula import Formula
from ahofm_keras.terms.base import TERMS, Term
from ahofm_keras.terms.blocks import InteractionOrder, Sources
from ahofm_keras.terms.by import by_parts, learn_scaled
from ahofm_keras.terms.features import Feature
from ahofm_keras.terms.identifiability import warn_if_not_identifiable
from ahofm_keras.terms.layout import MEAN, Layout, lay_out
from ahofm_keras.terms.learning import Learning, Shared
from ahofm_keras.terms.margins import Margins, function_means, learn_margins
from ahofm_keras.terms.networks import Network
from ahofm_keras.terms.regions import neighbours_of
from ahofm_keras.terms.ties import Tied, tie
from ahofm_keras.terms.variables import Variable, find_variables
from ahofm_keras.transforms import Expression, evaluate_expression, quote_column


@dataclass(frozen=True)
class Predictor:
    """What a parameter of the response's distribution depends on.

    Args:
        intercept: whether it has one.
        terms: in the order of the formula, main effects of an `ahofm` before it.
        ties: names of terms that share their smoothing (`id=`), by id.
    """

    intercept: bool
    terms: tuple[Term, ...]
    ties: tuple[tuple[str, ...], ...] = ()

    @property
    def offsets(self) -> dict[str, Expression]:
        """What is added as it is, with no coefficient, by the label of its term."""
        return {term.label: term.offset for term in self.terms if term.offset is not None}

    def offset(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """Sum of the offsets at raw columns, `(n,)`."""
        total = np.zeros(len(next(iter(columns.values()))))
        for expression in self.offsets.values():
            total = total + evaluate_expression(expression, columns)
        return total


@dataclass(frozen=True, eq=False)
class Design:
    """All that was learned from the training data.

    Args:
        columns: raw column -> `"number"`, `"text"`, `"boolean"` or `"array"`.
        features: distinct bases, each evaluated once whatever the number of terms and predictors.
        predictors: by parameter of the family.
        rows: n of the training data.
        margins: distribution of the variables; None in a model of an earlier version.
        whole: the design of all predictors, of one that is part of it.
    """

    columns: dict[str, str]
    features: tuple[Feature, ...]
    predictors: dict[str, Predictor]
    rows: int
    margins: Margins | None = None
    whole: Design | None = None

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms of all predictors."""
        return tuple(term for predictor in self.predictors.values() for term in predictor.terms)

    @cached_property
    def place_columns(self) -> tuple[slice, ...]:
        """Where the place of each feature stands in `EncodedRows.positions`."""
        stops = np.cumsum([0, *(feature.basis.dimension for feature in self.features)]).tolist()
        return tuple(slice(*ends) for ends in itertools.pairwise(stops))

    @property
    def neighbours(self) -> dict[str, dict[Any, list[Any]]]:
        """Neighbours of regions, by the name of their column."""
        return {
            next(iter(feature.expression.columns())): neighbours_of(feature.basis)
            for feature in self.features
            if feature.basis.kind == "mrf"
        }

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the rows of the raw columns that hold arrays."""
        terms = self.terms if self.whole is None else self.whole.terms
        return {name: shape for term in terms for name, shape in term.arrays.items()}

    @property
    def axis_columns(self) -> set[str]:
        """Raw columns whose rows are points of an axis, or their weights, which keep all digits."""
        terms = self.terms if self.whole is None else self.whole.terms
        return {name for term in terms if term.weight_function for name in term.weight_function.names}

    @property
    def only(self) -> Predictor:
        """The predictor of a design that has one; raises a `DataError` of one with several."""
        _ = self.layout.only
        return self.first

    @property
    def first(self) -> Predictor:
        """The predictor of the first parameter, usually the mean."""
        return next(iter(self.predictors.values()))

    @property
    def orders(self) -> tuple[InteractionOrder, ...]:
        """The orders of the interactions of all predictors."""
        return tuple(order for layout in self.layout.values() for order in layout.orders)

    def held_terms(self, parameter: str) -> tuple[Term, ...]:
        """The terms of a predictor whose sum stays within the range that it had on the training rows.

        All functions of bases where some are interactions: of these alone there are products that no
        row has seen. Not where functions are to go on beyond the training range.
        """
        found = tuple(term for term in self.predictors[parameter].terms if term.features)
        bases = [self.features[place].basis for term in found for place in term.features]
        goes_on = any(basis.is_spline and basis.extrapolation == "linear" for basis in bases)
        return () if goes_on or not self.layout[parameter].orders else found

    @cached_property
    def sources(self) -> Sources:
        """Bases and design columns, which all terms share."""
        if self.whole is not None:
            return self.whole.sources
        slices: dict[str, slice] = {}
        start = 0
        for term in self.terms:
            if term.design_columns is not None:
                slices[term.name] = slice(start, start + len(term.design_columns))
                start += len(term.design_columns)
        return Sources(self.features, slices)

    @cached_property
    def layout(self) -> Layout:
        """Where each coefficient stands."""
        return Layout(
            {
                name: lay_out(predictor.intercept, predictor.terms, self.sources, predictor.ties)
                for name, predictor in self.predictors.items()
            }
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "columns": dict(self.columns),
            "features": [feature.to_json() for feature in self.features],
            "predictors": {
                name: {
                    "intercept": own.intercept,
                    "terms": [term.to_json() for term in own.terms],
                    "ties": [list(names) for names in own.ties],
                }
                for name, own in self.predictors.items()
            },
            "rows": self.rows,
            "margins": None if self.margins is None else self.margins.to_json(),
        }

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> Design:
        return cls(
            dict(config["columns"]),
            tuple(Feature.from_json(feature) for feature in config["features"]),
            {
                name: Predictor(
                    own["intercept"],
                    tuple(map(_read_term, own["terms"])),
                    tuple(map(tuple, own.get("ties", ()))),
                )
                for name, own in config["predictors"].items()
            },
            config["rows"],
            Margins.from_json(config["margins"]) if config.get("margins") else None,
        )

    def part(self, parameter: str) -> Design:
        """The design of one predictor, with the features and design columns of all."""
        own = {parameter: self.predictors[parameter]}
        return replace(self, predictors=own, whole=self)

    def with_starts(self, starts: int) -> Design:
        """The design with room for the average of several fits."""
        return self._with_terms(lambda term: term.with_starts(starts))

    def with_groups(self, counts: Mapping[str, Sequence[int]]) -> Design:
        """The design with room for so many groups of factors in each order of some terms, by name."""
        return self._with_terms(
            lambda term: term.with_groups(counts[term.name]) if term.name in counts else term
        )

    def _with_terms(self, change: Callable[[Term], Term]) -> Design:
        predictors = {
            name: replace(own, terms=tuple(map(change, own.terms)))
            for name, own in self.predictors.items()
        }
        return replace(self, predictors=predictors)

    def variables(self) -> list[Variable]:
        """What a reader calls features, with all functions that terms have of them."""
        return find_variables(self.features, self.terms if self.whole is None else self.whole.terms)

    def function_means(self) -> dict[int, np.ndarray]:
        """Means over the margins of the functions of each feature `(r,)`, by position; if known."""
        found: dict[int, np.ndarray] = {}
        margins = () if self.margins is None else self.margins.single
        for variable, margin in zip(self.variables(), margins, strict=False):
            means = function_means(variable, margin)
            found |= {place: means[variable.columns_of(place)] for place in variable.places}
        return found


def _read_term(config: Mapping[str, Any]) -> Term:
    if config["kind"] not in TERMS:
        raise DataError(
            f"The model has a term of kind {config['kind']!r}, `{config['label']}`, which is not known "
            "here: import the module that registers it (`ahofm_keras.register_term`) first."
        )
    return TERMS[config["kind"]].from_json(config)


def fit_terms(
    formulas: Formula | Mapping[str, Formula],
    columns: Mapping[str, np.ndarray],
    kinds: Mapping[str, str],
    *,
    levels: Mapping[str, tuple[str, ...]] | None = None,
    ordered: Collection[str] = (),
    df_kind: str = "2H-HH",
    extrapolation: str = "clip",
    neighbours: Mapping[str, Any] | None = None,
    networks: Mapping[str, Network] | None = None,
) -> Design:
    """Learn every term of some formulas from training columns.

    Args:
        formulas: parsed; one per parameter of the family, or that of the mean alone.
        columns: raw columns that the formulas use, checked.
        kinds: kind of each column.
        levels: of the columns of categories whose levels have an order; others have their own.
        ordered: columns of these whose order means something.
        df_kind: definition of degrees of freedom, `"2H-HH"` or `"H"`.
        extrapolation: `"clip"`, `"linear"` or `"error"`.
        neighbours: of regions, by the name of their column.
        networks: that terms may be, by name.

    Raises:
        DataError, FormulaError: a constant feature, a df that cannot be reached, too few rows.
    """
    formulas = {MEAN: formulas} if isinstance(formulas, Formula) else formulas
    _check_constant_columns(columns)
    reach: dict[tuple[Expression, bool], float] = {}
    for formula in formulas.values():
        for spec in formula.terms:
            term = TERMS[spec.kind]
            for feature, df in zip(spec.features, term.degrees_asked(spec), strict=False):
                key = feature, term.has_small_bases
                reach[key] = max(reach.get(key, 0.0), df)
    shared = Shared(columns, levels or {}, df_kind, extrapolation, reach, neighbours, ordered, networks)
    predictors = {name: _learn_predictor(formula, shared) for name, formula in formulas.items()}
    rows = len(next(iter(columns.values())))
    features = tuple(shared.pool.features)
    for predictor in predictors.values():
        _check_rows(rows, predictor)
        warn_if_not_identifiable(predictor.terms, features, columns)
    shared.smoother.warn()
    _check_neighbours(features, neighbours or {})
    terms = tuple(term for predictor in predictors.values() for term in predictor.terms)
    margins = learn_margins(find_variables(features, terms), terms, columns, shared.pool.moments)
    return Design(dict(kinds), features, predictors, rows, margins)


def _learn_predictor(formula: Formula, shared: Shared) -> Predictor:
    learning, terms, tied = Learning(formula, shared), list[Term](), dict[Any, list[Tied]]()
    asked = [spec for term in formula.terms for spec in TERMS[term.kind].expand(term, learning)]
    for spec in (part for own in asked for part in by_parts(own, learning)):
        term = (
            TERMS[spec.kind].learn(spec, learning) if spec.by is None else learn_scaled(spec, learning)
        )
        copies = sum(other.label.partition(" #")[0] == term.label for other in terms)
        term = term.relabelled(f"{term.label} #{copies + 1}") if copies else term
        if "id" in spec.options:
            first = tied.setdefault(spec.options["id"], [])
            term = tie(term, spec, first, learning)
            first.append(Tied(term, spec))
        terms.append(term)
    ties = tuple(tuple(own.term.name for own in group) for group in tied.values() if len(group) > 1)
    return Predictor(formula.intercept, tuple(terms), ties)


def _check_neighbours(features: Sequence[Feature], neighbours: Mapping[str, Any]) -> None:
    """Neighbours that no term asks for were meant for one."""
    used = {name for own in features if own.basis.kind == "mrf" for name in own.expression.columns()}
    for name in neighbours:
        if name not in used:
            raise DataError(
                f"`neighbours` names `{name}`, but no term has its regions: write "
                f'`s({quote_column(str(name))}, bs="mrf")`.'
            )


def _check_constant_columns(columns: Mapping[str, np.ndarray]) -> None:
    """Several constant columns are named at once; a single one is named with its term."""
    constant = [n for n, v in columns.items() if v.ndim == 1 and len(v) > 1 and (v == v[0]).all()]
    if len(constant) > 1:
        listed = ", ".join(f"`{name}`" for name in constant)
        away = " ".join(f"- {quote_column(name)}" for name in constant)
        raise DataError(
            f"Columns {listed} are constant: nothing can be learned from them. Leave them out; "
            f"where `.` stands for all columns, end the formula with `{away}`."
        )


def _check_rows(rows: int, predictor: Predictor) -> None:
    free = [term for term in predictor.terms if not term.has_penalty]
    designs: Sequence[Any] = [term.parametric for term in free if term.parametric]
    columns = sum(map(len, designs))
    needed = max(columns + predictor.intercept + 1, 3)
    if rows < needed:
        raise DataError(
            f"The formula needs at least {needed} rows ({columns} linear coefficients), "
            f"the data has {rows}."
        )
