"""Readers of models with several predictors: one parameter at a time, the first by default."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.decomposition import Parts
from ahofm_keras.decomposition.read_rows import functions_on
from tests.several import FORMULAS, PARAMETERS, several_frame, several_model


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return several_frame()


@pytest.fixture(scope="module")
def model() -> ak.AdditiveModel:
    return several_model()


@pytest.fixture(scope="module")
def loaded(model: ak.AdditiveModel, tmp_path_factory: pytest.TempPathFactory) -> ak.AdditiveModel:
    path: Path = tmp_path_factory.mktemp("model") / "several.keras"
    model.save(path)
    return ak.load_model(path)


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_parts_sum_to_the_link(model: ak.AdditiveModel, frame: pd.DataFrame, parameter: str) -> None:
    parts = Parts(model, parameter)
    functions = functions_on(parts, model.read_inputs(frame))
    total = parts.constant + parts.limit(functions)
    for order in range(1, parts.largest_order + 1):
        total = total + parts.evaluate_many(parts.subsets(order), functions).sum(axis=0)
    links = model.predict(frame, type="link")[parameter]
    np.testing.assert_allclose(np.broadcast_to(total, len(frame)), links, atol=2e-5)


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_an_explanation_sums_to_the_parameter(
    model: ak.AdditiveModel, frame: pd.DataFrame, parameter: str
) -> None:
    row = frame.iloc[[5]]
    found = ak.explain(model, row, parameter=parameter)
    assert found.parameter == parameter
    assert found.response_label == f"{parameter} of y"
    assert found.table["contribution"].sum() == pytest.approx(found.link)
    assert found.response == pytest.approx(model.predict(row, type="parameters")[parameter].item(), 2e-5)


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_a_view_predicts_its_parameter(
    model: ak.AdditiveModel, frame: pd.DataFrame, parameter: str
) -> None:
    view, rows = model.parameter(parameter), frame.iloc[:20]
    np.testing.assert_allclose(
        view.predict(rows), model.predict(rows, type="parameters")[parameter], rtol=1e-6
    )
    link = view.predict(rows, type="link")
    np.testing.assert_allclose(link, model.predict(rows, type="link")[parameter], rtol=1e-6)
    terms = view.predict(rows, type="terms")
    np.testing.assert_allclose(terms.sum(axis=1) + terms.attrs["intercept"], link, atol=2e-5)
    band = view.predict(rows, interval=0.9)
    assert (band["lower"] < band[parameter]).all()
    assert (band[parameter] < band["upper"]).all()
    with pytest.raises(ak.DataError, match="`interval` goes with"):
        view.predict(rows, type="terms", interval=0.9)


READERS: dict[str, Any] = {
    "effects": lambda m, **p: ak.effects(m, **p)[0].fit,
    "effect": lambda m, **p: ak.effect(m, "z", **p).frame().to_numpy(),
    "interactions": lambda m, **p: ak.interactions(m, order=1, **p)["share"].to_numpy(),
    "shares": lambda m, **p: ak.shares(m, **p)["share"].to_numpy(),
    "explain": lambda m, **p: ak.explain(m, several_frame().iloc[[0]], **p).table["contribution"].to_numpy(),
    "coef": lambda m, **p: ak.coef(m, **p).to_numpy(),
    "vcov": lambda m, **p: ak.vcov(m, **p).to_numpy(),
    "summary": lambda m, **p: ak.summary(m, **p).coefficients["estimate"].to_numpy(),
    "effect_data": lambda m, **p: ak.plotting.effect_data(m, "z", **p)["fit"].to_numpy(),
    "rug_data": lambda m, **p: ak.plotting.rug_data(m, "z", data=several_frame(), **p).to_numpy(),
    "residual_data": lambda m, **p: ak.plotting.residual_data(m, "z", several_frame(), **p)["residual"].to_numpy(),
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_takes_a_parameter(model: ak.AdditiveModel, reader: str) -> None:
    read = READERS[reader]
    first, second = read(model, parameter="loc"), read(model, parameter="scale")
    np.testing.assert_array_equal(read(model.parameter("scale")), second)
    np.testing.assert_array_equal(read(model, parameter="sigma"), second)
    assert reader == "rug_data" or first.shape != second.shape or (first != second).any()
    if reader != "summary":  # which shows all of them
        np.testing.assert_array_equal(read(model), first)


@pytest.mark.parametrize("reader", READERS)
def test_what_is_read_survives_a_file(
    model: ak.AdditiveModel, loaded: ak.AdditiveModel, reader: str
) -> None:
    read = READERS[reader]
    np.testing.assert_allclose(
        read(loaded, parameter="scale"), read(model, parameter="scale"), rtol=1e-9
    )


@pytest.mark.parametrize("reader", READERS)
def test_a_parameter_that_there_is_not(model: ak.AdditiveModel, reader: str) -> None:
    with pytest.raises(ak.DataError, match=r"no parameter 'skale'\. Did you mean `scale`"):
        READERS[reader](model, parameter="skale")
    with pytest.raises(ak.DataError, match=r"Did you mean `sigma`, which is `scale` here\?"):
        READERS[reader](model, parameter="sgima")


def test_results_say_which_parameter_they_are_of(model: ak.AdditiveModel) -> None:
    assert repr(ak.effects(model)[0]).startswith("<Effect group on loc")
    assert ak.effect(model, "z", parameter="scale").parameter == "scale"
    tables = (ak.shares(model), ak.interactions(model), ak.coef(model), ak.vcov(model))
    assert {table.attrs["parameter"] for table in tables} == {"loc"}
    assert ak.effect(model, "z", parameter="scale").frame().attrs["parameter"] == "scale"


def test_methods_of_the_model(model: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    assert [own.parameter for own in model.effects(parameter="scale")] == ["scale"] * 3
    assert model.explain(frame.iloc[[0]], parameter="df").parameter == "df"
    assert model.coef(parameter="df").index.tolist() == ["(Intercept)"]
    assert model.summary_table("scale").sections[0].parameter == "scale"
    assert model.parameter("scale").parameter("loc").of_parameter == "loc"


def test_shares_are_those_of_a_predictor(model: ak.AdditiveModel) -> None:
    for parameter in ("loc", "scale"):
        found = ak.shares(model, parameter=parameter)
        assert found["share"].sum() == pytest.approx(1)
        assert found["share_rows"].sum() == pytest.approx(1)
    # By its simulation: a logarithm that z raises most, and no interaction.
    main = ak.interactions(model, order=1, parameter="scale")
    assert main["label"][0] == "z"
    assert ak.interactions(model, order=2, parameter="loc")["share"][0] > 0.1


def test_a_constant_parameter_has_no_parts(model: ak.AdditiveModel) -> None:
    assert ak.effects(model, parameter="df") == []
    assert ak.shares(model, parameter="df")["share"].tolist() == [0, 0]
    with pytest.raises(ak.DataError, match="`x` is not in the predictor of `df`, which is constant"):
        ak.effect(model, "x", parameter="df")


def test_a_feature_of_another_predictor(frame: pd.DataFrame) -> None:
    model = ak.AdditiveModel({"loc": "y ~ x", "scale": "~ z"}, frame)
    model.fit(frame, verbose=0)
    with pytest.raises(ak.DataError, match="`z` is not in the predictor of `loc`, which has: `x`"):
        ak.effect(model, "z")


def test_a_model_of_one_predictor_has_no_choice(frame: pd.DataFrame) -> None:
    model = ak.AdditiveModel("y ~ x", frame)
    model.fit(frame, verbose=0)
    assert ak.effects(model, parameter="mean")[0].parameter is None
    with pytest.raises(ak.DataError, match=r"no parameter 'scale'\. It has: `mean`"):
        ak.effects(model, parameter="scale")


def test_partial_residuals_are_working_residuals(model: ak.AdditiveModel, frame: pd.DataFrame) -> None:
    """Of a scale they are score over information, whose mean is about 0 at the fit."""
    found = ak.plotting.residual_data(model, "z", frame, parameter="scale")["residual"]
    links = model.predict(frame, type="link")
    parameters = model.predict(frame, type="parameters")
    known = {name: parameters[name].to_numpy() for name in PARAMETERS}
    step = 1e-5

    def density(change: float) -> np.ndarray:
        moved = {**known, "scale": np.exp(links["scale"].to_numpy() + change)}
        return np.asarray(model.family.log_density(frame.y.to_numpy(), moved, np))

    slope = (density(step) - density(-step)) / (2 * step)
    df = known["df"]
    np.testing.assert_allclose(found, slope / (2 * df / (df + 3)), rtol=1e-4, atol=1e-4)


def test_refining_one_predictor(frame: pd.DataFrame) -> None:
    model = several_model()
    refined = ak.refine(model, frame, top=1, fit=False)
    assert refined.formula["loc"] == f"{FORMULAS['loc']} + ti(x, z)"
    assert refined.formula["scale"].endswith("s(z, k=8) + group + x")
    assert refined.family == model.family
    with pytest.raises(ak.DataError, match="no interactions to refine"):
        ak.refine(model, frame, parameter="scale")
