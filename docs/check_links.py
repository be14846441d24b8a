"""Check the built site: its links, anchors and pictures are there, and no page needs the network.

    python docs/check_links.py docs/_build/html

Links to other sites are listed, not followed: a build works offline.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Links, anchors and loaded files of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.anchors: set[str] = {""}
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Sort the addresses of a tag."""
        found = {name: value for name, value in attrs if value}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.add(found["href"])
        elif tag == "link" and found.get("rel") in ("stylesheet", "preload", "icon", "shortcut icon"):
            self.loads.add(found.get("href", ""))
        elif "src" in found:
            self.loads.add(found["src"])


def check(root: Path) -> tuple[list[str], list[str]]:
    """What is wrong with a site, and the addresses outside it."""
    pages = {path.resolve(): Page(path) for path in sorted(root.rglob("*.html"))}
    wrong: list[str] = []
    outside: set[str] = set()
    for path, page in pages.items():
        name = path.relative_to(root.resolve())
        for address in sorted(page.links | page.loads):
            parts = urlsplit(address)
            if parts.scheme in ("data", "mailto", "javascript"):
                continue
            if parts.netloc:
                if address in page.loads:
                    wrong.append(f"{name}: loads {address}")
                outside.add(address)
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                wrong.append(f"{name}: {address} is not there")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                wrong.append(f"{name}: {address} has no such anchor")
    return wrong, sorted(outside)


def main(folder: str) -> int:
    """Print what was found; 1 where something is wrong."""
    root = Path(folder)
    wrong, outside = check(root)
    for address in outside:
        print(f"outside, not followed: {address}")
    for line in wrong:
        print(f"WRONG {line}", file=sys.stderr)
    print(f"{len(list(root.rglob('*.html')))} pages, {len(wrong)} broken links")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
