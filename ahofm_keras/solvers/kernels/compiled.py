"""Loops over rows that numba compiles. Imported only where numba is installed and wanted.

Rows are processed in tiles of `TILE`. In a tile the rows are the last axis, so that every step of the
recursion of `FactorMoments` is one loop over neighbouring numbers, whatever the order and the number of
factors; only values of the basis, which differ from row to row, are evaluated row by row, along the
factors or pairs of factors. What a chunk of rows holds is filled up to whole tiles with rows of zeros.

State of a tile, one line of rows each; `lines[a, b]` is where the lines of an entry start:

    sizes of the factors       lines[0, 0]   F
    E e_a, a < d               lines[0, a]   F
    sum_f E e_d                lines[0, d]   1
    K_aa, a < d                lines[a, a]   F (F + 1) / 2 pairs f <= g
    K_ab, a < b < d            lines[a, b]   F F
    sum_g K_ad^fg, a < d       lines[a, d]   F
    sum_fg K_dd^fg             lines[d, d]   1

All functions are in one file, because numba's cache looks at the file of a function only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba  # type: ignore[import-untyped,import-not-found]
import numpy as np

TILE = 64
LANES = 8
# Sums in any order and fused products; NaN and infinity stay what they are.
_FAST = {"contract", "reassoc", "nsz"}


def _compile(function: Callable[..., Any], **further: Any) -> Callable[..., Any]:
    """Compiled at the first call; kept on disk where a folder can be written."""
    options = {"nogil": True, "fastmath": _FAST, "error_model": "numpy", **further}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder for the cache
        return numba.njit(**options)(function)


def _inline(function: Callable[..., Any]) -> Callable[..., Any]:
    """For short loops, where a call would take as long."""
    return _compile(function, forceinline=True)


# Functions of a basis on rows -----------------------------------------------------------------------


@_compile
def evaluate(cells: np.ndarray, values: np.ndarray, coefficients: np.ndarray, out: np.ndarray) -> None:
    """Functions of given coefficients `(F, M)` at the rows: `(F, n)`."""
    size = coefficients.shape[1]
    for f in range(out.shape[0]):
        for i in range(out.shape[1]):
            total = 0.0
            for k in range(values.shape[1]):
                total += values[i, k] * coefficients[f, _function(cells[i], k, size)]
            out[f, i] = total


@_compile
def add_sums(cells: np.ndarray, values: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
    """sum_i weights_i b_i, for F weights `(F, n)`, added to `(F, M)`."""
    size = out.shape[1]
    for f in range(weights.shape[0]):
        for i in range(weights.shape[1]):
            for k in range(values.shape[1]):
                out[f, _function(cells[i], k, size)] += weights[f, i] * values[i, k]


@_compile
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
            a, value = _function(cells[i], k, size), weights[i] * values[i, k]
            for m in range(other_values.shape[1]):
                out[a, _function(other_cells[i], m, other_size)] += value * other_values[i, m]


@_inline
def _function(cell: int, k: int, size: int) -> int:
    """Which function the k-th of a cell is; on a circle the last cells reach the first functions."""
    place = cell + k
    return place if place < size else place - size


@_compile
def _evaluate_tile(
    start: int,
    order: np.ndarray,
    cells: np.ndarray,
    values: np.ndarray,
    coefficients: np.ndarray,
    forms: np.ndarray,
    means: np.ndarray,
    covariances: np.ndarray,
    row: np.ndarray,
    random: bool,
) -> None:
    """Means `(F, T)` and covariances of pairs `(P, T)` of a feature's factors on the rows of a tile."""
    tile = means.shape[1]
    for j in range(tile):
        i = order[start + j]
        _mean_row(start + i, cells, values, coefficients, i, row)
    for f in range(means.shape[0]):
        for i in range(tile):
            means[f, i] = row[i, f]
    if not random:
        return
    for j in range(tile):
        i = order[start + j]
        if values.shape[1] == 4:
            _cubic_row(start + i, cells, values, forms, i, row)
        else:
            _form_row(start + i, cells, values, forms, i, row)
    for p in range(covariances.shape[0]):
        for i in range(tile):
            covariances[p, i] = row[i, p]


@_inline
def _mean_row(
    at: int, cells: np.ndarray, values: np.ndarray, coefficients: np.ndarray, i: int, row: np.ndarray
) -> None:
    size, rank = coefficients.shape
    for f in range(rank):
        row[i, f] = 0.0
    for k in range(values.shape[1]):
        a, value = _function(cells[at], k, size), values[at, k]
        for f in range(rank):
            row[i, f] += value * coefficients[a, f]


