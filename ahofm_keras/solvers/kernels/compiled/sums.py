"""The system of a block of factors: sums over the rows of a tile."""

from __future__ import annotations

import numpy as np

from ahofm_keras.solvers.kernels.compiled.compiler import compiled, inlined
from ahofm_keras.solvers.kernels.compiled.functions import TILE, function_at, turn_to_rows
from ahofm_keras.solvers.kernels.compiled.vectors import LANES, add_line, in_all_lanes, load, store


@compiled
def sum_tile(
    first: int,
    order: np.ndarray,
    cells: np.ndarray,
    values: np.ndarray,
    state: np.ndarray,
    lines: np.ndarray,
    rest: np.ndarray,
    weight: np.ndarray,
    lossy: np.ndarray,
    means: np.ndarray,
    covariances: np.ndarray,
    rows: np.ndarray,
    residuals: np.ndarray,
    random: bool,
    gram: np.ndarray,
    rhs: np.ndarray,
) -> None:
    """Add the system of a block: sums over the rows where no digits were lost."""
    _slope_products(state, lines, covariances, random)
    turn_to_rows(covariances, gram.shape[2], rows)
    _slope_residuals(state, lines, rest[first : first + TILE], means, random)
    turn_to_rows(means, rhs.shape[1], residuals)
    for j in range(TILE):
        i = order[first + j]
        if not lossy[first + i] and weight[first + i] != 0:
            if values.shape[1] == 4:
                _add_cubic(first + i, cells, values, weight[first + i], i, rows, gram)
            else:
                _add_products(first + i, cells, values, weight[first + i], i, rows, gram)
            _add_values(first + i, cells, values, weight[first + i], i, residuals, rhs)


@compiled
def _slope_products(state: np.ndarray, lines: np.ndarray, out: np.ndarray, random: bool) -> None:
    """T_(d-1,d-1) of the pairs f <= g, `(P, T)`."""
    order, rank = lines.shape[0] - 1, lines[0, 1] - lines[0, 0]
    start, pair = lines[0, order - 1], 0
    for f in range(rank):
        for g in range(f, rank):
            one, other = (start + f) * TILE, (start + g) * TILE
            own = (lines[order - 1, order - 1] + pair) * TILE
            for i in range(0, TILE, LANES):
                product = load(state, one + i) * load(state, other + i)
                if random:
                    product = product + load(state, own + i)
                store(out, pair * TILE + i, product)
            pair += 1


@compiled
def _slope_residuals(
    state: np.ndarray, lines: np.ndarray, rest: np.ndarray, out: np.ndarray, random: bool
) -> None:
    """(r - E e_d) E e_(d-1) - Cov(e_(d-1), sum_g e_d), `(F, T)`; r leaves this group out."""
    order, rank = lines.shape[0] - 1, lines[0, 1] - lines[0, 0]
    total = lines[0, order] * TILE
    for f in range(rank):
        slope, own = (lines[0, order - 1] + f) * TILE, (lines[order - 1, order] + f) * TILE
        for i in range(0, TILE, LANES):
            left = (load(rest, i) - load(state, total + i)) * load(state, slope + i)
            if random:
                left = left - load(state, own + i)
            store(out, f * TILE + i, left)


@inlined
def _add_products(
    at: int, cells: np.ndarray, values: np.ndarray, weight: float, i: int, rows: np.ndarray,
    gram: np.ndarray,
) -> None:  # fmt: skip
    """Add the products of a row's functions, one of each pair, times its pairs of factors."""
    size, width, count = gram.shape
    for k in range(width):
        a = function_at(cells[at], k, size)
        for m in range(k, width):
            product, place = (
                in_all_lanes(weight * values[at, k] * values[at, m]),
                (a * width + m - k) * count,
            )
            for p in range(0, count, LANES):
                add_line(gram, place + p, product, load(rows, i * count + p))


@inlined
def _add_cubic(
    at: int, cells: np.ndarray, values: np.ndarray, weight: float, i: int, rows: np.ndarray,
    gram: np.ndarray,
) -> None:  # fmt: skip
    """The same for 4 functions, whose products stay in registers."""
    size, _, count = gram.shape
    cell, step = cells[at], 4 * count
    a, b = function_at(cell, 0, size) * step, function_at(cell, 1, size) * step
    c, d = function_at(cell, 2, size) * step, function_at(cell, 3, size) * step
    u, v, w, x = values[at, 0], values[at, 1], values[at, 2], values[at, 3]
    wu, wv, ww, wx = weight * u, weight * v, weight * w, weight * x
    uu, uv, uw, ux = (
        in_all_lanes(wu * u),
        in_all_lanes(wu * v),
        in_all_lanes(wu * w),
        in_all_lanes(wu * x),
    )
    vv, vw, vx = in_all_lanes(wv * v), in_all_lanes(wv * w), in_all_lanes(wv * x)
    own, mixed, last = in_all_lanes(ww * w), in_all_lanes(ww * x), in_all_lanes(wx * x)
    for p in range(0, count, LANES):
        slopes = load(rows, i * count + p)
        add_line(gram, a + p, uu, slopes)
        add_line(gram, a + count + p, uv, slopes)
        add_line(gram, a + 2 * count + p, uw, slopes)
        add_line(gram, a + 3 * count + p, ux, slopes)
        add_line(gram, b + p, vv, slopes)
        add_line(gram, b + count + p, vw, slopes)
        add_line(gram, b + 2 * count + p, vx, slopes)
        add_line(gram, c + p, own, slopes)
        add_line(gram, c + count + p, mixed, slopes)
        add_line(gram, d + p, last, slopes)


@inlined
def _add_values(
    at: int, cells: np.ndarray, values: np.ndarray, weight: float, i: int, rows: np.ndarray,
    rhs: np.ndarray,
) -> None:  # fmt: skip
    size, count = rhs.shape
    for k in range(values.shape[1]):
        a, value = function_at(cells[at], k, size), in_all_lanes(weight * values[at, k])
        for p in range(0, count, LANES):
            add_line(rhs, a * count + p, value, load(rows, i * count + p))
