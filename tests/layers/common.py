"""Rows, precisions and coordinates that tests of several layers use."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras import ops

from ahofm_keras.bases import Basis, center_basis, evaluate_basis
from ahofm_keras.penalties import DemmlerReinsch, difference_penalty, orthogonalise

Array = Any
ROWS = 60
DTYPES = ["float32", "float64"]


def nonzero(*rows: np.ndarray) -> tuple[Array, Array]:
    """An expansion of features with `(n, M)` functions each, of which none is known to be 0."""
    values = np.stack([own.T for own in rows])
    functions = np.arange(values.shape[1])[:, None] + np.zeros(values.shape)
    return ops.convert_to_tensor(functions, "int32"), ops.convert_to_tensor(values)


def dense(functions: np.ndarray, values: np.ndarray, size: int) -> np.ndarray:
    """All functions `(n, M)` of a basis, from those `(W, n)` that are not zero."""
    rows = np.zeros((values.shape[1], size))
    for row in range(len(rows)):
        np.add.at(rows[row], np.asarray(functions)[:, row], np.asarray(values)[:, row])
    return rows


def coordinates(basis: Basis, x: np.ndarray) -> DemmlerReinsch:
    rows = evaluate_basis(basis, x)
    spline = basis.kind in ("ps", "cp")
    penalty = difference_penalty(basis.size, cyclic=basis.kind == "cp") if spline else np.eye(basis.size)
    constraint = None if basis.kind == "linear" else center_basis(rows.mean(axis=0))
    return orthogonalise(rows.T @ rows, penalty, len(x), constraint)
