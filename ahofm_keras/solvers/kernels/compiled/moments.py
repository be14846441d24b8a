"""Moments of the elementary symmetric polynomials on a tile, as a feature comes in or goes out.

State of a tile, one line of rows each; `lines[a, b]` is where the lines of an entry start:

    sizes of the factors       lines[0, 0]   F
    E e_a, a < d               lines[0, a]   F
    sum_f E e_d                lines[0, d]   1
    K_aa, a < d                lines[a, a]   F (F + 1) / 2 pairs f <= g
    K_ab, a < b < d            lines[a, b]   F F
    sum_g K_ad^fg, a < d       lines[a, d]   F
    sum_fg K_dd^fg             lines[d, d]   1
"""

from __future__ import annotations

import numpy as np

from ahofm_keras.solvers.kernels.compiled.compiler import compiled, inlined
from ahofm_keras.solvers.kernels.compiled.functions import TILE
from ahofm_keras.solvers.kernels.compiled.vectors import LANES, add_line, in_all_lanes, load, store


@inlined
def _pair(f: int, g: int, rank: int) -> int:
    """Place of the pair (f, g) among the pairs f <= g."""
    low, high = min(f, g), max(f, g)
    return low * rank - low * (low - 1) // 2 + high - low


@inlined
def _line(lines: np.ndarray, a: int, b: int, f: int, g: int, rank: int) -> int:
    """Where K_ab^fg stands, a and b below the order."""
    if a == b:
        return lines[a, a] + _pair(f, g, rank)
    if a < b:
        return lines[a, b] + f * rank + g
    return lines[b, a] + g * rank + f


@compiled
def _size_factors(means: np.ndarray, covariances: np.ndarray, sizes: np.ndarray, random: bool) -> None:
    """Root of the second moment of each factor."""
    rank = sizes.shape[0]
    for f in range(rank):
        own = _pair(f, f, rank)
        if random:
            for i in range(TILE):
                sizes[f, i] = np.sqrt(means[f, i] * means[f, i] + covariances[own, i])
        else:
            for i in range(TILE):
                sizes[f, i] = abs(means[f, i])


@compiled
def _shift_lines(state: np.ndarray, line: int, numbers: np.ndarray, count: int, sign: float) -> None:
    """Add lines `(count, T)` to those of the state, or take them away."""
    factor = in_all_lanes(sign)
    for i in range(0, count * TILE, LANES):
        add_line(state, line * TILE + i, factor, load(numbers, i))


@compiled
def _shift_means(
    state: np.ndarray, lines: np.ndarray, means: np.ndarray, rank: int, sign: float
) -> None:
    """E e_a; the highest first when the feature comes in, last when it goes out."""
    order, factor = lines.shape[0] - 1, in_all_lanes(sign)
    for step in range(1, order + 1):
        a = order + 1 - step if sign > 0 else step
        if a == 1:
            _shift_lines(state, lines[0, 1], means, rank, sign)
            continue
        for f in range(rank):
            own = (lines[0, a] + (f if a < order else 0)) * TILE
            before = (lines[0, a - 1] + f) * TILE
            for i in range(0, TILE, LANES):
                grown = load(means, f * TILE + i) * load(state, before + i)
                add_line(state, own + i, factor, grown)


