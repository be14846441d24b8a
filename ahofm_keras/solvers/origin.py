"""Terms of another fitted model that a fit begins at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ahofm_keras.solvers.engine import Engine
from ahofm_keras.solvers.posterior import (
    logarithms,
    read_dispersion,
    read_group,
    with_covariances,
)
from ahofm_keras.solvers.state import State
from ahofm_keras.solvers.weights import read_linear_weights
from ahofm_keras.terms.layout import PredictorLayout


@dataclass(frozen=True)
class Origin:
    """Where a fit begins.

    Args:
        model: another one, fitted, of one predictor.
        terms: name of each term that is taken from it -> its name there.
    """

    model: Any
    terms: Mapping[str, str]

    def size_in(self, model: Any) -> float:
        """What a contribution inside it is multiplied with to be one inside another model."""
        return float(self.model.scale) / float(model.scale)


def take_weights(model: Any, origin: Origin) -> None:
    """Intercept and weights of the terms that are taken, in the units of the model."""
    here, there = model.design.layout.only, origin.model.design.layout.only
    size = origin.size_in(model)
    if here.intercept and there.intercept:
        model.predictor.bias.assign((origin.model.intercept - model.shift) / model.scale)
    for span in here.spans:
        if span.term.name in origin.terms:
            other = there.by_name[origin.terms[span.term.name]]
            known = other.block.flatten(origin.model.get_layer(other.term.name).coordinates())
            model.get_layer(span.term.name).assign_coordinates(span.block.shaped(size * known))
    for order in here.orders:
        if order.name in origin.terms:
            other = origin.model.get_layer(origin.terms[order.name])
            layer, place = model.get_layer(order.name), order.index
            used = max(other.in_use[place], layer.orders[place]["started"])
            factors = size ** (1 / order.order) * other.coordinates(place)[:, :, :used]
            layer.assign_coordinates(place, factors)


def begin_at(model: Any, engine: Engine, origin: Origin) -> State:
    """The state of a variational fit at weights that were taken, with smoothing and factors as there.

    Args:
        model: with the weights.
        engine: of the fit.
        origin: with a posterior; of interactions that of one fit, and all are taken.
    """
    layout, there = engine.design.layout.only, origin.model.design.layout.only
    layer, size = origin.model.posterior, origin.size_in(model)
    dispersion, unit = read_dispersion(engine, layer)
    if not engine.family.dispersion_known:
        dispersion *= size**2
    state = engine.start(groups=0)
    linear = read_linear_weights(model, state.linear)
    known, kept = linear.prior.smoothing(), logarithms(layer.linear_smoothing, unit)
    rows, other_rows = _smoothing_rows(layout), _smoothing_rows(there)
    for span in layout.penalised:
        name = span.term.name
        if span.block.fixed or name not in origin.terms:
            continue
        columns = [*range(len(span.block.penalties)), -1]
        for group in range(span.block.groups):
            number = layout.smoothing_index[rows[name] + group]
            known[number, columns] = kept[other_rows[origin.terms[name]] + group, columns]
    groups = []
    for order in layout.orders:
        place = there.order_index[origin.terms[order.name], order.index]
        factor = size ** (1 / order.order)
        own_unit = unit - 2 * np.log(size / factor)
        groups += [
            read_group(engine, layer, order, place, number, own_unit, factor)
            for number in range(order.groups)
        ]
    linear = replace(linear, prior=linear.prior.with_smoothing(known))
    found = tuple(group for group in groups if group is not None)
    return with_covariances(engine, State(dispersion, linear, found))


def _smoothing_rows(layout: PredictorLayout) -> dict[str, int]:
    """The first row of each term in what a model keeps of the smoothing of its linear block."""
    starts = np.cumsum([0, *(span.block.groups for span in layout.penalised)])
    return {span.term.name: int(start) for span, start in zip(layout.penalised, starts, strict=False)}
