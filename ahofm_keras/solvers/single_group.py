"""One group of a block, with all others as they are: a small problem of its own."""

from __future__ import annotations

import numpy as np

from ahofm_keras.solvers.priors import Solution, System

# Of the Gram matrix: where the others leave less, they leave nothing but rounding.
_LEAST_LEFT = 1e-12
# Of the rounding of a Gram matrix: functions whose own entry is no larger are those that no row sees.
_SEEN = 100.0


def left_for(group: int, solution: Solution, system: System) -> System:
    """S and r of a group: its Gram matrix and sums, without what the others explain.

    With Q the group's precisions and C its part of A^-1, C = (S + Q)^-1 and the group's mean is C r. So
    C S = I - C Q, which has all its digits where Q is small, and Q C S = G - G A^-1 G, which has them
    where Q is large; likewise for r. Each row is taken from the one that is exact.
    """
    prior, gram, rhs = solution.prior, system.gram, system.rhs
    own = np.flatnonzero(prior.groups == group)
    precisions = prior.precisions[own]
    inverse = solution.inverse[np.ix_(own, own)]
    loose = precisions < gram.diagonal()[own]
    explained = gram[own] @ solution.inverse @ gram[:, own]
    own_gram = gram[np.ix_(own, own)]
    rows = np.where(loose, 1.0, precisions)[:, None] * inverse
    products = np.where(loose[:, None], np.eye(len(own)) - inverse * precisions, own_gram - explained)
    sums = np.where(loose, solution.mean[own], rhs[own] - gram[own] @ solution.mean)
    left = np.linalg.solve(rows, np.column_stack([products, sums]))
    seen = np.flatnonzero(_is_seen(own_gram))
    kept, kept_sums = np.zeros_like(own_gram), np.zeros(len(own))
    if not len(seen):  # rows of weight 0 alone, or none of that level
        return System(kept, kept_sums, system.dispersion)
    within = np.ix_(seen, seen)
    kept[within], kept_sums[seen] = _without_rounding(
        left[:, :-1][within], left[seen, -1], own_gram.diagonal()[seen]
    )
    return System(kept, kept_sums, system.dispersion)


def _is_seen(gram: np.ndarray) -> np.ndarray:
    """Which functions of a group some row sees, by its own Gram matrix `(r,)`.

    Of one that lives in a gap of its feature the entry is rounding, be it above 0 or below. In units of
    that rounding the functions beside it would be lost.
    """
    sizes = gram.diagonal()
    lowest = np.linalg.eigvalsh((gram + gram.T) / 2)[0]
    return np.asarray(sizes > _SEEN * max(-lowest, _LEAST_LEFT * sizes.max(), 0.0))


def _without_rounding(
    left: np.ndarray, sums: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """S as X' M X is, with no negative eigenvalue, and r = X' M y in its range.

    Where the others explain a group almost exactly, the digits of what they leave are lost. How much of
    S is rounding, its most negative eigenvalue tells.

    Args:
        left, sums: S and r as computed.
        sizes: diagonal of the group's own Gram matrix.
    """
    scale = np.sqrt(np.where(sizes > 0, sizes, 1.0))
    scaled = left / scale / scale[:, None]
    values, vectors = np.linalg.eigh((scaled + scaled.T) / 2)
    known = values > max(_LEAST_LEFT, -values[0])
    if known.all():
        return (left + left.T) / 2, sums
    values, vectors = values[known], vectors[:, known]
    outer, inner = scale[:, None] * vectors, vectors / scale[:, None]
    return (outer * values) @ outer.T, outer @ (inner.T @ sums)
