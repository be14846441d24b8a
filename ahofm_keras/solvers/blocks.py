"""A model as blocks of coefficients: one linear block, and one block a feature of each order.

The predictor is linear in each block when the others are fixed, so a block has an exact update. The same
machine serves two solvers: without variances it is block coordinate descent on the penalised deviance, with them
coordinate ascent on the evidence bound (mean-field posterior over blocks).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ahofm_keras.families import Family
from ahofm_keras.moments import FactorMoments
from ahofm_keras.solvers.gram import CellBasis
from ahofm_keras.solvers.job import Rows
from ahofm_keras.solvers.priors import BlockPrior, Solution
from ahofm_keras.terms import Design, Feature, InteractionTerm, LinearTerm, OffsetTerm, SmoothTerm

CHUNK = 8192
# tau at the start, in units of the Gram matrix of a function with variance 1 on each row.
_START_SHRINKAGE = 1e-3


@dataclass
class Chunk:
    """Some rows of the data, and the state of the fit there.

    Args:
        y: response.
        case_weight: the user's.
        offset: what is added to the predictor, with the model's shift.
        columns: of the linear terms `(C, n)`.
        bases: of the features.
        target: working response, in the model's scale, without offset.
        weight: working weights.
        linear: fit of the linear block.
        moments: of each factor group.
    """

    y: np.ndarray
    case_weight: np.ndarray
    offset: np.ndarray
    columns: np.ndarray
    bases: list[CellBasis]
    target: np.ndarray
    weight: np.ndarray
    linear: np.ndarray
    moments: list[FactorMoments] = field(default_factory=list)

    def fit(self) -> np.ndarray:
        """Mean of the predictor in the model's scale, without offset."""
        return self.linear + sum(moments.total for moments in self.moments)


class Block:
    """A block's posterior, and what it gives to the bound."""

    def __init__(self, prior: BlockPrior) -> None:
        self.prior = prior
        size = len(prior.eigenvalues)
        self.mean = np.zeros(size)
        self.covariance = np.zeros((size, size))
        self.log_determinant = 0.0
        self.edf = 0.0

    def accept(self, solution: Solution, dispersion: float, gram: np.ndarray) -> None:
        self.mean = solution.mean
        self.covariance = dispersion * solution.inverse
        self.log_determinant = len(self.mean) * np.log(dispersion) - solution.log_determinant
        self.edf = float(np.einsum("ij,ji->", solution.inverse, gram))

    def penalty(self, random: bool) -> float:
        """E of the quadratic form of the prior."""
        squares = self.mean**2 + (self.covariance.diagonal() if random else 0.0)
        return float(self.prior.precisions() @ squares)


class LinearBlock(Block):
    """Intercept, linear terms and all smooths: one joint block.

    Args:
        design: of the model.
        rows: n.
        random: whether tau shrinks what the penalty leaves free.
    """

    def __init__(self, design: Design, rows: int, random: bool) -> None:
        self.intercept = design.intercept
        self.linear = sum(len(term.columns) for term in design.of_kind(LinearTerm))
        self.smooths: list[SmoothTerm] = design.of_kind(SmoothTerm)
        self.features = [design.features[term.feature] for term in self.smooths]
        flat = int(self.intercept) + self.linear
        eigenvalues, groups, self.slices, start = [np.zeros(flat)], [np.full(flat, -1)], [], flat
        for group, feature in enumerate(self.features):
            width = len(feature.eigenvalues)
            self.slices.append(slice(start, start + width))
            start += width
            eigenvalues.append(feature.eigenvalues)
            groups.append(np.full(width, group))
        parameters = [
            start_parameters(term.smoothing, feature, rows, random)
            for term, feature in zip(self.smooths, self.features, strict=True)
        ]
        super().__init__(make_prior(eigenvalues, groups, parameters, self.features, random))
        self.gram = np.zeros((start, start))

    def dense(self, chunk: Chunk) -> np.ndarray:
        """All columns on the rows of a chunk, `(q, n)`."""
        ones = np.ones((int(self.intercept), len(chunk.y)))
        smooths = [
            chunk.bases[term.feature].evaluate(feature.transform.T)
            for term, feature in zip(self.smooths, self.features, strict=True)
        ]
        return np.concatenate([ones, chunk.columns, *smooths])

    def sums(self, chunk: Chunk, weights: np.ndarray) -> np.ndarray:
        """sum_i weights_i x_i, `(q,)`."""
        parts = [np.full(int(self.intercept), weights.sum()), chunk.columns @ weights]
        for term, feature in zip(self.smooths, self.features, strict=True):
            parts.append(chunk.bases[term.feature].sums(weights[None])[0] @ feature.transform)
        return np.concatenate(parts)

    def evaluate(self, chunk: Chunk) -> np.ndarray:
        """Mean of the block's part of the predictor."""
        flat = int(self.intercept)
        fit = np.full(len(chunk.y), self.mean[:flat].sum())
        fit += self.mean[flat : flat + self.linear] @ chunk.columns
        for term, feature, own in zip(self.smooths, self.features, self.slices, strict=True):
            coefficients = feature.transform @ self.mean[own]
            fit += chunk.bases[term.feature].evaluate(coefficients[None])[0]
        return fit


