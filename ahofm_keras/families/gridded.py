"""Functions of two numbers that take a sum for each row: of many rows, by a spline through a grid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.interpolate import RectBivariateSpline

Array = np.ndarray

# Below these rows nothing is saved. Of an axis that is as good as constant: where its places are taken.
_FEW = 16
_CONSTANT = 1e-6
_APART = 1e-3


def gridded(
    function: Callable[[Array, Array], tuple[Array, ...]], x: Array, y: Array, step: float
) -> tuple[Array, ...]:
    """Values of a smooth function at places of the same shape.

    Args:
        function: of arrays of one shape, to a tuple of these.
        x: its first argument.
        y: its second.
        step: between places of the grid, along both.
    """
    if x.size < _FEW:
        return function(x, y)
    ends = [(float(own.min()), float(own.max())) for own in (x, y)]
    axes = [np.linspace(low, high, int((high - low) / step) + 2) for low, high in ends]
    if x.size <= len(axes[0]) * len(axes[1]):
        return function(x, y)
    # A spline needs places that differ.
    axes = [own if np.ptp(own) > _CONSTANT else own[0] + _APART * np.arange(2) for own in axes]
    degrees = [min(3, len(own) - 1) for own in axes]
    found = function(*np.meshgrid(*axes, indexing="ij"))
    places = axes[0], axes[1]
    splines = (RectBivariateSpline(*places, own, kx=degrees[0], ky=degrees[1]) for own in found)
    return tuple(np.asarray(spline.ev(x, y)) for spline in splines)
