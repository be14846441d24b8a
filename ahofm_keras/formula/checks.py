"""Which values an option of a term may have: a check says what was expected, None where it is met."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any

from ahofm_keras.formula.margins import is_by_margin

# Values of a feature that get a function of their own, at most.
MOST_ATOMS = 100
KNOTS = ("adaptive", "even", "quantile")
AUTO = "auto"
_HIGHEST_DERIVATIVE = 5

Check = Callable[[Any], str | None]


def column_option(value: Any) -> str | None:
    """Stands for options that are no values but columns, or functions of them, as features are."""
    return None


def level_name(value: Any) -> str | None:
    """A level of a category, or False for none."""
    right = isinstance(value, str | bool) or is_finite(value)
    return None if right else "a level, or False for none"


def identifier(value: Any) -> str | None:
    """A name that terms share."""
    right = (isinstance(value, str) and value) or (
        isinstance(value, int) and not isinstance(value, bool)
    )
    return None if right else "a text or a whole number"


def is_number(value: Any) -> bool:
    """Whether a value is a number, and no truth value."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_finite(value: Any) -> bool:
    """Whether a value is a number that fits into a float."""
    try:
        return is_number(value) and math.isfinite(value)
    except OverflowError:
        return False


def whole(least: int) -> Check:
    """A whole number of at least so much."""

    def check(value: Any) -> str | None:
        right = isinstance(value, int) and not isinstance(value, bool) and value >= least
        return None if right else f"a whole number of at least {least}"

    return check


def number(least: float, strictly: bool) -> Check:
    """A number above a least one, or that too."""

    def check(value: Any) -> str | None:
        right = is_finite(value) and (value > least or (value == least and not strictly))
        kind = "finite number" if is_number(value) and not is_finite(value) else "number"
        return None if right else f"a {kind} {'above' if strictly else 'of at least'} {least:g}"

    return check


def one_of(*choices: Any) -> Check:
    """One of some values."""

    def check(value: Any) -> str | None:
        listed = ", ".join(repr(choice) for choice in choices)
        right = any(type(value) is type(choice) and value == choice for choice in choices)
        return None if right else f"one of {listed}"

    return check


def or_tuple(each: Check) -> Check:
    """A value, or a tuple of them, one per order."""

    def check(value: Any) -> str | None:
        values = value if isinstance(value, tuple) else (value,)
        wrong = [reason for reason in map(each, values) if reason]
        if not values:
            return f"{each(None)}, or a tuple of them, one per order"
        return f"{wrong[0]}, or a tuple of them, one per order" if wrong else None

    return check


def or_several(each: Check) -> Check:
    """A value, or a tuple of them."""

    def check(value: Any) -> str | None:
        values = value if isinstance(value, tuple) and value else (value,)
        return next(filter(None, map(each, values)), None)

    return check


def or_auto(each: Check) -> Check:
    """A value, or `"auto"`: as the data asks for."""

    def check(value: Any) -> str | None:
        reason = None if value == AUTO else each(value)
        return f'"auto", {reason}' if reason else None

    return check


def or_dict(each: Check) -> Check:
    """A value for all features, or a dict from feature to value."""

    def check(value: Any) -> str | None:
        if not isinstance(value, dict):
            reason = each(value)
            return f"{reason}, or a dict from feature to value" if reason else None
        wrong = [reason for reason in map(each, value.values()) if reason]
        return f"a dict from feature to {wrong[0]}" if wrong else None

    return check


def knots(value: Any) -> str | None:
    """A way to place knots, or the two ends of the axis."""
    if isinstance(value, tuple):
        ends = len(value) == 2 and all(map(is_finite, value)) and value[0] < value[1]
        return None if ends else "the two ends of the axis in rising order, e.g. (0, 24)"
    reason = one_of(*KNOTS)(value)
    return f"{reason}, or the two ends of the axis, e.g. (0, 24)" if reason else None


def point(value: Any) -> str | None:
    """A value of the feature."""
    return None if is_finite(value) else "a finite number, the value at which the function is 0"


