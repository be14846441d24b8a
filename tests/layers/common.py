"""Rows, precisions and coordinates that tests of several layers use."""

from __future__ import annotations

import numpy as np

from ahofm_keras.bases import Basis, center_basis, evaluate_basis
from ahofm_keras.penalties import DemmlerReinsch, difference_penalty, orthogonalise

ROWS = 60
DTYPES = ["float32", "float64"]


def coordinates(basis: Basis, x: np.ndarray) -> DemmlerReinsch:
    rows = evaluate_basis(basis, x)
    spline = basis.kind in ("ps", "cp")
    penalty = difference_penalty(basis.size, cyclic=basis.kind == "cp") if spline else np.eye(basis.size)
    constraint = None if basis.kind == "linear" else center_basis(rows.mean(axis=0))
    return orthogonalise(rows.T @ rows, penalty, len(x), constraint)
