"""Where the prior of a block of coefficients starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ahofm_keras.solvers.prior_shape import PriorShape
from ahofm_keras.solvers.priors import BlockPrior
from ahofm_keras.solvers.settings import Settings, current_settings


@dataclass(frozen=True)
class PriorStart:
    """Where the prior of one group of coefficients starts.

    Args:
        penalties: `(d, m)`, what a unit of each margin's lambda adds to the precisions.
        smoothing: lambda of each margin.
        rows: n, the sum of the weights of all rows.
        variational: whether tau shrinks what the penalties leave free, and the data chooses.
        fixed: whether the user gave the lambdas.
        price: what the evidence must gain from the group, see `BlockPrior`.
        least: lambda of each margin below which the data may not choose; by default any will do.
        tied: what tau adds to lambda, see `BlockPrior`.
        atoms: number of the last lambdas that are those of atoms, which tau does not reach.
        shrunk: `(m,)`, which coefficients tau reaches; by default all but those of atoms.
        inequalities: `(c, m)`, forms of the coefficients that are at least 0, if there are any.
        edf_penalty: what a degree of freedom costs where the data chooses how rough the group is; levels
            of a category are neither rough nor smooth.
        settings: constants of the solvers.
        norm: weight of the group's norm in its penalty, where that is lambda times norms; 0 where it is
            quadratic.
        selection: of groups with a norm, which of them belong together.
    """

    penalties: np.ndarray
    smoothing: tuple[float, ...]
    rows: float
    variational: bool
    fixed: bool = False
    price: float = 0.0
    least: tuple[float, ...] = ()
    edf_penalty: float = 0.0
    tied: float = 0.0
    atoms: int = 0
    shrunk: np.ndarray | None = None
    inequalities: np.ndarray | None = None
    settings: Settings = field(default_factory=current_settings)
    norm: float = 0.0
    selection: int = -1

    @property
    def strength(self) -> float:
        """What the norm of the group is multiplied by; where the data chooses it selects instead."""
        return 0.0 if self.chosen else self.rows * self.norm * sum(self.smoothing)

    @property
    def chosen(self) -> bool:
        """Whether the data chooses."""
        return self.variational and not self.fixed

    def parameters(self) -> tuple[np.ndarray, np.ndarray]:
        """Logarithms of the lambdas and of tau, in units of the Gram matrix; which the data chooses."""
        smoothing = self.rows * np.asarray(self.smoothing, float)
        if self.chosen:
            smoothing = np.maximum(smoothing, self.rows * self._least())
        shrinkage = self.rows * self.settings.start_shrinkage if self.chosen else 0.0
        if self.variational and self.penalties.shape[1]:
            identity = np.ptp(self.penalties, axis=1) == 0  # one scale, not two
            shrinkage += float(smoothing[identity] @ self.penalties[identity, 0])
            smoothing[identity] = 0.0
        with np.errstate(divide="ignore"):
            start = np.log(np.append(smoothing, shrinkage))
        return start, np.isfinite(start) & self.chosen

    def lowest(self) -> np.ndarray:
        """What the logarithms of the lambdas and of tau may not fall below."""
        with np.errstate(divide="ignore"):
            lowest: np.ndarray = np.log(self.rows * np.append(self._least(), 0.0))
        return lowest

    def _least(self) -> np.ndarray:
        least = np.zeros(len(self.penalties))
        least[: len(self.least)] = self.least
        return least


def make_prior(
    starts: Sequence[PriorStart],
    rows: float,
    settings: Settings,
    flat: int = 0,
    intercept: int = 0,
    numbers: Sequence[int] | None = None,
) -> BlockPrior:
    """The prior of a block for n rows.

    Args:
        starts: of the groups, or of their parts, one after another.
        rows: n.
        settings: constants of the solvers.
        flat: number of coefficients with a flat prior, which come before the groups.
        intercept: number of intercepts, 0 or 1, which come before all.
        numbers: of the group that each is a part of, which starts as its first part does; by default
            each is a group of its own.
    """
    numbers = range(len(starts)) if numbers is None else numbers
    widths = [start.penalties.shape[1] for start in starts]
    groups = np.concatenate([np.full(flat, -1), np.repeat(np.asarray(numbers, int), widths)])
    parts = np.concatenate([np.full(flat, -1), np.repeat(np.arange(len(starts)), widths)])
    leading = {group: place for place, group in reversed([*enumerate(numbers)])}
    heads = [starts[leading[group]] for group in range(len(leading))]
    margins = max((len(start.penalties) for start in starts), default=1)
    eigenvalues = np.zeros((margins, len(groups)))
    # A margin that a group does not have has the lambda 0. One group at least: something to index.
    parameters = np.full((max(len(heads), 1), margins + 1), -np.inf)
    free, least = np.zeros(parameters.shape, bool), np.full(parameters.shape, -np.inf)
    scales, shrunk = np.zeros(parameters.shape, bool), np.ones(len(groups), bool)
    scales[:, -1] = True
    for part, start in enumerate(starts):
        of_atoms = range(len(start.penalties) - start.atoms, len(start.penalties))
        eigenvalues[: len(start.penalties), parts == part] = start.penalties
        reached = ~start.penalties[of_atoms].any(axis=0)
        shrunk[parts == part] = reached if start.shrunk is None else start.shrunk
    for group, start in enumerate(heads):
        own = [*range(len(start.penalties)), margins]
        parameters[group, own], free[group, own] = start.parameters()
        least[group, own] = start.lowest()
        scales[group, range(len(start.penalties) - start.atoms, len(start.penalties))] = True
    prices, edf_penalty, tied, strengths = np.zeros((4, len(parameters)))
    selections = np.full(len(parameters), -1)
    strengths[: len(heads)] = [start.strength for start in heads]
    selections[: len(heads)] = [start.selection if start.chosen else -1 for start in heads]
    prices[: len(heads)] = [start.price for start in heads]
    edf_penalty[: len(heads)] = [start.edf_penalty * start.chosen for start in heads]
    tied[: len(heads)] = [start.tied * start.chosen for start in heads]
    weak = np.ones(len(groups))
    weak[:intercept] = settings.weak_intercept
    shape = PriorShape(
        eigenvalues, groups, parameters, free, prices, least, edf_penalty, tied, scales, shrunk,
        strengths, selections, rows, weak, settings, _inequalities(starts, parts),
    )  # fmt: skip
    prior = BlockPrior(shape.only_proper(), parameters, np.full(len(groups), rows, float))
    return prior.with_points() if strengths.any() else prior


def _inequalities(starts: Sequence[PriorStart], parts: np.ndarray) -> np.ndarray | None:
    """Those of all parts, `(c, m)`, for the coefficients of the block."""
    found = []
    for part, start in enumerate(starts):
        if start.inequalities is not None:
            wide = np.zeros((len(start.inequalities), len(parts)))
            wide[:, parts == part] = start.inequalities
            found.append(wide)
    return np.concatenate(found) if found else None
