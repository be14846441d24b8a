"""Write below each code block of the pages what it prints, and into docs/images what it draws.

    python docs/refresh.py              all pages
    python docs/refresh.py quickstart   one
    python docs/refresh.py --exact      what differs in a digit too

The tests hold the pages against their code, to a few per cent; this puts the two together again after a
change. Figures that differ by less stay, unless they are to agree with each other on a page again.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import matplotlib.pyplot as plt
from PIL import Image

from tests.docs.pages import DOCS, PAGES, Example, difference, read_examples, run_example

DPI = 120
COLOURS = 48


def refresh(page: Path, exact: bool = False) -> None:
    """Run a page, then rewrite what it shows."""
    namespace: dict[str, Any] = {}
    lines = page.read_text().split("\n")
    written: list[tuple[Example, str]] = []
    for example in read_examples(page):
        printed = run_example(example, page, namespace)
        if example.shown and _differ(example.shown.text, printed, exact):
            written.append((example, printed))
        if example.picture:
            save_picture(DOCS / example.picture.text)
        plt.close("all")
    for example, printed in reversed(written):
        assert example.shown is not None
        if "..." in example.shown.text:
            print(f"{page.name}, line {example.shown.line + 1}: `...` was written out")
        body = [line.rstrip() for line in printed.rstrip("\n").split("\n")]
        lines[example.shown.line + 1 : example.shown.end - 1] = body
    page.write_text("\n".join(lines))


def _differ(shown: str, printed: str, exact: bool) -> bool:
    if not exact or "..." in shown:
        return bool(difference(shown, printed))
    return [line.rstrip() for line in shown.split("\n")] != [
        line.rstrip() for line in printed.rstrip("\n").split("\n")
    ]


def save_picture(path: Path) -> None:
    """The current figure as a small PNG of few colours."""
    path.parent.mkdir(parents=True, exist_ok=True)
    plt.gcf().savefig(path, dpi=DPI)
    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


def main(names: list[str], exact: bool) -> None:
    """Refresh the pages of these names, or all; each in a process of its own.

    A page may register a term or a family, which the messages on others would then name.
    """
    pages = [page for page in PAGES if (not names or page.stem in names) and read_examples(page)]
    if len(pages) > 1:
        for page in pages:
            options = ["--exact"] if exact else []
            subprocess.run([sys.executable, __file__, page.stem, *options], check=True)
        return
    for page in pages:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            refresh(page, exact)
            os.chdir(DOCS)
        print(page.name, flush=True)


if __name__ == "__main__":
    given = sys.argv[1:]
    main([name for name in given if name != "--exact"], "--exact" in given)