@compiled
def _shift_inner(
    state: np.ndarray,
    lines: np.ndarray,
    means: np.ndarray,
    covariances: np.ndarray,
    rank: int,
    sign: float,
) -> None:
    """K_ab of orders below d; the highest a + b first when the feature comes in, last when it goes."""
    order, pairs = lines.shape[0] - 1, rank * (rank + 1) // 2
    if sign < 0:
        _shift_lines(state, lines[1, 1], covariances, pairs, sign)
    for step in range(3, 2 * order - 1):
        degree = 2 * order + 1 - step if sign > 0 else step
        for a in range(max(1, degree - order + 1), degree // 2 + 1):
            for f in range(rank):
                for g in range(f if 2 * a == degree else 0, rank):
                    _shift_pair(state, lines, means, covariances, rank, sign, a, degree - a, f, g)
    if sign > 0:
        _shift_lines(state, lines[1, 1], covariances, pairs, sign)


@inlined
def _shift_pair(
    state: np.ndarray,
    lines: np.ndarray,
    means: np.ndarray,
    covariances: np.ndarray,
    rank: int,
    sign: float,
    a: int,
    b: int,
    f: int,
    g: int,
) -> None:
    """K_ab^fg of two factors, a <= b < d, not both 1."""
    factor, one, other = in_all_lanes(sign), f * TILE, g * TILE
    own, pair = _line(lines, a, b, f, g, rank) * TILE, _pair(f, g, rank) * TILE
    left, second = _line(lines, a, b - 1, f, g, rank) * TILE, (lines[0, b - 1] + g) * TILE
    if a == 1:
        for i in range(0, TILE, LANES):
            grown = load(covariances, pair + i) * load(state, second + i)
            grown = grown + load(means, other + i) * load(state, left + i)
            add_line(state, own + i, factor, grown)
        return
    first, above = (lines[0, a - 1] + f) * TILE, _line(lines, a - 1, b, f, g, rank) * TILE
    corner = _line(lines, a - 1, b - 1, f, g, rank) * TILE
    for i in range(0, TILE, LANES):
        covariance, near = load(covariances, pair + i), load(state, corner + i)
        mean, other_mean = load(means, one + i), load(means, other + i)
        grown = covariance * (load(state, first + i) * load(state, second + i) + near)
        grown = grown + other_mean * (load(state, left + i) + mean * near)
        grown = grown + mean * load(state, above + i)
        add_line(state, own + i, factor, grown)


@compiled
def _multiply_factor(
    state: np.ndarray,
    lines: np.ndarray,
    means: np.ndarray,
    covariances: np.ndarray,
    rank: int,
    f: int,
    sums: np.ndarray,
) -> None:
    """Sums over g that entries of order d of a factor need, without the feature, `(d, 2, T)`.

    sums[0, 0] is C e_(d-1); sums[a, 0] is K_(a,d-1) m and sums[a, 1] the sum of C o K_(a,d-1), a < d.
    """
    last = lines.shape[0] - 2
    for i in range(0, TILE, LANES):
        lower, by_mean, by_covariance = in_all_lanes(0.0), in_all_lanes(0.0), in_all_lanes(0.0)
        for g in range(rank):
            pair = _pair(f, g, rank) * TILE + i
            covariance = load(covariances, pair)
            entry = load(state, lines[last, last] * TILE + pair)
            lower = lower + covariance * load(state, (lines[0, last] + g) * TILE + i)
            by_mean = by_mean + entry * load(means, g * TILE + i)
            by_covariance = by_covariance + entry * covariance
        store(sums, i, lower)
        store(sums, 2 * last * TILE + i, by_mean)
        store(sums, (2 * last + 1) * TILE + i, by_covariance)
    for a in range(1, last):
        for i in range(0, TILE, LANES):
            by_mean, by_covariance = in_all_lanes(0.0), in_all_lanes(0.0)
            for g in range(rank):
                entry = load(state, (lines[a, last] + f * rank + g) * TILE + i)
                by_mean = by_mean + entry * load(means, g * TILE + i)
                by_covariance = by_covariance + entry * load(covariances, _pair(f, g, rank) * TILE + i)
            store(sums, 2 * a * TILE + i, by_mean)
            store(sums, (2 * a + 1) * TILE + i, by_covariance)


@compiled
def _shift_outer(
    state: np.ndarray, lines: np.ndarray, means: np.ndarray, f: int, sums: np.ndarray, sign: float
) -> None:
    """Sums over g of K_ad of a factor, a < d; the highest a first when the feature comes in."""
    order, factor, one = lines.shape[0] - 1, in_all_lanes(sign), f * TILE
    for step in range(1, order):
        a = order - step if sign > 0 else step
        own, first = (lines[a, order] + f) * TILE, (lines[0, a - 1] + f) * TILE
        here, before = 2 * a * TILE, 2 * (a - 1) * TILE
        if a == 1:
            for i in range(0, TILE, LANES):
                add_line(state, own + i, factor, load(sums, i) + load(sums, here + i))
            continue
        above = (lines[a - 1, order] + f) * TILE
        for i in range(0, TILE, LANES):
            grown = load(state, first + i) * load(sums, i) + load(sums, here + i)
            grown = grown + load(sums, before + TILE + i)
            both = load(state, above + i) + load(sums, before + i)
            add_line(state, own + i, factor, grown + load(means, one + i) * both)


@compiled
def _shift_variance(
    state: np.ndarray, lines: np.ndarray, means: np.ndarray, f: int, sums: np.ndarray, sign: float
) -> None:
    """What a factor adds to sum_fg K_dd^fg."""
    order, factor, one, two = lines.shape[0] - 1, in_all_lanes(sign), f * TILE, in_all_lanes(2.0)
    last, own = order - 1, lines[order, order] * TILE
    lower, above = (lines[0, last] + f) * TILE, (lines[last, order] + f) * TILE
    for i in range(0, TILE, LANES):
        grown = load(state, lower + i) * load(sums, i) + load(sums, (2 * last + 1) * TILE + i)
        both = two * load(state, above + i) + load(sums, 2 * last * TILE + i)
        add_line(state, own + i, factor, grown + load(means, one + i) * both)


@compiled
def add_tile(
    state: np.ndarray,
    lines: np.ndarray,
    means: np.ndarray,
    covariances: np.ndarray,
    sums: np.ndarray,
    sizes: np.ndarray,
    random: bool,
) -> None:
    """Take a feature in."""
    rank = sizes.shape[0]
    _size_factors(means, covariances, sizes, random)
    _shift_lines(state, lines[0, 0], sizes, rank, 1.0)
    if random:
        for f in range(rank):
            _multiply_factor(state, lines, means, covariances, rank, f, sums)
            _shift_variance(state, lines, means, f, sums, 1.0)
            _shift_outer(state, lines, means, f, sums, 1.0)
        _shift_inner(state, lines, means, covariances, rank, 1.0)
    _shift_means(state, lines, means, rank, 1.0)


@compiled
def remove_tile(
    state: np.ndarray,
    lines: np.ndarray,
    means: np.ndarray,
    covariances: np.ndarray,
    sums: np.ndarray,
    sizes: np.ndarray,
    random: bool,
) -> None:
    """Take a feature out."""
    rank = sizes.shape[0]
    _size_factors(means, covariances, sizes, random)
    _shift_lines(state, lines[0, 0], sizes, rank, -1.0)
    _shift_means(state, lines, means, rank, -1.0)
    if random:
        _shift_inner(state, lines, means, covariances, rank, -1.0)
        for f in range(rank):
            _multiply_factor(state, lines, means, covariances, rank, f, sums)
            _shift_outer(state, lines, means, f, sums, -1.0)
            _shift_variance(state, lines, means, f, sums, -1.0)


@compiled
def mark_lossy(
    state: np.ndarray, sizes: np.ndarray, limit: float, excess: np.ndarray, lossy: np.ndarray
) -> int:
    """Where a feature that was taken out was larger than the others by more than a limit."""
    rank = sizes.shape[0]
    excess[:] = 0.0
    for f in range(rank):
        for i in range(TILE):
            over = sizes[f, i] - limit * abs(state[f, i])
            excess[i] = over if over > excess[i] else excess[i]
    count = 0
    for i in range(TILE):
        lossy[i] = excess[i] > 0
        count += lossy[i]
    return count
