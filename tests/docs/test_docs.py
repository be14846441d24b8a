"""Every code block of the pages runs, prints and draws what the page shows, and every link leads somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ahofm_keras as ak
from ahofm_keras.families import FAMILIES
from ahofm_keras.formula import TERM_CALLS
from ahofm_keras.terms import TERMS
from tests.docs.links import broken_links
from tests.docs.pages import DOCS, PAGES, ROOT, check_blocks, difference, read_examples, run_example

README = ROOT / "README.md"
LARGEST_PICTURE = 80_000


def names(page: Path) -> str:
    return page.stem


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    # What a page registers is its own.
    registries: list[dict[str, Any]] = [FAMILIES, TERMS, TERM_CALLS]
    before = [dict(registry) for registry in registries]
    yield tmp_path
    for registry, known in zip(registries, before, strict=True):
        registry.clear()
        registry.update(known)


@pytest.mark.usefixtures("shipped_starts", "workplace")  # a page shows what its readers get
@pytest.mark.parametrize("page", [page for page in PAGES if read_examples(page)], ids=names)
def test_the_code_runs_and_shows_what_the_page_shows(page: Path) -> None:
    import matplotlib.pyplot as plt

    namespace: dict[str, object] = {}
    for example in read_examples(page):
        printed = run_example(example, page, namespace)
        place = f"{page.name}, line {example.code.line + 1}"
        if example.shown:
            wrong = difference(example.shown.text, printed)
            assert not wrong, f"{place}: {wrong}. Printed was:\n{printed}"
        if example.picture:
            assert plt.get_fignums(), f"{place}: nothing was drawn for {example.picture.text}."
        plt.close("all")


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_blocks_that_are_not_run_can_be_read(page: Path) -> None:
    check_blocks(page)


@pytest.mark.parametrize("page", [*PAGES, README, ROOT / "CHANGELOG.md"], ids=names)
def test_links_and_pictures_are_there(page: Path) -> None:
    assert broken_links(page) == []


def test_every_page_is_in_the_contents() -> None:
    index = (DOCS / "index.md").read_text()
    listed = {
        line.strip()
        for block in re.findall(r"```{toctree}(.*?)```", index, re.S)
        for line in block.split("\n")
    }
    assert {page.stem for page in PAGES} - {"index"} <= listed


def test_every_public_name_is_in_the_reference() -> None:
    page = (DOCS / "api.md").read_text()
    documented = set(re.findall(r"^\.\. auto\w+:: (\w+)(?:\(.*\))?$", page, re.MULTILINE))
    assert set(ak.__all__) - {"__version__"} <= documented


def test_pictures_are_small() -> None:
    made = [path for path in DOCS.glob("images/*/*.png") if path.parent.name not in ("paper", "gallery")]
    assert made
    assert [path.name for path in made if path.stat().st_size > LARGEST_PICTURE] == []
