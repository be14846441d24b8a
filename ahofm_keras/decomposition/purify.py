"""Purification: what smaller subsets can explain of a part is moved to them.

Under the product of the margins every part is pure already. Where features are correlated, a part of two
features still has, on the rows, a share that a curve of one of them explains. Here it is found by least
squares on the rows with their weights, from the highest order down, taken from the part and given to the
smaller ones. The sum of all parts does not change.

Curves are sought among all functions that the model has of a variable. Of products of several, only as
many of the smoothest are taken as the rows can tell apart: with as many products as rows, any triple
would be explained by its pairs. On few rows, or where few rows with large values decide, independent
features look correlated too, and more is moved than a larger sample would ask for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ahofm_keras.decomposition.parts import Parts
from ahofm_keras.decomposition.ranking import over
from ahofm_keras.decomposition.read_rows import ReadRows, read_rows
from ahofm_keras.terms import Variable
from ahofm_keras.terms.groups import Subset

_ROWS = 4000
# Products of each size within a part: at most so many, and one for so many rows.
_PRODUCTS = 150
_ROWS_FOR_ONE = 20
# A function that differs from smoother ones by less than this is none of its own: x itself and the
# straight line of a spline of x differ by what the table of its axis misses.
_NEW = 1e-3
# Directions with less than this share of the largest one's variance are not told apart on the rows.
_RANK = 1e-12
# A part with a smaller share of the variance stays as it is.
_LEAST_SHARE = 1e-6

# Coefficients of the products of functions of some variables, (q_1, ..., q_t).
Tensors = dict[Subset, np.ndarray]


@dataclass
class Purification:
    """What is added to each part.

    Args:
        parts: of the model.
        rows: that features are correlated on.
        bases: `(m, q)` for each variable: functions orthonormal over the margin, the smoothest first.
        constant: added to the constant.
        moved: for each part the coefficients of products of functions of its variables, or of some.
    """

    parts: Parts
    rows: ReadRows
    bases: list[np.ndarray]
    constant: float = 0.0
    moved: dict[Subset, Tensors] = field(default_factory=dict)

    def add(self, part: Subset, within: Subset, tensor: np.ndarray) -> None:
        """Add products of functions of some of its variables to a part."""
        own = self.moved.setdefault(part, {})
        if not within:
            own[within] = own.get(within, 0.0) + tensor
        elif within in own:
            # Parts of different orders know different numbers of products.
            shape = np.maximum(own[within].shape, tensor.shape)
            own[within] = _widen(own[within], shape) + _widen(tensor, shape)
        else:
            own[within] = tensor

    def functions(self, variable: int, functions: np.ndarray) -> np.ndarray:
        """The functions that are moved, `(q, n)`, from all functions `(m, n)` of a variable."""
        return self.bases[variable].T @ (functions - self.parts.means[variable][:, None])

    def evaluate(self, subset: Subset, functions: Sequence[np.ndarray]) -> np.ndarray:
        """What is added to the part of a subset at rows, from the functions of its variables."""
        own = {v: self.functions(v, f) for v, f in zip(subset, functions, strict=True)}
        return self._sum(subset, own)

    def _sum(self, subset: Subset, own: dict[int, np.ndarray]) -> np.ndarray:
        total = np.zeros(own[subset[0]].shape[1])
        for within, tensor in self.moved.get(tuple(sorted(subset)), {}).items():
            chosen = [own[v][:size] for v, size in zip(within, tensor.shape, strict=True)]
            total += tensor.reshape(-1) @ _products(chosen)
        return total

    def evaluate_grid(self, subset: Subset, functions: Sequence[np.ndarray]) -> np.ndarray:
        """The same on a grid, from the functions along each of its axes."""
        own = {v: self.functions(v, f) for v, f in zip(subset, functions, strict=True)}
        total = np.zeros([f.shape[1] for f in functions])
        for within, tensor in self.moved.get(tuple(sorted(subset)), {}).items():
            for variable, size in zip(within, tensor.shape, strict=True):
                # The first axis is used up; the axis of points goes to the end.
                tensor = np.tensordot(tensor, own[variable][:size], (0, 0))
            axes = [subset.index(variable) for variable in within]
            tensor = tensor.transpose(np.argsort(axes)) if axes else tensor
            total += np.expand_dims(tensor, tuple(a for a in range(total.ndim) if a not in axes))
        return total

    @cached_property
    def on_rows(self) -> list[np.ndarray]:
        """The functions that are moved, of all variables at the rows."""
        return [self.functions(v, own) for v, own in enumerate(self.rows.functions)]

    @cached_property
    def _link_variance(self) -> float:
        return float(self.rows.variances(self.parts.link(self.rows.functions)))

    def values(self, subset: Subset) -> np.ndarray:
        """The purified part of a subset at the rows."""
        functions = [self.rows.functions[variable] for variable in subset]
        own = {variable: self.on_rows[variable] for variable in subset}
        return self.parts.evaluate(subset, functions) + self._sum(subset, own)

    def share(self, subset: Subset) -> float:
        """Variance over the rows of the purified part of a subset, over that of the link."""
        return float(over(float(self.rows.variances(self.values(subset))), self._link_variance))


def purify_parts(
    parts: Parts, data: Any = None, wanted: Subset | None = None, least: int = 1
) -> Purification:
    """Find what to move, on rows given or those of the fit.

    Args:
        parts: of the model.
        data: data frame or dict of columns, or None.
        wanted: the only subset whose purified part is asked for; what does not change it is left out.
        least: the smallest order that is asked for.

    Raises:
        DataError: no rows.
    """
    rows = read_rows(parts, data, _ROWS, "Purification")
    assert rows is not None
    bases = [_smoothest(v, c) for v, c in zip(parts.variables, parts.covariances, strict=True)]
    purification = Purification(parts, rows, bases)
    # Threads inside small products would only wait for each other.
    with threadpool_limits(1, "blas"):
        for order in range(parts.largest_order, max(least, len(wanted or ())) - 1, -1):
            for subset in _to_purify(purification, order):
                if set(wanted or ()) <= set(subset):
                    _purify(purification, subset)
    return purification


def _to_purify(purification: Purification, order: int) -> list[Subset]:
    """Subsets with a part that is large enough, or to which something was moved."""
    parts = purification.parts
    subsets = parts.subsets(order)
    large = subsets[parts.variances(subsets) > _LEAST_SHARE * parts.total_variance]
    found = {tuple(map(int, subset)) for subset in large}
    return sorted(found | {part for part in purification.moved if len(part) == order})


def _purify(purification: Purification, subset: Subset) -> None:
    """Move what smaller subsets explain of one part, on the rows."""
    rows = purification.rows
    own = purification.on_rows
    smaller = [w for size in range(len(subset)) for w in combinations(subset, size)]
    chosen = [[own[v][: _most(rows, len(subset), len(w))] for v in w] for w in smaller]
    products = [_products(functions) for functions in chosen]
    products[0] = np.ones((1, len(rows.weight)))
    solution = _least_squares(np.concatenate(products), purification.values(subset), rows.weight)
    start = 0
    for within, functions, product in zip(smaller, chosen, products, strict=True):
        tensor = solution[start : start + len(product)].reshape([len(f) for f in functions])
        start += len(product)
        purification.add(subset, within, -tensor)
        if within:
            purification.add(within, within, tensor)
        else:
            purification.constant += float(tensor)


def _most(rows: ReadRows, order: int, size: int) -> int | None:
    """How many functions of each variable enter products of so many, within a part of an order."""
    if size < 2:
        return None
    # Rows of very different weights count as fewer.
    count = 1 / float(np.sum(rows.weight**2))
    products = min(count / _ROWS_FOR_ONE, _PRODUCTS) / comb(order, size)
    return max(1, int(products ** (1 / size) + 1e-9))


def _least_squares(design: np.ndarray, values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Coefficients of the rows of a design `(k, n)` that explain values; the smallest such ones."""
    gram = (design * weight) @ design.T
    scale = np.sqrt(np.maximum(gram.diagonal(), np.finfo(float).tiny))
    eigenvalues, vectors = np.linalg.eigh(gram / scale / scale[:, None])
    kept = eigenvalues > _RANK * eigenvalues[-1]
    moments = vectors[:, kept].T @ (((design * weight) @ values) / scale)
    return vectors[:, kept] @ (moments / eigenvalues[kept]) / scale


