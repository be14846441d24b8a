"""Is each basis large enough? Residuals that are close along its features must not be alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.diagnostics.checked_rows import CheckedRows
from ahofm_keras.diagnostics.neighbours import find_neighbours, surface_test
from ahofm_keras.draws import generator
from ahofm_keras.model import AdditiveModel
from ahofm_keras.terms import Term, Variable
from ahofm_keras.transforms import evaluate_expression, quote_column

# Those of mgcv's `k.check`.
_ROWS = 5000
_PERMUTATIONS = 400
_LEVEL = 0.05
# A smooth that uses a smaller share of its degrees of freedom does not ask for more of them...
_SATURATED = 0.6
# ... unless it has few functions, which may have too little of the shape to be worth using.
_FEW = 8

_COLUMNS = ["basis", "terms", "k", "k'", "edf", "k_index", "p_value", "ok", "verdict"]


@dataclass(frozen=True)
class _Use:
    """A basis and the terms that use it; of tensor products that alone do, all variables of each.

    `chosen` says whether the fit chose the smoothing, or took it as it was given; `shape` is that in
    which a smooth is held.
    """

    variable: Variable
    terms: tuple[Any, ...]
    size: int
    largest: int
    edf: float
    has_main: bool = False
    distinct: int | None = None
    surfaces: tuple[tuple[Variable, ...], ...] = ()
    chosen: bool = True
    shape: str = ""

    @property
    def along(self) -> str:
        """What its residuals are looked at along, in words."""
        names = dict.fromkeys(v.label for surface in self.surfaces for v in surface)
        listed = [f"`{name}`" for name in names or (self.variable.label,)]
        return " and ".join(filter(None, [", ".join(listed[:-1]), listed[-1]]))


def basis_frame(
    model: AdditiveModel, rows: CheckedRows, residuals: np.ndarray, seed: int
) -> pd.DataFrame:
    """A row a basis, and one for each number that is linear only.

    A basis is looked at along its feature; one that only tensor products use, over all their features
    at once, as the surface has mean zero along each.

    Deviance residuals need not have mean 0, so what random orders of the rows give is not exactly 1:
    `attrs["random_orders"]` has the ends of its usual range with the median between.

    Args:
        model: fitted.
        rows: that it is checked on.
        residuals: of the deviance `(n,)`.
        seed: of the sample of rows and of the permutations.
    """
    uses = _find_uses(model)
    rng = generator(seed, "basis")
    chosen = np.arange(len(rows))
    if len(rows) > _ROWS:
        chosen = rng.choice(len(rows), _ROWS, replace=False)
    columns, residuals = rows.take(chosen), residuals[chosen]
    permuted = permuted_indices(residuals, rng)
    # Several bases ask for stricter evidence, as far as that many permutations can give it.
    tested = sum(not use.variable.is_category for use in uses)
    level = max(_LEVEL / max(tested, 1), 1.0 / (_PERMUTATIONS + 1))
    over_surfaces = {
        surface: surface_test(residuals, find_neighbours(surface, columns), rng, len(permuted))
        for surface in dict.fromkeys(surface for use in uses for surface in use.surfaces)
        if len(permuted)
    }
    found = []
    for use in uses:
        index = p_value = np.nan
        if use.surfaces and len(permuted):
            index, p_value = min((over_surfaces[s] for s in use.surfaces), key=lambda test: test[1])
        elif not use.variable.is_category and len(permuted):
            values = np.asarray(evaluate_expression(use.variable.expression, columns))
            index = k_index(residuals, values)
            p_value = float((1 + np.sum(permuted <= index)) / (1 + len(permuted)))
        labels = ", ".join(term.label for term in use.terms)
        line = (use.variable.label, labels, use.size, use.largest, use.edf, index, p_value)
        patterned = bool(p_value <= level)
        found.append((*line, not patterned, _verdict(use) if patterned else ""))
    frame = pd.DataFrame(found, columns=_COLUMNS)
    if len(permuted):
        frame.attrs["random_orders"] = tuple(np.quantile(permuted, [level, 0.5, 1 - level]).tolist())
    return frame


def k_index(residuals: np.ndarray, values: np.ndarray) -> float:
    """mgcv's k-index: the variance of residuals by differences of neighbours along a feature, over
    their mean square. Below 1 neighbours are alike, so there is shape left.

    Rows with the same value keep their order, as in R.
    """
    return _difference_variance(residuals[np.argsort(values, kind="stable")])


def permuted_indices(residuals: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same for random orders of the rows; empty where there is nothing to compare."""
    if len(residuals) < 3 or not residuals.any():
        return np.zeros(0)
    return np.array([_difference_variance(rng.permutation(residuals)) for _ in range(_PERMUTATIONS)])


def _difference_variance(ordered: np.ndarray) -> float:
    return float(np.mean(np.diff(ordered) ** 2) / 2 / np.mean(ordered**2))


