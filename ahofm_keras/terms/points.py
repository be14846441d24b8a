"""Points that smooths go through: `s(x, pc=0)`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ahofm_keras.bases import Basis, evaluate_basis
from ahofm_keras.formula import TermSpec

if TYPE_CHECKING:
    from ahofm_keras.terms.features import Feature


def at_point(basis: Basis, point: float, spec: TermSpec) -> np.ndarray:
    """Values `(M,)` of the functions of a basis at a point, all of which shall add up to 0 there."""
    low, high = basis.axis[0], basis.axis[-1]
    if not (low <= point <= high or basis.period or basis.is_straight_beyond):
        raise spec.error(
            f"`pc` of `{spec.label}` must lie within the training values, from {low:g} to {high:g}: "
            'beyond, the function is constant. Or choose extrapolation="linear", or `knots` that reach '
            f"so far.\n    Received: pc={point:g}."
        )
    there: np.ndarray = evaluate_basis(basis, np.array([point]))[0]
    return there


def without_value(feature: Feature, point: float) -> Feature:
    """The feature with functions that are 0 at a point: all but that of an atom there are already.

    Basis functions add up to 1, so that this takes a constant from each.
    """
    there = evaluate_basis(feature.basis, np.array([point])) @ feature.transform
    return replace(feature, transform=feature.transform - there, through=point)
