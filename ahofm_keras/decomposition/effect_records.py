"""Effects: curves and surfaces of subsets of variables, with standard errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from ahofm_keras.decomposition.curves_by import curve_values, slope_values
from ahofm_keras.decomposition.grids import (
    axes_of,
    make_axis,
    near_data,
    read_at,
    values_on,
    with_jumps,
)
from ahofm_keras.decomposition.names import check_count, check_order, find_subset, name_parameter
from ahofm_keras.decomposition.network_curves import network_curves
from ahofm_keras.decomposition.parts import NOTHING, Parts
from ahofm_keras.decomposition.purify import Purification, purify_parts
from ahofm_keras.decomposition.ranking import over
from ahofm_keras.decomposition.uncertainty import Uncertainty
from ahofm_keras.decomposition.weight_functions import (
    WeightFunction,
    find_functional,
    functional_terms,
    read_weight_function,
)
from ahofm_keras.errors import DataError
from ahofm_keras.model import AdditiveModel
from ahofm_keras.model.arguments import check_level
from ahofm_keras.terms.groups import Subset

# Points along each axis, by order.
_POINTS = {1: 120, 2: 50, 3: 25}
_MANY_POINTS = 12


@dataclass(frozen=True, eq=False)
class Effect:
    """The part of the link that belongs to one subset of features and to no smaller one.

    Args:
        label: e.g. `x1:x2`; of points `lon, lat`.
        features: names of the axes; of points those of coordinates.
        grid: values of each feature, `(n_1,)`, ...
        fit: `(n_1, ..., n_d)`, in units of the link.
        se: standard errors, the same shape; None where the model has no posterior, or what is moved by
            purification is not known.
        share: of the variance of the link, under the product of the training margins; of a purified
            effect over the rows that it was purified on.
        near_data: where training rows are near, the same shape; None where it is not known.
        categories: which features are categories.
        purified: whether what smaller subsets can explain was moved to them.
        atoms: of one feature, the effect at the values that have a function of their own, beside which
            an even grid stands; None where there are none.
        parameter: of the family, whose predictor it is a part of; None of a model with one predictor.
        variables: names of the variables, where some are points, whose coordinates are `features`.
        by: the category that it is a curve per level of, or the number whose slope it is; else None.
    """

    label: str
    features: tuple[str, ...]
    grid: tuple[np.ndarray, ...]
    fit: np.ndarray
    se: np.ndarray | None
    share: float
    near_data: np.ndarray | None
    categories: tuple[bool, ...]
    purified: bool = False
    atoms: Effect | None = None
    parameter: str | None = None
    variables: tuple[str, ...] = ()
    by: str | None = None

    @property
    def slope_of(self) -> str | None:
        """The number whose slope it is, in units of the link per unit of the number; else None."""
        return None if self.by in self.features else self.by

    @property
    def order(self) -> int:
        """Number of axes."""
        return len(self.features)

    @property
    def names(self) -> tuple[str, ...]:
        """What a title names: variables where some are points, else features."""
        return self.variables or self.features

    def band(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of the pointwise credible band."""
        check_level("level", level)
        if self.se is None:
            reason = "it was purified" if self.purified else "the model has no posterior"
            if self.by is not None:
                reason += ", or factors have a share in it"
            raise DataError(f"The effect of `{self.label}` has no band: {reason}.")
        reach = stats.norm.ppf((1 + level) / 2) * self.se
        return self.fit - reach, self.fit + reach

    def frame(self, level: float = 0.95) -> pd.DataFrame:
        """One row per point of the grid: features, `fit` and, where known, `se`, `lower`, `upper`."""
        mesh = np.meshgrid(*self.grid, indexing="ij")
        frame = pd.DataFrame(
            {name: own.reshape(-1) for name, own in zip(self.features, mesh, strict=True)}
        )
        frame["fit"] = self.fit.reshape(-1)
        if self.se is not None:
            lower, upper = self.band(level)
            frame["se"] = self.se.reshape(-1)
            frame["lower"], frame["upper"] = lower.reshape(-1), upper.reshape(-1)
        return name_parameter(frame, self.parameter)

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.fit.shape))
        on = "" if self.parameter is None else f" on {self.parameter}"
        return f"<Effect {self.label}{on}: {shape} points, share {self.share:.1%}>"


