"""Numbers, shares and long names as short texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ahofm_keras.texts import number, percent, shorten, true_minus

_SEPARATORS = r" _:.\-/"
# What explains less of the variance is called negligible.
NEGLIGIBLE = 1e-4
_ZERO = 1e-10
# Digits before an `e`, beyond which a number is written out: ticks must differ from each other.
_MOST_DIGITS = 3


def share_text(share: float, words: bool = True) -> str:
    """A share beside a title; what is next to nothing is called that.

    Example:
        >>> share_text(0.343), share_text(0.343, words=False), share_text(2e-6, words=False)
        ('34% of variance', '34%', 'negligible')
    """
    if _ZERO < share < NEGLIGIBLE:
        return f"negligible: {percent(share)} of variance" if words else "negligible"
    return f"{percent(share)} of variance" if words else percent(share)


def signed(value: float, figures: int = 3) -> str:
    """A number with its sign, whatever it is."""
    text = number(value, figures)
    return text if text.startswith("−") or text == "0" else f"+{text}"


def even_numbers(values: np.ndarray) -> list[str]:
    """Evenly spaced numbers, all with the digits that their step needs.

    Example:
        >>> even_numbers(np.array([-0.5, 0.0, 0.5])), even_numbers(np.array([2.2e6, 2.4e6]))
        (['−0.5', '0.0', '0.5'], ['2.2e6', '2.4e6'])
    """
    values = np.asarray(values, float)
    step = abs(float(values[1] - values[0])) if len(values) > 1 else float(np.abs(values).max(initial=0))
    if not np.isfinite(step) or step == 0:
        return [number(value) for value in values]
    # Decimals of the step: below 0 for tens and hundreds.
    digits = -int(np.floor(np.log10(step) + 1e-9))
    if abs(step * 10.0**digits - round(step * 10.0**digits)) > 1e-6:
        digits += 1
    largest = float(np.abs(values).max())
    power = int(np.floor(np.log10(largest)))
    if (power >= 6 or power < -3) and 0 <= power + digits <= _MOST_DIGITS:
        texts = [f"{value / 10.0**power:.{power + digits}f}e{power}" for value in values]
        rounding = 1e-9 * largest
        return [
            "0" if abs(value) < rounding else true_minus(own)
            for value, own in zip(values, texts, strict=True)
        ]
    digits = max(digits, 0)
    return [true_minus(f"{value + 0.0:,.{digits}f}") for value in np.round(values, digits)]


def level_name(value: Any, width: int = 26) -> str:
    """A level of a category, as short as asked for."""
    return shorten(str(value), width)


def shorten_apart(names: Sequence[str], width: int) -> list[str]:
    """Names of at most so many letters that still differ from each other, where that is possible.

    Words that all names begin with tell nothing: as many as need be are left out first, then the middle
    of each name.
    Where that leaves the same letters of two names, more is kept of their ends or of their beginnings.

    Example:
        >>> shorten_apart(["county of the north, upper", "county of the south, upper"], 14)
        ['…north, upper', '…south, upper']
        >>> shorten_apart(["county of the north", "county of the south"], 14)
        ['…of the north', '…of the south']
    """
    if max(map(len, names), default=0) <= width:
        return list(names)
    ends = min(names), max(names)
    common = next((k for k, pair in enumerate(zip(*ends, strict=False)) if pair[0] != pair[1]), 0)
    starts = [place + 1 for place, letter in enumerate(ends[0][:common]) if letter in " _:.-/"] or [0]
    longest = max(map(len, names)) + len("…")
    start = next((own for own in starts if longest - own <= width), starts[-1])
    tails = [f"…{name[start:]}" if start else name for name in names]
    cuts = sorted(range(1, width), key=lambda front: abs(front - width // 2))
    return max(
        ([shorten(name, width, front) for name in tails] for front in cuts),
        key=lambda found: len(set(found)),
    )


def join_names(names: Sequence[str], width: int) -> str:
    """Names with colons between them, each as short as the width asks for.

    Example:
        >>> join_names(["average_income", "x", "age"], 20)
        'avera…come : x : age'
    """
    room = width - 3 * (len(names) - 1)
    if sum(map(len, names)) <= room:
        return " : ".join(names)
    # Short names leave their room to long ones.
    limit = room // len(names)
    for _ in names:
        long = [name for name in names if len(name) > limit]
        spare = room - sum(len(name) for name in names if len(name) <= limit)
        limit = max(limit, spare // max(len(long), 1), 6)
    return " : ".join(shorten(name, limit) for name in names)


def wrap(
    text: str,
    width: int,
    lines: int,
    separators: str = _SEPARATORS,
    last: int | None = None,
    even: bool = False,
) -> str:
    """A text in at most so many lines of at most so many letters, broken after separators.

    What does not fit is shortened, so a name never runs over its panel.

    Args:
        text: of one line.
        width: letters in a line.
        lines: how many there may be.
        separators: after which it may be broken.
        last: letters in the last line, where it is shorter.
        even: make the lines about as long as each other.

    Example:
        >>> print(wrap("average_household_income_in_euros", 20, 2))
        average_household_
        income_in_euros
    """
    last = width if last is None else last
    pieces = re.findall(rf"[^{separators}]*[{separators}]+|[^{separators}]+$", text) or [text]
    for count in range(1, lines + 1):
        found = _fill(pieces, [width] * (count - 1) + [last])
        if len(found[-1].rstrip()) <= last or count == lines:
            break
    if even and len(found) > 1:
        shorter = (_fill(pieces, [own] * len(found)) for own in range(len(text) // len(found), width))
        found = next((own for own in shorter if max(map(len, own)) <= width), found)
    sizes = [width] * (len(found) - 1) + [last]
    return "\n".join(shorten(line.strip(" "), size) for line, size in zip(found, sizes, strict=True))


def _fill(pieces: list[str], widths: list[int]) -> list[str]:
    """Pieces put into lines of given widths; all that is left stands in the last one."""
    found = [""]
    for place, piece in enumerate(pieces):
        is_full = len((found[-1] + piece).rstrip()) > widths[len(found) - 1]
        # A line below must not stay empty.
        is_due = place == len(pieces) - 1 and len(found) < len(widths)
        if found[-1] and len(found) < len(widths) and (is_full or is_due):
            found.append(piece)
        else:
            found[-1] += piece
    return found


def link_label(link: str, response: str) -> str:
    """What the effects of a model are measured in: `y`, `log(y)`, `logit(y)`."""
    shown = shorten(response, 28)
    return shown if link == "identity" else f"{link}({shown})"
