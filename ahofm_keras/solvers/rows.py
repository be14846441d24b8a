"""Training rows in chunks, with the state of the fit on them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from ahofm_keras.solvers.gram import CellBasis
from ahofm_keras.solvers.job import Rows
from ahofm_keras.solvers.kernels import GroupMoments, Kernels
from ahofm_keras.terms import Design

CHUNK_ROWS = 8192


@dataclass
class Chunk:
    """Some rows of the data, and the state of the fit there.

    Args:
        y: response.
        case_weight: the user's.
        offset: what is added to the predictor, with the model's shift.
        columns: of the linear terms `(C, n)`.
        bases: of the features.
        target: working response, in the model's scale, without offset.
        weight: working weights.
        linear: mean of the linear block.
        moments: of each factor group.
    """

    y: np.ndarray
    case_weight: np.ndarray
    offset: np.ndarray
    columns: np.ndarray
    bases: list[CellBasis]
    target: np.ndarray
    weight: np.ndarray
    linear: np.ndarray
    moments: list[GroupMoments] = field(default_factory=list)

    def fit(self) -> np.ndarray:
        """Mean of the predictor in the model's scale, without offset."""
        total = self.linear
        for moments in self.moments:
            total = total + moments.total
        return total


def count_chunks(rows: int, shared_rows: int, chunk_rows: int = CHUNK_ROWS) -> int:
    """So many that every core has work where there is enough, and the same number of chunks."""
    cores = count_cores() if rows >= shared_rows else 1
    return -(-rows // (chunk_rows * cores)) * cores


def count_cores() -> int:
    """Cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def read_chunks(
    design: Design, rows: Rows, shift: float, kernels: Kernels, chunk_rows: int = CHUNK_ROWS
) -> Iterator[Chunk]:
    """Encoded rows, chunk by chunk."""
    places, columns, offset = rows.encoded.positions, rows.encoded.columns, rows.encoded.offset
    weight = np.ones(len(rows)) if rows.weight is None else np.asarray(rows.weight, float)
    count = count_chunks(len(rows), kernels.shared_rows, chunk_rows)
    bounds = np.linspace(0, len(rows), count + 1).astype(int)
    for start, stop in pairwise(bounds):
        part = slice(start, stop)
        y = np.asarray(rows.y[part], float)
        bases = [
            kernels.read_basis(feature.basis, np.asarray(places[part, position], float))
            for position, feature in enumerate(design.features)
        ]
        yield Chunk(
            y,
            weight[part],
            shift + np.asarray(offset[part], float),
            np.asarray(columns[part], float).T.copy(),
            bases,
            np.zeros(len(y)),
            weight[part],
            np.zeros(len(y)),
        )
