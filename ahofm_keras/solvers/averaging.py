"""The average of several fits, which is a fit of the same kind.

eta is a sum of products of d factors in each order. With the factors of K fits side by side, each times
K^(-1/d), it is the mean of the K predictors: the average of K models of rank F is one of rank K F. Fits
from different starts end in different optima that explain the data about equally well, and what chance
put into one of them the others do not share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ahofm_keras.solvers import tasks
from ahofm_keras.solvers.blocks import FactorBlock, LinearBlock
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.groups import FactorGroup
from ahofm_keras.solvers.priors import System
from ahofm_keras.solvers.spreads import Spread
from ahofm_keras.solvers.state import State
from ahofm_keras.terms import Design, InteractionOrder


def are_enough(engine: Engine, states: Sequence[State]) -> bool:
    """Whether the average of more fits than those that ended in some states would be hardly better."""
    if len(states) < 2:
        return False
    spread, missed = engine.store.reduce(tasks.disagreement, states[-1], tuple(states))
    return do_agree(spread, missed, len(states), engine.settings.agreement)


def do_agree(spread: float, missed: float, starts: int, agreement: float) -> bool:
    """Whether the average of more fits would predict hardly better.

    With v the variance of a prediction over starts, an average of K has the expected squared error m + v
    / K, m that of an average of infinitely many: its root is larger by the share v / (2 K m). On the
    training rows the starts differ about as much, over the squared residuals, as on others. Two or three
    may agree by chance, so one start less than there are is counted.

    Args:
        spread, missed: see `tasks.disagreement`.
        starts: number of fits K.
        agreement: share of the error.
    """
    return bool(spread <= 2 * agreement * (starts - 1) * missed)


def average_states(states: Sequence[State], bounds: Sequence[float], design: Design) -> State:
    """The average of fits to the same rows.

    Its variances are about the mean of theirs, not those of K independent fits, because all saw the same
    rows. It has more factors than a fit, so that its moments are not kept: no update follows.

    Args:
        states: of fits of one model.
        bounds: of these.
        design: of the model with room for all of them.
    """
    groups = []
    for order in design.layout.only.orders:
        found = [group for state in states for group in state.groups_of(order.key)]
        groups += [_scaled(group, order, number, len(states)) for number, group in enumerate(found)]
    dispersion = float(np.mean([state.dispersion for state in states]))
    linear = _average_linear([state.linear for state in states], dispersion, states[-1].gram)
    return replace(
        states[-1], dispersion=dispersion, linear=linear, groups=tuple(groups), bounds=tuple(bounds)
    )


def _average_linear(blocks: Sequence[LinearBlock], dispersion: float, gram: np.ndarray) -> LinearBlock:
    """Mean of the means; covariance at the mean of the prior variances.

    Tests of terms take covariance and smoothing apart again, so the two have to fit exactly: a mean of
    covariances would not. What only some of the fits switched off keeps the uncertainty of the others.
    """
    with np.errstate(divide="ignore", over="ignore"):
        variances = np.exp([-block.prior.parameters for block in blocks])
        prior = blocks[0].prior.at(-np.log(np.mean(variances, axis=0)))
    nothing = np.zeros(len(blocks[0].mean))
    average = blocks[0].solved(prior.solve(System(gram, nothing, dispersion)), dispersion, gram)
    return replace(
        average,
        mean=np.mean([block.mean for block in blocks], axis=0),
        averaged_smoothing=np.mean([block.smoothing_covariance for block in blocks], axis=0),
    )


def _scaled(group: FactorGroup, order: InteractionOrder, number: int, fits: int) -> FactorGroup:
    """A group of one of several fits as a group of their average."""
    size = order.size
    kept = tuple(number * size + factor % size for factor in group.kept)
    blocks = tuple(_scaled_block(block, fits, order.order) for block in group.blocks)
    return FactorGroup(order, number, kept, blocks)


def _scaled_block(block: FactorBlock, fits: int, order: int) -> FactorBlock:
    """The factors of one feature.

    With factors of size s = K^(-1/d) and covariances c V, a fit adds s^(2 (d - 1)) c to the variance of
    its own predictor, to first order. For the mean of K such variances that must be 1 / K. The smoothing
    is what each fit chose.
    """
    size = fits ** (-1 / order)
    spread = size ** (-2 * (order - 1)) / fits
    return replace(
        block,
        mean=size * block.mean,
        spread=Spread(
            spread * block.covariance, block.edf / fits, dispersion=spread * block.spread.dispersion
        ),
        variational=False,
    )
