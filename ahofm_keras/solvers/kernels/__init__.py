"""Loops over rows: compiled by numba where it is installed, else in NumPy. Chosen here, nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from ahofm_keras.errors import warn
from ahofm_keras.solvers.kernels.interface import (
    Factors,
    GroupMoments,
    Kernels,
    Neighbour,
    Sums,
)
from ahofm_keras.solvers.kernels.interrupts import interrupts_wait
from ahofm_keras.solvers.kernels.numpy_kernels import NumpyKernels

__all__ = [
    "Factors",
    "GroupMoments",
    "Kernels",
    "Neighbour",
    "Sums",
    "compile_kernels",
    "get_kernels",
    "use_kernels",
]

# Rows times blocks and starts from which on compiled loops pay: where they have to be compiled first,
# which takes half a minute, and where they are on disk from an earlier time and are loaded in half a
# second.
WORTH_COMPILING = 500_000
WORTH_LOADING = 5_000

_chosen: list[str] = []


def get_kernels(work: int = WORTH_COMPILING) -> Kernels:
    """The kernels that `use_kernels` names, else the fastest that can be had.

    Args:
        work: rows times blocks of factors that are updated on them, times starts.
    """
    if _chosen:
        return _load(_chosen[-1])
    if work < WORTH_LOADING:
        return _load("numpy")
    fastest = _fastest()
    return fastest if work >= WORTH_COMPILING or fastest.is_ready() else _load("numpy")


def compile_kernels() -> str:
    """Compile all loops and keep them on disk, so that small fits use them too; say what happened."""
    fastest = _fastest()
    if fastest.is_ready():
        missing = "numba cannot be imported" if find_spec("numba") else "numba is not installed"
        return f"Nothing to compile: {missing if fastest is _load('numpy') else 'it was done before'}."
    fastest.prepare()
    return "Compiled." if fastest.is_ready() else "Compiled, but there is no folder to keep it in."


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
    except (
        Exception
    ) as error:  # e.g. with this version of NumPy, or with a file of yours named `coverage`
        warn(f"numba is installed but cannot be imported ({error}), so fits take twice as long.")
        return _load("numpy")


@cache
def _load(name: str) -> Kernels:
    if name == "numpy":
        return NumpyKernels()
    # Here and not above: importing numba takes longer than all else that a fit needs.
    with interrupts_wait():
        module = import_module("ahofm_keras.solvers.kernels.numba_kernels")
    kernels: Kernels = module.NumbaKernels()
    return kernels
