"""Loops over rows in NumPy: whole arrays, one operation at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ahofm_keras.bases import Basis
from ahofm_keras.moments import FactorMoments, triangle
from ahofm_keras.solvers.gram import CellBasis
from ahofm_keras.solvers.kernels.interface import Factors, GroupMoments, Neighbour, Sums


class NumpyMoments(GroupMoments):
    """`FactorMoments` of a group's features."""

    def __init__(self, order: int, rank: int, rows: int, random: bool) -> None:
        self._moments = FactorMoments(order, rank, rows, random)
        self._pairs = _unpack(rank)

    @property
    def total(self) -> np.ndarray:
        return self._moments.total

    @property
    def variance(self) -> np.ndarray:
        return self._moments.variance

    @property
    def numbers(self) -> int:
        return self._moments.numbers

    def put_in(self, factors: Factors, basis: CellBasis) -> None:
        self._moments.add(*self._phi(factors, basis))

    def take_out(
        self,
        feature: int,
        group: Sequence[Neighbour],
        bases: Sequence[CellBasis],
        rest: np.ndarray,
        weight: np.ndarray,
    ) -> Sums:
        own, moments = group[feature], self._moments
        basis = bases[own.position]
        means, covariances = self._phi(own.posterior, basis)
        moments.remove(means, covariances)
        lossy = moments.lossy_rows(means, covariances)
        if len(lossy):
            moments.replace(lossy, self._without(feature, group, bases, lossy))
        linear = (rest - moments.total) * moments.slopes - moments.slope_covariance()
        return basis.gram(weight * moments.slope_products()), basis.sums(weight * linear)

    def _phi(self, factors: Factors, basis: CellBasis) -> tuple[np.ndarray, np.ndarray | None]:
        """Means `(F, n)` and covariances `(F, F, n)` of a feature's factors."""
        means = basis.evaluate(factors.coefficients)
        if not self._moments.random or factors.forms is None:
            return means, None
        return means, basis.quadratic(factors.forms.transpose(2, 0, 1))[self._pairs]

    def _without(
        self, feature: int, group: Sequence[Neighbour], bases: Sequence[CellBasis], rows: np.ndarray
    ) -> FactorMoments:
        """All features but one, on some rows."""
        own = self._moments
        fresh = FactorMoments(own.order, own.rank, len(rows), own.random)
        for place, other in enumerate(group):
            if place != feature:
                fresh.add(*self._phi(other.posterior, bases[other.position].take(rows)))
        return fresh


def _unpack(rank: int) -> np.ndarray:
    """Which pair each (f, g) is, `(F, F)`."""
    place = np.zeros((rank, rank), int)
    place[triangle(rank)] = np.arange(rank * (rank + 1) // 2)
    return np.maximum(place, place.T)


class NumpyKernels:
    """Works everywhere."""

    # Many short calls, which hold Python's lock in between.
    shared_rows = 20_000

    def read_basis(self, basis: Basis, places: np.ndarray) -> CellBasis:
        return CellBasis(basis, places)

    def start_moments(self, order: int, rank: int, rows: int, random: bool) -> GroupMoments:
        return NumpyMoments(order, rank, rows, random)

    def is_ready(self) -> bool:
        return True

    def prepare(self) -> None:
        pass
