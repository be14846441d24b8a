"""Formula + training columns -> `Design`: every term with its bases, penalties and lambdas."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ahofm_keras.errors import DataError, warn
from ahofm_keras.formula import Formula, TermSpec
from ahofm_keras.formula.options import interaction_orders
from ahofm_keras.terms.features import Feature, FeaturePool, Request, feature_values
from ahofm_keras.terms.linear import LinearCoder
from ahofm_keras.terms.margins import Margins, learn_margins
from ahofm_keras.terms.records import (
    TERMS,
    InteractionTerm,
    LinearTerm,
    OffsetTerm,
    Order,
    SmoothTerm,
    Term,
)
from ahofm_keras.terms.smoothing import DEFAULT_DF, Smoother
from ahofm_keras.terms.variables import Variable, find_variables
from ahofm_keras.transforms import Expression, learn_expression, quote_column

DEFAULT_RANK = 5
DEFAULT_RIDGE = 1.0


@dataclass(frozen=True, eq=False)
class Design:
    """All that was learned from the training data.

    Args:
        columns: raw column -> `"number"`, `"text"` or `"boolean"`.
        features: distinct bases, each evaluated once.
        terms: in the order of the formula, main effects of an `ahofm` before it.
        intercept: whether the model has one.
        rows: n of the training data.
        margins: distribution of the variables; None in a model of an earlier version.
    """

    columns: dict[str, str]
    features: tuple[Feature, ...]
    terms: tuple[Term, ...]
    intercept: bool
    rows: int
    margins: Margins | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "columns": dict(self.columns),
            "features": [feature.to_json() for feature in self.features],
            "terms": [term.to_json() for term in self.terms],
            "intercept": self.intercept,
            "rows": self.rows,
            "margins": None if self.margins is None else self.margins.to_json(),
        }

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> Design:
        return cls(
            dict(config["columns"]),
            tuple(Feature.from_json(feature) for feature in config["features"]),
            tuple(TERMS[term["kind"]].from_json(term) for term in config["terms"]),
            config["intercept"],
            config["rows"],
            Margins.from_json(config["margins"]) if config.get("margins") else None,
        )

    def of_kind(self, kind: type[Term]) -> list[Any]:
        return [term for term in self.terms if isinstance(term, kind)]

    def variables(self) -> list[Variable]:
        """What a reader calls features, with all functions that terms have of them."""
        return find_variables(self.features, self.terms)


def fit_terms(
    formula: Formula,
    columns: Mapping[str, np.ndarray],
    kinds: Mapping[str, str],
    *,
    df_kind: str = "2H-HH",
    extrapolation: str = "clip",
) -> Design:
    """Learn every term of a formula from training columns.

    Args:
        formula: parsed.
        columns: raw columns that the formula uses, checked.
        kinds: kind of each column.
        df_kind: definition of degrees of freedom, `"2H-HH"` or `"H"`.
        extrapolation: `"clip"`, `"linear"` or `"error"`.

    Raises:
        DataError, FormulaError: a constant feature, a df that cannot be reached, too few rows.
    """
    return _Fitter(formula, columns, df_kind, extrapolation).design(kinds)


class _Fitter:
    def __init__(
        self,
        formula: Formula,
        columns: Mapping[str, np.ndarray],
        df_kind: str,
        extrapolation: str,
    ) -> None:
        self.formula = formula
        self.columns = columns
        self.pool = FeaturePool(columns, extrapolation)
        self.smoother = Smoother(self.pool, df_kind)
        self.coder = LinearCoder(columns, formula.intercept)
        self.terms: list[Term] = []
        self.names: set[str] = set(columns)
        self.main_effects: set[Expression] = set()
        # One basis a feature: it serves the term and the order with the most degrees of freedom.
        self.reach: dict[Expression, float] = {}
        for term in formula.terms:
            for feature in term.features:
                self.reach[feature] = max(self.reach.get(feature, 0.0), _largest_df(term, feature))

    def design(self, kinds: Mapping[str, str]) -> Design:
        self._check_constant_columns()
        specs = [spec for term in self.formula.terms for spec in self._with_main_effects(term)]
        for spec in specs:
            term = getattr(self, f"_fit_{spec.kind}")(spec)
            copies = sum(other.label.partition(" #")[0] == term.label for other in self.terms)
            self.terms.append(replace(term, label=f"{term.label} #{copies + 1}") if copies else term)
        rows = len(next(iter(self.columns.values())))
        self._check_rows(rows)
        self._warn_of_doubles()
        self.smoother.warn()
        features, terms = tuple(self.pool.features), tuple(self.terms)
        variables = find_variables(features, terms)
        margins = learn_margins(variables, terms, self.columns, self.pool.moments)
        return Design(dict(kinds), features, terms, self.formula.intercept, rows, margins)

    def _with_main_effects(self, spec: TermSpec) -> list[TermSpec]:
        """A main effect stands once: the formula's own, else the first that an interaction adds."""
        if spec.kind not in ("ahofm", "hofm") or not spec.options.get("main", True):
            return [spec]
        own = {
            _bare(term.features[0])
            for term in self.formula.terms
            if term.kind == "s" or (term.kind == "linear" and len(term.features) == 1)
        }
        missing = [f for f in spec.features if _bare(f) not in own | self.main_effects]
        self.main_effects.update(map(_bare, missing))
        return [*(self._main_effect(spec, feature) for feature in missing), spec]

    def _main_effect(self, spec: TermSpec, feature: Expression) -> TermSpec:
        """The main effect that an interaction term adds for one of its features."""
        if spec.kind == "hofm":
            return replace(spec, kind="linear", features=(feature,), options={}, call="")
        options: dict[str, Any] = {"center": spec.options.get("center", True)}
        for option in ("k", "knots"):
            value = _option_of(spec, option, feature)
            if value is not None and not self._is_category(feature):
                options[option] = value
        df = _option_of(spec, "df", feature)
        if df is not None:
            options["df"] = df[0] if isinstance(df, tuple) else df
        return replace(spec, kind="s", features=(feature,), options=options, call="s")

    def _name(self, label: str) -> str:
        """A Keras layer name that is not taken: `s(x1)` -> `s_x1`."""
        stem = re.sub(r"\W+", "_", label, flags=re.ASCII).strip("_") or "term"
        name, copies = stem, 1
        while name in self.names:
            copies += 1
            name = f"{stem}_{copies}"
        self.names.add(name)
        return name

    def _is_category(self, feature: Expression) -> bool:
        if feature.is_category:
            return True
        return feature.is_column and self.columns[feature.arguments[0]].dtype.kind != "f"

    def _fit_linear(self, spec: TermSpec) -> LinearTerm:
        return self.coder.code(spec, self._name(f"linear_{spec.label}"))

    def _fit_offset(self, spec: TermSpec) -> OffsetTerm:
        values = feature_values(spec.features[0], self.columns, spec)
        if values.dtype.kind != "f":
            raise DataError(f"`{spec.label}` needs numbers.")
        learned = learn_expression(spec.features[0], self.columns)
        return OffsetTerm(spec.label, self._name(spec.label), learned)

    def _fit_s(self, spec: TermSpec) -> SmoothTerm:
        feature, options = spec.features[0], spec.options
        category = self._is_category(feature)
        if category and options.get("bs", "re") != "re":
            raise spec.error(
                f'Column `{feature}` holds categories: write `s({feature}, bs="re")` or `{feature}`.'
            )
        unused = [option for option in ("k", "knots") if category and option in options]
        if unused:
            raise spec.error(f"`{unused[0]}` has no meaning for the category `{feature}`.")
        df = options.get("df")
        place = self.pool.position(feature, self._request(spec), spec)
        if "sp" in options:
            smoothing = float(options["sp"])
        else:
            smoothing = self.smoother.smoothing([place], [df], spec, "k" in options)[0]
        reached = self.smoother.reached(place, smoothing)
        return SmoothTerm(spec.label, self._name(spec.label), place, smoothing, reached, "sp" in options)

    def _request(self, spec: TermSpec) -> Request:
        """The basis that an `s()` asks for."""
        options = spec.options
        if self._is_category(spec.features[0]) or options.get("bs") == "re":
            return Request("re", center=options.get("center", True))
        return Request(
            options.get("bs", "ps"),
            options.get("k"),
            self.reach[spec.features[0]],
            options.get("knots", "adaptive"),
            options.get("center", True),
        )

    def _fit_ahofm(self, spec: TermSpec) -> InteractionTerm:
        options = spec.options
        orders = interaction_orders(options, len(spec.features))
        degrees = [_df_by_order(spec, feature, orders) for feature in spec.features]
        places = [self._interaction_feature(spec, feature) for feature in spec.features]
        size_given = "k" in options
        fitted = []
        for order, rank in _ranks(options, orders):
            wanted = [df[order] for df in degrees]
            smoothing = self.smoother.smoothing(places, wanted, spec, size_given)
            reached = tuple(map(self.smoother.reached, places, smoothing))
            fitted.append(Order(order, rank, tuple(smoothing), reached))
        return InteractionTerm(spec.label, self._name(spec.label), tuple(places), tuple(fitted))

    def _interaction_feature(self, spec: TermSpec, feature: Expression) -> int:
        """The feature's basis: as the interaction asks, else as its own `s()` asks (cyclic, say)."""
        center = spec.options.get("center", True)
        if self._is_category(feature):
            return self.pool.position(feature, Request("re", center=center), spec)
        size, knots = _option_of(spec, "k", feature), _option_of(spec, "knots", feature)
        own = [t for t in self.formula.terms if t.kind == "s" and t.features == (feature,)]
        if own and size is None and knots is None:
            return self.pool.position(feature, replace(self._request(own[0]), center=center), spec)
        request = Request("ps", size, self.reach[feature], knots or "adaptive", center)
        return self.pool.position(feature, request, spec)

    def _fit_hofm(self, spec: TermSpec) -> InteractionTerm:
        orders = interaction_orders(spec.options, len(spec.features))
        places = [
            self.pool.position(
                feature,
                Request("re", center=False) if self._is_category(feature) else Request("linear"),
                spec,
            )
            for feature in spec.features
        ]
        ridge = float(spec.options.get("sp", DEFAULT_RIDGE))
        reached = tuple(self.smoother.reached(place, ridge) for place in places)
        fitted = tuple(
            Order(order, rank, (ridge,) * len(places), reached)
            for order, rank in _ranks(spec.options, orders)
        )
        return InteractionTerm(
            spec.label, self._name(spec.label), tuple(places), fitted, "sp" in spec.options
        )

    def _check_constant_columns(self) -> None:
        """Several constant columns are named at once; a single one is named with its term."""
        constant = [n for n, v in self.columns.items() if len(v) > 1 and (v == v[0]).all()]
        if len(constant) > 1:
            listed = ", ".join(f"`{name}`" for name in constant)
            away = " ".join(f"- {quote_column(name)}" for name in constant)
            raise DataError(
                f"Columns {listed} are constant: nothing can be learned from them. Leave them out; "
                f"where `.` stands for all columns, end the formula with `{away}`."
            )

    def _check_rows(self, rows: int) -> None:
        columns = sum(len(term.columns) for term in self.terms if isinstance(term, LinearTerm))
        needed = max(columns + self.formula.intercept + 1, 3)
        if rows < needed:
            raise DataError(
                f"The formula needs at least {needed} rows ({columns} linear coefficients), "
                f"the data has {rows}."
            )

    def _warn_of_doubles(self) -> None:
        """A straight line that is there twice has no coefficient of its own."""
        smooth = {
            self.pool.features[term.feature].expression
            for term in self.terms
            if isinstance(term, SmoothTerm)
        }
        for term in self.terms:
            if isinstance(term, LinearTerm) and len(term.factors) == 1:
                expression = term.factors[0].expression
                if expression in smooth:
                    warn(
                        f"`{term.label}` stands as a linear term and inside `s({term.label})`, which "
                        "holds the straight line already: the two cannot be told apart. Leave one out."
                    )


