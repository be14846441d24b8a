"""Loops over rows: compiled by numba where it is installed, else in NumPy. Chosen here, nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from ahofm_keras.solvers.kernels.interface import (
    Factors,
    GroupMoments,
    Kernels,
    Neighbour,
    System,
)
from ahofm_keras.solvers.kernels.numpy_kernels import NumpyKernels

__all__ = ["Factors", "GroupMoments", "Kernels", "Neighbour", "System", "get_kernels", "use_kernels"]

# Rows times blocks from which on compiled loops pay: the first time they take half a minute to compile.
WORTH_COMPILING = 500_000

_chosen: list[str] = []


def get_kernels(work: int = WORTH_COMPILING) -> Kernels:
    """The kernels that `use_kernels` names, else the fastest that can be had.

    Args:
        work: rows times blocks of factors that are updated on them.
    """
    if _chosen:
        return _load(_chosen[-1])
    return _fastest() if work >= WORTH_COMPILING else _load("numpy")


@contextmanager
def use_kernels(name: str) -> Iterator[None]:
    """Kernels of engines that are made within: `"numpy"` or `"numba"`."""
    _chosen.append(name)
    try:
        yield
    finally:
        _chosen.pop()


@cache
def _fastest() -> Kernels:
    if find_spec("numba") is None:
        return _load("numpy")
    try:
        return _load("numba")
    except Exception:  # numba is there but cannot be imported, e.g. with this version of NumPy
        return _load("numpy")


@cache
def _load(name: str) -> Kernels:
    if name == "numpy":
        return NumpyKernels()
    # Here and not above: importing numba takes longer than all else that a fit needs.
    kernels: Kernels = import_module("ahofm_keras.solvers.kernels.numba_kernels").NumbaKernels()
    return kernels
