"""Quantiles of a new response as a table over the predictors, from which a page takes intervals.

A page mixes distributions over what is known of the predictors, so it needs quantiles at many
probabilities, not at two. They are functions of the predictors that it can interpolate: of counts it has
numbers between two quantiles, of which the next whole number is that of the count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import special
from scipy.stats import norm

from ahofm_keras.families import Family
from ahofm_keras.reporting.encoding import pack

# Points along each axis of a grid, by the number of predictors that are not constant.
_POINTS = {0: 1, 1: 161, 2: 41, 3: 15}
_FEWEST = 7
# How far apart the normal scores of the quantiles are, about, so that those of the level are among them;
# those of counts have a corner at each whole number.
_STEP, _STEP_OF_COUNTS, _FARTHEST = 0.65, 0.33, 4.5

Json = dict[str, Any]


def response_table(
    family: Family,
    ends: Sequence[tuple[float, float]],
    names: Sequence[str],
    level: float,
    dispersion: float | None,
) -> Json | None:
    """Quantiles of a new response on a grid of the predictors; None where there are none to be had.

    Args:
        family: of the response, which has a distribution.
        ends: between which each predictor lies.
        names: of the parameters that they belong to.
        level: of intervals.
        dispersion: of a family that estimates it; None where it is not known.
    """
    if family.binary or (dispersion is None and not family.dispersion_known):
        return None
    moving = sum(high > low for low, high in ends)
    points = _POINTS.get(moving, _FEWEST)
    axes = [np.linspace(low, high, points if high > low else 1) for low, high in ends]
    mesh = [own.reshape(-1) for own in np.meshgrid(*axes, indexing="ij")]
    scores = _scores(level, _STEP_OF_COUNTS if family.discrete else _STEP)
    with np.errstate(all="ignore"):
        parameters = dict(family.inverse_links(dict(zip(names, mesh, strict=True))))
        if not family.dispersion_known:
            parameters["dispersion"] = np.full(len(mesh[0]), dispersion)
        distribution = family.distribution_of(parameters)
        smooth = _counted if family.discrete else _heaped
        found = np.stack([smooth(family, distribution, float(score)) for score in scores])
    if not np.isfinite(found).all():
        return None
    positive = bool((found > 0).all())
    least, most = (float(end) if np.isfinite(end) else None for end in family.bounds)
    return {
        "axes": [[float(own[0]), float(own[-1]), len(own)] for own in axes],
        "scores": scores.tolist(),
        "log": positive,
        "values": pack(np.log(found) if positive else found, "f4"),
        "whole": family.discrete,
        "least": least,
        "most": most,
    }


def _scores(level: float, about: float) -> np.ndarray:
    reach = float(norm.ppf((1 + level) / 2))
    step = reach / max(round(reach / about), 1)
    count = int(np.ceil(_FARTHEST / step))
    return step * np.arange(-count, count + 1)


def _at(distribution: Any, score: float) -> np.ndarray:
    """The quantile of a normal score, by the tail that has more digits."""
    tail = special.ndtr(-abs(score))
    return np.asarray(distribution.isf(tail) if score > 0 else distribution.ppf(tail), float)


def _counted(family: Family, distribution: Any, score: float) -> np.ndarray:
    """A number between the quantile and the one before it, by the normal scores of both."""
    found = _at(distribution, score)
    if score > 0:
        below, own = (-special.ndtri(distribution.sf(found - before)) for before in (1, 0))
    else:
        below, own = (special.ndtri(distribution.cdf(found - before)) for before in (1, 0))
    below = np.maximum(below, own - 1.0)  # nothing is before 0
    share = np.where(own > below, (score - below) / (own - below), 1.0)
    return np.asarray(found - 1 + np.clip(share, 0.0, 1.0))


def _heaped(family: Family, distribution: Any, score: float) -> np.ndarray:
    """The quantile; in a heap of responses at the least value one goes on falling below it.

    By how much says nothing, but then it has no corner where it leaves the heap, and always falls.
    """
    found = _at(distribution, score)
    least = family.bounds[0]
    if not np.isfinite(least):
        return found
    heap = np.asarray(distribution.cdf(least), float) * np.ones_like(found)
    if not (heap > 0).any():
        return found
    edge = special.ndtri(np.clip(heap, 1e-300, 1 - 1e-16))
    slope = np.asarray(distribution.std(), float)
    return np.where(found > least, found, least + np.minimum(score - edge, 0.0) * slope)


def level_words(level: float) -> str:
    """`10 % quantile`, `median`."""
    return "median" if level == 0.5 else f"{100 * level:.4g} % quantile"


def quantile_sums(places: Mapping[str, int], family: Any) -> list[Json]:
    """Fitted quantiles as sums of parameters: their words, and which parameters with which sign."""
    middle = family.columns[family.middle]
    found = []
    for place, level in enumerate(family.levels):
        if place >= family.middle:
            gaps, sign = family.gaps[family.middle : place], 1
        else:
            gaps, sign = family.gaps[place : family.middle], -1
        sums = [[places[middle], 1], *([places[gap], sign] for gap in gaps)]
        found.append({"name": level_words(level), "sums": sums, "middle": place == family.middle})
    return found
