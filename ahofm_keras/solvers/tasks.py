"""Sums over rows that solvers ask for: functions of a chunk and a state, see `store`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ahofm_keras.moments import elementary_symmetric
from ahofm_keras.solvers.chunks import Chunk
from ahofm_keras.solvers.kernels import Sums
from ahofm_keras.solvers.linear_columns import GramSums
from ahofm_keras.solvers.state import State


def linear_gram(chunk: Chunk, state: State) -> GramSums:
    """Sums for the Gram matrix of the linear block."""
    return state.linear.columns.gram(chunk, chunk.working(state)[1])


def linear_functions(chunk: Chunk, state: State) -> list[np.ndarray]:
    """All columns of the linear block on each row, `(n, q)`."""
    return [state.linear.columns.dense(chunk).T]


def linear_sums(chunk: Chunk, state: State) -> np.ndarray:
    """Right hand side of the linear block."""
    target, weight = chunk.working(state)
    rest = target - (chunk.fit(state) - chunk.linear_fit(state))
    return state.linear.columns.sums(chunk, weight * rest)


def factor_sums(chunk: Chunk, state: State, index: int, feature: int) -> Sums:
    """Gram matrices and right hand sides of the factors of one feature in one group."""
    return chunk.take_out(state, index, feature)


def surface_gram(chunk: Chunk, state: State, index: int) -> np.ndarray:
    """Gram matrices of the factors of a surface, which stay as they are while the weights do."""
    return chunk.surface_gram(state, index)


def surface_sums(chunk: Chunk, state: State, index: int) -> np.ndarray:
    """Right hand sides of the factors of a surface."""
    return chunk.surface_sums(state, index)


def fit_sums(chunk: Chunk, state: State) -> tuple[float, float]:
    """Weighted sums of squares of the working residuals, and of the variances of interactions.

    But for those of surfaces, which follow from their Gram matrices.
    """
    target, weight = chunk.working(state)
    squares = float(weight @ (target - chunk.fit(state)) ** 2)
    groups = (group for group in state.groups if not group.is_surface)
    variances = sum(float(weight @ chunk.sums(group)[1]) for group in groups)
    return squares, float(variances)


def deviance(chunk: Chunk, state: State) -> float:
    """Sum of the unit deviances at the mean, in the response's units; infinite without a mean."""
    family, fit = chunk.response.family, chunk.fit(state)
    if not family.is_valid(chunk.predictor(fit)).all():
        return float("inf")
    return float(family.unit_deviance(chunk.y, chunk.mean(fit), np) @ chunk.case_weight)


def rows_out_of_range(chunk: Chunk, state: State, reach: float) -> int:
    """Rows whose predictor has no mean, or is on the wrong side of the response and far beyond it.

    On the right side it may be far: where terms tell classes apart nothing holds it.
    """
    family, fit = chunk.response.family, chunk.fit(state)
    rough = family.link_function(family.rough_mean(chunk.y, chunk.response.average))
    eta = chunk.predictor(fit)
    beyond = eta - rough
    wrong = family.residual(chunk.y, chunk.mean(fit)) * beyond * family.slope(eta) < 0
    far = (np.abs(beyond) > reach * chunk.response.scale) & wrong | ~family.is_valid(eta)
    return int(np.sum(far & (chunk.case_weight > 0)))


def factor_energies(chunk: Chunk, state: State) -> tuple[np.ndarray, ...]:
    """Weighted sum of squares of each factor of each group but surfaces."""
    _, weight = chunk.working(state)
    energies = []
    for group in state.groups:
        if group.is_surface:
            energies.append(np.zeros(group.rank))
            continue
        phi = np.stack(
            [chunk.bases[b.position].evaluate(b.posterior.coefficients) for b in group.blocks]
        )
        energies.append(elementary_symmetric(phi, group.order) ** 2 @ weight)
    return tuple(energies)


def disagreement(chunk: Chunk, state: State, fits: tuple[State, ...]) -> tuple[float, float]:
    """Weighted sums of the variance over several fits, and of the squares that their mean misses."""
    target, weight = chunk.working(state)
    predictors = [chunk.evaluate(fit) for fit in fits]
    spread = float(weight @ np.var(predictors, axis=0, ddof=1))
    return spread, float(weight @ (target - np.mean(predictors, axis=0)) ** 2)


def means(chunk: Chunk, state: State) -> list[np.ndarray]:
    """Mean response of each row."""
    return [chunk.mean(chunk.evaluate(state))]


def links(chunk: Chunk, state: State, variational: bool) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Predictor of each row, and its variance as if the smoothing were known; 0 without variances."""
    variance = np.zeros(len(chunk.y))
    if variational:
        variance += state.linear.columns.variances(chunk, state.linear.covariance)
        for group in state.groups:
            variance += chunk.sums(group)[1]
    return [chunk.predictor(chunk.fit(state))], [chunk.response.scale**2 * variance]


class Responses(NamedTuple):
    """Response, case weight and offset of each row."""

    y: list[np.ndarray]
    weight: list[np.ndarray]
    offset: list[np.ndarray]


def responses(chunk: Chunk, state: State) -> tuple[list[np.ndarray], ...]:
    """`Responses`."""
    return [chunk.y], [chunk.case_weight], [chunk.offset]
