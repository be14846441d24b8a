"""Rows that a page shows and measures the model on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ahofm_keras.bases import locate_levels
from ahofm_keras.decomposition.parts import Parts
from ahofm_keras.draws import generator
from ahofm_keras.model import AdditiveModel
from ahofm_keras.model.reading import read_response
from ahofm_keras.reporting.encoding import pack
from ahofm_keras.reporting.inputs import input_names, levels_of


@dataclass(frozen=True, eq=False)
class KnownRows:
    """Rows with their response.

    Args:
        columns: raw columns of the model.
        y: response.
        weight: of each row, or None.
        given: whether the user gave them; else they are those of the fit.
    """

    columns: Mapping[str, np.ndarray]
    y: np.ndarray
    weight: np.ndarray | None
    given: bool

    def __len__(self) -> int:
        return len(self.y)


def find_known_rows(model: AdditiveModel, data: Any) -> KnownRows | None:
    """The rows given, else those that the model remembers of its fit, else None."""
    if model.family.nuisance:
        return None  # a censored response has no residual
    if data is not None:
        columns = model.read_inputs(data)
        y = read_response(data, model.response, model.family)
        return KnownRows(columns, *model.family.as_weighted(y, None), True)
    if model.sample is None:
        return None
    return KnownRows(model.sample.columns, model.sample.y, model.sample.weight, False)


def describe_sample(parts: Parts, rows: KnownRows, mean: np.ndarray, most: int) -> dict[str, Any] | None:
    """Some rows for the page to draw: raw columns in the order of the inputs (levels by their index),
    response, fitted mean and residual of the link.

    Args:
        parts: of the model.
        rows: known.
        mean: fitted, of each row.
        most: how many at most; with 0 no row enters the page.
    """
    model = parts.model
    indices = {
        name: locate_levels(levels, rows.columns[name])
        for name in model.design.columns
        if (levels := levels_of(parts, name))
    }
    # A level that the model does not know has no place on an axis.
    counted = np.ones(len(rows), bool) if rows.weight is None else rows.weight > 0
    known = [counted, *(index >= 0 for index in indices.values())]
    usable = np.flatnonzero(np.all(known, axis=0))
    if not most or not len(usable):
        return None
    if len(usable) > most:
        usable = np.sort(generator(0, "rows of a page").choice(usable, most, replace=False))
    slope = model.family.slope(mean[usable])
    residual = (rows.y[usable] - mean[usable]) / np.where(slope > 0, slope, 1.0)
    return {
        "columns": [
            pack(indices[name][usable], "i4") if name in indices else pack(rows.columns[name][usable])
            for name in input_names(parts)
        ],
        "y": pack(rows.y[usable]),
        "mean": pack(mean[usable], "f4"),
        "residual": pack(residual, "f4"),
        "given": rows.given,
    }
