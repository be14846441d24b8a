"""What all stories share: their command line, and the frame of their picture."""

from __future__ import annotations

import argparse
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
from PIL import Image

# Colours of Okabe and Ito: told apart by all kinds of colour vision.
BLUE, VERMILLION, GREY, INK = "#0072B2", "#D55E00", "#8C8C8C", "#262626"
SOLID, DASHED, DOTTED = "-", (0, (5, 2)), (0, (1, 1))
STYLE = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#6B6B6B",
    "axes.linewidth": 0.8,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "hatch.color": "#BDBDBD",
    "hatch.linewidth": 0.5,
}


@dataclass(frozen=True)
class Telling:
    """How a story is to be told: in seconds on little data, or in full; and where its files go."""

    quick: bool
    out: Path

    @property
    def restarts(self) -> int | str:
        """Of a fit: one start has to do in a quick form."""
        return 0 if self.quick else "auto"


def read_arguments(story: str) -> Telling:
    """`--quick` and `--out`; the folder is made. Pictures go to files, not to windows."""
    parser = argparse.ArgumentParser(description=story, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="less data and smaller models: seconds")
    parser.add_argument("--out", type=Path, default=Path("gallery"), help="folder of the picture")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    mpl.use("Agg")
    return Telling(given.quick, given.out)


@contextmanager
def picture(
    path: Path, title: str, size: tuple[float, float], mosaic: str | None = None, **options: Any
) -> Iterator[Any]:
    """Axes to draw on; at the end the picture is written with few colours, which keeps it small.

    Args:
        path: of the PNG file.
        title: of the whole.
        size: in inches.
        mosaic: as `plt.subplot_mosaic` takes it: the axes are then a dict.
        options: of `plt.subplots` or `plt.subplot_mosaic`.
    """
    options |= {"figsize": size, "layout": "constrained"}
    with plt.rc_context(STYLE):
        figure, axes = plt.subplot_mosaic(mosaic, **options) if mosaic else plt.subplots(**options)
        figure.get_layout_engine().set(w_pad=0.1, h_pad=0.08)
        figure.suptitle(title, fontsize=13, fontweight="bold", x=0.01, ha="left")
        yield axes
        drawn = io.BytesIO()
        figure.savefig(drawn, dpi=130)
        plt.close(figure)
    Image.open(drawn).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"\nPicture: {path}")


def draw_band(ax: Any, x: Any, band: pd.DataFrame, colour: str, dash: Any, label: str) -> None:
    """A curve `mean` with the band from `lower` to `upper`, as `predict(interval=...)` gives them."""
    ax.fill_between(x, band["lower"], band["upper"], color=colour, alpha=0.2, linewidth=0)
    ax.plot(x, band["mean"], color=colour, linestyle=dash, linewidth=2, label=label)


def draw_truth(ax: Any, x: Any, y: Any, label: str | None = None) -> None:
    """A thin dotted line in black."""
    ax.plot(x, y, color=INK, linestyle=DOTTED, linewidth=1.3, label=label)
