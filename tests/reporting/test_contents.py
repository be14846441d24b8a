"""What stands in a page: figures of quality, ranking, inputs; what is left out of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.decomposition import Parts
from ahofm_keras.reporting.contents import collect
from ahofm_keras.reporting.encoding import pack, to_json, unpack
from ahofm_keras.reporting.inputs import describe_inputs
from tests.decomposition.conftest import random_model


def contents_of(model: ak.AdditiveModel, data: Any = None, rows: int = 50) -> dict[str, Any]:
    return collect(model, data, None, rows, 0.9)


def figures(contents: dict[str, Any]) -> dict[str, float]:
    return {figure["label"]: figure["value"] for figure in contents["quality"]["figures"]}


@pytest.fixture(scope="module")
def loaded(fitted: ak.AdditiveModel, tmp_path_factory: pytest.TempPathFactory) -> ak.AdditiveModel:
    path = tmp_path_factory.mktemp("model") / "model.keras"
    fitted.save(path)
    return keras.models.load_model(path)


@pytest.mark.parametrize("kind", ["f8", "f4", "i4"])
def test_arrays_come_back(kind: str) -> None:
    values = np.arange(6).reshape(2, 3) * (1 if kind == "i4" else 0.5)
    np.testing.assert_array_equal(unpack(json.loads(json.dumps(pack(values, kind)))), values)


def test_json_has_no_way_out_of_its_tag() -> None:
    text = "</script><!--&\u2028\ud800"
    assert not set("<>&\u2028") & set(to_json([text]))
    assert json.loads(to_json([text])) == [text]
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json(float("nan"))


def test_quality_of_a_regression(fitted: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    """On rows given; of those of the fit the model's own record must say the same."""
    new = frame.iloc[:60].assign(gaussian=lambda rows: rows.gaussian + 5)
    error = new.gaussian - fitted.predict(new)
    spread = new.gaussian - new.gaussian.mean()
    contents = contents_of(fitted, new)
    found = figures(contents)
    assert contents["quality"]["source"] == "given"
    assert contents["quality"]["rows"] == 60
    assert found["RMSE"] == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-4)
    assert found["MAE"] == pytest.approx(np.mean(np.abs(error)), rel=1e-4)
    assert found["Deviance explained"] == pytest.approx(
        1 - np.sum(error**2) / np.sum(spread**2), rel=1e-4
    )
    record = fitted.fit_result
    assert record is not None
    own = figures(contents_of(fitted))
    assert own["Deviance explained"] == pytest.approx(
        1 - record.deviance / record.null_deviance, rel=1e-5
    )
    assert own["Log score"] == pytest.approx(record.log_likelihood / len(frame), rel=1e-5)


def test_quality_of_probabilities(
    random_models: dict[str, ak.AdditiveModel], frame: pd.DataFrame
) -> None:
    model = random_models["bernoulli"]
    mean = model.family.inverse_link(model.predict(frame, type="link"), np)
    y = frame.bernoulli.to_numpy()
    pairs = mean[y == 1][:, None] - mean[y == 0]
    found = figures(contents_of(model, frame))
    assert found["AUC"] == pytest.approx(np.mean(pairs > 0) + np.mean(pairs == 0) / 2, abs=1e-6)
    assert found["Brier score"] == pytest.approx(np.mean((y - mean) ** 2), rel=1e-4)
    score = np.mean(np.log(np.where(y == 1, mean, 1 - mean)))
    assert found["Log score"] == pytest.approx(score, rel=1e-4)


def test_rows_of_one_class_have_no_figures_that_need_two(
    random_models: dict[str, ak.AdditiveModel], frame: pd.DataFrame
) -> None:
    zeros = frame[frame.bernoulli == 0]
    assert figures(contents_of(random_models["bernoulli"], zeros)).keys() == {"Brier score", "Log score"}


def test_shares_are_those_of_interactions(fitted: ak.AdditiveModel) -> None:
    contents, parts = contents_of(fitted), Parts(fitted)
    for entry in contents["ranking"]:
        order = entry["order"]
        frame = ak.interactions(fitted, order, top=None)
        labels = [parts.label(subset) for subset in unpack(entry["subsets"])]
        assert labels == frame["label"].tolist()[: len(labels)]
        np.testing.assert_allclose(unpack(entry["share"]), frame["share"][: len(labels)], rtol=1e-6)
        over_rows = frame["share_rows"][: len(labels)]
        np.testing.assert_allclose(unpack(entry["share_rows"]), over_rows, rtol=1e-5, atol=1e-9)
        assert entry["count"] == len(frame)
    assert sum(entry["whole"] for entry in contents["ranking"]) == pytest.approx(1)
    assert sorted(contents["map"]) == list(range(len(parts.variables)))


def test_features_that_interact_stand_together(frame: pd.DataFrame) -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(size=(300, 6)), columns=list("abcdef"))
    data["y"] = data.a * data.d + 2 * data.b * data.f + data.c + data.e / 2
    model = ak.AdditiveModel("y ~ a:d + b:f + c + e", data)
    model.fit(data, verbose=0)
    labels = [variable.label for variable in model.design.variables()]
    order = [labels[place] for place in contents_of(model)["map"]]
    assert set(order[:2]) == {"b", "f"}, "the strongest pair first"
    assert abs(order.index("a") - order.index("d")) == 1
    assert order.index("c") < order.index("e")


