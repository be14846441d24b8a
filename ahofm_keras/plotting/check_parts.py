"""What pictures of a `Check` share: points or densities of rows, their trend, a panel of nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from ahofm_keras.diagnostics import Check
from ahofm_keras.diagnostics.curves import trend_frame
from ahofm_keras.errors import DataError
from ahofm_keras.plotting.theme import BLUE, SEQUENTIAL, SOFT, TEXT, VERMILLION, log_axis
from ahofm_keras.texts import shorten

PANEL = (4.1, 3.5)
# More rows than this are shown as a density.
_SCATTER_ROWS = 1500
_HEXAGONS = 38
_LEAST_TREND_ROWS = 20
# In the stead of panels that need to know how likely responses are.
NO_CHANCES = "no distribution is predicted"


def check_argument(check: Any) -> None:
    """Raise where it is no `Check`."""
    if not isinstance(check, Check):
        raise DataError(
            f"A `Check` is needed: `plot_check(check(model))`. Received: {type(check).__name__}."
        )


def is_log(check: Check, *values: np.ndarray) -> bool:
    """Whether axes of the response are logarithmic: as the link is, where no value is 0."""
    return check.link.partition(",")[0] == "log" and all(v.min() > 0 for v in values)


def cloud(ax: Any, x: np.ndarray, y: np.ndarray, log_x: bool, log_y: bool) -> None:
    """Rows as points, or as a density where they are many."""
    if len(x) <= _SCATTER_ROWS:
        size = 14 if len(x) <= 300 else 7
        ax.scatter(x, y, s=size, color=BLUE, alpha=0.45, linewidth=0, rasterized=len(x) > 500)
    else:
        ax.hexbin(
            x,
            y,
            gridsize=(_HEXAGONS, int(_HEXAGONS / 1.6)),
            bins="log",
            mincnt=1,
            cmap=SEQUENTIAL,
            xscale="log" if log_x else "linear",
            yscale="log" if log_y else "linear",
            linewidths=0.1,
            edgecolors="face",
        )
    if log_x:
        log_axis(ax, "x")
    if log_y:
        log_axis(ax, "y")


def draw_trend(
    ax: Any, fitted: np.ndarray, values: np.ndarray, log: bool, mean: float = 0.0, sd: float = 1.0
) -> str:
    """The trend of values of one mean and deviation, and how far it strays by chance; in words."""
    if len(fitted) < _LEAST_TREND_ROWS or np.ptp(fitted) == 0:
        return ""
    trend = trend_frame(np.log(fitted) if log else fitted, values)
    x, reach = np.exp(trend["fitted"]) if log else trend["fitted"], sd * trend["reach"]
    ax.plot(x, mean + reach, x, mean - reach, color=SOFT, linewidth=0.9, linestyle=(0, (4, 2)))
    ax.plot(x, trend["trend"], color=VERMILLION, linewidth=2.0)
    return "thick: trend; dashed: its 95% range if the model is right"


def has_chances(check: Check) -> bool:
    """Whether the model says how likely responses are, so that there are quantile residuals."""
    return not check.residuals["quantile"].isna().any()


def name_of_fitted(check: Check) -> str:
    """What the axis of fitted values is called."""
    if check.censored:
        return "fitted hazard ratio"
    return f"fitted {shorten(check.response, 30)}"


def nothing(ax: Any, text: str) -> Any:
    """A panel without a picture, and why."""
    ax.set_axis_off()
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", color=SOFT, fontsize=TEXT)
    return ax
