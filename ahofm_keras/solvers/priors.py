"""The prior of a block of coefficients, and the step that chooses its smoothing from the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ahofm_keras.solvers.precision import Precision

# Precision of a coefficient with a flat prior, relative to the block's Gram matrix: none that a
# statistician would see, enough for equal columns, whose coefficients it makes equal (the solution of
# least norm), and for levels that no row has, whose coefficients it makes 0.
_FLAT = 1e-11
# Logarithms of lambda and tau may move by this much in one step, and lie this far from where they
# started.
_LONGEST_STEP = 4.0
_RANGE = 25.0
# How much larger the logarithm of lambda is where a smooth is as good as straight.
_STRAIGHT = 16.0
_AT_THE_END = 1e-6
_NOTHING = 1e-100
_HALVINGS = 12
# Steps end where the evidence gains less.
_LEAST_GAIN = 1e-6
# What integrating out the logarithm of a scale would cost: it is known to about one unit, of a prior
# range of about twenty.
COST = 2.0
# What a degree of freedom costs that the prior leaves to a smooth.
FREEDOM = 0.2
# A group with fewer degrees of freedom counts as switched off.
ACTIVE = 0.05


@dataclass(frozen=True)
class Solution:
    """The posterior of a block in units of the dispersion.

    Args:
        mean: `(m,)`.
        evidence: 1/2 log|Q| - 1/2 log|A| + b'A^-1 b / (2 dispersion) less the price of what is on: up to
            constants, the part of the bound that depends on this block when its posterior is profiled
            out.
        precision: A.
        price: which the evidence has paid.
    """

    mean: np.ndarray
    evidence: float
    precision: Precision
    price: float = 0.0

    @property
    def log_determinant(self) -> float:
        """Of A."""
        return self.precision.log_determinant

    @property
    def inverse(self) -> np.ndarray:
        """A^-1 `(m, m)`; times the dispersion it is the covariance."""
        return self.precision.inverse


@dataclass
class BlockPrior:
    """Precisions of a block's coefficients: sum_j lambda_j s_jm + tau, one tau, some lambdas per group.

    A group is one smooth or one factor of one feature, with one lambda, or one tensor product, with one
    lambda a margin. tau shrinks what the penalties leave free, so a group that the data does not need
    goes to zero. Where a penalty is the identity (categories) only the sum is known, and tau alone is
    kept.

    A smooth has (lambda + tau / s_1) s_m + tau, with s_1 the least s that is not 0. With tau alone on
    all functions, a small lambda and a middling tau would be white noise of low variance: a second
    optimum of the evidence, in which a smooth without any effect takes five degrees of freedom or ten.

    Args:
        eigenvalues: s `(D, m)` of all coefficients in the block, D the most margins of a group; 0 where
            a group has no such margin.
        groups: `(m,)` group of each coefficient, -1 for a flat prior.
        parameters: `(G, D + 1)` logarithms of the lambdas and, last, of tau, in units of the Gram
            matrix.
        free: `(G, D + 1)`, which of them are chosen by the data.
        prices: `(G,)`, what the evidence must gain from a group for it to be on: the logarithm of the
            prior odds against it. Where it is 0 the group is always on.
        least: `(G, D + 1)`, below which the parameters may not fall where the dispersion is 1. With a
            smaller one they may fall as much further: the prior variance is what counts.
        freedom: `(G,)`, what a degree of freedom of a group costs. A coefficient of which the rows see g
            has g / (g + q) of one at the precision q. The evidence of a weak function is almost the
            same from straight to rough: this says that it is straight.
        tied: `(G,)`, 1 / s_1 of smooths, which adds tau / s_1 to their lambda; 0 elsewhere.
        seen: g `(m,)`, the diagonal of the block's Gram matrix.
        rows: n, for the weak prior of what has none: where classes are told apart exactly the Gram
            matrix says less and less of a coefficient, and nothing else would hold it.
        weak: `(m,)`, how strong that prior is beside that of other coefficients: the intercept's is
            weaker, so that it takes what a column that is constant on these rows could take as well.
    """

    eigenvalues: np.ndarray
    groups: np.ndarray
    parameters: np.ndarray
    free: np.ndarray
    prices: np.ndarray
    least: np.ndarray
    freedom: np.ndarray
    tied: np.ndarray
    seen: np.ndarray
    rows: float
    weak: np.ndarray

    def __post_init__(self) -> None:
        self.start = self.parameters
        self._penalised = self.groups >= 0
        self._freedom = self.freedom[self.groups] * self._penalised
        self._shrunk = 1 + self.tied[self.groups] * self.eigenvalues[0]
        self._known: tuple[np.ndarray, np.ndarray, Precision] | None = None

    @property
    def size(self) -> int:
        """Number of coefficients with a proper prior."""
        return int(self._penalised.sum())

    def precisions(self) -> np.ndarray:
        """`(m,)`, 0 where the prior is flat."""
        return self._precisions(self.parameters)

    def smoothing(self) -> np.ndarray:
        """`(G, D + 1)`, logarithms of the lambdas, with what tau adds to them, and of tau."""
        known = self.parameters.copy()
        with np.errstate(divide="ignore"):
            known[:, 0] = np.logaddexp(known[:, 0], known[:, -1] + np.log(self.tied))
        return known

    def use_smoothing(self, known: np.ndarray) -> None:
        """Take parameters that `smoothing` gave."""
        self.parameters = known.copy()
        with np.errstate(divide="ignore"):
            added = known[:, -1] + np.log(self.tied)
            left = -np.expm1(np.minimum(added - known[:, 0], 0.0))
            own = known[:, 0] + np.log(np.maximum(left, 0.0))
        lowest = self.start[:, 0] - _RANGE  # where all of lambda is what tau adds
        self.parameters[:, 0] = np.where(self.tied > 0, np.maximum(own, lowest), known[:, 0])

    def log_determinant(self) -> float:
        """Of the proper part."""
        return float(np.log(self.precisions()[self._penalised]).sum())

    def _price(self, parameters: np.ndarray, precisions: np.ndarray) -> float:
        """Of the groups that are on, and of the freedom that they have."""
        price = float(self.prices[~self._off(parameters)].sum())
        if self._freedom.any():
            price += float(self._freedom @ (self.seen / (self.seen + precisions + _NOTHING)))
        return price

    def _off(self, parameters: np.ndarray) -> np.ndarray:
        """`(G,)`, which groups with a price are switched off."""
        return (self.prices > 0) & self.at_the_end(parameters)

    def at_the_end(self, parameters: np.ndarray | None = None) -> np.ndarray:
        """`(G,)`, the tau of which groups went as far as it can: they have no effect."""
        parameters = self.parameters if parameters is None else parameters
        ends: np.ndarray = parameters[:, -1] > self.start[:, -1] + _RANGE - _AT_THE_END
        return ends

    def beside(self, other: BlockPrior) -> BlockPrior:
        """The groups of two priors side by side."""
        shifted = np.where(other.groups >= 0, other.groups + len(self.free), -1)
        prior = BlockPrior(
            np.concatenate([self.eigenvalues, other.eigenvalues], axis=1),
            np.concatenate([self.groups, shifted]),
            np.concatenate([self.start, other.start]),
            np.concatenate([self.free, other.free]),
            np.concatenate([self.prices, other.prices]),
            np.concatenate([self.least, other.least]),
            np.concatenate([self.freedom, other.freedom]),
            np.concatenate([self.tied, other.tied]),
            np.concatenate([self.seen, other.seen]),
            self.rows,
            np.concatenate([self.weak, other.weak]),
        )
        prior.parameters = np.concatenate([self.parameters, other.parameters])
        return prior

    def without(self, group: int) -> BlockPrior:
        """The prior with one group less."""
        return self._part(self.groups != group, np.arange(len(self.free)) != group)

    def only(self, group: int) -> BlockPrior:
        """The prior of one group."""
        return self._part(self.groups == group, np.arange(len(self.free)) == group)

    def _part(self, keep: np.ndarray, chosen: np.ndarray) -> BlockPrior:
        """The prior of some coefficients `(m,)`, which are in some groups `(G,)` or in none."""
        groups, numbers = self.groups[keep], np.cumsum(chosen) - 1
        prior = BlockPrior(
            self.eigenvalues[:, keep],
            np.where(groups >= 0, numbers[groups], -1),
            self.start[chosen],
            self.free[chosen],
            self.prices[chosen],
            self.least[chosen],
            self.freedom[chosen],
            self.tied[chosen],
            self.seen[keep],
            self.rows,
            self.weak[keep],
        )
        prior.parameters = self.parameters[chosen]
        return prior

    def solve(
        self, gram: np.ndarray, rhs: np.ndarray, dispersion: float, parameters: np.ndarray | None = None
    ) -> Solution:
        """The block's posterior, with all others fixed."""
        parameters = self.parameters if parameters is None else parameters
        own = self._precisions(parameters)
        precision = self._factorise(gram, parameters, own)
        mean = precision.solve(rhs)
        prior = float(np.log(own[self._penalised]).sum())
        evidence = (prior - precision.log_determinant + float(rhs @ mean) / dispersion) / 2
        price = self._price(parameters, own)
        return Solution(mean, evidence - price, precision, price)

    def _factorise(self, gram: np.ndarray, parameters: np.ndarray, own: np.ndarray) -> Precision:
        """Gram and prior. The linear block's often are those of the last time."""
        if self._known is not None:
            known_gram, known_parameters, precision = self._known
            if known_gram is gram and np.array_equal(known_parameters, parameters):
                return precision
        size = gram.diagonal() + np.trace(gram) / max(len(gram), 1)
        flat = _FLAT * self.weak * np.maximum(size, self.rows)
        precision = Precision.factorise(gram, np.where(self._penalised, own, flat))
        self._known = gram, parameters.copy(), precision
        return precision

    def adapt(
        self,
        gram: np.ndarray,
        rhs: np.ndarray,
        dispersion: float,
        steps: int = 1,
        least_gain: float = _LEAST_GAIN,
    ) -> Solution:
        """Newton steps on the logarithms of lambda and tau; the evidence never falls."""
        solution = self.solve(gram, rhs, dispersion)
        lowest = self.lowest(dispersion)
        for _ in range(steps):
            step = self._newton(solution, dispersion)
            better = None
            # What is below the floor already, because the dispersion rose since, may stay: lifted
            # against the evidence it would keep all others from moving.
            low = np.minimum(lowest, self.parameters)
            for _ in range(_HALVINGS if step.any() else 0):
                trial = np.clip(self.parameters + step, low, self.start + _RANGE)
                trial = np.where(self.free, trial, self.parameters)
                candidate = self.solve(gram, rhs, dispersion, trial)
                if candidate.evidence >= solution.evidence:
                    better = candidate
                    break
                step = step / 2
            if better is None:
                break
            gain = better.evidence - solution.evidence
            self.parameters, solution = trial, better
            if gain < least_gain:
                break
        return solution

    def lowest(self, dispersion: float) -> np.ndarray:
        """`(G, D + 1)`, how low the parameters may be."""
        return np.maximum(self.start - _RANGE, self.least + min(np.log(dispersion), 0.0))

    def switch_off(
        self, solution: Solution, gram: np.ndarray, rhs: np.ndarray, dispersion: float, cost: float = 0.0
    ) -> Solution:
        """Do without the groups that gain the evidence less than their cost, the weakest first.

        Args:
            solution: at the current parameters.
            gram, rhs, dispersion: the block's system.
            cost: of one group; without it, groups that have a price are tried.
        """
        by_group = self.edf(solution, gram)
        priced = (self.prices > 0) & ~self._off(self.parameters)
        tried = self.free[:, -1] & (by_group >= ACTIVE if cost else priced)
        for group in np.argsort(by_group):
            if not tried[group]:
                continue
            trial = self.without_effect(group)
            candidate = self.solve(gram, rhs, dispersion, trial)
            if candidate.evidence >= solution.evidence - cost:
                self.parameters, solution = trial, candidate
        return solution

    def without_effect(self, group: int) -> np.ndarray:
        """The parameters with a group switched off: its tau as far up as it can be."""
        parameters = self.parameters.copy()
        parameters[group, -1] = self.start[group, -1] + _RANGE
        return parameters

    def straight(self) -> np.ndarray:
        """Parameters to start from on the smooth side: what a lambda penalises has no effect."""
        parameters = self.start.copy()
        parameters[:, :-1] += np.where(self.free[:, :-1], _STRAIGHT, 0.0)
        return parameters

    def edf(self, solution: Solution, gram: np.ndarray) -> np.ndarray:
        """Effective degrees of freedom of each group, `(G,)`."""
        edf = np.einsum("ij,ij->i", solution.inverse, gram)
        return np.bincount(self.groups[self._penalised], edf[self._penalised], len(self.free))

    def _precisions(self, parameters: np.ndarray) -> np.ndarray:
        """sum_j lambda_j s_jm + tau of each coefficient, `(m,)`."""
        own = np.exp(parameters.T)[:, self.groups]
        total: np.ndarray = (own[:-1] * self.eigenvalues).sum(axis=0) + own[-1] * self._shrunk
        return total * self._penalised

    def _parts(self, parameters: np.ndarray) -> np.ndarray:
        """What each lambda, and tau, adds to the precision of each coefficient, `(D + 1, m)`."""
        own = np.exp(parameters.T)[:, self.groups] * self._penalised
        own[:-1] *= self.eigenvalues
        own[-1] *= self._shrunk
        return own

    def _newton(self, solution: Solution, dispersion: float) -> np.ndarray:
        """The step `(G, D + 1)`; where the evidence is not concave, along |curvature|."""
        step = np.zeros(self.free.size)
        # What is switched off stays off until it is revived.
        free = np.flatnonzero(self.free & ~self._off(self.parameters)[:, None])
        if not len(free):
            return step.reshape(self.free.shape)
        gradient, hessian = self._derivatives(solution, dispersion)
        values, vectors = np.linalg.eigh(-hessian[np.ix_(free, free)])
        floor = max(1e-3 * np.abs(values).max(), 1e-8)
        along = (vectors.T @ gradient[free]) / np.maximum(np.abs(values), floor)
        # Shortened along the axes of the curvature: cut parameter by parameter a step may lead down.
        step[free] = vectors @ np.clip(along, -_LONGEST_STEP, _LONGEST_STEP)
        return step.reshape(self.free.shape)

    def _derivatives(self, solution: Solution, dispersion: float) -> tuple[np.ndarray, np.ndarray]:
        """Of the evidence by the logarithms of the lambdas and tau.

        By the precisions q they are 1/2 (1/q - diag(A^-1) - mean^2 / dispersion) and
        1/2 A^-1 o (A^-1 + 2 mean mean' / dispersion) - 1/2 diag(1 / q^2); those of the price of freedom,
        c g / (g + q), are -c g / (g + q)^2 and 2 c g / (g + q)^3.
        """
        parts = self._parts(self.parameters)
        precisions = parts.sum(axis=0)
        inverse = np.where(self._penalised, 1 / np.where(self._penalised, precisions, 1.0), 0.0)
        mean = solution.mean / np.sqrt(dispersion)
        slope = (inverse - solution.inverse.diagonal() - mean**2) / 2
        curvature = solution.inverse * (solution.inverse + 2 * np.outer(mean, mean)) / 2
        bend = inverse**2 / 2
        if self._freedom.any():
            both = self.seen + precisions + _NOTHING
            lean = self._freedom * self.seen / both**2
            slope += lean
            bend += 2 * lean / both
        np.fill_diagonal(curvature, curvature.diagonal() - bend)
        used = np.flatnonzero(self._penalised)
        chain = np.zeros((self.free.size, len(slope)))
        for kind in range(len(parts)):
            chain[len(parts) * self.groups[used] + kind, used] = parts[kind, used]
        gradient = chain @ slope
        return gradient, chain @ curvature @ chain.T + np.diag(gradient)
