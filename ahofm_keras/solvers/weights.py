"""Between the blocks of a solver and the weights of a model's layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ahofm_keras.solvers.blocks import FactorGroup, LinearBlock
from ahofm_keras.solvers.engine import Engine
from ahofm_keras.tensors import flatten_coordinates
from ahofm_keras.terms import InteractionTerm, LinearTerm


def write_weights(model: Any, engine: Engine) -> None:
    """Means of the blocks -> weights of the model."""
    block, design = engine.linear, engine.design
    if block.intercept:
        model.predictor.bias.assign(block.mean[0])
    start = block.intercept
    for term in design.of_kind(LinearTerm):
        stop = start + len(term.columns)
        model.get_layer(term.name).kernel.assign(block.mean[start:stop])
        start = stop
    for products, own in zip(block.terms, block.slices, strict=True):
        layer = model.get_layer(products.term.name)
        layer.assign_coordinates(products.shaped(block.mean[own]))
    groups = {(group.term.name, group.place): group for group in engine.groups}
    for interaction in design.of_kind(InteractionTerm):
        layer = model.get_layer(interaction.name)
        for place in range(len(interaction.orders)):
            values = np.zeros(layer.coordinates(place).shape)
            group = groups.get((interaction.name, place))
            if group is not None:
                _fill(values, group)
            layer.assign_coordinates(place, values)


def _fill(values: np.ndarray, group: FactorGroup) -> None:
    for j, block in enumerate(group.blocks):
        for factor, column in zip(block.factors, group.kept, strict=True):
            values[j, : block.width, column] = factor


def read_weights(model: Any, engine: Engine) -> None:
    """Weights of the model -> means of the blocks."""
    read_linear_weights(model, engine.linear)
    for group in engine.groups:
        values = model.get_layer(group.term.name).coordinates(group.place)
        for j, own in enumerate(group.blocks):
            own.mean = values[j, : own.width, : group.rank].T.astype(float).reshape(-1)
    engine.rebuild()


def read_linear_weights(model: Any, block: LinearBlock) -> None:
    """Intercept, linear terms, smooths and tensor products of the model -> mean of the linear block."""
    flat = [np.asarray(model.get_layer(t.name).kernel) for t in model.design.of_kind(LinearTerm)]
    if block.intercept:
        flat.insert(0, np.reshape(np.asarray(model.predictor.bias), 1))
    penalised = [
        flatten_coordinates(model.get_layer(term.name).coordinates(), term.pure)
        for term in model.design.penalised()
    ]
    block.mean = np.concatenate([np.zeros(0), *flat, *penalised]).astype(float)
