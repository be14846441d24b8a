"""All that a page shows, as one dict that becomes its JSON."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from scipy.stats import norm

from ahofm_keras._version import __version__
from ahofm_keras.decomposition.grids import beside_atoms, with_jumps
from ahofm_keras.decomposition.parts import Parts, level_values, predictors_of
from ahofm_keras.decomposition.uncertainty import Uncertainty
from ahofm_keras.errors import DataError
from ahofm_keras.model import AdditiveModel
from ahofm_keras.model.formulas import formula_lines, formula_text
from ahofm_keras.reporting.arithmetic import describe_arithmetic, describe_posterior, has_large_posterior
from ahofm_keras.reporting.encoding import pack
from ahofm_keras.reporting.inputs import describe_inputs
from ahofm_keras.reporting.known_rows import describe_sample, find_known_rows
from ahofm_keras.reporting.outcome import describe_outcome
from ahofm_keras.reporting.quality import describe_quality
from ahofm_keras.reporting.ranking import describe_ranking, map_order
from ahofm_keras.reporting.survival import describe_survival
from ahofm_keras.reporting.words import (
    default_title,
    describe_facts,
    describe_family,
    describe_parameters,
    describe_words,
    observed_words,
    response_words,
)
from ahofm_keras.terms import Margin, Variable

# Points of a curve at which its standard error is known: even ones, and every second quantile.
_EVEN_POINTS = 61
# The same along each side of a map.
_MAP_POINTS = 31


def collect(
    model: AdditiveModel, data: Any, title: str | None, rows: int, level: float
) -> dict[str, Any]:
    """The contents of a page.

    Args:
        model: fitted.
        data: rows with their response, or None.
        title: headline, or None for one of our own.
        rows: how many rows enter the page, at most.
        level: of bands and intervals.
    """
    every = [Parts(view) for view in predictors_of(model)]
    parts, first = every[0], every[0].model
    whole = first.whole()
    if not parts.variables:
        held = " of features, only some that a page holds at their average" if parts.opaque else ""
        raise DataError(
            f"`{formula_text(whole)}` has no terms{held}, so a page has nothing to show. Add one."
        )
    known = find_known_rows(whole, data)
    sample = None if known is None else describe_sample(every, known, rows)
    chapters = [_chapter(own, data) for own in every]
    several = parts.parameter is not None
    whole_shown = len(every) > 1 or not several
    return {
        "title": default_title(parts) if title is None else title,
        "version": __version__,
        "formula": "\n".join(formula_lines(whole if len(every) > 1 else first)),
        "response": response_words(whole.response),
        "observed": observed_words(whole.response),
        "facts": describe_facts(parts),
        "warnings": [] if whole.fit_result is None else list(whole.fit_result.warnings),
        "quality": describe_quality(whole, known),
        "level": level,
        "level_reach": float(norm.ppf((1 + level) / 2)),
        "occupied": _occupied(parts),
        "inputs": describe_inputs(parts, None if known is None else known.columns),
        "sample": sample,
        "about": describe_parameters(every) if several else None,
        "classes": list(map(str, whole.family.classes)) if whole.family.several_classes else [],
        "outcome": describe_outcome(every, known, level) if whole_shown else None,
        "survival": describe_survival(whole, known, rows > 0) if whole_shown else None,
        **chapters[0],
        "chapters": chapters if len(every) > 1 else [],
    }


def _chapter(parts: Parts, data: Any) -> dict[str, Any]:
    """What belongs to one predictor."""
    model = parts.model
    uncertainty = Uncertainty(parts) if model.has_posterior else None
    ranking = describe_ranking(parts, data)
    return {
        "parameter": parts.parameter,
        "family": describe_family(model),
        "words": describe_words(model, ranking),
        "arithmetic": describe_arithmetic(parts),
        "margins": [
            _margin(place, *pair, uncertainty)
            for place, pair in enumerate(zip(parts.variables, parts.margins.single, strict=True))
        ],
        "posterior": describe_posterior(parts),
        "posterior_left_out": has_large_posterior(parts),
        "ranking": ranking,
        # By which effects look large or small; what is left of a model without effects shall look small.
        "spread": max(float(np.sqrt(parts.total_variance)), model.scale / 20),
        "map": map_order(parts),
    }


def _margin(
    place: int, variable: Variable, margin: Margin, uncertainty: Uncertainty | None
) -> dict[str, Any]:
    """Distribution of a variable, and standard errors of its main effect on a grid."""
    if variable.is_point:
        return _margin_of_points(place, margin, uncertainty)
    if variable.is_category:
        grid = level_values(variable)
        entry: dict[str, Any] = {"frequencies": pack(margin.frequencies, "f4")}
    else:
        even = np.linspace(margin.low, margin.high, _EVEN_POINTS)
        grid = with_jumps(np.unique(np.concatenate([even, margin.quantiles[::2]])), variable)
        grid = beside_atoms(variable, grid)
        entry = {"quantiles": pack(margin.quantiles), "grid": pack(grid)}
    if uncertainty is None:
        return {**entry, "se": None}
    heaped = variable.atoms
    atoms = uncertainty.standard_errors((place,), [heaped]) if len(heaped) else np.zeros(0)
    return {
        **entry,
        "se": pack(uncertainty.standard_errors((place,), [grid]), "f4"),
        "atoms_se": pack(atoms, "f4"),
    }


def _margin_of_points(place: int, margin: Margin, uncertainty: Uncertainty | None) -> dict[str, Any]:
    """Quantiles of the coordinates, and standard errors on a grid of two of them."""
    axes = margin.axes
    entry: dict[str, Any] = {"quantiles": pack(margin.quantiles), "se": None}
    if uncertainty is None or len(axes) != 2:
        return entry
    grid = [np.linspace(axis.low, axis.high, _MAP_POINTS) for axis in axes]
    points = np.stack([own.reshape(-1) for own in np.meshgrid(*grid, indexing="ij")], axis=1)
    errors = uncertainty.standard_errors((place,), [points])
    return {**entry, "se": pack(errors, "f4"), "se_axes": pack([(own[0], own[-1]) for own in grid])}


def _occupied(parts: Parts) -> dict[str, Any]:
    """For each two variables the cells with rows, as bits; `"3,5"` names the pair.

    `"3.0,3.1"` are the first two coordinates of the third variable.
    """
    place = {variable.label: f"{index}" for index, variable in enumerate(parts.variables)}
    for index, variable in enumerate(parts.variables):
        if variable.is_point:
            for coordinate, name in enumerate(variable.coordinates):
                place.setdefault(name, f"{index}.{coordinate}")
    return {
        f"{place[first]},{place[second]}": [
            *cells.shape,
            base64.b64encode(np.packbits(cells).tobytes()).decode(),
        ]
        for (first, second), cells in parts.margins.occupied.items()
    }
