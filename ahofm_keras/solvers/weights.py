"""Between the blocks of a solver and the weights of a model's layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ahofm_keras.solvers.blocks import FactorGroup, LinearBlock
from ahofm_keras.solvers.engine import Engine


def write_weights(model: Any, engine: Engine) -> None:
    """Means of the blocks -> weights of the model."""
    mean, layout = engine.linear.mean, engine.design.layout.only
    if layout.intercept:
        model.predictor.bias.assign(mean[0])
    for span in layout.spans:
        layer = model.get_layer(span.term.name)
        layer.assign_coordinates(span.block.shaped(mean[span.where]))
    groups = {group.key: group for group in engine.groups}
    for order in layout.orders:
        layer = model.get_layer(order.name)
        values = np.zeros(layer.coordinates(order.index).shape)
        if order.key in groups:
            _fill(values, groups[order.key])
        layer.assign_coordinates(order.index, values)


def _fill(values: np.ndarray, group: FactorGroup) -> None:
    for j, block in enumerate(group.blocks):
        for factor, column in zip(block.factors, group.kept, strict=True):
            values[j, : block.width, column] = factor


def read_weights(model: Any, engine: Engine) -> None:
    """Weights of the model -> means of the blocks."""
    read_linear_weights(model, engine.linear)
    for group in engine.groups:
        values = model.get_layer(group.factors.name).coordinates(group.factors.index)
        for j, own in enumerate(group.blocks):
            own.mean = values[j, : own.width, : group.rank].T.astype(float).reshape(-1)
    engine.rebuild()


def read_linear_weights(model: Any, block: LinearBlock) -> None:
    """Intercept, linear terms, smooths and tensor products of the model -> mean of the linear block."""
    layout = model.design.layout.only
    intercept = [np.reshape(np.asarray(model.predictor.bias), 1)] if layout.intercept else []
    rest = [s.block.flatten(model.get_layer(s.term.name).coordinates()) for s in layout.spans]
    block.mean = np.concatenate([np.zeros(0), *intercept, *rest]).astype(float)
