"""Terms whose weights are in no block, such as networks, as the block solvers see them: given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ahofm_keras.solvers.job import Rows

_BATCH_ROWS = 8192


def given_opaque(model: Any, rows: Rows) -> Rows:
    """The rows with the contributions of opaque terms in their offset.

    Args:
        model: of one predictor, or a view of one.
        rows: encoded, in memory.
    """
    if not model.design.layout.only.opaque:
        return rows
    return replace(rows, encoded=rows.encoded.with_offset(opaque_part(model, rows)))


def opaque_part(model: Any, rows: Rows) -> np.ndarray:
    """What opaque terms add to a predictor at rows, in units of the link `(n,)`."""
    found: np.ndarray = _run(model, rows, "opaque", model.of_parameter)["opaque"]
    return found


def link_at(model: Any, rows: Rows) -> np.ndarray:
    """The predictor of a model that has one, `(n,)`."""
    found: np.ndarray = _run(model, rows, "mean", None)["link"]
    return found


def _run(model: Any, rows: Rows, what: str, parameter: str | None) -> dict[str, np.ndarray]:
    starts = range(0, len(rows), _BATCH_ROWS)
    batches = (rows.encoded.take(slice(start, start + _BATCH_ROWS)) for start in starts)
    found: dict[str, np.ndarray] = model._outputs.run(what, batches, parameter)
    return found