class FactorBlock(Block):
    """All factors of one feature in one order."""

    def __init__(
        self, feature: Feature, position: int, smoothing: float, rank: int, rows: int, random: bool
    ) -> None:
        self.feature = feature
        self.position = position
        self.rank = rank
        width = len(feature.eigenvalues)
        parameters = [start_parameters(smoothing, feature, rows, random)] * rank
        eigenvalues = [feature.eigenvalues] * rank
        groups = [np.full(width, factor) for factor in range(rank)]
        super().__init__(make_prior(eigenvalues, groups, parameters, [feature] * rank, random))
        self._pairs = np.triu_indices(rank)
        self._unpack = np.zeros((rank, rank), int)
        self._unpack[self._pairs] = np.arange(len(self._pairs[0]))
        self._unpack = np.maximum(self._unpack, self._unpack.T)
        self.forms = np.zeros((len(self._pairs[0]), len(feature.transform), len(feature.transform)))

    @property
    def factors(self) -> np.ndarray:
        """Means `(F, r)`."""
        return self.mean.reshape(self.rank, -1)

    def accept(self, solution: Solution, dispersion: float, gram: np.ndarray) -> None:
        super().accept(solution, dispersion, gram)
        width, transform = len(self.feature.eigenvalues), self.feature.transform
        blocks = self.covariance.reshape(self.rank, width, self.rank, width).swapaxes(1, 2)
        forms = transform @ blocks[self._pairs] @ transform.T
        self.forms = (forms + forms.swapaxes(1, 2)) / 2

    def phi(self, basis: CellBasis, random: bool) -> tuple[np.ndarray, np.ndarray | None]:
        """Means `(F, n)` and covariances `(F, F, n)` of the factors at the rows."""
        means = basis.evaluate(self.factors @ self.feature.transform.T)
        return means, basis.quadratic(self.forms)[self._unpack] if random else None

    def system(self, basis: CellBasis, products: np.ndarray, linear: np.ndarray) -> tuple[Any, Any]:
        """Gram matrix `(pairs, M, M)` and right-hand side `(F, M)` of the rows of a chunk."""
        return basis.gram(products), basis.sums(linear)

    def to_coordinates(self, gram: np.ndarray, rhs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """From coefficients of the basis functions to the block's coordinates."""
        transform, width = self.feature.transform, len(self.feature.eigenvalues)
        small = transform.T @ gram @ transform
        blocks = np.empty((self.rank, self.rank, width, width))
        blocks[self._pairs] = small
        blocks[self._pairs[::-1]] = small.swapaxes(1, 2)
        size = self.rank * width
        return blocks.swapaxes(1, 2).reshape(size, size), (rhs @ transform).reshape(-1)


@dataclass
class FactorGroup:
    """One order of one interaction term."""

    term: InteractionTerm
    place: int
    order: int
    rank: int
    blocks: list[FactorBlock]


def start_parameters(smoothing: float, feature: Feature, rows: int, random: bool) -> tuple[float, float]:
    """Logarithms of lambda and tau, in units of the Gram matrix."""
    with np.errstate(divide="ignore"):
        shrinkage = np.log(rows * _START_SHRINKAGE) if random else -np.inf
        return float(np.log(rows * smoothing)), float(shrinkage)


def make_prior(
    eigenvalues: Sequence[np.ndarray],
    groups: Sequence[np.ndarray],
    parameters: Sequence[tuple[float, float]],
    features: Sequence[Feature],
    random: bool,
) -> BlockPrior:
    start = np.array(parameters, float).reshape(-1, 2)
    free = np.full(start.shape, random)
    for group, feature in enumerate(features):
        if np.ptp(feature.eigenvalues) == 0:  # the penalty is the identity, or there is none
            scale = feature.eigenvalues[0]
            with np.errstate(divide="ignore"):
                total = np.exp(start[group, 0]) * scale + np.exp(start[group, 1])
                start[group] = np.log([0.0, total]) if random else start[group]
            free[group, 0] = False
    free &= np.isfinite(start)
    prior = BlockPrior(np.concatenate(eigenvalues), np.concatenate(groups), start, free)
    flat = prior.precisions() <= 0
    return BlockPrior(prior.eigenvalues, np.where(flat, -1, prior.groups), start, free)


class BlockModel:
    """The model as blocks, on rows in memory.

    Args:
        design: of the model.
        family: of the response.
        rows: encoded training rows.
        shift, scale: between the model's scale and the link's.
        random: whether blocks have variances (the evidence bound) or not (the penalised deviance).
        chunk_rows: rows that are processed together.
    """

    def __init__(
        self,
        design: Design,
        family: Family,
        rows: Rows,
        shift: float,
        scale: float,
        *,
        random: bool = True,
        chunk_rows: int = CHUNK,
    ) -> None:
        self.design = design
        self.family = family
        self.scale = scale
        self.shift = shift
        self.random = random
        self.rows = len(rows)
        self.dispersion = 1.0
        self.linear = LinearBlock(design, len(rows), random)
        self.groups = [
            FactorGroup(
                term, place, order.order, order.rank,
                [
                    FactorBlock(
                        design.features[position], position, smoothing, order.rank, len(rows), random
                    )
                    for position, smoothing in zip(term.features, order.smoothing, strict=True)
                ],
            )
            for term in design.of_kind(InteractionTerm)
            for place, order in enumerate(term.orders)
        ]  # fmt: skip
        self.chunks = list(self._read(rows, chunk_rows))

    def _read(self, rows: Rows, chunk_rows: int) -> Iterator[Chunk]:
        """The encoded rows, chunk by chunk."""
        arrays = list(rows.encoded)
        places = arrays.pop(0) if self.design.features else np.zeros((len(rows), 0))
        columns = arrays.pop(0) if self.linear.linear else np.zeros((len(rows), 0))
        offset = arrays.pop(0) if self.design.of_kind(OffsetTerm) else np.zeros(len(rows))
        weight = np.ones(len(rows)) if rows.weight is None else np.asarray(rows.weight, float)
        for start in range(0, len(rows), chunk_rows):
            part = slice(start, start + chunk_rows)
            count = len(rows.y[part])
            chunk = Chunk(
                np.asarray(rows.y[part], float),
                weight[part],
                self.shift + np.asarray(offset[part], float),
                np.asarray(columns[part], float).T.copy(),
                [
                    CellBasis(feature.basis, np.asarray(places[part, position], float))
                    for position, feature in enumerate(self.design.features)
                ],
                np.zeros(count), weight[part], np.zeros(count),
            )  # fmt: skip
            chunk.moments = [FactorMoments(g.order, g.rank, count, self.random) for g in self.groups]
            yield chunk

    # Working response and weights

    def linearise(self, start: bool = False) -> None:
        """Working response and weights at the current mean; at the data for the start."""
        for chunk in self.chunks:
            if self.family.scaled:
                chunk.target = (chunk.y - chunk.offset) / self.scale
                continue
            if start:
                mean = self.family.rough_mean(chunk.y)
                eta = self.family.link_function(mean)
            else:
                eta = chunk.offset + self.scale * chunk.fit()
                mean = self.family.inverse_link(eta, np)
            slope = np.maximum(self.family.slope(mean), 1e-10)
            chunk.weight = chunk.case_weight * slope**2 / np.maximum(self.family.variance(mean), 1e-10)
            chunk.target = (eta - chunk.offset + (chunk.y - mean) / slope) / self.scale
        self._update_linear_gram()

    def _update_linear_gram(self) -> None:
        gram = np.zeros_like(self.linear.gram)
        for chunk in self.chunks:
            dense = self.linear.dense(chunk) * np.sqrt(chunk.weight)
            gram += dense @ dense.T
        self.linear.gram = gram

    # Updates of blocks

    def update_linear(self, adapt: int = 0) -> None:
        """Intercept, linear terms and smooths, jointly."""
        block = self.linear
        rhs = np.zeros(len(block.mean))
        for chunk in self.chunks:
            rest = chunk.target - (chunk.fit() - chunk.linear)
            rhs += block.sums(chunk, chunk.weight * rest)
        self._solve(block, block.gram, rhs, adapt)
        for chunk in self.chunks:
            chunk.linear = block.evaluate(chunk)

    def update_factors(self, index: int, feature: int, adapt: int = 0) -> None:
        """All factors of one feature in one order."""
        block = self.groups[index].blocks[feature]
        gram: Any = 0.0
        rhs: Any = 0.0
        for chunk in self.chunks:
            basis, moments = chunk.bases[block.position], chunk.moments[index]
            means, covariances = block.phi(basis, self.random)
            moments.remove(means, covariances)
            self._repair(chunk, index, feature, means, covariances)
            rest = chunk.target - chunk.fit()
            linear = chunk.weight * (rest * moments.slopes - moments.slope_covariance())
            own_gram, own_rhs = block.system(basis, chunk.weight * moments.slope_products(), linear)
            gram, rhs = gram + own_gram, rhs + own_rhs
        self._solve(block, *block.to_coordinates(gram, rhs), adapt)
        for chunk in self.chunks:
            chunk.moments[index].add(*block.phi(chunk.bases[block.position], self.random))

    def _repair(self, chunk: Chunk, index: int, feature: int, means: Any, covariances: Any) -> None:
        """Where taking the feature out lost digits, put the others together from the start."""
        moments, group = chunk.moments[index], self.groups[index]
        lossy = moments.lossy_rows(means, covariances)
        if not len(lossy):
            return
        fresh = FactorMoments(group.order, group.rank, len(lossy), self.random)
        for other, block in enumerate(group.blocks):
            if other != feature:
                fresh.add(*block.phi(chunk.bases[block.position].take(lossy), self.random))
        moments.replace(lossy, fresh)

    def _solve(self, block: Block, gram: np.ndarray, rhs: np.ndarray, adapt: int) -> None:
        if adapt:
            solution = block.prior.adapt(gram, rhs, self.dispersion, adapt)
        else:
            solution = block.prior.solve(gram, rhs, self.dispersion)
        block.accept(solution, self.dispersion, gram)

    def rebuild(self) -> None:
        """All moments from the blocks: after a start, and against rounding."""
        for chunk in self.chunks:
            chunk.linear = self.linear.evaluate(chunk)
            for index, group in enumerate(self.groups):
                fresh = FactorMoments(group.order, group.rank, len(chunk.y), self.random)
                for block in group.blocks:
                    fresh.add(*block.phi(chunk.bases[block.position], self.random))
                chunk.moments[index] = fresh

    def predict(self, rows: Rows) -> np.ndarray:
        """Predictor of other rows, on the scale of the link."""
        parts = []
        for chunk in self._read(rows, CHUNK):
            fit = self.linear.evaluate(chunk)
            for group, moments in zip(self.groups, chunk.moments, strict=True):
                moments.random = False
                for block in group.blocks:
                    moments.add(block.phi(chunk.bases[block.position], False)[0], None)
                fit = fit + moments.total
            parts.append(chunk.offset + self.scale * fit)
        return np.concatenate(parts)

    # What is maximised

    @property
    def blocks(self) -> list[Block]:
        return [self.linear, *(block for group in self.groups for block in group.blocks)]

    def expected_squares(self) -> float:
        """E of the weighted sum of squares of the working residuals."""
        total = 0.0
        for chunk in self.chunks:
            squares = (chunk.target - chunk.fit()) ** 2
            if self.random:
                squares += sum(moments.variance for moments in chunk.moments)
            total += float(chunk.weight @ squares)
        if self.random:
            total += float(np.einsum("ij,ji->", self.linear.covariance, self.linear.gram))
        return total

    def update_dispersion(self) -> None:
        """The prior carries the dispersion too, so its quadratic forms and sizes count."""
        if not self.family.dispersed:
            return
        penalty = sum(block.penalty(self.random) for block in self.blocks)
        count = self.rows + sum(block.prior.size for block in self.blocks)
        least = 1e-12
        self.dispersion = max((self.expected_squares() + penalty) / count, least)

    def bound(self) -> float:
        """Evidence lower bound of the working gaussian model, up to a constant."""
        total = -0.5 * self.rows * np.log(2 * np.pi * self.dispersion)
        total -= self.expected_squares() / (2 * self.dispersion)
        for block in self.blocks:
            total += 0.5 * (block.prior.log_determinant() + block.log_determinant + len(block.mean))
            total -= 0.5 * block.prior.size * np.log(self.dispersion)
            total -= block.penalty(True) / (2 * self.dispersion)
        return float(total)
