"""Slow reference loops: what the fast code must agree with, written down as the definitions read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.interpolate import BSpline

from ahofm_keras.bases import ATOM_PLACE, Basis


def symmetric_polynomial(values: Sequence[float], order: int) -> Fraction:
    """e_d of some numbers: the sum of the products of all d-subsets, without any rounding."""
    exact = [Fraction(float(value)) for value in values]
    total = Fraction(0)
    for subset in combinations(exact, order):
        product = Fraction(1)
        for value in subset:
            product *= value
        total += product
    return total


def symmetric_gradient(values: Sequence[float], order: int) -> list[Fraction]:
    """Derivatives of e_d: e_(d-1) of all numbers but one, for each."""
    values = list(values)
    return [
        symmetric_polynomial(values[:place] + values[place + 1 :], order - 1)
        for place in range(len(values))
    ]


def interaction(phi: np.ndarray, order: int) -> np.ndarray:
    """sum_f e_d(phi_1f .. phi_pf) row by row, `(p, n, F)` -> `(n,)`, over all subsets of features."""
    total = np.zeros(phi.shape[1])
    for subset in combinations(range(len(phi)), order):
        total += np.prod(phi[list(subset)], axis=0).sum(axis=1)
    return total


def integer_splines(place: np.ndarray, size: int, degree: int) -> np.ndarray:
    """SciPy's B-splines on the integers from -degree on, `(n, size)`, for places in [0, size - degree]."""
    knots = np.arange(-degree, size + 1, dtype=float)
    return BSpline.design_matrix(place, knots, degree).toarray()


def basis_functions(basis: Basis, places: np.ndarray) -> np.ndarray:
    """All functions of a basis at places on its axis, `(n, M)`, from SciPy's B-splines."""
    if basis.kind == "linear":
        return places[:, None]
    if basis.kind == "re":
        return (places[:, None] == np.arange(basis.size)).astype(float)
    if basis.kind == "cp":
        open_ended = integer_splines(places, basis.size + basis.degree, basis.degree)
        joined = open_ended[:, : basis.size].copy()
        joined[:, : basis.degree] += open_ended[:, basis.size :]
        return joined
    if basis.atoms:
        index = places / ATOM_PLACE - 1
        own = index[:, None] == np.arange(len(basis.atoms))
        alone = replace(basis, size=basis.size - len(basis.atoms), atoms=())
        on_axis = basis_functions(alone, np.where(own.any(axis=1), 0.0, places))
        return np.concatenate([np.where(own.any(axis=1, keepdims=True), 0.0, on_axis), own], axis=1)
    inside = np.clip(places, 0, basis.intervals)
    spline = BSpline(
        np.arange(-basis.degree, basis.size + 1, dtype=float), np.eye(basis.size), basis.degree
    )
    # Straight pieces have a kink at the ends.
    edge = 0.5 if basis.degree == 1 else 0.0
    slopes = spline.derivative()(np.clip(places, edge, basis.intervals - edge))
    return integer_splines(inside, basis.size, basis.degree) + (places - inside)[:, None] * slopes


def cox_de_boor(x: float, knots: Sequence[float], place: int, degree: int) -> float:
    """One B-spline at one point, by the recursion that defines it."""
    if degree == 0:
        return float(knots[place] <= x < knots[place + 1])
    value = 0.0
    if knots[place + degree] > knots[place]:
        share = (x - knots[place]) / (knots[place + degree] - knots[place])
        value += share * cox_de_boor(x, knots, place, degree - 1)
    if knots[place + degree + 1] > knots[place + 1]:
        share = (knots[place + degree + 1] - x) / (knots[place + degree + 1] - knots[place + 1])
        value += share * cox_de_boor(x, knots, place + 1, degree - 1)
    return value


def hat_degrees_of_freedom(basis: np.ndarray, root: np.ndarray, smoothing: float) -> dict[str, float]:
    """tr(H) and tr(2H - H'H) of the dense H = B (B'B + lambda D'D)^-1 B'.

    From the QR decomposition of B on top of sqrt(lambda) D, which squares no condition number: it
    holds where B'B alone is singular.
    """
    orthonormal, _ = np.linalg.qr(np.vstack([basis, np.sqrt(smoothing) * root]))
    hat = orthonormal[: len(basis)] @ orthonormal[: len(basis)].T
    return {"H": float(np.trace(hat)), "2H-HH": float(2 * np.trace(hat) - np.sum(hat * hat))}


def terms_of(design: Any, kind: type) -> list[Any]:
    """The terms of a class, in the order of the design."""
    return [term for term in design.terms if isinstance(term, kind)]


def penalised(design: Any) -> list[Any]:
    """Smooths and tensor products, in the order in which solvers and the posterior hold them."""
    return [
        SimpleNamespace(
            name=term.name,
            label=term.label,
            features=block.positions,
            lambdas=block.smoothing,
            pure=block.pure,
            fixed=block.fixed,
        )
        for term, block, _ in design.layout.only.penalised
    ]
