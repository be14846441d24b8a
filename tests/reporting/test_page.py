"""The file: whole or not there, small, closed to what names in the data may hold."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.reporting import arithmetic, page
from tests.decomposition.conftest import build, random_model

LIMIT = 5_000_000


def contents_in(path: Path) -> dict[str, Any]:
    found = re.search(
        r'<script type="application/json" id="contents">(.*?)</script>', path.read_text(), re.S
    )
    assert found is not None
    return json.loads(found[1])


def test_a_report_is_one_file(fitted: ak.AdditiveModel, tmp_path: Path) -> None:
    path = ak.report(fitted, tmp_path / "new" / "report.html", title="Rents & <b>ages</b>")
    assert [own.name for own in path.parent.iterdir()] == ["report.html"]
    text = path.read_text()
    assert "<title>Rents &amp; &lt;b&gt;ages&lt;/b&gt;</title>" in text
    assert contents_in(path)["title"] == "Rents & <b>ages</b>"
    tags = re.findall(r"<(?:link|img|iframe|script)\b[^>]*\b(?:src|href)=[^>]*>", text)
    assert tags == ['<link rel="icon" href="data:,">']
    ak.report(fitted, path, rows=0)
    assert contents_in(path)["title"] == "How gaussian depends on 6 features"


def test_only_its_own_scripts_may_run(fitted_page: Path) -> None:
    text = fitted_page.read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    scripts = re.findall(r"<script>(.*?)</script>", text, re.S)
    assert len(scripts) == 2
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy[1]
    assert "unsafe" not in policy[1].replace("style-src 'unsafe-inline'", "")


def test_names_cannot_leave_their_place(tmp_path: Path) -> None:
    path = ak.report(hostile_model(), tmp_path / "report.html")
    before, _, after = path.read_text().partition('id="contents">')
    inside = after.partition("</script>")[0]
    assert "hacked" in inside
    for outside in (
        before.replace("<title>", "").partition("</h1>")[2],
        after.partition("</script>")[2],
    ):
        assert "hacked" not in outside
    assert "<" not in inside


def hostile_model() -> ak.AdditiveModel:
    """Names and levels that try to get out of the page's script, a chart's text or an object's keys."""
    rng = np.random.default_rng(0)
    names = [
        "</script><b>hacked()</b>",
        "$$\\frac{hacked}{2}$$",
        "__proto__",
        '"><img src=x onerror=hacked()>',
    ]
    data = pd.DataFrame(rng.normal(size=(80, 3)), columns=names[:3])
    data[names[3]] = rng.choice(["<script>hacked()</script>", "$$x^2$$", "@@title@@", "constructor"], 80)
    data["<i>y</i>"] = rng.normal(size=80)
    quoted = ", ".join(f"Q({json.dumps(name)})" for name in names)
    return random_model(f'Q("<i>y</i>") ~ ahofm({quoted}, D=2, F=2)', data)


def test_small_enough_with_thirty_features(tmp_path: Path) -> None:
    """The page without a posterior, and the largest posterior that a page takes, together."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(size=(300, 30))).add_prefix("a rather long name of a feature ")
    data["y"] = rng.normal(size=300)
    quoted = ", ".join(f'Q("{name}")' for name in data.columns[:-1])
    model = random_model(f"y ~ ahofm({quoted}, D=3, F=5)", data)
    size = ak.report(model, tmp_path / "report.html").stat().st_size
    assert size < 2_500_000
    assert size + arithmetic._MOST_COVARIANCES * 4 * 4 / 3 + 50_000 < LIMIT


# Bad input -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("report.txt", "is an `.html` file"),
        ("report", "is an `.html` file"),
        (3, "must name a file"),
        ("", "must name a file"),
        ("folder.html", "is a folder"),
    ],
)
def test_bad_paths(
    fitted: ak.AdditiveModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Any, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(ak.DataError, match=message):
        ak.report(fitted, path)
    assert [own.name for own in tmp_path.iterdir()] == ["folder.html"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": -1}, "`rows` must be a whole number"),
        ({"rows": True}, "`rows` must be a whole number"),
        ({"level": 1}, "`level` must lie between 0 and 1"),
        ({"level": float("nan")}, "`level` must lie between 0 and 1"),
        ({"level": "0.9"}, "`level` must lie between 0 and 1"),
        ({"title": 3}, "`title` must be a text"),
        ({"data": pd.DataFrame({"x1": [1.0]})}, "Column `x3` is missing"),
    ],
)
def test_bad_arguments(
    fitted: ak.AdditiveModel, tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ak.DataError, match=message):
        ak.report(fitted, tmp_path / "report.html", **arguments)
    assert not list(tmp_path.iterdir())


def test_data_without_its_response(
    fitted: ak.AdditiveModel, frame: pd.DataFrame, tmp_path: Path
) -> None:
    with pytest.raises(ak.DataError, match="gaussian"):
        ak.report(fitted, tmp_path / "report.html", frame.drop(columns="gaussian"))


def test_a_model_that_was_never_fitted(frame: pd.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(ak.NotFittedError, match="not fitted"):
        ak.report(build("gaussian ~ s(x1)", frame), tmp_path / "report.html")
    with pytest.raises(ak.DataError, match="AdditiveModel"):
        ak.report(frame, tmp_path / "report.html")  # type: ignore[arg-type]


def test_without_the_plotting_library(
    fitted: ak.AdditiveModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bokeh", None)
    with pytest.raises(ImportError, match=r"ahofm_keras\[report\]"):
        ak.report(fitted, tmp_path / "report.html")


def test_an_interrupted_report_leaves_the_old_page(
    fitted: ak.AdditiveModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    path.write_text("before")
    monkeypatch.setattr(page, "fill_page", lambda *_: "\ud800")  # has no UTF-8
    with pytest.raises(UnicodeEncodeError):
        ak.report(fitted, path)
    assert [own.read_text() for own in tmp_path.iterdir()] == ["before"]
