"""Smooths and tensor products whose smoothing ended in the wrong one of several optima.

At a large tau, and at a large lambda, the evidence is flat: steps do not lead back from there. And the
evidence of a group often has two optima, a smooth one (straight, or off) and a rough one that gains next
to nothing. What a group would explain with another smoothing is a small problem of its own, with all
others as they are: its Gram matrix S and sums r are what the others leave.
"""

from __future__ import annotations

from operator import itemgetter

import numpy as np

from ahofm_keras.solvers.priors import ACTIVE, BlockPrior, Solution

_STEPS = 15
# Steps end where the evidence gains less; sweeps go on from there.
_LEAST_GAIN = 0.01
# What gains the evidence less is left as it is.
_WORTH = 0.01
# A rough optimum has to be better than the smooth one by so much. With twice that, smooths of noise keep
# less and curves of binary responses lose their bends; with 0, smooths of noise keep 4 or 5 edf.
_CLEARLY = 1.0
# Of the Gram matrix: where the others leave less, they leave nothing but rounding.
_LEAST_LEFT = 1e-12


def choose_anew(prior: BlockPrior, gram: np.ndarray, rhs: np.ndarray, dispersion: float) -> None:
    """The smoothing of all groups from where it started; the better one is kept."""
    before = prior.solve(gram, rhs, dispersion)
    _try(prior, prior.start, before, gram, rhs, dispersion)


def revive_groups(prior: BlockPrior, gram: np.ndarray, rhs: np.ndarray, dispersion: float) -> None:
    """Give groups another smoothing where the evidence gains; leave out what is not worth its price."""
    solution = prior.solve(gram, rhs, dispersion)
    found = _find(prior, solution, gram, rhs, dispersion)
    strongest = sorted(found, key=lambda group: found[group][0])[-1:]
    # Groups that explain the same, as equal columns do, may together be worse than none.
    for chosen in ([*found], strongest) if found else ():
        parameters = prior.parameters.copy()
        for group in chosen:
            parameters[group] = found[group][1]
        better = _try(prior, parameters, solution, gram, rhs, dispersion)
        if better is not None:
            solution = better
            break
    prior.switch_off(solution, gram, rhs, dispersion)


def straighten(prior: BlockPrior, gram: np.ndarray, rhs: np.ndarray, dispersion: float) -> float:
    """Take the smooth optimum of the smooths whose rough one is hardly better, the least worth first.

    A tensor product has several lambdas and a price of its own.

    Returns:
        The evidence that was given up.
    """
    solution = before_all = prior.solve(gram, rhs, dispersion)
    edf, found = prior.edf(solution, gram), []
    smooths = prior.free[:, -1] & (prior.freedom > 0) & (prior.prices == 0)
    for group in map(int, np.flatnonzero(smooths & (edf > ACTIVE))):
        alone, system = prior.only(group), left_for(prior, group, solution, gram, rhs)
        before = alone.solve(*system, dispersion)
        smooth = _from(alone, alone.straight(), system, dispersion)
        lead = before.evidence - smooth.evidence
        if lead < _CLEARLY and alone.edf(smooth, system[0])[0] < edf[group] - ACTIVE:
            found.append((lead, group, alone.parameters[0]))
    for _, group, smoothing in sorted(found, key=itemgetter(0)):
        parameters = prior.parameters.copy()
        parameters[group] = smoothing
        kept = prior.parameters
        after = _try(prior, parameters, solution, gram, rhs, dispersion, give=_CLEARLY)
        if after is None:
            continue
        if prior.edf(after, gram)[group] < edf[group] - ACTIVE:
            solution = after
        else:  # steps led back, together with the others
            prior.parameters = kept
    return max(before_all.evidence - solution.evidence, 0.0)


def _try(
    prior: BlockPrior,
    parameters: np.ndarray,
    before: Solution,
    gram: np.ndarray,
    rhs: np.ndarray,
    dispersion: float,
    give: float = 0.0,
) -> Solution | None:
    """Go on from other parameters, and come back if that was worse by more than may be given up."""
    kept = prior.parameters
    after = _from(prior, parameters, (gram, rhs), dispersion)
    if after.evidence >= before.evidence - give:
        return after
    prior.parameters = kept
    return None


def _from(
    prior: BlockPrior, parameters: np.ndarray, system: tuple[np.ndarray, np.ndarray], dispersion: float
) -> Solution:
    """The optimum that steps from some parameters lead to."""
    prior.parameters = parameters
    return prior.adapt(*system, dispersion, _STEPS, _LEAST_GAIN)


def _find(
    prior: BlockPrior, solution: Solution, gram: np.ndarray, rhs: np.ndarray, dispersion: float
) -> dict[int, tuple[float, np.ndarray]]:
    """Groups that would gain from another smoothing: how much, and their parameters."""
    found = {}
    for group in np.flatnonzero(prior.free[:, -1]):
        alone, system = prior.only(int(group)), left_for(prior, int(group), solution, gram, rhs)
        before = alone.solve(*system, dispersion)
        after = _from(alone, alone.start, system, dispersion)
        rough = alone.parameters
        if prior.freedom[group] and not prior.prices[group]:
            smooth = _from(alone, alone.straight(), system, dispersion)
            if after.evidence > smooth.evidence + _CLEARLY:
                alone.parameters = rough
            else:
                after = smooth
        if after.evidence > before.evidence + _WORTH:
            found[int(group)] = after.evidence - before.evidence, alone.parameters[0]
    return found


def left_for(
    prior: BlockPrior, group: int, solution: Solution, gram: np.ndarray, rhs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """S and r of a group: its Gram matrix and sums, without what the others explain.

    With Q the group's precisions and C its part of A^-1, C = (S + Q)^-1 and the group's mean is C r. So
    C S = I - C Q, which has all its digits where Q is small, and Q C S = G - G A^-1 G, which has them
    where Q is large; likewise for r. Each row is taken from the one that is exact.
    """
    own = np.flatnonzero(prior.groups == group)
    precisions = prior.precisions()[own]
    inverse = solution.inverse[np.ix_(own, own)]
    loose = precisions < gram.diagonal()[own]
    explained = gram[own] @ solution.inverse @ gram[:, own]
    own_gram = gram[np.ix_(own, own)]
    rows = np.where(loose, 1.0, precisions)[:, None] * inverse
    products = np.where(loose[:, None], np.eye(len(own)) - inverse * precisions, own_gram - explained)
    sums = np.where(loose, solution.mean[own], rhs[own] - gram[own] @ solution.mean)
    left = np.linalg.solve(rows, np.column_stack([products, sums]))
    return _without_rounding(left[:, :-1], left[:, -1], own_gram.diagonal())


def _without_rounding(
    left: np.ndarray, sums: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """S as X' M X is, with no negative eigenvalue, and r = X' M y in its range.

    Where the others explain a group almost exactly, the digits of what they leave are lost. How much of
    S is rounding, its most negative eigenvalue tells.

    Args:
        left, sums: S and r as computed.
        sizes: diagonal of the group's own Gram matrix.
    """
    scale = np.sqrt(np.where(sizes > 0, sizes, 1.0))
    scaled = left / scale / scale[:, None]
    values, vectors = np.linalg.eigh((scaled + scaled.T) / 2)
    known = values > max(_LEAST_LEFT, -values[0])
    if known.all():
        return (left + left.T) / 2, sums
    values, vectors = values[known], vectors[:, known]
    outer, inner = scale[:, None] * vectors, vectors / scale[:, None]
    return (outer * values) @ outer.T, outer @ (inner.T @ sums)
