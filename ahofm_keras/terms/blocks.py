"""Coefficients of terms as solvers, the posterior and tables see them.

However many kinds of terms there are, a term's coefficients are of few shapes: columns of the linear
block, penalised or not, or the factors of one order of an interaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import product
from typing import Any, Protocol

import numpy as np

from ahofm_keras.layers.inputs import ABSENT
from ahofm_keras.shapes import shape_rows
from ahofm_keras.tensors import (
    count_products,
    flatten_coordinates,
    margin_blocks,
    margin_penalties,
    row_products,
    shape_coordinates,
    tensor_shape,
    with_constant,
)
from ahofm_keras.terms.features import Feature
from ahofm_keras.terms.parametric import Parametric


@dataclass(frozen=True, eq=False)
class Sources:
    """What the terms of all predictors share.

    Args:
        features: each basis once.
        column_slices: where the design columns of each term stand among those of all, by its name.
    """

    features: tuple[Feature, ...]
    column_slices: Mapping[str, slice]


class BasisOnRows(Protocol):
    """The basis functions of a feature on some rows."""

    def evaluate(self, coefficients: np.ndarray) -> np.ndarray:
        """Functions of given coefficients `(P, M)` at the rows, `(P, n)`."""
        ...

    def sums(self, weights: np.ndarray) -> np.ndarray:
        """Sums of the functions over the rows, with weights `(P, n)`: `(P, M)`."""
        ...


class RowsOfTerms(Protocol):
    """Some rows as the columns of a linear block need them."""

    @property
    def bases(self) -> Sequence[BasisOnRows] | Mapping[int, BasisOnRows]:
        """Of the features of the design, by position; those that a term uses at least."""
        ...

    @property
    def columns(self) -> np.ndarray:
        """Design columns `(C, n)`."""
        ...


@dataclass(frozen=True)
class UserCoefficients:
    """What a reader calls the coefficients of a term.

    Args:
        labels: one per coefficient.
        transform: `(c, q)`, from the coefficients inside a model.
        at_zero: `(q,)`, what each coefficient inside the model adds to the intercept.
    """

    labels: list[str]
    transform: np.ndarray
    at_zero: np.ndarray


class Columns:
    """Columns of the linear block: the predictor is linear in their coefficients.

    Attributes:
        size: number of coefficients q.
        penalties: `(d, q)`, what a unit of each lambda adds to the precisions; d = 0: not penalised. One
            per margin, and after these one per margin that has atoms.
        smoothing: the d lambdas that were asked for.
        atoms: number of the last lambdas that are those of atoms.
        df: degrees of freedom of each margin at its lambda.
        fixed: whether the user gave lambda (`sp=`), so that no solver chooses it.
        shares: which coefficients share their smoothing, as numbers of groups `(q,)`, rising; all do by
            default.
        norms: weight of each such group where the penalty is lambda times the sum of the norms of the
            groups, which makes some of them 0; empty where it is quadratic.
        features: of its margins.
        positions: of these in the design.
        pure: whether its functions have mean zero along each margin.
        transform: `(M, q)`, from its coefficients to those of the basis functions of its one feature;
            None where they are not functions of one feature.
        shape: that the function of a smooth is held in, one of `shapes.SHAPES`; empty where it is free.
        inequalities: `(c, q)`, forms of the coefficients that are at least 0 because of it; None where
            coefficients are free.
        remedy: what makes it smaller, in words.
        inner: of products with functions of another variable, what these multiply; else None.
        width: number of these functions.
    """

    size: int
    penalties: np.ndarray
    smoothing: tuple[float, ...] = ()
    atoms: int = 0
    df: tuple[float, ...] = ()
    fixed: bool = True
    norms: tuple[float, ...] = ()
    features: tuple[Feature, ...] = ()
    positions: tuple[int, ...] = ()
    pure: bool = True
    transform: np.ndarray | None = None
    shape: str = ""
    inequalities: np.ndarray | None = None
    remedy: str
    inner: Columns | None = None
    width: int = 1

    @property
    def shares(self) -> np.ndarray:
        return np.zeros(self.size, int)

    @property
    def groups(self) -> int:
        """Number of groups of coefficients that share their smoothing."""
        return int(self.shares.max(initial=0)) + 1

    def precisions(self, smoothing: np.ndarray) -> np.ndarray:
        """lambda s, summed over lambdas, + tau of each coefficient `(q,)`.

        Args:
            smoothing: logarithms of the lambdas and, last, of tau, of each group `(groups, d + 1)`.
        """
        each = np.exp(smoothing)[self.shares]
        found: np.ndarray = np.einsum("qd,dq->q", each[:, :-1], self.penalties)
        return found + each[:, -1] * self.is_shrunk

    @property
    def order(self) -> int:
        """Number of features that its functions depend on together."""
        return len(self.features)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of splines of its margins."""
        return tuple(feature.basis.splines for feature in self.features)

    @property
    def is_shrunk(self) -> np.ndarray:
        """`(q,)`, which coefficients tau reaches: all but those of atoms."""
        own = self.penalties[len(self.penalties) - self.atoms :]
        return np.asarray(~own.any(axis=0))

    @property
    def is_penalised(self) -> bool:
        return len(self.penalties) > 0

    @property
    def leading(self) -> np.ndarray:
        """Places of the coefficients that the smoothing asked for leaves most of, as many as its df.

        The columns of others hardly serve the term, and are so many that anything could be written with
        them on the rows of a fit. Where all are penalised alike these are all.
        """
        asked = np.asarray(self.smoothing, float)[: len(self.penalties)]
        penalty = asked @ self.penalties if len(asked) else np.zeros(self.size)
        count = int(np.ceil(np.sum(1 / (1 + penalty))))
        return np.flatnonzero(penalty <= (1 + 1e-9) * np.sort(penalty)[count - 1])

    @property
    def is_random_effect(self) -> bool:
        """Whether there may be levels that were not seen, with an effect of unknown sign."""
        return len(self.features) == 1 and self.features[0].basis.kind == "re"

    def dense(self, rows: RowsOfTerms) -> np.ndarray:
        """All columns at the rows, `(q, n)`."""
        raise NotImplementedError

    def sums(self, rows: RowsOfTerms, weights: np.ndarray) -> np.ndarray:
        """Sums over the rows of weights times columns, `(q,)`."""
        raise NotImplementedError

    def evaluate(self, rows: RowsOfTerms, coefficients: np.ndarray) -> np.ndarray:
        """The columns times coefficients `(q,)`, `(n,)`."""
        raise NotImplementedError

    def shaped(self, coefficients: np.ndarray) -> np.ndarray:
        """Coefficients `(q,)` as the term's layer holds them."""
        return coefficients

    def flatten(self, coordinates: np.ndarray) -> np.ndarray:
        """What the term's layer holds as coefficients `(q,)`."""
        return coordinates

    def user(self, label: str) -> UserCoefficients:
        """The coefficients in the user's units."""
        raise NotImplementedError

    def on_columns(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """The functions that it spans, at raw columns, not standardised, `(n, q)`."""
        raise NotImplementedError

    def edf_along(self, margin: int, edf: np.ndarray) -> float:
        """Degrees of freedom along one margin, at the best place on the others.

        Args:
            margin: its number.
            edf: of all coefficients, `(q,)`.
        """
        raise NotImplementedError

    def describe(self, places: Mapping[int, tuple[int, int]]) -> dict[str, Any]:
        """What the layer `Posterior` has to know to compute the columns in a model's graph.

        Args:
            places: position of each feature in the design -> its basis expansion and place in it.
        """
        return {"size": self.size, "lambdas": len(self.penalties), "groups": self.groups}


class DesignColumns(Columns):
    """Parametric columns, not penalised unless penalties are given.

    Args:
        parametric: the columns.
        where: among the design columns of all terms.
        penalties: `(d, q)`, see `Columns`.
        smoothing: lambda of each.
        fixed: whether the user gave lambda.
        shares, norms: see `Columns`.
        df: degrees of freedom at that lambda.
    """

    remedy = "Merge rare levels"

    def __init__(
        self,
        parametric: Parametric,
        where: slice,
        penalties: np.ndarray | None = None,
        smoothing: tuple[float, ...] = (),
        fixed: bool = True,
        shares: Sequence[int] | None = None,
        norms: tuple[float, ...] = (),
        df: tuple[float, ...] = (),
    ) -> None:
        self.parametric = parametric
        self.where = where
        self.size = len(parametric)
        self.penalties = np.zeros((0, self.size)) if penalties is None else penalties
        self.smoothing, self.fixed, self.norms, self.df = smoothing, fixed, norms, df
        self._shares = np.zeros(self.size, int) if shares is None else np.asarray(shares, int)

    @property
    def shares(self) -> np.ndarray:
        return self._shares

    @property
    def order(self) -> int:
        """Number of factors of its largest product."""
        chosen = np.asarray(self.parametric.columns, int).reshape(self.size, -1)
        return int(np.count_nonzero(chosen != ABSENT, axis=1).max(initial=1))

    def dense(self, rows: RowsOfTerms) -> np.ndarray:
        return rows.columns[self.where]

    def sums(self, rows: RowsOfTerms, weights: np.ndarray) -> np.ndarray:
        found: np.ndarray = rows.columns[self.where] @ weights
        return found

    def evaluate(self, rows: RowsOfTerms, coefficients: np.ndarray) -> np.ndarray:
        found: np.ndarray = coefficients @ rows.columns[self.where]
        return found

    def user(self, label: str) -> UserCoefficients:
        scale, centre = np.asarray(self.parametric.scale), np.asarray(self.parametric.centre)
        # A column is (x - centre) / scale: at x = 0 it is not 0.
        return UserCoefficients(list(self.parametric.coefficients), np.diag(1 / scale), -centre / scale)

    def on_columns(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        return self.parametric.raw(columns) / np.asarray(self.parametric.scale)

    def describe(self, places: Mapping[int, tuple[int, int]]) -> dict[str, Any]:
        return {**super().describe(places), "columns": [self.where.start, self.where.stop]}


class ProductColumns(Columns):
    """Products of the functions of some margins, see `tensors`; a smooth has one margin.

    Only the Gram matrix of the linear block needs all products at once; what they sum to is computed
    margin by margin.

    Args:
        positions: of the margins in the design.
        features: the same features.
        smoothing: lambda of each margin.
        df: degrees of freedom of each margin at that lambda.
        pure: whether every function has mean zero along each margin.
        fixed: whether the user gave lambda.
        shape: of a smooth, one of `shapes.SHAPES`; empty where it is free.
    """

    def __init__(
        self,
        positions: tuple[int, ...],
        features: tuple[Feature, ...],
        smoothing: tuple[float, ...],
        df: tuple[float, ...],
        pure: bool,
        fixed: bool,
        shape: str = "",
    ) -> None:
        self.positions, self.features = positions, features
        heaped = [feature.atom_smoothing for feature in features if feature.atoms]
        self.smoothing, self.atoms = (*smoothing, *heaped), len(heaped)
        self.df, self.pure, self.fixed = df, pure, fixed
        self._widths = [len(feature.eigenvalues) for feature in features]
        self.size = count_products(self._widths, pure)
        self.transform = features[0].transform if pure and len(features) == 1 else None
        self.shape = shape
        if shape:
            rows, free = shape_rows(shape, features[0].basis.size)
            self.inequalities = rows[: len(rows) - free] @ features[0].transform

    @cached_property
    def penalties(self) -> np.ndarray:  # type: ignore[override]
        splines = margin_penalties([feature.eigenvalues for feature in self.features], self.pure)
        if not self.atoms:
            return splines
        ridges = margin_penalties([feature.is_atom for feature in self.features], self.pure)
        return np.concatenate([splines, ridges[[bool(feature.atoms) for feature in self.features]]])

    @property
    def remedy(self) -> str:  # type: ignore[override]
        largest = max(self.features, key=lambda feature: len(feature.eigenvalues))
        return remedy(largest, "a smaller k")

    def shaped(self, coefficients: np.ndarray) -> np.ndarray:
        return shape_coordinates(coefficients, self._widths, self.pure)

    def flatten(self, coordinates: np.ndarray) -> np.ndarray:
        return flatten_coordinates(coordinates, self.pure)

    def dense(self, rows: RowsOfTerms) -> np.ndarray:
        margins = [self._functions(rows, margin) for margin in range(len(self.features))]
        found: np.ndarray = row_products(margins, self.pure)
        return found

    def sums(self, rows: RowsOfTerms, weights: np.ndarray) -> np.ndarray:
        """The last margin's functions are summed cell by cell."""
        total = weights[None]
        for margin in range(len(self.features) - 1):
            functions = self._with_constant(self._functions(rows, margin))
            total = (total[:, None] * functions).reshape(-1, len(weights))
        sums = rows.bases[self.positions[-1]].sums(total) @ self.features[-1].transform
        if not self.pure:
            sums = np.concatenate([total.sum(axis=1, keepdims=True), sums], axis=1)
        return flatten_coordinates(sums, self.pure)

    def evaluate(self, rows: RowsOfTerms, coefficients: np.ndarray) -> np.ndarray:
        inner = self.shaped(coefficients)
        inner = inner.reshape(-1, inner.shape[-1])
        constants, inner = (0.0, inner) if self.pure else (inner[:, :1], inner[:, 1:])
        total = rows.bases[self.positions[-1]].evaluate(inner @ self.features[-1].transform.T)
        total = total + constants
        for margin in reversed(range(len(self.features) - 1)):
            functions = self._with_constant(self._functions(rows, margin))
            parts = total.reshape(-1, *functions.shape)
            total = np.einsum("akn,kn->an", parts, functions)
        return total[0]

    def _functions(self, rows: RowsOfTerms, margin: int) -> np.ndarray:
        """Functions of one margin at the rows, `(r, n)`."""
        return rows.bases[self.positions[margin]].evaluate(self.features[margin].transform.T)

    def _with_constant(self, functions: np.ndarray) -> np.ndarray:
        return functions if self.pure else with_constant(functions)

    def user(self, label: str) -> UserCoefficients:
        """Those of a smooth are basis functions; of a tensor product, products of basis functions."""
        blocks = margin_blocks(tensor_shape(self._widths, self.pure), self.pure)
        labels: list[str] = []
        transforms: list[np.ndarray] = []
        for block in blocks:
            features = [self.features[margin] for margin in block.margins]
            own = reduce(np.kron, [feature.transform for feature in features])
            wide = np.zeros((len(own), self.size))
            wide[:, block.coefficients] = own
            transforms.append(wide)
            if len(self.features) == 1:
                labels += function_labels(label, features[0])
            else:
                names = product(*(function_labels(feature.label, feature) for feature in features))
                labels += [f"{label}.{':'.join(name)}" for name in names]
        return UserCoefficients(labels, np.concatenate(transforms), np.zeros(self.size))

    def on_columns(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        margins = [feature.centred_functions(columns) for feature in self.features]
        return np.asarray(row_products(margins, self.pure)).T

    def edf_along(self, margin: int, edf: np.ndarray) -> float:
        own = np.moveaxis(self.shaped(edf), margin, 0)
        own = own if self.pure else own[1:]  # the constant is no function of the margin
        return float(own.sum(axis=0).max())

    def describe(self, places: Mapping[int, tuple[int, int]]) -> dict[str, Any]:
        first = self.features[0]
        return {
            **super().describe(places),
            "pure": self.pure,
            "features": [list(places[position]) for position in self.positions],
            "transforms": [feature.transform for feature in self.features],
            "eigenvalues": first.eigenvalues.tolist() if self.is_random_effect else None,
        }


@dataclass(frozen=True, eq=False)
class InteractionOrder:
    """The factors of one order of an interaction: one block of coefficients per feature.

    Args:
        name: of the term.
        label: of the order, e.g. `ahofm(x1, x2, x3)[2]`.
        index: of the order among the term's orders.
        order: number of features in a product.
        rank: number of factors F, at most, of one fit.
        size: number of factors of a group, at most: the factors of a group covary.
        groups: number of groups that there is room for.
        automatic: whether the data chooses the rank, up to this one.
        optional: whether the data chooses if there are factors at all.
        positions: of the features in the design.
        features: the same features.
        smoothing: lambda of each feature.
        df: degrees of freedom of each feature at that lambda.
        fixed: whether the user gave lambda.
    """

    name: str
    label: str
    index: int
    order: int
    rank: int
    size: int
    groups: int
    automatic: bool
    optional: bool
    positions: tuple[int, ...]
    features: tuple[Feature, ...]
    smoothing: tuple[float, ...]
    df: tuple[float, ...]
    fixed: bool

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from all other orders."""
        return self.name, self.index

    @property
    def slots(self) -> int:
        """Number of factors that there is room for."""
        return self.size * self.groups

    def factors_of(self, group: int) -> range:
        """The factors that a group may have; of one fit no more than the rank in all."""
        stop = (group + 1) * self.size
        is_one_fit = self.groups == -(-self.rank // self.size)
        return range(group * self.size, min(stop, self.rank) if is_one_fit else stop)

    def largest(self) -> tuple[int, str, str]:
        """Coefficients of the largest block, what it is called, and what makes it smaller."""
        feature = max(self.features, key=lambda own: len(own.eigenvalues))
        term = self.label.rpartition("[")[0]
        size = self.size * len(feature.eigenvalues)
        return size, f"{term}, feature {feature.label}", remedy(feature, "a smaller F or k")


def function_labels(label: str, feature: Feature) -> list[str]:
    """Names of the coefficients of a feature's basis functions; of categories, by their levels."""
    if feature.basis.levels:
        return [f"{label}[{level}]" for level in feature.basis.levels]
    splines = [f"{label}.{place + 1}" for place in range(feature.basis.splines)]
    return splines + [f"{label}[{atom:.15g}]" for atom in feature.basis.atoms]


def remedy(feature: Feature, smaller: str) -> str:
    """What makes the block of a feature smaller, in words."""
    if not feature.basis.levels:
        return f"Choose {smaller}"
    return "Merge rare levels" + (", choose a smaller F" if "F" in smaller else "")
