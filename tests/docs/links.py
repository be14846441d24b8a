"""Links and pictures of Markdown pages that lead nowhere."""

from __future__ import annotations

import re
from pathlib import Path

_FENCED = re.compile(r"^(`{3,})(.*?)^\1", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,3} (.+)$", re.MULTILINE)
_LABEL = re.compile(r"^\(([\w-]+)\)=$", re.MULTILINE)


def broken_links(page: Path) -> list[str]:
    """Targets of a page's links and pictures that are no file beside it, or no heading of that file."""
    text = _CODE.sub("", _FENCED.sub("", page.read_text()))
    inside = [target for target in _LINK.findall(text) if "://" not in target]
    return [target for target in inside if not _is_there(page, target)]


def _is_there(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    file = page if not path else page.parent / path
    if not file.exists():
        return False
    return not anchor or anchor in anchors(file)


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings down to the third level, as GitHub and MyST name them, and labels.

    Example:
        >>> import tempfile
        >>> page = Path(tempfile.mkdtemp()) / "page.md"
        >>> _ = page.write_text("# `s()`: one smooth, of x")
        >>> anchors(page)
        {'s-one-smooth-of-x'}
    """
    text = _FENCED.sub("", page.read_text())
    return {_slug(heading) for heading in _HEADING.findall(text)} | set(_LABEL.findall(text))


def _slug(heading: str) -> str:
    letters = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return letters.replace(" ", "-")