@_inline
def _form_row(
    at: int, cells: np.ndarray, values: np.ndarray, forms: np.ndarray, i: int, row: np.ndarray
) -> None:
    """b' V b of all forms V, in bands `(M, width, P)`."""
    size, pairs = forms.shape[0], forms.shape[2]
    for p in range(pairs):
        row[i, p] = 0.0
    for k in range(values.shape[1]):
        a = _function(cells[at], k, size)
        for m in range(k, values.shape[1]):
            product = (1.0 if k == m else 2.0) * values[at, k] * values[at, m]
            for p in range(pairs):
                row[i, p] += product * forms[a, m - k, p]


@_inline
def _cubic_row(
    at: int, cells: np.ndarray, values: np.ndarray, forms: np.ndarray, i: int, row: np.ndarray
) -> None:
    """The same for 4 functions, in two loops: sums stay in registers.

    In one loop there would be more arrays than LLVM is willing to check for overlap.
    """
    size, pairs = forms.shape[0], forms.shape[2]
    a, b = _function(cells[at], 0, size), _function(cells[at], 1, size)
    c, d = _function(cells[at], 2, size), _function(cells[at], 3, size)
    u, v, w, x = values[at, 0], values[at, 1], values[at, 2], values[at, 3]
    uu, uv, uw, ux, vv = u * u, 2 * u * v, 2 * u * w, 2 * u * x, v * v
    for p in range(pairs):
        row[i, p] = (
            uu * forms[a, 0, p] + uv * forms[a, 1, p] + uw * forms[a, 2, p] + ux * forms[a, 3, p]
            + vv * forms[b, 0, p]
        )  # fmt: skip
    vw, vx, ww, wx, xx = 2 * v * w, 2 * v * x, w * w, 2 * w * x, x * x
    for p in range(pairs):
        row[i, p] += (
            vw * forms[b, 1, p] + vx * forms[b, 2, p] + ww * forms[c, 0, p] + wx * forms[c, 1, p]
            + xx * forms[d, 0, p]
        )  # fmt: skip


# Moments of a tile ----------------------------------------------------------------------------------


@_inline
def _pair(f: int, g: int, rank: int) -> int:
    """Place of the pair (f, g) among the pairs f <= g."""
    low, high = min(f, g), max(f, g)
    return low * rank - low * (low - 1) // 2 + high - low


@_inline
def _line(lines: np.ndarray, a: int, b: int, f: int, g: int, rank: int) -> int:
    """Where K_ab^fg stands, a and b below the order."""
    if a == b:
        return lines[a, a] + _pair(f, g, rank)
    if a < b:
        return lines[a, b] + f * rank + g
    return lines[b, a] + g * rank + f


@_compile
def _size_factors(means: np.ndarray, covariances: np.ndarray, sizes: np.ndarray, random: bool) -> None:
    """Root of the second moment of each factor."""
    rank, tile = means.shape
    for f in range(rank):
        own = _pair(f, f, rank)
        if random:
            for i in range(tile):
                sizes[f, i] = np.sqrt(means[f, i] * means[f, i] + covariances[own, i])
        else:
            for i in range(tile):
                sizes[f, i] = abs(means[f, i])


@_compile
def _shift_sizes(state: np.ndarray, sizes: np.ndarray, sign: float) -> None:
    rank, tile = sizes.shape
    for f in range(rank):
        for i in range(tile):
            state[f, i] += sign * sizes[f, i]


@_compile
def _shift_means(state: np.ndarray, lines: np.ndarray, means: np.ndarray, sign: float) -> None:
    """E e_a; the highest first when the feature comes in, last when it goes out."""
    tile = state.shape[1]
    rank, order = means.shape[0], lines.shape[0] - 1
    for step in range(1, order + 1):
        a = order + 1 - step if sign > 0 else step
        for f in range(rank):
            line = lines[0, a] + (f if a < order else 0)
            if a == 1:
                for i in range(tile):
                    state[line, i] += sign * means[f, i]
            else:
                before = lines[0, a - 1] + f
                for i in range(tile):
                    state[line, i] += sign * means[f, i] * state[before, i]


