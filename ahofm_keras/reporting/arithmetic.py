"""The model's own arithmetic as plain data: all that a page needs to predict.

Every term is a sum of products of functions of single variables. The page evaluates the functions u of
each variable (splines, levels, factors of linear terms) at a row, the factors of each group as
combinations of them, and adds up products of factors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ahofm_keras.decomposition.groups import places_by_group
from ahofm_keras.decomposition.parts import Parts
from ahofm_keras.radial import Radial
from ahofm_keras.reporting.encoding import pack
from ahofm_keras.terms import Feature, Group, Variable
from ahofm_keras.terms.groups import CENTRES, DESIGN, FACTORS, PRODUCTS

Json = dict[str, Any]

_RADIAL = ("centre", "ends", "knots", "projection", "mixing")
# Covariances that a page carries, at most, in single precision: about 2 MB.
_MOST_COVARIANCES = 350_000


def describe_arithmetic(parts: Parts) -> Json:
    """Variables, groups of products, offsets and constants.

    `raw_constant` goes with the factors as they are, `constant` with the centred factors of the
    decomposition: `means` of each group are what is taken off its factors.
    """
    return {
        "raw_constant": parts.raw_constant,
        "constant": parts.constant,
        "held_range": _held_range(parts),
        "variables": [_variable(*pair) for pair in zip(parts.variables, parts.means, strict=True)],
        "groups": [_group(group, means) for group, means in _used_groups(parts)],
        "offsets": [
            {"label": label, "expression": offset.to_json()}
            for label, offset in parts.model.design.only.offsets.items()
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
        "coordinates": list(variable.coordinates),
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
        "atoms": list(basis.atoms),
        "degree": basis.degree,
        "intervals": basis.intervals,
        "axis": pack(basis.axis),
        "warped": pack(basis.warped),
        "extrapolation": basis.extrapolation,
        # Functions of distances are in their coordinates already.
        "transform": None if basis.is_dense else pack(feature.transform),
        "radial": None if basis.radial is None else _radial(basis.radial),
    }


def _radial(radial: Radial) -> Json:
    arrays = {name: pack(getattr(radial, name)) for name in _RADIAL}
    plain = {name: getattr(radial, name) for name in ("kernel", "shape", "power", "unit")}
    return {**plain, **arrays, "powers": radial.powers.tolist()}


def _component(factor: Any, component: int) -> Json:
    """A component of a linear term's factor: whether it is a level, any level, a power of `poly()`, or
    the value itself."""
    if factor.levels:
        return {"level": component}
    if factor.expression.function == "poly":
        return {"poly": list(factor.expression.state), "power": component}
    return {}


def _used_groups(parts: Parts) -> list[tuple[Group, np.ndarray]]:
    """Those that were not switched off as a whole, by what covaries; means of the factors."""
    found = []
    for group, means in zip(parts.groups, parts.group_means, strict=True):
        places = places_by_group(parts.model, group)
        if len(places) > 1:
            found += [(group.part(own), means[:, own]) for own in places]
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
        "held": bool(group.features),
    }


def _held_range(parts: Parts) -> list[float] | None:
    """Between which ends the sum of the groups that are held stays; None where there are none."""
    ends = parts.model.held_range
    return list(ends) if np.isfinite(ends).all() else None


def describe_posterior(parts: Parts) -> Json | None:
    """Covariances of all coefficients; None where there are none, or too many."""
    if not parts.model.has_posterior or _covariances(parts) > _MOST_COVARIANCES:
        return None
    model, layer = parts.model, parts.model.posterior
    assert layer is not None
    return {
        "dispersion": float(layer.dispersion) * model.dispersion_unit,
        "linear": _pack_root(layer.linear_roots * model.scale),
        "size": len(np.asarray(layer.linear_edf)),
        "intercept": bool(model.design.only.intercept),
        "groups": [_uncertain_group(parts, group) for group, _ in _used_groups(parts)],
    }


def has_large_posterior(parts: Parts) -> bool:
    """Whether intervals are left out of the page to keep it small."""
    return parts.model.has_posterior and _covariances(parts) > _MOST_COVARIANCES


def _covariances(parts: Parts) -> int:
    """Number of covariances of the model."""
    layer, order_index = parts.model.posterior, parts.model.design.layout.only.order_index
    assert layer is not None
    total = _triangle(len(np.asarray(layer.linear_edf)))
    for group, _ in _used_groups(parts):
        if group.kind == FACTORS:
            bases = [parts.model.design.features[place].basis for place in group.features]
            numbers = _triangle(len(group.kept)) * sum(basis.size * basis.width for basis in bases)
            kinds = 1 if layer.is_centred(order_index[group.source]) else 2
            total += 2 * kinds * numbers  # in double precision
    return total


def _triangle(size: int) -> int:
    return size * (size + 1) // 2


def _uncertain_group(parts: Parts, group: Group) -> Json:
    """Where the coefficients of a group stand in the linear block, or the covariances of its factors."""
    model, layout = parts.model, parts.model.design.layout.only
    if group.kind == CENTRES:
        return {"kind": group.kind}
    if group.kind in (PRODUCTS, DESIGN):
        places = layout.by_name[group.source[0]].where.start + group.kept
    if group.kind == PRODUCTS:
        columns = _columns(parts, group)
        return {"kind": group.kind, "places": pack(places, "i4"), "columns": columns}
    if group.kind == DESIGN:
        return {
            "kind": group.kind,
            "places": places.tolist(),
            "centre": group.centre.tolist(),
            "scale": (1 / group.unit).tolist(),
        }
    layer, place = model.posterior, layout.order_index[group.source]
    assert layer is not None
    pairs = np.triu_indices(len(group.kept))
    bands = {
        name: [pack(layer.band(place, j, group.kept, centred)[pairs]) for j in range(len(group.members))]
        for name, centred in (("bands", False), ("centred_bands", True))
        if not (centred and layer.is_centred(place))
    }
    members = zip(group.members, group.features, strict=True)
    bases = [parts.variables[variable].places.index(feature) for variable, feature in members]
    return {"kind": group.kind, "bases": bases, **bands}


def _columns(parts: Parts, group: Group) -> list[list[int]]:
    """Where the functions of each member's feature start and stop among those of its variable."""
    pairs = zip(group.members, group.features, strict=True)
    slices = [parts.variables[variable].columns_of(feature) for variable, feature in pairs]
    return [[own.start, own.stop] for own in slices]


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
