"""Factorized interactions of several features."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Any

import keras
import numpy as np
from keras import ops

from ahofm_keras.layers.basis import Functions, combine, take_first
from ahofm_keras.layers.coordinates import learned_coordinates, learning_speed
from ahofm_keras.layers.starts import fill_room
from ahofm_keras.moments import elementary_symmetric
from ahofm_keras.regularizers import QuadraticPenalty

Array = Any

# Of all interactions of one order together, in units of the response's variance.
_START_VARIANCE = 0.01


@keras.saving.register_keras_serializable(package="ahofm_keras")
class FactorizedInteraction(keras.layers.Layer):
    """All interactions of its features, of one or several orders (the paper's AHOTs).

    eta = sum_f e_d(phi_1f, ..., phi_pf), phi_jf = b_j(x_j)' T_j w_jf, for each order d with factors of
    its own. One weight of shape `(p, r, F)` per order holds those that mini-batches learn, padded where
    bases differ in size. There is room for more factors, which a fit may find or an average of several
    fits has, in another weight; they are 0, and cost nothing, until a solver sets them.

    Args:
        features: for each feature the position of its `BasisExpansion` among the inputs and its
            position within it.
        transforms: T_j `(M_j, r_j)` of each feature.
        eigenvalues: `(r_j,)` of each feature's penalty in these coordinates.
        orders: dicts with `order` d, `started`, the number of factors F with a random start or 0,
            `smoothing`, the lambda of each feature, and `slots`, the number of factors that there is
            room for, if it is more.
        seed: of the factors' random start.
        ridges: `(r_j,)` of each feature, what is added to its lambda times the eigenvalues: the penalty
            of atoms; by default nothing.

    Call arguments:
        bases: list of basis expansions.

    Returns:
        `(n, number of orders)`.
    """

    def __init__(
        self,
        features: Sequence[Sequence[int]],
        transforms: Sequence[Any],
        eigenvalues: Sequence[Any],
        orders: Sequence[dict[str, Any]],
        seed: int = 0,
        ridges: Sequence[Any] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.features = [tuple(feature) for feature in features]
        self.transforms = [np.asarray(transform, float) for transform in transforms]
        self.eigenvalues = [np.asarray(values, float) for values in eigenvalues]
        self.orders = [{"slots": order["started"], **order} for order in orders]
        self.seed = seed
        self.ridges = [np.asarray(ridge, float) for ridge in ridges]
        self.in_use = tuple(order["started"] for order in self.orders)

    def build(self, bases_shape: Any) -> None:
        width = max(map(len, self.eigenvalues))
        count = len(self.features)
        self._to_coefficients = []
        self._speeds = []
        self._penalties = []
        for order in self.orders:
            transforms = np.zeros((count, max(map(len, self.transforms)), width))
            penalty = np.zeros((count, width))
            speed = np.zeros((count, width))
            for j, smoothing in enumerate(order["smoothing"]):
                given = self.eigenvalues[j], smoothing, self.ridges[j] if self.ridges else 0.0
                scaled, weights = learned_coordinates(self.transforms[j], *given)
                transforms[j, : scaled.shape[0], : scaled.shape[1]] = scaled
                penalty[j, : len(weights)] = weights
                speed[j, : len(weights)] = learning_speed(*given)
            self._to_coefficients.append(transforms)
            self._speeds.append(speed[:, :, None])
            self._penalties.append(penalty)
        self.factors = [self._add_factors(place) for place in range(len(self.orders))]
        # By text: TensorFlow exports no other keys.
        self.further = {
            str(place): self.add_weight(
                name=f"further_{order['order']}",
                shape=(count, width, order["slots"] - order["started"]),
                initializer="zeros",
                regularizer=QuadraticPenalty(self._penalties[place]),
            )
            for place, order in enumerate(self.orders)
            if order["slots"] > order["started"]
        }

    def _add_factors(self, place: int) -> Any:
        degree, rank = self.orders[place]["order"], self.orders[place]["started"]
        speed, penalty = self._speeds[place][:, :, 0], self._penalties[place]
        # The variance of each phi at which the whole order starts with variance _START_VARIANCE: there
        # are C(p, d) F products of d factors.
        products = comb(len(self.features), degree) * max(rank, 1)
        variance = (_START_VARIANCE / products) ** (1 / degree)
        spread = np.sqrt(variance / np.sum(speed**2, axis=1, keepdims=True)) * (speed > 0)
        return self.add_weight(
            name=f"factors_{degree}",
            shape=(*speed.shape, rank),
            initializer=FactorStart(spread, self.seed + place),
            regularizer=QuadraticPenalty(penalty),
            trainable=rank > 0,
        )

    def coefficients(self, place: int) -> Array:
        """Coefficients of the basis functions of all factors in use of one order, `(p, M, F)`."""
        transform = ops.cast(self._to_coefficients[place], self.compute_dtype)
        factors, more = self.factors[place], self._further_in_use(place)
        if more:
            factors = ops.concatenate([factors, self.further[str(place)][:, :, :more]], axis=2)
        return ops.matmul(transform, factors)

    def _further_in_use(self, place: int) -> int:
        return int(self.in_use[place] - self.orders[place]["started"])

    def coordinates(self, place: int) -> np.ndarray:
        """All factors of one order in Demmler-Reinsch coordinates, `(p, r, slots)`.

        0 in the padding and where a factor is not in use.
        """
        factors = np.asarray(self.factors[place])
        if str(place) in self.further:
            factors = np.concatenate([factors, np.asarray(self.further[str(place)])], axis=2)
        return factors * self._speeds[place]

    def assign_coordinates(self, place: int, values: np.ndarray) -> None:
        """Set the factors of one order from Demmler-Reinsch coordinates, all of them or the first."""
        speed, rank = self._speeds[place], self.orders[place]["started"]
        weights = values / np.where(speed > 0, speed, 1.0)
        self.factors[place].assign(weights[:, :, :rank])
        self._fill(place, weights[:, :, rank:])
        self.refresh()

    def _fill(self, place: int, given: np.ndarray) -> None:
        """Set the further factors of one order; 0 where none are given."""
        shape = (*given.shape[:2], self.orders[place]["slots"] - self.orders[place]["started"])
        filled = fill_room(given, shape, 2)
        if str(place) in self.further:
            self.further[str(place)].assign(filled)

    def refresh(self) -> None:
        """Look at the weights, after others have set them: up to which factor they are not 0."""
        used = [order["started"] for order in self.orders]
        for place, further in self.further.items():
            kept = np.flatnonzero(np.asarray(further).any(axis=(0, 1)))
            used[int(place)] += int(kept.max(initial=-1)) + 1
        self.in_use = tuple(used)

    def set_weights(self, weights: Any) -> None:
        """Keras' own."""
        super().set_weights(weights)
        self.refresh()

    def save_own_variables(self, store: Any) -> None:
        """The factors in use."""
        for place in range(len(self.orders)):
            store[f"factors_{place}"] = np.asarray(self.factors[place])
            more = self._further_in_use(place)
            if more:
                store[f"further_{place}"] = np.asarray(self.further[str(place)])[..., :more]

    def load_own_variables(self, store: Any) -> None:
        """The factors that were in use; 0 for others."""
        for place, factors in enumerate(self.factors):
            factors.assign(np.asarray(store[f"factors_{place}"]))
            rest, nothing = f"further_{place}", np.zeros((*factors.shape[:2], 0))
            self._fill(place, np.asarray(store[rest]) if rest in store.keys() else nothing)  # noqa: SIM118
        self.refresh()

    def call(self, bases: Sequence[Functions]) -> Array:
        columns = []
        for place, order in enumerate(self.orders):
            if not self.in_use[place]:
                columns.append(ops.zeros_like(bases[0][1][0, 0]))
                continue
            phi = self._evaluate(bases, self.coefficients(place))
            columns.append(ops.sum(elementary_symmetric(phi, order["order"], ops), axis=0))
        return ops.stack(columns, axis=-1)

    def _evaluate(self, bases: Sequence[Functions], coefficients: Array) -> Array:
        """phi of all features and factors `(p, F, n)`, features by kind of basis."""
        _, size, rank = coefficients.shape
        table = ops.reshape(coefficients, (-1, rank))
        parts = []
        for group, (functions, values) in enumerate(bases):
            own = [j for j, (g, _) in enumerate(self.features) if g == group]
            within = [self.features[j][1] for j in own]
            first = size * np.asarray(own, "int32")[:, None, None]
            parts.append(
                combine((take_first(functions, within) + first, take_first(values, within)), table)
            )
        phi = parts[0] if len(parts) == 1 else ops.concatenate(parts, axis=0)
        return ops.transpose(phi, (0, 2, 1))

    def compute_output_shape(self, bases_shape: Any) -> tuple[int | None, int]:
        return (bases_shape[0][0][2], len(self.orders))

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "features": [list(feature) for feature in self.features],
            "transforms": [transform.tolist() for transform in self.transforms],
            "eigenvalues": [values.tolist() for values in self.eigenvalues],
            "orders": self.orders,
            "seed": self.seed,
            "ridges": [ridge.tolist() for ridge in self.ridges],
        }


@keras.saving.register_keras_serializable(package="ahofm_keras")
class FactorStart(keras.initializers.Initializer):
    """Small random factors, 0 in the padding.

    The coordinates of wiggly functions are scaled down by `learned_coordinates`, so equal variances make
    smooth random functions.

    Args:
        spread: standard deviation of each weight, `(p, r)`; shared by the factors.
        seed: of the draw.
    """

    def __init__(self, spread: Any, seed: int) -> None:
        self.spread = np.asarray(spread, float)
        self.seed = seed

    def __call__(self, shape: Any, dtype: Any = None) -> Array:
        drawn = np.random.default_rng(self.seed).standard_normal(shape)
        for own, width in zip(drawn, np.count_nonzero(self.spread, axis=1), strict=True):
            own[:width] = own[:width][::-1].copy()  # the roughest was drawn first
        return ops.convert_to_tensor(self.spread[:, :, None] * drawn, dtype=dtype)

    def get_config(self) -> dict[str, Any]:
        return {"spread": self.spread.tolist(), "seed": self.seed}