@_compile
def _shift_inner(
    state: np.ndarray, lines: np.ndarray, means: np.ndarray, covariances: np.ndarray, sign: float
) -> None:
    """K_ab of orders below d; the highest a + b first when the feature comes in, last when it goes."""
    rank, order = means.shape[0], lines.shape[0] - 1
    if sign < 0:
        _shift_first(state, lines[1, 1], covariances, sign)
    for step in range(3, 2 * order - 1):
        degree = 2 * order + 1 - step if sign > 0 else step
        for a in range(max(1, degree - order + 1), degree // 2 + 1):
            for f in range(rank):
                for g in range(f if 2 * a == degree else 0, rank):
                    _shift_pair(state, lines, means, covariances, sign, a, degree - a, f, g)
    if sign > 0:
        _shift_first(state, lines[1, 1], covariances, sign)


@_compile
def _shift_first(state: np.ndarray, line: int, covariances: np.ndarray, sign: float) -> None:
    """K_11 of all pairs."""
    pairs, tile = covariances.shape
    for p in range(pairs):
        for i in range(tile):
            state[line + p, i] += sign * covariances[p, i]


@_inline
def _shift_pair(
    state: np.ndarray,
    lines: np.ndarray,
    means: np.ndarray,
    covariances: np.ndarray,
    sign: float,
    a: int,
    b: int,
    f: int,
    g: int,
) -> None:
    """K_ab^fg of two factors, a <= b < d, not both 1."""
    tile = state.shape[1]
    rank = means.shape[0]
    own, pair = _line(lines, a, b, f, g, rank), _pair(f, g, rank)
    left, second = _line(lines, a, b - 1, f, g, rank), lines[0, b - 1] + g
    if a == 1:
        for i in range(tile):
            grown = covariances[pair, i] * state[second, i] + means[g, i] * state[left, i]
            state[own, i] += sign * grown
        return
    first, above = lines[0, a - 1] + f, _line(lines, a - 1, b, f, g, rank)
    corner = _line(lines, a - 1, b - 1, f, g, rank)
    for i in range(tile):
        grown = covariances[pair, i] * state[first, i] * state[second, i]
        grown += means[g, i] * state[left, i] + means[f, i] * state[above, i]
        grown += (means[f, i] * means[g, i] + covariances[pair, i]) * state[corner, i]
        state[own, i] += sign * grown


@_compile
def _multiply_tile(
    state: np.ndarray,
    lines: np.ndarray,
    means: np.ndarray,
    covariances: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Sums over g that entries of order d need, without the feature.

    sums[0, 0] is C e_(d-1); sums[a, 0] is K_(a,d-1) m and sums[a, 1] the sum of C o K_(a,d-1), a < d.
    """
    rank, order = means.shape[0], lines.shape[0] - 1
    sums[:] = 0.0
    pair = 0
    for f in range(rank):
        for g in range(f, rank):
            _multiply_pair(state, lines, means, covariances, sums, pair, f, g)
            if f < g:
                _multiply_pair(state, lines, means, covariances, sums, pair, g, f)
            pair += 1
    for a in range(1, order - 1):
        for f in range(rank):
            for g in range(rank):
                pair, line = _pair(f, g, rank), lines[a, order - 1] + f * rank + g
                _multiply_lines(state, line, means, covariances, sums, pair, a, f, g)


@_inline
def _multiply_pair(
    state: np.ndarray,
    lines: np.ndarray,
    means: np.ndarray,
    covariances: np.ndarray,
    sums: np.ndarray,
    pair: int,
    f: int,
    g: int,
) -> None:
    last, tile = lines.shape[0] - 2, state.shape[1]
    lower, line = lines[0, last] + g, lines[last, last] + pair
    for i in range(tile):
        sums[0, 0, f, i] += covariances[pair, i] * state[lower, i]
    for i in range(tile):
        sums[last, 0, f, i] += state[line, i] * means[g, i]
        sums[last, 1, f, i] += state[line, i] * covariances[pair, i]


@_inline
def _multiply_lines(
    state: np.ndarray,
    line: int,
    means: np.ndarray,
    covariances: np.ndarray,
    sums: np.ndarray,
    pair: int,
    a: int,
    f: int,
    g: int,
) -> None:
    for i in range(state.shape[1]):
        sums[a, 0, f, i] += state[line, i] * means[g, i]
        sums[a, 1, f, i] += state[line, i] * covariances[pair, i]


@_compile
def _shift_outer(
    state: np.ndarray, lines: np.ndarray, means: np.ndarray, sums: np.ndarray, sign: float
) -> None:
    """Sums over g of K_ad, a < d; the highest a first when the feature comes in."""
    tile = state.shape[1]
    rank, order = means.shape[0], lines.shape[0] - 1
    for step in range(1, order):
        a = order - step if sign > 0 else step
        for f in range(rank):
            own, first = lines[a, order] + f, lines[0, a - 1] + f
            if a == 1:
                for i in range(tile):
                    state[own, i] += sign * (sums[0, 0, f, i] + sums[1, 0, f, i])
                continue
            above = lines[a - 1, order] + f
            for i in range(tile):
                grown = state[first, i] * sums[0, 0, f, i] + sums[a, 0, f, i] + sums[a - 1, 1, f, i]
                grown += means[f, i] * (state[above, i] + sums[a - 1, 0, f, i])
                state[own, i] += sign * grown


@_compile
def _shift_variance(
    state: np.ndarray, lines: np.ndarray, means: np.ndarray, sums: np.ndarray, sign: float
) -> None:
    """sum_fg K_dd^fg."""
    tile = state.shape[1]
    rank, order = means.shape[0], lines.shape[0] - 1
    last, own = order - 1, lines[order, order]
    for f in range(rank):
        lower, above = lines[0, last] + f, lines[last, order] + f
        for i in range(tile):
            grown = state[lower, i] * sums[0, 0, f, i] + sums[last, 1, f, i]
            grown += means[f, i] * (2 * state[above, i] + sums[last, 0, f, i])
            state[own, i] += sign * grown


@_compile
def _add_tile(
    state: np.ndarray,
    lines: np.ndarray,
    means: np.ndarray,
    covariances: np.ndarray,
    sums: np.ndarray,
    sizes: np.ndarray,
    random: bool,
) -> None:
    """Take a feature in."""
    _size_factors(means, covariances, sizes, random)
    _shift_sizes(state, sizes, 1.0)
    if random:
        _multiply_tile(state, lines, means, covariances, sums)
        _shift_variance(state, lines, means, sums, 1.0)
        _shift_outer(state, lines, means, sums, 1.0)
        _shift_inner(state, lines, means, covariances, 1.0)
    _shift_means(state, lines, means, 1.0)


@_compile
def _remove_tile(
    state: np.ndarray,
    lines: np.ndarray,
    means: np.ndarray,
    covariances: np.ndarray,
    sums: np.ndarray,
    sizes: np.ndarray,
    random: bool,
) -> None:
    """Take a feature out."""
    _size_factors(means, covariances, sizes, random)
    _shift_sizes(state, sizes, -1.0)
    _shift_means(state, lines, means, -1.0)
    if random:
        _shift_inner(state, lines, means, covariances, -1.0)
        _multiply_tile(state, lines, means, covariances, sums)
        _shift_outer(state, lines, means, sums, -1.0)
        _shift_variance(state, lines, means, sums, -1.0)


@_compile
def _mark_lossy(
    state: np.ndarray, sizes: np.ndarray, limit: float, excess: np.ndarray, lossy: np.ndarray
) -> int:
    """Where a feature that was taken out was larger than the others by more than a limit."""
    rank, tile = sizes.shape
    excess[:] = 0.0
    for f in range(rank):
        for i in range(tile):
            over = sizes[f, i] - limit * abs(state[f, i])
            excess[i] = over if over > excess[i] else excess[i]
    count = 0
    for i in range(tile):
        lossy[i] = excess[i] > 0
        count += lossy[i]
    return count


# Sums over the rows of a tile -----------------------------------------------------------------------


@_compile
def _sum_tile(
    first: int,
    order: np.ndarray,
    cells: np.ndarray,
    values: np.ndarray,
    state: np.ndarray,
    lines: np.ndarray,
    rest: np.ndarray,
    weight: np.ndarray,
    lossy: np.ndarray,
    row: np.ndarray,
    random: bool,
    gram: np.ndarray,
    rhs: np.ndarray,
) -> None:
    """Add the system of a block: sums over the rows where no digits were lost."""
    tile = state.shape[1]
    _slope_products(state, lines, row, random)
    for j in range(tile):
        i = order[first + j]
        if not lossy[first + i] and weight[first + i] != 0:
            _add_products(first + i, cells, values, weight[first + i], i, row, gram)
    _slope_residuals(state, lines, rest[first : first + TILE], row, random)
    for j in range(tile):
        i = order[first + j]
        if not lossy[first + i] and weight[first + i] != 0:
            _add_values(first + i, cells, values, weight[first + i], i, row, rhs)


@_compile
def _slope_products(state: np.ndarray, lines: np.ndarray, row: np.ndarray, random: bool) -> None:
    """T_(d-1,d-1) of the pairs f <= g, rows first."""
    tile = state.shape[1]
    order = lines.shape[0] - 1
    rank = lines[0, 1] - lines[0, 0]
    start, pair = lines[0, order - 1], 0
    for f in range(rank):
        for g in range(f, rank):
            if random:
                own = lines[order - 1, order - 1] + pair
                for i in range(tile):
                    row[i, pair] = state[start + f, i] * state[start + g, i] + state[own, i]
            else:
                for i in range(tile):
                    row[i, pair] = state[start + f, i] * state[start + g, i]
            pair += 1


@_compile
def _slope_residuals(
    state: np.ndarray, lines: np.ndarray, rest: np.ndarray, row: np.ndarray, random: bool
) -> None:
    """(r - E e_d) E e_(d-1) - Cov(e_(d-1), sum_g e_d), rows first; r leaves this group out."""
    tile = state.shape[1]
    order = lines.shape[0] - 1
    rank = lines[0, 1] - lines[0, 0]
    start, total = lines[0, order - 1], lines[0, order]
    for f in range(rank):
        for i in range(tile):
            row[i, f] = (rest[i] - state[total, i]) * state[start + f, i]
        if random:
            own = lines[order - 1, order] + f
            for i in range(tile):
                row[i, f] -= state[own, i]


@_inline
def _add_products(
    at: int, cells: np.ndarray, values: np.ndarray, weight: float, i: int, row: np.ndarray,
    gram: np.ndarray,
) -> None:  # fmt: skip
    """Add the products of a row's functions, one of each pair, times its pairs of factors."""
    size, pairs = gram.shape[0], gram.shape[2]
    for k in range(values.shape[1]):
        a = _function(cells[at], k, size)
        for m in range(k, values.shape[1]):
            product = weight * values[at, k] * values[at, m]
            for p in range(pairs):
                gram[a, m - k, p] += product * row[i, p]


@_inline
def _add_values(
    at: int, cells: np.ndarray, values: np.ndarray, weight: float, i: int, row: np.ndarray,
    rhs: np.ndarray,
) -> None:  # fmt: skip
    size, rank = rhs.shape
    for k in range(values.shape[1]):
        a, value = _function(cells[at], k, size), weight * values[at, k]
        for f in range(rank):
            rhs[a, f] += value * row[i, f]


@_compile
def _widen(forms: np.ndarray) -> np.ndarray:
    """Pairs filled up with zeros to whole cache lines."""
    size, width, pairs = forms.shape
    wide = np.zeros((size, width, -(-pairs // LANES) * LANES))
    wide[:, :, :pairs] = forms
    return wide


# Chunks ---------------------------------------------------------------------------------------------


@_compile
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
    rank, degree = coefficients.shape[1], lines.shape[0] - 1
    pairs = rank * (rank + 1) // 2
    means, covariances = np.empty((rank, TILE)), np.empty((pairs, TILE))
    forms = _widen(forms)
    row, sums = np.zeros((TILE, forms.shape[2])), np.empty((degree, 2, rank, TILE))
    sizes = np.empty((rank, TILE))
    for t in range(state.shape[0]):
        _evaluate_tile(
            t * TILE, order, cells, values, coefficients, forms, means, covariances, row, random
        )
        _add_tile(state[t], lines, means, covariances, sums, sizes, random)


@_compile
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
    rank, degree = coefficients.shape[1], lines.shape[0] - 1
    pairs = rank * (rank + 1) // 2
    means, covariances = np.empty((rank, TILE)), np.empty((pairs, TILE))
    forms = _widen(forms)
    row, sums = np.zeros((TILE, forms.shape[2])), np.empty((degree, 2, rank, TILE))
    sizes, excess, lost = np.empty((rank, TILE)), np.empty(TILE), 0
    for t in range(state.shape[0]):
        first, own = t * TILE, state[t]
        _evaluate_tile(first, order, cells, values, coefficients, forms, means, covariances, row, random)
        _remove_tile(own, lines, means, covariances, sums, sizes, random)
        lost += _mark_lossy(own, sizes, limit, excess, lossy[first : first + TILE])
        _sum_tile(first, order, cells, values, own, lines, rest, weight, lossy, row, random, gram, rhs)
    return lost


@_compile
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
    row = np.zeros((TILE, gram.shape[2]))
    lossy = np.zeros(len(weight), np.bool_)
    for t in range(state.shape[0]):
        _sum_tile(
            t * TILE, order, cells, values, state[t], lines, rest, weight, lossy, row, random, gram, rhs
        )


# What is called from outside.
ENTRIES = (evaluate, add_sums, add_cross, put_in, take_out, sum_system)
