"""`y ~ 1`, with and without an offset: the model that others are compared with."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import ahofm_keras as ak
from ahofm_keras.errors import DataError, FormulaError

FORMULAS = {"z ~ 1": "gaussian", "y ~ 1": "poisson", "y ~ 1 + offset(w)": "poisson"}


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"w": rng.uniform(size=200)})
    data["y"] = rng.poisson(np.exp(1 + data.w)).astype(float)
    return data.assign(z=5 + rng.normal(size=200))


def intercept_of(formula: str, data: pd.DataFrame) -> float:
    if formula == "z ~ 1":
        return float(data.z.mean())
    exposure = np.exp(data.w) if "offset" in formula else np.ones(len(data))
    return float(np.log(data.y.sum() / exposure.sum()))


@pytest.mark.parametrize("solver", ["variational", "bcd", "adam"])
@pytest.mark.parametrize("formula", FORMULAS)
def test_the_intercept_is_its_closed_form(formula: str, solver: str, data: pd.DataFrame) -> None:
    model = ak.AdditiveModel(formula, data, FORMULAS[formula])
    options = {"validation_split": 0.0} if solver == "adam" else {}
    model.fit(data, solver=solver, verbose=0, **options)
    assert model.intercept == pytest.approx(intercept_of(formula, data), abs=1e-3)
    offset = data.w if "offset" in formula else 0.0
    np.testing.assert_allclose(model.predict(data, type="link"), model.intercept + offset, rtol=1e-6)
    assert model.fit_result.deviance == pytest.approx(model.fit_result.null_deviance, rel=1e-4)


@pytest.mark.parametrize("formula", FORMULAS)
def test_it_is_read_saved_and_served(formula: str, data: pd.DataFrame, tmp_path: Path) -> None:
    model = ak.fit(formula, data, FORMULAS[formula], verbose=0)
    found = ak.summary(model)
    assert list(found.coefficients.index) == ["(Intercept)"]
    error = 1 / np.sqrt(data.y.sum()) if "y" in formula else data.z.std() / np.sqrt(200)
    assert found.coefficients.se.iloc[0] == pytest.approx(error, rel=0.01)
    assert len(found.terms) == 0
    assert "(Intercept)" in str(found)
    assert found.figures["edf"] == pytest.approx(1)
    assert ak.effects(model) == []
    terms = model.predict(data.iloc[:3], type="terms")
    assert terms.shape == (3, 0)
    assert terms.attrs["intercept"] == model.intercept
    band = model.predict(data.iloc[:3], interval=0.9)
    assert (band.lower < band["mean"]).all()
    assert ak.explain(model, data.iloc[[0]]).response == pytest.approx(band["mean"].iloc[0])
    with pytest.raises(DataError, match="has no terms"):
        ak.report(model, tmp_path / "page.html")
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again.predict(data), model.predict(data))
    model.export(tmp_path / "served", verbose=False)
    served = tf.saved_model.load(str(tmp_path / "served")).signatures["serving_default"]
    name = "w" if "offset" in formula else "rows"
    row = served(**{name: tf.constant(data.w.to_numpy()[:5])})
    np.testing.assert_allclose(row["response"], model.predict(data.iloc[:5]), rtol=1e-6)


def test_other_models_are_compared_with_it(data: pd.DataFrame) -> None:
    plain, smooth = (ak.fit(f"y ~ {right}", data, "poisson", verbose=0) for right in ("1", "s(w)"))
    table = ak.compare(plain, smooth).frame
    assert table["aic"].iloc[1] < table["aic"].iloc[0] - 5


def test_batches(data: pd.DataFrame) -> None:
    model = ak.AdditiveModel("y ~ 1", data, "poisson")
    batches = tf.data.Dataset.from_tensor_slices(({"w": data.w}, data.y)).batch(50)
    model.fit(batches, epochs=200, verbose=0)
    assert model.intercept == pytest.approx(intercept_of("y ~ 1", data), abs=0.02)
    assert model.predict(batches.map(lambda x, y: x)).shape == (200,)


def test_neither_an_intercept_nor_a_term() -> None:
    for formula in ("y ~ 0", "y ~ 1 - 1", "y ~ 0 + offset(w)"):
        with pytest.raises(FormulaError, match="neither an intercept nor a term"):
            ak.parse_formula(formula)
