"""The model's own arithmetic as plain data: all that a page needs to predict.

Every term is a sum of products of functions of single variables. The page evaluates the functions u of
each variable (splines, levels, factors of linear terms) at a row, the factors of each group as
combinations of them, and adds up products of factors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ahofm_keras.effects.groups import CENTRES, Group, places_by_start
from ahofm_keras.effects.parts import Parts
from ahofm_keras.effects.uncertainty import linear_starts
from ahofm_keras.report.encoding import pack
from ahofm_keras.terms import (
    Feature,
    InteractionTerm,
    LinearTerm,
    OffsetTerm,
    PenalisedTerm,
    Variable,
)

Json = dict[str, Any]

# Covariances that a page carries, at most: about 2 MB.
_MOST_COVARIANCES = 350_000


def describe_arithmetic(parts: Parts) -> Json:
    """Variables, groups of products, offsets and constants.

    `raw_constant` goes with the factors as they are, `constant` with the centred factors of the
    decomposition: `means` of each group are what is taken off its factors.
    """
    nothing = [np.zeros((variable.size, 1)) for variable in parts.variables]
    return {
        "raw_constant": float(parts.link(nothing)[0]),
        "constant": parts.constant,
        "variables": [_variable(*pair) for pair in zip(parts.variables, parts.means, strict=True)],
        "groups": [_group(group, means) for group, means in _used_groups(parts)],
        "offsets": [
            {"label": term.label, "expression": term.expression.to_json()}
            for term in parts.model.design.of_kind(OffsetTerm)
        ],
        "largest_order": parts.largest_order,
    }


def _variable(variable: Variable, means: np.ndarray) -> Json:
    return {
        "label": variable.label,
        "name": variable.expression.arguments[0] if variable.expression.is_column else variable.label,
        "expression": variable.expression.to_json(),
        "columns": list(variable.expression.columns()),
        "levels": list(variable.levels),
        "bases": [_basis(feature) for feature in variable.features],
        "products": [
            [_component(factor, component) for factor, component in product]
            for product in variable.products
        ],
        "means": pack(means),
    }


def _basis(feature: Feature) -> Json:
    basis = feature.basis
    return {
        "kind": basis.kind,
        "size": basis.size,
        "degree": basis.degree,
        "intervals": basis.intervals,
        "axis": pack(basis.axis),
        "warped": pack(basis.warped),
        "extrapolation": basis.extrapolation,
        "transform": pack(feature.transform),
    }


def _component(factor: Any, component: int) -> Json:
    """A component of a linear term's factor: whether it is a level, any level, a power of `poly()`, or
    the value itself."""
    if factor.levels:
        return {"level": component}
    if factor.expression.function == "poly":
        return {"poly": list(factor.expression.state), "power": component}
    return {}


def _used_groups(parts: Parts) -> list[tuple[Group, np.ndarray]]:
    """Those that were not switched off as a whole, an average's start by start; means of the factors."""
    found = []
    for group, means in zip(parts.groups, parts.group_means, strict=True):
        starts = places_by_start(parts.model, group)
        if len(starts) > 1:
            found += [(group.part(own), means[:, own]) for own in starts]
        elif len(group.scale):
            found.append((group, means))
    return found


def _group(group: Group, means: np.ndarray) -> Json:
    return {
        "order": group.order,
        "members": list(group.members),
        "weights": [pack(weights) for weights in group.weights],
        "means": pack(means),
        "scale": pack(group.scale),
    }


def describe_posterior(parts: Parts) -> Json | None:
    """Roots of the covariances of all coefficients; None where there are none, or too many."""
    if not parts.model.has_posterior or _covariances(parts) > _MOST_COVARIANCES:
        return None
    model, layer = parts.model, parts.model.posterior
    assert layer is not None
    return {
        "dispersion": float(layer.dispersion) * model.dispersion_unit,
        "linear": _pack_root(layer.linear_roots * model.scale),
        "size": len(np.asarray(layer.linear_edf)),
        "intercept": bool(model.design.intercept),
        "groups": [_uncertain_group(parts, group) for group, _ in _used_groups(parts)],
    }


def has_large_posterior(parts: Parts) -> bool:
    """Whether intervals are left out of the page to keep it small."""
    return parts.model.has_posterior and _covariances(parts) > _MOST_COVARIANCES


def _covariances(parts: Parts) -> int:
    """Number of covariances of the model."""
    sizes = [len(np.asarray(parts.model.posterior.linear_edf))]  # type: ignore[union-attr]
    for group, _ in _used_groups(parts):
        if isinstance(_term(parts, group), InteractionTerm):
            sizes += [len(group.kept) * _width(parts, place) for place in group.features]
    return sum(size * (size + 1) // 2 for size in sizes)


def _uncertain_group(parts: Parts, group: Group) -> Json:
    """Where the coefficients of a group stand in the linear block, or the covariances of its factors."""
    model, term = parts.model, _term(parts, group)
    if group.source[1] == CENTRES:
        return {"kind": "centres"}
    columns = _columns(parts, group)
    if isinstance(term, PenalisedTerm):
        places = linear_starts(model)[term.name] + group.kept
        return {"kind": "products", "places": pack(places, "i4"), "columns": columns}
    if isinstance(term, LinearTerm):
        return {
            "kind": "linear",
            "places": (linear_starts(model)[term.name] + group.kept).tolist(),
            "centre": np.asarray(term.centre)[group.kept].tolist(),
            "scale": np.asarray(term.scale)[group.kept].tolist(),
        }
    place = _place_of_order(parts, group)
    packed = []
    for j, feature in enumerate(group.features):
        root = model.posterior.factor_root(place, j, group.kept)[:, : _width(parts, feature)]  # type: ignore
        packed.append(_pack_root(root.reshape(-1, root.shape[2])))
    return {"kind": "factors", "columns": columns, "roots": packed}


def _columns(parts: Parts, group: Group) -> list[list[int]]:
    """Where the functions of each member's feature start and stop among those of its variable."""
    # A linear term has no features.
    pairs = zip(group.members, group.features, strict=False)
    slices = [parts.variables[variable].columns_of(feature) for variable, feature in pairs]
    return [[own.start, own.stop] for own in slices]


def _place_of_order(parts: Parts, group: Group) -> int:
    """Position of a group's order among all orders of all interaction terms."""
    keys = [
        (term.name, place)
        for term in parts.model.design.terms
        for place in range(len(getattr(term, "orders", ())))
    ]
    return keys.index(group.source)


def _term(parts: Parts, group: Group) -> Any:
    return next(term for term in parts.model.design.terms if term.name == group.source[0])


def _width(parts: Parts, place: int) -> int:
    return len(parts.model.design.features[place].eigenvalues)


def _pack_root(root: np.ndarray) -> Json:
    """R of the covariance L L' = R'R, of which only the upper triangle is not 0.

    In single precision a root keeps the variance of what is well known beside coefficients that are not,
    where terms repeat each other; covariances would not.
    """
    size = len(root)
    triangle = np.zeros((size, size))
    found = np.linalg.qr(root.T, mode="r")
    triangle[: len(found)] = found
    return pack(triangle[np.triu_indices(size)], "f4")
