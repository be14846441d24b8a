"""Maps of places on a page, in the browser."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from tests.reporting.browser import Browser
from tests.reporting.test_browser import changes, looks, predicted, put, text


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    rng = np.random.default_rng(100)
    data = pd.DataFrame(rng.uniform(size=(300, 3)), columns=["lon", "lat", "time"])
    data["y"] = np.sin(5 * data.lon) * np.cos(4 * data.lat) * (1 + data.time) + 0.1 * rng.normal(
        size=300
    )
    return data


@pytest.fixture(scope="module")
def model(data: pd.DataFrame) -> ak.AdditiveModel:
    return ak.fit("y ~ te(lon, lat, time, d=(2, 1))", data, verbose=0)


@pytest.fixture(scope="module")
def page(model: ak.AdditiveModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ak.report(model, tmp_path_factory.mktemp("places") / "page.html")


def test_a_map_is_drawn_and_read(browser: Browser, page: Path, model: ak.AdditiveModel) -> None:
    browser.open(page)
    browser.settle()
    assert browser.run("[...state.selected]") == [0]
    row = {"lon": 0.4, "lat": 0.7, "time": 0.5}
    put(browser, row)
    assert predicted(browser) == pytest.approx(float(model.predict(pd.DataFrame([row]))[0]), abs=1e-3)
    browser.run("select([0])")
    before = looks(browser, "effect-chart")
    assert text(browser, "effect-readout").startswith("lon, lat = 0.4, 0.7:")
    assert "±" in text(browser, "effect-readout")
    effect = ak.effect(model, "lon", "lat", at={"lon": [0.4], "lat": [0.7]})
    band = browser.run("bandAt([0], 0.4, 0.7)")
    assert band == pytest.approx(1.96 * float(effect.se[0, 0]), rel=0.05)
    assert "averaged over all other features" in text(browser, "effect-words")
    browser.run("document.querySelector('[data-view=points]').click()")
    assert changes(browser, "effect-chart", before)


def test_a_map_at_three_times(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.settle()
    before = looks(browser, "effect-chart")
    browser.run("select([0, 1])")
    assert changes(browser, "effect-chart", before)
    assert browser.run("document.querySelectorAll('#effect-chart h4').length") == 3
    browser.run("document.getElementById('effect-chart').focus()")
    read = text(browser, "effect-readout")
    browser.press("ArrowRight")
    assert text(browser, "effect-readout") != read
    assert browser.problems == []
