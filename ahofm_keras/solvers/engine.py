"""The model as blocks on rows in memory: exact updates, and what they maximise.

One machine serves two solvers: without variances its updates are block coordinate descent on the
penalised deviance, with them coordinate ascent on the evidence bound (a mean-field posterior over
blocks).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ahofm_keras.families import Family
from ahofm_keras.solvers.blocks import Block, FactorGroup, LinearBlock, make_groups
from ahofm_keras.solvers.job import Rows
from ahofm_keras.solvers.kernels import System, get_kernels
from ahofm_keras.solvers.reviving import choose_anew, revive_groups
from ahofm_keras.solvers.rows import CHUNK_ROWS, Chunk, count_cores, read_chunks
from ahofm_keras.terms import Design

# A mean further from the response, on the scale of the predictor, is not one to linearise at.
_FAR = 10.0


class State(NamedTuple):
    """All that a fit changes, apart from what follows from it on the rows."""

    dispersion: float
    linear: LinearBlock
    groups: list[FactorGroup]

    @property
    def blocks(self) -> list[Block]:
        return [self.linear, *(block for group in self.groups for block in group.blocks)]

    def copy(self) -> State:
        """A copy that can be updated."""
        return State(self.dispersion, self.linear.copy(), [group.copy() for group in self.groups])


class Engine:
    """Block updates of one model on one set of rows.

    Args:
        design: of the model.
        family: of the response.
        rows: encoded training rows.
        shift, scale: between the model's scale and the link's.
        random: whether blocks have variances.
        starts: fits that are to come, the more of which the more loading faster loops pays.
        chunk_rows: rows that are processed together.
        weight_unit: weights of rows are in units of this; so are dispersion, lambda and tau.

    Attributes:
        total_weight: n of all formulas: a row of weight 2 counts as two where the dispersion is known;
            where it is estimated weights are in units of their mean.
        conceded: what the last sweep gave up of the bound, on purpose, for a simpler model.
        weighted_rows: number of rows with a weight, from which a dispersion is estimated.
    """

    def __init__(
        self,
        design: Design,
        family: Family,
        rows: Rows,
        shift: float,
        scale: float,
        *,
        random: bool,
        starts: int = 1,
        chunk_rows: int = CHUNK_ROWS,
        weight_unit: float = 1.0,
    ) -> None:
        self.design = design
        self.family = family
        self.shift = shift
        self.scale = scale
        self.dispersion_unit = family.dispersion_unit(shift, scale)
        self.random = random
        self.rows = len(rows)
        self.weight_unit = weight_unit
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight
        self.total_weight = float(np.sum(weight))
        self.weighted_rows = int(np.count_nonzero(weight))
        self.average = float(np.mean(rows.y))
        self.dispersion = 1.0
        self.conceded = 0.0
        self.linear = LinearBlock(design, self.total_weight, random)
        self.groups = make_groups(design, self.total_weight, random)
        self.linear_gram: Any = None
        self.average_bound: float | None = None
        self.averaged = 1
        blocks = sum(len(group.blocks) for group in self.groups)
        self._kernels = get_kernels(starts * len(rows) * blocks)
        self.chunks = list(read_chunks(design, rows, shift, self._kernels, chunk_rows))
        self.rebuild()

    @property
    def blocks(self) -> list[Block]:
        return State(self.dispersion, self.linear, self.groups).blocks

    # The state as a whole -----------------------------------------------------------------------

    def state(self) -> State:
        """A copy to come back to."""
        return State(self.dispersion, self.linear, self.groups).copy()

    def restore(self, state: State) -> None:
        """Come back to a state."""
        self.dispersion, self.linear, self.groups = state.copy()
        self.rebuild()

    def recall(self, state: State) -> None:
        """Come back to a state to read it: what follows from it on the rows is not computed."""
        self.dispersion, self.linear, self.groups = state

    def adopt(self, average: State, bounds: Sequence[float]) -> None:
        """Predict from an average of fits.

        Args:
            average: has more factors than a fit, so that its moments are not kept: no update follows.
            bounds: of the fits, whose mean is shown; that of an average is no bound.
        """
        self.dispersion, self.linear, self.groups = average
        self.average_bound, self.averaged = float(np.mean(bounds)), len(bounds)
        self.each(lambda chunk: self._evaluate(chunk, random=False))

    def reset(self) -> None:
        """Come back to where a fit starts."""
        self.dispersion = 1.0
        self.linear = LinearBlock(self.design, self.total_weight, self.random)
        self.groups = make_groups(self.design, self.total_weight, self.random)
        self.rebuild()

    def blend(self, before: State) -> None:
        """Go half the way back to a state with the same groups."""
        for own, old in zip(self.blocks, before.blocks, strict=True):
            own.go_half_way(old)
        self.rebuild()
        self.update_dispersion()

    def rebuild(self) -> None:
        """The fit on all rows, from the blocks."""
        self.each(lambda chunk: self._evaluate(chunk, self.random))

    def each(self, work: Callable[[Chunk], Any]) -> list[Any]:
        """Some work on every chunk, several at a time: NumPy computes outside Python's lock."""
        if len(self.chunks) == 1:
            return [work(self.chunks[0])]
        return list(_pool().map(work, self.chunks))

    def _total(self, work: Callable[[Chunk], np.ndarray]) -> np.ndarray:
        """The sum of what some work gives on every chunk, which is let go once it is added."""
        several = len(self.chunks) > 1
        parts = iter(_pool().map(work, self.chunks) if several else map(work, self.chunks))
        total = next(parts)
        for part in parts:
            total += part
        return total

    def _evaluate(self, chunk: Chunk, random: bool) -> None:
        chunk.linear = self.linear.evaluate(chunk)
        chunk.moments = []
        for group in self.groups:
            moments = self._kernels.start_moments(group.order, group.rank, len(chunk.y), random)
            for block in group.blocks:
                moments.put_in(block.posterior, chunk.bases[block.position])
            chunk.moments.append(moments)

    def predict(self, rows: Rows) -> np.ndarray:
        """Mean response of other rows."""
        parts = []
        for chunk in read_chunks(self.design, rows, self.shift, self._kernels):
            self._evaluate(chunk, random=False)
            parts.append(self.mean(chunk))
        return np.concatenate(parts)

    def on_rows(self, read: Callable[[Chunk], np.ndarray]) -> np.ndarray:
        """Something of every chunk, for all training rows."""
        return np.concatenate([read(chunk) for chunk in self.chunks])

    def mean(self, chunk: Chunk) -> np.ndarray:
        """Mean response of the rows of a chunk."""
        return self.family.inverse_link(chunk.offset + self.scale * chunk.fit(), np)

    # Working response and weights ---------------------------------------------------------------

    def linearise(self, start: bool = False, cautious: bool = False) -> None:
        """Working response and weights at the current mean.

        Args:
            start: at rough means instead, to start from.
            cautious: at rough means in the rows that the current mean is far from. A level of which all
                responses in a sample were 0 has a mean of almost 0: seen from there, a response of 1 is
                at infinity.
        """
        if self.family.is_linear and self.linear_gram is not None:
            return  # the response is its own working response, and weights do not change
        self.each(lambda chunk: self._linearise(chunk, self._predictors(chunk, start, cautious)))
        self.linear_gram = self._total(self.linear.gram)

    def _predictors(self, chunk: Chunk, start: bool, cautious: bool) -> np.ndarray:
        """Predictor of each row at which it is linearised: a rough one where its own has no mean."""
        eta = chunk.offset + self.scale * chunk.fit()
        far = start | ~self.family.is_valid(eta)
        if cautious:
            step = _FAR * self.scale * np.abs(self.family.slope(eta))
            far |= np.abs(chunk.y - self.mean(chunk)) > step
        if not np.any(far):
            return eta
        return np.where(
            far, self.family.link_function(self.family.rough_mean(chunk.y, self.average)), eta
        )

    def _linearise(self, chunk: Chunk, eta: np.ndarray) -> None:
        ((weight, response),) = self.family.working(chunk.y, self.family.named(eta)).values()
        chunk.weight = chunk.case_weight * weight * (self.scale**2 / self.dispersion_unit)
        chunk.target = (response - chunk.offset) / self.scale

    # Updates of blocks --------------------------------------------------------------------------

    def sweep(self, adapt: int = 0, revive: bool = False, cost: float = 0.0) -> None:
        """All blocks once.

        Args:
            adapt: Newton steps on the smoothing of each block.
            revive: whether smooths and tensor products that were switched off may come back, straight
                ones bend.
            cost: a factor of a feature that the evidence gains less from is switched off.
        """
        self.conceded = 0.0
        for index, group in enumerate(self.groups):
            for feature in range(len(group.blocks)):
                self.update_factors(index, feature, adapt, cost)
        self.update_linear(adapt, revive)
        self.update_dispersion()

    def update_linear(self, adapt: int = 0, revive: bool = False, anew: bool = False) -> None:
        """Intercept, linear terms, smooths and tensor products, jointly.

        Args:
            adapt: Newton steps on the smoothing.
            revive: whether the smoothing of each of them may be another, with the others as they are.
            anew: whether the smoothing of all of them may be another.
        """
        block = self.linear

        def collect(chunk: Chunk) -> np.ndarray:
            rest = chunk.target - (chunk.fit() - chunk.linear)
            return block.sums(chunk, chunk.weight * rest)

        def evaluate(chunk: Chunk) -> None:
            chunk.linear = block.evaluate(chunk)

        rhs = sum(self.each(collect))
        block.prior.seen = self.linear_gram.diagonal()
        if anew:
            choose_anew(block.prior, self.linear_gram, rhs, self.dispersion)
        if revive:
            revive_groups(block.prior, self.linear_gram, rhs, self.dispersion)
        self._solve(block, self.linear_gram, rhs, adapt)
        self.each(evaluate)

    def update_factors(self, index: int, feature: int, adapt: int = 0, cost: float = 0.0) -> None:
        """All factors of one feature in one order.

        Without the feature, e_d = slope phi + rest. The expected square of the residual is quadratic in
        the block: T_(d-1,d-1) before b b', and r E slope - T_(d-1,d) before b, where T_(d-1,d) is E
        slope E rest + their covariance.
        """
        gram, rhs = self._take_out(index, feature)
        self._solve(self.groups[index].blocks[feature], gram, rhs, adapt, cost)
        self._put_in(index, feature)

    def curvature(self, index: int, feature: int) -> np.ndarray:
        """The Gram matrix of all factors of one feature in one order, the others as they are."""
        gram, _ = self._take_out(index, feature)
        self._put_in(index, feature)
        return gram

    def _take_out(self, index: int, feature: int) -> System:
        """Leave a feature out of the fit; the system of its block, in the block's coordinates."""
        blocks = self.groups[index].blocks

        def take_out(chunk: Chunk) -> System:
            own = chunk.moments[index]
            rest = chunk.target - (chunk.fit() - own.total)
            return own.take_out(feature, blocks, chunk.bases, rest, chunk.weight)

        sums = self.each(take_out)
        gram, rhs = sum(gram for gram, _ in sums), sum(rhs for _, rhs in sums)
        return blocks[feature].to_coordinates(gram, rhs)

    def _put_in(self, index: int, feature: int) -> None:
        """Take a feature into the fit again."""
        block = self.groups[index].blocks[feature]

        def put_in(chunk: Chunk) -> None:
            chunk.moments[index].put_in(block.posterior, chunk.bases[block.position])

        self.each(put_in)

    def _solve(
        self, block: Block, gram: np.ndarray, rhs: np.ndarray, adapt: int, cost: float = 0.0
    ) -> None:
        if adapt:
            solution = block.prior.adapt(gram, rhs, self.dispersion, adapt)
        else:
            solution = block.prior.solve(gram, rhs, self.dispersion)
        if cost:
            smaller = block.prior.switch_off(solution, gram, rhs, self.dispersion, cost)
            self.conceded += max(solution.evidence - smaller.evidence, 0.0)
            solution = smaller
        block.accept(solution, self.dispersion, gram)

    def update_dispersion(self) -> None:
        """The prior carries the dispersion too, so its quadratic forms and its size count.

        Residuals are those from the current mean. From the working response of a mean before, which the
        last update has just been fitted to, they would be too small as long as the mean moves.
        """
        if self.random and not self.family.dispersion_known:
            if not self.family.is_linear:
                self.each(lambda chunk: self._linearise(chunk, self._predictors(chunk, False, False)))
            squares = self.expected_squares() + sum(block.penalty(True) for block in self.blocks)
            count = self.weighted_rows + sum(block.prior.size for block in self.blocks)
            self.dispersion = self.family.estimate_dispersion(squares, count)

    # What is maximised --------------------------------------------------------------------------

    def expected_squares(self) -> float:
        """E of the weighted sum of squares of the working residuals."""
        total = 0.0
        for chunk in self.chunks:
            squares = (chunk.target - chunk.fit()) ** 2
            for moments in chunk.moments:
                squares = squares + moments.variance
            total += float(chunk.weight @ squares)
        if self.random:
            total += float(np.vdot(self.linear.covariance, self.linear_gram))
        return total

    def deviance(self) -> float:
        """Sum of the unit deviances at the mean, in the response's units; infinite without a mean."""
        valid = all(self.family.is_valid(c.offset + self.scale * c.fit()).all() for c in self.chunks)
        parts = (self.family.unit_deviance(c.y, self.mean(c), np) @ c.case_weight for c in self.chunks)
        return float(sum(parts)) if valid else float("inf")

    def objective(self) -> float:
        """Half the deviance plus half the penalty, over n: the loss that Keras sees."""
        penalty = sum(block.penalty(False) for block in self.blocks)
        return (self.deviance() / self.dispersion_unit + penalty) / (2 * self.total_weight)

    def bound(self) -> float:
        """Evidence lower bound; of the working gaussian model where the family is not gaussian.

        Less the price of the tensor products that are on, and of the freedom of smooths. For other
        families the log-likelihood at the mean stands for that of the working response.
        """
        if self.family.is_linear:
            total = -self.expected_squares() / self.dispersion
        else:
            at_mean = sum(float(c.weight @ (c.target - c.fit()) ** 2) for c in self.chunks)
            total = -(self.expected_squares() - at_mean + self.deviance()) / self.dispersion
        total -= self.weighted_rows * np.log(2 * np.pi * self.dispersion)
        for block in self.blocks:
            total += block.prior.log_determinant() + block.log_determinant + len(block.mean)
            total -= block.prior.size * np.log(self.dispersion)
            total -= block.penalty(True) / self.dispersion + 2 * block.price
        return float(total) / 2

    def edf(self) -> float:
        """Effective degrees of freedom of all blocks."""
        return float(sum(block.edf.sum() for block in self.blocks))

    def active(self) -> int:
        """Number of factors of single features that are not switched off."""
        return sum(block.active() for group in self.groups for block in group.blocks)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count_cores(), "ahofm_keras")
