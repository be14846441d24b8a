"""Options of `te()` and `ti()`: one value for all margins, a tuple of one per margin, or a dict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

# What only splines have.
KNOT_OPTIONS = ("k", "knots", "m", "atoms")
MARGIN_OPTIONS = ("df", "bs", "sp", *KNOT_OPTIONS)
# Options of which a tuple of numbers is one value: the two ends of an axis; degree and order of
# differences; values of a feature.
_OF_NUMBERS = ("knots", "m", "atoms")


def check_margins(name: str, options: Mapping[str, Any], features: Sequence[str]) -> str | None:
    """What is wrong with the options of a tensor product beside each other, or None.

    Args:
        name: of the call, `te` or `ti`.
        options: each checked by itself.
        features: names of the margins.
    """
    if "df" in options and "sp" in options:
        return f"`{name}()` takes `df` or `sp`, not both."
    listed = ", ".join(f"`{feature}`" for feature in features)
    for option in MARGIN_OPTIONS:
        value: Any = options.get(option)
        if is_by_margin(option, value) and len(value) != len(features):
            return (
                f"`{option}` of `{name}()` needs one value, or one per margin "
                f"({len(features)}: {listed}).\n    Received: {option}={value!r}."
            )
    missing = [f for f in features if f not in options["sp"]] if _is_dict(options.get("sp")) else []
    if missing:
        return f"`sp` of `{name}()` needs the lambda of every margin; that of `{missing[0]}` is missing."
    return None


def order_by_margin(options: Mapping[str, Any], features: Sequence[str]) -> dict[str, Any]:
    """The same options with dicts as tuples, one entry per margin, None where nothing is said of it."""
    return {
        option: tuple(value.get(feature) for feature in features) if _is_dict(value) else value
        for option, value in options.items()
    }


def is_by_margin(option: str, value: Any) -> bool:
    """Whether an option has one value per margin; a tuple of numbers may be one value of all."""
    if not isinstance(value, tuple):
        return False
    return option not in _OF_NUMBERS or not all(
        isinstance(own, Real) and not isinstance(own, bool) for own in value
    )


def margin_option(options: Mapping[str, Any], option: str, place: int) -> Any:
    """An option of one margin, None where it is not given."""
    value: Any = options.get(option)
    return value[place] if is_by_margin(option, value) else value


def said_of_margin(options: Mapping[str, Any], place: int) -> dict[str, Any]:
    """What the options say of one margin's basis.

    One k, m, or way to place knots is that of the margins with knots: it says nothing of a category.
    """
    given = [option for option in KNOT_OPTIONS if is_by_margin(option, options.get(option))]
    said = {option: margin_option(options, option, place) for option in ("bs", *given)}
    return {option: value for option, value in said.items() if value is not None}


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)
