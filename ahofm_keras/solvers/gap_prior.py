"""The prior of functions that live in a gap of their feature, where no row sees them.

Where a feature has a gap, some functions are as good as zero on every row and large in the gap. Their
coordinates, which are scaled by what the rows see, look like all others to tau, and the evidence has
nothing against a lambda of almost 0: a row that later falls into the gap would be predicted at a hundred
standard deviations. So lambda has a floor there.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from ahofm_keras.bases import evaluate_at
from ahofm_keras.terms import Feature

# Places in a knot interval at which functions are looked at.
_PLACES = 8
# As long as a feature lives: every start of a fit asks anew.
_known: WeakKeyDictionary[Feature, np.ndarray] = WeakKeyDictionary()


def least_smoothing(feature: Feature, rows: float, reach: float) -> float:
    """The lambda, at a dispersion of 1, that holds unseen functions in sight of the response.

    A function u_m with sum_i u_m(x_i)^2 = n is unseen where its largest square is beyond n, more than a
    row of its own could give. With a coefficient of variance dispersion / (n lambda s_m) it should have
    a standard deviation of at most `reach` there; that of the response is 1 in the model's scale.

    Args:
        feature: with its functions.
        rows: n.
        reach: standard deviations of the response.
    """
    if not feature.basis.is_spline:
        return 0.0
    peaks = _known.get(feature)
    if peaks is None:
        peaks = _known[feature] = _peaks(feature)
    unseen = (peaks > rows) & (feature.eigenvalues > 0)
    if not unseen.any():
        return 0.0
    return float((peaks[unseen] / feature.eigenvalues[unseen]).max() / (rows * reach**2))


def _peaks(feature: Feature) -> np.ndarray:
    """The largest square of each function anywhere on the axis of the basis, `(r,)`."""
    basis = feature.basis
    places = np.linspace(0, basis.intervals, _PLACES * basis.intervals + 1)
    peaks: np.ndarray = np.square(evaluate_at(basis, places) @ feature.transform).max(axis=0)
    return peaks
