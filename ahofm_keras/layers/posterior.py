"""The posterior of a model's coefficients, and the variance of the predictor that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from ahofm_keras.layers.basis import Functions, combine, one_feature
from ahofm_keras.layers.factor_covariances import evaluate_bands, factor_shapes
from ahofm_keras.layers.linear_functions import (
    block_functions,
    feature_functions,
    inner_functions,
    with_arrays,
    with_lists,
)
from ahofm_keras.layers.starts import fill_room
from ahofm_keras.moments import FactorMoments, pair_places

Array = Any


@keras.saving.register_keras_serializable(package="ahofm_keras")
class Posterior(keras.layers.Layer):
    """Holds the covariances of all blocks and computes the variance of the predictor from them.

    The linear block (intercept, linear terms, smooths, tensor products) has one joint covariance. The
    factors of an order fall into groups of at most `rank`. Those of one feature in one group have
    another; between blocks there is none (mean field). Everything is in float64 and in the model's own
    scale.

    A prediction asks for b' V_fg b alone, V_fg the covariance of two factors in coefficients of basis
    functions b, of which W neighbours are not zero. So of V_fg the band is kept (`bands.py`), of its
    symmetric part: of M functions and F factors M W F (F + 1) / 2 numbers, not M^2 F^2.

    Args:
        intercept: whether there is one.
        linear: for each term of the linear block a dict with `size`, its number of coefficients, and
            `lambdas`, the number of its smoothing parameters beside tau, in each of its `groups` (one by
            default) of coefficients that share them; and either `columns`, where its design columns
            start and stop, or what `block_functions` takes; for a random effect also
            `eigenvalues` of its penalty, or `new_level`, the penalties of the functions of one level.
        interactions: for each order of each interaction term a dict with `order`, `rank` of a group,
            `features`, `transforms`, `lambdas` (number of smoothing parameters of a factor beside tau),
            `widths` (number of functions of each feature that are not zero at a place) and `means` (of
            each feature's functions over its margin; none where they are centred).
        groups: for how many groups of factors of an order there is room, one after the other.

    Call arguments:
        bases: list of basis expansions.
        columns: design columns `(n, C)`, or None.

    Returns:
        `(n, 2)`, the variance of the predictor, and what it would be if the smoothing were known.

    All weights are there from the beginning, and 0 until a fit or a file says something: `is_known`.
    That and `in_use`, the number of groups of factors of each order that have covariances, are kept in
    Python too, where every prediction asks for them.

    Attributes:
        orders: the weights of each order by what they are, see `factor_shapes`; all have room for
            several groups, along their second axis.
    """

    def __init__(
        self,
        intercept: bool,
        linear: Sequence[dict[str, Any]],
        interactions: Sequence[dict[str, Any]],
        groups: int = 1,
        **kwargs: Any,
    ) -> None:
        fixed = {"autocast": False, "dtype": "float64", "trainable": False}
        super().__init__(**{**kwargs, **fixed})
        self.intercept = bool(intercept)
        self.linear = [with_arrays(entry) for entry in linear]
        self.interactions = [with_arrays(entry) for entry in interactions]
        self.groups = groups
        self.is_known = False
        self.in_use = (1,) * len(self.interactions)

    def build(self, bases_shape: Any = None, columns_shape: Any = None) -> None:
        size = int(self.intercept) + sum(entry["size"] for entry in self.linear)
        penalised = [e["lambdas"] for e in self.linear if e["lambdas"] for _ in range(_groups(e))]
        self.dispersion = self._add("dispersion", ())
        # Of how many fits this is the average.
        self.fits = self._add("fits", (), "ones")
        # How many groups of factors of each order have covariances.
        self.used = self._add("used", (len(self.interactions),), "ones")
        self.linear_root = self._add("linear_root", (size, size))
        # Of what the choice of the smoothing adds: tests of terms, which take it as given, do without.
        self.smoothing_root = self._add("smoothing_root", (size, size))
        self.linear_edf = self._add("linear_edf", (size,))
        # Logarithms of the lambda of each margin, and of tau in the last column; a row per group.
        shape = (max(len(penalised), 1), max(penalised, default=1) + 1)
        self.linear_smoothing = self._add("linear_smoothing", shape)
        self.orders = [
            {
                name: self._add(f"{name}_{place}", shape)
                for name, shape in factor_shapes(entry, self.groups).items()
            }
            for place, entry in enumerate(self.interactions)
        ]
        self.factor_means = [own["means"] for own in self.orders]
        self.factor_edf = [own["edf"] for own in self.orders]
        self.factor_smoothing = [own["smoothing"] for own in self.orders]
        self.factor_bands = [own["bands"] for own in self.orders]
        self.reference_df = [own["reference_df"] for own in self.orders]

    def _add(self, name: str, shape: tuple[int, ...], start: str = "zeros") -> Any:
        return self.add_weight(
            name=name, shape=shape, initializer=start, trainable=False, dtype="float64"
        )

    def announce(self, dispersion: float, groups: int | Sequence[int]) -> None:
        """Say that a posterior is known, once everything else is written.

        Args:
            dispersion: in the model's own scale.
            groups: how many groups of factors of each order have covariances.
        """
        self.used.assign(np.broadcast_to(groups, self.used.shape))
        self.dispersion.assign(dispersion)
        self.refresh()

    def forget(self) -> None:
        """Say that nothing is known."""
        self.is_known = False
        self.dispersion.assign(0.0)

    def refresh(self) -> None:
        """Look at the weights, after others have set them."""
        self.is_known = float(self.dispersion) > 0
        self.in_use = tuple(int(used) for used in np.clip(np.asarray(self.used), 0, self.groups))

    def set_weights(self, weights: Any) -> None:
        """Keras' own."""
        super().set_weights(weights)
        self.refresh()

    def save_own_variables(self, store: Any) -> None:
        """What is known, of the groups in use: the file of a model that is not fitted is small."""
        if not self.is_known:
            store["dispersion"] = np.zeros(())
            return
        for name, weight in self._by_name().items():
            values, used = np.asarray(weight), self._groups_of().get(name)
            if used is not None:
                values = values[:, : used * values.shape[1] // self.groups]
            store[name] = values

    def load_own_variables(self, store: Any) -> None:
        """What was known, of the groups that were in use."""
        found = store.keys()
        if "dispersion" not in found:
            raise ValueError("The file has no posterior here.")
        self.forget()
        self.used.assign(np.ones(self.used.shape))
        if float(np.asarray(store["dispersion"])) > 0:
            for name, weight in self._by_name().items():
                empty = np.inf if name.startswith("smoothing_") and name != "smoothing_root" else 0.0
                values = np.asarray(store[name])
                if name in self._groups_of():
                    values = fill_room(values, tuple(weight.shape), 1, empty)
                weight.assign(values)
        self.refresh()

    def _by_name(self) -> dict[str, Any]:
        """All weights; the dispersion last, because it says that there is a posterior."""
        weights = {weight.name: weight for weight in self.weights}
        return {
            **{name: w for name, w in weights.items() if name != "dispersion"},
            "dispersion": self.dispersion,
        }

    def _groups_of(self) -> dict[str, int]:
        """Names of the weights that have room for several groups, with the number in use."""
        orders = zip(self.orders, self.in_use, strict=True)
        return {weight.name: used for own, used in orders for weight in own.values()}

    def call(self, bases: Sequence[Functions], columns: Array = None) -> Array:
        given, chosen = self._linear_variances(bases, columns)
        given = given + self._new_levels_variance(bases, columns)
        for variance in self._interaction_variances(bases):
            given = given + variance
        given = ops.maximum(given, 0.0)  # that of factors which cancel rounds to either side of 0
        return ops.stack([given + chosen, given], axis=1)

    def _new_levels_variance(self, bases: Sequence[Functions], columns: Array = None) -> Array:
        """What the effects of levels that were not seen in training add, 0 at those that were."""
        variance: Array = 0.0
        penalised = [entry for entry in self.linear if entry["lambdas"]]
        starts = np.cumsum([0, *map(_groups, penalised)])
        for place, entry in zip(starts, penalised, strict=False):
            if entry.get("new_level") is not None:
                variance = variance + self._new_curve_variance(place, entry, bases, columns)
            if entry.get("eigenvalues") is None:
                continue
            (transform,), (where,) = entry["transforms"], entry["features"]
            logarithms = self.linear_smoothing[place]
            precisions = ops.exp(logarithms[0]) * np.asarray(entry["eigenvalues"], float)
            precisions = precisions + ops.exp(logarithms[-1])
            known = precisions > 0  # a flat prior says nothing of a new level
            shares = ops.where(known, _new_level_weights(transform), np.zeros(transform.shape[1]))
            new = self.dispersion * ops.sum(shares / ops.where(known, precisions, 1.0))
            # A level has one function, which is 1 there; a level that was not seen has none.
            _, values = one_feature(bases, where)
            seen = ops.sum(values, axis=0) > 0.5
            variance = variance + ops.where(seen, ops.zeros_like(new), new)
        return variance

    def _new_curve_variance(
        self, place: int, entry: dict[str, Any], bases: Sequence[Functions], columns: Array
    ) -> Array:
        """Variance of the curve, or slope, of a level that was not seen, as the prior has it."""
        penalties = np.asarray(entry["new_level"], float)
        logarithms, unit = self.linear_smoothing[place], np.linalg.norm(entry["transforms"][0][:, 0])
        precisions = ops.matmul(ops.exp(logarithms[: len(penalties)]), penalties)
        precisions = precisions + ops.exp(logarithms[-1])
        functions = inner_functions(entry, bases, columns)
        known = precisions > 0
        shares = ops.where(known, 1 / ops.where(known, precisions, 1.0), 0.0)
        new = self.dispersion * unit**2 * ops.sum(shares[:, None] * ops.square(functions), axis=0)
        _, values = one_feature(bases, entry["features"][0])
        seen = ops.sum(values, axis=0) > 0.5
        return ops.where(seen, ops.zeros_like(new), new)

    def _linear_variances(self, bases: Sequence[Functions], columns: Array) -> tuple[Array, Array]:
        """Of the linear block at the smoothing that it has, and what the choice of that adds."""
        rows = _rows(bases, columns)
        parts = [ops.ones((1, rows), dtype="float64")] if self.intercept else []
        parts += [block_functions(entry, bases, columns) for entry in self.linear]
        if not parts:
            nothing = ops.zeros((rows,), dtype="float64")
            return nothing, nothing
        functions = ops.concatenate(parts, axis=0)
        roots = (self.linear_root, self.smoothing_root)
        spreads = [ops.matmul(ops.transpose(root), functions) for root in roots]
        given, chosen = (ops.sum(ops.square(spread), axis=0) for spread in spreads)
        return given, chosen

    @property
    def linear_roots(self) -> np.ndarray:
        """Both roots of the linear block side by side, `(q, 2 q)`: of its whole covariance."""
        return np.concatenate([np.asarray(self.linear_root), np.asarray(self.smoothing_root)], axis=1)

    def _interaction_variances(self, bases: Sequence[Functions]) -> list[Array]:
        """Of each order the sum of the variances of all groups in use, whose rows stand side by side."""
        used = {place: groups for place, groups in enumerate(self.in_use) if groups}
        if not used:
            return []
        rows, moments = _rows(bases, None), {}
        users: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        for place, groups in used.items():
            entry = self.interactions[place]
            moments[place] = FactorMoments(entry["order"], entry["rank"], groups * rows, namespace=ops)
            for j, where in enumerate(entry["features"]):
                users.setdefault(tuple(where), []).append((place, j))
        for where, own in users.items():
            functions = feature_functions(bases, where)
            for place, j in own:
                means, covariances = (
                    self._factor_means(place, j, functions),
                    self._covariances(place, j, functions),
                )
                moments[place].add(means, covariances)
        return [
            ops.sum(ops.reshape(own.variance, (used[place], -1)), axis=0)
            for place, own in moments.items()
        ]

    def _sizes(self, place: int, j: int) -> tuple[int, int]:
        """Number of functions of a feature of an order, and of those that are not zero at a place."""
        entry = self.interactions[place]
        return len(entry["transforms"][j]), entry["widths"][j]

    def _factor_means(self, place: int, j: int, functions: Functions) -> Array:
        """Means of the factors of a feature at rows, groups side by side: `(F, g n)`."""
        entry, groups = self.interactions[place], self.in_use[place]
        transform, rank = entry["transforms"][j], entry["rank"]
        means = self.factor_means[place][j, : groups * rank, : transform.shape[1]]
        found = combine(functions, ops.matmul(transform, ops.transpose(means)))
        found = ops.reshape(ops.transpose(found), (groups, rank, -1))
        return ops.reshape(ops.transpose(found, (1, 0, 2)), (rank, -1))

    def _covariances(self, place: int, j: int, functions: Functions) -> Array:
        """Covariances of the factors of a feature at rows, groups side by side: `(F, F, g n)`."""
        groups, rank = self.in_use[place], self.interactions[place]["rank"]
        size, width = self._sizes(place, j)
        bands = ops.transpose(self.factor_bands[place][j, :groups, :size, :width], (1, 2, 3, 0))
        pairs = bands.shape[2]
        found = evaluate_bands(functions, ops.reshape(bands, (size, width, pairs * groups)))
        found = ops.reshape(ops.transpose(found), (pairs, -1))
        return ops.reshape(ops.take(found, pair_places(rank).reshape(-1), axis=0), (rank, rank, -1))

    def edf_in_fit(self, place: int) -> np.ndarray:
        """Degrees of freedom of the factors in their own fit, of which an average has a part."""
        return float(self.fits) * np.asarray(self.factor_edf[place])

    def band(self, place: int, j: int, slots: np.ndarray, centred: bool = False) -> np.ndarray:
        """Bands of the covariances of some factors of one group, `(F, F, M, W)`, of a feature.

        Args:
            place: of the order.
            j: of the feature in it.
            slots: places of the factors in the order.
            centred: of the functions less their means over the margin.
        """
        size, width = self._sizes(place, j)
        kind = "centred_bands" if centred and not self.is_centred(place) else "bands"
        return self._between(kind, place, j, slots)[..., :size, :width]

    def is_centred(self, place: int) -> bool:
        """Whether the functions of an order have mean zero over the margins."""
        return "centred_bands" not in self.orders[place]

    def mean_covariance(self, place: int, j: int, slots: np.ndarray) -> np.ndarray:
        """Covariances of the means over the margin of some factors of one group, `(F, F)`."""
        if self.is_centred(place):
            return np.zeros((len(slots), len(slots)))
        return self._between("mean_covariances", place, j, slots)

    def tested_covariance(self, place: int, j: int, slots: np.ndarray) -> np.ndarray:
        """Covariance of the smoothest coefficients of some factors of one group, `(F, K, F, K)`."""
        upper = self._between("tested_covariances", place, j, slots)
        size = min(upper.shape[-1], self.interactions[place]["transforms"][j].shape[1])
        upper = upper[..., :size, :size].transpose(0, 2, 1, 3)
        # Of a pair f > g that of g and f stands there, the other way round.
        swapped = slots[:, None] > slots
        return np.where(swapped[:, None, :, None], upper.transpose(0, 3, 2, 1), upper)

    def _between(self, kind: str, place: int, j: int, slots: np.ndarray) -> np.ndarray:
        """What a weight of pairs has for some factors of one group, `(F, F, ...)`."""
        rank = self.interactions[place]["rank"]
        own = pair_places(rank)[np.ix_(slots % rank, slots % rank)]
        return np.moveaxis(np.asarray(self.orders[place][kind][j, slots[0] // rank]), -1, 0)[own]

    def compute_output_shape(
        self, bases_shape: Any, columns_shape: Any = None
    ) -> tuple[int | None, int]:
        return (columns_shape[0] if columns_shape is not None else bases_shape[0][0][2], 2)

    def compute_output_spec(self, bases: Sequence[Functions], columns: Array = None) -> Any:
        rows = columns.shape[0] if columns is not None else bases[0][0].shape[2]
        return keras.KerasTensor((rows, 2), dtype="float64")

    def get_config(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "intercept": self.intercept,
            "linear": [with_lists(entry) for entry in self.linear],
            "interactions": [with_lists(entry) for entry in self.interactions],
            "groups": self.groups,
        }


def _groups(entry: dict[str, Any]) -> int:
    """Number of groups of coefficients of a term that share their smoothing."""
    return int(entry.get("groups", 1))


def _new_level_weights(transform: np.ndarray) -> np.ndarray:
    """h with which the variance of a new level's effect is dispersion sum_m h_m / precision_m.

    Levels b_1..b_M of variance v each, and a new one, are exchangeable. The effects of the model are
    those of the levels less their mean over the rows, b_j - sum_k p_k b_k with p the shares of the rows,
    and its constant has that mean. A new level contributes 0 in the place of b_new - sum_k p_k b_k, of
    which the data says nothing beyond the constant, and whose variance is v (1 + sum_k p_k^2). For
    levels of equal shares that is v (1 + 1 / M), as for a new value after the mean of M others.

    The coefficients T w of the levels have the prior covariance v (I - p p' / p'p), so v is its trace
    over its rank: dispersion sum_m (T'T)_mm / precision_m / (M - 1). T'T is diagonal and T T' is
    diag(1 / p) - 1 1', from which p follows. Functions that are not centred lack the terms of the mean.

    Args:
        transform: T `(M, r)`, from coordinates to effects of the levels.
    """
    levels, rank = transform.shape
    squares = np.square(transform)
    shares = 1 / (1 + squares.sum(axis=1)) if rank < levels else np.zeros(levels)
    return np.asarray(squares.sum(axis=0) * (1 + np.sum(shares**2)) / rank)


def _rows(bases: Sequence[Functions], columns: Array) -> Any:
    return ops.shape(columns)[0] if columns is not None else ops.shape(bases[0][0])[2]
