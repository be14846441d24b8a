"""Linear terms with a penalty: `ridge()`, `lasso()`, `grouplasso()`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Any, ClassVar

import numpy as np

from ahofm_keras.formula import TermCall, TermSpec
from ahofm_keras.formula.options import calls_of, feature_name
from ahofm_keras.layers import Linear, SparseLinear
from ahofm_keras.layers.inputs import ABSENT
from ahofm_keras.penalties import DemmlerReinsch, degrees_of_freedom, solve_smoothing
from ahofm_keras.terms.base import Tensor, register_term
from ahofm_keras.terms.blocks import DesignColumns, Sources
from ahofm_keras.terms.learning import Learning
from ahofm_keras.terms.linear import LinearTerm
from ahofm_keras.terms.parametric import Parametric
from ahofm_keras.terms.smoothing import DEFAULT_DF
from ahofm_keras.transforms import Expression

# Of the degrees of freedom of all columns, where `df` is not given and these are few.
_REACHABLE = 0.9
# Eigenvalues of a correlation matrix below this are directions that no row has.
_NOTHING = 1e-10


@dataclass(frozen=True)
class ShrunkenTerm(LinearTerm):
    """Linear effects of some columns under one penalty.

    Args:
        smoothing: lambda, per row, in units of standardised columns and response.
        fixed: whether the user gave lambda (`sp=`), so that no solver chooses it.
    """

    smoothing: float
    fixed: bool

    @classmethod
    def is_main_effect(cls, spec: TermSpec) -> bool:
        return False

    @classmethod
    def _learn_columns(
        cls, spec: TermSpec, learning: Learning, features: Sequence[Expression]
    ) -> tuple[Parametric, dict[str, Any]]:
        """The columns, and all that the term says of them."""
        design = learning.coder.side_by_side(spec, features)
        label = spec.label
        return design, {
            "label": label,
            "name": learning.name(label),
            "factors": design.factors,
            "columns": design.columns,
            "coefficients": tuple(f"{label}.{name}" for name in design.coefficients),
            "centre": design.centre,
            "scale": design.scale,
            "fixed": "sp" in spec.options,
        }

    @property
    def lines(self) -> tuple[Expression, ...]:
        return tuple(factor.expression for factor in self.factors)

    @property
    def has_penalty(self) -> bool:
        return True


@register_term
@dataclass(frozen=True)
class RidgeTerm(ShrunkenTerm):
    """A penalty on the squares of the coefficients: 1/2 lambda |beta|^2 beside a mean loss.

    Args:
        df: degrees of freedom at that lambda, by the model's definition.
    """

    kind: ClassVar[str] = "ridge"
    word: ClassVar[str] = "ridge"
    calls: ClassVar[Mapping[str, TermCall]] = calls_of("ridge")
    df: float

    @classmethod
    def learn(cls, spec: TermSpec, learning: Learning) -> RidgeTerm:
        design, learned = cls._learn_columns(spec, learning, spec.features)
        columns = (design.raw(learning.columns) - design.centre) / design.scale
        basis = _directions(columns)
        if "sp" in spec.options:
            smoothing = float(spec.options["sp"])
        else:
            df = spec.options.get("df", min(DEFAULT_DF, _REACHABLE * basis.rank))
            if df >= basis.rank:
                raise spec.error(
                    f"`df` of `{spec.label}` must be below {basis.rank:g}, the number of directions "
                    f"that its columns have.\n    Received: df={df:g}."
                )
            smoothing = solve_smoothing(df, basis, learning.smoother.df_kind)
        reached = degrees_of_freedom(smoothing, basis, learning.smoother.df_kind)
        return cls(**learned, smoothing=smoothing, df=reached)

    def linear_block(self, sources: Sources) -> DesignColumns:
        own = sources.column_slices[self.name]
        penalties = np.ones((1, len(self.columns)))
        return DesignColumns(
            self.parametric, own, penalties, (self.smoothing,), self.fixed, df=(self.df,)
        )

    def connect(self, inputs: Any) -> Tensor:
        own = inputs.sources.column_slices[self.name]
        penalty = [self.smoothing] * len(self.columns)
        return Linear(own.start, own.stop, penalty, name=self.name)(inputs.columns)


@dataclass(frozen=True)
class SparseTerm(ShrunkenTerm):
    """A penalty on the norms of groups of coefficients, which makes some of them 0.

    lambda sum_g w_g |beta_g| beside a mean loss.

    Args:
        groups: number of the group of each column, rising.
        norms: w, the weight of each group.
    """

    groups: tuple[int, ...]
    norms: tuple[float, ...]

    @classmethod
    def _learn_groups(
        cls, spec: TermSpec, learning: Learning, features: Sequence[Expression], group_of: Sequence[int]
    ) -> Any:
        """The term, where each feature belongs to a group; -1: each of its columns is one."""
        design, learned = cls._learn_columns(spec, learning, features)
        chosen = np.argmax(np.asarray(design.columns) != ABSENT, axis=1)
        keys = [(group_of[f], None if group_of[f] >= 0 else place) for place, f in enumerate(chosen)]
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        groups = [numbers[key] for key in keys]
        # A group of m columns explains m times as much by chance alone.
        norms = np.sqrt(np.bincount(groups))
        # At the least such lambda no column is taken in for the correlation that one of so many has with
        # pure noise of the response's variance.
        usual = sqrt(2 * log(max(len(norms), 2)) / learning.rows)
        smoothing = float(spec.options.get("sp", usual))
        return cls(**learned, smoothing=smoothing, groups=tuple(groups), norms=tuple(norms.tolist()))

    def linear_block(self, sources: Sources) -> DesignColumns:
        own = sources.column_slices[self.name]
        return DesignColumns(
            self.parametric, own, np.ones((1, len(self.columns))), (self.smoothing,), self.fixed,
            self.groups, self.norms,
        )  # fmt: skip

    def connect(self, inputs: Any) -> Tensor:
        own = inputs.sources.column_slices[self.name]
        penalty = [self.smoothing * weight for weight in self.norms]
        return SparseLinear(own.start, self.groups, penalty, name=self.name)(inputs.columns)


@register_term
@dataclass(frozen=True)
class LassoTerm(SparseTerm):
    """Each coefficient is a group: lambda sum_j |beta_j|."""

    kind: ClassVar[str] = "lasso"
    word: ClassVar[str] = "lasso"
    calls: ClassVar[Mapping[str, TermCall]] = calls_of("lasso")

    @classmethod
    def learn(cls, spec: TermSpec, learning: Learning) -> LassoTerm:
        found: LassoTerm = cls._learn_groups(spec, learning, spec.features, [-1] * len(spec.features))
        return found


@register_term
@dataclass(frozen=True)
class GroupLassoTerm(SparseTerm):
    """The columns of a feature, or of several that the formula puts together, are 0 together."""

    kind: ClassVar[str] = "grouplasso"
    word: ClassVar[str] = "group lasso"
    calls: ClassVar[Mapping[str, TermCall]] = calls_of("grouplasso")

    @classmethod
    def learn(cls, spec: TermSpec, learning: Learning) -> GroupLassoTerm:
        asked = {name: group for group, own in enumerate(spec.options.get("groups", ())) for name in own}
        own = {
            feature: asked.get(feature_name(feature), len(asked) + place)
            for place, feature in enumerate(spec.features)
        }
        # Groups stand where their first feature does, and their features side by side.
        first = {group: place for place, group in reversed(list(enumerate(own.values())))}
        features = sorted(spec.features, key=lambda feature: first[own[feature]])
        found: GroupLassoTerm = cls._learn_groups(
            spec, learning, features, [own[feature] for feature in features]
        )
        return found


def _directions(columns: np.ndarray) -> DemmlerReinsch:
    """The directions of some columns, each of variance 1, and what a ridge penalty is in them."""
    variances = np.linalg.eigvalsh(columns.T @ columns / len(columns))
    supported = variances > _NOTHING * variances[-1]
    eigenvalues = 1 / np.where(supported, variances, 1.0)
    return DemmlerReinsch(np.eye(len(variances)), eigenvalues, supported, 0)
