"""A gaussian posterior at the weights that a solver without variances found.

Block Laplace: the curvature of the penalised deviance in each block, with the other blocks fixed.
Straight lines of factors are not penalised, and where a partner is near zero nothing holds them: they
get the weak prior that the variational solver starts from.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from ahofm_keras.families import HalfDeviance
from ahofm_keras.solvers.blocks import Block, make_linear_block
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.groups import make_groups
from ahofm_keras.solvers.job import FitJob, Rows
from ahofm_keras.solvers.posterior import write_posterior
from ahofm_keras.solvers.priors import System
from ahofm_keras.solvers.spreads import Spread
from ahofm_keras.solvers.state import State
from ahofm_keras.solvers.sweeps import make_engine, one_blas_thread
from ahofm_keras.solvers.weights import read_weights

B = TypeVar("B", bound=Block)


def can_have_laplace(model: Any, job: FitJob) -> bool:
    """Whether rows are in memory, blocks small enough, and the loss is the family's own."""
    return (
        isinstance(job.training, Rows)
        and model.posterior is not None
        and isinstance(model.loss, HalfDeviance)
    )


@one_blas_thread
def write_laplace(model: Any, job: FitJob) -> None:
    """Find the posterior at the model's weights and leave it in the model."""
    engine = make_engine(model, job, variational=False)
    state = engine.linearise(read_weights(model, engine.start()))
    fits = int(model.posterior.fits)
    write_posterior(model, engine, _with_posterior(engine, state, fits), fits)


def _with_posterior(engine: Engine, state: State, fits: int) -> State:
    """Put covariances beside the means of all blocks.

    The factors of several fits that were averaged stand for each other: with those of the others fixed,
    each has the whole variance. It has its share of it.
    """
    given = engine.design, engine.total_weight
    linear = make_linear_block(*given, False, engine.settings)
    linear = replace(linear, prior=linear.prior.curved_at(state.linear.mean))
    groups = [
        replace(group, blocks=tuple(block.whole() for block in group.blocks))
        for group in make_groups(*given, True, engine.settings)
    ]
    curvatures = [
        [engine.factor_system(state, index, feature).gram for feature in range(len(group.blocks))]
        for index, group in enumerate(groups)
    ]
    edf = _edf(linear, state.gram) + sum(
        _edf(block, gram)
        for group, grams in zip(groups, curvatures, strict=True)
        for block, gram in zip(group.blocks, grams, strict=True)
    )
    dispersion = _dispersion(engine, state, edf)
    state = replace(
        state, dispersion=dispersion, linear=_solved(linear, state.linear, state.gram, dispersion)
    )
    for index, (group, grams) in enumerate(zip(groups, curvatures, strict=True)):
        for feature, (block, gram) in enumerate(zip(group.blocks, grams, strict=True)):
            own = _solved(block, state.groups[index].blocks[feature], gram, dispersion)
            share = Spread(own.covariance / fits, own.edf / fits)
            state = state.with_factors(index, feature, replace(own, spread=share))
    return state


def _edf(block: Block, gram: np.ndarray) -> float:
    solution = block.prior.solve(System(gram, np.zeros(len(gram)), 1.0))
    return float(np.einsum("ij,ij->", solution.inverse, gram))


def _solved(block: B, at: Block, gram: np.ndarray, dispersion: float) -> B:
    """A block's curvature, at the mean of another."""
    solution = block.prior.solve(System(gram, np.zeros(len(gram)), 1.0))
    return replace(block.solved(solution, dispersion, gram), mean=at.mean)


def _dispersion(engine: Engine, state: State, edf: float) -> float:
    """The deviance over the degrees of freedom that are left, in the model's scale."""
    left = max(engine.weighted_rows - edf, 1.0)
    deviance = engine.deviance(state) / engine.response.dispersion_unit
    return engine.family.estimate_dispersion(deviance, left)
