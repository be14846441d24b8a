"""`id=`: terms that share their smoothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ahofm_keras.formula import TermSpec
from ahofm_keras.terms.base import Term
from ahofm_keras.terms.blocks import Columns, Sources
from ahofm_keras.terms.learning import Learning


class Tied(NamedTuple):
    """A term with an `id`, and what the formula asks of it."""

    term: Term
    spec: TermSpec


def tie(term: Term, spec: TermSpec, others: Sequence[Tied], learning: Learning) -> Term:
    """The term with the smoothing of the first one of the same `id`.

    Raises:
        FormulaError: terms whose penalties cannot have the same lambdas.
    """
    own = _block(term, spec, learning)
    if not others:
        return term
    _check_given(spec, others[0])
    first = _block(*others[0], learning)
    kinds, wanted = ([feature.basis.kind for feature in block.features] for block in (own, first))
    if kinds != wanted or len(own.penalties) != len(first.penalties) or own.atoms != first.atoms:
        raise spec.error(
            f"`id` shares the smoothing of terms with bases of one kind: `{others[0].term.label}` has "
            f"{_lambdas(first)}, `{term.label}` {_lambdas(own)}."
        )
    return term.with_smoothing(first.smoothing, first.fixed)


def _check_given(spec: TermSpec, first: Tied) -> None:
    """What a later term asks of the smoothing is what the first one asks, or nothing."""
    for option in ("sp", "df"):
        if option in spec.options and spec.options[option] != first.spec.options.get(option):
            raise spec.error(
                f"Terms of one `id` share their smoothing: `{option}` of `{spec.label}` is not that of "
                f"`{first.term.label}`. Give it to the first one alone."
            )


def _block(term: Term, spec: TermSpec, learning: Learning) -> Columns:
    block = term.linear_block(Sources(tuple(learning.pool.features), {}))
    if block is None or not block.is_penalised:
        raise spec.error(f"`id` shares smoothing, and `{term.label}` has none.")
    return block


def _lambdas(block: Columns) -> str:
    count = len(block.penalties)
    found = f"{count} smoothing parameter{'s' if count > 1 else ''}"
    if any(feature.basis.kind == "re" for feature in block.features):
        found += " of levels"
    return f"{found} with that of single values (`atoms`)" if block.atoms else found
