"""What the residuals tell of interactions that are not in the model.

With u_jm the m-th smoothest function of feature j the sums

    t_jk(m, l) = sum_i w_i r_i u_jm(x_ij) u_kl(x_ik)

have the variance dispersion sum_i w_i u_jm(x_ij)^2 u_kl(x_ik)^2 where the pair (j, k) has no effect
left, and likewise for triples: what a whole order could still explain can be read off the residuals.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb, factorial, log
from typing import Any, NamedTuple

import numpy as np

from ahofm_keras.draws import generator
from ahofm_keras.solvers.blocks import FactorBlock
from ahofm_keras.solvers.chunks import Chunk
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.groups import FactorGroup, factor_prices
from ahofm_keras.solvers.settings import Settings
from ahofm_keras.solvers.state import State

Subset = tuple[int, ...]


@dataclass(frozen=True)
class Finding:
    """Products of functions of single features that the residuals ask for.

    Args:
        subset: indices of the features in their group.
        coefficients: for each product those of the smoothest functions of each feature.
        gain: of the log-likelihood, roughly.
    """

    subset: Subset
    coefficients: list[list[np.ndarray]]
    gain: float


@dataclass(frozen=True)
class Sample:
    """What a search looks at.

    Args:
        functions: of each feature `(m, n)`.
        residuals: working residuals `(n,)`.
        weight: working weights `(n,)`, all positive.
        dispersion: of the residuals.
        share: of these rows in the weight of all.
        settings: constants of the solvers.
    """

    functions: list[np.ndarray]
    residuals: np.ndarray
    weight: np.ndarray
    dispersion: float
    share: float
    settings: Settings


class PairSignal(NamedTuple):
    """What the residuals show of a pair.

    Args:
        pair: indices of the features in their group, that with the smoother functions first.
        excess: what the squares of the sums, in units of their noise, are beyond it, all together.
        mean: the same of one product.
    """

    pair: Subset
    excess: float
    mean: float


def price_of_search(template: FactorGroup) -> float:
    """The strongest of many subsets is strong by chance too: the logarithm of their number."""
    return log(comb(len(template.blocks), template.order))


def search(
    engine: Engine, state: State, template: FactorGroup, tried: Collection[Any], products: int
) -> Finding | None:
    """The subset of features, not tried yet, that gains the most; None where that is below its price.

    Args:
        engine: of the fit.
        state: of the fit.
        template: a group of the order.
        tried: subsets that were.
        products: of one subset, at most.
    """
    size = affordable(len(template.blocks), template.order, engine.rows, engine.settings)
    sample = None if size is None else _draw_sample(engine, state, template, *size)
    if sample is None:
        return None
    strongest = strongest_subsets(sample, template.order, tried)
    findings = [best_product(sample, subset) for subset in strongest]
    best = max(findings, key=lambda finding: finding.gain, default=None)
    own = float(factor_prices(np.array(template.order), template.order, engine.settings))
    if best is None or best.gain / sample.share <= own + price_of_search(template):
        return None
    return _with_more(sample, best, products, own * sample.share)


def significant_pairs(
    engine: Engine, state: State, template: FactorGroup, known: Collection[Subset]
) -> list[PairSignal]:
    """The pairs whose sums are beyond noise by more than their price, the strongest first.

    Args:
        engine: of the fit.
        state: of the fit.
        template: a group of the order.
        known: pairs that are not looked for.
    """
    size = affordable(len(template.blocks), 2, engine.rows, engine.settings)
    sample = None if size is None else _draw_sample(engine, state, template, *size)
    if sample is None:
        return []
    settings = engine.settings
    least = 2 * (2 * settings.log_prior_odds + price_of_search(template))
    found = []
    for excess, subset in _excesses_of_pairs(sample):
        total = float(excess.sum())
        if total > least and subset not in known:
            rough = [float(_mean_place(excess.sum(axis=axis))) for axis in (1, 0)]
            directed = subset if rough[0] <= rough[1] else subset[::-1]
            found.append(PairSignal(directed, total, total / excess.size))
    return sorted(found, key=lambda signal: signal.excess, reverse=True)


def _mean_place(energies: np.ndarray) -> float:
    """Of functions, weighted with what is in each."""
    own = np.maximum(energies, 0.0)
    return float(own @ np.arange(len(own)) / max(own.sum(), 1e-300))


def _excesses_of_pairs(sample: Sample) -> Iterator[tuple[np.ndarray, Subset]]:
    """What the squares of the sums of all products of two features are beyond noise, by pair."""
    stacked = np.concatenate(sample.functions)
    sums = (stacked * (sample.weight * sample.residuals)) @ stacked.T
    noise = (stacked**2 * sample.weight) @ (stacked**2).T
    excess = sums**2 / np.maximum(sample.dispersion * noise, 1e-300) - 1
    ends = np.cumsum([len(own) for own in sample.functions])
    places = [slice(end - len(own), end) for own, end in zip(sample.functions, ends, strict=True)]
    for one, other in combinations(range(len(places)), 2):
        yield excess[places[one], places[other]], (one, other)


def _with_more(sample: Sample, found: Finding, products: int, price: float) -> Finding:
    """The finding with further products of its subset, each for what those before it left over."""
    functions = [sample.functions[j] for j in found.subset]
    coefficients, gain, residuals = list(found.coefficients), found.gain, sample.residuals
    while len(coefficients) < products:
        own = zip(coefficients[-1], functions, strict=True)
        residuals = residuals - np.prod([weights @ values for weights, values in own], axis=0)
        more = best_product(replace(sample, residuals=residuals), found.subset)
        if more.gain <= price:
            break
        coefficients += more.coefficients
        gain += more.gain
    return Finding(found.subset, coefficients, gain)


def affordable(features: int, order: int, rows: int, settings: Settings) -> tuple[int, int] | None:
    """Functions of a feature and rows that keep the search within its budget; None if nothing does."""
    for functions in range(settings.search_functions, 0, -1):
        products = (features * functions) ** order / factorial(order)
        usual = min(settings.search_rows, settings.search_budget / products)
        more = min(settings.search_most_rows, settings.search_usual_budget / products)
        possible = int(min(rows, max(usual, more)))
        enough = possible >= min(rows, settings.search_least_rows)
        if features * functions <= settings.search_width and enough:
            return functions, possible
    return None


def smoothest(block: FactorBlock, count: int) -> np.ndarray:
    """Which functions of a feature are the smoothest."""
    return block.feature.smoothest(count)


def _draw_sample(
    engine: Engine, state: State, template: FactorGroup, functions: int, rows: int
) -> Sample | None:
    """Rows with a weight, drawn at random: data may be sorted, or go in rounds."""
    found, weights = engine.sums(weighted_rows, state)
    ends = np.cumsum(found)
    if not ends[-1]:
        return None
    drawn = np.arange(ends[-1])
    if ends[-1] > rows:
        drawn = np.sort(generator(0, "search").choice(ends[-1], rows, replace=False))
    parts = np.split(drawn, np.searchsorted(drawn, ends[:-1]))
    own = [part - (end - count) for part, end, count in zip(parts, ends, found, strict=True)]
    values, residuals, weight = engine.store.reduce(sample_rows, state, own, template.blocks, functions)
    weight = np.concatenate(weight)
    return Sample(
        [np.concatenate(own, axis=1) for own in zip(*values, strict=True)],
        np.concatenate(residuals),
        weight,
        state.dispersion,
        float(weight.sum() / weights),
        engine.settings,
    )


def weighted_rows(chunk: Chunk, state: State) -> tuple[list[int], float]:
    """Number of rows with a weight in each chunk, and the sum of weights."""
    _, weight = chunk.working(state)
    return [int(np.count_nonzero(weight > 0))], float(weight.sum())


def sample_rows(
    chunk: Chunk,
    state: State,
    drawn: list[np.ndarray],
    blocks: tuple[FactorBlock, ...],
    functions: int,
) -> tuple[list[list[np.ndarray]], list[np.ndarray], list[np.ndarray]]:
    """Smoothest functions of each feature, working residuals and weights of some rows.

    Args:
        chunk: of the rows.
        state: of the fit.
        drawn: for each chunk, which of its rows with a weight.
        blocks: of the features.
        functions: of each feature.
    """
    target, weight = chunk.working(state)
    rows = np.flatnonzero(weight > 0)[drawn[chunk.index]]
    values = [
        chunk.bases[block.position]
        .take(rows)
        .evaluate(block.feature.transform[:, smoothest(block, functions)].T)
        for block in blocks
    ]
    return [values], [(target - chunk.fit(state))[rows]], [weight[rows]]


def strongest_subsets(sample: Sample, order: int, tried: Collection[Any]) -> list[Subset]:
    """The subsets whose sums, over their noise, are furthest beyond what noise would give.

    One matrix product serves all pairs of features behind a prefix.
    """
    counts, closer = np.array([len(own) for own in sample.functions]), sample.settings.search_candidates
    starts = np.cumsum(counts) - counts
    stacked = np.concatenate(sample.functions)
    squares = stacked**2
    found: list[tuple[float, Subset]] = []
    for prefix in combinations(range(len(counts)), order - 2):
        first = prefix[-1] + 1 if prefix else 0
        if len(counts) - first < 2:
            continue
        rest, own = slice(starts[first], None), starts[first:] - starts[first]
        excess = np.zeros(2 * [len(stacked) - starts[first]])
        for line in _products([sample.functions[j] for j in prefix], len(sample.weight)):
            sums = (stacked[rest] * (sample.weight * sample.residuals * line)) @ stacked[rest].T
            noise = (squares[rest] * (sample.weight * line**2)) @ squares[rest].T
            excess += sums**2 / np.maximum(sample.dispersion * noise, 1e-300) - 1
        by_pair = np.add.reduceat(np.add.reduceat(excess, own, axis=0), own, axis=1)
        one, other = np.triu_indices(len(by_pair), 1)
        values = by_pair[one, other]
        for pair in np.argsort(values)[::-1][: closer + len(tried)]:
            subset = (*prefix, first + int(one[pair]), first + int(other[pair]))
            if subset not in tried:
                found.append((float(values[pair]), subset))
        found = sorted(found, reverse=True)[:closer]
    return [subset for _, subset in found]


def _products(functions: list[np.ndarray], rows: int) -> np.ndarray:
    """All products of one function of each feature, `(m m ..., n)`."""
    lines = np.ones((1, rows))
    for own in functions:
        lines = (lines[:, None] * own).reshape(-1, rows)
    return lines


def best_product(sample: Sample, subset: Subset) -> Finding:
    """The product of functions of single features that explains the most, by alternating."""
    functions = [sample.functions[j] for j in subset]
    shape = tuple(len(own) for own in functions)
    weighted = sample.weight * sample.residuals
    sums = (_products(functions, len(weighted)) @ weighted).reshape(shape)
    flat = [np.moveaxis(sums, axis, 0).reshape(count, -1) for axis, count in enumerate(shape)]
    vectors = [np.linalg.svd(own, full_matrices=False)[0][:, 0] for own in flat]
    for _ in range(sample.settings.search_steps):
        for axis in range(sums.ndim):
            rest = sums
            for other in reversed(range(sums.ndim)):
                if other != axis:
                    rest = np.tensordot(rest, vectors[other], axes=(other, 0))
            length = float(np.linalg.norm(rest))
            if not length > 0:  # nothing there, or nothing along the others
                return Finding(subset, [vectors], 0.0)
            vectors[axis] = rest / length
    phi = np.prod([vector @ own for vector, own in zip(vectors, functions, strict=True)], axis=0)
    explained, size = float(weighted @ phi), float(sample.weight @ phi**2)
    # Each of the d functions has the same share in the size of the product; one has its sign.
    scale = (abs(explained) / size) ** (1 / len(subset))
    signs = [np.sign(explained), *[1.0] * (len(subset) - 1)]
    coefficients = [sign * scale * vector for sign, vector in zip(signs, vectors, strict=True)]
    return Finding(subset, [coefficients], explained**2 / (2 * sample.dispersion * size))
