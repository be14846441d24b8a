"""Between the blocks of a solver and the weights of a model's layers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ahofm_keras.solvers.blocks import FactorGroup, LinearBlock
from ahofm_keras.solvers.state import State
from ahofm_keras.tensors import flatten_coordinates
from ahofm_keras.terms import InteractionTerm, LinearTerm


def write_weights(model: Any, state: State) -> None:
    """Means of the blocks -> weights of the model."""
    block, design, columns = state.linear, model.design, state.linear.columns
    if columns.intercept:
        model.predictor.bias.assign(block.mean[0])
    start = columns.intercept
    for term in design.of_kind(LinearTerm):
        stop = start + len(term.columns)
        model.get_layer(term.name).kernel.assign(block.mean[start:stop])
        start = stop
    for products, own in zip(columns.terms, columns.slices, strict=True):
        layer = model.get_layer(products.term.name)
        layer.assign_coordinates(products.shaped(block.mean[own]))
    for interaction in design.of_kind(InteractionTerm):
        layer = model.get_layer(interaction.name)
        for index in range(len(interaction.orders)):
            values = np.zeros(layer.factors[index].shape)
            group = state.group((interaction.name, index))
            if group is not None:
                _fill(values, group)
            layer.assign_coordinates(index, values)


def _fill(values: np.ndarray, group: FactorGroup) -> None:
    for j, block in enumerate(group.blocks):
        for factor, column in zip(block.factors, group.kept, strict=True):
            values[j, : block.width, column] = factor


def read_weights(model: Any, state: State) -> State:
    """Weights of the model -> means of the blocks."""
    state = replace(state, linear=read_linear_weights(model, state.linear))
    for index, group in enumerate(state.groups):
        values = model.get_layer(group.term.name).coordinates(group.index)
        for j, own in enumerate(group.blocks):
            mean = values[j, : own.width].T.astype(float).reshape(-1)
            state = state.with_factors(index, j, replace(own, mean=mean))
    return state


def read_linear_weights(model: Any, block: LinearBlock) -> LinearBlock:
    """Intercept, linear terms, smooths and tensor products of the model -> mean of the linear block."""
    flat = [np.asarray(model.get_layer(t.name).kernel) for t in model.design.of_kind(LinearTerm)]
    if block.columns.intercept:
        flat.insert(0, np.reshape(np.asarray(model.predictor.bias), 1))
    penalised = [
        flatten_coordinates(model.get_layer(term.name).coordinates(), term.pure)
        for term in model.design.penalised()
    ]
    mean = np.concatenate([np.zeros(0), *flat, *penalised]).astype(float)
    return replace(block, mean=mean)
