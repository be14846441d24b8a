"""The smoothing of smooths and tensor products whose steps ended in the wrong one of several optima.

At a large tau, and at a large lambda, the evidence is flat: steps do not lead back from there. And from
the rough side they may end in an optimum that a smoother one surpasses. What a group would explain with
another smoothing is a small problem of its own, with all others as they are: its Gram matrix S and sums
r are what the others leave.
"""

from __future__ import annotations

import numpy as np

from ahofm_keras.solvers.priors import BlockPrior, Solution, System, switch_off

# Of the Gram matrix: where the others leave less, they leave nothing but rounding.
_LEAST_LEFT = 1e-12


def reset_smoothing(solution: Solution, system: System) -> Solution:
    """The smoothing of all groups from where it started, if that ends in a better optimum."""
    return _keep_better(solution, solution.prior.at(solution.prior.start), system)


def reoptimise_groups(solution: Solution, system: System) -> Solution:
    """Other smoothing of single groups where the evidence gains; without what is not worth its price."""
    before, found = solution.prior, _find(solution, system)
    strongest = sorted(found, key=lambda group: found[group][0])[-1:]
    # Groups that explain the same, as equal columns do, may together be worse than none.
    for chosen in ([*found], strongest) if found else ():
        parameters = before.parameters.copy()
        for group in chosen:
            parameters[group] = found[group][1]
        solution = _keep_better(solution, before.at(parameters), system)
    return switch_off(solution, system)


def _newton(prior: BlockPrior, system: System) -> Solution:
    settings = prior.settings
    return prior.newton_steps(system, settings.reoptimise_steps, settings.reoptimise_gain)


def _keep_better(solution: Solution, trial: BlockPrior, system: System) -> Solution:
    """Go on from other smoothing, and come back if that was not better."""
    candidate = _newton(trial, system)
    return candidate if candidate.evidence >= solution.evidence else solution


def _find(solution: Solution, system: System) -> dict[int, tuple[float, np.ndarray]]:
    """Groups that would gain from another smoothing: how much, and their parameters."""
    found, prior = {}, solution.prior
    for group in map(int, np.flatnonzero(prior.free[:, -1])):
        alone, left = prior.only(group), left_for(group, solution, system)
        before, gain = alone.solve(left).evidence, prior.settings.reoptimise_gain
        for start in (alone.at(alone.start), alone.straight()):
            after = _newton(start, left)
            if after.evidence - before > gain:
                gain = after.evidence - before
                found[group] = gain, after.prior.parameters[0]
    return found


def left_for(group: int, solution: Solution, system: System) -> System:
    """S and r of a group: its Gram matrix and sums, without what the others explain.

    With Q the group's precisions and C its part of A^-1, C = (S + Q)^-1 and the group's mean is C r. So
    C S = I - C Q, which has all its digits where Q is small, and Q C S = G - G A^-1 G, which has them
    where Q is large; likewise for r. Each row is taken from the one that is exact.
    """
    prior, gram, rhs = solution.prior, system.gram, system.rhs
    own = np.flatnonzero(prior.groups == group)
    precisions = prior.precisions[own]
    inverse = solution.inverse[np.ix_(own, own)]
    loose = precisions < gram.diagonal()[own]
    explained = gram[own] @ solution.inverse @ gram[:, own]
    own_gram = gram[np.ix_(own, own)]
    rows = np.where(loose, 1.0, precisions)[:, None] * inverse
    products = np.where(loose[:, None], np.eye(len(own)) - inverse * precisions, own_gram - explained)
    sums = np.where(loose, solution.mean[own], rhs[own] - gram[own] @ solution.mean)
    left = np.linalg.solve(rows, np.column_stack([products, sums]))
    exact = _without_rounding(left[:, :-1], left[:, -1], own_gram.diagonal())
    return System(*exact, system.dispersion)


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
