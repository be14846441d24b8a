"""Smooths and tensor products that were switched off while others explained their part come back.

At a large tau the evidence is flat: steps do not lead back from there. What a group would explain now is
a small problem of its own, with all others as they are: its Gram matrix and sums are what the others
leave, G_gg - G_gr A_rr^-1 G_rg and b_g - G_gr A_rr^-1 b_r.
"""

from __future__ import annotations

import numpy as np

from ahofm_keras.solvers.priors import ACTIVE, BlockPrior, Solution

_STEPS = 15
# Steps end where the evidence gains less; sweeps go on from there.
_LEAST_GAIN = 0.01
# What gains the evidence less stays off.
_WORTH = 0.01


def revive_groups(prior: BlockPrior, gram: np.ndarray, rhs: np.ndarray, dispersion: float) -> None:
    """Take groups in again where the evidence gains; leave out those that are not worth their price."""
    solution = prior.solve(gram, rhs, dispersion)
    found = _find(prior, solution, gram, rhs, dispersion)
    strongest = sorted(found, key=lambda group: found[group][0])[-1:]
    # Groups that explain the same, as equal columns do, may together be worse than none.
    for chosen in ([*found], strongest) if len(found) > 1 else ([*found],) if found else ():
        kept = prior.parameters
        prior.parameters = kept.copy()
        for group in chosen:
            prior.parameters[group] = found[group][1]
        revived = prior.adapt(gram, rhs, dispersion, _STEPS, _LEAST_GAIN)
        if revived.evidence >= solution.evidence:
            solution = revived
            break
        prior.parameters = kept
    prior.switch_off(solution, gram, rhs, dispersion)


def _find(
    prior: BlockPrior, solution: Solution, gram: np.ndarray, rhs: np.ndarray, dispersion: float
) -> dict[int, tuple[float, np.ndarray]]:
    """Groups that are off and would gain the evidence something: how much, and their parameters."""
    off = np.flatnonzero(prior.free[:, -1] & (prior.edf(solution, gram) < ACTIVE))
    if not len(off):
        return {}
    places = {int(group): np.flatnonzero(prior.groups == group) for group in off}
    every = np.concatenate([*places.values()])
    explained = gram[every] @ solution.inverse
    left = rhs[every] - gram[every] @ solution.mean
    found, begin = {}, 0
    for group, own in places.items():
        rows = slice(begin, begin + len(own))
        begin = rows.stop
        own_gram = gram[np.ix_(own, own)] - explained[rows] @ gram[:, own]
        alone = prior.only(group)
        before = alone.solve(own_gram, left[rows], dispersion)
        alone.parameters = alone.start
        after = alone.adapt(own_gram, left[rows], dispersion, _STEPS, _LEAST_GAIN)
        if after.evidence > before.evidence + _WORTH:
            found[group] = after.evidence - before.evidence, alone.parameters[0]
    return found
