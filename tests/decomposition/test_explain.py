"""`explain`: one prediction taken apart, its parts sum to the link."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.decomposition import Explanation, Parts, explain
from tests.decomposition.conftest import all_subsets, build, on_rows, random_model

FORMULA = "{family} ~ group + x3:group + s(hour) + ahofm(x1, x2, group, flag, D=3, F=2) + offset(log(exposure))"


@pytest.fixture(scope="module", params=["gaussian", "poisson"])
def model(request: pytest.FixtureRequest, frame: pd.DataFrame) -> ak.AdditiveModel:
    model = random_model(FORMULA.format(family=request.param), frame, request.param)
    if request.param == "poisson":
        for layer in model.fitted_layers():
            for weight in layer.trainable_weights:
                weight.assign(0.3 * weight)
    return model


@pytest.mark.filterwarnings("ignore:Levels not seen")
def test_parts_sum_to_link_and_response(model: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    """Also at a level that training has not seen, which contributes 0."""
    rows = pd.concat([frame[:4], frame[4:5].assign(group="new")])
    links = model.predict(rows, type="link")
    means = np.exp(links) if model.family.name == "poisson" else links
    for place in range(5):
        found = explain(model, rows.iloc[place])
        assert found.table.contribution.sum() == pytest.approx(found.link, abs=1e-12)
        assert found.link == pytest.approx(links[place], abs=1e-5 * max(links.std(), 1))
        assert found.response == pytest.approx(means[place], rel=1e-4)
    assert found.response_label == model.family.name


@pytest.mark.parametrize("top", [0, 1, 4, 1000])
def test_the_largest_interactions_and_the_rest(
    model: ak.AdditiveModel, frame: pd.DataFrame, top: int
) -> None:
    parts = Parts(model)
    row = frame.iloc[[7]]
    functions, offset = on_rows(model, parts, row)
    values = {s: float(parts.evaluate(s, [functions[v] for v in s])[0]) for s in all_subsets(parts)}
    table = explain(model, row, top=top).table
    assert table.part[0] == "intercept"
    assert table.contribution[0] == parts.constant
    assert table.part[1] == "offset(log(exposure))"
    assert table.contribution[1] == pytest.approx(offset[0])
    main = table[table.order == 1]
    assert (
        main.part.tolist()
        == [v.label for v in parts.variables]
        == ["group", "x3", "hour", "x1", "x2", "flag"]
    )
    np.testing.assert_allclose(main.contribution, [values[v,] for v in range(6)], rtol=1e-9)
    larger = sorted((s for s in values if len(s) > 1), key=lambda s: -abs(values[s]))
    shown = table[(table.order > 1) & ~table.part.str.contains("other")]
    assert shown.part.tolist() == [parts.label(s) for s in larger[:top]]
    np.testing.assert_allclose(shown.contribution, [values[s] for s in larger[:top]], rtol=1e-9)
    for order in (2, 3):
        rest = [s for s in larger[top:] if len(s) == order]
        line = table[table.part.str.contains(f"other interactions? of order {order}")]
        assert len(line) == bool(rest)
        if rest:
            assert line.part.iloc[0].startswith(f"{len(rest)} other")
            assert line.contribution.iloc[0] == pytest.approx(sum(values[s] for s in rest), abs=1e-9)


def test_what_is_nothing_is_folded_into_the_rest(frame: pd.DataFrame) -> None:
    model = random_model("gaussian ~ ahofm(x1, x2, x3, D=2, F=1)", frame)
    layer = model.get_layer(model.design.terms[-1].name)
    values = layer.coordinates(0)
    values[2] *= 1e-8
    layer.assign_coordinates(0, values)
    table = explain(model, frame.iloc[0]).table
    assert table.part.tolist()[4:] == ["x1:x2", "2 other interactions of order 2"]
    assert abs(table.contribution.iloc[-1]) < 1e-6 * abs(table.contribution.iloc[4])


def test_one_row_in_every_form(model: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    expected = explain(model, frame.iloc[[3]])
    row = frame.iloc[3]
    assert row.dtype == object, "mixed types"
    columns = list(model.design.columns)
    forms = [
        row,
        row.to_dict(),
        {name: row[name] for name in columns},
        {name: [row[name]] for name in columns},
        frame[columns].iloc[[3]].convert_dtypes(),
        frame.astype({"group": "category"}).iloc[3],
    ]
    for form in forms:
        pd.testing.assert_frame_equal(explain(model, form).table, expected.table)
    values = expected.table.set_index("part").value
    assert values["group"] == row.group
    assert values["flag"] == str(row.flag)
    assert values["x1"] == f"{row.x1:.4g}"
    assert values["intercept"] == ""


def test_numbers_only(frame: pd.DataFrame) -> None:
    """A row of a frame of numbers is a series of floats, categories of numbers too."""
    model = random_model("gaussian ~ C(digit) + s(x1)", frame)
    data = frame[["digit", "x1"]]
    found = explain(model, data.iloc[0])
    assert found.link == pytest.approx(model.predict(data[:1], type="link")[0], rel=1e-5)


def test_how_it_reads(model: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    found = explain(model, frame.iloc[0], top=2)
    text = str(found)
    assert text.startswith(
        f"{model.family.name}: predicted {found.response:.5g} (link {found.link:.5g})"
    )
    assert f"{found.table.contribution[0]:+.4g}" in text
    assert "<table" in found._repr_html_()
    odd = Explanation(found.table.assign(part="<b>"), 0.0, 0.0, "<i>")
    assert "<b>" not in odd._repr_html_()
    assert "<i>" not in odd._repr_html_()


def test_an_unseen_level_warns(model: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    with pytest.warns(ak.AhofmWarning, match="not seen in training"):
        found = explain(model, frame.iloc[[0]].assign(group="new"))
    assert found.table.set_index("part").value["group"] == "new"


def test_a_value_outside_is_clipped_with_a_warning(model: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    row = frame.iloc[[0]].assign(x1=99.0)
    with pytest.warns(ak.AhofmWarning, match="clipped"):
        found = explain(model, row)
    assert found.table.set_index("part").value["x1"] == "99"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d[:2], "takes one row.*Received: 2 rows"),
        (lambda d: {**d.iloc[0].to_dict(), "x1": [0.1, 0.2]}, "takes one row"),
        (lambda d: d[:0], "no rows"),
        (lambda d: d.drop(columns="x2").iloc[0], "Column `x2` is missing"),
        (lambda d: {**d.iloc[0].to_dict(), "x1": np.nan}, "Column `x1` has 1 missing value"),
        (lambda d: {**d.iloc[0].to_dict(), "x1": "a"}, "Column `x1` must be numeric"),
        (lambda d: {**d.iloc[0].to_dict(), "exposure": -1.0}, "offset|exposure"),
        (lambda d: d.iloc[0].to_list(), "data frame or a dict"),
        (lambda d: 3, "data frame or a dict"),
    ],
)
def test_rows_that_are_none(model: ak.AdditiveModel, frame: pd.DataFrame, change, message: str) -> None:
    with pytest.raises(ak.DataError, match=message):
        explain(model, change(frame))


@pytest.mark.parametrize("top", [-1, 2.0, True, None, "3"])
def test_tops_that_are_none(model: ak.AdditiveModel, frame: pd.DataFrame, top: object) -> None:
    with pytest.raises(ak.DataError, match="`top` must be a whole number from 0 on"):
        explain(model, frame.iloc[0], top=top)


def test_a_loaded_model_explains(model: ak.AdditiveModel, frame: pd.DataFrame, tmp_path: Path) -> None:
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    pd.testing.assert_frame_equal(
        explain(loaded, frame.iloc[0]).table, explain(model, frame.iloc[0]).table
    )


def test_models_that_cannot_be_read(frame: pd.DataFrame) -> None:
    with pytest.raises(ak.NotFittedError, match="not fitted"):
        explain(build("gaussian ~ s(x1)", frame), frame.iloc[0])
    with pytest.raises(ak.DataError, match=r"An `AdditiveModel` is needed\. Received: str"):
        explain("model", frame.iloc[0])
