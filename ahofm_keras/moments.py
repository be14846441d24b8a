"""Elementary symmetric polynomials (ANOVA kernels) of the factors, and their moments."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

Array = Any
Namespace = Any
Key = tuple[int, int]

# By how much a variance may be smaller than what is subtracted to get it: half of the digits are left.
_LOST = 1e8


@cache
def triangle(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs f <= g, one after the other; asked for thousands of times in a fit."""
    first, second = np.triu_indices(size)
    return first, second


@cache
def pair_places(size: int) -> np.ndarray:
    """Where a pair stands among the pairs f <= g, in either order: `(F, F)`."""
    first, second = triangle(size)
    places = np.zeros((size, size), int)
    places[first, second] = places[second, first] = np.arange(len(first))
    return places


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


def lossy_limit(order: int) -> float:
    """How many times larger than all others a feature may be that is taken out of e_d."""
    return float(_LOST ** (1 / (2 * order)))


class FactorMoments:
    """First and second moments of e_d of random factors, feature by feature in and out again.

    The factors phi_jf of feature j have means m_jf and covariances C_jfg over f, g; features are
    independent. With K_ab^fg = Cov(e_a(phi_.f), e_b(phi_.g)), adding feature j makes

        e_a  <- e_a + m_f e_(a-1)
        K_ab <- K_ab + m_f K_(a-1,b) + m_g K_(a,b-1) + (m_f m_g + C_fg) K_(a-1,b-1)
                     + C_fg e_(a-1)^f e_(b-1)^g

    Covariances, not the raw moments T_ab = K_ab + e_a e_b, are carried: nothing has to cancel when a
    variance is wanted, and without variances they vanish. Of order d only sums over factors are ever
    asked for, so only these are kept: an order-2 state is F^2 + 3F + 2 numbers a row.

    Taking a feature out is the same recursion solved for the values before. That loses digits where
    the feature dominates; `lossy_rows` tells where.

    Args:
        order: d, at least 2.
        rank: number of factors F.
        rows: n.
        random: whether factors have variances.
        namespace: `numpy` or `keras.ops`; taking features out needs `numpy`.

    Attributes:
        total: sum_f E e_d, `(n,)`.
        variance: Var(sum_f e_d), `(n,)`.
    """

    def __init__(
        self, order: int, rank: int, rows: Any, random: bool = True, namespace: Namespace = np
    ) -> None:
        self.order = order
        self.rank = rank
        self.random = random
        self._namespace = namespace
        self._one = np.ones((rank, 1))
        self._sizes: Any = np.zeros((rank, rows)) if namespace is np else None
        # Means have the keys (0, a), covariances (a, b); values of order d are summed over factors.
        self._keys: list[Key] = [(0, a) for a in range(1, order + 1)]
        if random:
            pairs = [(a, b) for a in range(1, order + 1) for b in range(a, order + 1)]
            self._keys += sorted(pairs, key=sum)
        self._state = {
            (a, b): namespace.zeros(self._shape(a, b, rows), dtype="float64") for a, b in self._keys
        }

    def _shape(self, a: int, b: int, rows: Any) -> tuple[Any, ...]:
        axes = (a > 0) + (b < self.order) - (a == self.order)
        return (self.rank,) * axes + (rows,)

    @property
    def total(self) -> np.ndarray:
        return self._state[0, self.order]

    @property
    def variance(self) -> np.ndarray:
        if not self.random:
            return np.zeros_like(self.total)
        return self._state[self.order, self.order]

    @property
    def numbers(self) -> int:
        """How many numbers it holds."""
        return sum(int(np.prod(values.shape)) for values in self._state.values())

    def add(self, means: np.ndarray, covariances: np.ndarray | None) -> None:
        """Take a feature in: means `(F, n)`, covariances `(F, F, n)`."""
        self._shift(means, covariances, 1.0)

    def remove(self, means: np.ndarray, covariances: np.ndarray | None) -> None:
        """Take a feature out again."""
        self._shift(means, covariances, -1.0)

    def lossy_rows(self, means: np.ndarray, covariances: np.ndarray | None) -> np.ndarray:
        """Rows where a feature that was taken out dominated the others so much that digits are lost.

        Each level of the recursion loses as many digits as the feature is larger than the others.
        """
        size = _sizes(means, covariances)
        return np.flatnonzero((size > lossy_limit(self.order) * np.abs(self._sizes)).any(axis=0))

    def replace(self, rows: np.ndarray, other: FactorMoments) -> None:
        """Take some rows from another state."""
        self._sizes[:, rows] = other._sizes
        for key, values in self._state.items():
            values[..., rows] = other._state[key]

    @property
    def slopes(self) -> np.ndarray:
        """E e_(d-1): what a further feature's factors are multiplied by, `(F, n)`."""
        return self._state[0, self.order - 1]

    def slope_products(self) -> np.ndarray:
        """T_(d-1,d-1) of the pairs f <= g, `(F (F + 1) / 2, n)`."""
        first, second = triangle(self.rank)
        products = self.slopes[first] * self.slopes[second]
        if self.random:
            products += self._state[self.order - 1, self.order - 1][first, second]
        return products

    def slope_covariance(self) -> np.ndarray | float:
        """sum_g Cov(e_(d-1)^f, e_d^g), `(F, n)`."""
        return self._state[self.order - 1, self.order] if self.random else 0.0

    def _shift(self, means: np.ndarray, covariances: np.ndarray | None, sign: float) -> None:
        """Add or subtract increments, which hold only values of lower degree without the feature.

        So degrees fall when it is taken in and rise when it is taken out.
        """
        if self._sizes is not None:
            self._sizes += sign * _sizes(means, covariances)
        if self.random and covariances is None:
            covariances = self._namespace.zeros_like(means[:, None] * means)
        for key in self._keys[::-1] if sign > 0 else self._keys:
            self._state[key] = self._state[key] + sign * self._increment(key, means, covariances)

    def _increment(self, key: Key, means: np.ndarray, covariances: Any) -> Array:
        """By how much one entry grows when a feature comes in."""
        a, b = key
        if not a:
            product = means * self._mean(b - 1)
            return self._sum(product) if b == self.order else product
        if b < self.order:
            return self._inner_increment(a, b, means, covariances)
        lower = self._mean(self.order - 1)
        if a < b:
            grown = self._dot(covariances, lower) * self._mean(a - 1)
            grown = grown + self._dot(self._state[a, b - 1], means)
            if a > 1:
                before = self._state[a - 1, b - 1]
                grown = grown + means * (self._state[a - 1, b] + self._dot(before, means))
                grown = grown + self._sum(covariances * before, axis=1)
            return grown
        before = self._state[a - 1, b - 1]
        grown = lower * self._dot(covariances, lower)
        grown = grown + means * (2 * self._state[a - 1, b] + self._dot(before, means))
        return self._sum(grown + self._sum(covariances * before, axis=1))

    def _inner_increment(self, a: int, b: int, means: np.ndarray, covariances: np.ndarray) -> Array:
        if (a, b) == (1, 1):
            return covariances
        grown = covariances * (self._mean(a - 1)[:, None] * self._mean(b - 1))
        swap = self._namespace.swapaxes
        before = self._state[a, b - 1] if a < b else swap(self._state[a - 1, b], 0, 1)
        grown = grown + means * before
        if a > 1:
            grown = grown + means[:, None] * self._state[a - 1, b]
            grown = grown + (means[:, None] * means + covariances) * self._state[a - 1, b - 1]
        return grown

    def _mean(self, degree: int) -> np.ndarray:
        """E e_a of each factor; e_0 is 1."""
        return self._state[0, degree] if degree else self._one

    def _dot(self, matrix: Array, vector: Array) -> Array:
        """sum_g matrix_fg vector_g in every row."""
        return self._namespace.einsum("fgn,gn->fn", matrix, vector)

    def _sum(self, values: Array, axis: int = 0) -> Array:
        return self._namespace.sum(values, axis=axis)


def _sizes(means: np.ndarray, covariances: np.ndarray | None) -> np.ndarray:
    """Root of the second moment of each factor."""
    if covariances is None:
        return np.abs(means)
    return np.sqrt(means**2 + np.einsum("ffn->fn", covariances))
