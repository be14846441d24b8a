"""What is fixed of the prior of a block of coefficients while its smoothing is chosen."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ahofm_keras.solvers.functions_in_use import FunctionGroups
from ahofm_keras.solvers.settings import Settings

_BY_GROUP = (
    "start", "free", "prices", "least", "edf_penalty", "tied", "scales", "strengths", "selections",
)  # fmt: skip
_BY_COEFFICIENT = ("weak", "shrunk")


@dataclass(frozen=True, eq=False)
class PriorShape:
    """All of a block's prior but the smoothing, see `BlockPrior`.

    Args:
        eigenvalues: s `(D, m)` of all coefficients in the block, D the most lambdas of a group, which
            has one per margin and after these those of atoms; 0 where a group has no such lambda.
        groups: `(m,)` group of each coefficient, -1 for a flat prior.
        start: `(G, D + 1)`, where the parameters start.
        free: `(G, D + 1)`, which of them are chosen by the data.
        prices: `(G,)`, what the evidence must gain from a group for it to be on: the logarithm of the
            prior odds against it. Where it is 0 the group is always on.
        least: `(G, D + 1)`, below which the parameters may not fall where the dispersion is 1. With a
            smaller one they may fall as much further: the prior variance is what counts.
        edf_penalty: `(G,)`, what a degree of freedom of a group costs. A coefficient with the diagonal
            entry g of the Gram matrix has g / (g + q) of one at the precision q. The evidence of a weak
            function is almost the same from straight to rough: this says that it is straight.
        tied: `(G,)`, 1 / s_1 of smooths, which adds tau / s_1 to their lambda; 0 elsewhere.
        scales: `(G, D + 1)`, which parameters hold a group at 0 if they all are as high as they can be:
            tau, and those of atoms, which tau does not reach.
        shrunk: `(m,)`, which coefficients tau reaches: all but those of atoms. A feature may need its
            atoms and no spline.
        strengths: `(G,)`, of groups whose penalty is this times their norm, where the user gave it; 0 of
            all others. They have the precision of what is switched off, see `norms.py`.
        selections: `(G,)`, a number for the groups of which the data selects some, see `selection.py`;
            -1 of all others.
        rows: n, for the weak prior of what has none: where classes are told apart exactly the Gram
            matrix says less and less of a coefficient, and nothing else would hold it.
        weak: `(m,)`, how strong that prior is beside that of other coefficients.
        settings: constants of the solvers.
        given: `(r,)`, penalties of r given functions of another feature, where the factors of a block
            are what they are multiplied by, see `FactorGroup.is_surface`: they then share one group, in
            which the second lambda is that of the other feature. None elsewhere.
        inequalities: `(c, m)`, forms of the coefficients that are at least 0; None where there are none.

    Attributes:
        of_widths: shapes of the same groups with other numbers of functions, see `resized`.
    """

    eigenvalues: np.ndarray
    groups: np.ndarray
    start: np.ndarray
    free: np.ndarray
    prices: np.ndarray
    least: np.ndarray
    edf_penalty: np.ndarray
    tied: np.ndarray
    scales: np.ndarray
    shrunk: np.ndarray
    strengths: np.ndarray
    selections: np.ndarray
    rows: float
    weak: np.ndarray
    settings: Settings
    given: np.ndarray | None = None
    inequalities: np.ndarray | None = None
    of_widths: dict[int, PriorShape] = field(init=False, default_factory=dict, repr=False)

    @cached_property
    def penalised(self) -> np.ndarray:
        """`(m,)`, which coefficients have a proper prior."""
        return self.groups >= 0

    @cached_property
    def factors(self) -> np.ndarray:
        """`(D + 1, m)`, what a unit of each lambda, and of tau, adds to the precisions."""
        by_tau = self.shrunk * (1 + self.tied[self.groups] * self.eigenvalues[0])
        factors: np.ndarray = np.concatenate([self.eigenvalues, by_tau[None]]) * self.penalised
        return factors

    @property
    def factors_of_group(self) -> int:
        """Number of factors that share the parameters of a group of a factor block."""
        return 1 if self.given is None else len(self.given)

    @property
    def count_factors(self) -> int:
        """Number of factors of a factor block."""
        return len(self.free) * self.factors_of_group

    @cached_property
    def members(self) -> list[np.ndarray]:
        """The coefficients of each group."""
        return [np.flatnonzero(self.groups == group) for group in range(len(self.free))]

    @cached_property
    def has_norm(self) -> np.ndarray:
        """`(m,)`, which coefficients have a penalty on their norm."""
        own: np.ndarray = (self.strengths[self.groups] > 0) & self.penalised
        return own

    @cached_property
    def norms(self) -> tuple[list[np.ndarray], np.ndarray]:
        """The coefficients of each group with a penalty on its norm, and the strength of that."""
        chosen = np.flatnonzero(self.strengths > 0)
        return [self.members[group] for group in chosen], self.strengths[chosen]

    @cached_property
    def is_selected(self) -> bool:
        """Whether the data selects among some groups."""
        return bool((self.selections >= 0).any())

    @cached_property
    def is_large(self) -> bool:
        """Whether any group has so many functions that some may be left out."""
        sizes = np.bincount(self.groups[self.penalised], minlength=1)
        return int(sizes.max()) > self.settings.few_functions * self.factors_of_group

    @cached_property
    def own_functions(self) -> FunctionGroups:
        """Of what may be left out, splines of one feature."""
        if self.given is not None:
            factors = np.repeat(np.arange(self.count_factors), len(self.groups) // self.count_factors)
            return FunctionGroups(np.where(self.shrunk, factors, -1))
        products = self.eigenvalues[1:].any(axis=0) & self.shrunk
        several = np.isin(self.groups, self.groups[products])
        return FunctionGroups(np.where(several | ~self.shrunk, -1, self.groups))

    @cached_property
    def is_held(self) -> np.ndarray:
        """`(m,)`, which coefficients stand in an inequality."""
        if self.inequalities is None:
            return np.zeros(len(self.groups), bool)
        return np.asarray(self.inequalities.any(axis=0))

    @cached_property
    def penalties(self) -> np.ndarray | None:
        """`(m,)`, what a degree of freedom of each coefficient costs; None where none does."""
        own: np.ndarray = self.edf_penalty[self.groups] * self.penalised
        return own if own.any() else None

    @cached_property
    def highest(self) -> np.ndarray:
        """`(G, D + 1)`, how high the parameters may be."""
        return self.start + self.settings.smoothing_range

    @cached_property
    def lowest(self) -> np.ndarray:
        """`(G, D + 1)`, how low the parameters may be where the prior variance has no bound."""
        return self.start - self.settings.smoothing_range

    @cached_property
    def chain(self) -> np.ndarray:
        """`(G, D + 1, m)`, what a unit of each parameter adds to the precisions."""
        own: np.ndarray = np.arange(len(self.free))[:, None] == self.groups
        return own[:, None] * self.factors

    def only_proper(self) -> PriorShape:
        """Where what neither lambda nor tau reaches is in no group: it has a flat prior."""
        at_start = np.exp(self.start.T)[:, self.groups] * self.factors
        return replace(self, groups=np.where(at_start.any(axis=0), self.groups, -1))

    def resized(self, penalties: np.ndarray) -> PriorShape:
        """Where each group holds the functions of one feature, of these penalties `(D, r)`.

        The penalties are always the first ones of the same feature. Shapes are asked for again at every
        update of a block, so they are kept.
        """
        count, width = self.count_factors, penalties.shape[1]
        if width not in self.of_widths:
            shape = replace(
                self,
                eigenvalues=beside_given(np.tile(penalties, count), self.given),
                groups=np.repeat(np.arange(len(self.free)), width * self.factors_of_group),
                weak=np.ones(count * width),
                shrunk=np.tile(~penalties[1:].any(axis=0), count),
            ).only_proper()
            shape.__dict__["of_widths"] = self.of_widths
            self.of_widths[width] = shape
        return self.of_widths[width]

    def part(self, keep: np.ndarray, chosen: np.ndarray) -> PriorShape:
        """Of some coefficients `(m,)`, which are in some groups `(G,)` or in none."""
        groups, numbers = self.groups[keep], np.cumsum(chosen) - 1
        return replace(
            self,
            eigenvalues=self.eigenvalues[:, keep],
            groups=np.where(groups >= 0, numbers[groups], -1),
            inequalities=self._inequalities_of(keep),
            **{name: getattr(self, name)[keep] for name in _BY_COEFFICIENT},
            **{name: getattr(self, name)[chosen] for name in _BY_GROUP},
        )

    def _inequalities_of(self, keep: np.ndarray) -> np.ndarray | None:
        """Those of some coefficients alone."""
        if self.inequalities is None:
            return None
        own = ~self.inequalities[:, ~keep].any(axis=1)
        return self.inequalities[own][:, keep] if own.any() else None

    def beside(self, other: PriorShape) -> PriorShape:
        """The groups of both, one after the other."""
        shifted = np.where(other.groups >= 0, other.groups + len(self.free), -1)
        both: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(other, name)])
            for name in (*_BY_GROUP, *_BY_COEFFICIENT)
        }
        return replace(
            self,
            eigenvalues=np.concatenate([self.eigenvalues, other.eigenvalues], axis=1),
            groups=np.concatenate([self.groups, shifted]),
            **both,
        )


def beside_given(penalties: np.ndarray, given: np.ndarray | None) -> np.ndarray:
    """Penalties `(D, m)` of factors with those of the given functions beside them, `(D + 1, m)`.

    A product of functions of two features has the penalties of both, as in a tensor product. Atoms have
    a scale of their own, and no other.
    """
    if given is None:
        return penalties
    beside = np.repeat(given, penalties.shape[1] // len(given)) * ~penalties[1:].any(axis=0)
    return np.concatenate([penalties[:1], beside[None], penalties[1:]])
