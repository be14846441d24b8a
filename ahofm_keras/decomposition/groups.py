"""Terms of a fitted model -> sums of products of functions of single variables."""

from __future__ import annotations

import numpy as np

from ahofm_keras.model import AdditiveModel
from ahofm_keras.terms import Group, GroupReader, Variable
from ahofm_keras.terms.groups import Opaque


def places_by_group(model: AdditiveModel, group: Group) -> list[np.ndarray]:
    """Which factors of an order covary: those of one group of the posterior, e.g. of one start."""
    everything = np.arange(len(group.scale))
    layout = model.design.layout.only
    if group.source not in layout.order_index:
        return [everything]
    number = group.kept // layout.orders[layout.order_index[group.source]].rank
    return [everything[number == own] for own in np.unique(number)]


def read_groups(
    model: AdditiveModel, variables: list[Variable]
) -> tuple[float, list[Group], list[Opaque]]:
    """The link without the offset: a constant, and groups and opaque terms that add up to the rest."""
    reader = GroupReader(model, variables)
    for term in model.design.only.terms:
        term.add_groups(reader)
    return reader.constant, reader.groups, reader.opaque
