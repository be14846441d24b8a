"""Look for interactions that the ascent has missed, and take them in.

Random factors feel an interaction only through the products that they happen to have, and what the
stronger interactions leave over is no more than noise to them: a triple beside a pair stays unseen. But
what a whole order could still explain can be read off the residuals: with u_jm the m-th smoothest
function of feature j the sums

    t_jk(m, l) = sum_i w_i r_i u_jm(x_ij) u_kl(x_ik)

have the variance dispersion sum_i w_i u_jm(x_ij)^2 u_kl(x_ik)^2 where the pair (j, k) has no effect
left, and likewise for triples. The subset with the most beyond noise gets a factor of its own, started
at the best product of functions of single features, and keeps it if that is worth its price.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from itertools import combinations
from math import comb, factorial, log

import numpy as np

from ahofm_keras.solvers.blocks import FactorBlock, FactorGroup, make_groups
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.gram import CellBasis
from ahofm_keras.solvers.priors import ACTIVE, COST
from ahofm_keras.solvers.trials import attempt, score

# Functions of a feature that are looked at, and rows at most.
_FUNCTIONS = 5
_ROWS = 5000
_LEAST_ROWS = 500
# Products at most: a search should not take longer than a few sweeps. And functions of all features.
_BUDGET = 1e10
_WIDEST = 2000
# So many of the strongest subsets are looked at more closely.
_CLOSER = 30
_ITERATIONS = 20
# An order is done after so many subsets in a row that were not worth it.
_FAILURES = 2

Subset = tuple[int, ...]


@dataclass(frozen=True)
class Finding:
    """A product of functions of single features that the residuals ask for.

    Args:
        subset: places of the features in their group.
        coefficients: of the smoothest functions of each of them.
        gain: of the log-likelihood, roughly.
    """

    subset: Subset
    coefficients: list[np.ndarray]
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
    """

    functions: list[np.ndarray]
    residuals: np.ndarray
    weight: np.ndarray
    dispersion: float
    share: float


def grow(engine: Engine) -> Generator[Engine | None, None, bool]:
    """Search every order until nothing is left in it; an attempt counts as a sweep.

    Returns:
        Whether something was taken in.
    """
    grown = False
    for template in make_groups(engine.design, engine.total_weight, engine.random, rank=1):
        failures = 0
        tried: set[Subset] = set()
        while failures < _FAILURES:
            slot = _free_slot(engine, template)
            found = None if slot is None else search(engine, template, tried)
            if slot is None or found is None:
                break
            yield None
            kept = _try_factor(engine, template, slot, found)
            yield engine
            grown = grown or kept
            failures = 0 if kept else failures + 1
            tried = set() if kept else tried | {found.subset}
    return grown


def _try_factor(engine: Engine, template: FactorGroup, slot: int, found: Finding) -> bool:
    """A factor stays if it is worth more than its price and that of having searched for it."""

    def is_on() -> bool:
        place = _place(engine, template)
        assert place is not None
        return (
            sum(block.factor_edf[-1] > ACTIVE for block in engine.groups[place].blocks) >= template.order
        )

    goal = score(engine) + _price_of_search(template)
    return attempt(engine, _with_factor(engine, template, slot, found), goal, is_on)


def _price_of_search(template: FactorGroup) -> float:
    """The strongest of many subsets is strong by chance too: the logarithm of their number."""
    return log(comb(len(template.blocks), template.order))


def _place(engine: Engine, template: FactorGroup) -> int | None:
    """Where the order stands among the groups, if it is there."""
    places = [i for i, group in enumerate(engine.groups) if group.key == template.key]
    return places[0] if places else None


def _free_slot(engine: Engine, template: FactorGroup) -> int | None:
    """A factor of the order that is not in use, if there is one."""
    place = _place(engine, template)
    used = () if place is None else engine.groups[place].kept
    free = set(range(template.factors.slots)) - set(used)
    return min(free, default=None)


# The search -----------------------------------------------------------------------------------------


def search(engine: Engine, template: FactorGroup, tried: set[Subset]) -> Finding | None:
    """The subset of features, not tried yet, that gains the most; None where that is below its price."""
    size = affordable(len(template.blocks), template.order, engine.rows)
    sample = None if size is None else _draw_sample(engine, template, *size)
    if sample is None:
        return None
    strongest = strongest_subsets(sample, template.order, tried)
    findings = [best_product(sample, subset) for subset in strongest]
    best = max(findings, key=lambda finding: finding.gain, default=None)
    price = COST * template.order + _price_of_search(template)
    return best if best is not None and best.gain / sample.share > price else None


