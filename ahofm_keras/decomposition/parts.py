"""A fitted model as a constant and parts of subsets of variables: the functional ANOVA decomposition.

Every term is a sum of products of functions of single variables. Where each function is split into its
mean over the training margin and the rest, the products fall apart into parts that have mean zero along
each of their variables and are uncorrelated under the product of the margins. This is exact: the
constant and all parts add up to the link, but where its limit acts (`Parts.limit`) and for terms that
are no such products (`Parts.opaque`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain, combinations
from math import comb
from typing import Any

import numpy as np

from ahofm_keras.decomposition.groups import read_groups
from ahofm_keras.decomposition.variances import order_variance, subset_variances
from ahofm_keras.errors import DataError, NotFittedError
from ahofm_keras.model import AdditiveModel
from ahofm_keras.model.parameters import ParameterView
from ahofm_keras.moments import elementary_symmetric
from ahofm_keras.terms import Group, Margin, Margins, Variable
from ahofm_keras.terms.groups import Subset
from ahofm_keras.terms.margins import CENTRED, function_means

# Numbers in one piece of work: few enough to stay near the processor.
_PIECE = 100_000
# A share of the variance below this is what is left of a part that was switched off.
NOTHING = 1e-10


def _count_rows(functions: Sequence[np.ndarray]) -> int:
    """Rows of functions of all variables; without a variable every row is the same one."""
    return functions[0].shape[1] if functions else 1


class Parts:
    """The decomposition of one predictor of a model.

    Args:
        model: fitted.
        parameter: which predictor, see `readable`.

    Attributes:
        model: that predictor, which is the model where it has one.
        parameter: its name; None where the model has one predictor.
        variables: with the functions that terms have of them.
        margins: of the training data.
        means: of the functions of each variable, `(m,)`.
        covariances: of the functions of each variable, `(m, m)`.
        groups: products of functions, by term and order.
        opaque: terms that are no such products, less their means; see `read_rows.opaque_on`.
        raw_constant: the link where all of them are 0, without the offset.
    """

    def __init__(self, model: AdditiveModel, parameter: str | None = None) -> None:
        model = readable(model, parameter)
        assert model.design.margins is not None
        self.model = model
        self.parameter = model.of_parameter
        self.variables: list[Variable] = model.design.variables()
        self.margins: Margins = model.design.margins
        moments = [_moments(v, m) for v, m in zip(self.variables, self.margins.single, strict=True)]
        self.means = [mean for mean, _ in moments]
        self.covariances = [covariance for _, covariance in moments]
        self.raw_constant, self.groups, self.opaque = read_groups(model, self.variables)

    # Subsets --------------------------------------------------------------------------------------

    @property
    def largest_order(self) -> int:
        """Number of variables in the largest products, switched off or not."""
        return max((group.order for group in self.groups), default=0)

    def subsets(self, order: int) -> np.ndarray:
        """All subsets of a size that have a part, be it 0, `(K, order)`, ascending."""
        members = {
            tuple(sorted(group.members))
            for index, group in enumerate(self.groups)
            if group.order == order or (group.order > order and self.group_means[index].any())
        }
        found = [_combinations(own, order) for own in members]
        if not found:
            return np.zeros((0, order), int)
        return found[0] if len(found) == 1 else np.unique(np.concatenate(found), axis=0)

    def has(self, subset: Subset) -> bool:
        """Whether some term has products of functions of all these variables."""
        return any(len(subset) <= self.groups[index].order for index in self.groups_with(subset))

    def groups_with(self, subset: Iterable[int]) -> list[int]:
        """Positions of the groups that have all these variables."""
        found = set(range(len(self.groups)))
        for variable in subset:
            found &= self._groups_by_variable[variable]
        return sorted(found)

    @cached_property
    def _groups_by_variable(self) -> list[set[int]]:
        return [
            {index for index, group in enumerate(self.groups) if variable in group.members}
            for variable in range(len(self.variables))
        ]

    def label(self, subset: Iterable[int]) -> str:
        return ":".join(self.variables[variable].label for variable in subset)

    # Means along the variables that are not in a subset ---------------------------------------------

    @cached_property
    def group_means(self) -> list[np.ndarray]:
        """Means of all factors of each group `(members, F)`, 0 where they are rounding."""
        found = []
        for group in self.groups:
            means = np.stack(
                [self.means[v] @ w for v, w in zip(group.members, group.weights, strict=True)]
            )
            variances = [self.factor_covariance(group, v).diagonal() for v in group.members]
            spread = np.sqrt(np.maximum(variances, 0.0))
            found.append(np.where(np.abs(means) > CENTRED * spread, means, 0.0))
        return found

    def factor_covariance(self, group: Group, variable: int) -> np.ndarray:
        """Covariances of a group's factors over the margin of a variable, `(F, F)`."""
        weights = group.weight_of(variable)
        return weights.T @ self.covariances[variable] @ weights

    def rest(self, index: int, subset: Subset) -> np.ndarray | None:
        """What stands for the variables that are not in a subset, `(F,)`; None where it has no part.

        Where the subset is smaller than the group's order, the other functions enter by their means.
        """
        group = self.groups[index]
        missing = group.order - len(subset)
        if missing < 0 or not len(group.scale) or not set(subset) <= set(group.members):
            return None
        if missing == 0:
            return np.ones(len(group.scale))
        others = [j for j, v in enumerate(group.members) if v not in subset]
        means = self.group_means[index][others]
        if len(others) < missing or not means.any():
            return None
        return elementary_symmetric(means, missing)

    def share_of_rest(self, index: int, subset: Subset) -> np.ndarray | None:
        """What multiplies the product over a subset, in units of the link: `(F,)` or None."""
        rest = self.rest(index, subset)
        return None if rest is None else rest * self.groups[index].scale

    def shares_of_rest(self, index: int, subsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which of many subsets have a part in a group, and what multiplies their products `(K, F)`."""
        group = self.groups[index]
        place = self.places_in(group)
        missing, rank = group.order - subsets.shape[1], len(group.scale)
        means = self.group_means[index]
        if missing < 0 or not rank or (missing > 0 and not means.any()):
            return np.zeros(0, int), np.zeros((0, rank))
        inside = np.flatnonzero((place[subsets] >= 0).all(axis=1))
        if missing == 0:
            return inside, np.broadcast_to(group.scale, (len(inside), rank))
        shares = np.zeros((len(inside), rank))
        piece = max(1, _PIECE // means.size)
        for start in range(0, len(inside), piece):
            own = place[subsets[inside[start : start + piece]]]
            # A mean of 0 takes a variable of the subset out of all products.
            others = np.repeat(means[:, None], len(own), axis=1)
            others[own.T, np.arange(len(own))] = 0.0
            shares[start : start + piece] = elementary_symmetric(others, missing) * group.scale
        return inside, shares

    def places_in(self, group: Group) -> np.ndarray:
        """Position of each variable among a group's members, -1 where it is none."""
        place = np.full(len(self.variables), -1)
        place[list(group.members)] = np.arange(len(group.members))
        return place

    @cached_property
    def constant(self) -> float:
        """The mean of the link over the product of the margins, without the offset."""
        total = self.raw_constant
        for index in range(len(self.groups)):
            share = self.share_of_rest(index, ())
            total += 0.0 if share is None else float(share.sum())
        return total

    # Values ---------------------------------------------------------------------------------------

    def factors(self, index: int, variable: int, functions: np.ndarray) -> np.ndarray:
        """Centred factors of a group at functions `(m, n)` of a variable, `(F, n)`."""
        mean = self.group_means[index][self.groups[index].members.index(variable)]
        return self.groups[index].weight_of(variable).T @ functions - mean[:, None]

    def evaluate(self, subset: Subset, functions: Sequence[np.ndarray]) -> np.ndarray:
        """The part of a subset at rows, from the functions `(m, n)` of each of its variables."""
        total = np.zeros(functions[0].shape[1])
        for index in self.groups_with(subset):
            share = self.share_of_rest(index, subset)
            if share is not None:
                product = share[:, None]
                for variable, own in zip(subset, functions, strict=True):
                    product = product * self.factors(index, variable, own)
                total += product.sum(axis=0)
        return total

    def evaluate_grid(self, subset: Subset, functions: Sequence[np.ndarray]) -> np.ndarray:
        """The part of a subset on a grid, from the functions `(m, n_j)` along each of its axes."""
        total = np.zeros([own.shape[1] for own in functions])
        for index in self.groups_with(subset):
            share = self.share_of_rest(index, subset)
            if share is not None:
                product = share[:, None]
                *before, last = (
                    self.factors(index, v, own) for v, own in zip(subset, functions, strict=True)
                )
                for own in before:
                    product = (product[:, :, None] * own[:, None]).reshape(len(share), -1)
                total += (product.T @ last).reshape(total.shape)
        return total

    def evaluate_many(self, subsets: np.ndarray, functions: Sequence[np.ndarray]) -> np.ndarray:
        """Parts of many subsets `(K, order)` at rows, from the functions of all variables: `(K, n)`."""
        total = np.zeros((len(subsets), _count_rows(functions)))
        for index, group in enumerate(self.groups):
            chosen, shares = self.shares_of_rest(index, subsets)
            if not len(chosen):
                continue
            place = self.places_in(group)
            values = np.stack([self.factors(index, v, functions[v]) for v in group.members])
            piece = max(1, _PIECE // values[0].size)
            for start in range(0, len(chosen), piece):
                own = chosen[start : start + piece]
                product = shares[start : start + piece, :, None]
                for column in place[subsets[own]].T:
                    product = product * values[column]
                total[own] += product.sum(axis=1)
        return total

    def link(self, functions: Sequence[np.ndarray]) -> np.ndarray:
        """The link without the offset and opaque terms at rows, from functions of all variables."""
        held, free = self._sums(functions)
        return self.raw_constant + free + np.clip(held, *self.model.held_range)

    def limit(self, functions: Sequence[np.ndarray]) -> np.ndarray:
        """What the limit of the predictor changes of the sum of the constant and all parts at rows."""
        held, _ = self._sums(functions)
        return np.clip(held, *self.model.held_range) - held

    def _sums(self, functions: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The sum of the groups that the predictor's limit holds, which are of bases, and of others."""
        held, free = np.zeros((2, _count_rows(functions)))
        for group in self.groups:
            factors = [w.T @ functions[v] for v, w in zip(group.members, group.weights, strict=True)]
            total = held if group.features else free
            total += group.scale @ elementary_symmetric(np.stack(factors), group.order)
        return held, free

    # Variances over the product of the margins ----------------------------------------------------

    def variance(self, subset: Subset) -> float:
        """Variance of the part of a subset."""
        return float(self.variances(np.array([subset]))[0])

    def variances(self, subsets: np.ndarray) -> np.ndarray:
        """Variances of the parts of many subsets `(K, order)`, from second moments of the factors."""
        return subset_variances(self, subsets)

    @cached_property
    def variance_by_order(self) -> dict[int, float]:
        """Variance of all parts of each order together."""
        return {order: order_variance(self, order) for order in range(1, self.largest_order + 1)}

    @property
    def total_variance(self) -> float:
        """Variance of the link over the product of the margins, and of opaque terms over the rows.

        0 where all terms were switched off.
        """
        total = sum(self.variance_by_order.values()) + sum(own.variance for own in self.opaque)
        return total if total > NOTHING * self.model.scale**2 else 0.0


def readable(model: Any, parameter: str | None = None) -> Any:
    """The predictor of a fitted model that is to be read.

    Args:
        model: fitted, or a view of one of its predictors.
        parameter: of the family, by its name or one that other packages have for it; by default the
            first one.

    Returns:
        A model of one predictor itself, else the view of the parameter.

    Raises:
        DataError: not one of our models, one without margins, or without that parameter.
        NotFittedError: a model that was never fitted.
    """
    check_readable(model)
    return model.parameter(parameter)


def predictors_of(model: Any, parameter: str | None = None) -> list[Any]:
    """The predictor of one parameter, or all of them, each as `readable` gives it."""
    check_readable(model)
    names = list(model.design.predictors)
    return (
        [readable(model, parameter)] if parameter or len(names) == 1 else [*map(model.parameter, names)]
    )


def check_readable(model: Any) -> None:
    """Raise where there is nothing to read.

    Raises:
        DataError: not one of our models, or one without margins.
        NotFittedError: a model that was never fitted.
    """
    if not isinstance(model, AdditiveModel | ParameterView):
        raise DataError(f"An `AdditiveModel` is needed. Received: {type(model).__name__}.")
    if not model.is_fitted:
        raise NotFittedError("The model is not fitted: call `model.fit(data)` first.")
    if model.design.margins is None:
        raise DataError(
            "The model was saved by a version that did not keep the margins of its training data, so "
            "its effects are not known: build it again from the data."
        )


def _moments(variable: Variable, margin: Margin) -> tuple[np.ndarray, np.ndarray]:
    """Means and covariances of a variable's functions over its margin."""
    if not variable.is_category:
        return margin.mean, margin.covariance
    functions = variable.functions(level_values(variable))
    mean = function_means(variable, margin)
    centred = functions - mean[:, None]
    return mean, (centred * margin.frequencies) @ centred.T


def level_values(variable: Variable) -> np.ndarray:
    """The levels of a category, as values of its column."""
    return np.array(variable.levels, object if isinstance(variable.levels[0], str) else None)


def _combinations(members: Subset, order: int) -> np.ndarray:
    """All subsets of a size of ascending numbers, `(K, order)`."""
    count = comb(len(members), order)
    flat = chain.from_iterable(combinations(members, order))
    return np.fromiter(flat, int, count * order).reshape(count, order)
