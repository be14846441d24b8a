"""Loops over rows that numba compiles, one pass a block over the rows of a chunk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ahofm_keras.bases import Basis, make_spline
from ahofm_keras.moments import lossy_limit
from ahofm_keras.solvers.gram import CellBasis
from ahofm_keras.solvers.kernels import compiled
from ahofm_keras.solvers.kernels.compiled import LANES, TILE
from ahofm_keras.solvers.kernels.interface import Factors, GroupMoments, Neighbour, Sums


class TiledBasis(CellBasis):
    """A basis on the rows of one chunk, filled up to whole tiles with rows that have no function."""

    def __init__(
        self, basis: Basis, places: np.ndarray, located: tuple[np.ndarray, np.ndarray] | None = None
    ) -> None:
        super().__init__(basis, places, located)
        cells, values = _pad(self.cells), _pad(self.values)
        # Rows of one cell in turn: what they need of the forms and of the sums stays near.
        order = np.argsort(cells.reshape(-1, TILE), axis=1, kind="stable").reshape(-1)
        self.padded = order, cells, values

    def evaluate(self, coefficients: np.ndarray) -> np.ndarray:
        out = np.empty((len(coefficients), len(self)))
        compiled.evaluate(self.cells, self.values, np.ascontiguousarray(coefficients), out)
        return out

    def sums(self, weights: np.ndarray) -> np.ndarray:
        out = np.zeros((len(weights), self.basis.size))
        compiled.add_sums(self.cells, self.values, np.ascontiguousarray(weights), out)
        return out

    def cross(self, other: CellBasis, weights: np.ndarray) -> np.ndarray:
        out = np.zeros((self.basis.size, other.basis.size))
        compiled.add_cross(
            self.cells, self.values, other.cells, other.values, np.ascontiguousarray(weights), out
        )
        return out


class TiledMoments(GroupMoments):
    """Moments of a group's features, with the rows in tiles: `(tiles, lines, TILE)`."""

    def __init__(self, order: int, rank: int, rows: int, random: bool) -> None:
        self._shape = order, rank, rows, random
        self._lines, count = _lay_out(order, rank, random)
        self._state = np.zeros((-(-rows // TILE), count, TILE))

    @property
    def total(self) -> np.ndarray:
        order, _, rows, _ = self._shape
        return self._state[:, self._lines[0, order]].reshape(-1)[:rows]

    @property
    def variance(self) -> np.ndarray:
        order, _, rows, random = self._shape
        if not random:
            return np.zeros(rows)
        return self._state[:, self._lines[order, order]].reshape(-1)[:rows]

    @property
    def numbers(self) -> int:
        return self._state.size

    def put_in(self, factors: Factors, basis: CellBasis) -> None:
        assert isinstance(basis, TiledBasis)
        compiled.put_in(
            *basis.padded, *self._tables(factors, basis.width), self._state, self._lines,
            self._shape[-1],
        )  # fmt: skip

    def take_out(
        self,
        feature: int,
        group: Sequence[Neighbour],
        bases: Sequence[CellBasis],
        rest: np.ndarray,
        weight: np.ndarray,
    ) -> Sums:
        order, rank, _, random = self._shape
        own = group[feature]
        basis, factors = bases[own.position], own.posterior
        assert isinstance(basis, TiledBasis)
        gram, rhs = _empty_system(basis, rank)
        lossy = np.zeros(len(basis.padded[0]), bool)
        lost = compiled.take_out(
            *basis.padded, *self._tables(factors, basis.width), self._state, self._lines, random,
            lossy_limit(order), _pad(rest), _pad(weight), lossy, gram, rhs,
        )  # fmt: skip
        system = _finished(gram, rhs, rank)
        if lost:
            rows = np.flatnonzero(lossy)
            fresh = self._without(feature, group, bases, rows)
            self._replace(rows, fresh)
            further = fresh._system(basis.take(rows), rest[rows], weight[rows])
            system = system[0] + further[0], system[1] + further[1]
        return system

    def _tables(self, factors: Factors, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients `(M, F)` and forms `(M, width, P)`, filled up; zeros where they are not used."""
        rank, size = factors.coefficients.shape
        forms = factors.forms if self._shape[-1] else None
        if forms is None:
            forms = np.zeros((size, width, rank * (rank + 1) // 2))
        return _widen(factors.coefficients.T), _widen(forms)

    def _without(
        self, feature: int, group: Sequence[Neighbour], bases: Sequence[CellBasis], rows: np.ndarray
    ) -> TiledMoments:
        """All features but one, on some rows."""
        order, rank, _, random = self._shape
        fresh = TiledMoments(order, rank, len(rows), random)
        for place, other in enumerate(group):
            if place != feature:
                fresh.put_in(other.posterior, bases[other.position].take(rows))
        return fresh

    def _replace(self, rows: np.ndarray, other: TiledMoments) -> None:
        """Take some rows from another state."""
        places = np.arange(len(rows))
        new = other._state[places // TILE, :, places % TILE]
        self._state[rows // TILE, :, rows % TILE] = new

    def _system(self, basis: CellBasis, rest: np.ndarray, weight: np.ndarray) -> Sums:
        """The system of a block whose feature is not in."""
        assert isinstance(basis, TiledBasis)
        gram, rhs = _empty_system(basis, self._shape[1])
        compiled.sum_system(
            *basis.padded, self._state, self._lines, self._shape[-1],
            _pad(rest), _pad(weight), gram, rhs,
        )  # fmt: skip
        return _finished(gram, rhs, self._shape[1])


def _lay_out(order: int, rank: int, random: bool) -> tuple[np.ndarray, int]:
    """Where the lines of each entry start, see `compiled.moments`, and their number."""
    lines = np.full((order + 1, order + 1), -1)
    count = 0
    for a in range(order + 1 if random else 1):
        for b in range(a, order + 1):
            lines[a, b] = count
            if b == order:
                count += rank if 0 < a < order else 1
            elif a:
                count += rank * (rank + 1) // 2 if a == b else rank * rank
            else:
                count += rank
    return lines, count


def _empty_system(basis: CellBasis, rank: int) -> Sums:
    """Sums of pairs `(M, width, P)` and of factors `(M, F)`, filled up."""
    size, pairs = basis.basis.size, rank * (rank + 1) // 2
    return np.zeros((size, basis.width, _fill(pairs))), np.zeros((size, _fill(rank)))


def _finished(gram: np.ndarray, rhs: np.ndarray, rank: int) -> Sums:
    """Pairs and factors first, without what they were filled up with."""
    return gram[:, :, : rank * (rank + 1) // 2].transpose(2, 0, 1), rhs[:, :rank].T


def _fill(count: int) -> int:
    """Up to whole vectors."""
    return -(-count // LANES) * LANES


def _widen(table: np.ndarray) -> np.ndarray:
    """Zeros after the last entries, up to whole vectors."""
    *others, count = table.shape
    wide = np.zeros((*others, _fill(count)))
    wide[..., :count] = table
    return wide


def _pad(values: np.ndarray) -> np.ndarray:
    """Rows of zeros up to whole tiles."""
    missing = -len(values) % TILE
    if not missing:
        return np.ascontiguousarray(values)
    return np.concatenate([values, np.zeros((missing, *values.shape[1:]), values.dtype)])


class NumbaKernels:
    """Needs the package numba, the extra `fast`."""

    # Loops outside Python's lock; with fewer rows handing work over takes longer than doing it.
    shared_rows = 10_000

    def read_basis(self, basis: Basis, places: np.ndarray) -> CellBasis:
        return TiledBasis(basis, places)

    def start_moments(self, order: int, rank: int, rows: int, random: bool) -> GroupMoments:
        return TiledMoments(order, rank, rows, random)

    def is_ready(self) -> bool:
        """Whether all loops that are called from outside are on disk."""
        return all(_is_stored(function) for function in compiled.ENTRIES)

    def prepare(self) -> None:
        """Call each of them once."""
        basis = TiledBasis(make_spline(np.linspace(0, 1, 9), 5), np.linspace(0, 2, 9))
        ones = np.ones((1, 9))
        basis.evaluate(np.ones((1, basis.basis.size)))
        basis.sums(ones)
        basis.cross(basis, ones[0])
        moments = TiledMoments(2, 1, 9, True)
        factors = Factors(np.ones((1, basis.basis.size)), None)
        moments.put_in(factors, basis)
        moments.take_out(0, [_Alone(factors)], [basis], ones[0], ones[0])
        moments._system(basis, ones[0], ones[0])


class _Alone(NamedTuple):
    """The only feature of a group."""

    posterior: Factors
    position: int = 0


def _is_stored(function: Any) -> bool:
    """Whether numba would find the function on disk: of this source, and of this version of numba.

    numba has no public way to ask; what cannot be asked counts as not stored.
    """
    try:
        return bool(function._cache._cache_file._load_index())
    except AttributeError:  # e.g. NUMBA_DISABLE_JIT
        return False
