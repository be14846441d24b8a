"""Where the factors start: smooth random functions."""

from __future__ import annotations

from dataclasses import replace
from math import comb

import numpy as np

from ahofm_keras.solvers.groups import FactorGroup
from ahofm_keras.solvers.state import State
from ahofm_keras.terms import Feature


def draw_factors(state: State, seed: int, variance: float) -> State:
    """Smooth random factors in all groups.

    All interactions of an order together are a small part of the response.

    Args:
        state: whose factors are replaced.
        seed: of the random numbers.
        variance: of all interactions of one order together, in units of the response's.
    """
    rng = np.random.default_rng(seed)
    ranks = {group.factors.key: 0 for group in state.groups}
    for group in state.groups:
        ranks[group.factors.key] += group.rank
    drawn = (
        draw_group(group, rng, variance * group.rank / ranks[group.factors.key])
        for group in state.groups
    )
    return replace(state, groups=tuple(drawn))


def draw_group(group: FactorGroup, rng: np.random.Generator, variance: float) -> FactorGroup:
    """The group with smooth random factors, all its products together with some variance.

    The coefficient of a function of penalty s is drawn with standard deviation 1 / (1 + s / s_1), s_1
    the smallest that is not 0: lines and the first few wiggles. Atoms start at 0. Functions that are
    large at a rare level start smaller by as much: no single row starts far away.
    """
    products = comb(len(group.blocks), group.order) * group.rank
    size = (variance / products) ** (0.5 / group.order)
    blocks = []
    for block in group.blocks:
        values, atoms = block.feature.eigenvalues[block.feature.atoms :], block.feature.atoms
        penalised = values[values > 0]
        spread = 1 / (1 + values / penalised.min()) if len(penalised) else np.ones_like(values)
        spread = size * spread / np.linalg.norm(spread) / _largest_values(block.feature)
        drawn = rng.standard_normal((group.rank, len(values)))[:, ::-1]  # the roughest was first
        start = np.concatenate([np.zeros((group.rank, atoms)), spread * drawn], axis=1)
        mean = start[:, : block.width].reshape(-1)
        blocks.append(replace(block, mean=mean))
    return replace(group, blocks=tuple(blocks))


def _largest_values(feature: Feature) -> np.ndarray | float:
    """The largest value that each function of a category has at a level; 1 for other features."""
    if feature.basis.kind != "re":
        return 1.0
    return np.maximum(np.abs(feature.transform).max(axis=0), 1.0)
