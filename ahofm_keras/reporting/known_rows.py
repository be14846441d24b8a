"""Rows that a page shows and measures the model on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ahofm_keras.bases import locate_levels
from ahofm_keras.decomposition.parts import Parts, predictors_of
from ahofm_keras.decomposition.read_rows import functions_on, opaque_on
from ahofm_keras.draws import generator
from ahofm_keras.families.baseline import EVENT, STOP
from ahofm_keras.model import AdditiveModel
from ahofm_keras.model.reading import read_response
from ahofm_keras.reporting.encoding import Packed, pack
from ahofm_keras.reporting.inputs import input_names, levels_of

# Rows whose functions are in memory at once.
_CHUNK = 4096


@dataclass(frozen=True, eq=False)
class KnownRows:
    """Rows with their response.

    Args:
        columns: raw columns of the model.
        y: response.
        weight: of each row, or None.
        given: whether the user gave them; else they are those of the fit.
        links: all predictors, by parameter of the family.
        mean: fitted response; of classes their probabilities `(n, K)`.
    """

    columns: Mapping[str, np.ndarray]
    y: np.ndarray
    weight: np.ndarray | None
    given: bool
    links: dict[str, np.ndarray]
    mean: np.ndarray

    def __len__(self) -> int:
        return len(self.y)


def find_known_rows(model: AdditiveModel, data: Any) -> KnownRows | None:
    """The rows given, else those that the model remembers of its fit, else None.

    Args:
        model: whole.
        data: rows with their response, or None.
    """
    if data is not None:
        columns = model.read_inputs(data)
        y = read_response(data, model.response, model.family)
        y, weight = model.family.as_weighted(y, None)
        return _fitted(model, columns, y, weight, True)
    if model.sample is None:
        return None
    return _fitted(model, model.sample.columns, model.sample.y, model.sample.weight, False)


def _fitted(
    model: AdditiveModel,
    columns: Mapping[str, np.ndarray],
    y: np.ndarray,
    weight: np.ndarray | None,
    given: bool,
) -> KnownRows:
    """Rows with their fit, in NumPy: a graph would take longer to compile than this to run."""
    every = [Parts(view) for view in predictors_of(model)]
    pieces: dict[str, list[np.ndarray]] = {name: [] for name in model.design.predictors}
    for start in range(0, len(y), _CHUNK):
        own = {name: values[start : start + _CHUNK] for name, values in columns.items()}
        functions = functions_on(every[0], own)
        for parts, (name, predictor) in zip(every, model.design.predictors.items(), strict=True):
            link = parts.link(functions) + predictor.offset(own)
            pieces[name].append(link + sum(opaque_on(parts, own).values(), 0.0))
    links = {name: np.concatenate(found) for name, found in pieces.items()}
    parameters = model.family.inverse_links(links)
    # A family with one parameter has the mean for it, and need not know its distribution.
    if model.family.several_classes:
        mean = model.family.probabilities(parameters)
    elif len(parameters) == 1:
        mean = next(iter(parameters.values()))
    else:
        mean = model.family.mean_of(parameters)
    mean = np.asarray(mean)
    return KnownRows(columns, y, weight, given, links, mean)


def describe_sample(every: Sequence[Parts], rows: KnownRows, most: int) -> dict[str, Any] | None:
    """Some rows for the page to draw: raw columns in the order of the inputs (levels by their index),
    response, fitted mean and working residuals of each predictor.

    Args:
        every: parts of each predictor.
        rows: known.
        most: how many at most; with 0 no row enters the page.
    """
    parts = every[0]
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
    shown, whole = rows.y[usable], model.whole()
    # A censored time has neither a residual nor a mean to stand beside.
    plain = not whole.family.nuisance
    return {
        "columns": [
            pack(indices[name][usable], "i4") if name in indices else pack(rows.columns[name][usable])
            for name in input_names(parts)
        ],
        "y": pack(shown if plain else shown[:, STOP]),
        "events": None if plain else pack(shown[:, EVENT], "i4"),
        "mean": pack(rows.mean[usable], "f4") if plain and not whole.family.several_classes else None,
        "residuals": _residuals(every, rows, usable) if plain else None,
        "given": rows.given,
    }


def _residuals(every: Sequence[Parts], rows: KnownRows, usable: np.ndarray) -> list[Packed]:
    """Working residuals of each predictor."""
    names = [next(iter(own.model.design.predictors)) for own in every]
    etas = {name: link[usable] for name, link in rows.links.items()}
    working = every[0].model.whole().family.working(rows.y[usable], etas)
    return [pack(working[name][1] - etas[name], "f4") for name in names]