def _smoothest(variable: Variable, covariance: np.ndarray) -> np.ndarray:
    """Orthonormal functions over the margin that span all of a variable, `(m, q)`, smooth ones first."""
    roughness = [np.where(own.is_atom, np.inf, own.eigenvalues) for own in variable.features]
    order = np.argsort(np.concatenate([*roughness, np.zeros(len(variable.products))]), kind="stable")
    found = np.zeros((len(covariance), 0))
    for place in order:
        size = np.sqrt(covariance[place, place])
        function = np.zeros(len(covariance))
        function[place] = 1.0
        for _ in range(2):
            function = function - found @ (found.T @ covariance @ function)
        left = np.sqrt(max(float(function @ covariance @ function), 0.0))
        if left > _NEW * size:
            found = np.column_stack([found, function / left])
    return found


def _products(functions: list[np.ndarray]) -> np.ndarray:
    """Products of one function of each variable at rows, `(q_1 ... q_t, n)`; 1 of none."""
    total = np.ones((1, 1))
    for own in functions:
        total = (total[:, None] * own[None]).reshape(-1, own.shape[1])
    return total


def _widen(tensor: np.ndarray, shape: np.ndarray) -> np.ndarray:
    return np.pad(tensor, [(0, wide - own) for own, wide in zip(tensor.shape, shape, strict=True)])
