"""The prior of a block of coefficients, the posterior, and the steps that choose the smoothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import log, sqrt
from typing import NamedTuple

import numpy as np

from ahofm_keras.solvers.cones import nearest_in_cone
from ahofm_keras.solvers.functions_in_use import resize
from ahofm_keras.solvers.norms import minimise_by_turns, minimise_with_norms, sum_of_norms
from ahofm_keras.solvers.precision import Precision
from ahofm_keras.solvers.prior_shape import PriorShape
from ahofm_keras.solvers.selection import Candidates, select, selection_price
from ahofm_keras.solvers.settings import Settings

_AT_THE_END = 1e-6
_NOTHING = 1e-100


class System(NamedTuple):
    """What the rows say of a block when the others are fixed.

    Args:
        gram: G `(m, m)`.
        rhs: b `(m,)`.
        dispersion: of the response.
    """

    gram: np.ndarray
    rhs: np.ndarray
    dispersion: float


@dataclass(frozen=True, eq=False)
class Solution:
    """The posterior of a block in units of the dispersion.

    Args:
        prior: with the smoothing at which it is the posterior.
        mean: `(m,)`.
        evidence: 1/2 log|Q| - 1/2 log|A| + b'm / (2 dispersion), m the mean, less the price of what is
            on: up to constants, the part of the bound that depends on this block when its posterior is
            profiled out.
        precision: A.
        free_mean: A^-1 b `(m,)`, which is the mean where no inequality holds it elsewhere.
        price: which the evidence has paid.
    """

    prior: BlockPrior
    mean: np.ndarray
    evidence: float
    precision: Precision
    free_mean: np.ndarray
    price: float = 0.0

    @property
    def log_determinant(self) -> float:
        """Of A."""
        return self.precision.log_determinant

    @property
    def inverse(self) -> np.ndarray:
        """A^-1 `(m, m)`; times the dispersion it is the covariance."""
        return self.precision.inverse


@dataclass(frozen=True, eq=False)
class BlockPrior:
    """Precisions of a block's coefficients: sum_j lambda_j s_jm + tau, one tau, some lambdas per group.

    A group is one smooth or one factor of one feature, with one lambda, or one tensor product, with one
    lambda per margin. tau shrinks what the penalties leave free, so a group that the data does not need
    goes to zero. Atoms have a lambda of their own in place of tau. Where a penalty is the identity
    (categories) only the sum is known, and tau alone is kept.

    A smooth has (lambda + tau / s_1) s_m + tau, with s_1 the least s that is not 0. With tau alone on
    all functions, a small lambda and a middling tau would be white noise of low variance: a second
    optimum of the evidence, in which a smooth without any effect takes five degrees of freedom or ten.

    Args:
        shape: all but the smoothing.
        parameters: `(G, D + 1)` logarithms of the lambdas and, last, of tau, in units of the Gram
            matrix.
        gram_diagonal: g `(m,)`, the diagonal of the block's Gram matrix.
    """

    shape: PriorShape
    parameters: np.ndarray
    gram_diagonal: np.ndarray

    @property
    def groups(self) -> np.ndarray:
        """`(m,)`, see `PriorShape`."""
        return self.shape.groups

    @property
    def free(self) -> np.ndarray:
        """`(G, D + 1)`, see `PriorShape`."""
        return self.shape.free

    @property
    def start(self) -> np.ndarray:
        """`(G, D + 1)`, see `PriorShape`."""
        return self.shape.start

    @property
    def settings(self) -> Settings:
        """Constants of the solvers."""
        return self.shape.settings

    def at(self, parameters: np.ndarray) -> BlockPrior:
        """The prior with other smoothing."""
        return BlockPrior(self.shape, parameters, self.gram_diagonal)

    def seeing(self, gram: np.ndarray) -> BlockPrior:
        """The prior where the block has another Gram matrix."""
        return BlockPrior(self.shape, self.parameters, gram.diagonal())

    @cached_property
    def size(self) -> int:
        """Number of coefficients with a proper prior."""
        return int(self.shape.penalised.sum())

    @cached_property
    def _parts(self) -> np.ndarray:
        """What each lambda, and tau, adds to the precision of each coefficient, `(D + 1, m)`."""
        parts: np.ndarray = np.exp(self.parameters.T)[:, self.groups] * self.shape.factors
        return parts

    @cached_property
    def precisions(self) -> np.ndarray:
        """`(m,)`, 0 where the prior is flat."""
        total: np.ndarray = self._parts.sum(axis=0)
        return total

    @cached_property
    def log_determinant(self) -> float:
        """Of the proper part."""
        return float(np.log(self.precisions[self.shape.penalised]).sum())

    @cached_property
    def price(self) -> float:
        """Of the groups that are on, and of the degrees of freedom that they have."""
        price = float(self.shape.prices[~self.is_off].sum())
        for own in self._selections:
            price += selection_price(len(own), int(np.count_nonzero(~self.at_the_end[own])))
        if self.shape.penalties is not None:
            share = self.gram_diagonal / (self.gram_diagonal + self.precisions + _NOTHING)
            price += float(self.shape.penalties @ share)
        return price

    @cached_property
    def _selections(self) -> list[np.ndarray]:
        """The groups of each selection."""
        if not self.shape.is_selected:
            return []
        numbers = self.shape.selections
        return [np.flatnonzero(numbers == number) for number in range(numbers.max() + 1)]

    @cached_property
    def at_the_end(self) -> np.ndarray:
        """`(G,)`, the scales of which groups went as far as they can: they have no effect."""
        ends = self.parameters > self.shape.highest - _AT_THE_END
        return np.asarray((ends | ~self.shape.scales).all(axis=1))

    @cached_property
    def is_off(self) -> np.ndarray:
        """`(G,)`, which groups with a price are switched off."""
        return ((self.shape.prices > 0) | (self.shape.selections >= 0)) & self.at_the_end

    # Smoothing as it is kept --------------------------------------------------------------------------

    def smoothing(self) -> np.ndarray:
        """`(G, D + 1)`, logarithms of the lambdas, with what tau adds to them, and of tau."""
        known = self.parameters.copy()
        with np.errstate(divide="ignore"):
            known[:, 0] = np.logaddexp(known[:, 0], known[:, -1] + np.log(self.shape.tied))
        return known

    def with_smoothing(self, known: np.ndarray) -> BlockPrior:
        """The prior at parameters that `smoothing` gave."""
        parameters, tied = known.copy(), self.shape.tied
        # Of what has no prior both are -inf, whose difference is not looked at.
        with np.errstate(divide="ignore", invalid="ignore"):
            added = known[:, -1] + np.log(tied)
            # Of groups to which tau adds nothing both may be minus infinity.
            gap = np.subtract(added, known[:, 0], where=tied > 0, out=np.zeros(len(known)))
            left = -np.expm1(np.minimum(gap, 0.0))
            own = known[:, 0] + np.log(np.maximum(left, 0.0))
        lowest = self.shape.lowest[:, 0]  # all of lambda is what tau adds
        parameters[:, 0] = np.where(tied > 0, np.maximum(own, lowest), known[:, 0])
        prior = self.at(parameters)
        return prior.with_points() if self.shape.has_norm.any() else prior

    # Penalties on norms -------------------------------------------------------------------------------

    def with_points(self) -> BlockPrior:
        """The prior where groups with a penalty on their norm have the least variance that there is."""
        points = (self.shape.strengths > 0)[:, None]
        return self.at(np.where(points, self.shape.highest, self.parameters))

    def curved_at(self, mean: np.ndarray) -> BlockPrior:
        """The prior with quadratic penalties alone, which have the same minimum as those on norms.

        s |b| has the slope of s b^2 / (2 |b_0|) at b_0 (Tibshirani, 1996, section 2.5).
        """
        if not self.shape.has_norm.any():
            return self
        parameters = self.parameters.copy()
        for group in np.flatnonzero(self.shape.strengths):
            norm = float(np.linalg.norm(mean[self.shape.members[group]]))
            with np.errstate(divide="ignore"):
                precision = np.log(self.shape.strengths[group]) - np.log(norm)
            parameters[group, -1] = min(precision, self.shape.highest[group, -1])
        shape = replace(self.shape, strengths=np.zeros(len(self.free)))
        return BlockPrior(shape, parameters, self.gram_diagonal)

    def quadratic_penalty(self, mean: np.ndarray) -> float:
        """The quadratic form of the prior, without what has a penalty on its norm."""
        own = np.where(self.shape.has_norm, 0.0, mean)
        return float(self.precisions @ own**2)

    def norm_penalty(self, mean: np.ndarray) -> float:
        """Twice the penalties on norms, as quadratic ones are counted."""
        return 2 * sum_of_norms(mean, *self.shape.norms)

    # Parts --------------------------------------------------------------------------------------------

    def beside(self, other: BlockPrior) -> BlockPrior:
        """The groups of two priors side by side."""
        return BlockPrior(
            self.shape.beside(other.shape),
            np.concatenate([self.parameters, other.parameters]),
            np.concatenate([self.gram_diagonal, other.gram_diagonal]),
        )

    def without(self, group: int) -> BlockPrior:
        """The prior with one group less."""
        return self._part(self.groups != group, np.arange(len(self.free)) != group)

    def only(self, group: int) -> BlockPrior:
        """The prior of one group."""
        return self._part(self.groups == group, np.arange(len(self.free)) == group)

    def _part(self, keep: np.ndarray, chosen: np.ndarray) -> BlockPrior:
        shape = self.shape.part(keep, chosen)
        return BlockPrior(shape, self.parameters[chosen], self.gram_diagonal[keep])

    def resized(self, penalties: np.ndarray) -> BlockPrior:
        """The prior where each group holds functions of one feature, of these penalties `(D, r)`."""
        count, width = self.shape.count_factors, penalties.shape[1]
        sizes = resize(self.gram_diagonal, count, width)
        largest = self.gram_diagonal.reshape(count, -1).max(axis=1, initial=0.0)
        sizes = np.where(sizes > 0, sizes, np.repeat(largest, width))
        return BlockPrior(self.shape.resized(penalties), self.parameters, sizes)

    def restricted(self, own: np.ndarray) -> BlockPrior:
        """The prior of some coefficients, all of which are in use."""
        keep = np.zeros(len(self.groups), bool)
        keep[own] = True
        prior = self._part(keep, np.ones(len(self.free), bool))
        shape = replace(prior.shape, settings=replace(self.settings, left_out=0.0))
        return BlockPrior(shape, prior.parameters, prior.gram_diagonal)

    def without_effect(self, group: int) -> BlockPrior:
        """The prior with a group switched off: its scales as far up as they can be."""
        parameters, own = self.parameters.copy(), self.shape.scales[group]
        parameters[group, own] = self.shape.highest[group, own]
        return self.at(parameters)

    def all_without_effect(self) -> BlockPrior:
        """The prior with all groups switched off."""
        return self.at(np.where(self.shape.scales, self.shape.highest, self.parameters))

    # The posterior ------------------------------------------------------------------------------------

    def solve(self, system: System, precision: Precision | None = None) -> Solution:
        """The block's posterior, with all others fixed.

        Args:
            system: of the block.
            precision: of the Gram matrix with this prior, where it is known already.
        """
        precision = precision or self._factorise(system.gram)
        if self.shape.has_norm.any():
            mean = free_mean = self._solve_norms(system, precision)
            explained = float((2 * system.rhs - system.gram @ mean) @ mean) / system.dispersion
            taken = self.quadratic_penalty(mean) + self.norm_penalty(mean)
            explained -= taken / system.dispersion
        else:
            mean = free_mean = precision.solve(system.rhs)
            if self.shape.inequalities is not None:
                mean = nearest_in_cone(free_mean, system.rhs, precision, self.shape.inequalities)
            explained = float(system.rhs @ mean) / system.dispersion
        if self.shape.is_selected:
            # 0, not next to it.
            off = (self.is_off & (self.shape.selections >= 0))[self.groups] & self.shape.penalised
            mean, free_mean = np.where(off, 0.0, mean), np.where(off, 0.0, free_mean)
        evidence = (self.log_determinant - precision.log_determinant + explained) / 2
        return Solution(self, mean, evidence - self.price, precision, free_mean, self.price)

    def _solve_norms(self, system: System, precision: Precision) -> np.ndarray:
        """The mean where some groups have a penalty on their norm."""
        given, cone = (system.gram, system.rhs, precision, *self.shape.norms), self.shape.inequalities
        if cone is None:
            return minimise_with_norms(*given)

        def nearest(mean: np.ndarray, rhs: np.ndarray) -> np.ndarray:
            return nearest_in_cone(mean, rhs, precision, cone)

        return minimise_by_turns(*given, nearest)

    def _factorise(self, gram: np.ndarray) -> Precision:
        needed = self.in_use(gram.diagonal())
        in_use = None if needed.all() else np.flatnonzero(needed)
        if self.size == len(gram):
            return Precision.factorise(gram, self.precisions, in_use)
        size = gram.diagonal() + np.trace(gram) / max(len(gram), 1)
        flat = self.settings.flat_precision * self.shape.weak * np.maximum(size, self.shape.rows)
        precisions = np.where(self.shape.penalised, self.precisions, flat)
        return Precision.factorise(gram, precisions, in_use)

    def in_use(self, sizes: np.ndarray) -> np.ndarray:
        """`(m,)`, which coefficients the prior leaves anything of.

        Args:
            sizes: diagonal of the Gram matrix `(m,)`.
        """
        free = ~self.shape.has_norm
        if not self.shape.is_large:
            return free
        shares = sizes / (sizes + self.precisions + _NOTHING)
        needed = self.shape.own_functions.in_use(shares, self.settings) | self.shape.is_held
        return free & needed

    def edf(self, solution: Solution, gram: np.ndarray) -> np.ndarray:
        """Effective degrees of freedom of each group, `(G,)`."""
        edf, own = solution.precision.explained(gram), self.shape.penalised
        return np.bincount(self.groups[own], edf[own], len(self.free))

    # The smoothing ------------------------------------------------------------------------------------

    def newton_steps(
        self,
        system: System,
        steps: int = 1,
        least_gain: float | None = None,
        precision: Precision | None = None,
    ) -> Solution:
        """The posterior after steps on the logarithms of lambda and tau; the evidence never falls.

        Args:
            system: of the block.
            steps: at most.
            least_gain: of the evidence, for another step.
            precision: see `solve`.
        """
        solution = self.solve(system, precision)
        least = self.settings.least_gain if least_gain is None else least_gain
        for _ in range(steps):
            better = solution.prior._step(solution, system)
            if better is None:
                break
            gain = better.evidence - solution.evidence
            solution = better
            if gain < least:
                break
        return solution.prior._select(solution, system) if steps else solution

    def _select(self, solution: Solution, system: System) -> Solution:
        """The posterior with each group that the data selects at its best smoothing, or off."""
        for own in self._selections:
            prior = solution.prior
            off = prior.is_off
            inverse = solution.inverse.copy()
            unused = ~prior.in_use(system.gram.diagonal()) | (off[prior.groups] & self.shape.penalised)
            inverse[unused] = 0.0
            inverse[:, unused] = 0.0
            found = select(
                Candidates(
                    [self.shape.members[group] for group in own],
                    np.where(off[own], np.inf, np.exp(prior.parameters[own, -1])),
                    np.exp(prior.lowest(system.dispersion)[own, -1]),
                    np.exp(self.shape.highest[own, -1]),
                ),
                system,
                inverse,
            )
            parameters = prior.parameters.copy()
            parameters[own, -1] = np.minimum(np.log(found), self.shape.highest[own, -1])
            candidate = prior.at(parameters).solve(system)
            if candidate.evidence >= solution.evidence:
                solution = candidate
        return solution

    def _step(self, solution: Solution, system: System) -> Solution | None:
        """One step, halved until the evidence does not fall; None where no step is found."""
        step = self._newton(solution, system.dispersion)
        # What is below the floor already, because the dispersion rose since, may stay: lifted against
        # the evidence it would keep all others from moving.
        low = np.minimum(self.lowest(system.dispersion), self.parameters)
        for _ in range(self.settings.step_halvings if step.any() else 0):
            trial = np.minimum(np.maximum(self.parameters + step, low), self.shape.highest)
            candidate = self.at(np.where(self.free, trial, self.parameters)).solve(system)
            if candidate.evidence >= solution.evidence:
                return candidate
            step = step / 2
        return None

    def lowest(self, dispersion: float) -> np.ndarray:
        """`(G, D + 1)`, how low the parameters may be."""
        return np.maximum(self.shape.lowest, self.shape.least + min(log(dispersion), 0.0))

    def _newton(self, solution: Solution, dispersion: float) -> np.ndarray:
        """The step `(G, D + 1)`; where the evidence is not concave, along |curvature|."""
        step = np.zeros(self.free.size)
        # What is switched off stays off until the smoothing is reset.
        free = np.flatnonzero(self.free & ~(self.is_off | (self.shape.selections >= 0))[:, None])
        if len(free):
            gradient, hessian = self._derivatives(solution, dispersion)
            if not np.isfinite(hessian).all():  # a trial ran away: nobody will accept it
                return step.reshape(self.free.shape)
            values, vectors = np.linalg.eigh(-hessian[free[:, None], free])
            floor = max(1e-3 * np.abs(values).max(), 1e-8)
            along = (vectors.T @ gradient[free]) / np.maximum(np.abs(values), floor)
            # Shortened along the axes of the curvature: cut parameter by parameter a step may lead down.
            longest = self.settings.longest_step
            step[free] = vectors @ np.clip(along, -longest, longest)
        return step.reshape(self.free.shape)

    def _derivatives(self, solution: Solution, dispersion: float) -> tuple[np.ndarray, np.ndarray]:
        """Of the evidence by the logarithms of the lambdas and tau.

        By the precisions q they are 1/2 (1/q - diag(A^-1) - mean^2 / dispersion) and
        1/2 A^-1 o (A^-1 + 2 mean mean' / dispersion) - 1/2 diag(1 / q^2); those of the price of degrees
        of freedom, c g / (g + q), are -c g / (g + q)^2 and 2 c g / (g + q)^3.
        """
        precisions, posterior = self.precisions, solution.precision
        inverse = self.shape.penalised / np.where(self.shape.penalised, precisions, 1.0)
        mean = solution.mean / sqrt(dispersion)
        slope = (inverse - posterior.inverse_diagonal - mean**2) / 2
        curvature = np.multiply.outer(mean[posterior.used], mean[posterior.used])
        curvature *= 2
        curvature += posterior.used_inverse
        curvature *= posterior.used_inverse
        curvature /= 2
        bend = inverse**2 / 2
        if self.shape.penalties is not None:
            both = self.gram_diagonal + precisions + _NOTHING
            lean = self.shape.penalties * self.gram_diagonal / both**2
            slope += lean
            bend += 2 * lean / both
        chain = (self.shape.chain * np.exp(self.parameters)[:, :, None]).reshape(self.free.size, -1)
        gradient = chain @ slope
        own = chain[:, posterior.used]
        hessian = own @ curvature @ own.T
        if posterior.in_use is not None:
            # What is not in use stands on the diagonal alone.
            bend -= posterior.inverse_diagonal**2 / 2
            bend[posterior.in_use] += posterior.inverse_diagonal[posterior.in_use] ** 2 / 2
        hessian -= (chain * bend) @ chain.T
        hessian.flat[:: len(hessian) + 1] += gradient
        return gradient, hessian


def switch_off(solution: Solution, system: System, prices: np.ndarray | None = None) -> Solution:
    """Do without the groups that gain the evidence less than their price, the weakest first.

    Args:
        solution: of the block.
        system: of the block.
        prices: of the groups `(G,)`; without them, groups that have a price of their own are tried.
    """
    prior = solution.prior
    by_group = prior.edf(solution, system.gram)
    priced = (prior.shape.prices > 0) & ~prior.is_off
    tried = prior.free[:, -1] & (prior.shape.selections < 0)
    tried &= priced if prices is None else by_group >= prior.settings.active_edf
    for group in np.argsort(by_group):
        if tried[group]:
            candidate = solution.prior.without_effect(int(group)).solve(system)
            if candidate.evidence >= solution.evidence - (0.0 if prices is None else prices[group]):
                solution = candidate
    return solution
