"""Posteriors of factors from whole covariances, by dense algebra."""

from __future__ import annotations

from typing import Any

import numpy as np

from ahofm_keras.bands import read_band


def keep_covariance(layer: Any, place: int, j: int, group: int, covariance: np.ndarray) -> None:
    """Let a `Posterior` know the covariance `(F r, F r)` of a feature's factors in one group."""
    entry = layer.interactions[place]
    rank, transform = entry["rank"], entry["transforms"][j]
    size, own = transform.shape
    width = entry["widths"][j]
    blocks = covariance.reshape(rank, own, rank, own)
    values = {name: np.asarray(weight).copy() for name, weight in layer.orders[place].items()}
    pairs = [(f, g) for f in range(rank) for g in range(f, rank)]
    for pair, (f, g) in enumerate(pairs):
        V = (blocks[f, :, g] + blocks[g, :, f]) / 2
        dense = transform @ V @ transform.T
        values["bands"][j, group, :size, :width, pair] = read_band(dense, width)
        if entry["means"]:
            mean = entry["means"][j]
            moved = (transform - mean) @ V @ (transform - mean).T
            values["centred_bands"][j, group, :size, :width, pair] = read_band(moved, width)
            values["mean_covariances"][j, group, pair] = mean @ V @ mean
    for name, weight in layer.orders[place].items():
        weight.assign(values[name])
