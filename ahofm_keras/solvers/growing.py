"""Look for interactions that the ascent has missed, and take them in.

Random factors feel an interaction only through the products that they happen to have, and what the
stronger interactions leave over is no more than noise to them: a triple beside a pair stays unseen. But
what a whole order could still explain can be read off the residuals: with u_jm the m-th smoothest
function of feature j, which has mean 0 and variance 1 on the rows, the sums

    t_jk(m, l) = sum_i w_i r_i u_jm(x_ij) u_kl(x_ik)

are noise of variance n dispersion where the pair (j, k) has no effect left, and likewise for triples.
The subset with the most beyond noise gets a factor of its own, started at the best product of functions
of single features, and keeps it if that is worth its price.
"""

from __future__ import annotations

import heapq
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import combinations
from math import factorial

import numpy as np

from ahofm_keras.solvers.blocks import FactorBlock, FactorGroup, make_groups
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.trials import attempt, score

# Functions of a feature that are looked at, and rows at most.
_FUNCTIONS = 5
_ROWS = 5000
_LEAST_ROWS = 500
# Products at most: a search should not take longer than a few sweeps.
_BUDGET = 2e10
# So many of the strongest subsets are looked at more closely.
_CLOSER = 30
_ITERATIONS = 20
# An order is done after so many subsets in a row that were not worth it.
_FAILURES = 2


@dataclass(frozen=True)
class Finding:
    """A product of functions of single features that the residuals ask for.

    Args:
        subset: places of the features in their group.
        coefficients: of the smoothest functions of each of them.
        gain: of the log-likelihood, roughly.
    """

    subset: tuple[int, ...]
    coefficients: list[np.ndarray]
    gain: float


def grow(engine: Engine) -> Generator[Engine | None, None, bool]:
    """Search every order until nothing is left in it; an attempt counts as a sweep.

    Returns:
        Whether something was taken in.
    """
    grown = False
    for template in make_groups(engine.design, engine.rows, engine.random, rank=1):
        failures = 0
        tried: set[tuple[int, ...]] = set()
        while failures < _FAILURES:
            slot = _free_slot(engine, template)
            found = None if slot is None else search(engine, template, tried)
            if slot is None or found is None:
                break
            yield None
            kept = attempt(engine, _with_factor(engine, template, slot, found), score(engine))
            yield engine
            grown = grown or kept
            failures = 0 if kept else failures + 1
            tried = set() if kept else tried | {found.subset}
    return grown


def _place(engine: Engine, template: FactorGroup) -> int | None:
    """Where the order stands among the groups, if it is there."""
    key = template.term.name, template.place
    places = [i for i, group in enumerate(engine.groups) if (group.term.name, group.place) == key]
    return places[0] if places else None


def _free_slot(engine: Engine, template: FactorGroup) -> int | None:
    """A factor of the order that is not in use, if there is one."""
    place = _place(engine, template)
    used = () if place is None else engine.groups[place].kept
    free = set(range(template.term.orders[template.place].slots)) - set(used)
    return min(free, default=None)


# The search -----------------------------------------------------------------------------------------


def search(engine: Engine, template: FactorGroup, tried: set[tuple[int, ...]]) -> Finding | None:
    """The subset of features, not tried yet, that gains the most; None where that is nothing."""
    size = affordable(len(template.blocks), template.order, engine.rows)
    if size is None:
        return None
    functions, residuals, weight = _read_rows(engine, template, *size)
    noise = weight * engine.dispersion
    strongest = heapq.nlargest(
        _CLOSER,
        (
            (float(np.vdot(sums, sums)) - sums.size * noise, subset, sums.copy())
            for subset, sums in subset_sums(functions, residuals, template.order)
            if subset not in tried
        ),
        key=lambda candidate: candidate[0],
    )
    findings = [best_product(subset, sums, weight, noise) for _, subset, sums in strongest]
    best = max(findings, key=lambda finding: finding.gain, default=None)
    return best if best is not None and best.gain > 0 else None


def affordable(features: int, order: int, rows: int) -> tuple[int, int] | None:
    """Functions of a feature and rows that keep the search within its budget; None if nothing does."""
    for functions in range(_FUNCTIONS, 0, -1):
        products = (features * functions) ** order / factorial(order)
        affordable = int(min(rows, _ROWS, _BUDGET / products))
        if affordable >= min(rows, _LEAST_ROWS):
            return functions, affordable
    return None


