"""Ticks of axes: as many as have room side by side, and plain numbers at them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ahofm_keras.plotting.texts import even_numbers
from ahofm_keras.texts import number

# Width of a figure, and the gap between two labels, by the size of the letters.
_FIGURE, _GAP = 0.64, 0.8
_MOST = 9


def plain_ticks(axis: Any, size: float) -> None:
    """Numbers with all their digits at the ticks of a linear axis, not too many to stand side by side.

    Matplotlib's own ticks take a common factor such as `1e6` out of the numbers and write it where the
    label of the axis stands, and count on labels that are three letters long.

    Args:
        axis: of matplotlib.
        size: of the letters, in points.
    """
    linear, _, plain = _kinds()
    if axis.axis_name == "x":
        axis.set_major_locator(linear(size))
    axis.set_major_formatter(plain())


def log_ticks(axis: Any, size: float) -> None:
    """The same for an axis that is logarithmic."""
    from matplotlib import ticker

    axis.set_major_locator(_kinds()[1](size))
    axis.set_major_formatter(lambda value, _: number(value))
    axis.set_minor_formatter(ticker.NullFormatter())


def has_room(axis: Any, places: np.ndarray, texts: list[str], size: float) -> bool:
    """Whether labels have room side by side along a horizontal axis.

    Args:
        axis: of matplotlib.
        places: of the labels, as parts of the axis, ascending.
        texts: of the labels.
        size: of the letters.
    """
    if axis is None or axis.axis_name != "x" or len(texts) < 2:
        return True
    length = axis.axes.bbox.width / axis.axes.figure.dpi * 72
    width = np.array([_FIGURE * size * len(text) for text in texts])
    return bool(np.all(np.diff(places) * length >= (width[:-1] + width[1:]) / 2 + _GAP * size))


@cache
def _kinds() -> tuple[Any, Any, Any]:
    """Matplotlib's classes with our rules; made here, because matplotlib may not be installed."""
    from matplotlib import ticker

    class Linear(ticker.MaxNLocator):
        """Fewer ticks where their labels are long."""

        def __init__(self, size: float) -> None:
            self._size, self._most = size, _MOST
            super().__init__(nbins=_MOST, steps=[1, 2, 2.5, 5, 10])

        def set_params(self, **changes: Any) -> None:
            self._most = changes.get("nbins", self._most)
            super().set_params(**changes)

        def tick_values(self, vmin: float, vmax: float) -> Any:
            for most in range(self._most, 0, -1):
                super().set_params(nbins=most)
                found = np.asarray(super().tick_values(vmin, vmax))
                seen = found[(found >= min(vmin, vmax)) & (found <= max(vmin, vmax))]
                places = (seen - min(vmin, vmax)) / (abs(vmax - vmin) or 1.0)
                if has_room(self.axis, places, even_numbers(seen), self._size):
                    break
            return found

    class Log(ticker.LogLocator):
        """1, 2 and 5 of each decade where there is room, else some of the decades."""

        def __init__(self, size: float) -> None:
            self._size = size
            super().__init__()

        def tick_values(self, vmin: float, vmax: float) -> Any:
            low, high = sorted((vmin, vmax))
            if not low > 0:
                return super().tick_values(vmin, vmax)
            decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
            few = [np.outer(decades, subs).reshape(-1) for subs in ((1, 2, 5), (1, 3))]
            for found in (*few, *(decades[::every] for every in range(1, len(decades)))):
                seen = found[(found >= low) & (found <= high)]
                places = np.log(seen / low) / (np.log(high / low) or 1.0)
                texts = [number(own) for own in seen]
                if len(seen) <= _MOST and has_room(self.axis, places, texts, self._size):
                    return seen
            return seen

    class Plain(ticker.Formatter):
        """Numbers with the digits that their step needs."""

        def __call__(self, value: float, place: int | None = None) -> str:
            return number(value)

        def format_ticks(self, values: Any) -> list[str]:
            return even_numbers(np.asarray(values, float))

    return Linear, Log, Plain
