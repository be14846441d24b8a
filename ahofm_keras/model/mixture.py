"""The response averaged over the posterior of all predictors: a mixture of its distributions at nodes.

Predictors are gaussian and independent. Three nodes are enough of one that is known better than the
response spreads; of others there are more, row by row, so that no gaps are left between the nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.families import Family
from ahofm_keras.model.distributional import Spread, mean_band, row_slices, with_dispersion

# Of a standard deviation: below this a predictor counts as known.
_LEAST_SPREAD = 1e-9
# Numbers of nodes, and up to which standard error, in spreads of the response, they are enough.
_NODES = ((3, 0.6), (9, 2.0), (21, 3.0), (41, 4.5), (101, np.inf))
# Combinations of the nodes of several predictors, at most.
_MOST = 1000
# Chances whose distance is twice a spread; of counts it is at least a half.
_SIDES = (0.1587, 0.5, 0.8413)
_LEAST_STEP = 0.5
# Halvings of the interval that holds a quantile.
_HALVINGS = 60


@dataclass(frozen=True, eq=False)
class Mixture:
    """Some rows with the distributions that are mixed.

    Args:
        rows: places of the rows.
        weights: of the components, with sum 1.
        components: distributions of these rows.
    """

    rows: np.ndarray
    weights: list[float]
    components: list[Any]

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """The chance of at most y."""
        parts = zip(self.weights, self.components, strict=True)
        return np.asarray(sum(weight * own.cdf(y) for weight, own in parts))


def mixtures(family: Family, links: Mapping[str, Spread], dispersion: Any = 1.0) -> Iterator[Mixture]:
    """All rows, those together that need the same nodes.

    Args:
        family: of the response.
        links: mean and standard deviation of each predictor, by parameter.
        dispersion: of a family that estimates it.
    """
    rows = len(next(iter(links.values()))[0])
    for some in row_slices(rows):
        own = {name: (mean[some], spread[some]) for name, (mean, spread) in links.items()}
        places = np.arange(rows)[some]
        noise = dispersion[some] if np.ndim(dispersion) else dispersion
        of_some = family.of_rows(places)
        sizes = _numbers_of_nodes(of_some, own, noise)
        for kind in np.unique(sizes, axis=0):
            chosen = np.flatnonzero((sizes == kind).all(axis=1))
            at = {name: (mean[chosen], spread[chosen]) for name, (mean, spread) in own.items()}
            given = noise[chosen] if np.ndim(noise) else noise
            nodes = dict(zip(own, (int(size) for size in kind), strict=True))
            yield Mixture(places[chosen], *_components(of_some.of_rows(chosen), at, given, nodes))


def mixture_quantile(family: Family, links: Mapping[str, Spread], probability: float) -> np.ndarray:
    """Quantile of a new response, averaged over the posterior of all predictors."""
    found = np.zeros(len(next(iter(links.values()))[0]))
    for mixture in mixtures(family, links):
        found[mixture.rows] = _quantile(mixture, probability, family.discrete)
    return found


def band_of_parameters(family: Family, links: Mapping[str, Spread], level: float) -> pd.DataFrame:
    """Mean with its credible band, and the predictive interval."""
    tails = (1 - level) / 2, (1 + level) / 2
    means = {name: mean for name, (mean, _) in links.items()}
    lower, upper = mean_band(family, links, tails)
    return pd.DataFrame(
        {
            "mean": family.mean_of(family.inverse_links(means)),
            "lower": lower,
            "upper": upper,
            "predictive_lower": mixture_quantile(family, links, tails[0]),
            "predictive_upper": mixture_quantile(family, links, tails[1]),
        }
    )


def _quantile(mixture: Mixture, probability: float, discrete: bool) -> np.ndarray:
    ends = np.array([own.ppf(probability) for own in mixture.components])
    low, high = ends.min(axis=0), ends.max(axis=0)
    if discrete:
        low = low - 1
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = mixture.cdf(np.floor(middle) if discrete else middle) >= probability
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.floor(high) if discrete else high


def _components(
    family: Family, links: Mapping[str, Spread], dispersion: Any, nodes: Mapping[str, int]
) -> tuple[list[float], list[Any]]:
    weights, components = [], []
    uncertain = [name for name, size in nodes.items() if size > 1]
    for chosen in product(*(_rule(nodes[name]) for name in uncertain)):
        at = dict(zip(uncertain, chosen, strict=True))
        etas = {
            name: mean + (at[name][0] * spread if name in at else 0.0)
            for name, (mean, spread) in links.items()
        }
        weights.append(prod(weight for _, weight in chosen))
        parameters = with_dispersion(family, family.inverse_links(etas), dispersion)
        components.append(family.distribution_of(parameters))
    return weights, components


@cache
def _rule(size: int) -> tuple[tuple[float, float], ...]:
    """Gauss and Hermite's: nodes in standard deviations, and their weights."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(size)
    return tuple(zip(nodes.tolist(), (weights / weights.sum()).tolist(), strict=True))


def _numbers_of_nodes(family: Family, links: Mapping[str, Spread], dispersion: Any) -> np.ndarray:
    """Of each predictor on each row `(n, K)`; 1 of one that is known."""
    found = np.ones((len(next(iter(links.values()))[0]), len(links)), int)
    for place, (name, (_, spread)) in enumerate(links.items()):
        if not np.any(spread > _LEAST_SPREAD):
            continue
        ratio = _ratio(family, links, dispersion, name)
        steps = np.searchsorted([most for _, most in _NODES[:-1]], ratio)
        found[:, place] = np.array([size for size, _ in _NODES])[steps]
    while (over := np.prod(found, axis=1) > _MOST).any():
        # The predictor with most nodes has fewer.
        rows = np.flatnonzero(over)
        most = found[rows].argmax(axis=1)
        found[rows, most] = [_fewer(size) for size in found[rows, most]]
    return found


def _fewer(size: int) -> int:
    return max((own for own, _ in _NODES if own < size), default=1)


def _ratio(family: Family, links: Mapping[str, Spread], dispersion: Any, name: str) -> np.ndarray:
    """By how many spreads of the response a predictor's standard error moves it, or its spread."""
    if family.several_classes:
        return np.zeros(len(links[name][0]))
    quantiles = []
    for side in (-1.0, 0.0, 1.0):
        etas = {own: mean + (own == name) * side * spread for own, (mean, spread) in links.items()}
        parameters = with_dispersion(family, family.inverse_links(etas), dispersion)
        distribution = family.distribution_of(parameters)
        quantiles.append([np.asarray(distribution.ppf(chance), float) for chance in _SIDES])
    low, middle, high = np.moveaxis(np.array(quantiles), 1, 0)
    least = _LEAST_STEP if family.discrete else np.finfo(float).tiny
    with np.errstate(all="ignore"):
        spreads = np.maximum((high - low) / 2, least)
        moved = np.abs(middle[2] - middle[0]) / 2 / spreads[1]
        widened = np.abs(np.log(spreads[2] / spreads[0])) / 2
    ratio = np.maximum(moved, widened)
    return np.where(np.isfinite(ratio), ratio, 0.0)
