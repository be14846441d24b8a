"""What a model learns of its response in its first fit, where it was made from data without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from ahofm_keras.errors import DataError
from ahofm_keras.model.formulas import read_formulas
from ahofm_keras.model.learning import learn_units, warn_of_repeats, warn_of_response
from ahofm_keras.model.reading import check_response_range, learn_response
from ahofm_keras.model.row_reader import RowReader
from ahofm_keras.solvers.job import Rows
from ahofm_keras.terms.encoded import OFFSET
from ahofm_keras.transforms import is_learned

# Rows of a dataset that shift and scale are learned from: it may have no end.
_ROWS_OF_A_DATASET = 65_536


def learn_expression_of_response(model: Any, reader: RowReader, request: Any) -> None:
    """Learn what the response's expression, such as `center(y)`, takes from the training data."""
    from_data = request.y is None and not isinstance(request.x, tf.data.Dataset)
    if from_data and not is_learned(reader.response):
        reader.response, _ = learn_response(request.x, reader.response, model.family)


def learn_units_of_response(model: Any, rows: Rows | tf.data.Dataset, request: Any) -> None:
    """Learn shift and scale, as they would be at construction."""
    if isinstance(rows, Rows):
        y, offset = rows.y, rows.encoded.offset if model.design.first.offsets else 0.0
        check_response_range(y, str(model.response), model.family)
        formulas = read_formulas(model.formula, model.family)[1]
        for formula in formulas.values():
            warn_of_response(formula, request.x, model.response, y, model.family)
        warn_of_repeats(formulas, model.response, y, model.family)
    else:
        y, offset = _first_rows(model, rows)
        check_response_range(y, str(model.response), model.family)
    units = learn_units(y, offset, model.family, model.design)
    for name, (shift, scale) in units.items():
        model.predictors[name].shift.assign(shift)
        model.predictors[name].scale.assign(scale)
    if len(units) == 1:
        unit = model.family.dispersion_unit(model.shift, model.scale)
        model.predictor.dispersion_unit.assign(unit)


def _first_rows(model: Any, batches: tf.data.Dataset) -> tuple[np.ndarray, Any]:
    """Response and offset of the first rows of a dataset."""
    responses, offsets, rows = [], [], 0
    for encoded, y, *_ in batches:
        y = np.asarray(y, float)
        responses.append(y if model.response.width > 1 else y.reshape(-1))
        rows += len(responses[-1])
        named = dict(zip(model.encoded_names, encoded, strict=True))
        offsets.append(np.asarray(named.get(OFFSET, np.zeros(len(responses[-1]))), float))
        if rows >= _ROWS_OF_A_DATASET:
            break
    if not rows:
        raise DataError("The dataset has no batches.")
    offset = np.concatenate(offsets) if model.design.first.offsets else 0.0
    return np.concatenate(responses), offset
