"""Functions of a basis on rows: evaluated, summed, and turned from rows to lines of a tile."""

from __future__ import annotations

import numpy as np

from ahofm_keras.solvers.kernels.compiled.compiler import compiled, inlined
from ahofm_keras.solvers.kernels.compiled.vectors import LANES, in_all_lanes, load, store, transpose

TILE = 64


@compiled
def evaluate(cells: np.ndarray, values: np.ndarray, coefficients: np.ndarray, out: np.ndarray) -> None:
    """Functions of given coefficients `(F, M)` at the rows: `(F, n)`."""
    size = coefficients.shape[1]
    for f in range(out.shape[0]):
        for i in range(out.shape[1]):
            total = 0.0
            for k in range(values.shape[1]):
                total += values[i, k] * coefficients[f, function_at(cells[i], k, size)]
            out[f, i] = total


@compiled
def add_sums(cells: np.ndarray, values: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
    """sum_i weights_i b_i, for F weights `(F, n)`, added to `(F, M)`."""
    size = out.shape[1]
    for f in range(weights.shape[0]):
        for i in range(weights.shape[1]):
            for k in range(values.shape[1]):
                out[f, function_at(cells[i], k, size)] += weights[f, i] * values[i, k]


@compiled
def add_cross(
    cells: np.ndarray,
    values: np.ndarray,
    other_cells: np.ndarray,
    other_values: np.ndarray,
    weights: np.ndarray,
    out: np.ndarray,
) -> None:
    """sum_i weights_i b_i c_i' of two bases, added to `(M, M')`."""
    size, other_size = out.shape
    for i in range(len(weights)):
        for k in range(values.shape[1]):
            a, value = function_at(cells[i], k, size), weights[i] * values[i, k]
            for m in range(other_values.shape[1]):
                out[a, function_at(other_cells[i], m, other_size)] += value * other_values[i, m]


@inlined
def function_at(cell: int, k: int, size: int) -> int:
    """Which function the k-th of a cell is; on a circle the last cells reach the first functions."""
    place = cell + k
    return place if place < size else place - size


@compiled
def evaluate_tile(
    start: int,
    order: np.ndarray,
    cells: np.ndarray,
    values: np.ndarray,
    coefficients: np.ndarray,
    forms: np.ndarray,
    means: np.ndarray,
    covariances: np.ndarray,
    rows: np.ndarray,
    random: bool,
) -> None:
    """Means `(F, T)` and covariances of pairs `(P, T)` of a feature's factors on the rows of a tile."""
    for j in range(TILE):
        i = order[start + j]
        _mean_row(start + i, cells, values, coefficients, i, rows)
    turn_to_lines(rows, coefficients.shape[1], means)
    if not random:
        return
    for j in range(TILE):
        i = order[start + j]
        if values.shape[1] == 4:
            _cubic_row(start + i, cells, values, forms, i, rows)
        else:
            _form_row(start + i, cells, values, forms, i, rows)
    turn_to_lines(rows, forms.shape[2], covariances)


@compiled
def turn_to_lines(rows: np.ndarray, count: int, lines: np.ndarray) -> None:
    """`(T, count)` -> `(count, T)`."""
    for first in range(0, count, LANES):
        for i in range(0, TILE, LANES):
            transpose(rows, i * count + first, count, lines, first * TILE + i, TILE)


@compiled
def turn_to_rows(lines: np.ndarray, count: int, rows: np.ndarray) -> None:
    """`(count, T)` -> `(T, count)`."""
    for first in range(0, count, LANES):
        for i in range(0, TILE, LANES):
            transpose(lines, first * TILE + i, TILE, rows, i * count + first, count)


@inlined
def _mean_row(
    at: int, cells: np.ndarray, values: np.ndarray, coefficients: np.ndarray, i: int, rows: np.ndarray
) -> None:
    size, count = coefficients.shape
    for p in range(0, count, LANES):
        total = in_all_lanes(0.0)
        for k in range(values.shape[1]):
            a = function_at(cells[at], k, size)
            total = total + in_all_lanes(values[at, k]) * load(coefficients, a * count + p)
        store(rows, i * count + p, total)


@inlined
def _form_row(
    at: int, cells: np.ndarray, values: np.ndarray, forms: np.ndarray, i: int, rows: np.ndarray
) -> None:
    """b' V b of all forms V, in bands `(M, width, P)`."""
    size, width, count = forms.shape
    for p in range(0, count, LANES):
        total = in_all_lanes(0.0)
        for k in range(width):
            a = function_at(cells[at], k, size)
            for m in range(k, width):
                product = (1.0 if k == m else 2.0) * values[at, k] * values[at, m]
                total = total + in_all_lanes(product) * load(forms, (a * width + m - k) * count + p)
        store(rows, i * count + p, total)


@inlined
def _cubic_row(
    at: int, cells: np.ndarray, values: np.ndarray, forms: np.ndarray, i: int, rows: np.ndarray
) -> None:
    """The same for 4 functions, whose products stay in registers."""
    size, _, count = forms.shape
    cell, step = cells[at], 4 * count
    a, b = function_at(cell, 0, size) * step, function_at(cell, 1, size) * step
    c, d = function_at(cell, 2, size) * step, function_at(cell, 3, size) * step
    u, v, w, x = values[at, 0], values[at, 1], values[at, 2], values[at, 3]
    uu, uv, uw, ux = (
        in_all_lanes(u * u),
        in_all_lanes(2 * u * v),
        in_all_lanes(2 * u * w),
        in_all_lanes(2 * u * x),
    )
    vv, vw, vx = in_all_lanes(v * v), in_all_lanes(2 * v * w), in_all_lanes(2 * v * x)
    ww, wx, xx = in_all_lanes(w * w), in_all_lanes(2 * w * x), in_all_lanes(x * x)
    for p in range(0, count, LANES):
        first = uu * load(forms, a + p) + uv * load(forms, a + count + p)
        first = first + uw * load(forms, a + 2 * count + p) + ux * load(forms, a + 3 * count + p)
        second = vv * load(forms, b + p) + vw * load(forms, b + count + p)
        second = second + vx * load(forms, b + 2 * count + p) + ww * load(forms, c + p)
        third = wx * load(forms, c + count + p) + xx * load(forms, d + p)
        store(rows, i * count + p, first + second + third)
