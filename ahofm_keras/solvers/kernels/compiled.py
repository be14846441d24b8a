"""Loops over rows that numba compiles. Imported only where numba is installed and wanted.

Rows are processed in tiles of `TILE`. In a tile the rows are the last axis, so that every step of the
recursion of `FactorMoments` is one loop over neighbouring numbers, whatever the order and the number of
factors; only values of the basis, which differ from row to row, are evaluated row by row, along the
factors or pairs of factors, filled up to whole vectors, and transposed. What a chunk of rows holds is
filled up to whole tiles with rows of zeros. Numbers are read and written `LANES` at a time: loops that
LLVM turns into vectors by itself begin with checks for overlap that take as long as the work.

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

import operator
from collections.abc import Callable
from typing import Any

import numba  # type: ignore[import-untyped,import-not-found]
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped,import-not-found]
from numba import types  # type: ignore[import-untyped,import-not-found]
from numba.extending import (  # type: ignore[import-untyped,import-not-found]
    intrinsic,
    models,
    overload,
    register_model,
)

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


# Vectors of LANES numbers ---------------------------------------------------------------------------


def _instructions(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that says which instructions a call stands for."""
    made: Callable[..., Any] = intrinsic(function)
    return made


class _LanesType(types.Type):  # type: ignore[misc]
    """Of a variable that holds `LANES` numbers."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


_LANES = _LanesType()
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)


@register_model(_LanesType)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, own: Any) -> None:
        super().__init__(manager, own, _VECTOR)


def _address(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer())


@_instructions
def _load(_: Any, array: Any, index: Any) -> Any:
    """Numbers of an array in C order from a place on, whatever its axes."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.load(_address(context, builder, signature.args[0], *given), align=8)

    return _LANES(array, types.intp), generate


@_instructions
def _store(_: Any, array: Any, index: Any, numbers: Any) -> Any:
    """Write them there."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        builder.store(given[2], _address(context, builder, signature.args[0], *given[:2]), align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, numbers), generate


@_instructions
def _all(_: Any, number: Any) -> Any:
    """One number in all lanes."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), given[0], ir.IntType(32)(0))
        return _shuffled(builder, first, first, [0] * LANES)

    return _LANES(types.float64), generate


@_instructions
def _transpose(_: Any, source: Any, at: Any, step: Any, out: Any, to: Any, out_step: Any) -> Any:
    """`LANES` lines of as many numbers, `step` apart, written as lines that are `out_step` apart."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        lines = []
        for line in range(LANES):
            index = builder.add(given[1], builder.mul(given[2], given[2].type(line)))
            address = _address(context, builder, signature.args[0], given[0], index)
            lines.append(builder.load(address, align=8))
        # Halves of blocks of 2, 4, 8 numbers change places with those of the line so far away.
        for half in (1, 2, 4):
            low = [a if not a & half else a - half + LANES for a in range(LANES)]
            high = [a + half if not a & half else a + LANES for a in range(LANES)]
            for line in range(LANES):
                if not line & half:
                    one, other = lines[line], lines[line + half]
                    lines[line] = _shuffled(builder, one, other, low)
                    lines[line + half] = _shuffled(builder, one, other, high)
        for line, numbers in enumerate(lines):
            index = builder.add(given[4], builder.mul(given[5], given[5].type(line)))
            builder.store(
                numbers, _address(context, builder, signature.args[3], given[3], index), align=8
            )
        return context.get_dummy_value()

    return types.void(source, types.intp, types.intp, out, types.intp, types.intp), generate


def _shuffled(builder: Any, one: Any, other: Any, places: list[int]) -> Any:
    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), places)
    return builder.shuffle_vector(one, other, mask)


def _define(operation: Callable[..., Any], instruction: str) -> None:
    """What an operator does to two vectors."""

    @_instructions
    def compute(_: Any, one: Any, other: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            return getattr(builder, instruction)(*given, flags=tuple(_FAST))

        return _LANES(_LANES, _LANES), generate

    def apply(one: Any, other: Any) -> Any:
        return compute(one, other)

    @overload(operation)  # type: ignore[untyped-decorator]
    def choose(one: Any, other: Any) -> Any:
        are_vectors = isinstance(one, _LanesType) and isinstance(other, _LanesType)
        return apply if are_vectors else None


_define(operator.add, "fadd")
_define(operator.sub, "fsub")
_define(operator.mul, "fmul")


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
    rows: np.ndarray,
    random: bool,
) -> None:
    """Means `(F, T)` and covariances of pairs `(P, T)` of a feature's factors on the rows of a tile."""
    for j in range(TILE):
        i = order[start + j]
        _mean_row(start + i, cells, values, coefficients, i, rows)
    _turn_to_lines(rows, coefficients.shape[1], means)
    if not random:
        return
    for j in range(TILE):
        i = order[start + j]
        if values.shape[1] == 4:
            _cubic_row(start + i, cells, values, forms, i, rows)
        else:
            _form_row(start + i, cells, values, forms, i, rows)
    _turn_to_lines(rows, forms.shape[2], covariances)


