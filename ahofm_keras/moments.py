"""Elementary symmetric polynomials (ANOVA kernels) of the factors."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any
Namespace = Any


def elementary_symmetric(phi: Array, order: int, namespace: Namespace = np) -> Array:
    """e_d: the sum over all d-subsets of features of the product of their factors.

    The paper's Lemma on AHOTs computes it from power sums, which cancel badly in float32. Here the
    features are joined in pairs, pairs of pairs and so on by

        e_d(A and B) = sum_i e_i(A) e_(d-i)(B),

    which only adds products (its error is relative to e_d(|phi|)), is linear in the number of
    features, and needs few, large operations: a loop over features would be as exact but compiles
    into a chain that grows with their number.

    Args:
        phi: `(p, ...)`, features first.
        order: d, from 1 to p.
        namespace: `numpy` or `keras.ops`.

    Returns:
        `(...)`.
    """
    # parts[i - 1] is e_i of each group of features, None where the groups have fewer than i.
    parts: list[Array | None] = [phi, *[None] * (order - 1)]
    groups = int(phi.shape[0])
    while groups > 1:
        half = groups // 2
        left = [part if part is None else part[:half] for part in parts]
        right = [part if part is None else part[half : 2 * half] for part in parts]
        joined = [_join(left, right, degree) for degree in range(1, order + 1)]
        if groups % 2:
            odd = [part if part is None else part[2 * half :] for part in parts]
            joined = [_append(part, rest, namespace) for part, rest in zip(joined, odd, strict=True)]
        parts, groups = joined, half + groups % 2
    result = parts[order - 1]
    assert result is not None, "order exceeds the number of features"
    return result[0]


def _join(left: list[Array | None], right: list[Array | None], degree: int) -> Array | None:
    """e_degree of two disjoint groups; e_0 is 1."""
    total = None
    for i in range(degree + 1):
        first: Array = left[i - 1] if i else 1
        second: Array = right[degree - i - 1] if degree - i else 1
        if first is None or second is None:
            continue
        product = second if not i else first if degree == i else first * second
        total = product if total is None else total + product
    return total


def _append(part: Array | None, rest: Array | None, namespace: Namespace) -> Array | None:
    """The odd group at the end goes up a level as it is."""
    if part is None:
        return None
    if rest is None:
        rest = namespace.zeros_like(part[:1])
    return namespace.concatenate([part, rest], axis=0)
