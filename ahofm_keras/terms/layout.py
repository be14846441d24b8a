"""Where each coefficient of a design stands.

The linear block of a predictor has the intercept first, then what is not penalised, then smooths and
tensor products, each in the order of the formula; the orders of all interactions follow, in blocks of
their own. Solvers, posterior, covariances and tables ask here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ahofm_keras.errors import DataError
from ahofm_keras.terms.base import Term
from ahofm_keras.terms.blocks import Columns, InteractionOrder, Sources

MEAN = "mean"


class Span(NamedTuple):
    """The coefficients of a term in the linear block.

    Args:
        term: whose they are.
        block: what they are.
        where: they stand in the linear block.
    """

    term: Term
    block: Columns
    where: slice


@dataclass(frozen=True, eq=False)
class PredictorLayout:
    """Coefficients of one predictor.

    Args:
        intercept: whether there is one; it is the first coefficient of the linear block.
        spans: of the linear block.
        orders: of all interactions.
        opaque: terms with neither, whose weights no block solver knows.
        ties: names of terms that share their smoothing, by id.
    """

    intercept: bool
    spans: tuple[Span, ...]
    orders: tuple[InteractionOrder, ...]
    opaque: tuple[Term, ...] = ()
    ties: tuple[tuple[str, ...], ...] = ()

    @property
    def size(self) -> int:
        """Number of coefficients of the linear block."""
        return self.spans[-1].where.stop if self.spans else int(self.intercept)

    @property
    def unpenalised(self) -> int:
        """Number of coefficients of the linear block before those that are penalised."""
        return min((span.where.start for span in self.penalised), default=self.size)

    @cached_property
    def penalised(self) -> tuple[Span, ...]:
        """Smooths and tensor products."""
        return tuple(span for span in self.spans if span.block.is_penalised)

    @cached_property
    def smoothing_index(self) -> tuple[int, ...]:
        """The number of the smoothing of each penalised span, which tied terms share.

        Of spans whose groups of coefficients have their own, one number per group.
        """
        shared = {name: names for names in self.ties for name in names}
        numbers: dict[tuple[tuple[str, ...], int], int] = {}
        return tuple(
            numbers.setdefault((shared.get(span.term.name, (span.term.name,)), group), len(numbers))
            for span in self.penalised
            for group in range(span.block.groups)
        )

    @cached_property
    def by_name(self) -> dict[str, Span]:
        """Spans of the linear block by the names of their terms."""
        return {span.term.name: span for span in self.spans}

    @cached_property
    def order_index(self) -> dict[tuple[str, int], int]:
        """Position of each order among those of all interactions, by term and index in it."""
        return {order.key: index for index, order in enumerate(self.orders)}

    def orders_of(self, term: Term) -> list[InteractionOrder]:
        """The orders of one term."""
        return [order for order in self.orders if order.name == term.name]


class Layout(dict[str, PredictorLayout]):
    """The layouts of all predictors, by parameter of the family."""

    @property
    def only(self) -> PredictorLayout:
        """That of a design with one predictor.

        Raises:
            DataError: a design with several.
        """
        if len(self) != 1:
            listed = ", ".join(f"`{name}`" for name in self)
            raise DataError(
                f"The model has several predictors ({listed}), which only mini-batches can fit and "
                "`predict` can read."
            )
        return next(iter(self.values()))


def lay_out(
    intercept: bool,
    terms: Iterable[Term],
    sources: Sources,
    ties: tuple[tuple[str, ...], ...] = (),
) -> PredictorLayout:
    """The layout of a predictor."""
    found = list(terms)
    blocks = [(term, block) for term in found if (block := term.linear_block(sources)) is not None]
    blocks.sort(key=lambda pair: pair[1].is_penalised)  # stable
    orders = tuple(order for term in found for order in term.factor_blocks(sources))
    known = {term.name for term, _ in blocks} | {order.name for order in orders}
    opaque = tuple(t for t in found if t.name not in known and t.offset is None)
    return PredictorLayout(intercept, tuple(_spans(blocks, int(intercept))), orders, opaque, ties)


def _spans(blocks: list[tuple[Term, Columns]], start: int) -> Iterator[Span]:
    for term, block in blocks:
        yield Span(term, block, slice(start, start + block.size))
        start += block.size