@_compile
def _turn_to_lines(rows: np.ndarray, count: int, lines: np.ndarray) -> None:
    """`(T, count)` -> `(count, T)`."""
    for first in range(0, count, LANES):
        for i in range(0, TILE, LANES):
            _transpose(rows, i * count + first, count, lines, first * TILE + i, TILE)


@_compile
def _turn_to_rows(lines: np.ndarray, count: int, rows: np.ndarray) -> None:
    """`(count, T)` -> `(T, count)`."""
    for first in range(0, count, LANES):
        for i in range(0, TILE, LANES):
            _transpose(lines, first * TILE + i, TILE, rows, i * count + first, count)


@_inline
def _mean_row(
    at: int, cells: np.ndarray, values: np.ndarray, coefficients: np.ndarray, i: int, rows: np.ndarray
) -> None:
    size, count = coefficients.shape
    for p in range(0, count, LANES):
        total = _all(0.0)
        for k in range(values.shape[1]):
            a = _function(cells[at], k, size)
            total = total + _all(values[at, k]) * _load(coefficients, a * count + p)
        _store(rows, i * count + p, total)


@_inline
def _form_row(
    at: int, cells: np.ndarray, values: np.ndarray, forms: np.ndarray, i: int, rows: np.ndarray
) -> None:
    """b' V b of all forms V, in bands `(M, width, P)`."""
    size, width, count = forms.shape
    for p in range(0, count, LANES):
        total = _all(0.0)
        for k in range(width):
            a = _function(cells[at], k, size)
            for m in range(k, width):
                product = (1.0 if k == m else 2.0) * values[at, k] * values[at, m]
                total = total + _all(product) * _load(forms, (a * width + m - k) * count + p)
        _store(rows, i * count + p, total)


@_inline
def _cubic_row(
    at: int, cells: np.ndarray, values: np.ndarray, forms: np.ndarray, i: int, rows: np.ndarray
) -> None:
    """The same for 4 functions, whose products stay in registers."""
    size, _, count = forms.shape
    cell, step = cells[at], 4 * count
    a, b = _function(cell, 0, size) * step, _function(cell, 1, size) * step
    c, d = _function(cell, 2, size) * step, _function(cell, 3, size) * step
    u, v, w, x = values[at, 0], values[at, 1], values[at, 2], values[at, 3]
    uu, uv, uw, ux = _all(u * u), _all(2 * u * v), _all(2 * u * w), _all(2 * u * x)
    vv, vw, vx = _all(v * v), _all(2 * v * w), _all(2 * v * x)
    ww, wx, xx = _all(w * w), _all(2 * w * x), _all(x * x)
    for p in range(0, count, LANES):
        first = uu * _load(forms, a + p) + uv * _load(forms, a + count + p)
        first = first + uw * _load(forms, a + 2 * count + p) + ux * _load(forms, a + 3 * count + p)
        second = vv * _load(forms, b + p) + vw * _load(forms, b + count + p)
        second = second + vx * _load(forms, b + 2 * count + p) + ww * _load(forms, c + p)
        third = wx * _load(forms, c + count + p) + xx * _load(forms, d + p)
        _store(rows, i * count + p, first + second + third)


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
    rank = sizes.shape[0]
    for f in range(rank):
        own = _pair(f, f, rank)
        if random:
            for i in range(TILE):
                sizes[f, i] = np.sqrt(means[f, i] * means[f, i] + covariances[own, i])
        else:
            for i in range(TILE):
                sizes[f, i] = abs(means[f, i])


