"""Encoded rows: what the terms of a model work on and training never changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

POSITIONS = "positions"
COLUMNS = "columns"
OFFSET = "offset"


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Rows as the trainable half of a model's graph takes them.

    Args:
        arrays: by name, first axis rows, in the order of the graph's inputs: `positions` on the axes of
            the bases `(n, P)`, design `columns` `(n, C)`, and the `offset` of each predictor `(n,)`, as
            far as the model has them.
        rows: their number n.
    """

    arrays: Mapping[str, np.ndarray]
    rows: int

    def __len__(self) -> int:
        return self.rows

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(self.arrays.values())

    @property
    def positions(self) -> np.ndarray:
        return self.arrays.get(POSITIONS, np.zeros((self.rows, 0)))

    @property
    def columns(self) -> np.ndarray:
        return self.arrays.get(COLUMNS, np.zeros((self.rows, 0)))

    @property
    def offset(self) -> np.ndarray:
        """Of the first predictor; 0 where there is none."""
        return self.arrays.get(OFFSET, np.zeros(self.rows))

    @property
    def has_offset(self) -> bool:
        return OFFSET in self.arrays

    def with_offset(self, offset: np.ndarray) -> EncodedRows:
        """The rows with something more added to the first predictor as it is."""
        return EncodedRows({**self.arrays, OFFSET: self.offset + offset}, self.rows)

    def take(self, rows: Any) -> EncodedRows:
        """Some of the rows, by a slice or their numbers."""
        arrays = {name: array[rows] for name, array in self.arrays.items()}
        return EncodedRows(arrays, len(range(self.rows)[rows]) if isinstance(rows, slice) else len(rows))
