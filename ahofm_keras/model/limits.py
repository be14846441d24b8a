"""Limits of predictors: learned from the training rows when a fit is done, away while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np

from ahofm_keras.model.fit_state import FitState
from ahofm_keras.solvers.job import FitJob, Rows

_BATCH_ROWS = 8192


@contextmanager
def without_limits(model: Any, fits: FitState) -> Iterator[None]:
    """Nothing is held inside: the rows of a fit are those that limits are learned from.

    A fit that fails before it has changed a weight leaves the limits as they were.
    """
    layers = list(model.limits.values())
    ends = [layer.ends for layer in layers]
    for layer in layers:
        layer.set_ends()
    weights = fits.weights_hash()
    try:
        yield
    except BaseException:
        if fits.weights_hash() == weights:
            for layer, own in zip(layers, ends, strict=True):
                layer.set_ends(*own)
        raise


def learn_limits(model: Any, job: FitJob) -> None:
    """Hold the sums of terms within the ranges that they have on the training rows.

    Args:
        model: whose limits are infinite, so that its layers give these sums themselves.
        job: of the fit.
    """
    layers = list(model.limits.values())
    if not layers:
        return
    sums = keras.Function(model.encoded, [layer.output[:, 0] for layer in layers])
    ranges = [(np.inf, -np.inf)] * len(layers)
    for encoded, counted in _batches(job):
        found = [np.asarray(own)[counted] for own in sums(encoded)]
        ranges = [
            (min(low, own.min(initial=np.inf)), max(high, own.max(initial=-np.inf)))
            for (low, high), own in zip(ranges, found, strict=True)
        ]
    for layer, (low, high) in zip(layers, ranges, strict=True):
        if low <= high:
            layer.set_ends(float(low), float(high))


def _batches(job: FitJob) -> Iterator[tuple[list[Any], np.ndarray]]:
    """Encoded training rows, and which of them have a weight; of a dataset those of one epoch."""
    training = job.training
    if isinstance(training, Rows):
        counted = np.ones(len(training), bool) if training.weight is None else training.weight > 0
        for start in range(0, len(training), _BATCH_ROWS):
            rows = slice(start, start + _BATCH_ROWS)
            yield list(training.encoded.take(rows)), counted[rows]
        return
    for encoded, y, *weight in training.take(job.steps_per_epoch or -1):
        counted = np.ones(len(y), bool) if not weight else np.asarray(weight[0]).reshape(-1) > 0
        yield list(encoded), counted