def _bare(feature: Expression) -> Expression:
    """A feature without the `C()` around it."""
    return feature.arguments[0] if feature.is_category else feature


def _option_of(spec: TermSpec, option: str, feature: Expression) -> Any:
    """An option's value for one feature: the value itself, or its entry in a dict."""
    value = spec.options.get(option)
    if not isinstance(value, dict):
        return value
    return value.get(feature.arguments[0] if feature.is_column else str(feature))


def _largest_df(spec: TermSpec, feature: Expression) -> float:
    """Degrees of freedom that a term asks of a feature's basis, over all its orders."""
    df = _option_of(spec, "df", feature)
    return float(max(df) if isinstance(df, tuple) else df or DEFAULT_DF)


def _df_by_order(
    spec: TermSpec, feature: Expression, orders: tuple[int, ...]
) -> dict[int, float | None]:
    df = _option_of(spec, "df", feature)
    if isinstance(df, tuple):
        return dict(zip(orders, df[-len(orders) :], strict=True))
    return dict.fromkeys(orders, df)


def _ranks(options: Mapping[str, Any], orders: tuple[int, ...]) -> list[tuple[int, int]]:
    rank = options.get("F", DEFAULT_RANK)
    ranks = rank if isinstance(rank, tuple) else (rank,) * len(orders)
    return list(zip(orders, ranks, strict=True))
