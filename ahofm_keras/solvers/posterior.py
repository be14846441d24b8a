"""The posterior of a solver's blocks <-> the model's `Posterior` layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ahofm_keras.bands import product_band
from ahofm_keras.moments import pair_places, triangle
from ahofm_keras.solvers.blocks import FactorBlock
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.groups import FactorGroup, find_surface
from ahofm_keras.solvers.spreads import KeptSpread, Spread
from ahofm_keras.solvers.state import State
from ahofm_keras.solvers.weights import read_linear_weights
from ahofm_keras.terms.blocks import InteractionOrder

# Stands for the logarithm of 0, which is no number to keep as a weight; its exponential is 0 in float64.
_LOG_OF_ZERO = -750.0
# Coefficients that are shrunk altogether, at least, for their covariance to tell the dispersion.
_LEAST_MISSING = 1e-6


def forget_posterior(model: Any) -> None:
    """The weights come from elsewhere: what the model knew of their uncertainty is no longer true."""
    for layer in model.posteriors.values():
        layer.forget()


def write_posterior(model: Any, engine: Engine, state: State, fits: int | None = None) -> None:
    """Covariances, smoothing, degrees of freedom and dispersion -> the model.

    Args:
        model: that keeps them.
        engine: of the fit.
        state: where it has come.
        fits: of how many the factors are; by default as the state says.
    """
    layer, block = model.posterior, state.linear.curved()
    layer.forget()
    fits = fits or len(state.bounds) or 1
    layer.fits.assign(fits)
    layer.linear_root.assign(_root(block.covariance))
    layer.smoothing_root.assign(_root(block.smoothing_covariance))
    layer.linear_edf.assign(block.edf)
    unit = np.log(engine.weight_unit)
    index = list(engine.design.layout.only.smoothing_index) or [0]
    layer.linear_smoothing.assign(_kept(block.prior.smoothing(), unit)[index])
    groups = []
    for place, order in enumerate(engine.design.layout.only.orders):
        own = state.groups_of(order.key)
        _write_groups(layer, place, own, unit, fits)
        groups.append(max((group.number + 1 for group in own), default=0))
    # Last, because it says that there is a posterior: an interrupted write leaves none.
    layer.announce(state.dispersion * engine.weight_unit, groups)


def _kept(parameters: np.ndarray, unit: float) -> np.ndarray:
    """Logarithms of lambda and tau as the layer keeps them, in units of weights of 1."""
    kept: np.ndarray = np.maximum(parameters + unit, _LOG_OF_ZERO)
    return kept


def _write_groups(layer: Any, place: int, groups: Sequence[FactorGroup], unit: float, fits: int) -> None:
    """The groups of one order; where factors are not in use there are zeros, and no smoothing."""
    weights, entry = layer.orders[place], layer.interactions[place]
    values = {name: np.zeros(weight.shape) for name, weight in weights.items()}
    values["smoothing"][:] = np.inf
    for group in groups:
        kept = np.array(group.kept)
        for j, known in enumerate(group.blocks):
            smoothing = _kept(known.factor_smoothing, unit)
            values["smoothing"][j, kept] = _LOG_OF_ZERO  # a lambda that only others have
            values["smoothing"][j, kept[:, None], _own_columns(smoothing)] = smoothing
            values["means"][j, kept, : known.width] = known.factors
            if known.is_given or known.is_nothing:
                continue
            block = known.whole()
            values["edf"][j, kept] = block.factor_edf
            means = entry["means"][j] if entry["means"] else None
            tested = block.feature.smoothest(weights["tested_covariances"].shape[2])
            for number in np.unique(kept // entry["rank"]):
                mine = np.flatnonzero(kept // entry["rank"] == number)
                slots = kept[mine] % entry["rank"]
                first, second = triangle(len(mine))
                pairs = pair_places(entry["rank"])[slots[first], slots[second]]
                for name, own in _pair_covariances(block, mine, tested, means).items():
                    inner = tuple(map(slice, own.shape[1:]))
                    values[name][(j, number, *inner, pairs)] = own
                values["reference_df"][j, number] = _reference_df(block, mine, fits)
    for name, weight in weights.items():
        weight.assign(values[name])


def _own_columns(parameters: np.ndarray) -> list[int]:
    """Where the lambdas and tau of a feature stand among those of an order; tau is the last."""
    return [*range(parameters.shape[1] - 1), -1]


def _pair_covariances(
    block: FactorBlock, factors: np.ndarray, tested: np.ndarray, means: np.ndarray | None
) -> dict[str, np.ndarray]:
    """What the model keeps of the covariances of each pair f <= g of some factors, `(P, ...)`.

    Args:
        block: of the factors.
        factors: which of them.
        tested: places of the functions that tests look at.
        means: of the functions over their margin, `(r,)`; None where they are 0.
    """
    feature, width = block.feature, block.feature.basis.width
    transform = feature.transform[:, : block.width]
    blocks = block.covariance.reshape(2 * (block.rank, block.width)).swapaxes(1, 2)
    first, second = triangle(len(factors))
    covariances = blocks[factors[first], factors[second]]
    # All that b' V b knows of V.
    symmetric = (covariances + covariances.swapaxes(1, 2)) / 2
    whole = np.zeros((len(first), *2 * feature.eigenvalues.shape))
    whole[:, : block.width, : block.width] = covariances
    found = {
        "bands": product_band(transform @ symmetric, transform, width),
        "tested_covariances": whole[:, tested[:, None], tested],
    }
    if means is not None:
        means = means[: block.width]
        # Functions of a basis add up to 1, so that this takes the mean from each.
        centred = transform - means
        found["centred_bands"] = product_band(centred @ symmetric, centred, width)
        found["mean_covariances"] = means @ symmetric @ means
    return found


def _reference_df(block: FactorBlock, factors: np.ndarray, fits: int) -> float:
    """tr(2H - HH) of some factors: degrees of freedom for tests.

    H = I - V Q / dispersion, with the dispersion that the covariance V was made with, times what an
    average makes of it: tr(V Q) over what the degrees of freedom lack of the number of coefficients.

    Args:
        block: of the factors.
        factors: which of them.
        fits: of how many fits the block is a part of the average.
    """
    own = (factors[:, None] * block.width + np.arange(block.width)).reshape(-1)
    shrunken = block.covariance[np.ix_(own, own)] * block.prior.precisions[own]
    missing = len(own) - fits * float(block.edf[own].sum())
    total = float(np.trace(shrunken))
    # Where next to nothing is shrunk all coefficients are free.
    scale = total / missing if missing > _LEAST_MISSING and total > 0 else np.inf
    influence = np.eye(len(own)) - shrunken / scale
    return float(2 * np.trace(influence) - np.sum(influence * influence.T))


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
    """The state that an earlier fit of this kind left in the model, if there is one.

    The model keeps of the covariance of a block of factors what the updates of others need. The rest is
    computed anew, from the means and these.
    """
    layer = model.posterior
    if not model.has_posterior:
        return None
    state, (dispersion, unit) = engine.start(groups=0), read_dispersion(engine, layer)
    orders = enumerate(engine.design.layout.only.orders)
    found = [
        read_group(engine, layer, order, place, number, unit)
        for place, order in orders
        for number in range(order.groups)
    ]
    groups = tuple(group for group in found if group is not None)
    linear = read_linear_weights(model, state.linear)
    root = np.asarray(layer.linear_root)
    _, firsts = np.unique(engine.design.layout.only.smoothing_index or (0,), return_index=True)
    linear = replace(
        linear,
        prior=linear.prior.with_smoothing(logarithms(layer.linear_smoothing, unit)[firsts]),
        spread=Spread(root @ root.T, linear.edf),
    )
    return with_covariances(engine, State(dispersion, linear, groups))


def read_dispersion(engine: Engine, layer: Any) -> tuple[float, float]:
    """The dispersion that a posterior has, and the logarithm of the unit of what precisions it keeps."""
    dispersion, unit = float(layer.dispersion) / engine.weight_unit, float(np.log(engine.weight_unit))
    if engine.family.dispersion_known:
        # Precisions of priors are then absolute: those of another family were divided by its dispersion.
        return 1.0, unit + float(np.log(dispersion))
    return dispersion, unit


def with_covariances(engine: Engine, state: State) -> State:
    """A state that was read, each block of factors with its covariance at the means of all others."""
    read, found = engine.linearise(state), state
    for index, group in enumerate(state.groups):
        for feature, block in enumerate(group.blocks):
            if group.is_surface and not block.is_updated:
                continue
            update = engine.update_surface if group.is_surface else engine.update_factors
            where = (index,) if group.is_surface else (index, feature)
            solved = update(read, *where).groups[index].blocks[feature]
            # As many functions as the update has in use: the coefficients of the others are 0.
            found = found.with_factors(index, feature, replace(solved, mean=block.mean_like(solved)))
    return found


def logarithms(weight: Any, unit: float) -> np.ndarray:
    """Logarithms of lambda and tau that a posterior keeps, in units of the weights of a fit."""
    values = np.asarray(weight)
    return np.where(values <= _LOG_OF_ZERO, -np.inf, values - unit)


def read_group(
    engine: Engine,
    layer: Any,
    order: InteractionOrder,
    place: int,
    number: int,
    unit: float,
    size: float = 1.0,
) -> FactorGroup | None:
    """A group as a model has it, without the factors that were switched off; None where all were.

    Args:
        engine: of the fit.
        layer: the posterior of the model.
        order: of the engine's.
        place: of the same order in the posterior.
        number: of the group.
        unit: logarithm of the unit of precisions.
        size: what factors are multiplied with.
    """
    slots = np.array(order.factors_of(number))
    smoothing = np.asarray(layer.factor_smoothing[place])[:, slots]
    kept = np.isfinite(smoothing).any(axis=(0, 2))
    if not kept.any():
        return None
    slots, parameters = slots[kept], logarithms(smoothing[:, kept], unit)
    means, edf = (np.asarray(own[place])[:, slots] for own in (layer.factor_means, layer.factor_edf))
    pair = find_surface(order, means, edf)
    if pair is not None:
        group = engine.make_surface(order, number, pair)
    else:
        group = engine.make_group(order, number)
        for factor in reversed(np.flatnonzero(~kept)):
            group = group.without(int(factor))
    first, second = triangle(len(slots))
    for j, own in enumerate(group.blocks):
        if group.is_surface and not own.is_updated:
            continue
        block, columns = own.whole(), _own_columns(own.factor_smoothing)
        bands = size**2 * layer.band(place, j, slots)[first, second]
        known = replace(
            block.with_factor_smoothing(parameters[j][:, columns]),
            mean=size * means[j, :, : block.width].reshape(-1),
            spread=KeptSpread(np.ascontiguousarray(bands.transpose(1, 2, 0)), block.edf),
        )
        group = group.with_block(j, known)
    return group
