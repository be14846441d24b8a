"""A model of two parameters, each with a formula of its own: design, layout, graph, training by Adam."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.data import kind_of, read_columns
from ahofm_keras.errors import DataError
from ahofm_keras.families import FAMILIES, Family
from ahofm_keras.terms import Design, fit_terms

MEAN = "y ~ x + s(z) + ahofm(x, z, F=1)"
SCALE = "y ~ s(x) + offset(w)"


class LocationScale(Family):
    """A normal response whose standard deviation has a predictor too."""

    name = "location scale"
    links = {"mean": ("identity",), "scale": ("log",)}  # noqa: RUF012
    support_text = "finite"

    def log_density(self, y: Any, parameters: Any, xp: Any = np) -> Any:
        mean, scale = parameters["mean"], parameters["scale"]
        return -xp.log(scale) - ((y - mean) / scale) ** 2 / 2


@pytest.fixture(autouse=True)
def family() -> Iterator[type[Family]]:
    yield ak.register_family(LocationScale)
    del FAMILIES[LocationScale.name]


@pytest.fixture
def data() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.uniform(-1, 1, 600), "z": rng.uniform(size=600)})
    data["w"] = rng.normal(0, 0.3, 600)
    data["y"] = 2 + data.x + np.sin(6 * data.z) + np.exp(data.x - 1 + data.w) * rng.normal(size=600)
    return data


def learn(data: pd.DataFrame) -> Design:
    formulas = {name: ak.parse_formula(text) for name, text in (("mean", MEAN), ("scale", SCALE))}
    columns = read_columns(data, ["x", "z", "w"])
    return fit_terms(formulas, columns, {name: kind_of(v) for name, v in columns.items()})


def make_model(data: pd.DataFrame, design: Design) -> ak.AdditiveModel:
    state = {
        "formula": MEAN,
        "response": ak.parse_formula(MEAN).response.to_json(),
        "design": design.to_json(),
        "shift": float(data.y.mean()),
        "scale": 1.0,
    }
    return ak.AdditiveModel(MEAN, family="location scale", state=state)


def test_each_basis_is_there_once_and_each_layer_has_its_name(data: pd.DataFrame) -> None:
    design = learn(data)
    assert list(design.predictors) == ["mean", "scale"]
    labels = {name: [t.label for t in own.terms] for name, own in design.predictors.items()}
    assert labels == {"mean": ["x", "s(z)", "ahofm(x, z)"], "scale": ["s(x)", "offset(w)"]}
    assert [feature.label for feature in design.features] == ["z", "x"]
    assert len({term.name for term in design.terms}) == 5
    again = Design.from_json(json.loads(json.dumps(design.to_json())))
    assert again.predictors == design.predictors


def test_the_layout_knows_where_each_coefficient_stands(data: pd.DataFrame) -> None:
    design = learn(data)
    mean, scale = design.layout["mean"], design.layout["scale"]
    widths = [len(feature.eigenvalues) for feature in design.features]
    assert [(span.term.label, span.where) for span in mean.spans] == [
        ("x", slice(1, 2)),
        ("s(z)", slice(2, 2 + widths[0])),
    ]
    assert [(span.term.label, span.where) for span in scale.spans] == [("s(x)", slice(1, 1 + widths[1]))]
    assert (mean.size, mean.unpenalised, scale.unpenalised) == (2 + widths[0], 2, 1)
    assert [order.label for order in mean.orders] == ["ahofm(x, z)[2]"]
    assert scale.orders == ()
    assert [order.key for order in design.orders] == [("ahofm_x_z", 0)]
    with pytest.raises(DataError, match=r"several predictors \(`mean`, `scale`\)"):
        _ = design.layout.only


def test_only_mini_batches_fit_it(data: pd.DataFrame) -> None:
    model = make_model(data, learn(data))
    assert model.posterior is None
    with pytest.raises(DataError, match="the model has 2 predictors"):
        model.fit(data, solver="variational", verbose=0)


@pytest.mark.filterwarnings("ignore:The fit reached its last epoch")
def test_adam_trains_both_predictors(data: pd.DataFrame, tmp_path: Path) -> None:
    model = make_model(data, learn(data))
    before = model.evaluate(data, return_dict=True)["deviance"]
    model.fit(data, epochs=80, verbose=0)
    assert model.fit_result.solver == "adam"
    found = model.predict(data)
    assert found.shape == (600, 2)
    truth = np.stack([2 + data.x + np.sin(6 * data.z), np.exp(data.x - 1 + data.w)], axis=1)
    assert np.sqrt(np.mean((found[:, 0] - truth[:, 0]) ** 2)) < 0.15
    assert np.sqrt(np.mean(np.log(found[:, 1] / truth[:, 1]) ** 2)) < 0.2
    # Twice the loss of the toy likelihood, from its definition.
    mean, scale = found.T
    deviance = np.mean(2 * np.log(scale) + ((data.y - mean) / scale) ** 2)
    assert model.evaluate(data, return_dict=True)["deviance"] == pytest.approx(deviance, rel=1e-4)
    assert deviance < before - 1
    # The offset of the second predictor reaches it and nothing else.
    moved = model.predict(data.assign(w=data.w + 1))
    np.testing.assert_allclose(moved / found, np.broadcast_to([1, np.e], (600, 2)), rtol=1e-5)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again.predict(data), found)
