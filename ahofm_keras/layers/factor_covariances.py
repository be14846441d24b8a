"""Covariances of the factors of one feature: what is kept of them, and what a prediction needs.

Of a group of F factors these are F (F + 1) / 2 pairs f <= g.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from keras import ops

from ahofm_keras.bands import quadratic_weights
from ahofm_keras.layers.basis import Functions
from ahofm_keras.moments import triangle

Array = Any
Shape = tuple[int, ...]

# Tests of interactions look at so many functions of each factor, the smoothest: with 20 functions their
# p-values were then within 5 % of those by all.
TESTED_FUNCTIONS = 8


def factor_shapes(entry: dict[str, Any], groups: int) -> dict[str, Shape]:
    """Shapes of the weights of an order with p features, by what they hold.

    - `means`: of the factors' coefficients `(p, slots, r)`, where slots are those of all groups.
    - `edf`: degrees of freedom of each factor; `smoothing`: logarithms of its lambda, of that of its
      atoms where features have some, and of tau, infinite where it is not in use.
    - `bands`: of the covariances of the pairs f <= g of a group, `(p, groups, M, W, P)`.
    - `tested_covariances`: of the coefficients of the smoothest functions, `(p, groups, K, K, P)`.
    - `reference_df`: tr(2H - HH) of the factors of a feature and a group, `(p, groups)`; for tests too.

    Where functions have means over their margins, which effects are without:

    - `centred_bands`: the bands of functions less their means.
    - `mean_covariances`: of the means of the factors `(p, groups, P)`.

    Args:
        entry: of `interactions`, see `Posterior`.
        groups: that there is room for.
    """
    count, rank, pairs = len(entry["transforms"]), entry["rank"], len(triangle(entry["rank"])[0])
    size, coordinates = np.max([np.shape(transform) for transform in entry["transforms"]], axis=0)
    tested, slots = min(int(coordinates), TESTED_FUNCTIONS), groups * rank
    band = (count, groups, int(size), max(entry["widths"]), pairs)
    uncentred = {"centred_bands": band, "mean_covariances": (count, groups, pairs)}
    return {
        "means": (count, slots, int(coordinates)),
        "edf": (count, slots),
        "smoothing": (count, slots, entry.get("lambdas", 1) + 1),
        "bands": band,
        "tested_covariances": (count, groups, tested, tested, pairs),
        "reference_df": (count, groups),
        **(uncentred if entry["means"] else {}),
    }


def evaluate_bands(own: Functions, bands: Array) -> Array:
    """b' V b at rows of many forms V, from their bands: `(n, P)`.

    Of the W functions b of a row that are not zero each two meet once.

    Args:
        own: functions `(W, n)` of one feature.
        bands: `(M, W, P)`, see `bands.py`.
    """
    (functions, values), (_, width, pairs) = own, bands.shape
    weights = quadratic_weights(width)[:, None]
    total = 0.0
    for first in range(width):
        # With itself, and with those that come after it.
        met = width - first
        table = ops.reshape(bands[:, :met] * weights[:met], (-1, met * pairs))
        products = ops.transpose(values[first:] * values[first])[:, :, None]
        found = ops.reshape(ops.take(table, functions[first], axis=0), (-1, met, pairs))
        total = total + ops.sum(found * products, axis=1)
    return total
