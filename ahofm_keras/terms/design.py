"""Formula + training columns -> `Design`: every term with its bases, penalties and lambdas."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ahofm_keras.errors import DataError
from ahofm_keras.formula import Formula, TermSpec
from ahofm_keras.formula.margins import margin_option, said_of_margin
from ahofm_keras.formula.options import interaction_orders
from ahofm_keras.terms.asked import (
    basis_options,
    df_by_order,
    largest_df,
    option_of,
    ranks,
    with_own_smooth,
)
from ahofm_keras.terms.doubles import warn_of_doubles
from ahofm_keras.terms.features import Feature, FeaturePool, Request, feature_values
from ahofm_keras.terms.linear import LinearCoder
from ahofm_keras.terms.margins import Margins, learn_margins
from ahofm_keras.terms.records import (
    TERMS,
    InteractionTerm,
    LinearTerm,
    OffsetTerm,
    Order,
    PenalisedTerm,
    SmoothTerm,
    TensorTerm,
    Term,
)
from ahofm_keras.terms.smoothing import Smoother
from ahofm_keras.terms.tensors import check_products, default_margin_df, margin_degrees
from ahofm_keras.terms.variables import Variable, find_variables
from ahofm_keras.transforms import Expression, learn_expression, quote_column

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

    def penalised(self) -> list[PenalisedTerm]:
        """Smooths and tensor products, in the order in which solvers and the posterior hold them."""
        return [term for term in self.terms if isinstance(term, SmoothTerm | TensorTerm)]

    @property
    def starts(self) -> int:
        """Number of fits that the factors of the interactions have room for."""
        orders = (order for term in self.of_kind(InteractionTerm) for order in term.orders)
        return max((order.starts for order in orders), default=1)

    def with_starts(self, starts: int) -> Design:
        """The design with room for the average of several fits."""
        terms = (
            term.with_starts(starts) if isinstance(term, InteractionTerm) else term
            for term in self.terms
        )
        return replace(self, terms=tuple(terms))

    def variables(self) -> list[Variable]:
        """What a reader calls features, with all functions that terms have of them."""
        return find_variables(self.features, self.terms)


def fit_terms(
    formula: Formula,
    columns: Mapping[str, np.ndarray],
    kinds: Mapping[str, str],
    *,
    levels: Mapping[str, tuple[str, ...]] | None = None,
    df_kind: str = "2H-HH",
    extrapolation: str = "clip",
) -> Design:
    """Learn every term of a formula from training columns.

    Args:
        formula: parsed.
        columns: raw columns that the formula uses, checked.
        kinds: kind of each column.
        levels: of the columns of categories whose levels have an order; others have their own.
        df_kind: definition of degrees of freedom, `"2H-HH"` or `"H"`.
        extrapolation: `"clip"`, `"linear"` or `"error"`.

    Raises:
        DataError, FormulaError: a constant feature, a df that cannot be reached, too few rows.
    """
    return _Fitter(formula, columns, levels or {}, df_kind, extrapolation).design(kinds)


class _Fitter:
    def __init__(
        self,
        formula: Formula,
        columns: Mapping[str, np.ndarray],
        levels: Mapping[str, tuple[str, ...]],
        df_kind: str,
        extrapolation: str,
    ) -> None:
        self.formula = formula
        self.columns = columns
        self.pool = FeaturePool(columns, levels, extrapolation)
        self.smoother = Smoother(self.pool, df_kind)
        self.coder = LinearCoder(columns, levels, formula.intercept)
        self.terms: list[Term] = []
        self.names: set[str] = set(columns)
        self.main_effects: set[Expression] = set()
        # One basis a feature: it serves the term and the order with the most degrees of freedom. Tensor
        # products have smaller ones of their own.
        self.reach: dict[tuple[Expression, bool], float] = {}
        for term in formula.terms:
            for feature, df in zip(term.features, largest_df(term), strict=True):
                key = feature, term.kind == "te"
                self.reach[key] = max(self.reach.get(key, 0.0), df)

    def design(self, kinds: Mapping[str, str]) -> Design:
        self._check_constant_columns()
        specs = [spec for term in self.formula.terms for spec in self._with_main_effects(term)]
        for spec in specs:
            term = getattr(self, f"_fit_{spec.kind}")(spec)
            copies = sum(other.label.partition(" #")[0] == term.label for other in self.terms)
            self.terms.append(replace(term, label=f"{term.label} #{copies + 1}") if copies else term)
        rows = len(next(iter(self.columns.values())))
        self._check_rows(rows)
        warn_of_doubles(self.terms, self.pool.features, self.columns)
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
        tensors = [t for t in self.formula.terms if t.kind == "te" and not t.options["pure"]]
        own |= {_bare(feature) for term in tensors for feature in term.features}
        missing = [f for f in spec.features if _bare(f) not in own | self.main_effects]
        self.main_effects.update(map(_bare, missing))
        return [*(self._main_effect(spec, feature) for feature in missing), spec]

    def _main_effect(self, spec: TermSpec, feature: Expression) -> TermSpec:
        """The main effect that an interaction term adds for one of its features."""
        if spec.kind == "hofm":
            return replace(spec, kind="linear", features=(feature,), options={}, call="")
        options: dict[str, Any] = {"center": spec.options.get("center", True)}
        if not self._is_category(feature):
            options |= basis_options(spec, feature)
        df = option_of(spec, "df", feature)
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
        advice = f'write `s({feature}, bs="re")` or `{feature}`'
        self._check_category(spec, feature, options, advice)
        df = options.get("df")
        place = self.pool.position(feature, self._request(spec), spec)
        if "sp" in options:
            smoothing = float(options["sp"])
        else:
            smoothing = self.smoother.smoothing([place], [df], spec, "k" in options)[0]
        reached = self.smoother.reached(place, smoothing)
        return SmoothTerm(spec.label, self._name(spec.label), place, smoothing, reached, "sp" in options)

    def _check_category(
        self, spec: TermSpec, feature: Expression, options: Mapping[str, Any], advice: str
    ) -> None:
        """Raise a `FormulaError` where the options ask for splines of a category."""
        if not self._is_category(feature):
            return
        if options.get("bs", "re") != "re":
            raise spec.error(f"Column `{feature}` holds categories: {advice}.")
        unused = [option for option in ("k", "knots") if option in options]
        if unused:
            raise spec.error(f"`{unused[0]}` has no meaning for the category `{feature}`.")

    def _request(self, spec: TermSpec) -> Request:
        """The basis that an `s()` asks for."""
        options = spec.options
        if self._is_category(spec.features[0]) or options.get("bs") == "re":
            return Request("re", center=options.get("center", True))
        return Request(
            options.get("bs", "ps"),
            options.get("k"),
            self.reach[spec.features[0], False],
            options.get("knots", "adaptive"),
            options.get("center", True),
        )

    def _fit_te(self, spec: TermSpec) -> TensorTerm:
        """A tensor product: each margin with its own lambda, from its own df."""
        options, count = spec.options, len(spec.features)
        degrees = margin_degrees(spec)
        requests = [self._margin_request(spec, place) for place in range(count)]
        places = [self.pool.position(*pair, spec) for pair in zip(spec.features, requests, strict=True)]
        check_products(spec, [self.pool.features[place] for place in places])
        smoothing = []
        for margin, (place, df) in enumerate(zip(places, degrees, strict=True)):
            given = margin_option(options, "sp", margin)
            if given is None:
                sized = margin_option(options, "k", margin) is not None
                default = default_margin_df(count)
                given = self.smoother.smoothing([place], [df], spec, sized, default)[0]
            smoothing.append(float(given))
        reached = tuple(map(self.smoother.reached, places, smoothing))
        return TensorTerm(
            spec.label, self._name(spec.label), tuple(places), tuple(smoothing), reached,
            options["pure"], "sp" in options,
        )  # fmt: skip

    def _margin_request(self, spec: TermSpec, place: int) -> Request:
        """The basis of a margin: as the term asks, else of the kind that its own `s()` has (cyclic).

        Smaller than that of an `s()` where the user does not choose k: sizes multiply.
        """
        feature, said = spec.features[place], said_of_margin(spec.options, place)
        self._check_category(spec, feature, said, 'leave its `bs` out, or use "re"')
        kind, knots = said.get("bs"), margin_option(spec.options, "knots", place)
        if kind is None and knots is None:
            own = [t for t in self.formula.terms if t.kind == "s" and t.features == (feature,)]
            kind, knots = [own[0].options.get(name) for name in ("bs", "knots")] if own else [None, None]
        if self._is_category(feature) or kind == "re":
            return Request("re")
        size, reach = margin_option(spec.options, "k", place), self.reach[feature, True]
        kind, margins = kind or "ps", len(spec.features)
        # A circle has no ends. Given lambdas are those of a penalty that other software can be given.
        ends = kind == "ps" and "sp" not in spec.options
        return Request(kind, size, reach, knots or "adaptive", margins=margins, ends=ends)

    def _fit_ahofm(self, spec: TermSpec) -> InteractionTerm:
        options = spec.options
        orders = interaction_orders(options, len(spec.features))
        degrees = [df_by_order(spec, feature, orders) for feature in spec.features]
        places = [self._interaction_feature(spec, feature) for feature in spec.features]
        size_given = "k" in options
        fitted = []
        for order, rank in ranks(options, orders):
            wanted = [df[order] for df in degrees]
            smoothing = self.smoother.smoothing(places, wanted, spec, size_given)
            reached = tuple(map(self.smoother.reached, places, smoothing))
            fitted.append(Order(order, rank, tuple(smoothing), reached))
        return InteractionTerm(spec.label, self._name(spec.label), tuple(places), tuple(fitted))

    def _interaction_feature(self, spec: TermSpec, feature: Expression) -> int:
        """The feature's basis: what the interaction does not say is as in its own `s()`, cyclic say."""
        asked = {"bs": option_of(spec, "bs", feature) or "re"}
        self._check_category(spec, feature, asked, 'leave its `bs` out, or use "re"')
        options = with_own_smooth(spec, feature, self.formula.terms)
        options["center"] = spec.options.get("center", True)
        request = self._request(replace(spec, kind="s", features=(feature,), options=options))
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
            for order, rank in ranks(spec.options, orders)
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


def _bare(feature: Expression) -> Expression:
    """A feature without the `C()` around it."""
    return feature.arguments[0] if feature.is_category else feature
