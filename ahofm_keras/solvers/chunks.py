"""Some rows, and what follows there from the state that a task brings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ahofm_keras.bases import Basis
from ahofm_keras.families import Family
from ahofm_keras.moments import triangle
from ahofm_keras.solvers.blocks import FactorBlock
from ahofm_keras.solvers.gram import CellBasis, DenseBasis
from ahofm_keras.solvers.groups import FactorGroup, GroupKey
from ahofm_keras.solvers.job import Rows
from ahofm_keras.solvers.kernels import GroupMoments, Kernels, Sums
from ahofm_keras.solvers.settings import Settings
from ahofm_keras.solvers.state import Rough, State, Working
from ahofm_keras.terms import Design

# Working responses that a chunk remembers: those of the current state, and of the one to come back to.
_REMEMBERED = 2


@dataclass(frozen=True)
class Response:
    """What rows need to know of the response as a whole.

    Args:
        family: of the response.
        shift, scale: between the model's scale and the link's.
        average: of the response.
        far: see `Settings`.
    """

    family: Family
    shift: float
    scale: float
    average: float
    far: float

    @cached_property
    def dispersion_unit(self) -> float:
        """What dispersions and deviances inside the model are multiples of."""
        return self.family.dispersion_unit(self.shift, self.scale)


@dataclass
class _GroupOnRows:
    """Moments of a factor group, and the blocks that are in them; None where a feature was taken out.

    Args:
        moments: None where they were let go and only what they sum to is left.
        blocks: of the features.
        sums: mean and variance of the sum of the group's products, where they were let go.
    """

    moments: GroupMoments | None
    blocks: list[FactorBlock | None]
    sums: tuple[np.ndarray, np.ndarray] | None = None

    def may_become(self, group: FactorGroup) -> bool:
        """Whether nothing has to be taken out to reach the group."""
        return self.moments is not None and self._agrees(group, None)

    def is_of(self, group: FactorGroup) -> bool:
        """Whether it is what it would become, and sums are all that is left of it."""
        return self.sums is not None and self._agrees(group)

    def _agrees(self, group: FactorGroup, *others: None) -> bool:
        return len(self.blocks) == len(group.blocks) and all(
            own in others or own is block for own, block in zip(self.blocks, group.blocks, strict=True)
        )

    @property
    def numbers(self) -> int:
        """Size of the moments."""
        return 0 if self.moments is None else self.moments.numbers

    def let_go(self) -> None:
        """Keep sums alone; of a group without one of its features not even these."""
        if self.moments is not None and None not in self.blocks:
            self.sums = self.moments.total.copy(), self.moments.variance.copy()
        self.moments = None


@dataclass
class Chunk:
    """Some rows of the data.

    What follows from a state is kept, with the blocks that it follows from: blocks do not change, so
    the same block says that nothing has to be computed.

    Args:
        index: of the chunk.
        y: response.
        case_weight: the user's.
        offset: what is added to the predictor, with the model's shift.
        columns: of the linear terms `(C, n)`.
        bases: of the features, each a `CellBasis` or a `DenseBasis`.
        response: as a whole.
        kernels: loops over rows.
        most_numbers: of moments that are kept; those of other groups are computed when they are needed.
    """

    index: int
    y: np.ndarray
    case_weight: np.ndarray
    offset: np.ndarray
    columns: np.ndarray
    bases: list[Any]
    response: Response
    kernels: Kernels
    most_numbers: float
    _linear: tuple[np.ndarray, np.ndarray] | None = None
    _groups: dict[GroupKey, _GroupOnRows] = field(default_factory=dict)
    _surfaces: dict[GroupKey, tuple[FactorGroup, np.ndarray]] = field(default_factory=dict)
    _working: list[tuple[Working, np.ndarray, np.ndarray]] = field(default_factory=list)

    # The predictor ----------------------------------------------------------------------------------

    def linear_fit(self, state: State | Working) -> np.ndarray:
        """Mean of the linear block."""
        mean = state.linear.mean
        if self._linear is None or self._linear[0] is not mean:
            self._linear = mean, state.linear.columns.evaluate(self, mean)
        return self._linear[1]

    def moments(self, group: FactorGroup) -> GroupMoments:
        """Moments of a group, all features in."""
        held = self._groups.pop(group.key, None)
        if held is None or not held.may_become(group):
            variational = all(block.variational for block in group.blocks)
            moments = self.kernels.start_moments(group.order, group.rank, len(self.y), variational)
            held = _GroupOnRows(moments, [None] * len(group.blocks))
        self._groups[group.key] = held  # the last: those that were not used for the longest come first
        self._make_room()
        assert held.moments is not None
        for feature, block in enumerate(group.blocks):
            if held.blocks[feature] is None:
                if not block.is_off:
                    held.moments.put_in(block.posterior, self.bases[block.position])
                held.blocks[feature] = block
        return held.moments

    def _make_room(self) -> None:
        """Let go of moments, but for those of the last group, until the rest are few enough."""
        total = sum(held.numbers for held in self._groups.values())
        for held in list(self._groups.values())[:-1]:
            if total <= self.most_numbers:
                break
            total -= held.numbers
            held.let_go()

    def sums(self, group: FactorGroup) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the sum of all products of a group."""
        held = self._groups.get(group.key)
        if held is not None and held.is_of(group):
            assert held.sums is not None
            return held.sums
        moments = self.moments(group)
        return moments.total, moments.variance

    def total(self, group: FactorGroup) -> np.ndarray:
        """Mean of the sum of all products of a group."""
        if not group.is_surface:
            return self.sums(group)[0]
        held = self._surfaces.get(group.key)
        if held is None or held[0] is not group:
            held = self._surfaces[group.key] = group, self._products(group)
        return held[1]

    def _products(self, surface: FactorGroup) -> np.ndarray:
        """Mean of the sum of the products of a surface."""
        functions = (self._functions(block) for block in (surface.given, surface.solved))
        return np.asarray(np.einsum("fn,fn->n", *functions))

    def _functions(self, block: FactorBlock) -> np.ndarray:
        """Means of factors `(F, n)`."""
        return self.bases[block.position].evaluate(block.factors @ block.transform.T)

    def fit(self, state: State | Working) -> np.ndarray:
        """Mean of the predictor in the model's scale, without offset."""
        for held in (self._groups, self._surfaces):
            for key in held.keys() - {group.key for group in state.groups}:
                del held[key]
        total = self.linear_fit(state).copy()
        for group in state.groups:
            total += self.total(group)
        return total

    def evaluate(self, state: State | Working) -> np.ndarray:
        """The same from nothing, and nothing is kept."""
        total = state.linear.columns.evaluate(self, state.linear.mean)
        for group in state.groups:
            if group.is_surface:
                total = total + self._products(group)
                continue
            moments = self.kernels.start_moments(group.order, group.rank, len(self.y), False)
            for block in group.blocks:
                if not block.is_off:
                    moments.put_in(block.posterior, self.bases[block.position])
            total = total + moments.total
        return total

    def mean(self, fit: np.ndarray) -> np.ndarray:
        """Mean response where the predictor is known."""
        return np.asarray(self.response.family.inverse_link(self.predictor(fit), np))

    def take_out(self, state: State, index: int, feature: int) -> Sums:
        """Leave a feature of a group out; the sums of its block."""
        group = state.groups[index]
        target, weight = self.working(state)
        fit, moments = self.fit(state), self.moments(group)
        rest = target - (fit - moments.total)
        sums = moments.take_out(feature, group.blocks, self.bases, rest, weight)
        self._groups[group.key].blocks[feature] = None
        return sums

    def surface_gram(self, state: State, index: int) -> np.ndarray:
        """Gram matrices of the pairs of factors beside the given ones of a surface, in bands."""
        group, (_, weight) = state.groups[index], self.working(state)
        given, solved = self._functions(group.given), group.solved
        first, second = triangle(group.rank)
        products = given[first] * given[second]
        products *= weight
        return self.bases[solved.position].gram(products)

    def surface_sums(self, state: State, index: int) -> np.ndarray:
        """Sums of the factors beside the given ones of a surface, `(F, M)`."""
        group, (target, weight) = state.groups[index], self.working(state)
        rest = target - (self.fit(state) - self.total(group))
        return self.bases[group.solved.position].sums(self._functions(group.given) * (weight * rest))

    # Working response and weights -------------------------------------------------------------------

    def working(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """Working response, in the model's scale, without offset; working weights."""
        at = state.working
        assert at is not None, "linearise first"
        for known, target, weight in self._working:
            if known is at:
                return target, weight
        target, weight = self._linearise(self._predictors(at))
        self._working = [(at, target, weight), *self._working[: _REMEMBERED - 1]]
        return target, weight

    def predictor(self, fit: np.ndarray) -> np.ndarray:
        """The predictor in units of the link."""
        return self.offset + self.response.scale * fit

    def _predictors(self, at: Working) -> np.ndarray:
        """Predictor of each row at which it is linearised: a rough one where its own has no mean."""
        known = all(
            group.is_surface
            or (
                (held := self._groups.get(group.key)) is not None
                and (held.may_become(group) or held.is_of(group))
            )
            for group in at.groups
        )
        response, family = self.response, self.response.family
        fit = self.fit(at) if known else self.evaluate(at)
        eta = self.predictor(fit)
        far = (at.rough is Rough.ALL) | ~family.is_valid(eta)
        if at.rough is Rough.FAR:
            step = response.far * response.scale * np.abs(family.slope(eta))
            far |= np.abs(family.residual(self.y, self.mean(fit))) > step
        if not np.any(far):
            return eta
        return np.where(far, family.link_function(family.rough_mean(self.y, response.average)), eta)

    def _linearise(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        response, family = self.response, self.response.family
        ((weight, target),) = family.working(self.y, family.named(eta)).values()
        weight = self.case_weight * weight * (response.scale**2 / response.dispersion_unit)
        return (target - self.offset) / response.scale, weight


def count_chunks(rows: int, shared_rows: int, chunk_rows: int) -> int:
    """So many that every core has work where there is enough, and the same number of chunks."""
    cores = count_cores() if rows >= shared_rows else 1
    return -(-rows // (chunk_rows * cores)) * cores


def count_cores() -> int:
    """Cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def read_chunks(
    design: Design, rows: Rows, response: Response, kernels: Kernels, settings: Settings
) -> Iterator[Chunk]:
    """Encoded rows, chunk by chunk."""
    places, columns, offset = rows.encoded.positions, rows.encoded.columns, rows.encoded.offset
    weight = np.ones(len(rows)) if rows.weight is None else np.asarray(rows.weight, float)
    count = count_chunks(len(rows), kernels.shared_rows, settings.chunk_rows)
    bounds = np.linspace(0, len(rows), count + 1).astype(int)
    for index, (start, stop) in enumerate(pairwise(bounds)):
        part = slice(start, stop)
        bases = [
            _read_basis(
                feature.basis, np.asarray(places[part, own], float), kernels, len(rows), settings
            )
            for own, feature in zip(design.place_columns, design.features, strict=True)
        ]
        yield Chunk(
            index,
            np.asarray(rows.y[part], float),
            weight[part],
            response.shift + np.asarray(offset[part], float),
            np.asarray(columns[part], float).T.copy(),
            bases,
            response,
            kernels,
            settings.moment_numbers / count,
        )


def _read_basis(
    basis: Basis, places: np.ndarray, kernels: Kernels, rows: int, settings: Settings
) -> CellBasis | DenseBasis:
    """A basis at places `(n, d)` of a chunk.

    Args:
        basis: the basis.
        places: of the rows of the chunk.
        kernels: loops over rows.
        rows: of all chunks.
        settings: how much may be kept.
    """
    if basis.is_dense:
        return DenseBasis(basis, places, rows * basis.size <= settings.kept_numbers)
    return kernels.read_basis(basis, places[:, 0])
