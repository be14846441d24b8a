"""The page of a model with several predictors: a tab for each, all of them together, numbers of `predict`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.families import FAMILIES, get_family
from ahofm_keras.reporting.contents import collect
from ahofm_keras.reporting.encoding import unpack
from tests.reporting import mirror
from tests.reporting.browser import Browser
from tests.several import PARAMETERS, several_frame, several_model


@pytest.fixture(scope="module")
def contents() -> dict[str, Any]:
    return collect(several_model(), None, None, 50, 0.9)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ak.report(several_model(), tmp_path_factory.mktemp("page") / "several.html", level=0.9)


ROW = {"x": 0.4, "z": -0.6, "group": "c"}


def test_a_chapter_per_parameter(contents: dict[str, Any]) -> None:
    assert [chapter["parameter"] for chapter in contents["chapters"]] == list(PARAMETERS)
    told = contents["about"]["parameters"]
    assert [own["constant"] for own in told] == [False, False, True]
    assert "spread" in told[1]["means"]
    scale = contents["chapters"][1]
    assert scale["family"]["effect_axis"] == "Effect on log (scale of y)"
    assert scale["words"]["what"].startswith("It predicts the scale of y as the sum of")
    assert "multiplies the scale" in scale["words"]["link"]
    assert contents["formula"].splitlines()[2] == "df: ~ 1"


@pytest.mark.parametrize("place", range(3))
def test_the_contents_predict_every_parameter(contents: dict[str, Any], place: int) -> None:
    """With nothing but the page's numbers; the third has a link that the mirror does not know."""
    chapter = contents["chapters"][place]
    link = {**chapter, "family": {**chapter["family"], "link": "identity"}}
    found = mirror.predict(link, ROW)
    expected = several_model().predict(pd.DataFrame([ROW]), type="link")[PARAMETERS[place]]
    assert found == pytest.approx(expected.item(), abs=1e-5)


def test_residuals_are_those_of_each_predictor(contents: dict[str, Any]) -> None:
    frame = several_frame()
    found = [unpack(own) for own in contents["sample"]["residuals"]]
    rows = np.flatnonzero(np.isin(frame["y"].to_numpy(), unpack(contents["sample"]["y"])))
    for parameter, own in zip(PARAMETERS[:2], found, strict=False):
        whole = ak.plotting.residual_data(several_model(), "z", frame, parameter=parameter)
        np.testing.assert_allclose(own, whole["residual"].iloc[rows], rtol=1e-3, atol=1e-3)


def test_quality_has_no_explained_deviance(contents: dict[str, Any]) -> None:
    figures = {figure["label"]: figure["value"] for figure in contents["quality"]["figures"]}
    frame, model = several_frame(), several_model()
    distribution = model.predict(frame, type="distribution")
    assert list(figures) == ["RMSE", "MAE", "Log score"]
    assert figures["Log score"] == pytest.approx(distribution.log_prob(frame.y).mean(), rel=1e-4)
    assert figures["RMSE"] == pytest.approx(np.sqrt(np.mean((frame.y - distribution.mean()) ** 2)), 1e-4)


def test_scripts_know_the_mean(contents: dict[str, Any], run_script: Any) -> None:
    """By interpolation, at rows of the data; nothing is known beyond the grid."""
    model, rows = several_model(), several_frame().iloc[:30]
    links = model.predict(rows, type="link").to_numpy()
    script = f"{links.tolist()}.map((at) => new Outcome(contents.outcome).mean(at))"
    found = np.array(run_script(contents, script), float)
    np.testing.assert_allclose(found, model.predict(rows), rtol=2e-4, atol=2e-4)
    assert run_script(contents, "new Outcome(contents.outcome).mean([1e6, 0, 2])") is None


def test_one_parameter_alone(tmp_path: Path) -> None:
    found = collect(several_model().parameter("scale"), None, None, 20, 0.9)
    assert found["chapters"] == []
    assert found["outcome"] is None
    assert found["parameter"] == "scale"
    assert ak.report(several_model(), tmp_path / "scale.html", parameter="sigma").exists()


def test_tabs_and_numbers_in_a_browser(page: Path, browser: Browser) -> None:
    browser.open(page)
    tabs = browser.run("[...document.querySelectorAll('#tabs b')].map((own) => own.textContent)")
    assert tabs == list(PARAMETERS)
    browser.run(f"for (const field of fields) field.put(new Map(Object.entries({ROW})).get(field.name))")
    browser.run("changed(true)")
    browser.wait("document.getElementById('result-row').textContent === ''")
    frame = pd.DataFrame([ROW])
    parameters = several_model().predict(frame, type="parameters")
    for place, parameter in enumerate(PARAMETERS):
        browser.run(f"document.getElementById('tab-{place}').click()")
        # Figures run to their new values for a moment.
        first = f"Number(document.querySelector('#values tr').dataset.value) - {parameters.iloc[0, 0]}"
        browser.wait(f"Math.abs({first}) < {1e-4 * abs(parameters.iloc[0, 0])}")
        values = browser.run(
            "[...document.querySelectorAll('#values tr')].map((row) => Number(row.dataset.value))"
        )
        np.testing.assert_allclose(values, parameters.iloc[0], rtol=1e-4)
        assert parameter in browser.run("document.getElementById('effects-title').textContent")
        constant = browser.run("!document.getElementById('constant').hidden")
        assert constant == (parameter == "df")
    mean = browser.run("Number(document.getElementById('result').dataset.value)")
    assert mean == pytest.approx(float(several_model().predict(frame)[0]), rel=1e-4)
    assert browser.problems == []
    assert all(not address.startswith("http") for address in browser.requests)


def test_a_phone_shows_all_of_it(page: Path, browser: Browser) -> None:
    browser.open(page, 390, 844)
    browser.run("document.getElementById('tab-1').click()")
    browser.settle()
    assert browser.run("document.documentElement.scrollWidth") == 390
    assert browser.problems == []


@pytest.mark.parametrize("family", ["categorical", "ordinal"])
def test_a_page_of_classes(family: str, tmp_path: Path, run_script: Any) -> None:
    """A tab for each class but the first, or for the widths; probabilities are those of `predict`."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.uniform(-1, 1, 200)})
    chosen = np.digitize(frame.x + rng.logistic(size=200), [-1, 1])
    frame["kind"] = pd.Categorical(np.array(["a", "b", "c"])[chosen], ordered=True)
    model = ak.AdditiveModel("kind ~ x", frame, family=family)
    model.fit(frame, verbose=0)
    contents = collect(model, None, None, 20, 0.9)
    assert contents["classes"] == ["a", "b", "c"]
    assert [own["parameter"] for own in contents["chapters"]] == list(model.family.parameters)
    labels = {figure["label"]: figure["value"] for figure in contents["quality"]["figures"]}
    chances = model.predict(frame)
    right = (chances.to_numpy().argmax(axis=1) == chosen).mean()
    assert labels["Right classes"] == pytest.approx(right)
    links = model.predict(frame.iloc[:10], type="link").to_numpy()
    script = f"{links.tolist()}.map((at) => new Outcome(contents.outcome).chances(at))"
    np.testing.assert_allclose(run_script(contents, script), chances.iloc[:10], atol=1e-4)
    assert ak.report(model, tmp_path / "classes.html").exists()


@pytest.mark.parametrize("name", FAMILIES)
def test_every_parameter_is_told_in_words(name: str) -> None:
    family = get_family(name)
    for parameter in family.parameters:
        assert len(family.meaning(parameter).split()) > 2
