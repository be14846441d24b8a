"""The posterior of a solver's blocks <-> the model's `Posterior` layer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ahofm_keras.solvers.blocks import FactorGroup, Spread
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.state import State
from ahofm_keras.solvers.weights import read_linear_weights

# Stands for the logarithm of 0, which is no number to keep as a weight; its exponential is 0 in float64.
_LOG_OF_ZERO = -750.0


def forget_posterior(model: Any) -> None:
    """The weights come from elsewhere: what the model knew of their uncertainty is no longer true."""
    if model.posterior is not None:
        model.posterior.forget()


def write_posterior(model: Any, engine: Engine, state: State) -> None:
    """Covariances, smoothing, degrees of freedom and dispersion -> the model."""
    layer, block = model.posterior, state.linear
    layer.forget()
    layer.fits.assign(len(state.bounds) or 1)
    layer.linear_root.assign(_root(block.covariance))
    layer.smoothing_root.assign(_root(block.smoothing_covariance))
    layer.linear_edf.assign(block.edf)
    unit = np.log(engine.weight_unit)
    layer.linear_smoothing.assign(_kept(block.prior.smoothing(), unit))
    for place, order in enumerate(engine.design.layout.only.orders):
        _write_group(layer, place, state.group(order.key), unit)
    # Last, because it says that there is a posterior: an interrupted write leaves none.
    starts = len(state.bounds) or engine.design.starts
    layer.announce(state.dispersion * engine.weight_unit, min(starts, layer.starts))


def _kept(parameters: np.ndarray, unit: float) -> np.ndarray:
    """Logarithms of lambda and tau as the layer keeps them, in units of weights of 1."""
    kept: np.ndarray = np.maximum(parameters + unit, _LOG_OF_ZERO)
    return kept


def _write_group(layer: Any, place: int, group: FactorGroup | None, unit: float) -> None:
    count, rank, width = layer.factor_means[place].shape
    fit = layer.factor_roots[place].shape[2] // width  # factors of one start
    means = np.zeros((count, rank, width))
    roots = np.zeros((count, rank, width, fit, width))
    edf = np.zeros((count, rank))
    smoothing = np.full((count, rank, 2), np.inf)
    for j, block in enumerate(group.blocks if group else ()):
        block = block.whole()
        kept, own = np.array(group.kept), block.width  # type: ignore[union-attr]
        means[j, kept, :own] = block.factors
        shaped = block.covariance.reshape(2 * (len(kept), own))
        for start in np.unique(kept // fit):
            mine = np.flatnonzero(kept // fit == start)
            covariance = shaped[mine][:, :, mine].reshape(2 * (len(mine) * own,))
            root = _root(covariance).reshape(2 * (len(mine), own))
            for a, factor in enumerate(kept[mine]):
                roots[j, factor, :own, kept[mine] % fit, :own] = root[a].swapaxes(0, 1)
        edf[j, kept] = block.factor_edf
        smoothing[j, kept] = _kept(block.prior.smoothing(), unit)
    layer.factor_means[place].assign(means)
    layer.factor_roots[place].assign(roots.reshape(count, rank * width, fit * width))
    layer.factor_edf[place].assign(edf)
    layer.factor_smoothing[place].assign(smoothing)


def _root(covariance: np.ndarray) -> np.ndarray:
    """L with L L' = V, also where V is singular; what nothing covaries with needs no eigenvectors."""
    scale = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    root = np.diag(scale)
    own = np.flatnonzero(np.count_nonzero(covariance, axis=1) > 1)
    within, size = (own[:, None], own), scale[own]
    values, vectors = np.linalg.eigh(covariance[within] / size / size[:, None])
    root[within] = size[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))
    return root


def read_posterior(model: Any, engine: Engine) -> State | None:
    """The state that an earlier fit of this kind left in the model, if there is one."""
    layer = model.posterior
    if not model.has_posterior:
        return None
    state, unit = engine.start(), np.log(engine.weight_unit)
    groups = []
    for place, group in enumerate(state.groups):
        kept = np.isfinite(np.asarray(layer.factor_smoothing[place])[:, : group.rank]).any(axis=(0, 2))
        if kept.any():
            groups.append(_read_group(layer, place, group, kept, unit))
    linear = read_linear_weights(model, state.linear)
    root = np.asarray(layer.linear_root)
    linear = replace(
        linear,
        prior=linear.prior.with_smoothing(_logarithms(layer.linear_smoothing, unit)),
        spread=Spread(root @ root.T, linear.edf),
    )
    return State(float(layer.dispersion) / engine.weight_unit, linear, tuple(groups))


def _logarithms(weight: Any, unit: float) -> np.ndarray:
    values = np.asarray(weight)
    return np.where(values <= _LOG_OF_ZERO, -np.inf, values - unit)


def _read_group(
    layer: Any, place: int, group: FactorGroup, kept: np.ndarray, unit: float
) -> FactorGroup:
    for factor in reversed(np.flatnonzero(~kept)):
        group = group.without(int(factor))
    rank = len(kept)
    means = np.asarray(layer.factor_means[place])[:, :rank]
    smoothing = _logarithms(layer.factor_smoothing[place], unit)
    count, _, width = means.shape
    roots = np.asarray(layer.factor_roots[place])[:, : rank * width]
    roots = roots.reshape(count, rank, width, rank, width)
    chosen = np.flatnonzero(kept)
    for j, block in enumerate(group.blocks):
        block = block.whole()
        own = block.width
        root = roots[j][chosen, :own][:, :, chosen, :own].reshape(2 * [len(chosen) * own])
        block = block.known(means[j, chosen, :own].reshape(-1), root @ root.T)
        prior = block.prior.with_smoothing(smoothing[j, chosen])
        group = group.with_block(j, replace(block, prior=prior))
    return group
