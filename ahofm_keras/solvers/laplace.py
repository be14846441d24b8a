"""A gaussian posterior at the weights that a solver without variances found.

Block Laplace: the curvature of the penalised deviance in each block, with the other blocks fixed.
Straight lines of factors are not penalised, and where a partner is near zero nothing holds them: they
get the weak prior that the variational solver starts from.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ahofm_keras.families import HalfDeviance
from ahofm_keras.solvers.blocks import Block, LinearBlock, make_groups
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.job import FitJob, Rows
from ahofm_keras.solvers.posterior import write_posterior
from ahofm_keras.solvers.sweeps import make_engine
from ahofm_keras.solvers.weights import read_weights


def can_have_laplace(model: Any, job: FitJob) -> bool:
    """Whether rows are in memory, blocks small enough, and the loss is the family's own."""
    return (
        isinstance(job.training, Rows)
        and model.posterior is not None
        and isinstance(model.loss, HalfDeviance)
    )


def write_laplace(model: Any, job: FitJob) -> None:
    """Find the posterior at the model's weights and leave it in the model."""
    with threadpool_limits(1, "blas"):
        engine = make_engine(model, job, random=False)
        read_weights(model, engine)
        engine.linearise()
        curvatures = [
            [engine.curvature(index, feature) for feature in range(len(group.blocks))]
            for index, group in enumerate(engine.groups)
        ]
        _give_posterior(engine, curvatures)
        write_posterior(model, engine)


def _give_posterior(engine: Engine, curvatures: list[list[np.ndarray]]) -> None:
    """Put covariances beside the means of all blocks."""
    priors: list[Block] = [LinearBlock(engine.design, engine.total_weight, False)]
    for group in make_groups(engine.design, engine.total_weight, True):
        priors += group.blocks
    grams = [engine.linear_gram, *(gram for group in curvatures for gram in group)]
    solutions = [
        block.prior.solve(gram, np.zeros(len(gram)), 1.0)
        for block, gram in zip(priors, grams, strict=True)
    ]
    pairs = zip(solutions, grams, strict=True)
    edf = sum(float(np.einsum("ij,ij->", solution.inverse, gram)) for solution, gram in pairs)
    engine.dispersion = _dispersion(engine, edf)
    for own, block, solution, gram in zip(engine.blocks, priors, solutions, grams, strict=True):
        mean = own.mean
        own.prior = block.prior
        own.accept(solution, engine.dispersion, gram)
        own.mean = mean
        if own is not engine.linear:
            own.covariance = _within_starts(own.covariance, gram, engine.design.starts)


def _within_starts(covariance: np.ndarray, gram: np.ndarray, starts: int) -> np.ndarray:
    """The covariances of the factors of each start alone, as the model holds them.

    Those between starts, whose functions stand for each other, are mostly negative. So the rest is
    scaled: the variance of the predictor stays what it is in the mean over the training rows, to first
    order.

    Args:
        covariance: V of the coefficients of a feature in an order, one start after the other.
        gram: H, by which tr(V H) is the sum of these variances.
        starts: number of fits.
    """
    if starts == 1:
        return covariance
    within = covariance * np.kron(np.eye(starts), np.ones(2 * (len(covariance) // starts,)))
    total, kept = (float(np.einsum("ij,ij->", v, gram)) for v in (covariance, within))
    return within * (total / kept) if kept > 0 else within


def _dispersion(engine: Engine, edf: float) -> float:
    """The deviance over the degrees of freedom that are left, in the model's scale."""
    if not engine.family.dispersed:
        return 1.0
    left = max(engine.weighted_rows - edf, 1.0)
    return max(engine.deviance() / engine.scale**2 / left, 1e-14)
