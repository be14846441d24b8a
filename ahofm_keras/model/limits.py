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
# By what share of the range its ends lie outside: the next row may be a little more extreme than all
# before. Where the mean is another function of the sum, a little there may be much here: no more than
# that another order of sums changes no training row.
_SPARE = 0.1
_ROUNDING = 1e-6


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

    Rows whose own fitted mean leaves the range of the responses by more than its width do not count:
    with a logarithmic link a row in the tails may be fitted at twice the largest response.

    Args:
        model: whose limits are infinite, so that its layers give these sums themselves.
        job: of the fit.
    """
    layers, graph = list(model.limits.values()), model._graph
    if not layers:
        return
    run = keras.Function(graph.encoded, [graph.response, *(layer.output[:, 0] for layer in layers)])
    found: list[list[np.ndarray]] = []
    for encoded, y, counted in _batches(job):
        mean, *sums = map(np.asarray, run(encoded))
        means = mean.reshape(len(mean), -1)[:, 0]  # that of the first parameter
        found.append([own[counted] for own in (y, means, *sums)])
    y, means, *sums = (np.concatenate(own) for own in zip(*found, strict=True))
    width = np.ptp(y)
    usual = (means >= y.min() - width) & (means <= y.max() + width)
    if usual.any():
        for layer, own in zip(layers, sums, strict=True):
            low, high = float(own[usual].min()), float(own[usual].max())
            spare = (high - low) * (_SPARE if model.family.is_linear else _ROUNDING)
            layer.set_ends(low - spare, high + spare)


def _batches(job: FitJob) -> Iterator[tuple[list[Any], np.ndarray, np.ndarray]]:
    """Encoded training rows, responses, which of them have a weight; of a dataset those of one epoch."""
    training = job.training
    if isinstance(training, Rows):
        counted = np.ones(len(training), bool) if training.weight is None else training.weight > 0
        for start in range(0, len(training), _BATCH_ROWS):
            rows = slice(start, start + _BATCH_ROWS)
            yield list(training.encoded.take(rows)), training.y[rows], counted[rows]
        return
    for encoded, y, *weight in training.take(job.steps_per_epoch or -1):
        response = np.asarray(y, float).reshape(-1)
        counted = np.ones(len(response), bool)
        if weight:
            counted = np.asarray(weight[0]).reshape(-1) > 0
        yield list(encoded), response, counted
