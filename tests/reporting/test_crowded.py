"""The page of thirty features with long names, on a phone and on a desk."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

import ahofm_keras as ak
from tests.plotting.crowded import RESPONSE, crowded_frame, crowded_model, names_of
from tests.reporting.browser import Browser

NAMES = names_of(30)
# Labels of the axes of a chart, their lengths, and those of the sides of their figures.
LABELS = """(() => {{
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "12.5px " + getComputedStyle(document.body).fontFamily;
  return shown.get(byId("{chart}")).flatMap((view) => [
    [view.model.xaxes[0].axis_label, view.el.clientWidth],
    [view.model.yaxes[0].axis_label, view.model.height],
  ]).filter(([label]) => label !== null)
    .map(([label, room]) => [label.text, pen.measureText(label.text).width, room]);
}})()"""


@pytest.fixture(scope="module")
def crowded_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = crowded_model(crowded_frame())
    return ak.report(model, tmp_path_factory.mktemp("crowded") / "report.html")


@pytest.fixture(params=[390, 1280])
def opened(request: pytest.FixtureRequest, browser: Browser, crowded_page: Path) -> Browser:
    browser.open(crowded_page, width=request.param)
    browser.settle()
    return browser


def select(browser: Browser, *names: str) -> None:
    subset = f"{list(names)!r}.map((name) => model.variables.findIndex((own) => own.name === name)).sort((a, b) => a - b)"
    browser.run(f"select({subset})")
    browser.settle()


def test_nothing_is_wider_than_the_window(opened: Browser) -> None:
    for names in (NAMES[:1], NAMES[:2], NAMES[:3], NAMES[28:30], (NAMES[0], NAMES[28])):
        select(opened, *names)
        assert opened.run("document.documentElement.scrollWidth <= window.innerWidth") is True
    assert opened.problems == []


@pytest.mark.parametrize(
    "place", ["#ranking .name", ".input label", "#parts button", "#parts th > span"]
)
def test_names_in_lists_are_whole(opened: Browser, place: str) -> None:
    """None is cut off: the two names of a pair differ from those of other pairs at their ends."""
    cut = opened.run(
        f"[...document.querySelectorAll('{place}')].filter((own) => own.scrollWidth > own.clientWidth + 1).length"
    )
    assert opened.run(f"document.querySelectorAll('{place}').length") > 0
    assert cut == 0


@pytest.mark.parametrize("names", [NAMES[:1], NAMES[:2], NAMES[:3], (NAMES[0], NAMES[28])])
@pytest.mark.parametrize("chart", ["effect-chart", "observed"])
def test_labels_of_axes_fit_their_figures(opened: Browser, names: list[str], chart: str) -> None:
    select(opened, *names)
    labels = opened.run(LABELS.format(chart=chart))
    assert len(labels) > 1
    for text, width, room in labels:
        assert width < room, text


def test_names_of_levels_differ(opened: Browser) -> None:
    for names in ([NAMES[28]], (NAMES[0], NAMES[28])):
        select(opened, *names)
        texts = opened.run(
            "[...shown.get(byId('effect-chart'))[0].model.yaxes[0].major_label_overrides.values()].map((own) => own.text)"
        )
        assert len(texts) == 20
        assert len(set(texts)) == 20


def test_names_of_the_map_do_not_overlap(opened: Browser) -> None:
    texts, size, height = opened.run(
        "(() => { const [view] = shown.get(byId('map')), axis = view.model.yaxes[0];"
        " return [[...axis.major_label_overrides.values()].map((own) => own.text),"
        " parseFloat(axis.major_label_text_font_size), view.frame.bbox.height]; })()"
    )
    named = [place for place, text in enumerate(texts) if text]
    step = min(second - first for first, second in pairwise(named))
    assert len(texts) == 30
    assert step * height / 30 >= size


def test_features_and_pairs_of_the_map_have_one_scale(opened: Browser) -> None:
    ends = opened.run("[...byId('map-legend').children].map((own) => own.lastChild.textContent)")
    assert len(ends) == 2
    assert ends[0] == ends[1]


def test_long_names_break_after_underscores(opened: Browser) -> None:
    assert opened.run("byId('title').textContent").startswith(f"How {RESPONSE} depends")
    assert opened.run("byId('title').querySelectorAll('wbr').length") == RESPONSE.count("_")
    assert opened.run("document.querySelectorAll('option wbr').length") == 0