def _smoothest(block: FactorBlock, count: int) -> np.ndarray:
    return np.argsort(block.feature.eigenvalues, kind="stable")[:count]


def _read_rows(
    engine: Engine, template: FactorGroup, count: int, rows: int
) -> tuple[list[np.ndarray], np.ndarray, float]:
    """Functions `(m, n)` of each feature, weighted residuals `(n,)` and the sum of their weights.

    The rows are spread over all that there are: data may be sorted.
    """
    step = -(-engine.rows // rows)
    parts, residuals, weight = [], [], 0.0
    for chunk in engine.chunks:
        part = slice(None, None, step)
        parts.append(
            [
                chunk.bases[block.position]
                .take(part)
                .evaluate(block.feature.transform[:, _smoothest(block, count)].T)
                for block in template.blocks
            ]
        )
        residuals.append((chunk.weight * (chunk.target - chunk.fit()))[part])
        weight += float(chunk.weight[part].sum())
    functions = [np.concatenate(own, axis=1) for own in zip(*parts, strict=True)]
    return functions, np.concatenate(residuals), weight


def subset_sums(
    functions: list[np.ndarray], residuals: np.ndarray, order: int
) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """t of every subset: one matrix product serves all pairs of features behind a prefix."""
    counts = [len(own) for own in functions]
    ends = np.cumsum(counts)
    stacked = np.concatenate(functions)
    for prefix in combinations(range(len(functions)), order - 2):
        first = prefix[-1] + 1 if prefix else 0
        if len(functions) - first < 2:
            continue
        lines = residuals[None]
        for j in prefix:
            lines = (lines[:, None] * functions[j]).reshape(-1, len(residuals))
        begin = ends[first] - counts[first]
        rest = stacked[begin:]
        sums = np.stack([(rest * line) @ rest.T for line in lines])
        shape = tuple(counts[j] for j in prefix)
        for k, m in combinations(range(first, len(functions)), 2):
            rows = slice(ends[k] - counts[k] - begin, ends[k] - begin)
            columns = slice(ends[m] - counts[m] - begin, ends[m] - begin)
            yield (*prefix, k, m), sums[:, rows, columns].reshape(*shape, counts[k], counts[m])


def best_product(subset: tuple[int, ...], sums: np.ndarray, weight: float, noise: float) -> Finding:
    """The product of functions of single features that explains the most, by alternating.

    Args:
        subset: places of the features.
        sums: t, an axis a feature.
        weight: sum of the weights: what a sum is divided by to be a coefficient.
        noise: variance of a sum without an effect.
    """
    flat = [np.moveaxis(sums, axis, 0).reshape(count, -1) for axis, count in enumerate(sums.shape)]
    vectors = [np.linalg.svd(own, full_matrices=False)[0][:, 0] for own in flat]
    value = 0.0
    for _ in range(_ITERATIONS if sums.any() else 0):
        for axis in range(sums.ndim):
            rest = sums
            for other in reversed(range(sums.ndim)):
                if other != axis:
                    rest = np.tensordot(rest, vectors[other], axes=(other, 0))
            value = float(np.linalg.norm(rest))
            vectors[axis] = rest / value
    # Each of the d functions has the same share in the size of the product.
    size = (value / weight) ** (1 / sums.ndim)
    return Finding(subset, [size * vector for vector in vectors], value**2 / (2 * noise))


# A factor more --------------------------------------------------------------------------------------


def _with_factor(engine: Engine, template: FactorGroup, slot: int, found: Finding) -> list[FactorGroup]:
    """The groups with a factor for what was found."""
    place = _place(engine, template)
    fresh = [_start_block(block, j, found) for j, block in enumerate(template.blocks)]
    if place is None:
        grown = FactorGroup(template.term, template.place, (slot,), tuple(fresh))
        return [*engine.groups, grown]
    old = engine.groups[place]
    blocks = tuple(own.beside(new) for own, new in zip(old.blocks, fresh, strict=True))
    grown = FactorGroup(template.term, template.place, (*old.kept, slot), blocks)
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
