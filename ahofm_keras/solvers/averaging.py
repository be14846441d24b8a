"""The average of several fits, which is a fit of the same kind.

eta is a sum of products of d factors in each order. With the factors of K fits side by side, each times
K^(-1/d), it is the mean of the K predictors: the average of K models of rank F is one of rank K F. Fits
from different starts end in different optima that explain the data about equally well, and what chance
put into one of them the others do not share.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from scipy.linalg import block_diag

from ahofm_keras.solvers.blocks import FactorBlock, FactorGroup, LinearBlock
from ahofm_keras.solvers.engine import State
from ahofm_keras.terms import Design, InteractionOrder

# Further starts, any number of them, would change the error by less than this share of it.
_AGREEMENT = 0.01


def are_enough(fits: Sequence[np.ndarray], target: np.ndarray, weight: np.ndarray) -> bool:
    """Whether the average of more fits would predict hardly better.

    With v the variance of a prediction over starts, an average of K has the expected squared error m + v
    / K, m that of an average of infinitely many: its root is larger by the share v / (2 K m). On the
    training rows the starts differ about as much, over the squared residuals, as on others. Two or three
    may agree by chance, so one start less than there are is counted.

    Args:
        fits: predictors of each start on the training rows.
        target: working response there.
        weight: working weights.
    """
    counted = len(fits) - 1
    if counted < 1:
        return False
    spread = weight @ np.var(fits, axis=0, ddof=1)
    missed = weight @ (target - np.mean(fits, axis=0)) ** 2
    return bool(spread <= 2 * _AGREEMENT * counted * missed)


def average_states(states: Sequence[State], design: Design, gram: np.ndarray) -> State:
    """The average of fits to the same rows.

    Its variances are about the mean of theirs, not those of K independent fits, because all saw the same
    rows.

    Args:
        states: of fits of one model.
        design: of the model with room for all of them.
        gram: Gram matrix of the linear block.
    """
    groups = []
    for order in design.layout.only.orders:
        found = [_find(state, order) for state in states]
        if any(group is not None for group in found):
            groups.append(_average_groups(found, order))
    dispersion = float(np.mean([state.dispersion for state in states]))
    linear = _average_linear([state.linear for state in states], dispersion, gram)
    return State(dispersion, linear, groups)


def _find(state: State, order: InteractionOrder) -> FactorGroup | None:
    own = [group for group in state.groups if group.key == order.key]
    return own[0] if own else None


def _average_linear(blocks: Sequence[LinearBlock], dispersion: float, gram: np.ndarray) -> LinearBlock:
    """Mean of the means; covariance at the mean of the prior variances.

    Tests of terms take covariance and smoothing apart again, so the two have to fit exactly: a mean of
    covariances would not. What only some of the fits switched off keeps the uncertainty of the others.
    """
    average: LinearBlock = blocks[0].copy()
    with np.errstate(divide="ignore", over="ignore"):
        variances = np.exp([-block.prior.parameters for block in blocks])
        average.prior.parameters = -np.log(np.mean(variances, axis=0))
    nothing = np.zeros(len(average.mean))
    average.accept(average.prior.solve(gram, nothing, dispersion), dispersion, gram)
    average.mean = np.mean([block.mean for block in blocks], axis=0)
    average.smoothing_covariance = np.mean([block.smoothing_covariance for block in blocks], axis=0)
    return average


def _average_groups(groups: Sequence[FactorGroup | None], order: InteractionOrder) -> FactorGroup:
    """The factors of all fits side by side; a fit that switched an order off adds none."""
    found = [(start, group) for start, group in enumerate(groups) if group is not None]
    first = found[0][1]
    kept = tuple(start * order.rank + factor for start, group in found for factor in group.kept)
    blocks = tuple(
        _average_blocks([group.blocks[j] for _, group in found], len(groups), order.order)
        for j in range(len(first.blocks))
    )
    return FactorGroup(order, kept, blocks)


def _average_blocks(blocks: Sequence[FactorBlock], fits: int, order: int) -> FactorBlock:
    """The factors of one feature.

    With factors of size s = K^(-1/d) and covariances c V, a fit adds s^(2 (d - 1)) c to the variance of
    its own predictor, to first order. For the mean of K such variances that must be 1 / K. The smoothing
    is what each fit chose.
    """
    size = fits ** (-1 / order)
    spread = size ** (-2 * (order - 1)) / fits
    prior = reduce(lambda left, right: left.beside(right), (block.prior for block in blocks))
    return blocks[0].replaced(
        prior,
        size * np.concatenate([block.mean for block in blocks]),
        spread * block_diag(*(block.covariance for block in blocks)),
        np.concatenate([block.edf for block in blocks]) / fits,
    )