def effect(
    model: AdditiveModel,
    *features: str,
    points: int | None = None,
    at: Mapping[str, Any] | None = None,
    purify: bool = False,
    data: Any = None,
    parameter: str | None = None,
    by: str | None = None,
) -> Effect:
    """The effect of one feature, a pair, a triple...

    Of a term of arrays, `s(t, by=w)`, it is f(t): what a unit of w at t adds to the link. Name `by="w"`
    where several terms have the points t.

    With `by=` it is a curve per level of a category, or the slope of a number as a function of the
    features: what `s(x, by=g)`, `s(x, g, bs="fs")` and `s(x, by=z)` are read for.

    Args:
        model: fitted.
        features: names, e.g. `"x1", "x2"`, or `"x1:x2"`.
        points: along each axis that is a number.
        at: values of some features to evaluate at, instead of an even grid.
        purify: whether what smaller subsets can explain of it on the rows, because features are
            correlated, is moved to them; the sum of all effects stays the same.
        data: rows to purify on, by default those of the fit.
        parameter: of the family whose predictor is read, by default the first; only models with several
            predictors have a choice.
        by: a category, whose levels have a curve each: the part of the features and that of them and the
            category together, without that of the category alone. Or a number that is linear in the
            model, whose slope it is.

    Raises:
        DataError: an unknown feature, more features than the model's highest order, values that are not
            finite or no levels; a slope of a number that is not linear.
    """
    parts = Parts(model, parameter)
    functional = find_functional(parts, features, by)
    if functional is not None:
        if purify:
            raise DataError("`purify` is for functions of features: arrays share nothing with others.")
        return _of_weights(parts, read_weight_function(parts, functional, points, at))
    if by is not None:
        check_by(by, features, purify)
        return _effect_by(parts, find_subset(parts, (*features, by)), points, at or {})
    subset = find_subset(parts, features)
    check_count("points", points, 2)
    given = read_at(parts, axes_of(parts, subset), at or {})
    purification = purify_parts(parts, data, wanted=subset) if purify else None
    maker = _Maker(parts, points, purification)
    return maker.make(subset, maker.share(subset), given)


def effects(
    model: AdditiveModel,
    order: int | None = None,
    top: int | None = None,
    points: int | None = None,
    purify: bool = False,
    data: Any = None,
    parameter: str | None = None,
) -> list[Effect]:
    """Effects of all features and, strongest first, of all pairs that have one.

    Effects of networks of one column, `deep(x, net="net")`, stand after those of features, then the
    functions f of terms of arrays, `s(t, by=w)`.

    Args:
        model: fitted.
        order: only those of this order, e.g. 3 for triples.
        top: at most this many of each order above 1.
        points: along each axis that is a number.
        purify: see `effect`.
        data: rows to purify on, by default those of the fit.
        parameter: of the family whose predictor is read, by default the first; only models with several
            predictors have a choice.
    """
    parts = Parts(model, parameter)
    if order is not None and not (order == 1 and parts.opaque):
        check_order(parts, order)
    check_count("top", top, 1)
    check_count("points", points, 2)
    highest = max(parts.largest_order, int(bool(parts.opaque)))
    orders = [order] if order is not None else [1, 2][:highest]
    purification = purify_parts(parts, data, least=min(orders, default=1)) if purify else None
    maker = _Maker(parts, points, purification)
    found = []
    for size in orders:
        ranked = maker.ranked(size)
        chosen = sorted(ranked) if size == 1 else list(ranked)[:top]
        found += [maker.make(subset, ranked[subset]) for subset in chosen]
        found += maker.networks() if size == 1 else []
        if size == 1:
            terms = functional_terms(parts)
            found += [_of_weights(parts, read_weight_function(parts, own, points)) for own in terms]
    return found


def _of_weights(parts: Parts, own: WeightFunction) -> Effect:
    """The function of a term of arrays: the slope of the weights along the axis of the points."""
    return Effect(
        own.label, (own.points,), (own.grid,), own.fit, own.se, own.share, None, (False,),
        parameter=parts.parameter, by=own.weights,
    )  # fmt: skip


def check_by(by: str, features: tuple[str, ...], purify: bool) -> None:
    """Raise where `by` stands alone or beside what it does not go with."""
    if not features:
        raise DataError(
            f'Name the features whose effect it is by `{by}`, e.g. `effect(model, "x", by="g")`.'
        )
    if purify:
        raise DataError("`purify` moves parts to smaller ones, which `by` adds up: use one of the two.")


