"""What is done with a feature on all rows of a chunk, tile by tile."""

from __future__ import annotations

import numpy as np

from ahofm_keras.solvers.kernels.compiled.compiler import compiled
from ahofm_keras.solvers.kernels.compiled.functions import TILE, evaluate_tile
from ahofm_keras.solvers.kernels.compiled.moments import add_tile, mark_lossy, remove_tile
from ahofm_keras.solvers.kernels.compiled.sums import sum_tile


@compiled
def put_in(
    order: np.ndarray,
    cells: np.ndarray,
    values: np.ndarray,
    coefficients: np.ndarray,
    forms: np.ndarray,
    state: np.ndarray,
    lines: np.ndarray,
    random: bool,
) -> None:
    """Take a feature in on the rows of a chunk."""
    rank, degree = lines[0, 1] - lines[0, 0], lines.shape[0] - 1
    means, covariances = _empty_lines(coefficients.shape[1]), _empty_lines(forms.shape[2])
    rows, sums = np.empty(covariances.size), np.empty((degree, 2, TILE))
    sizes = np.empty((rank, TILE))
    for t in range(state.shape[0]):
        evaluate_tile(
            t * TILE, order, cells, values, coefficients, forms, means, covariances, rows, random
        )
        add_tile(state[t], lines, means, covariances, sums, sizes, random)


@compiled
def take_out(
    order: np.ndarray,
    cells: np.ndarray,
    values: np.ndarray,
    coefficients: np.ndarray,
    forms: np.ndarray,
    state: np.ndarray,
    lines: np.ndarray,
    random: bool,
    limit: float,
    rest: np.ndarray,
    weight: np.ndarray,
    lossy: np.ndarray,
    gram: np.ndarray,
    rhs: np.ndarray,
) -> int:
    """Take a feature out on the rows of a chunk and sum the system of its block.

    Rows where digits were lost are marked, counted, and not in the sums.
    """
    rank, degree = lines[0, 1] - lines[0, 0], lines.shape[0] - 1
    means, covariances = _empty_lines(coefficients.shape[1]), _empty_lines(forms.shape[2])
    rows, residuals = np.empty(covariances.size), np.empty(means.size)
    sums, sizes = np.empty((degree, 2, TILE)), np.empty((rank, TILE))
    excess, lost = np.empty(TILE), 0
    for t in range(state.shape[0]):
        first, own = t * TILE, state[t]
        evaluate_tile(first, order, cells, values, coefficients, forms, means, covariances, rows, random)
        remove_tile(own, lines, means, covariances, sums, sizes, random)
        lost += mark_lossy(own, sizes, limit, excess, lossy[first : first + TILE])
        sum_tile(
            first, order, cells, values, own, lines, rest, weight, lossy, means, covariances, rows,
            residuals, random, gram, rhs,
        )  # fmt: skip
    return lost


@compiled
def sum_system(
    order: np.ndarray,
    cells: np.ndarray,
    values: np.ndarray,
    state: np.ndarray,
    lines: np.ndarray,
    random: bool,
    rest: np.ndarray,
    weight: np.ndarray,
    gram: np.ndarray,
    rhs: np.ndarray,
) -> None:
    """The system of a block whose feature is not in the state."""
    means, covariances = _empty_lines(rhs.shape[1]), _empty_lines(gram.shape[2])
    rows, residuals = np.empty(covariances.size), np.empty(means.size)
    lossy = np.zeros(len(weight), np.bool_)
    for t in range(state.shape[0]):
        sum_tile(
            t * TILE, order, cells, values, state[t], lines, rest, weight, lossy, means, covariances,
            rows, residuals, random, gram, rhs,
        )  # fmt: skip


@compiled
def _empty_lines(count: int) -> np.ndarray:
    """Lines of a tile, of which those beyond the last factor or pair stay 0."""
    return np.zeros((count, TILE))
