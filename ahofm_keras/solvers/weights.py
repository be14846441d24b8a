"""Between the blocks of a solver and the weights of a model's layers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ahofm_keras.solvers.blocks import LinearBlock
from ahofm_keras.solvers.groups import FactorGroup
from ahofm_keras.solvers.state import State


def write_weights(model: Any, state: State) -> None:
    """Means of the blocks -> weights of the model."""
    mean, layout = state.linear.mean, model.design.layout.only
    if layout.intercept:
        model.predictor.bias.assign(mean[0])
    for span in layout.spans:
        layer = model.get_layer(span.term.name)
        layer.assign_coordinates(span.block.shaped(mean[span.where]))
    for order in layout.orders:
        layer = model.get_layer(order.name)
        values = np.zeros(layer.coordinates(order.index).shape)
        for group in state.groups_of(order.key):
            _fill(values, group)
        layer.assign_coordinates(order.index, values)


def _fill(values: np.ndarray, group: FactorGroup) -> None:
    for j, block in enumerate(group.blocks):
        for factor, column in zip(block.factors, group.kept, strict=True):
            values[j, : block.width, column] = factor


def read_weights(model: Any, state: State) -> State:
    """Weights of the model -> means of the blocks."""
    state = replace(state, linear=read_linear_weights(model, state.linear))
    for index, group in enumerate(state.groups):
        values = model.get_layer(group.factors.name).coordinates(group.factors.index)
        for j, own in enumerate(block.whole() for block in group.blocks):
            mean = values[j, : own.width, list(group.kept)].astype(float).reshape(-1)
            state = state.with_factors(index, j, replace(own, mean=mean))
    return state


def read_linear_weights(model: Any, block: LinearBlock) -> LinearBlock:
    """Intercept, linear terms, smooths and tensor products of the model -> mean of the linear block."""
    layout = model.design.layout.only
    intercept = [np.reshape(np.asarray(model.predictor.bias), 1)] if layout.intercept else []
    rest = [s.block.flatten(model.get_layer(s.term.name).coordinates()) for s in layout.spans]
    return replace(block, mean=np.concatenate([np.zeros(0), *intercept, *rest]).astype(float))
