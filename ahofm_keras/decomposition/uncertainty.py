"""Standard errors of parts, from the posterior of all coefficients.

The linear block (linear terms, smooths and tensor products) has one joint covariance; the factors of
a feature in one group of an order have another, and blocks are independent. So the variance of a part is
that of what is linear in its coefficients, plus for each group of each order of each interaction term
that of a sum over factors of products of independent random factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ahofm_keras.bands import evaluate_band
from ahofm_keras.decomposition.groups import places_by_group
from ahofm_keras.decomposition.parts import Parts
from ahofm_keras.terms.groups import DESIGN, FACTORS, PRODUCTS, Group, Subset


class Uncertainty:
    """What the posterior of a model says of its parts.

    Args:
        parts: of a model that has a posterior.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.model = parts.model
        self.layer: Any = parts.model.posterior
        self.layout = self.model.design.layout.only
        self._bands: dict[tuple[Any, ...], np.ndarray] = {}

    @cached_property
    def linear_root(self) -> np.ndarray:
        """L of the linear block's covariance L L', `(q, 2 q)`."""
        return np.asarray(self.layer.linear_roots)

    def standard_errors(self, subset: Subset, grid: Sequence[np.ndarray]) -> np.ndarray:
        """Of the part of a subset on a grid, from the values `(n_j,)` along each of its axes."""
        functions = [
            self.parts.variables[v].functions(values) for v, values in zip(subset, grid, strict=True)
        ]
        variance = self._linear_variance(subset, functions)
        for index in self.parts.groups_with(subset):
            factorized = self.parts.groups[index].kind == FACTORS
            if factorized and self.parts.rest(index, subset) is not None:
                variance = variance + self._interaction_variance(index, subset, grid, functions)
        return self.model.scale * np.sqrt(np.maximum(variance, 0.0))

    # What is linear in the coefficients -------------------------------------------------------------

    def _linear_variance(self, subset: Subset, functions: Sequence[np.ndarray]) -> np.ndarray:
        shape = [own.shape[1] for own in functions]
        places, rows = self.linear_rows(subset, functions)
        return self._variance_of(places, rows).reshape(shape)

    def _variance_of(self, places: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Of sums of coefficients, in the model's scale."""
        root = self.linear_root[places]
        found: np.ndarray = np.einsum("kn,kn->n", rows, (root @ root.T) @ rows)
        return found

    def variance_of_rows(self, places: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Variances of sums of coefficients of the linear block, in units of the link, `(n,)`.

        Args:
            places: of the coefficients, `(k,)`; one may stand there several times.
            rows: what each is multiplied with, `(k, n)`.
        """
        return np.asarray(self.model.scale**2 * self._variance_of(places, rows))

    def linear_rows(
        self, subset: Subset, functions: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """A part by the coefficients of the linear block that it has, in the model's scale.

        Returns:
            Their places in the block `(k,)`, and what each is multiplied with on the grid `(k, n)`.
        """
        points = int(np.prod([own.shape[1] for own in functions]))
        places, rows = [np.zeros(0, int)], [np.zeros((0, points))]
        for index in self.parts.groups_with(subset):
            group, rest = self.parts.groups[index], self.parts.rest(index, subset)
            if rest is None or group.kind not in (PRODUCTS, DESIGN):
                continue
            start = self.layout.by_name[group.source[0]].where.start
            if group.kind == PRODUCTS:
                places.append(start + group.kept)
                rows.append(self._products(group, subset, functions))
            else:
                product = (rest * group.unit)[:, None]
                for variable, values in zip(subset, functions, strict=True):
                    factors = self.parts.factors(index, variable, values)
                    product = (product[:, :, None] * factors[:, None]).reshape(len(rest), -1)
                places.append(start + group.kept)
                rows.append(product)
        return np.concatenate(places), np.concatenate(rows)

    def _products(self, group: Group, subset: Subset, functions: Sequence[np.ndarray]) -> np.ndarray:
        """Products of one function of each margin on the grid of a subset, `(k, n)`, in C order.

        Margins that are not in the subset enter by the means of their functions.
        """
        order, total = len(group.members), np.ones(1)
        for margin, variable in enumerate(group.members):
            feature = group.feature_of(variable)
            shape = [1] * (order + len(subset))
            if variable in subset:
                axis = subset.index(variable)
                own = self._centred(variable, feature, functions[axis])
                shape[order + axis] = own.shape[1]
            else:
                own = self.parts.means[variable][self.parts.variables[variable].columns_of(feature)]
            shape[margin] = len(own)
            total = total * own.reshape(shape)
        return total.reshape(len(group.kept), -1)

    def _centred(self, variable: int, place: int, functions: np.ndarray) -> np.ndarray:
        """Functions of one feature, `(r, n)`, less their means over the margin."""
        own = self.parts.variables[variable].columns_of(place)
        return functions[own] - self.parts.means[variable][own][:, None]

    # Products of random factors ---------------------------------------------------------------------

    def _interaction_variance(
        self,
        index: int,
        subset: Subset,
        grid: Sequence[np.ndarray],
        functions: Sequence[np.ndarray],
    ) -> np.ndarray:
        """Variance of sum_f of products of factors, on the grid.

        Factors of different groups are independent: their variances add up.
        """
        shape = [own.shape[1] for own in functions]
        total = np.zeros(shape)
        for chosen in places_by_group(self.model, self.parts.groups[index]):
            total += self._product_variance(index, chosen, subset, grid, functions).reshape(shape)
        return total

    def _product_variance(
        self,
        index: int,
        chosen: np.ndarray,
        subset: Subset,
        grid: Sequence[np.ndarray],
        functions: Sequence[np.ndarray],
    ) -> np.ndarray:
        """The same of the factors of one group, all points but those of the last axis in one.

        With P the products of means and K their covariances over the factors f, g, a further factor with
        means m and covariances C makes K (m m' + C) + P C of K and P m m' of P. Nothing cancels.
        """
        group = self.parts.groups[index].part(chosen)
        rank = len(chosen)
        start, variance = self._rest_moments(index, chosen, subset)
        product = np.outer(start, start).reshape(-1, 1)
        covariance = variance.reshape(-1, 1)
        for axis, variable in enumerate(subset):
            means = self.parts.factors(index, variable, functions[axis])[chosen]
            spread = self._factor_covariances(group, variable, grid[axis]).reshape(rank**2, -1)
            squares = (means[:, None] * means).reshape(rank**2, -1)
            if axis == len(subset) - 1:
                return covariance.T @ (squares + spread) + product.T @ spread
            covariance = _outer(covariance, squares + spread) + _outer(product, spread)
            product = _outer(product, squares)
        raise AssertionError("a subset has variables")

    def _factor_covariances(self, group: Group, variable: int, values: np.ndarray) -> np.ndarray:
        """Posterior covariances of factors, less their means, at values of a variable: `(F, F, n)`."""
        cells = self.model.design.features[group.feature_of(variable)].cells(values)
        return evaluate_band(self._band(group, group.members.index(variable)), cells.cell, cells.values)

    def _band(self, group: Group, j: int) -> np.ndarray:
        """Of the covariances of factors of member j, `(F, F, M, W)`; every part asks for it."""
        key = group.source, j, tuple(group.kept)
        if key not in self._bands:
            place = self.layout.order_index[group.source]
            self._bands[key] = self.layer.band(place, j, group.kept, centred=True)
        return self._bands[key]

    def _rest_moments(
        self, index: int, chosen: np.ndarray, subset: Subset
    ) -> tuple[np.ndarray, np.ndarray]:
        """Means `(F,)` and covariances `(F, F)` of what stands for the variables not in a subset.

        They enter by the means of their functions over the margins, e_a of which are added variable by
        variable as in `FactorMoments`.
        """
        group = self.parts.groups[index].part(chosen)
        missing, rank = group.order - len(subset), len(chosen)
        means = [np.ones(rank), *np.zeros((missing, rank))]
        spread = np.zeros((missing + 1, missing + 1, rank, rank))
        if not missing:
            return means[0], spread[0, 0]
        for j, variable in enumerate(group.members):
            if variable in subset:
                continue
            m = self.parts.group_means[index][j][chosen]
            C = self.layer.mean_covariance(self.layout.order_index[group.source], j, group.kept)
            for a in range(missing, 0, -1):
                for b in range(missing, 0, -1):
                    spread[a, b] += m[:, None] * spread[a - 1, b] + m * spread[a, b - 1]
                    spread[a, b] += (np.outer(m, m) + C) * spread[a - 1, b - 1]
                    spread[a, b] += C * np.outer(means[a - 1], means[b - 1])
            means = [means[0], *(means[a] + m * means[a - 1] for a in range(1, missing + 1))]
        return means[missing], spread[missing, missing]


def _outer(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Products at all points of two grids, `(k, a)` and `(k, b)` -> `(k, a b)`."""
    return (first[:, :, None] * second[:, None]).reshape(len(first), -1)
