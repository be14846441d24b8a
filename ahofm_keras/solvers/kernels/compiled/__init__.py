"""Loops over rows that numba compiles. Imported only where numba is installed and wanted.

Rows are processed in tiles of `TILE`. In a tile the rows are the last axis, so that every step of the
recursion of `FactorMoments` is one loop over neighbouring numbers, whatever the order and the number of
factors; only values of the basis, which differ from row to row, are evaluated row by row, along the
factors or pairs of factors, filled up to whole vectors, and transposed. What a chunk of rows holds is
filled up to whole tiles with rows of zeros. Numbers are read and written `LANES` at a time: loops that
LLVM turns into vectors by itself begin with checks for overlap that take as long as the work.
"""

from ahofm_keras.solvers.kernels.compiled.chunks import put_in, sum_system, take_out
from ahofm_keras.solvers.kernels.compiled.functions import TILE, add_cross, add_sums, evaluate
from ahofm_keras.solvers.kernels.compiled.vectors import LANES

__all__ = [
    "ENTRIES",
    "LANES",
    "TILE",
    "add_cross",
    "add_sums",
    "evaluate",
    "put_in",
    "sum_system",
    "take_out",
]

# What is called from outside.
ENTRIES = (evaluate, add_sums, add_cross, put_in, take_out, sum_system)
