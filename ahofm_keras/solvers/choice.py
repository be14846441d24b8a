"""Which solver serves: variational where it can, else adam."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ahofm_keras.errors import DataError
from ahofm_keras.terms import Design
from ahofm_keras.terms.layout import PredictorLayout

AUTO = "auto"
MINI_BATCHES = "adam"
HYBRID = "hybrid"
# Coefficients of one block: its matrices have the square of that, and are factorised in every sweep.
LARGEST_BLOCK = 4000


@dataclass(frozen=True)
class BlockSize:
    """How many coefficients a block has.

    Args:
        size: coefficients that are solved for at once.
        term: label of the term that has most of them.
        remedy: what makes the block smaller.
    """

    size: int
    term: str
    remedy: str


def choose_solver(design: Design, streamed: bool, given: Sequence[str]) -> tuple[str, str]:
    """The solver that `"auto"` stands for, and why.

    Args:
        design: of the model.
        streamed: whether the data is a dataset of batches.
        given: what the user asked for that only mini-batches can do, in words.
    """
    if streamed:
        return MINI_BATCHES, "the data is a dataset, which comes in batches"
    if given:
        return MINI_BATCHES, given[0]
    block = largest_block(design)
    if block.size > LARGEST_BLOCK:
        return MINI_BATCHES, f"the {_too_large(block)} for exact updates"
    opaque = opaque_term(design)
    if opaque and len(design.predictors) > 1:
        return MINI_BATCHES, f"{opaque}, and there are several predictors"
    if opaque:
        return HYBRID, f"{opaque}: mini-batches for it, exact updates for all others, in turn"
    return "variational", "data in memory, no block too large: chooses the smoothing, gives intervals"


def check_solver(design: Design, solver: str, streamed: bool, given: Sequence[str]) -> None:
    """Raise a `DataError` where a solver that the user named cannot do what was asked.

    Args:
        design: of the model.
        solver: its name.
        streamed: whether the data is a dataset of batches.
        given: what the user asked for that only mini-batches can do, in words.
    """
    if solver == MINI_BATCHES:
        return
    if streamed:
        raise DataError(f'solver="{solver}" needs data in memory; a dataset is fitted by "adam".')
    if given:
        raise DataError(
            f'solver="{solver}" works on all rows at once, but {given[0]}. Leave that out, or use '
            'solver="adam".'
        )
    opaque, several = opaque_term(design), len(design.predictors) > 1
    if opaque and (solver != HYBRID or several):
        why = f"{opaque}, and there are several predictors" if several else opaque
        ways = 'solver="adam"' if several else 'solver="hybrid" or solver="adam"'
        raise DataError(f'solver="{solver}" needs exact updates, but {why}. Use {ways}.')
    if solver == HYBRID and not opaque:
        raise DataError(
            'solver="hybrid" is for models with networks, `deep(x1, net="net")`, and this one has none. '
            'Use solver="variational".'
        )
    block = largest_block(design)
    if block.size > LARGEST_BLOCK:
        raise DataError(
            f'The {_too_large(block)} for solver="{solver}" (at most {LARGEST_BLOCK:,}). '
            f'{block.remedy}, or use solver="adam".'
        )


def opaque_term(design: Design) -> str | None:
    """Why block solvers cannot fit all terms of a design, or None."""
    opaque = [term for layout in design.layout.values() for term in layout.opaque]
    return f"`{opaque[0].label}` has no exact updates" if opaque else None


def _too_large(block: BlockSize) -> str:
    return f"block of `{block.term}` has {block.size:,} coefficients, too many"


def largest_block(design: Design) -> BlockSize:
    """The block with most coefficients."""
    linear = [_linear_block(layout) for layout in design.layout.values()]
    return max([*linear, *_factor_blocks(design)], key=lambda block: block.size)


def can_have_posterior(design: Design) -> bool:
    """Whether the blocks are small enough for their covariances to be computed.

    Terms that are in no block are taken as given.
    """
    return largest_block(design).size <= LARGEST_BLOCK


def _linear_block(layout: PredictorLayout) -> BlockSize:
    """Intercept, linear terms, smooths and tensor products, which are solved for jointly."""
    if not layout.spans:
        return BlockSize(layout.size, "1", "Leave terms out")
    widest = max(layout.spans, key=lambda span: span.block.size)
    return BlockSize(layout.size, widest.term.label, widest.block.remedy)


def _factor_blocks(design: Design) -> list[BlockSize]:
    """All factors of one feature in one order of an interaction are one block."""
    return [BlockSize(*order.largest()) for order in design.orders]
