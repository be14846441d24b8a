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

    def start_values(self, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
        return {"mean": float(np.average(y, weights=weight)), "scale": float(np.std(y))}

    def mean_of(self, parameters: Any) -> np.ndarray:
        return parameters["mean"]


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


def make_model(data: pd.DataFrame) -> ak.AdditiveModel:
    return ak.AdditiveModel({"mean": MEAN, "scale": SCALE}, data, family="location scale")


def truth(data: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"mean": 2 + data.x + np.sin(6 * data.z), "scale": np.exp(data.x - 1 + data.w)})


def deviance(data: pd.DataFrame, found: pd.DataFrame) -> float:
    """Twice the loss of the toy likelihood, from its definition."""
    return float(np.mean(2 * np.log(found.scale) + ((data.y - found["mean"]) / found.scale) ** 2))


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


@pytest.mark.filterwarnings("ignore:The fit reached its last epoch")
@pytest.mark.parametrize(
    ("solver", "options"),
    [("variational", {}), ("adam", {"epochs": 80})],
)
def test_solvers_fit_both_predictors(
    solver: str, options: dict[str, Any], data: pd.DataFrame, tmp_path: Path
) -> None:
    model = make_model(data)
    before = model.evaluate(data, return_dict=True)["deviance"]
    model.fit(data, solver=solver, verbose=0, **options)
    assert model.fit_result.solver == solver
    assert model.has_posterior
    found, wanted = model.predict(data, type="parameters"), truth(data)
    assert list(found) == ["mean", "scale"]
    assert np.sqrt(np.mean((found["mean"] - wanted["mean"]) ** 2)) < 0.15
    assert np.sqrt(np.mean(np.log(found.scale / wanted.scale) ** 2)) < 0.2
    assert model.evaluate(data, return_dict=True)["deviance"] == pytest.approx(
        deviance(data, found), rel=1e-4
    )
    assert deviance(data, found) < before - 1
    # The offset of the second predictor reaches it and nothing else.
    moved = model.predict(data.assign(w=data.w + 1), type="parameters")
    np.testing.assert_allclose(moved / found, np.broadcast_to([1, np.e], (600, 2)), rtol=1e-5)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    pd.testing.assert_frame_equal(again.predict(data, type="parameters"), found, rtol=0, atol=0)
