"""What all predictors together say of the response, as a table that a page looks things up in.

A page knows links and sums, but no distributions: mean and quantiles of the response are computed here
on a grid of the predictors, and the page interpolates between its points with cubics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ahofm_keras.decomposition.parts import Parts, level_values
from ahofm_keras.decomposition.read_rows import functions_on
from ahofm_keras.families import Family
from ahofm_keras.reporting.encoding import pack
from ahofm_keras.reporting.known_rows import KnownRows

# Points along each axis of a grid, by the number of predictors that are not constant.
_POINTS = {0: 1, 1: 401, 2: 81, 3: 25}
_FEWEST = 11
# With more predictors than this a table would be too large.
_MOST_AXES = 4
# Rows that are drawn to learn how far predictors reach, and by how much more a grid does.
_DRAWS = 4096
_AIR = 0.15

Json = dict[str, Any]


def describe_outcome(all_parts: Sequence[Parts], rows: KnownRows | None, level: float) -> Json | None:
    """Axes of the grid, and the tables `mean`, `lower` and `upper` (None where they are not smooth).

    Of a response that is one of several classes there are the probabilities of these instead, `classes`.

    Args:
        all_parts: of each predictor of one model.
        rows: known, or None.
        level: of the interval of a new response.

    Returns:
        None where there are too many predictors.
    """
    whole = all_parts[0].model.whole()
    family: Family = whole.family
    ends = [_reach(parts, rows) for parts in all_parts]
    moving = sum(high > low for low, high in ends)
    if moving > _MOST_AXES:
        return None
    points = _POINTS.get(moving, _FEWEST)
    axes = [np.linspace(low, high, points if high > low else 1) for low, high in ends]
    mesh = [own.reshape(-1) for own in np.meshgrid(*axes, indexing="ij")]
    names = [next(iter(parts.model.design.predictors)) for parts in all_parts]
    etas = dict(zip(names, mesh, strict=True))
    return {
        "axes": [[float(own[0]), float(own[-1]), len(own)] for own in axes],
        **_tables(family, etas, level),
    }


def _reach(parts: Parts, rows: KnownRows | None) -> tuple[float, float]:
    """Between which ends a predictor lies on rows, and where features are drawn from their margins."""
    offset = parts.model.design.only
    if not parts.groups and not offset.offsets:
        return parts.constant, parts.constant
    random = np.random.default_rng(0)
    drawn = []
    for variable, margin in zip(parts.variables, parts.margins.single, strict=True):
        known = level_values(variable) if variable.is_category else margin.quantiles
        known = variable.typical_points if variable.is_point else known
        chosen = random.permutation(np.resize(np.arange(len(known)), _DRAWS))
        drawn.append(variable.functions(known[chosen]))
    links = [parts.link(drawn)]
    if rows is not None:
        links.append(parts.link(functions_on(parts, rows.columns)) + offset.offset(rows.columns))
    found = np.concatenate(links)
    air = _AIR * float(np.ptp(found))
    return float(found.min()) - air, float(found.max()) + air


def _tables(family: Family, etas: Mapping[str, np.ndarray], level: float) -> Json:
    with np.errstate(all="ignore"):
        parameters = family.inverse_links(etas)
        if family.several_classes:
            chances = np.asarray(family.probabilities(parameters), float)
            return {**dict.fromkeys(_NAMES), "classes": [_table(own) for own in chances.T]}
        found: dict[str, Any] = {"mean": family.mean_of(parameters)}
        # Quantiles of counts have steps, between which a cubic would be no count.
        if not family.discrete and not family.is_loss:
            distribution = family.distribution_of(parameters)
            found["lower"] = distribution.ppf((1 - level) / 2)
            found["upper"] = distribution.ppf((1 + level) / 2)
    tables = {name: _table(np.asarray(own, float)) for name, own in found.items()}
    return {**dict.fromkeys(_NAMES), **tables, "classes": []}


_NAMES = ("mean", "lower", "upper")


def _table(values: np.ndarray) -> Json | None:
    """The values, of positive ones their logarithms, which are straighter; None if some are infinite."""
    if not np.isfinite(values).all():
        return None
    positive = bool((values > 0).all())
    return {"log": positive, "values": pack(np.log(values) if positive else values, "f8")}
