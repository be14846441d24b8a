"""A feature: an expression on a basis, in Demmler-Reinsch coordinates; made once, shared by terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd

from ahofm_keras.bases import (
    Basis,
    center_basis,
    evaluate_basis,
    make_distances,
    make_levels,
    make_linear,
    make_spline,
)
from ahofm_keras.cells import Cells, basis_cells
from ahofm_keras.errors import DataError, warn
from ahofm_keras.formula import TermSpec
from ahofm_keras.formula.options import DISTANCES
from ahofm_keras.packing import pack_array, unpack_array
from ahofm_keras.penalties import DemmlerReinsch, difference_penalty, orthogonalise
from ahofm_keras.terms.atoms import add_atoms, check_atoms, find_atoms
from ahofm_keras.terms.basis_size import choose_size, usual_size
from ahofm_keras.terms.by_features import code_levels, code_number, is_number_coding
from ahofm_keras.terms.isotropic import learn_distances
from ahofm_keras.terms.points import at_point, without_value
from ahofm_keras.terms.regions import count_parts, learn_regions, neighbour_penalty
from ahofm_keras.transforms import Expression, evaluate_expression, learn_expression

# What the two ends of an axis count together, beside all rows, where a margin of a tensor product is
# averaged over: without them a surface may be as rough as it likes along its edges.
_ENDS = 0.3
# Squares of more overflow.
LARGEST = 1e150
# Levels of a category whose dense matrices take minutes.
_MANY_LEVELS = 2000
# How many times the middle nine tenths of the values their range may be wide.
_FAR = 1e9
_CHUNK = 16_384


@dataclass(frozen=True, eq=False)
class Feature:
    """An expression, its basis, and the coordinates in which smooths and factors are learned.

    Args:
        expression: with its state learned.
        basis: with its knots or levels learned.
        transform: T `(M, r)`, from coordinates to coefficients of the basis: (B T)'(B T) = n I, in a
            tensor product with the ends of the axis among the rows of B. The coordinates of atoms come
            first: what each adds to the spline there.
        eigenvalues: `(r,)`: a function B T w has the penalty lambda n sum_m eigenvalues_m w_m^2; those
            of atoms are 0.
        null_dimension: number of coordinates of splines that the penalty does not reach.
        distinct: number of distinct training values.
        rank: largest degrees of freedom that can be reached.
        atom_smoothing: of atoms w_a the penalty is this times n sum_a w_a^2 where the data does not
            choose.
        through: value at which all functions are 0, if there is one; then their means are not.
    """

    expression: Expression
    basis: Basis
    transform: np.ndarray
    eigenvalues: np.ndarray
    null_dimension: int
    distinct: int
    rank: float
    atom_smoothing: float = 0.0
    through: float | None = None

    @property
    def atoms(self) -> int:
        """Number of atoms, whose coordinates come first."""
        return len(self.basis.atoms)

    @cached_property
    def penalties(self) -> np.ndarray:
        """`(1, r)`, or `(2, r)` with atoms: what a unit of each lambda, the atoms' last, adds over n."""
        return np.stack([self.eigenvalues, self.is_atom][: 2 if self.atoms else 1])

    @property
    def is_atom(self) -> np.ndarray:
        """`(r,)`, 1 of the coordinates of atoms, 0 of splines."""
        return (np.arange(len(self.eigenvalues)) < self.atoms).astype(float)

    @property
    def ridge(self) -> np.ndarray:
        """`(r,)`, the penalty of atoms over n where the data does not choose; 0 of splines."""
        return self.atom_smoothing * self.is_atom

    @property
    def label(self) -> str:
        return str(self.expression)

    def cells(self, values: np.ndarray) -> Cells:
        """The functions of the basis that are not zero at values of the expression."""
        return basis_cells(self.basis, values)

    def smoothest(self, count: int) -> np.ndarray:
        """Places of so many splines of the least penalty, all where there are no more, least first."""
        return self.atoms + np.argsort(self.eigenvalues[self.atoms :], kind="stable")[:count]

    def centred_functions(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """Functions of the basis with mean zero over the rows of raw columns, `(r, n)`."""
        values = np.asarray(evaluate_expression(self.expression, columns))
        functions = evaluate_basis(self.basis, values)
        if self.basis.is_dense:  # already centred, if at all
            return (functions - functions.mean(axis=0)).T
        if self.basis.size == 1:  # of which centring would leave nothing
            return functions.T
        return (functions @ center_basis(functions.mean(axis=0))).T

    def to_json(self) -> dict[str, Any]:
        return {
            "expression": self.expression.to_json(),
            "basis": self.basis.to_json(),
            "transform": pack_array(self.transform),
            "eigenvalues": pack_array(self.eigenvalues),
            "null_dimension": self.null_dimension,
            "distinct": self.distinct,
            "rank": self.rank,
            "atom_smoothing": self.atom_smoothing,
            "through": self.through,
        }

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> Feature:
        return cls(
            Expression.from_json(config["expression"]),
            Basis.from_json(config["basis"]),
            unpack_array(config["transform"]),
            unpack_array(config["eigenvalues"]),
            config["null_dimension"],
            config["distinct"],
            config["rank"],
            config["atom_smoothing"],
            config.get("through"),
        )


@dataclass(frozen=True)
class Request:
    """What a term asks of a feature's basis; equal requests share one feature.

    Args:
        kind: `"ps"`, `"cp"`, `"re"`, `"mrf"`, `"linear"`, of distances `"tp"`, `"ds"`, `"gp"`, or `"by"`
            of what multiplies a term.
        size: number of functions where the user gave it, else None.
        df: degrees of freedom that the basis must be able to reach.
        knots: how the knots are placed.
        center: whether its functions have mean zero on the training data.
        margins: of the term: the more, the fewer functions each has where the user does not say.
        ends: whether the ends of the axis count beside the rows, as in a margin of a tensor product.
        degree: of the pieces of a spline.
        difference: order of the differences of coefficients that the penalty is of.
        atoms: values with a function of their own, or `"auto"`: those that stand out.
        form: of functions of distances, what `m` says of them.
        coding: of what multiplies a term, see `by_features`.
        curves: among how many functions of this basis the rows are divided.
        through: value at which all functions are 0.
    """

    kind: str
    size: int | None = None
    df: float = 0.0
    knots: str | tuple[float, float] = "adaptive"
    center: bool = True
    margins: int = 1
    ends: bool = False
    degree: int = 3
    difference: int = 2
    atoms: str | tuple[float, ...] = ()
    form: tuple[float, ...] = ()
    coding: Any = None
    curves: int = 1
    through: float | None = None


class FeaturePool:
    """Learns features from the training columns, each once.

    Args:
        columns: raw training columns.
        levels: of the columns of categories whose levels have an order.
        extrapolation: outside the training range.
        sharing: number of features that have smooths.
        neighbours: of the regions of columns, as the user gave them, by the columns' names.
    """

    def __init__(
        self,
        columns: Mapping[str, np.ndarray],
        levels: Mapping[str, tuple[str, ...]],
        extrapolation: str,
        sharing: int = 1,
        neighbours: Mapping[str, Any] | None = None,
    ) -> None:
        self.neighbours = neighbours or {}
        self.columns = columns
        self.sharing = sharing
        self.levels = levels
        self.extrapolation = extrapolation
        self.features: list[Feature] = []
        self._orthogonal: list[DemmlerReinsch] = []
        # Means of the functions of each feature's basis and their second moments, for its margin.
        self.moments: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._known: dict[tuple[Expression, Request], int] = {}
        self._heaped: dict[Expression, tuple[float, ...]] = {}

    def position(self, expression: Expression, request: Request, spec: TermSpec) -> int:
        """Position of the feature in the pool, learning it where it is new."""
        if request.size is not None:  # whatever df it must reach
            request = replace(request, df=0.0, margins=1, curves=1)
        if request.atoms == "auto":  # a feature without any is the same as one that has none
            request = replace(request, atoms=self._heaps(expression, spec))
        wider = self._at_least(expression, request)
        if wider is not None:
            return wider
        values = feature_values(expression, self.columns, spec)
        feature, orthogonal, moments = _learn(expression, request, values, self, spec)
        self.moments[len(self.features)] = moments
        self.features.append(feature)
        self._orthogonal.append(orthogonal)
        self._known[expression, request] = len(self.features) - 1
        return len(self.features) - 1

    def _heaps(self, expression: Expression, spec: TermSpec) -> tuple[float, ...]:
        """Values of a feature that stand out, looked for once."""
        if expression not in self._heaped:
            values = feature_values(expression, self.columns, spec)
            self._heaped[expression] = find_atoms(*_count_values(values))
        return self._heaped[expression]

    def orthogonal(self, position: int) -> DemmlerReinsch:
        return self._orthogonal[position]

    def _at_least(self, expression: Expression, request: Request) -> int | None:
        """A known feature that serves: the same request, or one of a df that is as high."""
        for (known, other), place in self._known.items():
            if (
                known == expression
                and replace(other, df=request.df) == request
                and other.df >= request.df
            ):
                return place
        return None


def feature_values(
    expression: Expression, columns: Mapping[str, np.ndarray], spec: TermSpec
) -> np.ndarray:
    """Training values of an expression, checked to be finite."""
    names = list(expression.columns())
    if expression.is_point:
        _check_coordinates(expression, columns, spec)
    if not expression.is_column and not expression.is_category:
        for name in names:
            if columns[name].dtype.kind != "f":
                raise DataError(
                    f"`{expression}` needs numbers, but column `{name}` holds "
                    f"{'booleans' if columns[name].dtype.kind == 'b' else 'texts'}."
                )
    with np.errstate(all="ignore"):
        values = np.asarray(evaluate_expression(learn_expression(expression, columns), columns))
    check_finite(expression, values, columns)
    return values


def _check_coordinates(
    expression: Expression, columns: Mapping[str, np.ndarray], spec: TermSpec
) -> None:
    """Raise where a coordinate of a point is a category."""
    for name in expression.columns():
        if columns[name].dtype.kind != "f":
            kind = "booleans" if columns[name].dtype.kind == "b" else "texts"
            raise DataError(
                f"`{spec.label}` takes distances between points, but column `{name}` holds {kind}. "
                f'A curve for each level of a category is `s({expression}, bs="fs")`.'
            )


def find_levels(
    expression: Expression, values: np.ndarray, known: Mapping[str, tuple[str, ...]]
) -> tuple[Any, ...]:
    """Levels of a category in their order, which every term of it shares.

    Args:
        expression: the column, or `C()` of it.
        values: its training values.
        known: levels of the columns that have an order; of all others texts stand in the order of the
            alphabet, numbers rising.
    """
    given = known.get(next(expression.columns())) if values.dtype == object else None
    return given or tuple(sorted(set(values.tolist())))


def check_finite(expression: Expression, values: np.ndarray, columns: Mapping[str, np.ndarray]) -> None:
    """Raise a `DataError` where a function of the formula has no finite value, or a huge one."""
    if values.dtype.kind != "f":
        return
    bad = ~np.isfinite(values.reshape(len(values), -1)).all(axis=1)
    if not bad.any() and np.abs(values).max() > LARGEST:
        raise DataError(f"`{expression}` has values beyond {LARGEST:g}. Use another unit.")
    if bad.any():
        row = int(np.argmax(bad))
        inputs = ", ".join(f"{name} = {columns[name][row]:g}" for name in expression.columns())
        raise DataError(
            f"`{expression}` is not finite in {int(bad.sum()):,} of {len(bad):,} rows, first at row "
            f"{row} ({inputs})."
        )


def _learn(
    expression: Expression,
    request: Request,
    values: np.ndarray,
    pool: FeaturePool,
    spec: TermSpec,
) -> tuple[Feature, DemmlerReinsch, tuple[np.ndarray, np.ndarray]]:
    # Sums over rows are sums over distinct values with their counts, sorted only once.
    found, counts = _count_values(values)
    distinct = len(found)
    if distinct < 2:
        raise constant_column(expression, spec)
    if request.kind == "by":
        return _learn_by(expression, request, values, pool)
    if request.kind in DISTANCES:
        basis = learn_distances(request, expression, found, len(values), pool.extrapolation, spec)
    elif request.kind == "mrf":
        basis = learn_regions(expression, found, pool.neighbours, spec)
    elif request.kind == "re":
        basis = make_levels(find_levels(expression, found, pool.levels))
        if basis.size > _MANY_LEVELS:
            warn(
                f"`{expression}` has {basis.size:,} levels: time grows with the cube of their number, "
                "and memory with its square. Expect minutes, or join levels that have few rows."
            )
    else:
        basis = make_basis(request, found, counts, pool, spec)
    if basis.is_spline:
        warn_of_far_values(expression, values)
    for coordinate, own in zip(expression.coordinates, values.T, strict=False):
        if expression.is_point:
            warn_of_far_values(coordinate, own)
    gram, means = basis_gram(basis, found, counts)
    centred = request.center and basis.kind != "linear"
    diagonalise = partial(
        orthogonalise,
        penalty=basis_penalty(basis),
        rows=len(values),
        null_dimension=max(count_free(basis) - centred, 0),
    )
    zero = center_basis(means) if centred else None
    # Degrees of freedom are those of the centred rows; only the coordinates know of ends and points.
    orthogonal = coordinates = diagonalise(gram, constraint=zero)
    if request.ends:
        coordinates = diagonalise(_with_ends(gram, basis, values), constraint=zero)
    if request.through is not None:
        there = at_point(basis, request.through, spec)
        coordinates = diagonalise(gram, constraint=center_basis(there))
    transform = coordinates.transform
    if basis.radial is not None:
        basis = make_distances(basis.kind, basis.radial.transformed(transform), basis.extrapolation)
        gram, means = transform.T @ gram @ transform, transform.T @ means
        transform = np.eye(basis.size)
    feature = Feature(
        learn_expression(expression, pool.columns),
        basis,
        transform,
        coordinates.eigenvalues,
        orthogonal.null_dimension,
        distinct,
        orthogonal.rank,
    )
    if request.atoms:
        assert not isinstance(request.atoms, str), "those that stand out are known"
        atoms = check_atoms(request.atoms, found, expression, spec)
        feature = add_atoms(feature, atoms, found, counts, centred and request.through is None)
        gram, means = basis_gram(feature.basis, found, counts)
    if request.through is not None:
        feature = without_value(feature, request.through)
    return feature, orthogonal, (means, gram / len(values))


def _learn_by(
    expression: Expression, request: Request, values: np.ndarray, pool: FeaturePool
) -> tuple[Feature, DemmlerReinsch, tuple[np.ndarray, np.ndarray]]:
    """What multiplies a term: as it is, neither centred nor smoothed."""
    found, counts = _count_values(values)
    if is_number_coding(request.coding):
        coded = code_number(request.coding, values)
    else:
        coded = code_levels(request.coding, find_levels(expression, found, pool.levels), values)
    gram, means = basis_gram(coded.basis, found, counts)
    # Degrees of freedom of its levels where they are random effects.
    orthogonal = orthogonalise(
        gram, penalty=np.eye(len(gram)), rows=len(values), constraint=None, null_dimension=0
    )
    feature = Feature(
        learn_expression(expression, pool.columns),
        coded.basis, coded.transform, coded.eigenvalues, 0, len(found), orthogonal.rank,
    )  # fmt: skip
    return feature, orthogonal, (means, gram / len(values))


def warn_of_far_values(expression: Expression, values: np.ndarray) -> None:
    """Values such as 1e20 stand for missing ones; no knots serve them and the others alike."""
    low, high = np.quantile(values, [0.05, 0.95])
    ends = np.array([values.min(), values.max()])
    if 0 < high - low < (ends[1] - ends[0]) / _FAR:
        furthest = ends[np.argmax(np.abs(ends - (low + high) / 2))]
        warn(
            f"`{expression}` goes to {furthest:g}, but nine tenths of its rows lie between {low:g} and "
            f"{high:g}: a smooth of it cannot follow both. If that stands for a missing value, drop "
            "such rows; else transform the column."
        )


def constant_column(expression: Expression, spec: TermSpec) -> DataError:
    """The error for a feature that does not vary."""
    return DataError(
        f"`{expression}` is constant, so `{spec.label}` cannot learn anything from it. Leave it out."
    )


def make_basis(
    request: Request, values: np.ndarray, counts: np.ndarray, pool: FeaturePool, spec: TermSpec
) -> Basis:
    """The basis of a number, from its distinct values, rising, and how many rows have each."""
    if request.kind == "linear":
        return make_linear(values, counts)
    cyclic = request.kind == "cp"
    usual = usual_size(request, int(counts.sum()) // request.curves, pool.sharing * request.curves)
    size, degree = choose_size(request, usual, len(values), spec)
    _check_ends(request.knots, values, spec)
    return make_spline(
        values,
        size,
        counts=counts,
        degree=degree,
        knots=request.knots,
        cyclic=cyclic,
        extrapolation=pool.extrapolation,
        difference=request.difference,
    )


def _check_ends(knots: str | tuple[float, float], values: np.ndarray, spec: TermSpec) -> None:
    if isinstance(knots, str):
        return
    outside = (values < knots[0]) | (values > knots[1])
    if outside.any():
        raise spec.error(
            f"`knots` of `{spec.label}` must span the training values, from {values.min():g} to "
            f"{values.max():g}.\n    Received: knots={knots!r}."
        )


def basis_penalty(basis: Basis) -> np.ndarray:
    """The penalty of the coefficients of a basis `(M, M)`."""
    if basis.kind == "mrf":
        return neighbour_penalty(basis.size, basis.neighbours)
    if basis.radial is not None:
        return np.diag(basis.radial.roughness)
    if not basis.is_spline:
        return np.eye(basis.size)
    if basis.kind == "cp":
        return difference_penalty(basis.size, basis.difference, cyclic=True)
    # Straight is what is straight in x, wherever the knots are.
    return difference_penalty(basis.size, basis.difference, at=np.asarray(basis.line))


def count_free(basis: Basis) -> int:
    """Functions that the penalty leaves free: polynomials below its order, but on a circle constants."""
    if basis.radial is not None:
        return len(basis.radial.powers)
    if basis.kind == "mrf":
        return count_parts(basis.size, basis.neighbours)
    return {"ps": min(basis.difference, basis.size), "cp": 1}.get(basis.kind, 0)


def _with_ends(gram: np.ndarray, basis: Basis, values: np.ndarray) -> np.ndarray:
    """B'B where the smallest and the largest value have a share of the rows' weight."""
    ends = evaluate_basis(basis, np.array([values.min(), values.max()]))
    return (1 - _ENDS) * gram + _ENDS * len(values) / 2 * ends.T @ ends


def _count_values(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values or points, numbers rising, and how many rows have each."""
    if values.dtype == object:
        codes, found = pd.factorize(values)
        return found, np.bincount(codes)
    return np.unique(values, axis=None if values.ndim == 1 else 0, return_counts=True)


def basis_gram(basis: Basis, values: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """B'B and the column means of B, of distinct values and how many rows have each."""
    gram = np.zeros((basis.size, basis.size))
    total = np.zeros(basis.size)
    for start in range(0, len(values), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        cells, weights = basis_cells(basis, values[chunk]), counts[chunk].astype(float)
        gram += cells.gram(weights)
        total += cells.sums(weights)
    return gram, total / counts.sum()
