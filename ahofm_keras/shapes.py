"""Shapes of a smooth function, such as rising or concave, as inequalities between coefficients.

The derivatives of a spline on even knots have differences of neighbouring coefficients as their own
coefficients: where these are at least 0, so is the derivative. First differences make a function rise
along its axis, and so along its feature, wherever the knots are. Second differences bend it along the
axis alone: that has to be the feature's own, with even knots.

Of each shape the inequalities, with a line where a straight one is free, are as many as there are
functions but for the constant. So they are coordinates, of which some are at least 0.
"""

from __future__ import annotations

import numpy as np

SHAPES = (
    "increasing",
    "decreasing",
    "convex",
    "concave",
    "increasing convex",
    "increasing concave",
    "decreasing convex",
    "decreasing concave",
)


def is_bent(shape: str) -> bool:
    """Whether a shape says something of the second derivative."""
    return "con" in shape


def shape_rows(shape: str, size: int) -> tuple[np.ndarray, int]:
    """Linear forms of the coefficients of a spline's functions that are coordinates of its shape.

    Args:
        shape: one of `SHAPES`.
        size: number of functions M.

    Returns:
        `(M - 1, M)`, and how many of the last of them may have any sign: all others are at least 0.
    """
    slopes = np.diff(np.eye(size), axis=0)
    up, down = "increasing" in shape, "decreasing" in shape
    if not is_bent(shape):
        return (slopes if up else -slopes), 0
    sign = 1.0 if "convex" in shape else -1.0
    bends = sign * np.diff(slopes, axis=0)
    if not up and not down:
        return np.concatenate([bends, slopes.mean(axis=0, keepdims=True)]), 1
    # Where slopes rise the first is the least of all, where they fall the last.
    rises = up == (sign > 0)
    edge = slopes[:1] if rises else slopes[-1:]
    return np.concatenate([bends, edge if up else -edge]), 0
