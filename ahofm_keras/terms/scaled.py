"""Terms times a number or the levels of a category: `s(x, by=z)`, `s(x, g, bs="fs")`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ahofm_keras.errors import DataError
from ahofm_keras.layers import Scaled
from ahofm_keras.terms.base import TERMS, Tensor, Term, as_tuple, register_term
from ahofm_keras.terms.blocks import Columns, Sources
from ahofm_keras.terms.groups import PRODUCTS, GroupReader, Subset
from ahofm_keras.terms.scaled_columns import ScaledColumns


@register_term
@dataclass(frozen=True)
class ScaledTerm(Term):
    """A term whose columns are multiplied with functions of another variable.

    A number gives a varying coefficient z f(x), one level of a category a function of the rows that have
    it, all levels a function for each that share their smoothing.

    Args:
        inner: the term that is multiplied; its label and name are those of this one.
        by: position in `Design.features` of what multiplies it.
        constant: whether the constant is multiplied too: f need not have mean zero.
        smoothing: lambda of each penalty.
        fixed: whether the user gave these (`sp=`).
        ridge: see `ScaledColumns`; None where levels are no random effects.
    """

    kind: ClassVar[str] = "by"
    inner: Term
    by: int
    constant: bool
    smoothing: tuple[float, ...]
    fixed: bool = False
    ridge: float | None = None

    @property
    def word(self) -> str:  # type: ignore[override]
        """As tables name the term that is multiplied."""
        return self.inner.word

    def to_json(self) -> dict[str, Any]:
        own = {name: value for name, value in asdict(self).items() if name != "inner"}
        return {"kind": self.kind, **own, "inner": self.inner.to_json()}

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> ScaledTerm:
        plain = {k: as_tuple(v) for k, v in config.items() if k not in ("kind", "inner")}
        inner = config["inner"]
        return cls(inner=TERMS[inner["kind"]].from_json(inner), **plain)

    def relabelled(self, label: str) -> ScaledTerm:
        return replace(self, label=label, inner=replace(self.inner, label=label))

    def with_smoothing(self, smoothing: tuple[float, ...], fixed: bool) -> ScaledTerm:
        return replace(self, smoothing=smoothing, fixed=fixed)

    # Rows ----------------------------------------------------------------------------------------

    @property
    def features(self) -> tuple[int, ...]:
        return (*self.inner.features, self.by)

    @property
    def multiplier(self) -> int:
        return self.by

    @property
    def smooth_features(self) -> tuple[int, ...]:
        return self.inner.smooth_features

    def linear_block(self, sources: Sources) -> ScaledColumns | None:
        inner = self.inner.linear_block(sources)
        if inner is None:
            return None
        return ScaledColumns(
            inner, self.by, sources.features[self.by], self.constant, self.ridge, self.smoothing,
            inner.df, self.fixed,
        )  # fmt: skip

    def connect(self, inputs: Any) -> Tensor:
        places, tensors = inputs.bases_of(self.features)
        block = self.linear_block(inputs.sources)
        assert block is not None
        penalty = np.asarray(self.smoothing) @ block.penalties
        where = dict(zip(self.features, places, strict=True))
        uses_columns = self.inner.parametric is not None
        layer = Scaled(block.describe(where), penalty, uses_columns, name=self.name)
        return layer([*tensors, inputs.columns] if uses_columns else tensors)

    # Readers -------------------------------------------------------------------------------------

    @property
    def is_surface(self) -> bool:
        return self.inner.is_surface

    @property
    def has_curves(self) -> bool:
        return self.inner.has_curves

    def subsets(self) -> list[tuple[int, ...]]:
        return []  # that of a number is z f(x) alone, that of a level a part of the interaction

    def add_groups(self, reader: GroupReader) -> None:
        """A constant, and the products of the term, each with one function of the by-variable more."""
        block = self.linear_block(reader.model.design.sources)
        assert block is not None
        table = reader.coordinates(self.name).reshape(block.rank, block.width)
        if self.constant:
            kept = np.arange(block.width)
            reader.add_products(1, (self.by,), (table[0][:, None],), (self.name, 0), PRODUCTS, kept)
        own = _InnerReader(reader, self, block.inner, table[int(self.constant) :])
        self.inner.add_groups(own)
        own.finish()


class _InnerReader(GroupReader):
    """Takes the products of a term that is multiplied, level by level, and hands them on as such.

    Args:
        reader: that they are for.
        term: the product.
        block: columns of the term that is multiplied.
        table: its coefficients for each function of the by-variable, `(r, K)`.
    """

    def __init__(self, reader: GroupReader, term: ScaledTerm, block: Columns, table: np.ndarray) -> None:
        self.__dict__.update(reader.__dict__)
        self._reader, self._term, self._block, self._table = reader, term, block, table
        self._found: dict[Subset, list[tuple[int, tuple[np.ndarray, ...], np.ndarray]]] = {}
        self._level = 0

    def coordinates(self, name: str, *index: int) -> np.ndarray:
        return self._block.shaped(self._table[:, self._level])

    def add_products(
        self,
        order: int,
        features: Subset,
        factors: tuple[np.ndarray, ...],
        source: tuple[str, int],
        kind: str,
        kept: np.ndarray,
    ) -> None:
        if kind != PRODUCTS:
            raise DataError(f"`{self._term.label}` cannot be taken apart into functions of features.")
        self._found.setdefault(features, []).append((self._level, factors, kept))

    def finish(self) -> None:
        """Add what was found, that of all levels as one group."""
        width = self._table.shape[1]
        for self._level in range(1, width):
            self._term.inner.add_groups(self)
        offset = width * self._term.constant
        for features, found in self._found.items():
            factors = [
                np.concatenate(own, axis=1) for own in zip(*(own for _, own, _ in found), strict=True)
            ]
            counts = [own[0].shape[1] for _, own, _ in found]
            by = np.repeat(np.eye(width)[:, [level for level, _, _ in found]], counts, axis=1)
            kept = (offset + width * found[0][2][:, None] + np.arange(width)).reshape(-1)
            self._reader.add_products(
                len(features) + 1, (*features, self._term.by), (*factors, by),
                (self._term.name, 0), PRODUCTS, kept,
            )  # fmt: skip
