"""The exact minimum of a quadratic form plus norms of groups of coefficients: lasso and group lasso.

Coefficients without such a penalty are eliminated. For the others coordinate descent finds which groups
are 0, and Newton steps on those that are not lead to the minimum itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ahofm_keras.solvers.precision import Precision

# Of the largest strength: by how much the gradient may miss what the minimum asks for.
_TOLERANCE = 1e-11
# Sweeps of coordinate descent before Newton steps are tried, and all in all.
_SWEEPS, _MOST_SWEEPS = 10, 5000
_NEWTON_STEPS = 20
# Of the two parts of the coefficients in turn.
_TURNS = 300
# Of the norm of a group: steps on it end where they move it less.
_ROOT = 1e-14


def sum_of_norms(coefficients: np.ndarray, groups: Sequence[np.ndarray], strengths: np.ndarray) -> float:
    """sum_g s_g |b_g|."""
    sizes = [float(np.linalg.norm(coefficients[own])) for own in groups]
    return float(strengths @ np.array(sizes)) if sizes else 0.0


def minimise_with_norms(
    gram: np.ndarray,
    rhs: np.ndarray,
    precision: Precision,
    groups: Sequence[np.ndarray],
    strengths: np.ndarray,
) -> np.ndarray:
    """b `(m,)` with the least b' (G + Q) b / 2 - r' b + sum_g s_g |b_g|.

    Args:
        gram: G `(m, m)`.
        rhs: r `(m,)`.
        precision: of the coefficients without such a penalty; the others are not in use.
        groups: the coefficients of each group.
        strengths: s `(g,)`.
    """
    own = np.concatenate(groups)
    free = precision.solve_columns(gram[:, own])
    left = gram[np.ix_(own, own)] - gram[own] @ free
    sums = rhs[own] - free.T @ rhs
    stops = np.cumsum([len(group) for group in groups])
    slices = [slice(stop - len(group), stop) for stop, group in zip(stops, groups, strict=True)]
    found = descend((left + left.T) / 2, sums, slices, strengths)
    mean = precision.solve(rhs) - free @ found
    mean[own] = found
    return mean


def minimise_by_turns(
    gram: np.ndarray,
    rhs: np.ndarray,
    precision: Precision,
    groups: Sequence[np.ndarray],
    strengths: np.ndarray,
    nearest: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> np.ndarray:
    """The same minimum where the coefficients without such a penalty are held in a cone.

    Args:
        gram, rhs, precision, groups, strengths: of `minimise_with_norms`.
        nearest: the point of the cone that is nearest to a mean, from that and its right side.
    """
    own, mean = np.concatenate(groups), np.zeros(len(rhs))
    stops = np.cumsum([len(group) for group in groups])
    slices = [slice(stop - len(group), stop) for stop, group in zip(stops, groups, strict=True)]
    for _ in range(_TURNS):
        before, left = mean, rhs - gram[:, own] @ mean[own]
        mean = nearest(precision.solve(left), left)
        mean[own] = 0.0
        mean[own] = descend(gram[np.ix_(own, own)], rhs[own] - gram[own] @ mean, slices, strengths)
        if np.abs(mean - before).max() <= _TOLERANCE * np.abs(mean).max():
            break
    return mean


def descend(
    gram: np.ndarray, rhs: np.ndarray, groups: Sequence[slice], strengths: np.ndarray
) -> np.ndarray:
    """The minimum of b' G b / 2 - r' b + sum_g s_g |b_g|."""
    bases = [np.linalg.eigh(gram[own, own]) for own in groups]
    found, slopes = np.zeros(len(rhs)), rhs.copy()  # r - G b
    tolerance = _TOLERANCE * max(float(strengths.max()), float(np.abs(rhs).max()))
    for sweep in range(1, _MOST_SWEEPS + 1):
        for own, (values, vectors), strength in zip(groups, bases, strengths, strict=True):
            old = found[own]
            new = _minimise_group(values, vectors, slopes[own] + gram[own, own] @ old, strength)
            if (step := new - old).any():
                found[own] = new
                slopes -= gram[:, own] @ step
        if sweep % _SWEEPS:
            continue
        found = _polish(gram, rhs, groups, strengths, found)
        slopes = rhs - gram @ found
        if _violation(slopes, found, groups, strengths) <= tolerance:
            break
    return found


def _minimise_group(
    values: np.ndarray, vectors: np.ndarray, sums: np.ndarray, strength: float
) -> np.ndarray:
    """The minimum in one group: 0, or (S + s / |b|) b = r, an equation for |b|."""
    if len(values) == 1:
        size = max(abs(float(sums[0])) - strength, 0.0)
        return np.sign(sums) * size / max(float(values[0]), np.finfo(float).tiny)
    if np.linalg.norm(sums) <= strength:
        return np.zeros(len(sums))
    # |b| solves sum_i (c_i / (v_i |b| + s))^2 = 1, whose left side falls: Newton steps on its inverse
    # root, which is concave, rise to it from 0.
    squares, norm = np.square(vectors.T @ sums), 0.0
    values = np.maximum(values, 0.0)
    for _ in range(100):
        below = values * norm + strength
        total = float(np.sum(squares / below**2))
        slope = float(np.sum(squares * values / below**3))
        if slope <= 0:
            break
        step = total * (np.sqrt(total) - 1) / slope
        norm += step
        if abs(step) <= _ROOT * norm:
            break
    return np.asarray(vectors @ (norm / (values * norm + strength) * (vectors.T @ sums)))


def _polish(
    gram: np.ndarray,
    rhs: np.ndarray,
    groups: Sequence[slice],
    strengths: np.ndarray,
    start: np.ndarray,
) -> np.ndarray:
    """Newton steps on the groups that are not 0; where they leave the orthant, what they came from."""
    active = [place for place, own in enumerate(groups) if start[own].any()]
    if not active:
        return start
    own = np.concatenate([np.arange(groups[place].start, groups[place].stop) for place in active])
    stops = np.cumsum([groups[place].stop - groups[place].start for place in active])
    inner = [slice(a, b) for a, b in zip([0, *stops[:-1]], stops, strict=True)]
    within, sums, found = gram[np.ix_(own, own)], rhs[own], start[own]
    for _ in range(_NEWTON_STEPS):
        slope, curvature = within @ found - sums, within.copy()
        for place, part in zip(active, inner, strict=True):
            norm, values = np.linalg.norm(found[part]), found[part]
            slope[part] += strengths[place] * values / norm
            bend = np.eye(len(values)) - np.outer(values, values) / norm**2
            curvature[part, part] += strengths[place] / norm * bend
        try:
            step = np.linalg.solve(curvature, slope)
        except np.linalg.LinAlgError:
            return start
        new = found - step
        if not np.isfinite(new).all() or any(new[part] @ found[part] <= 0 for part in inner):
            return start
        found = new
        if np.abs(step).max() <= _ROOT * np.abs(found).max():
            break
    whole = start.copy()
    whole[own] = found
    return whole


def _violation(
    slopes: np.ndarray, found: np.ndarray, groups: Sequence[slice], strengths: np.ndarray
) -> float:
    """By how much the conditions of the minimum are missed: r - G b = s b / |b|, or no longer than s."""
    worst = 0.0
    for own, strength in zip(groups, strengths, strict=True):
        norm = float(np.linalg.norm(found[own]))
        if norm > 0:
            missed = float(np.linalg.norm(slopes[own] - strength * found[own] / norm))
        else:
            missed = float(np.linalg.norm(slopes[own])) - strength
        worst = max(worst, missed)
    return worst
