"""Numbers, shares and long names as short texts, for tables, pictures and messages."""

from __future__ import annotations

import unicodedata
from math import floor, isfinite, log10

_ELLIPSIS = "…"
_ZERO = 1e-10
_LEAST_P = 1e-16


def text_width(text: str) -> int:
    """Columns of a terminal that a text takes."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def plain(text: str) -> str:
    """A text without characters that would move the cursor."""
    return "".join(c if c.isprintable() else "�" for c in text)


def shorten(text: str, width: int, front: int | None = None) -> str:
    """A text of at most `width` columns, an ellipsis in place of its middle.

    Args:
        text: any.
        width: at least 3.
        front: columns before the ellipsis, by default half of them.

    Example:
        >>> shorten("average_household_income", 14), shorten("average_household_income", 14, 3)
        ('average…income', 'ave…old_income')
    """
    if text_width(text) <= width:
        return text
    head, tail = _take(text, width // 2 if front is None else front), ""
    for character in reversed(text[len(head) :]):
        if text_width(head + character + tail) > width - 1:
            break
        tail = character + tail
    return head + _ELLIPSIS + tail


def _take(text: str, width: int) -> str:
    taken = ""
    for character in text:
        if text_width(taken + character) > width:
            break
        taken += character
    return taken


def truncate(text: str, length: int = 60) -> str:
    """A text, its end cut off where it is longer than that: of code the beginning tells most.

    Example:
        >>> truncate("s(average_household_income)", 9)
        's(average...'
    """
    return text if len(text) <= length else f"{text[:length]}..."


def percent(share: float) -> str:
    """A share with two figures, for pictures: 0.343 is 34%, 0.0012 is 0.12%.

    Example:
        >>> [percent(share) for share in (0.343, 0.0123, 0.00024, 1e-9, 0.0)]
        ['34%', '1.2%', '0.024%', '<0.01%', '0%']
    """
    if not share > _ZERO:
        return "0%"
    if share < 0.0001:
        return "<0.01%"
    if share < 0.00995:
        return f"{share:.3%}" if share < 0.000995 else f"{share:.2%}"
    return f"{share:.1%}" if share < 0.0995 else f"{share:.0%}"


def table_percent(share: float) -> str:
    """A share with one decimal, so that shares stand below each other; empty where there is none."""
    if share != share:
        return ""
    return "<0.1 %" if 0 < share < 0.001 else f"{100 * share:.1f} %"


def number(value: float, figures: int = 3) -> str:
    """A number with few figures and a true minus sign, for pictures.

    Example:
        >>> number(-1234.6), number(0.00012345), number(12.0)
        ('−1,235', '0.000123', '12')
    """
    if value == 0 or not isfinite(value):
        return "0" if value == 0 else str(value)
    size = abs(value)
    if size >= 1e6 or size < 1e-4:
        text = f"{value:.{figures - 1}e}"
        mantissa, exponent = text.split("e")
        text = f"{_stripped(mantissa)}e{int(exponent)}"
    elif size >= 10 ** (figures - 1):
        text = f"{value:,.0f}"
    else:
        text = _stripped(f"{value:.{figures - 1 - floor(log10(size))}f}")
    return true_minus(text)


def true_minus(text: str) -> str:
    """A text with minus signs in place of hyphens."""
    return text.replace("-", "−")


def _stripped(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def table_number(value: float | None, digits: int = 4) -> str:
    """A number with so many significant digits, zeros included; empty where there is none.

    Example:
        >>> table_number(-1234.6), table_number(0.00012345), table_number(12.0), table_number(None)
        ('-1235', '0.0001234', '12.00', '')
    """
    if value is None or value != value:
        return ""
    if not isfinite(value):
        return "inf" if value > 0 else "-inf"
    if value == 0:
        return "0"
    size = floor(log10(abs(value)))
    if not -4 <= size < 7:
        return f"{value:.{max(digits - 2, 0)}e}"
    return f"{value:.{max(digits - 1 - size, 0)}f}"


def short(value: float, digits: int = 3) -> str:
    """A number with at most so many digits; empty where there is none."""
    return "" if value != value else f"{value:.{digits}g}"


def short_range(low: float, high: float, digits: int) -> str:
    """Two numbers as a range, or one where they look the same."""
    first, second = short(low, digits), short(high, digits)
    return first if first == second else f"{first}..{second}"


def p_value(value: float | None) -> str:
    """A p-value as tables print it."""
    if value is None or value != value:
        return ""
    if value < _LEAST_P:
        return f"<{_LEAST_P:g}"
    return f"{value:.1e}" if value < 1e-4 else f"{value:.4f}"
