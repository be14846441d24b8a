"""Response and weights beside the data, and columns that hold the response: what is told."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.families import get_family
from ahofm_keras.model.beside import in_row_order, response_of
from ahofm_keras.transforms import Expression, column
from tests.model.careless import DATA, ROWS, without
from tests.model.short_fits import fit, new_model

GAUSSIAN = get_family("gaussian")
LABELS = [f"row {number}" for number in range(ROWS)]
LABELLED = DATA.set_axis(LABELS)


def response(data: Any, y: Any, expression: Expression | None = None) -> np.ndarray:
    return response_of(data, y, expression or column("y"), GAUSSIAN)


@pytest.mark.parametrize("shuffled", [DATA.y.sample(frac=1, random_state=0), DATA.y[::-1]])
def test_a_response_in_another_order_is_put_in_that_of_the_rows(shuffled: pd.Series) -> None:
    with pytest.warns(ak.AhofmWarning, match=r"^`y` has the labels of the data in another order"):
        found = response(without("y"), shuffled)
    np.testing.assert_array_equal(found, DATA.y)


def test_rows_in_another_order_than_the_response() -> None:
    rows = without("y").sample(frac=1, random_state=0)
    with pytest.warns(ak.AhofmWarning, match="in another order"):
        found = response(rows, DATA.y)
    np.testing.assert_array_equal(found, DATA.y[rows.index])


def test_other_labels_are_told() -> None:
    other = LABELLED.y.set_axis([f"line {number}" for number in range(ROWS)])
    with pytest.warns(ak.AhofmWarning, match=r"other labels .*'line 0' and 'row 0'.* row by row"):
        found = response(LABELLED.drop(columns="y"), other)
    np.testing.assert_array_equal(found, DATA.y)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("data", "y"),
    [
        (DATA, DATA.y),
        (LABELLED, LABELLED.y),
        (LABELLED, DATA.y),
        (DATA, LABELLED.y),
        (DATA[::-1], DATA.y[::-1]),
        (LABELLED[::-1], LABELLED.y.to_numpy()[::-1]),
        (DATA.to_dict("list"), LABELLED.y),
        (DATA, DATA[["y"]]),
    ],
    ids=["equal", "labels", "counted y", "counted rows", "both turned", "array", "dict", "frame"],
)
def test_what_says_nothing_of_the_order_is_taken_row_by_row(data: Any, y: Any) -> None:
    np.testing.assert_array_equal(response(data, y), np.asarray(y).reshape(-1))


def test_a_fit_says_it_once_and_uses_the_right_rows() -> None:
    shuffled = DATA.y.sample(frac=1, random_state=0)
    weight = pd.Series(np.linspace(1, 2, ROWS)).sample(frac=1, random_state=1)
    model, right = (new_model(DATA, "y ~ s(x1, k=6) + x2") for _ in range(2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(model, without("y"), shuffled, sample_weight=weight, solver="bcd", epochs=3)
    told = [str(w.message).partition(" has the labels")[0] for w in caught]
    assert told == ["`y`", "`sample_weight`"]
    fit(right, DATA, sample_weight=np.linspace(1, 2, ROWS), solver="bcd", epochs=3)
    np.testing.assert_allclose(model.predict(DATA), right.predict(DATA), rtol=1e-6)
    np.testing.assert_array_equal(model.sample.y, right.sample.y)
    np.testing.assert_array_equal(model.sample.weight, right.sample.weight)


def test_what_has_no_labels_is_left_as_it_is() -> None:
    assert in_row_order(DATA, None, "sample_weight") is None
    assert in_row_order(DATA, "x1", "sample_weight") == "x1"


def test_a_response_that_the_data_has_otherwise_is_told() -> None:
    other = DATA.y.copy()
    other[3:5] += 1
    with pytest.warns(ak.AhofmWarning) as caught:
        found = response(DATA, other)
    assert str(caught[0].message) == (
        "`y` is used as the response; `y` of the data says another one in 2 of 60 rows. "
        "Leave `y` out to use the data's own."
    )
    np.testing.assert_array_equal(found, other)


def test_a_response_on_another_scale_than_the_formula_is_told() -> None:
    data = DATA.assign(y=np.exp(DATA.y))
    logarithm = Expression("log", (column("y"),))
    with pytest.warns(ak.AhofmWarning, match=r"taken to be on the scale of `log\(y\)`"):
        response(data, data.y, logarithm)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        response(data, np.log(data.y), logarithm)


def test_a_response_column_that_cannot_be_read_is_told_too() -> None:
    with pytest.warns(ak.AhofmWarning, match="says another one in 60 of 60 rows"):
        response(DATA.assign(y=np.nan), DATA.y)


def test_a_name_in_the_place_of_the_response_is_told() -> None:
    with pytest.raises(ak.DataError, match=r"Received: 'y'\. Leave it out to use `y` of the data"):
        response(DATA, "y")


COPIES = {
    "the same": DATA.y,
    "other units": 32 + 1.8 * DATA.y,
    "turned round": -DATA.y,
    "single precision of a code": DATA.b.astype("float32"),
    "booleans": DATA.b == 1,
    "words": DATA.b.map({0: "no", 1: "yes"}),
    "words for counts": DATA.c.map({0: "none", 1: "one", 2: "two", 3: "more"}),
}


@pytest.mark.parametrize("case", COPIES)
def test_a_column_that_is_the_response_is_told(case: str) -> None:
    name = {"booleans": "b", "words": "b", "single precision of a code": "b", "words for counts": "c"}
    family = {"b": "bernoulli", "c": "poisson"}.get(name.get(case, "y"), "gaussian")
    data = DATA[["x1", name.get(case, "y")]].assign(**{"a copy": COPIES[case]})
    response = name.get(case, "y")
    with pytest.warns(ak.AhofmWarning) as caught:
        ak.AdditiveModel(f"{response} ~ .", data, family=family)
    (told,) = [str(w.message) for w in caught]
    assert told == (
        f"Column `a copy` tells the response `{response}` exactly, in every row: where that is not known "
        'beforehand, leave it out: end the formula with `- Q("a copy")`.'
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ak.AdditiveModel(f'{response} ~ . - Q("a copy")', data, family=family)
    assert list(model.design.columns) == ["x1"]


@pytest.mark.filterwarnings("error")
def test_an_event_that_all_rows_have_is_told_by_nothing() -> None:
    data = DATA[["x1"]].assign(time=np.exp(DATA.y), event=1)
    ak.AdditiveModel("Surv(time, event) ~ x1", data, family="cox")


def test_a_copy_of_a_transformed_response_is_told() -> None:
    data = DATA.assign(y=np.exp(DATA.y), copy=np.exp(DATA.y))
    with pytest.warns(ak.AhofmWarning, match=r"Column `copy` tells the response `y` exactly.* out\.$"):
        ak.AdditiveModel("log(y) ~ s(x1) + copy", data)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "values",
    [
        DATA.y + 1e-6 * DATA.x2,
        DATA.y.round(6),
        pd.Series(LABELS),
        DATA.y.astype(str) + "m",
        DATA.y.gt(0).map({True: "high", False: "low"}),
    ],
    ids=["nearly", "rounded", "names", "a level a row", "coarse"],
)
def test_what_is_not_the_response_is_not_told(values: pd.Series) -> None:
    ak.AdditiveModel("y ~ x1 + s(other)", DATA[["x1", "y"]].assign(other=values))


OFFSET = "c ~ s(.) - g - f - x2 - y - b + offset(log(e))"


def test_an_offset_that_a_dot_takes_as_a_feature_is_told() -> None:
    with pytest.warns(ak.AhofmWarning) as caught:
        model = ak.AdditiveModel(OFFSET, DATA, family="poisson")
    assert str(caught[0].message) == (
        "`.` takes `e` as a feature too, beside `offset(log(e))`. End the formula with `- e` to leave it "
        "out of `.`; the offset stays."
    )
    assert "s(e)" in [term.label for term in model.design.terms]


@pytest.mark.filterwarnings("error")
def test_the_advice_on_offsets_does_it() -> None:
    model = ak.AdditiveModel(f"{OFFSET} - e", DATA, family="poisson")
    assert [term.label for term in model.design.terms] == ["s(x1)", "offset(log(e))"]
    interacting = "c ~ ahofm(.) - g - f - y - b + offset(log(e)) - e"
    model = ak.AdditiveModel(interacting, DATA, family="poisson")
    assert [term.label for term in model.design.terms][-2:] == ["ahofm(x1, x2)", "offset(log(e))"]
    # Who writes the feature means it.
    ak.AdditiveModel("c ~ s(e) + offset(log(e))", DATA, family="poisson")
