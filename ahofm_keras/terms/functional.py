"""Linear functionals of a smooth: `s(t, by=w)` of arrays is sum_j w_ij f(t_ij)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from ahofm_keras.bases import center_basis
from ahofm_keras.errors import DataError
from ahofm_keras.formula import TermSpec
from ahofm_keras.layers import Linear
from ahofm_keras.layers.coordinates import learning_speed
from ahofm_keras.layers.weighted_sums import WeightedSums
from ahofm_keras.penalties import DemmlerReinsch, degrees_of_freedom, orthogonalise, solve_smoothing
from ahofm_keras.terms.base import Tensor, Term, as_tuple, register_term
from ahofm_keras.terms.blocks import DesignColumns, Sources, UserCoefficients
from ahofm_keras.terms.features import (
    Request,
    basis_gram,
    basis_penalty,
    constant_column,
    count_free,
    make_basis,
    warn_of_far_values,
)
from ahofm_keras.terms.groups import GroupReader
from ahofm_keras.terms.learning import Learning
from ahofm_keras.terms.parametric import Parametric
from ahofm_keras.terms.smoothing import DEFAULT_DF
from ahofm_keras.terms.term_options import basis_form
from ahofm_keras.transforms import Expression

_KIND = "functional"
_WEIGHTS = "weights"
_OPTIONS = ("k", "df", "bs", "knots", "m", "sp", "by", "id")
_BASES = ("ps", "cp", "step")
# Sums that differ by a smaller share of their size are the same.
_EQUAL = 1e-10
# Of the degrees of freedom of the columns, where `df` is not given and these are few.
_REACHABLE = 0.9


def as_functional(spec: TermSpec, learning: Learning) -> TermSpec | None:
    """The specification of a smooth as one of arrays; None where its features hold none.

    Raises:
        FormulaError: arrays beside columns of numbers, or options that have no meaning for arrays.
    """
    arrays = [feature for feature in spec.inputs if _is_array(feature, learning)]
    if not arrays:
        return None
    feature, by = spec.features[0], spec.by
    if len(spec.features) > 1:
        raise spec.error(f"`{arrays[0]}` holds arrays, which stand alone: `s({arrays[0]}, by=w)`.")
    if feature not in arrays:
        raise spec.error(
            f"`{by}` holds arrays of weights, but `{feature}` one value per row: give the points that "
            f"the weights belong to, as arrays of the same shape, `s(points, by={by})`."
        )
    if by is not None and by not in arrays:
        raise spec.error(
            f"`{feature}` holds arrays of points, but `{by}` one value per row: give a weight for each "
            "point, as arrays of the same shape."
        )
    asked = {name: value for name, value in spec.options.items() if value is not False}
    odd = next((name for name in asked if name not in _OPTIONS), None)
    if odd is not None:
        raise spec.error(f"`{odd}` has no meaning for the arrays of `{feature}`.")
    if asked.get("bs", "ps") not in _BASES:
        listed = ", ".join(f'"{bs}"' for bs in _BASES)
        raise spec.error(f"`bs` of a smooth of arrays is one of {listed}. Received: {asked['bs']!r}.")
    options = {name: value for name, value in asked.items() if name != "by"}
    return replace(spec, kind=_KIND, options={**options, _WEIGHTS: by}, named=spec.label)


def _is_array(feature: Expression, learning: Learning) -> bool:
    return feature.is_column and learning.columns[feature.arguments[0]].ndim > 1


class SumColumns(DesignColumns):
    """Design columns that are sums along arrays.

    Args:
        sums: that compute them.
        where: among the design columns of all terms.
        eigenvalues: `(r,)` of the penalty.
        smoothing, df, fixed: of the term.
    """

    remedy = "Choose a smaller k"
    order = 1

    def __init__(
        self,
        sums: WeightedSums,
        where: slice,
        eigenvalues: np.ndarray,
        smoothing: float,
        df: float,
        fixed: bool,
    ) -> None:
        nothing = Parametric((), ((),) * len(sums), (), (), ())
        super().__init__(nothing, where, eigenvalues[None], (smoothing,), fixed, df=(df,))
        self._sums = sums

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self._sums.basis.size,)

    def user(self, label: str) -> UserCoefficients:
        labels = [f"{label}.{place + 1}" for place in range(self._sums.basis.size)]
        return UserCoefficients(labels, self._sums.transform, -self._sums.centre)

    def on_columns(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.asarray(self._sums.compute(columns))


@register_term
@dataclass(frozen=True, eq=False)
class FunctionalTerm(Term):
    """sum_j w_ij f(t_ij) for a smooth f: rows are vectors of points t_i and of weights w_i.

    f is centred only where the weights of all rows have one sum, as then no row tells its mean.

    Args:
        sums: compute its columns in Demmler-Reinsch coordinates.
        eigenvalues: `(r,)` of the penalty.
        means: `(r,)` of the columns over the training rows, 0 where these are centred.
        squares: `(r,)`, their second moments; products of two columns have mean 0.
        smoothing: lambda.
        df: degrees of freedom at that lambda, by the model's definition.
        fixed: whether the user gave lambda (`sp=`), so that no solver chooses it.
    """

    kind: ClassVar[str] = _KIND
    word: ClassVar[str] = "functional"
    sums: WeightedSums
    eigenvalues: tuple[float, ...]
    means: tuple[float, ...]
    squares: tuple[float, ...]
    smoothing: float
    df: float
    fixed: bool = False

    @classmethod
    def learn(cls, spec: TermSpec, learning: Learning) -> FunctionalTerm:
        splines, constraint = _learn_splines(spec, learning)
        raw = splines.raw(learning.columns)
        centre = raw.mean(axis=0) if learning.formula.intercept else np.zeros(raw.shape[1])
        rows = raw - centre
        if np.abs(rows).max() <= _EQUAL * np.abs(raw).max():
            raise DataError(f"`{spec.label}` is the same in all rows: nothing can be learned from it.")
        free = count_free(splines.basis) - (constraint is not None)
        found = orthogonalise(
            rows.T @ rows, basis_penalty(splines.basis), len(rows), constraint, max(free, 0)
        )
        smoothing = _smoothing(spec, found, learning.smoother.df_kind)
        columns = rows @ found.transform
        return cls(
            spec.label,
            learning.name(spec.label),
            replace(splines, transform=found.transform, centre=centre @ found.transform),
            tuple(found.eigenvalues.tolist()),
            tuple((columns.mean(axis=0) * (not learning.formula.intercept)).tolist()),
            tuple((columns**2).mean(axis=0).tolist()),
            smoothing,
            degrees_of_freedom(smoothing, found, learning.smoother.df_kind),
            "sp" in spec.options,
        )

    def to_json(self) -> dict[str, Any]:
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**own, "kind": self.kind, "sums": self.sums.config()}

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> FunctionalTerm:
        plain = {k: as_tuple(v) for k, v in config.items() if k not in ("kind", "sums")}
        return cls(sums=WeightedSums.from_config(config["sums"]), **plain)

    @property
    def arrays(self) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(self.sums.names, (self.sums.width,))

    @property
    def design_columns(self) -> WeightedSums:
        return self.sums

    @property
    def weight_function(self) -> WeightedSums:
        return self.sums

    def linear_block(self, sources: Sources) -> SumColumns:
        where = sources.column_slices.get(self.name, slice(0, len(self.sums)))
        return SumColumns(
            self.sums, where, np.array(self.eigenvalues), self.smoothing, self.df, self.fixed
        )

    def with_smoothing(self, smoothing: tuple[float, ...], fixed: bool) -> FunctionalTerm:
        return replace(self, smoothing=smoothing[0], fixed=fixed)

    def connect(self, inputs: Any) -> Tensor:
        own, eigenvalues = inputs.sources.column_slices[self.name], np.array(self.eigenvalues)
        penalty, speed = self.smoothing * eigenvalues, learning_speed(eigenvalues, self.smoothing)
        layer = Linear(own.start, own.stop, penalty.tolist(), speed.tolist(), name=self.name)
        return layer(inputs.columns)

    def add_groups(self, reader: GroupReader) -> None:
        weights = reader.coordinates(self.name)
        mean = float(weights @ np.array(self.means))
        variance = float(weights**2 @ np.array(self.squares)) - mean**2
        reader.add_opaque(self.label, self.name, mean, variance)


def _learn_splines(spec: TermSpec, learning: Learning) -> tuple[WeightedSums, np.ndarray | None]:
    """Sums of B-splines, and what centres their coefficients, where rows do not tell the mean."""
    feature, by = spec.features[0], spec.options[_WEIGHTS]
    points = learning.columns[feature.arguments[0]].astype(float)
    weights = np.ones_like(points) if by is None else learning.columns[by.arguments[0]].astype(float)
    if points.shape != weights.shape:
        raise DataError(
            f"`{spec.label}` needs a weight for each point: the arrays of `{feature}` have the shape "
            f"{points.shape[1:]}, those of `{by}` {weights.shape[1:]}."
        )
    if points.ndim > 2:
        raise DataError(
            f"`{spec.label}` takes a vector per row, but the arrays of `{feature}` have the shape "
            f"{points.shape[1:]}. Reshape them to one axis."
        )
    counted = weights != 0
    if not counted.any():
        raise DataError(f"All weights of `{by}` are 0: `{spec.label}` cannot learn anything from them.")
    values = points[counted]
    found, counts = np.unique(values, return_counts=True)
    if len(found) < 2:
        raise constant_column(feature, spec)
    warn_of_far_values(feature, values)
    options = spec.options
    kind, degree, difference = basis_form(options.get("bs"), options.get("m"))
    request = Request(
        kind,
        options.get("k"),
        options.get("df") or DEFAULT_DF,
        options.get("knots", "adaptive"),
        degree=degree,
        difference=difference,
        curves=points.shape[1],
    )
    basis = make_basis(request, found, counts, learning.pool, spec)
    name = None if by is None else by.arguments[0]
    start, nothing = np.eye(basis.size), np.zeros(basis.size)
    splines = WeightedSums(feature.arguments[0], name, points.shape[1], basis, start, nothing)
    totals, size = weights.sum(axis=1), float(np.abs(weights).sum(axis=1).max())
    if np.ptp(totals) > _EQUAL * size:
        return splines, None
    if abs(totals[0]) > _EQUAL * size:
        return splines, center_basis(splines.raw(learning.columns).mean(axis=0))
    _, means = basis_gram(basis, found, counts)
    return splines, center_basis(means)


def _smoothing(spec: TermSpec, basis: DemmlerReinsch, df_kind: str) -> float:
    """Lambda, as given or of the degrees of freedom asked for."""
    if "sp" in spec.options:
        return float(spec.options["sp"])
    null, rank = basis.null_dimension, basis.rank
    df = spec.options.get("df")
    if df is not None and not min(null, rank - 1) < df < rank:
        raise spec.error(
            f"`df` of `{spec.label}` must lie above {null}, which its penalty leaves free, and below "
            f"{rank:g}, which its rows can tell.\n    Received: df={df:g}."
        )
    if rank <= null:
        return 0.0
    return solve_smoothing(df or min(DEFAULT_DF, null + _REACHABLE * (rank - null)), basis, df_kind)
