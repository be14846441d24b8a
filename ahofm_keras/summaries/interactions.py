"""The test of an order of an interaction term, by linearising it in the coefficients of its factors."""

from __future__ import annotations

import numpy as np

from ahofm_keras.decomposition import Parts
from ahofm_keras.decomposition.groups import places_by_group
from ahofm_keras.moments import elementary_symmetric
from ahofm_keras.summaries.wald import TermTest, function_test
from ahofm_keras.terms import Group, InteractionOrder, Margin, Variable

# Points at which the function is looked at: enough for its degrees of freedom.
_LEAST_POINTS = 512
_MOST_POINTS = 1024
_POINTS_PER_DF = 4


def interaction_test(
    parts: Parts, order: InteractionOrder, residual_df: float | None
) -> TermTest | None:
    """The Wald test of an order as a function, at points of the product of the training margins.

    Its covariance there is J V J', J the derivatives by all coefficients of the factors and V their
    posterior covariance; its rank about the degrees of freedom of the factors. Of large bases the test
    takes the smoothest functions alone, without the rest of the order, for which V is not kept. The
    factors that the fit chose count as given.

    Args:
        parts: of the model.
        order: of an interaction.
        residual_df: of the dispersion, None where it is known.
    """
    found = [group for group in parts.groups if group.source == order.key]
    if not found or not len(found[0].kept):
        return None
    group, rank = found[0], _reference_df(parts, order)
    least = int(np.ceil(np.log2(_POINTS_PER_DF * max(rank, 1.0))))
    points = int(np.clip(2**least, _LEAST_POINTS, _MOST_POINTS))
    tested = _tested_functions(parts, order, group)
    functions = [
        parts.variables[v].functions(values)[own]
        for v, values, own in zip(
            group.members, sample_margins(parts, group, points), tested, strict=True
        )
    ]
    weights = [w[own] for w, own in zip(group.weights, tested, strict=True)]
    factors = np.stack([w.T @ own for w, own in zip(weights, functions, strict=True)])
    values = group.scale @ elementary_symmetric(factors, group.order)
    spread = [_spread(parts, order, group, j, factors, functions[j]) for j in range(len(group.members))]
    return function_test(values, np.concatenate(spread, axis=1), rank, residual_df)


def _tested_functions(parts: Parts, order: InteractionOrder, group: Group) -> list[np.ndarray]:
    """Places among each member's functions of those whose covariances are kept."""
    layer, place = parts.model.posterior, parts.model.design.layout.only.order_index[order.key]
    assert layer is not None
    count = layer.orders[place]["tested_covariances"].shape[2]
    starts = [
        parts.variables[v].columns_of(position).start
        for v, position in zip(group.members, order.positions, strict=True)
    ]
    pairs = zip(starts, order.features, strict=True)
    return [start + feature.smoothest(count) for start, feature in pairs]


def _spread(
    parts: Parts,
    order: InteractionOrder,
    group: Group,
    j: int,
    factors: np.ndarray,
    functions: np.ndarray,
) -> np.ndarray:
    """Derivatives by the coefficients of feature j, times the root of their covariance, `(n, q)`."""
    layer, place = parts.model.posterior, parts.model.design.layout.only.order_index[order.key]
    assert layer is not None
    others = np.delete(factors, j, axis=0)
    slopes = group.scale[:, None] * elementary_symmetric(others, group.order - 1)
    found = []
    for chosen in places_by_group(parts.model, group):
        covariance = layer.tested_covariance(place, j, group.kept[chosen])
        size = covariance.shape[0] * covariance.shape[1]
        root = _root(covariance.reshape(size, size)).reshape(*covariance.shape[:2], size)
        found.append(np.einsum("fn,rn,frk->nk", slopes[chosen], functions, root, optimize=True))
    return np.concatenate(found, axis=1)


def _root(covariance: np.ndarray) -> np.ndarray:
    """L with L L' = V, also where V is singular."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _reference_df(parts: Parts, order: InteractionOrder) -> float:
    """tr(2H - HH) of all blocks of an order; of an average the mean of that of the fits."""
    layer, place = parts.model.posterior, parts.model.design.layout.only.order_index[order.key]
    assert layer is not None
    return float(np.sum(np.asarray(layer.reference_df[place]))) / float(layer.fits)


def sample_margins(parts: Parts, group: Group, points: int) -> list[np.ndarray]:
    """Points of the product of the margins, of each member of a group: a Latin hypercube."""
    rng = np.random.default_rng(0)
    return [
        _quantiles(parts.variables[v], parts.margins.single[v], (rng.permutation(points) + 0.5) / points)
        for v in group.members
    ]


def _quantiles(variable: Variable, margin: Margin, probability: np.ndarray) -> np.ndarray:
    if not variable.is_category:
        return np.interp(probability, np.linspace(0, 1, len(margin.quantiles)), margin.quantiles)
    bounds = np.cumsum(margin.frequencies)
    places = np.minimum(np.searchsorted(bounds, probability, side="right"), len(bounds) - 1)
    levels = np.array(variable.levels, object if isinstance(variable.levels[0], str) else None)
    return levels[places]
