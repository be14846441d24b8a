"""Atoms: values that many rows share get a function of their own beside the spline.

The function of a feature is spline(x) + w_a 1(x = a). On rows a row at an atom has one function, the
indicator of the atom, and no spline (`bases`), so that nothing is wider than without atoms; that its
coefficient is the spline's value there plus w_a is said by the coordinates: with those of atoms first,
T = [[0, T_s], [I, b(a)' T_s]], with the mean of each indicator taken from all functions, which add up to
1. A value without a place on the axis would be an atom whose row has no b(a)' T_s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ahofm_keras.bases import evaluate_basis
from ahofm_keras.formula import TermSpec
from ahofm_keras.transforms import Expression

if TYPE_CHECKING:
    from ahofm_keras.terms.features import Feature

# A value stands out if so many rows, and such a share of all, have it, and so many times as many as have
# the usual value near it: of a rounded feature every value has many rows, and none stands out.
_LEAST_ROWS = 30
_LEAST_SHARE = 0.002
# Where there are so few rows in all, values are not looked for: in interactions, errors rise with them.
_FEW_ROWS = 2000
_TIMES = 4.0
# Values to either side that are near.
_NEAR = 5
# With fewer distinct values a spline has a function for almost each of them.
_LEAST_DISTINCT = 20
# So many at most, those of the most rows.
MOST_FOUND = 30


def find_atoms(values: np.ndarray, counts: np.ndarray) -> tuple[float, ...]:
    """Values that stand out, rising.

    Args:
        values: distinct values, rising.
        counts: how many rows have each.
    """
    if len(values) < _LEAST_DISTINCT or counts.sum() < _FEW_ROWS:
        return ()
    least = max(_LEAST_ROWS, _LEAST_SHARE * counts.sum())
    found = [place for place in np.flatnonzero(counts >= least) if _stands_out(counts, int(place))]
    most = sorted(found, key=lambda place: -counts[place])[:MOST_FOUND]
    return tuple(values[sorted(most)].tolist())


def _stands_out(counts: np.ndarray, place: int) -> bool:
    start = max(place - _NEAR, 0)
    near = np.concatenate([counts[start:place], counts[place + 1 : place + 1 + _NEAR]])
    return bool(counts[place] > _TIMES * np.median(near))


def check_atoms(
    given: Sequence[float], values: np.ndarray, expression: Expression, spec: TermSpec
) -> tuple[float, ...]:
    """Values that the user named, rising; a `FormulaError` where no row has one of them.

    Args:
        given: by the user.
        values: distinct values, rising.
        expression: whose values these are.
        spec: of the term.
    """
    wanted = np.unique(np.asarray(given, float))
    unknown = wanted[~np.isin(wanted, values)]
    if len(unknown):
        nearest = values[np.argmin(np.abs(values - unknown[0]))]
        raise spec.error(
            f"`atoms` of `{spec.label}` names {unknown[0]:.15g}, but no row has that value of "
            f"`{expression}`; the nearest is {nearest:.15g}."
        )
    return tuple(wanted.tolist())


def add_atoms(
    feature: Feature, atoms: tuple[float, ...], values: np.ndarray, counts: np.ndarray, centred: bool
) -> Feature:
    """A feature with a function for each of some values beside its splines.

    Args:
        feature: with splines alone.
        atoms: the values, rising.
        values: distinct values of the training rows, rising.
        counts: how many rows have each.
        centred: whether functions have mean zero.
    """
    shares = counts[np.searchsorted(values, atoms)] / counts.sum()
    at = evaluate_basis(feature.basis, np.asarray(atoms)) @ feature.transform
    own = np.concatenate([np.zeros((feature.basis.size, len(atoms))), np.eye(len(atoms))])
    own -= shares * centred
    return replace(
        feature,
        basis=replace(feature.basis, size=feature.basis.size + len(atoms), atoms=atoms),
        transform=np.concatenate([own, np.concatenate([feature.transform, at])], axis=1),
        eigenvalues=np.concatenate([np.zeros(len(atoms)), feature.eigenvalues]),
        # Where the data does not choose: of a value that just stands out half of what it adds is left.
        atom_smoothing=_LEAST_ROWS / float(counts.sum()),
    )
