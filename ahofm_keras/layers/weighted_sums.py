"""Sums of functions along an array: sum_j w_ij b(t_ij), the columns of a linear functional."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ahofm_keras.bases import Basis, cardinal_slopes, cardinal_splines, locate, spline_centres
from ahofm_keras.packing import pack_array, unpack_array

Array = Any
Namespace = Any  # numpy or keras.ops

# Values of functions in memory at once, of rows in NumPy.
_VALUES = 4_000_000


@dataclass(frozen=True, eq=False)
class WeightedSums:
    """Design columns sum_j w_ij u(t_ij) - centre, where u are functions on an axis.

    Args:
        points: raw column whose rows are the t_i, vectors.
        weights: raw column whose rows are the w_i; None where all are 1.
        width: length of the vectors.
        basis: of splines on the axis of t.
        transform: T `(M, r)`, u = b T.
        centre: `(r,)`, subtracted from each column.
    """

    points: str
    weights: str | None
    width: int
    basis: Basis
    transform: np.ndarray
    centre: np.ndarray

    def __len__(self) -> int:
        return self.transform.shape[1]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the raw columns."""
        return (self.points,) if self.weights is None else (self.points, self.weights)

    def functions(self, t: Array, namespace: Namespace = np) -> Array:
        """u at points `(n,)` of the axis, `(n, r)`, in float64."""
        basis = self.basis
        place = locate(basis, t, namespace)[:, None]
        # The functions of a circle that lie beyond its end are those at its beginning.
        turn = basis.degree if basis.kind == "cp" else 0
        centres = spline_centres(basis.size + turn, basis.degree)
        transform = np.concatenate([self.transform, self.transform[:turn]])
        if not basis.is_straight_beyond:
            return namespace.matmul(cardinal_splines(place, centres, basis.degree, namespace), transform)
        end = float(basis.intervals)
        inside = namespace.clip(place, 0.0, end)
        # The slope of straight pieces jumps at the knots: take it in the middle of the piece.
        at = namespace.clip(place, 0.5, end - 0.5) if basis.degree == 1 else inside
        slopes = cardinal_slopes(at, centres, basis.degree, namespace)
        values = cardinal_splines(inside, centres, basis.degree, namespace)
        return namespace.matmul(values + (place - inside) * slopes, transform)

    def raw(self, columns: Mapping[str, Array], namespace: Namespace = np) -> Array:
        """The sums, before they are centred, `(n, r)`."""
        points = _float64(columns[self.points], namespace)
        weights = namespace.ones_like(points)
        if self.weights is not None:
            weights = _float64(columns[self.weights], namespace)
        if namespace is not np:
            return self._sums(points, weights, namespace)
        step = max(1, _VALUES // (self.width * self.basis.size))
        starts = range(0, max(len(points), 1), step)
        parts = [self._sums(points[k : k + step], weights[k : k + step], np) for k in starts]
        return np.concatenate(parts)

    def compute(self, columns: Mapping[str, Array], namespace: Namespace = np) -> Array:
        """The columns `(n, r)`."""
        return self.raw(columns, namespace) - self.centre

    def _sums(self, points: Array, weights: Array, namespace: Namespace) -> Array:
        functions = self.functions(namespace.reshape(points, (-1,)), namespace)
        functions = namespace.reshape(functions, (-1, self.width, len(self)))
        return namespace.matmul(weights[:, None], functions)[:, 0]

    def outside(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """Of which rows a point that counts lies outside the axis, `(n,)`."""
        if self.basis.period or self.basis.kind != "ps":
            return np.zeros(len(columns[self.points]), bool)
        points = columns[self.points]
        counts = np.ones(1) if self.weights is None else columns[self.weights]
        low, high = self.basis.axis[0], self.basis.axis[-1]
        found: np.ndarray = (((points < low) | (points > high)) & (counts != 0)).any(axis=1)
        return found

    def config(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "points": self.points,
            "weights": self.weights,
            "width": self.width,
            "basis": self.basis.to_json(),
            "transform": pack_array(self.transform),
            "centre": self.centre.tolist(),
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> WeightedSums:
        return cls(
            config["points"],
            config["weights"],
            config["width"],
            Basis.from_json(config["basis"]),
            unpack_array(config["transform"]),
            np.asarray(config["centre"], float),
        )


def _float64(values: Array, namespace: Namespace) -> Array:
    return values.astype(float) if namespace is np else namespace.cast(values, "float64")
