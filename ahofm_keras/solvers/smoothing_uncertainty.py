"""What the choice of the smoothing adds to the uncertainty of the linear block.

A covariance at the smoothing that was chosen takes that as known. With few rows, or binary ones, the
data knows it badly: a curve may be straight or wavy, and the band of the straight one is far too narrow.
So lambda and tau of each smooth are integrated out, on a grid of their logarithms, with the evidence as
their posterior and all other smooths as they are: the variance is the mean of the variances over the
grid plus the mean square by which the means differ from the chosen one. mgcv's `unconditional = TRUE` is
the same to second order around the chosen point; the grid also has the other optimum, where there are
two.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from ahofm_keras.solvers.priors import BlockPrior, Solution, System
from ahofm_keras.solvers.single_group import left_for


def smoothing_covariance(solution: Solution, gram: np.ndarray, dispersion: float) -> np.ndarray:
    """What is added to the covariance of a block `(m, m)`, whose solution is that at its smoothing.

    Functions that are not in use stay out of use.
    """
    # Where inequalities hold the mean, it is no solution of a system; that without them is.
    solution = replace(solution, mean=solution.free_mean)
    total, own = np.zeros_like(gram), solution.precision.in_use
    if own is None:
        return _covariance(solution, gram, dispersion)
    within = own[:, None], own
    prior = solution.prior.restricted(own)
    system = System(gram[within], np.zeros(len(own)), dispersion)
    solved = replace(prior.solve(system), mean=solution.mean[own])
    total[within] = _covariance(solved, system.gram, dispersion)
    return total


def _covariance(solution: Solution, gram: np.ndarray, dispersion: float) -> np.ndarray:
    """The same, of functions that are all in use."""
    prior, total = solution.prior, np.zeros_like(gram)
    rhs = gram @ solution.mean + prior.precisions * solution.mean
    system = System(gram, rhs, dispersion)
    for group in map(int, np.flatnonzero(prior.free[:, -1])):
        own = np.flatnonzero(prior.groups == group)
        if not 0 < len(own) <= prior.settings.largest_integrated:
            continue
        root = _root(_excess(prior.only(group), left_for(group, solution, system)))
        # What one group takes more, those that are correlated with it take less.
        spread = _regression(solution.inverse, own) @ root
        total = total + spread @ spread.T
    return total


def _excess(prior: BlockPrior, system: System) -> np.ndarray:
    """Covariance of one group with its smoothing integrated out, less that at its smoothing."""
    chosen, dispersion = prior.solve(system), system.dispersion
    points = [prior.at(parameters).solve(system) for parameters in _grid(prior, dispersion)]
    weights = np.exp([point.evidence for point in points] - np.max([p.evidence for p in points]))
    weights /= weights.sum()
    total = -dispersion * chosen.inverse
    for weight, point in zip(weights, points, strict=True):
        if weight > prior.settings.least_grid_weight:
            shift = point.mean - chosen.mean
            total = total + weight * (dispersion * point.inverse + np.outer(shift, shift))
    return total


def _grid(prior: BlockPrior, dispersion: float) -> list[np.ndarray]:
    """Parameters of a prior of one group, none below its floor; several lambdas move together.

    The scale of atoms stays as it is.
    """
    of_atoms = prior.shape.scales[0, :-1]
    free, lowest = prior.free[0, :-1] & ~of_atoms, prior.lowest(dispersion)
    with np.errstate(invalid="ignore"):  # neither starts nor ends anywhere: switched off
        chosen = (prior.parameters - prior.start)[0]
    lambdas = _reaching(prior.settings.lambda_grid, chosen[:-1][free])
    taus = _reaching(prior.settings.tau_grid, chosen[-1:])
    points = []
    for smoothing, shrinkage in product(lambdas if free.any() else [0.0], taus):
        parameters = prior.start.copy()
        parameters[0, :-1] += np.where(free, smoothing, 0.0)
        parameters[0, :-1][of_atoms] = prior.parameters[0, :-1][of_atoms]
        parameters[0, -1] += shrinkage
        points.append(np.where(prior.free, np.maximum(parameters, lowest), parameters))
    return points


def _reaching(grid: tuple[float, float, int], chosen: np.ndarray) -> np.ndarray:
    """A grid of logarithms that begins no higher than the chosen ones, so as not to miss the optimum."""
    low, high, count = grid
    return np.linspace(min([low, *chosen[np.isfinite(chosen)]]), high, count)


def _regression(inverse: np.ndarray, own: np.ndarray) -> np.ndarray:
    """V_.g V_gg^-1 `(m, r)`: how all coefficients move with those of a group."""
    scale = np.sqrt(inverse.diagonal()[own])
    within = inverse[np.ix_(own, own)] / scale / scale[:, None]
    return np.linalg.solve(within, inverse[own] / scale[:, None]).T / scale


def _root(covariance: np.ndarray) -> np.ndarray:
    """L with L L' = V, without directions in which V is negative."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
