"""The posterior of a model's coefficients, and the variance of the predictor that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from ahofm_keras.layers.starts import fill_room
from ahofm_keras.moments import FactorMoments
from ahofm_keras.tensors import row_products

Array = Any


@keras.saving.register_keras_serializable(package="ahofm_keras")
class Posterior(keras.layers.Layer):
    """Holds the covariances of all blocks and computes the variance of the predictor from them.

    The linear block (intercept, linear terms, smooths, tensor products) has one joint covariance. The
    factors of a feature in one order have another; between blocks there is none (mean field), nor
    between the factors of different starts in an average of fits. Everything is in float64 and in the
    model's own scale.

    Args:
        intercept: whether there is one.
        linear: for each term of the linear block a dict with `size`, its number of coefficients, and
            `lambdas`, the number of its smoothing parameters; and either `columns`, where its design
            columns start and stop, or `pure`, `features` (basis and place in it, of each margin) and
            `transforms`; for a random effect also `eigenvalues` of its penalty.
        interactions: for each order of each interaction term a dict with `order`, `rank` of one fit,
            `features` and `transforms`.
        starts: of how many fits there is room for the factors, one after the other.

    Call arguments:
        bases: list of basis expansions `(p, M, n)`.
        columns: design columns `(n, C)`, or None.

    Returns:
        `(n, 2)`, the variance of the predictor, and what it would be if the smoothing were known.

    All weights are there from the beginning, and 0 until a fit or a file says something: `is_known`.
    That and `starts_in_use` are kept in Python too, where every prediction asks for them.
    """

    def __init__(
        self,
        intercept: bool,
        linear: Sequence[dict[str, Any]],
        interactions: Sequence[dict[str, Any]],
        starts: int = 1,
        **kwargs: Any,
    ) -> None:
        fixed = {"autocast": False, "dtype": "float64", "trainable": False}
        super().__init__(**{**kwargs, **fixed})
        self.intercept = bool(intercept)
        self.linear = [_with_arrays(entry) for entry in linear]
        self.interactions = [_with_arrays(entry) for entry in interactions]
        self.starts = starts
        self.is_known = False
        self.starts_in_use = 1

    def build(self, bases_shape: Any = None, columns_shape: Any = None) -> None:
        size = int(self.intercept) + sum(entry["size"] for entry in self.linear)
        penalised = [entry["lambdas"] for entry in self.linear if entry["lambdas"]]
        self.dispersion = self._add("dispersion", ())
        # Of how many fits this is the average.
        self.fits = self._add("fits", (), "ones")
        # The factors of how many starts have covariances: more than one after another solver, too.
        self.used = self._add("used", (), "ones")
        self.linear_root = self._add("linear_root", (size, size))
        # Of what the choice of the smoothing adds: tests of terms, which take it as given, do without.
        self.smoothing_root = self._add("smoothing_root", (size, size))
        self.linear_edf = self._add("linear_edf", (size,))
        # Logarithms of the lambda of each margin, and of tau in the last column.
        shape = (max(len(penalised), 1), max(penalised, default=1) + 1)
        self.linear_smoothing = self._add("linear_smoothing", shape)
        self._add_factor_weights()

    def _add_factor_weights(self) -> None:
        self.factor_means, self.factor_roots = [], []
        self.factor_edf, self.factor_smoothing = [], []
        for place, entry in enumerate(self.interactions):
            count, slots = len(entry["transforms"]), self.starts * entry["rank"]
            width = max(transform.shape[1] for transform in entry["transforms"])
            self.factor_means.append(self._add(f"means_{place}", (count, slots, width)))
            # Rows are the coefficients of all starts, columns belong to the row's own start.
            root = (count, slots * width, entry["rank"] * width)
            self.factor_roots.append(self._add(f"roots_{place}", root))
            self.factor_edf.append(self._add(f"edf_{place}", (count, slots)))
            self.factor_smoothing.append(self._add(f"smoothing_{place}", (count, slots, 2)))

    def _add(self, name: str, shape: tuple[int, ...], start: str = "zeros") -> Any:
        return self.add_weight(
            name=name, shape=shape, initializer=start, trainable=False, dtype="float64"
        )

    def announce(self, dispersion: float, starts: int) -> None:
        """Say that a posterior is known, once everything else is written.

        Args:
            dispersion: in the model's own scale.
            starts: the factors of how many starts have covariances.
        """
        self.used.assign(starts)
        self.dispersion.assign(dispersion)
        self.refresh()

    def forget(self) -> None:
        """Say that nothing is known."""
        self.is_known = False
        self.dispersion.assign(0.0)

    def refresh(self) -> None:
        """Look at the weights, after others have set them."""
        self.is_known = float(self.dispersion) > 0
        self.starts_in_use = min(max(int(self.used), 1), self.starts)

    @property
    def in_use(self) -> int:
        return self.starts_in_use

    def set_weights(self, weights: Any) -> None:
        """Keras' own."""
        super().set_weights(weights)
        self.refresh()

    def save_own_variables(self, store: Any) -> None:
        """What is known, of the starts in use: the file of a model that is not fitted is small."""
        if not self.is_known:
            store["dispersion"] = np.zeros(())
            return
        for name, weight in self._by_name().items():
            values = np.asarray(weight)
            if name in self._of_starts():
                values = values[:, : self.starts_in_use * values.shape[1] // self.starts]
            store[name] = values

    def load_own_variables(self, store: Any) -> None:
        """What was known, of the starts that were in use."""
        found = store.keys()
        if "dispersion" not in found:
            raise ValueError("The file has no posterior here.")
        self.forget()
        self.used.assign(1.0)
        if float(np.asarray(store["dispersion"])) > 0:
            for name, weight in self._by_name().items():
                empty = np.inf if name.startswith("smoothing_") and name != "smoothing_root" else 0.0
                values = np.asarray(store[name])
                if name in self._of_starts():
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

    def _of_starts(self) -> set[str]:
        """Names of the weights that have room for several starts, along their second axis."""
        lists = (self.factor_means, self.factor_roots, self.factor_edf, self.factor_smoothing)
        return {weight.name for weights in lists for weight in weights}

    def call(self, bases: Sequence[Array], columns: Array = None) -> Array:
        given, chosen = self._linear_variances(bases, columns)
        given = given + self._new_levels_variance(bases)
        for place in range(len(self.interactions)):
            given = given + self._interaction_variance(place, bases)
        given = ops.maximum(given, 0.0)  # that of factors which cancel rounds to either side of 0
        return ops.stack([given + chosen, given], axis=1)

    def _new_levels_variance(self, bases: Sequence[Array]) -> Array:
        """What the effects of levels that were not seen in training add, 0 at those that were."""
        variance: Array = 0.0
        for place, entry in enumerate(entry for entry in self.linear if entry["lambdas"]):
            if entry.get("eigenvalues") is None:
                continue
            (transform,), ((group, within),) = entry["transforms"], entry["features"]
            logarithms = self.linear_smoothing[place]
            precisions = ops.exp(logarithms[0]) * np.asarray(entry["eigenvalues"], float)
            precisions = precisions + ops.exp(logarithms[-1])
            known = precisions > 0  # a flat prior says nothing of a new level
            shares = ops.where(known, _new_level_weights(transform), np.zeros(transform.shape[1]))
            new = self.dispersion * ops.sum(shares / ops.where(known, precisions, 1.0))
            # A level has one function, which is 1 there; a level that was not seen has none.
            seen = ops.sum(bases[group][within, : len(transform)], axis=0) > 0.5
            variance = variance + ops.where(seen, ops.zeros_like(new), new)
        return variance

    def _linear_variances(self, bases: Sequence[Array], columns: Array) -> tuple[Array, Array]:
        """Of the linear block at the smoothing that it has, and what the choice of that adds."""
        rows = _rows(bases, columns)
        parts = [ops.ones((1, rows), dtype="float64")] if self.intercept else []
        parts += [_functions(entry, bases, columns) for entry in self.linear]
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

    def _interaction_variance(self, place: int, bases: Sequence[Array]) -> Array:
        """The sum of the variances of all starts in use, whose rows stand one after the other."""
        entry, starts = self.interactions[place], self.starts_in_use
        rank, width = entry["rank"], self.factor_means[place].shape[2]
        slots, rows = starts * rank, starts * rank * width
        moments = FactorMoments(entry["order"], rank, starts * _rows(bases, None), namespace=ops)
        for j, (where, transform) in enumerate(zip(entry["features"], entry["transforms"], strict=True)):
            own = transform.shape[1]
            functions = _coordinates(bases, where, transform)
            means = ops.reshape(self.factor_means[place][j, :slots], (starts, rank, width))[..., :own]
            means = ops.einsum("sfr,rn->fsn", means, functions)
            roots = ops.reshape(self.factor_roots[place][j, :rows], (starts, rank, width, rank * width))
            spread = ops.einsum("sfrk,rn->fksn", roots[:, :, :own], functions)
            spread = ops.reshape(spread, (rank, rank * width, -1))
            covariances = ops.einsum("fkn,gkn->fgn", spread, spread)
            moments.add(ops.reshape(means, (rank, -1)), covariances)
        return ops.sum(ops.reshape(moments.variance, (starts, -1)), axis=0)

    def edf_in_fit(self, place: int) -> np.ndarray:
        """Degrees of freedom of the factors in their own fit, of which an average has a part."""
        return float(self.fits) * np.asarray(self.factor_edf[place])

    def factor_root(self, place: int, j: int, factors: np.ndarray | None = None) -> np.ndarray:
        """Root of the covariance of some factors of a feature, `(f, r, k)`; of all in use by default."""
        rank, width = self.factor_means[place].shape[1:]
        used = self.starts_in_use * self.interactions[place]["rank"]
        chosen = np.arange(used) if factors is None else np.asarray(factors, int)
        block = self.factor_roots[place].shape[2]
        roots = np.asarray(self.factor_roots[place][j]).reshape(rank, width, block)
        start, column = np.unique(chosen // (block // width), return_inverse=True)
        wide = np.zeros((len(chosen), width, len(start), block))
        for at, (factor, own) in enumerate(zip(chosen, column, strict=True)):
            wide[at, :, own] = roots[factor]
        return wide.reshape(len(chosen), width, -1)

    def compute_output_shape(
        self, bases_shape: Any, columns_shape: Any = None
    ) -> tuple[int | None, int]:
        return (columns_shape[0] if columns_shape is not None else bases_shape[0][2], 2)

    def compute_output_spec(self, bases: Sequence[Array], columns: Array = None) -> Any:
        rows = columns.shape[0] if columns is not None else bases[0].shape[2]
        return keras.KerasTensor((rows, 2), dtype="float64")

    def get_config(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "intercept": self.intercept,
            "linear": [_with_lists(entry) for entry in self.linear],
            "interactions": [_with_lists(entry) for entry in self.interactions],
            "starts": self.starts,
        }


def _with_arrays(entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "transforms": [np.asarray(t, float) for t in entry.get("transforms", ())]}


def _with_lists(entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "transforms": [t.tolist() for t in entry["transforms"]]}


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


def _functions(entry: dict[str, Any], bases: Sequence[Array], columns: Array) -> Array:
    """The columns of a term in the linear block, `(q, n)`."""
    if "columns" in entry:
        start, stop = entry["columns"]
        return ops.transpose(ops.cast(columns[:, start:stop], "float64"))
    margins = zip(entry["features"], entry["transforms"], strict=True)
    own = [_coordinates(bases, where, transform) for where, transform in margins]
    return row_products(own, entry["pure"], ops)


def _coordinates(bases: Sequence[Array], where: Sequence[int], transform: np.ndarray) -> Array:
    """Functions of a feature in the coordinates of its block, `(r, n)`."""
    functions = ops.cast(bases[where[0]][where[1], : len(transform)], "float64")
    return ops.matmul(np.ascontiguousarray(transform.T), functions)


def _rows(bases: Sequence[Array], columns: Array) -> Any:
    return ops.shape(columns)[0] if columns is not None else ops.shape(bases[0])[2]