def _effect_by(parts: Parts, subset: Subset, points: int | None, at: Mapping[str, Any]) -> Effect:
    """The curves, or the slope, by the last variable of a subset."""
    *others, by = subset
    own, is_category = tuple(others), parts.variables[by].is_category
    shown = subset if is_category else own
    axes = axes_of(parts, shown)
    given = read_at(parts, axes, at)
    count = points or _POINTS.get(len(axes) - is_category, _MANY_POINTS)
    grid = tuple(given[axis.name] if axis.name in given else make_axis(axis, count) for axis in axes)
    found = (curve_values if is_category else slope_values)(
        parts, own, by, values_on(parts, shown, grid)
    )
    fit, errors = (None if part is None else part.reshape([*map(len, grid)]) for part in found)
    assert fit is not None
    subsets = [own, subset] if is_category else [(by,), subset]
    share = sum(parts.variance(one) for one in subsets if parts.has(one))
    return Effect(
        f"{parts.label(own)} by {parts.variables[by].label}",
        tuple(axis.name for axis in axes),
        grid,
        fit,
        errors,
        float(over(np.array(share), parts.total_variance)),
        near_data(parts, axes, grid),
        tuple(axis.is_category for axis in axes),
        parameter=parts.parameter,
        variables=tuple(parts.variables[v].label for v in shown) if len(axes) > len(shown) else (),
        by=parts.variables[by].label,
    )


class _Maker:
    """Makes effects of one model."""

    def __init__(self, parts: Parts, points: int | None, purification: Purification | None) -> None:
        self.parts = parts
        self.points = points
        self.purification = purification
        self.uncertainty = None
        if purification is None and parts.model.has_posterior:
            self.uncertainty = Uncertainty(parts)

    def ranked(self, order: int) -> dict[Subset, float]:
        """All features, or all larger subsets that have an effect, with shares; strongest first."""
        subsets = self.parts.subsets(order)
        if self.purification is None:
            shares = over(self.parts.variances(subsets), self.parts.total_variance)
        else:
            moved = [part for part in self.purification.moved if len(part) == order]
            subsets = np.unique(np.array([*subsets.tolist(), *moved], int).reshape(-1, order), axis=0)
            shares = np.array([self.purification.share(tuple(subset)) for subset in subsets])
        best = np.argsort(-shares, kind="stable")
        kept = best if order == 1 else best[shares[best] > NOTHING]
        return {tuple(map(int, subsets[place])): float(shares[place]) for place in kept}

    def make(
        self,
        subset: Subset,
        share: float,
        at: Mapping[str, np.ndarray] | None = None,
        heaped: bool = False,
    ) -> Effect:
        """The effect of one subset, at given values of some variables, else on even grids.

        Args:
            subset: of variables.
            share: of the variance.
            at: values by name of the axis.
            heaped: whether these are its atoms.
        """
        parts, given = self.parts, at or {}
        axes = axes_of(parts, subset)
        points = self.points or _POINTS.get(len(axes), _MANY_POINTS)
        grid = tuple(
            given[axis.name] if axis.name in given else make_axis(axis, points) for axis in axes
        )
        if len(axes) == 1 and not given and not self.points:
            grid = (with_jumps(grid[0], axes[0].variable),)
        shape, values = tuple(map(len, grid)), values_on(parts, subset, grid)
        functions = [parts.variables[v].functions(own) for v, own in zip(subset, values, strict=True)]
        fit = parts.evaluate_grid(subset, functions)
        if self.purification is not None:
            fit = fit + self.purification.evaluate_grid(subset, functions)
        uncertainty = self.uncertainty
        return Effect(
            parts.label(subset),
            tuple(axis.name for axis in axes),
            grid,
            fit.reshape(shape),
            None if uncertainty is None else uncertainty.standard_errors(subset, values).reshape(shape),
            share,
            near_data(parts, axes, grid),
            tuple(axis.is_category for axis in axes),
            self.purification is not None,
            None if heaped else self._atoms(subset, share),
            parts.parameter,
            tuple(parts.variables[v].label for v in subset) if len(axes) > len(subset) else (),
        )

    def networks(self) -> list[Effect]:
        """The effects of networks of one column, which have no standard errors."""
        return [
            Effect(
                own.label, (own.feature,), (own.grid,), own.fit, None, own.share, None,
                (own.is_category,), parameter=self.parts.parameter,
            )
            for own in network_curves(self.parts, self.points)
        ]  # fmt: skip

    def _atoms(self, subset: Subset, share: float) -> Effect | None:
        """The effect of one variable at its atoms, if it has any."""
        variable = self.parts.variables[subset[0]]
        if len(subset) > 1 or not len(variable.atoms):
            return None
        return self.make(subset, share, {variable.label: variable.atoms}, heaped=True)

    def share(self, subset: Subset) -> float:
        """Share of the variance that a subset has."""
        if self.purification is not None:
            return self.purification.share(subset)
        return float(over(self.parts.variance(subset), self.parts.total_variance))
