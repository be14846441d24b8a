"""`tf.data` that does not fit the model is refused, before the first batch or at the batch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import ahofm_keras as ak
from tests.model.careless import DATA, ROWS, evaluate, fit, predict, with_random_weights


def dataset(response: np.ndarray | None = None, **changes: Any) -> tf.data.Dataset:
    columns = {n: DATA[n].to_numpy() for n in ("x1", "x2", "f")} | {"g": DATA.g.to_numpy().astype(str)}
    columns = {name: values for name, values in (columns | changes).items() if values is not None}
    return tf.data.Dataset.from_tensor_slices(columns if response is None else (columns, response))


Y = DATA.y.to_numpy()
HOLED = np.where(np.arange(ROWS) == 3, np.nan, DATA.x1)

DATASETS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "predict: missing": (predict(dataset(x1=None).batch(20)), "`x1` is missing"),
    "fit: missing": (fit(dataset(Y, x1=None).batch(20)), "`x1` is missing"),
    "predict: text for a number": (predict(dataset(x1=DATA.g.to_numpy().astype(str)).batch(20)), "`x1`"),
    "predict: number for a text": (predict(dataset(g=DATA.x1.to_numpy()).batch(20)), "`g`"),
    "predict: not batched": (predict(dataset()), "batch"),
    "fit: not batched": (fit(dataset(Y)), "batch"),
    "predict: no dict": (predict(tf.data.Dataset.from_tensor_slices(np.ones((6, 4))).batch(2)), "dict"),
    "predict: two dimensions": (predict(dataset(x1=DATA[["x1"]].to_numpy()).batch(20)), "`x1`"),
    "predict: empty": (predict(dataset().batch(20).take(0)), "no (rows|batches)"),
    "predict: empty, link": (predict(dataset().batch(20).take(0), type="link"), "no (rows|batches)"),
    "fit: empty": (fit(dataset(Y).batch(20).take(0)), "no (rows|batches)"),
    "fit: no response": (fit(dataset().batch(20)), "response"),
    "fit: response beside a dataset": (fit(dataset(Y).batch(20), Y), "`y`"),
    "fit: weights beside a dataset": (fit(dataset(Y).batch(20), sample_weight=np.ones(ROWS)), "sample_weight"),
    "evaluate: weights beside a dataset": (evaluate(dataset(Y).batch(20), model="mixed", sample_weight=np.ones(ROWS)), "sample_weight"),
    "fit: validation_split": (fit(dataset(Y).batch(20), validation_split=0.2), "^`validation_split` needs data in memory; give a dataset as `validation_data`.$"),
    "fit: texts as response": (fit(dataset(DATA.g.to_numpy().astype(str)).batch(20)), "response"),
}  # fmt: skip


@pytest.mark.parametrize("case", DATASETS)
def test_refused_datasets(case: str, models: SimpleNamespace) -> None:
    action, message = DATASETS[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ak.DataError, match=message):
            action(models)


@pytest.mark.parametrize(
    ("response", "changes"),
    [(Y, {"x1": HOLED}), (np.where(np.arange(ROWS) == 3, np.nan, Y), {})],
    ids=["feature", "response"],
)
def test_nan_in_a_dataset_does_not_destroy_the_weights(response: np.ndarray, changes: Any) -> None:
    model = with_random_weights(ak.AdditiveModel("y ~ s(x1, k=6) + g + f + x2", DATA))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ak.AhofmWarning)
            model.fit(dataset(response, **changes).batch(20), epochs=1, verbose=0)
    except ak.DataError:
        pass
    assert all(np.isfinite(weight).all() for weight in model.get_weights())


def test_responses_of_a_dataset_are_held_to_the_family(models: SimpleNamespace) -> None:
    data = tf.data.Dataset.from_tensor_slices(({"x1": DATA.x1.to_numpy()}, DATA.b.to_numpy() + 1.0))
    with pytest.raises(ak.DataError, match="0 or 1"):
        models.labels.evaluate(data.batch(20))


def test_strict_range_holds_for_datasets(models: SimpleNamespace) -> None:
    data = tf.data.Dataset.from_tensor_slices({"x1": [0.5, 1.5]}).batch(2)
    with pytest.raises(ak.DataError, match="outside the training range"):
        models.strict.predict(data)
