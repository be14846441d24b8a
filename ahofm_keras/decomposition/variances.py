"""Variances of parts over the product of the training margins, from second moments of the factors.

Parts of different subsets are uncorrelated there. The covariance of two groups' parts of one subset is a
sum over both groups' factors of products, one per variable, of the covariances of the factors.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import numpy as np

from ahofm_keras.moments import elementary_symmetric

if TYPE_CHECKING:
    from ahofm_keras.decomposition.parts import Parts

# Numbers in one piece of work: few enough to stay near the processor.
_PIECE = 100_000


def subset_variances(parts: Parts, subsets: np.ndarray) -> np.ndarray:
    """Variances of the parts of many subsets `(K, order)`."""
    total = np.zeros(len(subsets))
    candidates = parts.groups_with(subsets[0]) if len(subsets) == 1 else range(len(parts.groups))
    shares = {index: parts.shares_of_rest(index, subsets) for index in candidates}
    involved = [index for index, (chosen, _) in shares.items() if len(chosen)]
    for first, second in combinations_with_replacement(involved, 2):
        if not set(parts.groups[first].members) & set(parts.groups[second].members):
            continue
        (chosen_a, shares_a), (chosen_b, shares_b) = shares[first], shares[second]
        both, in_a, in_b = np.intersect1d(chosen_a, chosen_b, True, return_indices=True)
        if len(both):
            found = _covariances(parts, (first, second), subsets[both], shares_a[in_a], shares_b[in_b])
            total[both] += found if first == second else 2 * found
    return np.maximum(total, 0.0)


def order_variance(parts: Parts, order: int) -> float:
    """Variance of all parts of an order together; where possible, without a list of its subsets."""
    larger = [index for index, group in enumerate(parts.groups) if group.order > order]
    if any(parts.group_means[index].any() for index in larger):
        return float(subset_variances(parts, parts.subsets(order)).sum())
    own = [index for index, group in enumerate(parts.groups) if group.order == order]
    total = 0.0
    for first, second in combinations_with_replacement(own, 2):
        total += (1 if first == second else 2) * _joint_variance(parts, first, second)
    return max(total, 0.0)


def _covariances(
    parts: Parts,
    pair: tuple[int, int],
    subsets: np.ndarray,
    shares_a: np.ndarray,
    shares_b: np.ndarray,
) -> np.ndarray:
    """Covariances of two groups' parts of the same subsets."""
    common, moments = _second_moments(parts, *pair)
    place = np.full(len(parts.variables), -1)
    place[common] = np.arange(len(common))
    found = np.zeros(len(subsets))
    piece = max(1, _PIECE // moments[0].size)
    for start in range(0, len(subsets), piece):
        rows = slice(start, start + piece)
        product = moments[place[subsets[rows, 0]]]
        for column in range(1, subsets.shape[1]):
            product = product * moments[place[subsets[rows, column]]]
        found[rows] = np.einsum("kf,kfg,kg->k", shares_a[rows], product, shares_b[rows])
    return found


def _joint_variance(parts: Parts, first: int, second: int) -> float:
    """Covariance of all parts of two groups of one order: an elementary symmetric polynomial."""
    one, other = parts.groups[first], parts.groups[second]
    if len(set(one.members) & set(other.members)) < one.order:
        return 0.0
    _, moments = _second_moments(parts, first, second)
    return float(one.scale @ elementary_symmetric(moments, one.order) @ other.scale)


def _second_moments(parts: Parts, first: int, second: int) -> tuple[list[int], np.ndarray]:
    """Variables that two groups share, and the covariances of their factors `(v, F, G)`."""
    one, other = parts.groups[first], parts.groups[second]
    common = sorted(set(one.members) & set(other.members))
    moments = [one.weight_of(v).T @ parts.covariances[v] @ other.weight_of(v) for v in common]
    return common, np.stack(moments)