def atoms(value: Any) -> str | None:
    """Values that get a function of their own, `"auto"` for those that stand out, False for none."""
    if value is False or value == "auto":
        return None
    if not isinstance(value, tuple) or not value or not all(map(is_finite, value)):
        return '"auto", False, or a list of values, e.g. [0, 40]'
    return None if len(value) <= MOST_ATOMS else f"a list of at most {MOST_ATOMS} values"


def degree_and_difference(value: Any) -> str | None:
    """Degree of a spline's pieces, and of which differences its penalty is."""
    right = isinstance(value, tuple) and len(value) == 2
    right = right and all(whole(least)(own) is None for least, own in zip((0, 1), value, strict=True))
    right = right and max(value) <= 3
    return None if right else "a degree from 0 to 3 and an order of differences from 1 to 3, e.g. (1, 1)"


def distance_form(bs: str) -> Check:
    """Check of what `m` says of functions of distances."""
    return {"tp": order, "ds": order_and_power, "gp": correlation}[bs]


def order(value: Any) -> str | None:
    """The order of the derivatives that a penalty is of."""
    right = whole(1)(value) is None and value <= _HIGHEST_DERIVATIVE
    return None if right else f"the order of derivatives, a whole number from 1 to {_HIGHEST_DERIVATIVE}"


def order_and_power(value: Any) -> str | None:
    """Order and power of a Duchon spline."""
    right = isinstance(value, tuple) and len(value) == 2 and all(map(is_finite, value))
    right = right and order(value[0]) is None and float(2 * value[1]).is_integer()
    return None if right else "the order of derivatives and a multiple of 0.5, e.g. (1, 0.5)"


def correlation(value: Any) -> str | None:
    """Kind, range and power of a correlation function."""
    values = value if isinstance(value, tuple) else (value,)
    right = 1 <= len(values) <= 3 and all(map(is_finite, values))
    right = right and isinstance(values[0], int) and 1 <= abs(values[0]) <= 5
    right = right and values[1:2] >= (0,) * len(values[1:2]) and all(0 < own <= 2 for own in values[2:])
    if right:
        return None
    return (
        "the number of a correlation function, 1 to 5 (negative: no plane beside it), its range, and of "
        "2 the power, above 0 and at most 2, e.g. (2, 0.5, 1)"
    )


def or_margins(each: Check, may_miss: bool = True) -> Check:
    """A value for all margins, a tuple with one per margin (None: as if not given), or a dict."""

    def check(value: Any) -> str | None:
        if isinstance(value, dict):
            values: Iterable[Any] = value.values()
        elif is_by_margin("", value):
            values = [entry for entry in value if entry is not None or not may_miss]
        else:
            values = [value]
        wrong = [reason for reason in map(each, values) if reason]
        wrong += [str(each(None))] if value == () else []
        others = "a tuple with one per margin, or a dict from feature to value"
        return f"{wrong[0]}, {others}" if wrong else None

    return check


def or_numbers(option: str, each: Check) -> Check:
    """As `or_margins`, of an option of which a tuple of numbers is one value for all margins."""

    def check(value: Any) -> str | None:
        if isinstance(value, tuple) and not is_by_margin(option, value):
            return each(value)
        return or_margins(each)(value)

    return check


def orders(value: Any) -> str | None:
    """Orders of interactions."""
    values = value if isinstance(value, tuple) else (value,)
    right = bool(values) and all(whole(2)(order) is None for order in values)
    right = right and len(set(values)) == len(values)
    return None if right else "a tuple of different whole numbers of at least 2, e.g. (2, 3)"


def dimensions(value: Any) -> str | None:
    """Numbers of features of the margins."""
    values = value if isinstance(value, tuple) else ()
    right = len(values) > 1 and all(whole(1)(own) is None for own in values)
    return None if right else "the number of features of each margin, e.g. (2, 1)"


def groups(value: Any) -> str | None:
    """Names of features in groups."""
    right = isinstance(value, tuple) and bool(value)
    right = right and all(
        isinstance(group, tuple) and group and all(isinstance(name, str) for name in group)
        for group in value
    )
    return None if right else "lists of features, e.g. [[x1, x2], [x3, x4]]"
