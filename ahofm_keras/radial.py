"""Radial bases: functions of the distances between a point and some knots, for isotropic smooths.

A function is sum_k delta_k c(|x - x_k|) + a polynomial, with the penalty delta' E delta, E = c of the
distances between the knots. With c(r) = r^k or r^k log r it is a Duchon spline, of which thin plate
splines are a case: delta is then such that sum_k delta_k p(x_k) = 0 for all polynomials p that the
penalty leaves free. With c a correlation function it is the mean of a gaussian process. Of the
directions of delta those of the largest eigenvalues are kept: these are the smoothest functions.

Coordinates share one unit, so that what is near in one is as near in another. The functions take `numpy`
or `keras.ops` as `namespace`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from ahofm_keras.draws import generator
from ahofm_keras.packing import pack_array, unpack_array

Array = Any
Namespace = Any

# Numbers as mgcv's `m` has them, for the correlation functions of bs="gp".
CORRELATIONS = {1: "spherical", 2: "exponential", 3: "matern_3", 4: "matern_5", 5: "matern_7"}
# So many different points are all knots; of more, as many centres of clusters of some rows, at least
# these and so many times the functions.
MOST_POINTS = 200
_KNOTS_OF_A_FUNCTION = 3
_CLUSTERED_ROWS = 10_000
_CLUSTERING_STEPS = 10
# Eigenvalues below this share of the largest are rounding.
_ROUNDING = 1e-12
# Squared distances below this have no logarithm.
_NOWHERE = 1e-300


@dataclass(frozen=True, eq=False)
class Radial:
    """Functions of points with d coordinates.

    Args:
        kernel: `"power"`, `"logarithm"`, or a value of `CORRELATIONS`.
        shape: the power of distances; of a correlation function the distance that is its unit.
        power: of `"exponential"`, exp(-r^power).
        centre: of the points `(d,)`.
        unit: of all coordinates.
        ends: smallest and largest training value of each coordinate, `(2, d)`.
        knots: `(m, d)`, in units from the centre.
        projection: `(m, M)`, coefficients delta of M functions.
        powers: `(t, d)`, those of the coordinates in the polynomials, which are not penalised.
        mixing: `(t, M)`, coefficients of the polynomials in these functions.
        roughness: `(M,)`, the penalty of the functions.
    """

    kernel: str
    shape: float
    power: float
    centre: np.ndarray
    unit: float
    ends: np.ndarray
    knots: np.ndarray
    projection: np.ndarray
    powers: np.ndarray
    mixing: np.ndarray
    roughness: np.ndarray

    @property
    def dimension(self) -> int:
        """Number of coordinates d."""
        return len(self.centre)

    @property
    def size(self) -> int:
        """Number of functions."""
        return self.projection.shape[1]

    def transformed(self, transform: np.ndarray) -> Radial:
        """The combinations T `(M, r)` of its functions, whose penalty is diagonal too.

        Functions of distances are large and nearly cancel in those that a model is learned in: so these
        are computed here, in float64, and not by layers.
        """
        return replace(
            self,
            projection=self.projection @ transform,
            mixing=self.mixing @ transform,
            roughness=np.einsum("mr,m,mr->r", transform, self.roughness, transform),
        )

    def to_json(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in ("kernel", "shape", "power", "unit")}
        arrays = {name: pack_array(getattr(self, name)) for name in _ARRAYS}
        return {**plain, "powers": self.powers.tolist(), **arrays}

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> Radial:
        arrays: dict[str, Any] = {name: unpack_array(config[name]) for name in _ARRAYS}
        plain = {name: config[name] for name in ("kernel", "shape", "power", "unit")}
        return cls(**plain, powers=np.asarray(config["powers"], int), **arrays)

    def locate(self, x: Array, clip: bool, namespace: Namespace = np) -> Array:
        """Raw points `(n, d)` in units from the centre, held between the ends where they are clipped."""
        x = namespace.reshape(x, (-1, self.dimension))
        if clip:
            x = namespace.minimum(namespace.maximum(x, self.ends[0]), self.ends[1])
        return (x - self.centre) / np.float64(self.unit)

    def evaluate(self, places: Array, namespace: Namespace = np) -> Array:
        """All functions at located points `(d, n)`: `(M, n)`."""
        kernel = kernel_values(
            self.kernel, self.shape, self.power, self._squares(places, namespace), namespace
        )
        free = []
        for own in self.powers:
            term = namespace.ones_like(places[0])
            for coordinate, power in enumerate(own):
                for _ in range(power):
                    term = term * places[coordinate]
            free.append(term)
        distances = namespace.matmul(self.projection.T, kernel)
        return distances + namespace.matmul(self.mixing.T, namespace.stack(free))

    def _squares(self, places: Array, namespace: Namespace) -> Array:
        """Squared distances to the knots, `(m, n)`."""
        total: Array = 0.0
        for coordinate in range(self.dimension):
            difference = places[coordinate][None, :] - self.knots[:, coordinate][:, None]
            total = total + difference * difference
        return total


_ARRAYS = ("centre", "ends", "knots", "projection", "mixing", "roughness")


def kernel_values(
    kernel: str, shape: float, power: float, squares: Array, namespace: Namespace = np
) -> Array:
    """c(r) from squared distances, signed so that its matrices are positive definite, see `Radial`."""
    squares = namespace.maximum(squares, np.float64(_NOWHERE))
    if kernel in ("power", "logarithm"):
        sign = np.float64(-1 if int(shape // 2 + 1) % 2 else 1)
        found = sign * squares ** np.float64(shape / 2)
        return found * namespace.log(squares) / 2 if kernel == "logarithm" else found
    r = namespace.sqrt(squares) / np.float64(shape)
    return _CORRELATION_OF[kernel](r, power, namespace)


_CORRELATION_OF: dict[str, Callable[[Array, float, Namespace], Array]] = {
    "spherical": lambda r, _, xp: xp.where(r <= 1, 1 - 1.5 * r + 0.5 * r * r * r, 0 * r),
    "exponential": lambda r, power, xp: xp.exp(-(r ** np.float64(power))),
    "matern_3": lambda r, _, xp: (1 + r) * xp.exp(-r),
    "matern_5": lambda r, _, xp: (1 + r + r * r / 3) * xp.exp(-r),
    "matern_7": lambda r, _, xp: (1 + r + 0.4 * r * r + r * r * r / 15) * xp.exp(-r),
}


def usual_order(dimension: int) -> int:
    """The least order m of the derivatives in a thin plate spline's penalty for which it is smooth."""
    return (dimension + 1) // 2 + 1


