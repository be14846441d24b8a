"""The model as blocks on rows: exact updates, and what they maximise.

One machine serves two solvers: without variances its updates are block coordinate descent on the
penalised deviance, with them coordinate ascent on the evidence bound (a mean-field posterior over
blocks).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ahofm_keras.families import Family
from ahofm_keras.solvers import tasks
from ahofm_keras.solvers.blocks import Block, FactorBlock, make_linear_block
from ahofm_keras.solvers.chunks import Response
from ahofm_keras.solvers.groups import (
    FactorGroup,
    count_factor_blocks,
    make_group,
    make_groups,
    make_surface,
)
from ahofm_keras.solvers.job import Rows
from ahofm_keras.solvers.kernels import get_kernels
from ahofm_keras.solvers.precision import Precision
from ahofm_keras.solvers.priors import System, switch_off
from ahofm_keras.solvers.settings import Settings, current_settings
from ahofm_keras.solvers.spreads import SolvedSpread
from ahofm_keras.solvers.state import Rough, State, Working
from ahofm_keras.solvers.store import InMemoryRows, RowStore, Task
from ahofm_keras.terms import Design, InteractionOrder


class Engine:
    """Block updates of one model on one set of rows. It does not change: updates give new states.

    Args:
        design: of the model.
        family: of the response.
        rows: encoded training rows.
        shift, scale: between the model's scale and the link's.
        variational: whether blocks have variances.
        starts: fits that are to come, the more of which the more loading faster loops pays.
        weight_unit: weights of rows are in units of this; so are dispersion, lambda and tau.
        settings: constants of the solvers.

    Attributes:
        store: the rows.
        total_weight: n of all formulas: a row of weight 2 counts as two where the dispersion is known;
            where it is estimated weights are in units of their mean.
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
        variational: bool,
        starts: int = 1,
        weight_unit: float = 1.0,
        settings: Settings | None = None,
    ) -> None:
        self.design = design
        self.settings = settings or current_settings()
        self.variational = variational
        self.weight_unit = weight_unit
        average = family.average(rows.y)
        self.response = Response(family, shift, scale, average, self.settings.far)
        self.kernels = get_kernels(starts * len(rows) * count_factor_blocks(design))
        self.store: RowStore = self.store_rows(rows)
        self.total_weight = self.store.total_weight
        self.weighted_rows = self.store.weighted_rows

    @property
    def family(self) -> Family:
        return self.response.family

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.store.rows

    def store_rows(self, rows: Rows) -> InMemoryRows:
        """Other rows, to predict them."""
        return InMemoryRows(self.design, rows, self.response, self.kernels, self.settings)

    def start(self, groups: int | None = None) -> State:
        """Where a fit starts, not linearised yet; with so many groups of each order, by default all."""
        given = self.design, self.total_weight, self.variational, self.settings
        return State(1.0, make_linear_block(*given), make_groups(*given, most=groups))

    def make_surface(self, order: InteractionOrder, number: int, pair: tuple[int, int]) -> FactorGroup:
        """A surface of a pair of features before a fit, see `groups.make_surface`."""
        return make_surface(order, number, pair, self.total_weight, self.settings)

    def make_group(
        self, order: InteractionOrder, number: int = 0, rank: int | None = None
    ) -> FactorGroup:
        """A group of an order before a fit."""
        given = self.total_weight, self.variational, self.settings
        return make_group(order, number, *given, rank=rank)

    # Working response and weights ---------------------------------------------------------------

    def linearise(self, state: State, rough: Rough = Rough.NONE) -> State:
        """Working response and weights at the current mean."""
        if self.family.is_linear and state.working is not None:
            return state  # the response is its own working response, and weights do not change
        state = replace(state, working=Working(state.linear, state.groups, rough))
        sums = self.store.reduce(tasks.linear_gram, state)
        return replace(state, linear_gram=state.linear.columns.to_coordinates(sums))

    # Updates of blocks --------------------------------------------------------------------------

    def sweep(
        self,
        state: State,
        newton_steps: int = 0,
        prune_linear: bool = False,
        prune: bool = False,
    ) -> State:
        """All blocks once.

        Args:
            state: where it begins.
            newton_steps: on the smoothing of each block.
            prune_linear: whether tensor products that are not worth their price are switched off.
            prune: whether factors of features that the evidence gains less from than their price are
                switched off.
        """
        state = state.keeping(conceded=0.0, stalled=0)
        for index, group in enumerate(state.groups):
            own = prune_linear if group.is_surface else prune
            state = self.sweep_group(state, index, newton_steps, own)
        return self.update_dispersion(self.update_linear(state, newton_steps, prune_linear))

    def sweep_group(self, state: State, index: int, newton_steps: int = 0, prune: bool = False) -> State:
        """All blocks of one group once, but those that are switched off for good."""
        if state.groups[index].is_surface:
            return self.update_surface(state, index, newton_steps, prune)
        for feature, block in enumerate(state.groups[index].blocks):
            if not block.is_off:
                state = self.update_factors(state, index, feature, newton_steps, prune)
        return state

    def update_surface(
        self, state: State, index: int, newton_steps: int = 0, prune: bool = False
    ) -> State:
        """The factors of a surface beside the given ones: as those of a tensor product."""
        group = state.groups[index]
        if group.solved.is_off:
            return state
        block, rhs = group.solved.prepared(), self.store.reduce(tasks.surface_sums, state, index)
        bands, gram = self._surface_gram(state, index, block)
        block = replace(block, seen=(state.working, bands))
        while True:
            system = System(gram, (rhs @ block.transform).reshape(-1), state.dispersion)
            prior, known = block.prior.seeing(gram), _known_precision(block, gram)
            if known is not None:
                prior = block.prior
            solution = prior.newton_steps(system, newton_steps, precision=known)
            if prune:
                solution = switch_off(solution, system)
            solved = block.solved(solution, state.dispersion, gram)
            if solved.needed <= block.width:
                break
            block = block.prepared(solved.needed)
            gram = block.gram_matrix(bands)
        return state.with_factors(index, group.pair[1], solved)

    def _surface_gram(
        self, state: State, index: int, block: FactorBlock
    ) -> tuple[np.ndarray, np.ndarray]:
        """Bands of the Gram matrices of a surface's factors, and the Gram matrix of its block."""
        working, bands = block.seen or (None, None)
        if bands is None or working is not state.working:
            bands = self.store.reduce(tasks.surface_gram, state, index)
        elif isinstance(block.spread, SolvedSpread):
            return bands, block.spread.gram
        return bands, block.gram_matrix(bands)

    def update_linear(self, state: State, newton_steps: int = 0, prune: bool = False) -> State:
        """Intercept, linear terms, smooths and tensor products, jointly.

        Args:
            state: where it begins.
            newton_steps: on the smoothing.
            prune: whether tensor products that are not worth their price are switched off before.
        """
        block, gram = state.linear, state.gram
        system = System(gram, self.store.reduce(tasks.linear_sums, state), state.dispersion)
        precision = _known_precision(block, gram)
        prior = block.prior if precision else block.prior.seeing(gram)
        if prune:
            solution = switch_off(prior.solve(system, precision), system)
            prior, precision = solution.prior, solution.precision
        solution = prior.newton_steps(system, newton_steps, precision=precision)
        return replace(state, linear=block.solved(solution, state.dispersion, gram))

    def factor_system(self, state: State, index: int, feature: int) -> System:
        """The system of all factors of one feature in one group, in the block's coordinates.

        Without the feature, e_d = slope phi + rest. The expected square of the residual is quadratic in
        the block: T_(d-1,d-1) before b b', and r E slope - T_(d-1,d) before b, where T_(d-1,d) is E
        slope E rest + their covariance.
        """
        sums = self.store.reduce(tasks.factor_sums, state, index, feature)
        block = state.groups[index].blocks[feature]
        return System(*block.to_coordinates(*sums), state.dispersion)

    def update_factors(
        self,
        state: State,
        index: int,
        feature: int,
        newton_steps: int = 0,
        prune: bool = False,
    ) -> State:
        """All factors of one feature in one group."""
        block = state.groups[index].blocks[feature].prepared()
        sums, conceded = self.store.reduce(tasks.factor_sums, state, index, feature), state.conceded
        while True:
            system = System(*block.to_coordinates(*sums), state.dispersion)
            solution = block.prior.seeing(system.gram).newton_steps(system, newton_steps)
            solved = block.solved(solution, state.dispersion, system.gram)
            if solved.needed <= block.width:
                break
            # Less smooth than before: steps again, with the functions that they let in.
            block = block.prepared(solved.needed)
        if prune:
            prices = state.groups[index].feature_prices(feature, self.settings)
            smaller = switch_off(solution, system, prices)
            conceded += max(solution.evidence - smaller.evidence, 0.0)
            solved = block.solved(smaller, state.dispersion, system.gram)
        return replace(state.with_factors(index, feature, solved), conceded=conceded)

    def update_dispersion(self, state: State) -> State:
        """The prior carries the dispersion too, so its quadratic forms and its size count.

        Residuals are those from the current mean. From the working response of a mean before, which the
        last update has just been fitted to, they would be too small as long as the mean moves.
        """
        if not self.variational or self.family.dispersion_known:
            return state
        if not self.family.is_linear:
            state = replace(state, working=Working(state.linear, state.groups, Rough.NONE))
        squares = sum(self.expected_squares(state)) + sum(b.expected_penalty for b in state.blocks)
        count = self.weighted_rows + sum(block.prior.size for block in state.blocks)
        # What has a penalty on its norm is a point: the degrees of freedom of a lasso are the number of
        # its coefficients that are not 0 (Zou, Hastie and Tibshirani, 2007).
        linear = state.linear
        squares -= linear.prior.norm_penalty(linear.mean)
        count -= int(np.count_nonzero(linear.mean[linear.prior.shape.has_norm]))
        return state.keeping(dispersion=self.family.estimate_dispersion(squares, count))

    def half_way(self, state: State, before: State) -> State:
        """Half the way back to a state with the same groups."""
        return self.update_dispersion(state.half_way_to(before))

    # What is maximised --------------------------------------------------------------------------

    def sums(self, task: Task, state: State, *arguments: Any) -> Any:
        """The sums of a task that depend on the state alone, computed once."""
        key = self.store, task
        if key not in state.known:
            state.known[key] = self.store.reduce(task, state, *arguments)
        return state.known[key]

    def expected_squares(self, state: State) -> tuple[float, float]:
        """E of the weighted squares of the working residuals: at the mean, and what variances add."""
        squares, variances = self.sums(tasks.fit_sums, state)
        if self.variational:
            variances += state.linear.spread.expected(state.gram)
            variances += sum(group.solved.own_variance for group in state.surfaces)
        return squares, variances

    def deviance(self, state: State) -> float:
        """Sum of the unit deviances at the mean, in the response's units."""
        return float(self.sums(tasks.deviance, state))

    def objective(self, state: State) -> float:
        """Half the deviance plus half the penalty, over n: the loss that Keras sees."""
        penalty = sum(block.penalty for block in state.blocks)
        return (self.deviance(state) / self.response.dispersion_unit + penalty) / (2 * self.total_weight)

    def bound(self, state: State) -> float:
        """Evidence lower bound; of the working gaussian model where the family is not gaussian.

        Less the price of the tensor products that are on, and of the degrees of freedom of smooths. For
        other families the log-likelihood at the mean stands for that of the working response.
        """
        squares, variances = self.expected_squares(state)
        if not self.family.is_linear:
            squares = self.deviance(state) / self.response.dispersion_unit
        total = -(squares + variances) / state.dispersion
        total -= self.weighted_rows * np.log(2 * np.pi * state.dispersion)
        for block in state.blocks:
            total += block.bound - block.prior.size * np.log(state.dispersion)
            total -= block.expected_penalty / state.dispersion
        return float(total) / 2

    def prior_part(self, state: State) -> float:
        """What priors and entropies give to the bound; without variances what penalties take."""
        if not self.variational:
            return -sum(block.penalty for block in state.blocks) / 2
        return sum(block.bound - block.expected_penalty for block in state.blocks) / 2

    def score(self, state: State) -> float:
        """The bound less the price of the factors that are active."""
        return self.bound(state) - sum(group.price(self.settings) for group in state.groups)

    # Is it a fit that could be meant? What no measure of convergence looks at -------------------

    def is_in_range(self, state: State) -> bool:
        """Whether no predictor is on the wrong side of its response, and far beyond it."""
        if self.family.is_linear:
            return True
        return not self.sums(tasks.rows_out_of_range, state, self.settings.predictor_reach)

    def null_deviance(self, state: State) -> float:
        """Of the model without terms."""
        y, weight, offset = map(np.concatenate, self.store.reduce(tasks.responses, state))
        intercept = self.design.only.intercept
        mean = self.family.null_mean(y, offset - self.response.shift, weight, intercept)
        return float(self.family.unit_deviance(y, mean, np) @ weight)

    def means(self, state: State) -> np.ndarray:
        """Mean response of all rows."""
        return self.store.collect(tasks.means, state)


def _known_precision(block: Block, gram: np.ndarray) -> Precision | None:
    """The factorised precision of a block where its prior and Gram matrix are those of the last time."""
    spread = block.spread
    if not isinstance(spread, SolvedSpread) or spread.gram is not gram:
        return None
    return spread.solution.precision if spread.solution.prior is block.prior else None
