"""Where the rows of a fit are, and all that solvers see of them: sums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

import numpy as np

from ahofm_keras.solvers.chunks import Chunk, Response, count_cores, read_chunks
from ahofm_keras.solvers.job import Rows
from ahofm_keras.solvers.kernels import Kernels
from ahofm_keras.solvers.settings import Settings
from ahofm_keras.solvers.state import State
from ahofm_keras.terms import Design

# A function of a chunk, a state and plain arguments, at the top of a module so that it can be sent
# elsewhere. It gives what adds up: numbers, arrays, lists (the longer list), or tuples of these.
Task = Callable[..., Any]


class RowStore(ABC):
    """Rows of a fit.

    Attributes:
        rows: their number.
        total_weight: sum of their weights.
        weighted_rows: number of rows with a weight.
    """

    rows: int
    total_weight: float
    weighted_rows: int

    @abstractmethod
    def reduce(self, task: Task, state: State, *arguments: Any) -> Any:
        """The sum of what a task gives on every chunk; lists are in the order of the rows."""

    def collect(self, task: Task, state: State, *arguments: Any) -> np.ndarray:
        """What a task gives for each row, as a list of one array per chunk."""
        return np.concatenate(self.reduce(task, state, *arguments))


class InMemoryRows(RowStore):
    """Rows in memory, several chunks at a time: kernels compute outside Python's lock."""

    def __init__(
        self, design: Design, rows: Rows, response: Response, kernels: Kernels, settings: Settings
    ) -> None:
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight
        self.rows = len(rows)
        self.total_weight = float(np.sum(weight))
        self.weighted_rows = int(np.count_nonzero(weight))
        self.chunks = list(read_chunks(design, rows, response, kernels, settings))

    def reduce(self, task: Task, state: State, *arguments: Any) -> Any:
        if len(self.chunks) == 1:
            return task(self.chunks[0], state, *arguments)
        return add_up(_pool().map(partial(_call, task, state, arguments), self.chunks))


def _call(task: Task, state: State, arguments: tuple[Any, ...], chunk: Chunk) -> Any:
    return task(chunk, state, *arguments)


def add_up(parts: Iterable[Any]) -> Any:
    """The sum of what a task gave on several chunks, each let go once it is added."""
    parts = iter(parts)
    total = next(parts)
    for part in parts:
        total = _add(total, part)
    return total


def _add(left: Any, right: Any) -> Any:
    if isinstance(left, tuple):
        return tuple(_add(a, b) for a, b in zip(left, right, strict=True))
    return left + right


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count_cores(), "ahofm_keras")