def count_polynomials(order: int, dimension: int) -> int:
    """Number of polynomials below a degree in so many coordinates."""
    return len(_powers(order, dimension))


def make_duchon(x: np.ndarray, size: int, order: int, s: float = 0.0) -> Radial:
    """A Duchon spline; with s = 0 a thin plate spline.

    Args:
        x: distinct training points `(n, d)`.
        size: number of functions, those of polynomials below `order` among them.
        order: of the derivatives in the penalty.
        s: power of frequencies by which the penalty weighs these; order + s above d / 2.
    """
    centre, unit, ends, knots = _choose_knots(x, size)
    dimension = x.shape[1]
    exponent = 2 * order + 2 * s - dimension
    kernel = "logarithm" if exponent % 2 == 0 else "power"
    powers = _powers(order, dimension)
    matrix = kernel_values(kernel, exponent, 1.0, _distances(knots))
    polynomials = np.stack([np.prod(knots**own, axis=1) for own in powers], axis=1)
    free = np.linalg.qr(polynomials, mode="complete")[0][:, len(powers) :]
    projection, roughness = _smoothest(free.T @ matrix @ free, size - len(powers))
    return Radial(
        kernel, exponent, 1.0, centre, unit, ends, knots,
        *_with_polynomials(free @ projection, roughness, powers),
    )  # fmt: skip