@_inline
def _add_line(state: np.ndarray, at: int, sign: Any, grown: Any) -> None:
    """Add to the numbers of a line, or take away."""
    _store(state, at, _load(state, at) + sign * grown)


@_compile
def _shift_lines(state: np.ndarray, line: int, numbers: np.ndarray, count: int, sign: float) -> None:
    """Add lines `(count, T)` to those of the state, or take them away."""
    factor = _all(sign)
    for i in range(0, count * TILE, LANES):
        _add_line(state, line * TILE + i, factor, _load(numbers, i))


@_compile
def _shift_means(
    state: np.ndarray, lines: np.ndarray, means: np.ndarray, rank: int, sign: float
) -> None:
    """E e_a; the highest first when the feature comes in, last when it goes out."""
    order, factor = lines.shape[0] - 1, _all(sign)
    for step in range(1, order + 1):
        a = order + 1 - step if sign > 0 else step
        if a == 1:
            _shift_lines(state, lines[0, 1], means, rank, sign)
            continue
        for f in range(rank):
            own = (lines[0, a] + (f if a < order else 0)) * TILE
            before = (lines[0, a - 1] + f) * TILE
            for i in range(0, TILE, LANES):
                grown = _load(means, f * TILE + i) * _load(state, before + i)
                _add_line(state, own + i, factor, grown)


@_compile
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


@_inline
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
    factor, one, other = _all(sign), f * TILE, g * TILE
    own, pair = _line(lines, a, b, f, g, rank) * TILE, _pair(f, g, rank) * TILE
    left, second = _line(lines, a, b - 1, f, g, rank) * TILE, (lines[0, b - 1] + g) * TILE
    if a == 1:
        for i in range(0, TILE, LANES):
            grown = _load(covariances, pair + i) * _load(state, second + i)
            grown = grown + _load(means, other + i) * _load(state, left + i)
            _add_line(state, own + i, factor, grown)
        return
    first, above = (lines[0, a - 1] + f) * TILE, _line(lines, a - 1, b, f, g, rank) * TILE
    corner = _line(lines, a - 1, b - 1, f, g, rank) * TILE
    for i in range(0, TILE, LANES):
        covariance, near = _load(covariances, pair + i), _load(state, corner + i)
        mean, other_mean = _load(means, one + i), _load(means, other + i)
        grown = covariance * (_load(state, first + i) * _load(state, second + i) + near)
        grown = grown + other_mean * (_load(state, left + i) + mean * near)
        grown = grown + mean * _load(state, above + i)
        _add_line(state, own + i, factor, grown)


@_compile
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
        lower, by_mean, by_covariance = _all(0.0), _all(0.0), _all(0.0)
        for g in range(rank):
            pair = _pair(f, g, rank) * TILE + i
            covariance = _load(covariances, pair)
            entry = _load(state, lines[last, last] * TILE + pair)
            lower = lower + covariance * _load(state, (lines[0, last] + g) * TILE + i)
            by_mean = by_mean + entry * _load(means, g * TILE + i)
            by_covariance = by_covariance + entry * covariance
        _store(sums, i, lower)
        _store(sums, 2 * last * TILE + i, by_mean)
        _store(sums, (2 * last + 1) * TILE + i, by_covariance)
    for a in range(1, last):
        for i in range(0, TILE, LANES):
            by_mean, by_covariance = _all(0.0), _all(0.0)
            for g in range(rank):
                entry = _load(state, (lines[a, last] + f * rank + g) * TILE + i)
                by_mean = by_mean + entry * _load(means, g * TILE + i)
                by_covariance = by_covariance + entry * _load(covariances, _pair(f, g, rank) * TILE + i)
            _store(sums, 2 * a * TILE + i, by_mean)
            _store(sums, (2 * a + 1) * TILE + i, by_covariance)


