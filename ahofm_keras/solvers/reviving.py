"""Smooths and tensor products whose smoothing ended in the wrong one of several optima.

At a large tau, and at a large lambda, the evidence is flat: steps do not lead back from there. And from
the rough side they may end in an optimum that a smoother one surpasses. What a group would explain with
another smoothing is a small problem of its own, with all others as they are: its Gram matrix S and sums
r are what the others leave.
"""

from __future__ import annotations

import numpy as np

from ahofm_keras.solvers.priors import BlockPrior, Solution

_STEPS = 15
# Steps end where the evidence gains less; sweeps go on from there.
_LEAST_GAIN = 0.01
# What gains the evidence less is left as it is.
_WORTH = 0.01
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
    before = prior.parameters
    for chosen in ([*found], strongest) if found else ():
        parameters = before.copy()
        for group in chosen:
            parameters[group] = found[group][1]
        solution = _try(prior, parameters, solution, gram, rhs, dispersion) or solution
    prior.switch_off(solution, gram, rhs, dispersion)


def _try(
    prior: BlockPrior,
    parameters: np.ndarray,
    before: Solution,
    gram: np.ndarray,
    rhs: np.ndarray,
    dispersion: float,
) -> Solution | None:
    """Go on from other parameters, and come back if that was not better."""
    kept, prior.parameters = prior.parameters, parameters
    after = prior.adapt(gram, rhs, dispersion, _STEPS, _LEAST_GAIN)
    if after.evidence >= before.evidence:
        return after
    prior.parameters = kept
    return None


def _find(
    prior: BlockPrior, solution: Solution, gram: np.ndarray, rhs: np.ndarray, dispersion: float
) -> dict[int, tuple[float, np.ndarray]]:
    """Groups that would gain from another smoothing: how much, and their parameters."""
    found = {}
    for group in np.flatnonzero(prior.free[:, -1]):
        alone, system = prior.only(int(group)), left_for(prior, int(group), solution, gram, rhs)
        before = alone.solve(*system, dispersion)
        gain = _WORTH
        for start in (alone.start, alone.straight()):
            alone.parameters = start
            after = alone.adapt(*system, dispersion, _STEPS, _LEAST_GAIN)
            if after.evidence - before.evidence > gain:
                gain = after.evidence - before.evidence
                found[int(group)] = gain, alone.parameters[0]
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
