"""Where the factors start: smooth random functions."""

from __future__ import annotations

from math import comb

import numpy as np

from ahofm_keras.solvers.blocks import FactorGroup

# Of all interactions of one order together, in units of the response's variance.
_START_VARIANCE = 0.05


def draw_factors(groups: list[FactorGroup], seed: int) -> None:
    """Smooth random factors: all interactions of an order are a small part of the response.

    The coefficient of a function of penalty s is drawn with standard deviation 1 / (1 + s / s_1), s_1
    the smallest that is not 0: lines and the first few wiggles.
    """
    rng = np.random.default_rng(seed)
    for group in groups:
        products = comb(len(group.blocks), group.order) * group.rank
        size = (_START_VARIANCE / products) ** (0.5 / group.order)
        for block in group.blocks:
            values = block.feature.eigenvalues
            penalised = values[values > 0]
            spread = 1 / (1 + values / penalised.min()) if len(penalised) else np.ones_like(values)
            spread = size * spread / np.linalg.norm(spread)
            block.mean = (spread * rng.standard_normal((group.rank, block.width))).reshape(-1)
