"""Terms of a fitted model -> sums of products of functions of single variables."""

from __future__ import annotations

import numpy as np

from ahofm_keras.model import AdditiveModel
from ahofm_keras.terms import Group, GroupReader, Variable


def places_by_start(model: AdditiveModel, group: Group) -> list[np.ndarray]:
    """Which of a group's factors have covariances in common: those of one start of an average."""
    everything = np.arange(len(group.scale))
    layout = model.design.layout.only
    if group.source not in layout.order_index:
        return [everything]
    start = group.kept // layout.orders[layout.order_index[group.source]].rank
    return [everything[start == own] for own in np.unique(start)]


def read_groups(model: AdditiveModel, variables: list[Variable]) -> tuple[float, list[Group]]:
    """The link without the offset: a constant, and groups that add up to the rest."""
    reader = GroupReader(model, variables)
    for term in model.design.only.terms:
        term.add_groups(reader)
    return reader.constant, reader.groups