@_compile
def _shift_outer(
    state: np.ndarray, lines: np.ndarray, means: np.ndarray, f: int, sums: np.ndarray, sign: float
) -> None:
    """Sums over g of K_ad of a factor, a < d; the highest a first when the feature comes in."""
    order, factor, one = lines.shape[0] - 1, _all(sign), f * TILE
    for step in range(1, order):
        a = order - step if sign > 0 else step
        own, first = (lines[a, order] + f) * TILE, (lines[0, a - 1] + f) * TILE
        here, before = 2 * a * TILE, 2 * (a - 1) * TILE
        if a == 1:
            for i in range(0, TILE, LANES):
                _add_line(state, own + i, factor, _load(sums, i) + _load(sums, here + i))
            continue
        above = (lines[a - 1, order] + f) * TILE
        for i in range(0, TILE, LANES):
            grown = _load(state, first + i) * _load(sums, i) + _load(sums, here + i)
            grown = grown + _load(sums, before + TILE + i)
            both = _load(state, above + i) + _load(sums, before + i)
            _add_line(state, own + i, factor, grown + _load(means, one + i) * both)


@_compile
def _shift_variance(
    state: np.ndarray, lines: np.ndarray, means: np.ndarray, f: int, sums: np.ndarray, sign: float
) -> None:
    """What a factor adds to sum_fg K_dd^fg."""
    order, factor, one, two = lines.shape[0] - 1, _all(sign), f * TILE, _all(2.0)
    last, own = order - 1, lines[order, order] * TILE
    lower, above = (lines[0, last] + f) * TILE, (lines[last, order] + f) * TILE
    for i in range(0, TILE, LANES):
        grown = _load(state, lower + i) * _load(sums, i) + _load(sums, (2 * last + 1) * TILE + i)
        both = two * _load(state, above + i) + _load(sums, 2 * last * TILE + i)
        _add_line(state, own + i, factor, grown + _load(means, one + i) * both)


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