def make_process(
    x: np.ndarray,
    size: int,
    correlation: str = "matern_3",
    reach: float | None = None,
    power: float = 1.0,
    stationary: bool = False,
) -> Radial:
    """The mean of a gaussian process, beside which there is a plane.

    Args:
        x: distinct training points `(n, d)`.
        size: number of functions, the constant and those of the plane among them.
        correlation: a value of `CORRELATIONS`.
        reach: the distance, in the points' own unit, that is 1 for the correlation function; by default
            the largest between two knots.
        power: of `"exponential"`.
        stationary: whether there is no plane, only a constant.
    """
    centre, unit, ends, knots = _choose_knots(x, size)
    squares = _distances(knots)
    shape = float(np.sqrt(squares.max())) if reach is None else reach / unit
    powers = _powers(1 if stationary else 2, x.shape[1])
    matrix = kernel_values(correlation, shape, power, squares)
    projection, roughness = _smoothest(matrix, size - len(powers))
    return Radial(
        correlation, shape, power, centre, unit, ends, knots,
        *_with_polynomials(projection, roughness, powers),
    )  # fmt: skip


def _with_polynomials(
    projection: np.ndarray, roughness: np.ndarray, powers: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Projection, powers, mixing and roughness of functions of distances, polynomials after them."""
    count, free = projection.shape[1], len(powers)
    mixing = np.concatenate([np.zeros((free, count)), np.eye(free)], axis=1)
    wide = np.concatenate([projection, np.zeros((len(projection), free))], axis=1)
    return wide, powers, mixing, np.append(roughness, np.zeros(free))


def _smoothest(matrix: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of the functions of the largest eigenvalues, in the size of 1, and their penalty."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    values, vectors = values[::-1][:count], vectors[:, ::-1][:, :count]
    kept = values > _ROUNDING * values[0]
    values, vectors = values[kept], vectors[:, kept]
    # At the knots a function is its eigenvalue times its vector.
    sizes = values / np.sqrt(len(matrix))
    return vectors / sizes, values / sizes**2


def _choose_knots(x: np.ndarray, size: int) -> tuple[np.ndarray, float, np.ndarray, np.ndarray]:
    """Centre, unit, ends and knots of points: all of them, or centres of clusters."""
    centre = x.mean(axis=0)
    unit = float(np.sqrt(np.mean(np.sum((x - centre) ** 2, axis=1))))
    ends = np.stack([x.min(axis=0), x.max(axis=0)])
    knots = (x - centre) / unit
    count = max(MOST_POINTS, _KNOTS_OF_A_FUNCTION * size)
    if len(knots) > count:
        random = generator(0, "knots of a radial basis")
        chosen = random.permutation(len(knots))[:_CLUSTERED_ROWS]
        sample = knots[np.sort(chosen)]
        start = sample[random.choice(len(sample), count, replace=False)]
        knots = _cluster_centres(sample, start)
    return centre, unit, ends, knots


def _cluster_centres(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Centres of clusters of points: some steps of k-means."""
    for _ in range(_CLUSTERING_STEPS):
        nearest = cKDTree(centres).query(points)[1]
        counts = np.bincount(nearest, minlength=len(centres))
        filled = counts > 0
        for coordinate, own in enumerate(points.T):
            sums = np.bincount(nearest, own, minlength=len(centres))
            centres[filled, coordinate] = sums[filled] / counts[filled]
    return centres


def _distances(knots: np.ndarray) -> np.ndarray:
    """Squared distances between knots."""
    return np.asarray(np.sum((knots[:, None] - knots[None]) ** 2, axis=2))


def _powers(order: int, dimension: int) -> np.ndarray:
    """Powers of the coordinates in all polynomials below a degree, the constant first."""
    found = [own for own in product(range(order), repeat=dimension) if sum(own) < order]
    return np.array(sorted(found, key=lambda own: (sum(own), [-power for power in own])), int)
