"""Tables and figures in Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

_WIDEST = 1100
_COLOURS = 256
_LINE = 105


@dataclass(frozen=True)
class Results:
    """The outputs of all experiments, and where the page's pictures go.

    Args:
        folder: of the experiments' tables and figures.
        images: folder of the page's pictures.
        relative: path from the page to that folder.
    """

    folder: Path
    images: Path
    relative: str

    def table(self, name: str) -> pd.DataFrame:
        return pd.read_csv(self.folder / f"{name}.csv")

    def figure(self, name: str, text: str) -> str:
        """Copy a figure, made small for the page, and link it."""
        self.images.mkdir(parents=True, exist_ok=True)
        shrink(self.folder / f"{name}.png", self.images / f"{name}.png")
        return f"![{text}]({self.relative}/{name}.png)"


def shrink(source: Path, target: Path) -> None:
    """Copy a picture, no wider than a page and with few colours. Pillow comes with matplotlib."""
    from PIL import Image

    with Image.open(source) as image:
        small = image.convert("RGB")
    if small.width > _WIDEST:
        height = round(small.height * _WIDEST / small.width)
        small = small.resize((_WIDEST, height), Image.Resampling.LANCZOS)
    small.quantize(_COLOURS).save(target, optimize=True)


def wrap(page: str) -> str:
    """Break the lines of paragraphs anew; tables, lists, headings and pictures stay as they are."""
    blocks = page.strip("\n").split("\n\n")
    plain = ("|", "#", "-", "!")
    wrapped = [
        block
        if block.lstrip().startswith(plain)
        else textwrap.fill(
            " ".join(block.split()), _LINE, break_long_words=False, break_on_hyphens=False
        )
        for block in blocks
        if block.strip()
    ]
    return "\n\n".join(block.strip("\n") for block in wrapped) + "\n"


def number(value: Any, digits: int = 3) -> str:
    """A number to some significant digits, without an exponent if large; a text as it is."""
    if isinstance(value, str):
        return value
    if pd.isna(value):
        return ""
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    text = f"{value:.{digits}g}"
    return f"{float(text):,.0f}" if "e+" in text else text


def markdown(
    table: pd.DataFrame,
    names: Mapping[str, str],
    formats: Mapping[str, Callable[[Any], str]] | None = None,
) -> str:
    """Some columns of a table, under other names.

    Args:
        table: any.
        names: column -> heading; columns that the table lacks are left out.
        formats: column -> how a value is written.
    """
    shown = [column for column in names if column in table]
    formats = formats or {}
    right = [pd.api.types.is_numeric_dtype(table[column]) for column in shown]
    lines = ["| " + " | ".join(names[column] for column in shown) + " |"]
    lines.append("|" + "|".join("---:" if own else "---" for own in right) + "|")
    for row in table[shown].itertuples(index=False):
        cells = [formats.get(column, number)(value) for column, value in zip(shown, row, strict=True)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