def affordable(features: int, order: int, rows: int) -> tuple[int, int] | None:
    """Functions of a feature and rows that keep the search within its budget; None if nothing does."""
    for functions in range(_FUNCTIONS, 0, -1):
        products = (features * functions) ** order / factorial(order)
        possible = int(min(rows, _ROWS, _BUDGET / products))
        if features * functions <= _WIDEST and possible >= min(rows, _LEAST_ROWS):
            return functions, possible
    return None


def _smoothest(block: FactorBlock, count: int) -> np.ndarray:
    return np.argsort(block.feature.eigenvalues, kind="stable")[:count]


def _draw_sample(engine: Engine, template: FactorGroup, count: int, rows: int) -> Sample | None:
    """Rows with a weight, drawn at random: data may be sorted, or go in rounds."""
    weights = [chunk.weight for chunk in engine.chunks]
    weighted = np.flatnonzero(np.concatenate(weights) > 0)
    if not len(weighted):
        return None
    if len(weighted) > rows:
        weighted = np.sort(np.random.default_rng(0).choice(weighted, rows, replace=False))
    ends = np.cumsum([len(weight) for weight in weights])
    parts = np.split(weighted, np.searchsorted(weighted, ends[:-1]))
    functions, residuals, weight = [], [], []
    for chunk, end, part in zip(engine.chunks, ends, parts, strict=True):
        own = part - (end - len(chunk.y))
        functions.append(
            [_evaluate(block, chunk.bases[block.position], own, count) for block in template.blocks]
        )
        residuals.append((chunk.target - chunk.fit())[own])
        weight.append(chunk.weight[own])
    drawn = np.concatenate(weight)
    share = float(drawn.sum() / sum(float(own.sum()) for own in weights))
    joined = [np.concatenate(own, axis=1) for own in zip(*functions, strict=True)]
    return Sample(joined, np.concatenate(residuals), drawn, engine.dispersion, share)


def _evaluate(block: FactorBlock, basis: CellBasis, rows: np.ndarray, count: int) -> np.ndarray:
    """The smoothest functions of a feature at some rows."""
    return basis.take(rows).evaluate(block.feature.transform[:, _smoothest(block, count)].T)


def strongest_subsets(sample: Sample, order: int, tried: set[Subset]) -> list[Subset]:
    """The subsets whose sums, over their noise, are furthest beyond what noise would give.

    One matrix product serves all pairs of features behind a prefix.
    """
    counts = np.array([len(own) for own in sample.functions])
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
        for place in np.argsort(values)[::-1][: _CLOSER + len(tried)]:
            subset = (*prefix, first + int(one[place]), first + int(other[place]))
            if subset not in tried:
                found.append((float(values[place]), subset))
        found = sorted(found, reverse=True)[:_CLOSER]
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
    for _ in range(_ITERATIONS):
        for axis in range(sums.ndim):
            rest = sums
            for other in reversed(range(sums.ndim)):
                if other != axis:
                    rest = np.tensordot(rest, vectors[other], axes=(other, 0))
            length = float(np.linalg.norm(rest))
            if not length > 0:  # nothing there, or nothing along the others
                return Finding(subset, vectors, 0.0)
            vectors[axis] = rest / length
    phi = np.prod([vector @ own for vector, own in zip(vectors, functions, strict=True)], axis=0)
    explained, size = float(weighted @ phi), float(sample.weight @ phi**2)
    # Each of the d functions has the same share in the size of the product; one has its sign.
    scale = (abs(explained) / size) ** (1 / len(subset))
    signs = [np.sign(explained), *[1.0] * (len(subset) - 1)]
    coefficients = [sign * scale * vector for sign, vector in zip(signs, vectors, strict=True)]
    return Finding(subset, coefficients, explained**2 / (2 * sample.dispersion * size))


# A factor more --------------------------------------------------------------------------------------


def _with_factor(engine: Engine, template: FactorGroup, slot: int, found: Finding) -> list[FactorGroup]:
    """The groups with a factor for what was found."""
    place = _place(engine, template)
    fresh = [_start_block(block, j, found) for j, block in enumerate(template.blocks)]
    if place is None:
        grown = FactorGroup(template.factors, (slot,), tuple(fresh))
        return [*engine.groups, grown]
    old = engine.groups[place]
    blocks = tuple(own.beside(new) for own, new in zip(old.blocks, fresh, strict=True))
    grown = FactorGroup(template.factors, (*old.kept, slot), blocks)
    return [*engine.groups[:place], grown, *engine.groups[place + 1 :]]


def _start_block(template: FactorBlock, j: int, found: Finding) -> FactorBlock:
    """One factor of a feature: as it was found, or switched off if the feature is not in the subset."""
    block: FactorBlock = template.copy()
    if j not in found.subset:
        block.prior.parameters = block.prior.without_effect(0)
        return block
    coefficients = found.coefficients[found.subset.index(j)]
    mean = np.zeros(block.width)
    mean[_smoothest(block, len(coefficients))] = coefficients
    block.mean = mean
    return block
