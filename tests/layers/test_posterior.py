"""The variance of a predictor, where it is 0."""

from __future__ import annotations

import numpy as np

from ahofm_keras.layers import Posterior


def test_variances_that_cancel_are_not_below_0() -> None:
    """Two factors of the first feature move against each other, so their sum of products stands still."""
    rng = np.random.default_rng(0)
    bases = rng.normal(size=(2, 1, 1000))
    orders = [{"order": 2, "rank": 2, "features": [[0, 0], [0, 1]], "transforms": 2 * [np.ones((1, 1))]}]
    layer = Posterior(False, [], orders)
    layer.build()
    ratio = 0.7
    means, roots = np.zeros((2, 2, 1)), np.zeros((2, 2, 2))
    means[1, :, 0] = 1, ratio
    roots[0, :, 0] = 1, -1 / ratio
    layer.factor_means[0].assign(means)
    layer.factor_roots[0].assign(roots)
    variance = np.asarray(layer([bases]))
    assert (variance >= 0).all()
    assert variance.max() < 1e-12
