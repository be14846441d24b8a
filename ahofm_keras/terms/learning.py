"""What terms learn from: training columns, the features of all terms, lambdas, names."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from ahofm_keras.formula import Formula, TermSpec
from ahofm_keras.formula.margins import KNOT_OPTIONS
from ahofm_keras.formula.options import DISTANCES
from ahofm_keras.terms.features import FeaturePool, Request
from ahofm_keras.terms.linear_coding import LinearCoder
from ahofm_keras.terms.networks import Network
from ahofm_keras.terms.smoothing import Smoother
from ahofm_keras.terms.term_options import basis_form
from ahofm_keras.transforms import Expression

# Where a formula does not say.
DEFAULT_ATOMS: str | bool = "auto"
# Among the options of a specification, among how many functions of one basis the rows are divided.
CURVES = "curves"


class Shared:
    """What the terms of all predictors share while they learn.

    Args:
        columns: raw training columns that the formulas use, checked.
        levels: of the columns of categories whose levels have an order.
        df_kind: definition of degrees of freedom.
        extrapolation: outside the training range.
        reach: degrees of freedom that the basis of each feature must be able to reach, by feature and
            whether it is a margin of a tensor product.
        neighbours: of regions, by the name of their column.
        ordered: columns of categories whose order means something.
        networks: that terms may be, by name.
    """

    def __init__(
        self,
        columns: Mapping[str, np.ndarray],
        levels: Mapping[str, tuple[str, ...]],
        df_kind: str,
        extrapolation: str,
        reach: dict[tuple[Expression, bool], float],
        neighbours: Mapping[str, Any] | None = None,
        ordered: Collection[str] = (),
        networks: Mapping[str, Network] | None = None,
    ) -> None:
        self.columns = columns
        self.ordered = ordered
        self.networks = networks or {}
        self.levels = levels
        sharing = sum(not is_margin for _, is_margin in reach)
        self.pool = FeaturePool(columns, levels, extrapolation, sharing, neighbours)
        self.smoother = Smoother(self.pool, df_kind)
        self.names: set[str] = set(columns)
        # One basis per feature: it serves the term and the order with the most degrees of freedom.
        # Tensor products have smaller ones of their own.
        self.reach = reach


class Learning:
    """What the terms of one predictor learn from.

    Args:
        formula: of the predictor.
        shared: by all predictors.

    Attributes:
        columns: raw training columns.
        pool: features, each learned once.
        smoother: degrees of freedom -> lambda.
        networks: that terms may be, by name.
        coder: of linear terms, one after another.
        reach: degrees of freedom that the basis of each feature must be able to reach, by feature and
            whether it is a margin of a tensor product.
        main_effects: features whose main effect an interaction has added.
        rows: their number.
        levels: of the columns of categories whose levels have an order.
        ordered: columns of these whose order means something.
        multiplied: numbers that some term multiplies with a constant.
    """

    def __init__(self, formula: Formula, shared: Shared) -> None:
        self.formula = formula
        self.columns = shared.columns
        self.pool = shared.pool
        self.smoother = shared.smoother
        self.levels, self.ordered = shared.levels, shared.ordered
        self.multiplied: set[Expression] = set()
        self.networks = shared.networks
        self.reach = shared.reach
        self.coder = LinearCoder(shared.columns, shared.levels, formula.intercept)
        self.main_effects: set[Expression] = set()
        self.rows = len(next(iter(shared.columns.values()), ()))
        self._names = shared.names

    def name(self, label: str) -> str:
        """A Keras layer name that is not taken: `s(x1)` -> `s_x1`."""
        stem = re.sub(r"\W+", "_", label, flags=re.ASCII).strip("_") or "term"
        name, copies = stem, 1
        while name in self._names:
            copies += 1
            name = f"{stem}_{copies}"
        self._names.add(name)
        return name

    def is_category(self, feature: Expression) -> bool:
        """Whether a feature's values are levels."""
        if feature.is_category:
            return True
        return feature.is_column and self.columns[feature.arguments[0]].dtype.kind != "f"

    def check_category(
        self, spec: TermSpec, feature: Expression, options: Mapping[str, Any], advice: str
    ) -> None:
        """Raise a `FormulaError` where the options ask for splines of a category."""
        if not self.is_category(feature):
            return
        if options.get("bs", "re") not in ("re", "mrf"):
            raise spec.error(f"Column `{feature}` holds categories: {advice}.")
        unused = [option for option in KNOT_OPTIONS if option in options]
        if unused:
            raise spec.error(f"`{unused[0]}` has no meaning for the category `{feature}`.")

    def request(self, feature: Expression, options: Mapping[str, Any]) -> Request:
        """The basis that the options of a smooth ask for."""
        if options.get("bs") == "mrf":
            return Request("mrf", center=options.get("center", True))
        if self.is_category(feature) or options.get("bs") == "re":
            return Request("re", center=options.get("center", True))
        bs = options.get("bs") or ("tp" if feature.is_point else None)
        if bs in DISTANCES:
            form, center = as_form(options.get("m")), options.get("center", True)
            return Request(bs, options.get("k"), self.reach[feature, False], center=center, form=form)
        kind, degree, difference = basis_form(options.get("bs"), options.get("m"))
        return Request(
            kind,
            options.get("k"),
            self.reach[feature, False],
            options.get("knots", "adaptive"),
            options.get("center", True),
            degree=degree,
            difference=difference,
            atoms=asked_atoms(kind, degree, options.get("atoms", DEFAULT_ATOMS)),
            curves=options.get(CURVES, 1),
            through=options.get("pc"),
        )

    def own_smooth(self, feature: Expression) -> TermSpec | None:
        """The `s()` that the formula has of a feature."""
        for spec in self.formula.terms:
            if spec.kind == "s" and spec.inputs == (feature,):
                return spec
        return None


def as_form(m: Any) -> tuple[float, ...]:
    """What `m` says of functions of distances, as numbers."""
    return () if m is None else tuple(map(float, m if isinstance(m, tuple) else (m,)))


def asked_atoms(kind: str, degree: int, given: Any) -> str | tuple[float, ...]:
    """The values that get a function of their own, or `"auto"`; circles and steps have none."""
    return given if kind == "ps" and degree and given else ()


def bare(feature: Expression) -> Expression:
    """A feature without the `C()` around it."""
    return feature.arguments[0] if feature.is_category else feature