def _find_uses(model: AdditiveModel) -> list[_Use]:
    uses, variables = [], model.design.variables()
    result = model.fit_result
    by_fit = result is not None and result.posterior == "variational"
    for variable in variables:
        has_main = bool(variable.products) or any(
            term.has_curves and set(term.smooth_features) & set(variable.places)
            for term in model.design.terms
        )
        for place, feature in zip(variable.places, variable.features, strict=True):
            terms = tuple(term for term in model.design.terms if place in term.smooth_features)
            if not terms:  # another predictor's, or what multiplies a term
                continue
            edf = max(_degrees_of_freedom(model, term, place) for term in terms)
            largest, distinct = len(feature.eigenvalues) - feature.atoms, feature.distinct
            surfaces = () if variable.is_category else _surfaces(terms, variables)
            if variable.is_point and not surfaces:
                surfaces = ((variable,),)
            size = feature.basis.splines
            chosen = by_fit and not any(_is_fixed(model, term) for term in terms)
            shape = next(filter(None, (_shape(model, term) for term in terms)), "")
            uses.append(
                _Use(variable, terms, size, largest, edf, has_main, distinct, surfaces, chosen, shape)
            )
        if not variable.features and not variable.is_category:
            terms = tuple(term for term in model.design.terms if _holds(term, variable))
            if not terms:
                continue
            size = len(variable.products)
            uses.append(_Use(variable, terms, size, size, float(size)))
    return uses


def _surfaces(terms: tuple[Any, ...], variables: list[Variable]) -> tuple[tuple[Variable, ...], ...]:
    """Variables of each tensor product, where all terms are such."""
    if not all(term.is_surface for term in terms):
        return ()
    return tuple(tuple(v for v in variables if set(v.places) & set(t.features)) for t in terms)


def _shape(model: AdditiveModel, term: Term) -> str:
    """The shape that a term is held in, if any."""
    span = model.design.layout.only.by_name.get(term.name)
    return "" if span is None else span.block.shape


def _is_fixed(model: AdditiveModel, term: Term) -> bool:
    """Whether the user gave the smoothing of a term."""
    layout = model.design.layout.only
    if term.name in layout.by_name:
        return layout.by_name[term.name].block.fixed
    return any(order.fixed for order in layout.orders_of(term))


def _holds(term: Term, variable: Variable) -> bool:
    """Whether a term has a design column of a variable."""
    own = {factor for product in variable.products for factor, _ in product}
    return term.parametric is not None and any(f in own for f in term.parametric.factors)


def _degrees_of_freedom(model: AdditiveModel, term: Term, place: int) -> float:
    """Reached by a smooth, one factor, or a surface along one margin at its best place on the others.

    Where no posterior tells, the df of the term's lambda.
    """
    layer: Any = model.posterior if model.has_posterior else None
    layout, j = model.design.layout.only, term.smooth_features.index(place)
    span = layout.by_name.get(term.name)
    if span is not None:
        if layer is None:
            return span.block.df[j]
        return span.block.edf_along(j, np.asarray(layer.linear_edf)[span.where])
    orders = layout.orders_of(term)
    if layer is None or not orders:
        return float(max((order.df[j] for order in orders), default=np.nan))
    places = [layout.order_index[order.key] for order in orders]
    return float(max(layer.edf_in_fit(own)[j].max() for own in places))


def _verdict(use: _Use) -> str:
    """What to do where residuals still have shape, in words."""
    name = use.variable.label
    if any(term.parametric is not None for term in use.terms) or use.size == 1:
        return f"Residuals still have shape along `{name}`, which is linear: try a smooth of it."
    if use.shape:
        return (
            f"Residuals still have shape along `{name}`, whose smooth is held {use.shape}: the data may "
            "be of another shape."
        )
    if not use.has_main and not use.surfaces:
        return f"Residuals still have shape along `{name}`, which only interacts: give it a smooth too."
    wanted = 2 * use.size
    if use.distinct is not None and wanted > use.distinct - 1:
        wanted = use.distinct - 1
    where, option = _where(use, wanted)
    larger = f"k of {where} may be too small: try {option}."
    if use.largest > _FEW and use.edf < _SATURATED * use.largest:
        return _verdict_on_spare(use, larger if wanted > use.size else "")
    if wanted <= use.size:
        return f"k of {where} may be too small, but `{name}` has {use.distinct} distinct values only."
    return larger


def _verdict_on_spare(use: _Use, larger: str) -> str:
    """What to do where residuals have shape, but the terms do not use what freedom they have.

    What is finer than the knots looks like noise to a basis: a smooth that could not follow it is
    straight. So k comes first, where the fit was free to use it.
    """
    used = f"only {use.edf:.1f} of {use.largest} degrees of freedom are used"
    others = "an interaction or a feature may be missing, or rows depend on each other."
    shape = f"Residuals still have shape along {use.along}, though {used}:"
    if not use.chosen:
        return (
            f'{shape} the smoothing was given. Let `solver="variational"` choose it, raise `df` or '
            "lower `sp`."
        )
    if larger:
        return f"{larger} If that changes nothing ({used} now), {others}"
    return f"{shape} {others}"


def _where(use: _Use, size: int) -> tuple[str, str]:
    smooth = [term for term in use.terms if term.has_curves and not term.is_surface]
    if smooth:
        return f"`{smooth[0].label}`", f"k={size}"
    name = quote_column(use.variable.label) if use.variable.expression.is_column else use.variable.label
    return f"`{name}` in `{use.terms[0].label}`", f"k={{{use.variable.label!r}: {size}}}"