def test_words_count_what_the_model_uses(fitted: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    contents = contents_of(fitted)
    counts = {entry["order"]: entry["active"] for entry in contents["ranking"]}
    assert counts[3] == 0, "the fit is expected to switch triples off"
    assert (
        f"{counts[1]} effects of single features and {counts[2]} of pairs" in contents["words"]["what"]
    )
    assert contents["title"] == "How gaussian depends on 6 features"
    one = random_model("log(gamma) ~ x1:x2", frame.assign(gamma=frame.gamma + 1))
    contents = contents_of(one)
    assert contents["title"] == "How log(gamma) depends on x1 and x2"
    expected = "2 effects of single features and one of a pair"
    assert expected in contents["words"]["what"]
    assert "on the scale of log(gamma)" in contents["words"]["scale"]


# Rows ----------------------------------------------------------------------------------------------------


def test_rows_in_the_page(fitted: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    contents = contents_of(fitted, frame, rows=30)
    sample = contents["sample"]
    assert unpack(sample["y"]).shape == (30,)
    for entry, packed in zip(contents["inputs"], sample["columns"], strict=True):
        values = unpack(packed)
        if "levels" in entry:
            values = [entry["levels"][place] for place in values]
        assert set(values) <= set(frame[entry["name"]])
    means = fitted.predict(frame)
    places = [int(np.flatnonzero(frame.gaussian == y)[0]) for y in unpack(sample["y"])]
    np.testing.assert_allclose(unpack(sample["mean"]), means[places], rtol=1e-5)
    np.testing.assert_allclose(
        unpack(sample["residuals"][0]), (frame.gaussian - means).iloc[places], rtol=1e-3, atol=1e-4
    )


def test_unknown_levels_have_no_place_in_the_page(fitted: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    new = frame.iloc[:20].copy()
    new.loc[:4, "group"] = "z"
    with pytest.warns(ak.AhofmWarning, match="not seen in training"):
        contents = contents_of(fitted, new)
    assert unpack(contents["sample"]["y"]).tolist() == new.gaussian.iloc[5:].tolist()
    assert contents["quality"]["rows"] == 20


def test_a_page_without_rows(fitted: ak.AdditiveModel) -> None:
    assert contents_of(fitted, rows=0)["sample"] is None


def test_a_loaded_model_keeps_all_but_rows(fitted: ak.AdditiveModel, loaded: ak.AdditiveModel) -> None:
    before, after = contents_of(fitted), contents_of(loaded)
    assert after["sample"] is None
    assert after["quality"]["source"] == "record"
    same = ("arithmetic", "margins", "occupied", "posterior", "inputs", "map", "formula", "words")
    for name in same:
        assert to_json(after[name]) == to_json(before[name]), name


# Inputs ----------------------------------------------------------------------------------------------------


def inputs_of(formula: str, data: pd.DataFrame, with_rows: bool) -> dict[str, Any]:
    model = random_model(formula, data)
    columns = model.read_inputs(data) if with_rows else None
    return {entry["name"]: entry for entry in describe_inputs(Parts(model), columns)}


def test_inputs_of_columns(frame: pd.DataFrame) -> None:
    found = inputs_of("gaussian ~ s(x1) + s(group) + flag + C(digit) + s(x2) + offset(x3)", frame, True)
    assert found["group"]["levels"] == ["a", "b", "c"]
    assert found["group"]["levels"][found["group"]["start"]] == frame.group.mode()[0]
    assert found["flag"]["levels"] == [False, True]
    assert found["digit"]["levels"] == [0, 1, 2, 3]
    ends = unpack(found["x1"]["quantiles"])[[0, -1]]
    np.testing.assert_allclose(ends, [frame.x1.min(), frame.x1.max()])
    assert found["x1"]["start"] == pytest.approx(frame.x1.median())
    assert [name for name, entry in found.items() if entry["only_offset"]] == ["x3"]
    assert list(found)[-1] == "x3"


def test_a_column_that_is_number_and_category_is_a_list_of_levels(frame: pd.DataFrame) -> None:
    assert inputs_of("gaussian ~ s(digit, k=3) + C(digit):x1", frame, False)["digit"]["levels"] == [
        0,
        1,
        2,
        3,
    ]


@pytest.mark.parametrize(
    ("term", "exact"),
    [
        ("log(x2)", True),
        ("scale(year)", True),
        ("I(2 - x1)", True),
        ("sqrt(x2)", True),
        ("I(x1 ** 2)", False),  # the square does not tell the sign
    ],
)
def test_ranges_behind_functions_without_rows(frame: pd.DataFrame, term: str, exact: bool) -> None:
    data = frame.assign(year=1990 + 20 * frame.x1)
    (entry,) = inputs_of(f"gaussian ~ s({term})", data, False).values()
    low, high = unpack(entry["quantiles"])[[0, -1]]
    values = data[entry["name"]]
    assert (low, high) == pytest.approx(
        (values.min() if exact else -values.max(), values.max()), rel=1e-6
    )


def test_free_inputs(frame: pd.DataFrame) -> None:
    """Nothing tells the range of these columns: the offset is 0 where they start."""
    found = inputs_of("gaussian ~ x1 + offset(log(exposure)) + offset(x3) + sin(x2)", frame, False)
    assert [found[name]["start"] for name in ("exposure", "x3")] == [1, 0]
    assert found["exposure"]["quantiles"] is None
    assert found["x2"]["quantiles"] is None
    assert inputs_of("gaussian ~ x1 + I(x2 / exposure)", frame, False)["exposure"]["start"] == 1


def test_whole_numbers(frame: pd.DataFrame) -> None:
    data = frame.assign(age=np.arange(len(frame)) % 71 + 18.0, rain=np.maximum(frame.x1 - 0.5, 0))
    found = inputs_of("gaussian ~ s(age) + s(x1) + rain", data, True)
    assert {name: entry["whole"] for name, entry in found.items()} == {
        "age": True,
        "x1": False,
        "rain": False,
    }


def test_nothing_of_a_path_is_kept(fitted_page: Path) -> None:
    assert str(fitted_page.parent) not in fitted_page.read_text()
