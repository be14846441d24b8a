"""Which solver serves: variational where it can, else adam."""

from __future__ import annotations

from typing import Any

from ahofm_keras.terms import Design, InteractionTerm, SmoothTerm

AUTO = "auto"
# Coefficients of one block: its matrices have the square of that, and are factorised in every sweep.
LARGEST_BLOCK = 4000


def choose_solver(design: Design, streamed: bool, given: dict[str, Any]) -> tuple[str, str]:
    """The solver that `"auto"` stands for, and why.

    Args:
        design: of the model.
        streamed: whether the data is a dataset of batches.
        given: what the user asked for that only mini-batches can give, by name.
    """
    if streamed:
        return "adam", "the data comes in batches"
    for name in given:
        return "adam", f"{name} is a matter of mini-batches"
    size = largest_block(design)
    if size > LARGEST_BLOCK:
        return "adam", f"a block of {size:,} coefficients is too large for exact updates"
    return "variational", "it chooses every smoothing parameter and gives intervals"


def largest_block(design: Design) -> int:
    """Number of coefficients in the largest block."""
    smooths = sum(len(design.features[t.feature].eigenvalues) for t in design.of_kind(SmoothTerm))
    factors = [
        order.rank * len(design.features[position].eigenvalues)
        for term in design.of_kind(InteractionTerm)
        for order in term.orders
        for position in term.features
    ]
    return max([smooths, *factors])
