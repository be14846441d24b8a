"""All that a fit reaches. States do not change: what solvers do gives a new one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np

from ahofm_keras.solvers.blocks import Block, FactorBlock, LinearBlock
from ahofm_keras.solvers.groups import FactorGroup, GroupKey


class Rough(Enum):
    """The rows that are linearised at a rough mean, which the response alone gives."""

    NONE = "none"
    # Rows that the current mean is far from. A level of which all responses in a sample were 0 has a
    # mean of almost 0: seen from there, a response of 1 is at infinity.
    FAR = "far"
    # To start from.
    ALL = "all"


@dataclass(frozen=True, eq=False)
class Working:
    """Which means the working response and weights belong to.

    Args:
        linear, groups: at whose mean rows are linearised.
        rough: which rows are linearised at a rough mean instead.
    """

    linear: LinearBlock
    groups: tuple[FactorGroup, ...]
    rough: Rough


@dataclass(frozen=True, eq=False)
class State:
    """A point of a fit.

    Args:
        dispersion: of the response.
        linear: the linear block.
        groups: of factors of the interaction terms, those that are not switched off.
        working: which means rows are linearised at.
        linear_gram: Gram matrix of the linear block at the working weights.
        conceded: what the last sweep gave up of the bound, on purpose, for a simpler model.
        stalled: number of the last sweeps of which no step, however short, led to a better state.
        bounds: of the fits that this is the average of; that of an average is no bound.

    Attributes:
        known: sums over rows that were computed, by store and task; `replace` forgets them.
    """

    dispersion: float
    linear: LinearBlock
    groups: tuple[FactorGroup, ...]
    working: Working | None = None
    linear_gram: np.ndarray | None = None
    conceded: float = 0.0
    stalled: int = 0
    bounds: tuple[float, ...] = ()
    known: dict[Any, Any] = field(init=False, default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "known": {}}  # sums are those of a store, which does not travel

    @property
    def blocks(self) -> list[Block]:
        """All that are on: of what is switched off for good the posterior is the prior."""
        factors = (block for group in self.groups for block in group.blocks if block.is_updated)
        return [self.linear, *factors]

    @property
    def gram(self) -> np.ndarray:
        """`linear_gram` of a state that was linearised."""
        assert self.linear_gram is not None, "linearise first"
        return self.linear_gram

    @property
    def edf(self) -> float:
        """Effective degrees of freedom of all blocks."""
        return float(sum(block.edf.sum() for block in self.blocks))

    @property
    def active(self) -> int:
        """Number of factors of single features that are not switched off."""
        return sum(int(group.is_active.sum()) for group in self.groups)

    @property
    def surfaces(self) -> list[FactorGroup]:
        """The groups of pairs in which one feature is given."""
        return [group for group in self.groups if group.is_surface]

    def group(self, key: GroupKey) -> FactorGroup | None:
        """One group, if it is there."""
        return next((group for group in self.groups if group.key == key), None)

    def groups_of(self, order: tuple[str, int]) -> list[FactorGroup]:
        """All groups of one order of one term."""
        return [group for group in self.groups if group.factors.key == order]

    def with_group(self, group: FactorGroup) -> State:
        """The state with a group in the place of what was there of it, or at the end."""
        if self.group(group.key) is None:
            return replace(self, groups=(*self.groups, group))
        groups = (group if own.key == group.key else own for own in self.groups)
        return replace(self, groups=tuple(own for own in groups if own.rank))

    def with_factors(self, index: int, feature: int, block: FactorBlock) -> State:
        """The state with another block of one feature of one of its groups."""
        changed = self.groups[index].with_block(feature, block)
        return replace(self, groups=(*self.groups[:index], changed, *self.groups[index + 1 :]))

    def keeping(self, **changes: Any) -> State:
        """The state with changes that no sum over rows depends on."""
        other = replace(self, **changes)
        other.known.update(self.known)
        return other

    def half_way_to(self, old: State) -> State:
        """Half the way back to a state with the same groups."""
        groups = tuple(
            own.half_way_to(before) for own, before in zip(self.groups, old.groups, strict=True)
        )
        return replace(self, linear=self.linear.half_way_to(old.linear), groups=groups)
