"""What all predictors together say of the response, as tables that a page looks things up in.

A page knows links and sums, but no distributions: mean and quantiles of the response are computed here
on a grid of the predictors, and the page interpolates between its points with cubics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ahofm_keras.decomposition.parts import Parts, level_values
from ahofm_keras.decomposition.read_rows import functions_on
from ahofm_keras.families import Family, Quantile
from ahofm_keras.reporting.encoding import pack
from ahofm_keras.reporting.known_rows import KnownRows
from ahofm_keras.reporting.responses import quantile_sums, response_table

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
    """What a page says of the response.

    Args:
        all_parts: of each predictor of one model.
        rows: known, or None.
        level: of the interval of a new response.

    Returns:
        `axes` of a grid and on it the `mean` or the probabilities of `classes`; `spread`, the table of
        intervals, with the number of `trials` that they are of; `quantiles` of a family that has no
        more than these. What there is not is None or empty. None where nothing is known beyond the
        predictors, or where there are too many.
    """
    whole = all_parts[0].model.whole()
    family: Family = whole.family
    names = [next(iter(parts.model.design.predictors)) for parts in all_parts]
    nothing: Json = {
        "axes": [], "mean": None, "classes": [], "spread": None, "trials": None, "quantiles": []
    }  # fmt: skip
    if isinstance(family, Quantile):
        places = {name: place for place, name in enumerate(names)}
        return {**nothing, "quantiles": quantile_sums(places, family)}
    if family.nuisance or (family.is_loss and len(names) == 1) or (family.is_linear and len(names) == 1):
        return None
    ends = [_reach(parts, rows) for parts in all_parts]
    if sum(high > low for low, high in ends) > _MOST_AXES:
        return None
    found = {**nothing, **_means(family, ends, names)}
    if family.labelled or family.is_loss:
        return found
    trials = _trials(family, rows)
    counted = family if trials is None else family.for_trials(np.asarray(float(trials)))  # type: ignore
    if trials is None and hasattr(family, "for_trials"):
        return found
    dispersion = _dispersion(all_parts[0].model)
    spread = response_table(counted, ends, names, level, dispersion)
    if spread is not None and trials is not None:
        spread["most"] = float(trials)
    return {**found, "spread": spread, "trials": trials}


def _dispersion(model: Any) -> float | None:
    if model.family.dispersion_known or not model.has_posterior:
        return None
    return float(model.posterior.dispersion) * model.dispersion_unit


def _trials(family: Family, rows: KnownRows | None) -> int | None:
    """The middle number of trials of the rows, of a family that counts successes."""
    if not hasattr(family, "for_trials") or rows is None or rows.weight is None:
        return None
    own = rows.weight[rows.weight > 0]
    whole = len(own) > 0 and bool(np.all(np.abs(own - np.rint(own)) < 1e-9))
    return max(int(np.median(own)), 1) if whole else None


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


def _means(family: Family, ends: Sequence[tuple[float, float]], names: Sequence[str]) -> Json:
    """Mean, or the probabilities of classes, on a grid; nothing where the predictor alone says it."""
    if len(names) == 1 and not family.several_classes:
        return {}
    moving = sum(high > low for low, high in ends)
    points = _POINTS.get(moving, _FEWEST)
    axes = [np.linspace(low, high, points if high > low else 1) for low, high in ends]
    mesh = [own.reshape(-1) for own in np.meshgrid(*axes, indexing="ij")]
    etas: Mapping[str, np.ndarray] = dict(zip(names, mesh, strict=True))
    described = {"axes": [[float(own[0]), float(own[-1]), len(own)] for own in axes]}
    with np.errstate(all="ignore"):
        parameters = family.inverse_links(etas)
        if family.several_classes:
            chances = np.asarray(family.probabilities(parameters), float)
            return {**described, "classes": [_table(own) for own in chances.T]}
        return {**described, "mean": _table(np.asarray(family.mean_of(parameters), float))}


def _table(values: np.ndarray) -> Json | None:
    """The values, of positive ones their logarithms, which are straighter; None if some are infinite."""
    if not np.isfinite(values).all():
        return None
    positive = bool((values > 0).all())
    return {"log": positive, "values": pack(np.log(values) if positive else values, "f8")}
