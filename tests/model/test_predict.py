"""Predictions: types, rows, units, digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import ahofm_keras as ak
from ahofm_keras.model import outputs
from tests.model.careless import with_random_weights


def test_terms_sum_to_the_link(fitted: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    terms = fitted.predict(frame, type="terms")
    link = fitted.predict(frame, type="link")
    total = terms.sum(axis=1) + fitted.intercept + np.log(frame.exposure)
    np.testing.assert_allclose(total, link, rtol=1e-5, atol=1e-5 * np.abs(link).max())
    assert terms.attrs["intercept"] == fitted.intercept
    assert list(terms.columns) == [
        "group",
        "x3",
        "s(hour)",
        "s(x1)",
        "s(x2)",
        "s(flag)",
        "ahofm(x1, x2, group, flag)[2]",
        "ahofm(x1, x2, group, flag)[3]",
        "(limit)",
    ]


def test_response_is_the_inverse_link(fitted: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    link = fitted.predict(frame, type="link")
    expected = fitted.family.inverse_link(link, np)
    np.testing.assert_allclose(fitted.predict(frame), expected, rtol=1e-5)


def test_frame_keeps_its_index(fitted: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    part = frame.iloc[[7, 3]].set_axis(["p", "q"])
    assert fitted.predict(part, type="terms").index.tolist() == ["p", "q"]


def test_one_row_from_scalars_and_broadcasting(fitted: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    row = frame.iloc[5].to_dict()
    expected = fitted.predict(frame.iloc[[5]])
    np.testing.assert_allclose(fitted.predict(row), expected, rtol=1e-6)
    grid = row | {"x1": np.array([0.2, 0.4, 0.6])}
    assert fitted.predict(grid).shape == (3,)


def test_columns_in_any_order_with_others_beside(fitted: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    shuffled = frame[frame.columns[::-1]].assign(unused="text")
    np.testing.assert_array_equal(fitted.predict(shuffled), fitted.predict(frame))


@pytest.mark.parametrize(
    "dtype", ["float32", "Float64", "object", "string_category"], ids=lambda value: value
)
def test_other_types_of_columns(fitted: ak.AdditiveModel, frame: pd.DataFrame, dtype: str) -> None:
    other = frame.copy()
    numbers = ["x1", "x2", "x3", "hour", "exposure"]
    if dtype == "string_category":
        other["group"] = other.group.astype("category")
        other["flag"] = other.flag.astype("boolean")
    else:
        other[numbers] = other[numbers].astype(dtype)
    # float32 moves the largest value a little beyond the training range.
    inside = other.iloc[frame[numbers].rank(method="first").to_numpy().min(axis=1) > 1]
    inside = inside.loc[(frame[numbers].rank(ascending=False) > 1).all(axis=1)]
    np.testing.assert_allclose(
        fitted.predict(inside), fitted.predict(frame.loc[inside.index]), rtol=1e-4
    )


def test_integers_booleans_and_nullable_integers_train_alike(frame: pd.DataFrame) -> None:
    data = frame.assign(n=np.round(frame.x3).astype(int))
    expected = ak.AdditiveModel("gaussian ~ s(n)", data).get_config()["state"]
    for dtype in ("float64", "int16", "Int64", "object"):
        other = data.assign(n=data.n.astype(dtype))
        assert ak.AdditiveModel("gaussian ~ s(n)", other).get_config()["state"] == expected


def test_dataset_of_batches(fitted: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    columns = {name: frame[name].to_numpy() for name in fitted.design.columns}
    columns["group"] = columns["group"].astype(str)
    dataset = tf.data.Dataset.from_tensor_slices(columns).batch(64)
    for kind in ("response", "link"):
        np.testing.assert_allclose(
            fitted.predict(dataset, type=kind), fitted.predict(frame, type=kind), rtol=1e-5, atol=1e-6
        )


def test_batch_size_does_not_matter(fitted: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    np.testing.assert_allclose(fitted.predict(frame, batch_size=17), fitted.predict(frame), rtol=1e-5)


def test_keras_loop_predicts_the_same(
    fitted: ak.AdditiveModel, frame: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[int] = []
    count = keras.callbacks.LambdaCallback(on_predict_batch_end=lambda batch, logs: seen.append(batch))
    shown = fitted.predict(frame, batch_size=70, verbose=1, callbacks=[count])
    np.testing.assert_allclose(shown, fitted.predict(frame), rtol=1e-5)
    assert len(seen) == -(-len(frame) // 70)
    assert "step" in capsys.readouterr().out
    first = fitted.predict(frame, batch_size=70, steps=2)
    np.testing.assert_allclose(first, fitted.predict(frame)[:140], rtol=1e-6)


def test_any_number_of_rows_is_traced_once(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    model = with_random_weights(ak.AdditiveModel("gaussian ~ s(x1) + afm(x1, x2, F=2, k=5)", frame))
    traced: list[str] = []
    real = keras.Function
    monkeypatch.setattr(outputs.keras, "Function", lambda *graph: traces(real(*graph), traced))
    for rows in (1, 2, 7, 120):
        for kind in ("response", "link", "terms"):
            assert len(model.predict(frame.iloc[:rows], type=kind)) == rows
    assert len(traced) == 2  # one for mean and link, one for the terms


def traces(function: Callable[..., Any], traced: list[str]) -> Callable[..., Any]:
    def run(encoded: Any) -> Any:
        traced.append("traced")  # Python runs while a function is traced, and not when it is called
        return function(encoded)

    return run


def test_time_stamps_keep_their_digits() -> None:
    rng = np.random.default_rng(0)
    # Float32 has a step of 128 at this size: the whole range would be one value.
    stamps = 1.7e9 + rng.uniform(0, 60, 300)
    data = pd.DataFrame({"t": stamps, "y": np.sin(stamps - 1.7e9)})
    model = ak.AdditiveModel("y ~ s(t, k=12)", data)
    layer = model.get_layer("positions")
    places = np.asarray(layer({"t": tf.constant(stamps)}))[:, 0]
    assert len(np.unique(places)) == 300
    plain = data.assign(t=data.t - 1.7e9)
    other = ak.AdditiveModel("y ~ s(t, k=12)", plain).get_layer("positions")
    np.testing.assert_allclose(
        places, np.asarray(other({"t": tf.constant(plain.t)}))[:, 0], rtol=0, atol=1e-4
    )


def test_unknown_type(fitted: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    with pytest.raises(ak.DataError, match="`type` must be one of 'response', 'link', 'terms'"):
        fitted.predict(frame, type="means")


def test_boolean_in_a_formula_means_the_same_as_its_category(frame: pd.DataFrame) -> None:
    model = ak.AdditiveModel("gaussian ~ flag", frame)
    assert model.design.terms[0].coefficients == ("flag[True]",)


def test_terms_of_one_label_are_told_apart() -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({f"x{j}": rng.uniform(size=60) for j in range(9)})
    data["y"] = rng.normal(size=60)
    first = ", ".join(f"x{j}" for j in range(8))
    second = "x0, x1, x3, x4, x5, x6, x7"
    formula = f"y ~ afm({first}, main=False, k=5) + afm({second}, main=False, k=5)"
    model = with_random_weights(ak.AdditiveModel(formula, data))
    model.set_weights([0.1 * weight for weight in model.get_weights()])  # float32 has few digits
    terms = model.predict(data, type="terms")
    assert list(terms) == ["afm(x0, x1, ..., x7)[2]", "afm(x0, x1, ..., x7) #2[2]", "(limit)"]
    np.testing.assert_allclose(
        terms.sum(axis=1) + model.intercept, model.predict(data), rtol=0, atol=1e-5
    )