@_compile
def _mark_lossy(
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
    _turn_to_rows(covariances, gram.shape[2], rows)
    _slope_residuals(state, lines, rest[first : first + TILE], means, random)
    _turn_to_rows(means, rhs.shape[1], residuals)
    for j in range(TILE):
        i = order[first + j]
        if not lossy[first + i] and weight[first + i] != 0:
            if values.shape[1] == 4:
                _add_cubic(first + i, cells, values, weight[first + i], i, rows, gram)
            else:
                _add_products(first + i, cells, values, weight[first + i], i, rows, gram)
            _add_values(first + i, cells, values, weight[first + i], i, residuals, rhs)


@_compile
def _slope_products(state: np.ndarray, lines: np.ndarray, out: np.ndarray, random: bool) -> None:
    """T_(d-1,d-1) of the pairs f <= g, `(P, T)`."""
    order, rank = lines.shape[0] - 1, lines[0, 1] - lines[0, 0]
    start, pair = lines[0, order - 1], 0
    for f in range(rank):
        for g in range(f, rank):
            one, other = (start + f) * TILE, (start + g) * TILE
            own = (lines[order - 1, order - 1] + pair) * TILE
            for i in range(0, TILE, LANES):
                product = _load(state, one + i) * _load(state, other + i)
                if random:
                    product = product + _load(state, own + i)
                _store(out, pair * TILE + i, product)
            pair += 1


@_compile
def _slope_residuals(
    state: np.ndarray, lines: np.ndarray, rest: np.ndarray, out: np.ndarray, random: bool
) -> None:
    """(r - E e_d) E e_(d-1) - Cov(e_(d-1), sum_g e_d), `(F, T)`; r leaves this group out."""
    order, rank = lines.shape[0] - 1, lines[0, 1] - lines[0, 0]
    total = lines[0, order] * TILE
    for f in range(rank):
        slope, own = (lines[0, order - 1] + f) * TILE, (lines[order - 1, order] + f) * TILE
        for i in range(0, TILE, LANES):
            left = (_load(rest, i) - _load(state, total + i)) * _load(state, slope + i)
            if random:
                left = left - _load(state, own + i)
            _store(out, f * TILE + i, left)


@_inline
def _add_products(
    at: int, cells: np.ndarray, values: np.ndarray, weight: float, i: int, rows: np.ndarray,
    gram: np.ndarray,
) -> None:  # fmt: skip
    """Add the products of a row's functions, one of each pair, times its pairs of factors."""
    size, width, count = gram.shape
    for k in range(width):
        a = _function(cells[at], k, size)
        for m in range(k, width):
            product, place = _all(weight * values[at, k] * values[at, m]), (a * width + m - k) * count
            for p in range(0, count, LANES):
                _add_line(gram, place + p, product, _load(rows, i * count + p))


@_inline
def _add_cubic(
    at: int, cells: np.ndarray, values: np.ndarray, weight: float, i: int, rows: np.ndarray,
    gram: np.ndarray,
) -> None:  # fmt: skip
    """The same for 4 functions, whose products stay in registers."""
    size, _, count = gram.shape
    cell, step = cells[at], 4 * count
    a, b = _function(cell, 0, size) * step, _function(cell, 1, size) * step
    c, d = _function(cell, 2, size) * step, _function(cell, 3, size) * step
    u, v, w, x = values[at, 0], values[at, 1], values[at, 2], values[at, 3]
    wu, wv, ww, wx = weight * u, weight * v, weight * w, weight * x
    uu, uv, uw, ux = _all(wu * u), _all(wu * v), _all(wu * w), _all(wu * x)
    vv, vw, vx = _all(wv * v), _all(wv * w), _all(wv * x)
    own, mixed, last = _all(ww * w), _all(ww * x), _all(wx * x)
    for p in range(0, count, LANES):
        slopes = _load(rows, i * count + p)
        _add_line(gram, a + p, uu, slopes)
        _add_line(gram, a + count + p, uv, slopes)
        _add_line(gram, a + 2 * count + p, uw, slopes)
        _add_line(gram, a + 3 * count + p, ux, slopes)
        _add_line(gram, b + p, vv, slopes)
        _add_line(gram, b + count + p, vw, slopes)
        _add_line(gram, b + 2 * count + p, vx, slopes)
        _add_line(gram, c + p, own, slopes)
        _add_line(gram, c + count + p, mixed, slopes)
        _add_line(gram, d + p, last, slopes)


@_inline
def _add_values(
    at: int, cells: np.ndarray, values: np.ndarray, weight: float, i: int, rows: np.ndarray,
    rhs: np.ndarray,
) -> None:  # fmt: skip
    size, count = rhs.shape
    for k in range(values.shape[1]):
        a, value = _function(cells[at], k, size), _all(weight * values[at, k])
        for p in range(0, count, LANES):
            _add_line(rhs, a * count + p, value, _load(rows, i * count + p))


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
    rank, degree = lines[0, 1] - lines[0, 0], lines.shape[0] - 1
    means, covariances = _empty_lines(coefficients.shape[1]), _empty_lines(forms.shape[2])
    rows, sums = np.empty(covariances.size), np.empty((degree, 2, TILE))
    sizes = np.empty((rank, TILE))
    for t in range(state.shape[0]):
        _evaluate_tile(
            t * TILE, order, cells, values, coefficients, forms, means, covariances, rows, random
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
    rank, degree = lines[0, 1] - lines[0, 0], lines.shape[0] - 1
    means, covariances = _empty_lines(coefficients.shape[1]), _empty_lines(forms.shape[2])
    rows, residuals = np.empty(covariances.size), np.empty(means.size)
    sums, sizes = np.empty((degree, 2, TILE)), np.empty((rank, TILE))
    excess, lost = np.empty(TILE), 0
    for t in range(state.shape[0]):
        first, own = t * TILE, state[t]
        _evaluate_tile(
            first, order, cells, values, coefficients, forms, means, covariances, rows, random
        )
        _remove_tile(own, lines, means, covariances, sums, sizes, random)
        lost += _mark_lossy(own, sizes, limit, excess, lossy[first : first + TILE])
        _sum_tile(
            first, order, cells, values, own, lines, rest, weight, lossy, means, covariances, rows,
            residuals, random, gram, rhs,
        )  # fmt: skip
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
    means, covariances = _empty_lines(rhs.shape[1]), _empty_lines(gram.shape[2])
    rows, residuals = np.empty(covariances.size), np.empty(means.size)
    lossy = np.zeros(len(weight), np.bool_)
    for t in range(state.shape[0]):
        _sum_tile(
            t * TILE, order, cells, values, state[t], lines, rest, weight, lossy, means, covariances,
            rows, residuals, random, gram, rhs,
        )  # fmt: skip


@_compile
def _empty_lines(count: int) -> np.ndarray:
    """Lines of a tile, of which those beyond the last factor or pair stay 0."""
    return np.zeros((count, TILE))


# What is called from outside.
ENTRIES = (evaluate, add_sums, add_cross, put_in, take_out, sum_system)
