"""The order of a category's levels: that of a pandas Categorical, else that of the alphabet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.data import read_levels
from ahofm_keras.formula import parse_formula
from ahofm_keras.plotting.levels import level_frame
from ahofm_keras.refinement import _training_rows
from ahofm_keras.terms import Design

ORDER = ["mid", "low", "never", "high"]
OCCURRING = ("mid", "low", "high")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"x": rng.normal(size=120), "g": rng.choice(OCCURRING, 120)})
    effect = data.g.map({"low": -1.0, "mid": 0.5, "high": 2.0})
    data["y"] = 3 + 0.5 * data.x + effect + 0.1 * rng.normal(size=120)
    return data.assign(g=pd.Categorical(data.g, ORDER))


@pytest.fixture(scope="module")
def model(frame: pd.DataFrame) -> ak.AdditiveModel:
    model = ak.AdditiveModel("y ~ x + g", frame)
    model.fit(frame, verbose=0)
    return model


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        (pd.Categorical(["a", "b", "c"], ["c", "a", "b"]), ("c", "a", "b")),
        (pd.Categorical(["a", "b"], ["c", "b", "a"], ordered=True), ("b", "a")),
        (pd.Categorical([10, 9, 9], [9, 10]), ("9", "10")),
        (pd.Categorical(["1", 1.0, "0"], ["1", 1.0, "0"]), ("1", "0")),
        (pd.Series(["a", "b"], dtype="category"), ("a", "b")),
        (pd.CategoricalIndex(["a", "b"], ["b", "a"]), ("b", "a")),
        (["b", "a"], None),
        ([2.0, 1.0], None),
    ],
    ids=["order", "ordered, unused", "numbers", "one text", "default", "index", "texts", "no category"],
)
def test_levels_of_a_column(values: Any, levels: tuple[str, ...] | None) -> None:
    wanted = {} if levels is None else {"g": levels}
    assert read_levels({"g": values}, ["g"]) == wanted
    assert read_levels(pd.DataFrame({"g": values}), ["g"]) == wanted


def test_every_term_has_the_same_order_in_json_too(frame: pd.DataFrame) -> None:
    formula = "y ~ C(g) + x:g + s(g) + te(x, g) + afm(x, g, F=1)"
    with pytest.warns(ak.AhofmWarning):  # main effects in several terms
        design = ak.AdditiveModel(formula, frame).design
    for each in (design, Design.from_json(json.loads(json.dumps(design.to_json())))):
        assert each.terms[0].coefficients == ("C(g)[low]", "C(g)[high]")
        levels = {f.levels for term in each.terms[:2] for f in term.factors if f.levels}
        levels |= {f.basis.levels for f in each.features if f.basis.kind == "re"}
        assert levels == {OCCURRING}
    shares = design.margins.single[[v.label for v in design.variables()].index("g")].frequencies
    np.testing.assert_allclose(shares, [np.mean(frame.g == level) for level in OCCURRING])


def test_without_an_intercept_all_levels_in_order(frame: pd.DataFrame) -> None:
    (term,) = ak.AdditiveModel("y ~ 0 + g", frame).design.terms
    assert term.coefficients == ("g[mid]", "g[low]", "g[high]")


def test_texts_stay_alphabetical(frame: pd.DataFrame) -> None:
    (term,) = ak.AdditiveModel("y ~ g", frame.assign(g=frame.g.astype(object))).design.terms
    assert term.coefficients == ("g[low]", "g[mid]")


def test_coefficients_are_differences_to_the_first_category(
    model: ak.AdditiveModel, frame: pd.DataFrame
) -> None:
    design = np.column_stack([np.ones(len(frame)), frame.x, frame.g == "low", frame.g == "high"])
    wanted = np.linalg.lstsq(design.astype(float), frame.y, rcond=None)[0]
    table = ak.summary(model).coefficients
    assert list(table.index) == ["(Intercept)", "x", "g[low]", "g[high]"]
    np.testing.assert_allclose(table.estimate, wanted, rtol=1e-4)


def test_the_order_is_saved_and_new_data_may_have_another(
    model: ak.AdditiveModel, frame: pd.DataFrame, tmp_path: Path
) -> None:
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert list(ak.summary(loaded).coefficients.index) == ["(Intercept)", "x", "g[low]", "g[high]"]
    wanted = model.predict(frame)
    for values in (frame.g.astype(object), pd.Categorical(frame.g.astype(object), sorted(OCCURRING))):
        np.testing.assert_array_equal(loaded.predict(frame.assign(g=values)), wanted)
    with pytest.warns(ak.AhofmWarning, match="`g` in 1 of 1 rows"):
        loaded.predict({"x": 0.0, "g": "never"})


def test_effects_and_pictures_have_the_order(model: ak.AdditiveModel) -> None:
    effect = ak.effect(model, "g")
    assert tuple(effect.grid[0]) == OCCURRING
    assert np.argsort(effect.fit).tolist() == [1, 0, 2]
    assert tuple(level_frame(effect, 0.95).level) == OCCURRING


def test_pictures_sort_texts_by_their_effect(frame: pd.DataFrame) -> None:
    texts = frame.assign(g=frame.g.astype(object))
    model = ak.AdditiveModel("y ~ x + g", texts)
    model.fit(texts, verbose=0)
    assert list(level_frame(ak.effect(model, "g"), 0.95).level) == ["low", "mid", "high"]
    assert list(ak.effect(model, "g").grid[0]) == ["high", "low", "mid"]


def test_rows_that_a_model_remembers_keep_the_order(model: ak.AdditiveModel) -> None:
    rows = _training_rows(model, None, {})
    names = list(parse_formula("y ~ x + g").columns())
    assert read_levels(rows, names) == {"g": OCCURRING}
