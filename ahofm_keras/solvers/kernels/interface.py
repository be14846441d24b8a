"""What the engine asks of the loops over rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ahofm_keras.bases import Basis
from ahofm_keras.solvers.gram import CellBasis


class Factors(NamedTuple):
    """The posterior of a feature's factors, in coefficients of the basis functions.

    Args:
        coefficients: means `(F, M)`.
        forms: bands `(M, width, P)` of symmetric forms V, see `bands`: b' V b is the covariance of each
            pair of factors f <= g; None where factors have no variances.
    """

    coefficients: np.ndarray
    forms: np.ndarray | None


class Neighbour(Protocol):
    """A feature of a group: where its basis stands, and its factors."""

    @property
    def position(self) -> int: ...

    @property
    def posterior(self) -> Factors: ...


# Gram matrices of the pairs f <= g, in bands `(P, M, width)`, and sums of each factor `(F, M)`.
Sums = tuple[np.ndarray, np.ndarray]


class GroupMoments(ABC):
    """Moments of one factor group on the rows of one chunk, see `FactorMoments`."""

    @property
    @abstractmethod
    def total(self) -> np.ndarray:
        """sum_f E e_d, `(n,)`."""

    @property
    @abstractmethod
    def variance(self) -> np.ndarray:
        """Var(sum_f e_d), `(n,)`."""

    @property
    @abstractmethod
    def numbers(self) -> int:
        """How many numbers they are."""

    @abstractmethod
    def put_in(self, factors: Factors, basis: CellBasis) -> None:
        """Take a feature in."""

    @abstractmethod
    def take_out(
        self,
        feature: int,
        group: Sequence[Neighbour],
        bases: Sequence[CellBasis],
        rest: np.ndarray,
        weight: np.ndarray,
    ) -> Sums:
        """Take a feature out and sum the system of its block.

        Where taking it out lost digits, the others are put together from nothing.

        Args:
            feature: place in the group.
            group: all features, with the factors that are in.
            bases: of all features of the design, on the rows.
            rest: `(n,)` working response without what is not of this group.
            weight: `(n,)` working weights.
        """


class Kernels(Protocol):
    """A way to compute on rows.

    Args:
        shared_rows: from so many rows on several cores are faster than one.
    """

    shared_rows: int

    def read_basis(self, basis: Basis, places: np.ndarray) -> CellBasis:
        """A basis at places of its axis."""

    def start_moments(self, order: int, rank: int, rows: int, random: bool) -> GroupMoments:
        """Moments with no feature in."""

    def is_ready(self) -> bool:
        """Whether the first call is as fast as the next one."""

    def prepare(self) -> None:
        """Do what would otherwise be done at the first call."""
