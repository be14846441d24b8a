"""`report()`: one self-contained HTML page of a fitted model."""

from __future__ import annotations

import base64
import hashlib
import html
import os
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from ahofm_keras.decomposition.names import check_count
from ahofm_keras.decomposition.parts import check_readable, readable
from ahofm_keras.errors import DataError
from ahofm_keras.model import AdditiveModel
from ahofm_keras.model.arguments import check_level
from ahofm_keras.reporting.contents import collect
from ahofm_keras.reporting.encoding import to_json
from ahofm_keras.storage import written_whole

_ASSETS = files("ahofm_keras.reporting") / "assets"
# In the order in which they build on each other.
_SCRIPTS = (
    "arithmetic.js",
    "uncertainty.js",
    "outcome.js",
    "page.js",
    "charts.js",
    "effect.js",
    "curves.js",
    "surfaces.js",
    "pairs.js",
    "places.js",
    "ranking.js",
    "map.js",
    "inputs.js",
    "survival.js",
    "predict.js",
    "fit.js",
    "chapters.js",
    "start.js",
)
_BOKEH = ("bokeh.min.js", "bokeh-api.min.js")


def report(
    model: AdditiveModel,
    path: str | os.PathLike[str] = "report.html",
    data: Any = None,
    *,
    title: str | None = None,
    rows: int = 400,
    level: float = 0.95,
    parameter: str | None = None,
) -> Path:
    """Write a page that shows a fitted model to people who do not write Python.

    One HTML file that needs no network: what the model is and how well it does, all effects ranked, the
    map of interactions, each effect with the data behind it, and a prediction that follows its inputs.
    Needs the extra `report` (`pip install "ahofm_keras[report]"`).

    Args:
        model: fitted.
        path: of the page; a page that is there is replaced.
        data: rows with their response, held out from the fit say, that the model is measured on; by
            default those of the fit, as far as the model still knows them.
        title: headline.
        rows: rows whose values enter the page as points, at most. With 0 it holds no row of the data,
            only quantiles, frequencies and ranges.
        level: of bands and intervals.
        parameter: of the family, whose predictor alone is shown. By default the page of a model with
            several predictors has a tab for each.

    Returns:
        The path.

    Raises:
        DataError: a bad path, argument or data.
        NotFittedError: a model that was never fitted.
        ImportError: the extra is not installed.
    """
    check_readable(model)
    model = model if parameter is None else readable(model, parameter)
    target = _check_path(path)
    _check_arguments(title, rows, level)
    library = _read_bokeh()
    contents = collect(model, data, title, rows, level)
    page = fill_page(contents, library)
    with written_whole(target) as fresh:
        fresh.write_text(page, encoding="utf-8")
    return target


def fill_page(contents: dict[str, Any], library: str) -> str:
    """The page's text.

    Only the scripts whose hashes are named may run, and nothing may be fetched: names from the data can
    neither run nor load anything, even if they got out of their place.
    """
    own = "\n".join((_ASSETS / name).read_text("utf-8") for name in _SCRIPTS)
    policy = (
        f"default-src 'none'; script-src {_hash(library)} {_hash(own)}; style-src 'unsafe-inline'; "
        "img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'"
    )
    pieces = {
        "title": html.escape(contents["title"]),
        "policy": policy,
        "style": (_ASSETS / "style.css").read_text("utf-8"),
        "contents": to_json(contents),
        "library": library,
        "script": own,
    }
    # Split first: what is filled in may hold a mark itself.
    texts = (_ASSETS / "page.html").read_text("utf-8").split("@@")
    return "".join(pieces[text] if place % 2 else text for place, text in enumerate(texts))


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _read_bokeh() -> str:
    """The plotting library's JavaScript, from its Python package."""
    try:
        folder = files("bokeh") / "server" / "static" / "js"
    except ModuleNotFoundError:
        raise ImportError(
            'A report needs Bokeh: `pip install "ahofm_keras[report]"` or `pip install bokeh`.'
        ) from None
    text = "\n".join((folder / name).read_text("utf-8") for name in _BOKEH)
    # A browser's tools would look for these files.
    text = re.sub(r"^//# sourceMappingURL=.*$", "", text, flags=re.MULTILINE)
    # Old parsers end a script at this text even inside a string.
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _check_path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise DataError(f"`path` must name a file, e.g. 'report.html'. Received: {path!r}.")
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise DataError(f"A report is an `.html` file. Received: {str(path)!r}.")
    return target


def _check_arguments(title: Any, rows: Any, level: Any) -> None:
    if title is not None and not isinstance(title, str):
        raise DataError(f"`title` must be a text. Received: {title!r}.")
    check_count("rows", rows, 0, none=False)
    check_level("level", level)
