"""The page in a browser: loads cleanly, answers to mouse, keys and sliders, computes as the model does."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from tests.reporting.browser import Browser
from tests.reporting.test_page import hostile_model


def looks(browser: Browser, chart: str) -> str:
    """What a chart looks like, as a text to compare."""
    browser.settle()
    return browser.picture_of(f"#{chart}")


def changes(browser: Browser, chart: str, before: str) -> bool:
    """Whether a chart comes to look otherwise; a busy machine draws a frame later."""
    end = time.monotonic() + 10
    while looks(browser, chart) == before:
        if time.monotonic() > end:
            return False
    return True


def text(browser: Browser, name: str) -> str:
    return browser.run(f"document.getElementById({json.dumps(name)}).textContent")


def centre(browser: Browser, selector: str) -> tuple[float, float]:
    """Middle of an element, brought into the window."""
    box = browser.run(
        f"(() => {{ const own = document.querySelector({json.dumps(selector)}); own.scrollIntoView({{ block: 'center',"
        " behavior: 'instant' }); const box = own.getBoundingClientRect();"
        " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )
    return box[0], box[1]


def put(browser: Browser, values: dict[str, Any]) -> None:
    """Set inputs by their fields, as a user does."""
    browser.run(
        f"""(async () => {{
          for (const [name, value] of {json.dumps(list(values.items()))}) {{
            const field = fields.find((own) => own.name === name), box = document.getElementById(field.id);
            if ("levels" in field) box.selectedIndex = field.levels.indexOf(value);
            else box.value = String(value);
            box.dispatchEvent(new Event("input"));
            box.dispatchEvent(new Event("change"));
          }}
          await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        }})()"""
    )


def predicted(browser: Browser) -> float:
    return float(browser.run("document.getElementById('result').dataset.value"))


@pytest.fixture
def opened(browser: Browser, fitted_page: Path) -> Browser:
    browser.open(fitted_page)
    browser.settle()
    return browser


def test_a_page_loads_cleanly(opened: Browser, fitted_page: Path) -> None:
    assert opened.problems == []
    assert opened.requests == [fitted_page.resolve().as_uri()]
    for chart in ("effect-chart", "map", "observed"):
        assert opened.run(f"shown.get(byId('{chart}')).length") == 1, chart
    assert text(opened, "title") == "How gaussian depends on 6 features"
    assert opened.run("document.querySelectorAll('#ranking [role=option]').length") == opened.run(
        "everyItem.length"
    )


def test_clicks_change_the_picture(opened: Browser) -> None:
    seen = [looks(opened, "effect-chart")]
    for place in (1, 2, 3):
        opened.click(*centre(opened, f"#item-{place}"))
        label = opened.run(f"document.getElementById('item-{place}').ariaLabel.split(',')[0]")
        assert text(opened, "effect-title") == label.replace(" ", "")
        assert changes(opened, "effect-chart", seen[-1])
        seen.append(looks(opened, "effect-chart"))
    assert len(set(seen)) == 4
    for switch in ("points", "joint"):
        opened.run("select(everyItem.find(({ subset }) => subset.length === 2).subset)")
        before = looks(opened, "effect-chart")
        opened.click(*centre(opened, f"[data-view={switch}]"))
        assert changes(opened, "effect-chart", before)
    assert opened.problems == []


def test_a_click_on_the_map_shows_the_pair(opened: Browser) -> None:
    opened.run("document.getElementById('map').scrollIntoView({ block: 'center', behavior: 'instant' })")
    opened.settle()
    # Cell 0, 1 counted from the upper left of the frame.
    x, y = opened.run(
        """(() => {
          const view = shown.get(mapChart)[0], box = view.el.getBoundingClientRect(), frame = view.frame.bbox;
          const size = mapped.length;
          return [box.x + frame.x0 + 1.5 * frame.width / size, box.y + frame.y0 + 0.5 * frame.height / size];
        })()"""
    )
    # The page opens with the strongest effect, which may be this pair.
    opened.run("select(everyItem.find(({ subset }) => subset.length === 1).subset)")
    opened.settle()
    before = looks(opened, "map")
    opened.click(x, y)
    opened.wait("state.selected.length === 2")
    assert opened.run("state.selected") == opened.run("[mapped[0], mapped[1]].sort()")
    assert changes(opened, "map", before)
    assert opened.problems == []


def test_the_keyboard_is_enough(opened: Browser) -> None:
    opened.run("document.getElementById('ranking').focus()")
    for step, key in enumerate(("ArrowDown", "ArrowDown", "ArrowUp", "End", "Home")):
        opened.press(key)
        place = [1, 2, 1, opened.run("everyItem.length") - 1, 0][step]
        assert opened.run("state.selected") == opened.run(f"everyItem[{place}].subset")
        assert opened.run("document.querySelectorAll('#ranking [aria-selected=true]').length") == 1
    opened.press("Enter")
    assert opened.run("document.activeElement.id") == "effect"
    opened.run("document.getElementById('effect-chart').focus()")
    before = text(opened, "effect-readout")
    opened.press("ArrowRight")
    assert text(opened, "effect-readout") != before
    opened.run("document.getElementById('map').focus(); cell = [0, 0]")
    opened.press("ArrowRight")
    assert opened.run("state.selected") == opened.run("subsetOf(0, 1)")
    opened.press("ArrowDown")
    assert opened.run("state.selected") == opened.run("[mapped[1]]")
    slider = opened.run(
        "(() => { const own = document.querySelector('.slide input'); own.focus(); return own.value })()"
    )
    opened.press("ArrowRight")
    assert int(opened.run("document.activeElement.value")) == int(slider) + 1
    assert opened.problems == []


def test_everything_can_be_reached_and_has_a_name(opened: Browser) -> None:
    reached = set()
    for _ in range(60):
        opened.press("Tab")
        reached.add(opened.run("document.activeElement.id || document.activeElement.className"))
    assert {"theme", "ranking", "search", "effect-chart", "map", "typical"} <= reached
    assert any(str(name).startswith("input-") for name in reached)
    unnamed = opened.run(
        """[...document.querySelectorAll("button, input, select, [tabindex='0']")].filter((own) =>
          !own.ariaLabel && !own.textContent.trim() && !own.labels?.length).map((own) => own.outerHTML)"""
    )
    assert unnamed == []


@pytest.mark.parametrize("family", ["gaussian", "bernoulli", "poisson", "gamma"])
def test_sliders_reproduce_predictions(
    browser: Browser,
    random_models: dict[str, ak.AdditiveModel],
    frame: pd.DataFrame,
    tmp_path: Path,
    family: str,
) -> None:
    model = random_models[family]
    browser.open(ak.report(model, tmp_path / "report.html"))
    rows, found = frame.iloc[[3, 50, 120]], []
    for row in rows[list(model.design.columns)].to_dict("records"):
        put(browser, row)
        found.append(predicted(browser))
        sums = browser.run(
            "[...document.querySelectorAll('#parts tr:not(.total) .amount')].reduce((total, own) =>"
            " total + Number(own.textContent.replace('−', '-').replaceAll(',', '')), 0)"
        )
        total = browser.run("model.at(state.row).link")
        assert sums == pytest.approx(total, abs=0.01 * max(1.0, abs(total)))
    # Slides to where no row is: the page tells where that is.
    browser.run(
        """(async () => {
          for (const own of document.querySelectorAll(".slide input")) {
            own.value = 700;
            own.dispatchEvent(new Event("input"));
          }
          await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        })()"""
    )
    found.append(predicted(browser))
    slid = pd.DataFrame([dict(browser.run("[...state.row]"))])
    link = model.predict(pd.concat([rows, slid]), type="link")
    wanted = model.family.inverse_link(link, np)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4 * frame[family].std())
    assert browser.problems == []


def test_inputs_stay_in_the_range_of_the_data(opened: Browser, frame: pd.DataFrame) -> None:
    put(opened, {"x1": 7})
    assert opened.run("state.row.get('x1')") == pytest.approx(frame.x1.max())
    put(opened, {"x1": ""})
    assert opened.run("state.row.get('x1')") == pytest.approx(frame.x1.max())


def test_the_prediction_has_its_interval(
    opened: Browser, fitted: ak.AdditiveModel, frame: pd.DataFrame
) -> None:
    row = frame.iloc[[7]]
    put(opened, row[list(fitted.design.columns)].to_dict("records")[0])
    wanted = fitted.predict(row, interval=0.95).iloc[0]
    band = text(opened, "result-band").replace("−", "-")
    numbers = [float(number) for number in re.findall(r"-?\d+\.?\d*", band)]
    ends = [wanted.lower, wanted.upper, wanted.predictive_lower, wanted.predictive_upper]
    assert numbers[1:] == pytest.approx(ends, rel=1e-3)


def test_parts_lead_to_their_effects(opened: Browser) -> None:
    opened.click(*centre(opened, "[data-part]"))
    wanted = opened.run("document.querySelector('[data-part]').dataset.part")
    assert opened.run("state.selected.join()") == wanted


def test_search_and_orders_narrow_the_list(opened: Browser) -> None:
    def labels() -> list[str]:
        return opened.run(
            "[...document.querySelectorAll('#ranking [role=option]')].map((own) => own.ariaLabel)"
        )

    opened.run("Object.assign(byId('search'), { value: 'X2' }).dispatchEvent(new Event('input'))")
    assert labels()
    assert all("x2" in label for label in labels())
    opened.run("[...byId('orders-filter').children].at(-1).click()")
    assert all("×" in label for label in labels())
    opened.run("Object.assign(byId('search'), { value: '<b>' }).dispatchEvent(new Event('input'))")
    assert labels() == []
    assert text(opened, "ranking-note") == "No effect matches “<b>”."


def test_light_and_dark(browser: Browser, fitted_page: Path) -> None:
    browser.open(fitted_page, dark=True)
    dark, drawn = (
        browser.run("getComputedStyle(document.body).backgroundColor"),
        looks(browser, "effect-chart"),
    )
    browser.run("document.getElementById('theme').click()")
    assert browser.run("getComputedStyle(document.body).backgroundColor") != dark
    assert changes(browser, "effect-chart", drawn)
    assert browser.problems == []


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_is_wider_than_the_window(browser: Browser, tmp_path: Path, width: int) -> None:
    browser.open(ak.report(hostile_model(), tmp_path / "report.html"), width=width)
    for _ in range(3):
        browser.settle()
        assert browser.run("document.documentElement.scrollWidth") <= width
        browser.run("select(everyItem.at(-1).subset)")
    assert browser.problems == []


def test_names_are_only_names(browser: Browser, tmp_path: Path) -> None:
    page = ak.report(hostile_model(), tmp_path / "report.html")
    browser.open(page)
    for place in range(browser.run("everyItem.length")):
        browser.run(f"select(everyItem[{place}].subset)")
        browser.settle()
    assert browser.problems == []
    assert browser.requests == [page.resolve().as_uri()]
    assert browser.run("typeof hacked") == "undefined"
    assert browser.run("document.querySelectorAll('main b, main img, main i').length") == browser.run(
        "document.querySelectorAll('.readout b, .orders b, i.swatch, i.ramp, .track i, .diverge i, .orders i').length"
    )
    assert "</script><b>hacked()</b>" in browser.run(
        "[...document.querySelectorAll('label')].map((own) => own.title)"
    )


def test_a_loaded_model_shows_all_but_rows(
    browser: Browser, fitted: ak.AdditiveModel, frame: pd.DataFrame, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "model.keras")
    browser.open(ak.report(keras.models.load_model(tmp_path / "model.keras"), tmp_path / "report.html"))
    browser.settle()
    assert browser.run("['observed-box', 'random-row'].map((id) => byId(id).hidden)") == [True, True]
    put(browser, frame.iloc[[5]][list(fitted.design.columns)].to_dict("records")[0])
    assert predicted(browser) == pytest.approx(fitted.predict(frame.iloc[[5]])[0], rel=1e-4)
    assert browser.problems == []


def test_models_with_little_to_show(browser: Browser, frame: pd.DataFrame, tmp_path: Path) -> None:
    """A single line, or a few levels."""
    for formula in ("gaussian ~ x1", "gaussian ~ group - 1"):
        model = ak.AdditiveModel(formula, frame)
        model.fit(frame, verbose=0)
        browser.open(ak.report(model, tmp_path / "report.html"))
        browser.settle()
        assert browser.run("byId('map-box').hidden") is True
        typical = pd.DataFrame([dict(browser.run("[...state.row]"))])
        assert predicted(browser) == pytest.approx(model.predict(typical)[0], rel=1e-4)
        assert browser.problems == []
