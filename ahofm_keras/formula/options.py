"""The terms that a formula may call: how many features they take, and which keyword arguments.

`TERM_CALLS` holds the calls of the terms that come with the package; `register_term` adds others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from ahofm_keras.formula.margins import (
    KNOT_OPTIONS,
    check_margins,
    is_by_margin,
    margin_option,
    order_by_margin,
    said_of_margin,
)
from ahofm_keras.shapes import SHAPES, is_bent
from ahofm_keras.transforms import Expression, point

# Values of a feature that get a function of their own, at most.
MOST_ATOMS = 100
KNOTS = ("adaptive", "even", "quantile")
# Functions of distances, of one feature or the coordinates of a point.
DISTANCES = ("tp", "ds", "gp")
# Of one feature along its axis, or of its levels: what the factors of `ahofm()` are made of too.
AXIS_BASES = ("ps", "cp", "re", "step")
BASES = (*AXIS_BASES, "mrf", *DISTANCES)
# Of a number and a category: a curve per level, shrunk as a random effect; deviations from a main curve.
CURVE_BASES = ("fs", "sz")
# Bases of two features of which one may be a category.
FACTOR_BASES = (*CURVE_BASES, "re")
# A margin of a tensor product that is a straight line: along it slopes vary, and nothing bends.
LINEAR = "linear"
# Degree of the pieces and order of the differences that the penalty is of: those of cubic P-splines, and
# of steps.
DEFAULT_M = (3, 2)
STEP_M = (0, 1)
AUTO = "auto"
# D where it is not given, and the highest order that the data may choose: of more features at once a
# surface can hardly be read, and sums over all subsets of them take long.
_USUAL_ORDER = 3
_HIGHEST_ORDER = 4
_HIGHEST_DERIVATIVE = 5

Check = Callable[[Any], str | None]
Options = dict[str, Any]


class OptionError(ValueError):
    """Options that do not go together; the formula shows the place."""


@dataclass(frozen=True)
class TermCall:
    """What a call such as `ahofm(...)` looks like.

    Args:
        kind: the kind of `TermSpec` that it becomes.
        features: least and greatest number of features (None: any number).
        options: keyword argument -> check that gives what it must be, or None where it is right.
        fixed: options that the name itself sets (`afm` is `ahofm` with D=2).
        finish: `(name, features, options) -> options` as the term wants to have them; raises an
            `OptionError` where they do not go together.
        hint: what a user may have meant who gave another number of features.
        join: `(name, features, options) -> features` of the term, where several that are written are
            the coordinates of one point; raises an `OptionError` where they cannot be.
        columns: whether a feature may have several columns, such as `poly(x, 3)`.
        each: whether a `.` among the features stands for one call per column, and not for all of them.
        takes_arrays: whether rows of its features may be arrays, such as images.
    """

    kind: str
    features: tuple[int, int | None]
    options: Mapping[str, Check] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    finish: Callable[[str, tuple[Expression, ...], Options], Options] | None = None
    hint: str = ""
    join: Callable[[str, tuple[Expression, ...], Options], tuple[Expression, ...]] | None = None
    columns: bool = False
    each: bool = False
    takes_arrays: bool = False


def column_option(value: Any) -> str | None:
    """Stands for options that are no values but columns, or functions of them, as features are."""
    return None


def _level(value: Any) -> str | None:
    """A level of a category, or False for none."""
    right = isinstance(value, str | bool) or _is_finite(value)
    return None if right else "a level, or False for none"


def _id(value: Any) -> str | None:
    right = (isinstance(value, str) and value) or (
        isinstance(value, int) and not isinstance(value, bool)
    )
    return None if right else "a text or a whole number"


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    """Whether a value is a number that fits into a float."""
    try:
        return _is_number(value) and math.isfinite(value)
    except OverflowError:
        return False


def _whole(least: int) -> Check:
    def check(value: Any) -> str | None:
        right = isinstance(value, int) and not isinstance(value, bool) and value >= least
        return None if right else f"a whole number of at least {least}"

    return check


def _number(least: float, strictly: bool) -> Check:
    def check(value: Any) -> str | None:
        right = _is_finite(value) and (value > least or (value == least and not strictly))
        kind = "finite number" if _is_number(value) and not _is_finite(value) else "number"
        return None if right else f"a {kind} {'above' if strictly else 'of at least'} {least:g}"

    return check


def _one_of(*choices: Any) -> Check:
    def check(value: Any) -> str | None:
        listed = ", ".join(repr(choice) for choice in choices)
        right = any(type(value) is type(choice) and value == choice for choice in choices)
        return None if right else f"one of {listed}"

    return check


def _or_tuple(each: Check) -> Check:
    """A value, or a tuple of them, one per order."""

    def check(value: Any) -> str | None:
        values = value if isinstance(value, tuple) else (value,)
        wrong = [reason for reason in map(each, values) if reason]
        if not values:
            return f"{each(None)}, or a tuple of them, one per order"
        return f"{wrong[0]}, or a tuple of them, one per order" if wrong else None

    return check


def _or_several(each: Check) -> Check:
    """A value, or a tuple of them."""

    def check(value: Any) -> str | None:
        values = value if isinstance(value, tuple) and value else (value,)
        return next(filter(None, map(each, values)), None)

    return check


def _or_auto(each: Check) -> Check:
    """A value, or `"auto"`: as the data asks for."""

    def check(value: Any) -> str | None:
        reason = None if value == AUTO else each(value)
        return f'"auto", {reason}' if reason else None

    return check


def _or_dict(each: Check) -> Check:
    """A value for all features, or a dict from feature to value."""

    def check(value: Any) -> str | None:
        if not isinstance(value, dict):
            reason = each(value)
            return f"{reason}, or a dict from feature to value" if reason else None
        wrong = [reason for reason in map(each, value.values()) if reason]
        return f"a dict from feature to {wrong[0]}" if wrong else None

    return check


def _knots(value: Any) -> str | None:
    """A way to place knots, or the two ends of the axis."""
    if isinstance(value, tuple):
        ends = len(value) == 2 and all(map(_is_finite, value)) and value[0] < value[1]
        return None if ends else "the two ends of the axis in rising order, e.g. (0, 24)"
    reason = _one_of(*KNOTS)(value)
    return f"{reason}, or the two ends of the axis, e.g. (0, 24)" if reason else None


def _point(value: Any) -> str | None:
    """A value of the feature."""
    return None if _is_finite(value) else "a finite number, the value at which the function is 0"


def _atoms(value: Any) -> str | None:
    """Values that get a function of their own, `"auto"` for those that stand out, False for none."""
    if value is False or value == "auto":
        return None
    if not isinstance(value, tuple) or not value or not all(map(_is_finite, value)):
        return '"auto", False, or a list of values, e.g. [0, 40]'
    return None if len(value) <= MOST_ATOMS else f"a list of at most {MOST_ATOMS} values"


def _degree_and_difference(value: Any) -> str | None:
    """Degree of a spline's pieces, and of which differences its penalty is."""
    right = isinstance(value, tuple) and len(value) == 2
    right = right and all(_whole(least)(own) is None for least, own in zip((0, 1), value, strict=True))
    right = right and max(value) <= 3
    return None if right else "a degree from 0 to 3 and an order of differences from 1 to 3, e.g. (1, 1)"


def distance_form(bs: str) -> Check:
    """Check of what `m` says of functions of distances."""
    return {"tp": _order, "ds": _order_and_power, "gp": _correlation}[bs]


def _order(value: Any) -> str | None:
    right = _whole(1)(value) is None and value <= _HIGHEST_DERIVATIVE
    return None if right else f"the order of derivatives, a whole number from 1 to {_HIGHEST_DERIVATIVE}"


def _order_and_power(value: Any) -> str | None:
    right = isinstance(value, tuple) and len(value) == 2 and all(map(_is_finite, value))
    right = right and _order(value[0]) is None and float(2 * value[1]).is_integer()
    return None if right else "the order of derivatives and a multiple of 0.5, e.g. (1, 0.5)"


def _correlation(value: Any) -> str | None:
    values = value if isinstance(value, tuple) else (value,)
    right = 1 <= len(values) <= 3 and all(map(_is_finite, values))
    right = right and isinstance(values[0], int) and 1 <= abs(values[0]) <= 5
    right = right and values[1:2] >= (0,) * len(values[1:2]) and all(0 < own <= 2 for own in values[2:])
    if right:
        return None
    return (
        "the number of a correlation function, 1 to 5 (negative: no plane beside it), its range, and of "
        "2 the power, above 0 and at most 2, e.g. (2, 0.5, 1)"
    )


def _or_margins(each: Check, may_miss: bool = True) -> Check:
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


def _or_numbers(option: str, each: Check) -> Check:
    """As `_or_margins`, of an option of which a tuple of numbers is one value for all margins."""

    def check(value: Any) -> str | None:
        if isinstance(value, tuple) and not is_by_margin(option, value):
            return each(value)
        return _or_margins(each)(value)

    return check


def _orders(value: Any) -> str | None:
    values = value if isinstance(value, tuple) else (value,)
    right = bool(values) and all(_whole(2)(order) is None for order in values)
    right = right and len(set(values)) == len(values)
    return None if right else "a tuple of different whole numbers of at least 2, e.g. (2, 3)"


def _dimensions(value: Any) -> str | None:
    values = value if isinstance(value, tuple) else ()
    right = len(values) > 1 and all(_whole(1)(own) is None for own in values)
    return None if right else "the number of features of each margin, e.g. (2, 1)"


def _groups(value: Any) -> str | None:
    """Names of features in groups."""
    right = isinstance(value, tuple) and bool(value)
    right = right and all(
        isinstance(group, tuple) and group and all(isinstance(name, str) for name in group)
        for group in value
    )
    return None if right else "lists of features, e.g. [[x1, x2], [x3, x4]]"


_TRUTH = _one_of(True, False)
_BY: Mapping[str, Check] = {"by": column_option, "reference": _level, "id": _id}
_RANK = _or_auto(_or_tuple(_whole(1)))
_AFM = {
    "F": _RANK,
    "df": _or_dict(_or_tuple(_number(0, strictly=True))),
    "k": _or_dict(_whole(2)),
    "bs": _or_dict(_one_of(*AXIS_BASES)),
    "knots": _or_dict(_knots),
    "m": _or_dict(_degree_and_difference),
    "atoms": _or_dict(_atoms),
    "main": _TRUTH,
    "center": _TRUTH,
}
_FM = {"F": _RANK, "sp": _number(0, strictly=False), "main": _TRUTH}
_ORDERS = {"D": _or_auto(_whole(2)), "orders": _orders}
_TENSOR = {
    "d": _dimensions,
    "k": _or_margins(_whole(2)),
    "df": _or_margins(_number(0, strictly=True)),
    "bs": _or_margins(_one_of(*BASES, LINEAR)),
    "knots": _or_numbers("knots", _knots),
    "m": _or_numbers("m", _degree_and_difference),
    "atoms": _or_numbers("atoms", _atoms),
    "sp": _or_margins(_number(0, strictly=False), may_miss=False),
    **_BY,
}


def feature_name(feature: Expression) -> str:
    """A feature's name as dicts of options write it: the column's own name where it is one."""
    return feature.arguments[0] if feature.is_column else str(feature)


def _has_no_atoms(options: Mapping[str, Any]) -> bool:
    """Whether a basis is a circle or has steps."""
    return options.get("bs") in ("cp", "step") or options.get("m", DEFAULT_M)[0] == 0


def check_basis(feature: Expression, options: Mapping[str, Any]) -> None:
    """Raise where options ask for knots of a category, or for another basis than that of its levels."""
    bs = options.get("bs")
    if feature.is_category and bs not in (None, "re", "mrf"):
        raise OptionError(f'`{feature}` is a category: leave out `bs`, or use bs="re" or "mrf".')
    if feature.is_point or bs in DISTANCES:
        unused = [option for option in KNOT_OPTIONS if option in options and option not in ("k", "m")]
        if unused:
            raise OptionError(f"`{unused[0]}` has no meaning for functions of distances.")
        return
    if _has_no_atoms(options) and options.get("atoms") not in (None, False, "auto"):
        raise OptionError("`atoms` cannot stand beside a circle or steps.")
    unused = [option for option in KNOT_OPTIONS if option in options]
    if unused and bs in ("re", "mrf", LINEAR):
        raise OptionError(f'`{unused[0]}` has no meaning with bs="{bs}".')
    if unused and feature.is_category:
        raise OptionError(f"`{unused[0]}` has no meaning for the category `{feature}`.")
    if "m" not in options:
        return
    if options.get("bs") == "step":
        raise OptionError(f'bs="step" is m={STEP_M}: leave one of the two out.')
    if "k" in options and options["k"] <= options["m"][0]:
        raise OptionError(
            f"Pieces of degree {options['m'][0]} need `k` of at least {options['m'][0] + 1}.\n"
            f"    Received: k={options['k']}."
        )


def check_by(name: str, features: tuple[Expression, ...], options: Mapping[str, Any]) -> None:
    """Raise where a term would be multiplied with itself, or has a reference level of nothing."""
    by = options.get("by")
    if by is None and "reference" in options:
        raise OptionError("`reference` is a level of the category that `by` names.")
    if by is not None and by in features:
        raise OptionError(f"`by` of `{name}()` cannot be one of its own features: `{by}`.")


def _finish_smooth(name: str, features: tuple[Expression, ...], options: Options) -> Options:
    if "df" in options and "sp" in options:
        raise OptionError(f"`{name}()` takes `df` or `sp`, not both.")
    check_by(name, features, options)
    bs, sp = options.get("bs"), options.get("sp")
    if bs in CURVE_BASES or len(features) == 2:
        _check_factor_smooth(name, features, options)
    elif isinstance(sp, tuple):
        raise OptionError('A tuple of several `sp` goes with bs="fs".')
    if "shape" in options and ("by" in options or len(features) == 2):
        raise OptionError("`shape` is that of one function: it cannot stand beside `by` or levels.")
    check_basis(features[0], {k: v for k, v in options.items() if k != "bs" or v not in CURVE_BASES})
    if "pc" in options and (features[0].is_point or options.get("bs") in DISTANCES):
        raise OptionError("`pc` has no meaning for functions of distances.")
    if "pc" in options and (features[0].is_category or options.get("bs") in ("re", "mrf")):
        raise OptionError(f"`pc` has no meaning for the levels of `{features[0]}`: they have no axis.")
    return _with_shape(features[0], options) if "shape" in options else options


def _with_shape(feature: Expression, options: Options) -> Options:
    """The options of a smooth of a given shape, with what the shape asks of its basis."""
    shape, kind = options["shape"], options.get("bs", "ps")
    if feature.is_point or kind in DISTANCES:
        raise OptionError("`shape` has no meaning for functions of distances: they have no direction.")
    if feature.is_category or kind in ("re", "mrf"):
        raise OptionError(f"`shape` has no meaning for the levels of `{feature}`: they have no order.")
    if kind == "cp":
        raise OptionError('`shape` cannot stand beside bs="cp": a circle ends where it began.')
    if options.get("atoms"):
        raise OptionError("`atoms` cannot stand beside `shape`: values of their own would break it.")
    options = {**options, "atoms": False}
    if not is_bent(shape):
        return options
    if _has_no_atoms(options):
        raise OptionError(f"Steps cannot be {shape!r}: pieces need a degree of at least 1.")
    if options.get("knots", "even") in ("adaptive", "quantile"):
        raise OptionError(
            f'shape={shape!r} needs even knots: leave `knots` out, or write knots="even" or the two '
            "ends of the axis."
        )
    return {"knots": "even", **options}


def _join_smooth(
    name: str, features: tuple[Expression, ...], options: Options
) -> tuple[Expression, ...]:
    """Several features of a smooth are the coordinates of one point, or a number and a category."""
    if len(features) == 1 or options.get("bs") in FACTOR_BASES:
        return features
    return (_join(name, features, options.get("bs")),)


def _join(name: str, features: tuple[Expression, ...], bs: str | None) -> Expression:
    listed = ", ".join(map(str, features))
    category = next((feature for feature in features if feature.is_category), None)
    if category is not None:
        raise OptionError(
            f"`{category}` is a category and cannot be a coordinate. A curve for each level is "
            f'`s({listed}, bs="fs")`.'
        )
    if bs not in (None, *DISTANCES):
        raise OptionError(
            f'bs="{bs}" is of one feature; of several, `{name}()` is of distances between points, with '
            f'bs="tp", "ds" or "gp". A product of such bases is `te({listed})`.'
        )
    return point(*features)


def _join_tensor(
    name: str, features: tuple[Expression, ...], options: Options
) -> tuple[Expression, ...]:
    """The features of each margin, so many as `d` says."""
    sizes = options.pop("d", None) or (1,) * len(features)
    if sum(sizes) != len(features):
        raise OptionError(
            f"`d` of `{name}()` says that there are {sum(sizes)} features, but there are "
            f"{len(features)}: {list_features([str(feature) for feature in features])}."
        )
    joined: list[Expression] = []
    start = 0
    for margin, size in enumerate(sizes):
        own = features[start : start + size]
        bs = options.get("bs")
        bs = bs[margin] if isinstance(bs, tuple) and len(bs) == len(sizes) else None
        joined.append(_join(name, own, bs) if size > 1 else own[0])
        start += size
    return tuple(joined)


def _check_factor_smooth(name: str, features: tuple[Expression, ...], options: Options) -> None:
    """Raise where a smooth of a number and a category, or random slopes, are not asked for rightly."""
    bs = options.get("bs")
    if len(features) != 2 or bs not in FACTOR_BASES:
        if len(features) == 2:
            raise OptionError(
                f'`{name}()` of two features is one of a number and a category, with bs="fs", "sz" or '
                f'"re".{_SURFACES}'
            )
        raise OptionError(f'bs="{bs}" is that of a number and a category: `s(x, g, bs="{bs}")`.')
    unused = [option for option in ("by", "reference", "atoms", "pc") if option in options]
    if unused:
        raise OptionError(f'`{unused[0]}` has no meaning with bs="{bs}".')
    if isinstance(options.get("sp"), tuple) and bs != "fs":
        raise OptionError('A tuple of several `sp` goes with bs="fs".')


def _finish_tensor(name: str, features: tuple[Expression, ...], options: Options) -> Options:
    """The options of a tensor product, one value per margin where they differ."""
    names = [feature_name(feature) for feature in features]
    reason = check_margins(name, options, names)
    if reason:
        raise OptionError(reason)
    check_by(name, features, options)
    options = order_by_margin(options, names)
    for place, feature in enumerate(features):
        check_basis(feature, said_of_margin(options, place))
    if all(margin_option(options, "bs", place) == LINEAR for place in range(len(features))):
        lines = (" * " if name == "te" else ":").join(names)
        raise OptionError(f"`{name}()` of straight lines alone is written `{lines}`.")
    return options


def _finish_interaction(name: str, features: tuple[Expression, ...], options: Options) -> Options:
    reason = check_orders(name, options, [feature_name(feature) for feature in features])
    if reason:
        raise OptionError(reason)
    for feature in features:
        said = {option: _of_feature(options.get(option), feature) for option in ("bs", "k", "m")}
        if not feature.is_category and said["bs"] != "re":
            check_basis(feature, {option: value for option, value in said.items() if value is not None})
    return sort_orders(options)


def _of_feature(value: Any, feature: Expression) -> Any:
    return value.get(feature_name(feature)) if isinstance(value, dict) else value


def _finish_ridge(name: str, features: tuple[Expression, ...], options: Options) -> Options:
    if "df" in options and "sp" in options:
        raise OptionError(f"`{name}()` takes `df` or `sp`, not both.")
    return options


def _finish_groups(name: str, features: tuple[Expression, ...], options: Options) -> Options:
    known = [feature_name(feature) for feature in features]
    seen: set[str] = set()
    for member in (member for group in options.get("groups", ()) for member in group):
        if member not in known:
            raise OptionError(
                f"`groups` of `{name}()` names `{member}`, which is not one of its features "
                f"({list_features(known)})."
            )
        if member in seen:
            raise OptionError(f"`groups` of `{name}()` names `{member}` twice.")
        seen.add(member)
    return options


def _name(value: Any) -> str | None:
    return None if isinstance(value, str) and value else 'the name of a network, e.g. "net"'


def _finish_deep(name: str, features: tuple[Expression, ...], options: Options) -> Options:
    if "net" not in options:
        raise OptionError(
            f'`{name}()` needs a network: `{name}({", ".join(map(str, features))}, net="net")`, given '
            'beside the data as `nets={"net": keras_model}`.'
        )
    return options


_SURFACES = " A surface is written `te(x1, x2)` or `ti(x1, x2)`, many interactions `ahofm(x1, x2, x3)`."
_ONE_FEATURE = " A smooth of one feature is written `s(x)`."

TERM_CALLS: dict[str, TermCall] = {
    "s": TermCall(
        "s",
        (1, None),
        {
            "k": _whole(2),
            "df": _number(0, strictly=True),
            "bs": _one_of(*BASES, *CURVE_BASES),
            "knots": _knots,
            "m": _degree_and_difference,
            "atoms": _atoms,
            "sp": _or_several(_number(0, strictly=False)),
            "shape": _one_of(*SHAPES),
            **_BY,
            "pc": _point,
        },
        finish=_finish_smooth,
        hint=_SURFACES,
        join=_join_smooth,
        each=True,
        takes_arrays=True,
    ),
    "te": TermCall(
        "te", (2, None), _TENSOR, {"pure": False}, _finish_tensor, _ONE_FEATURE, _join_tensor
    ),
    "ti": TermCall("te", (2, None), _TENSOR, {"pure": True}, _finish_tensor, _ONE_FEATURE, _join_tensor),
    "ahofm": TermCall("ahofm", (2, None), {**_ORDERS, **_AFM}, {}, _finish_interaction),
    "afm": TermCall("ahofm", (2, None), _AFM, {"D": 2}, _finish_interaction),
    "hofm": TermCall("hofm", (2, None), {**_ORDERS, **_FM}, {}, _finish_interaction),
    "fm": TermCall("hofm", (2, None), _FM, {"D": 2}, _finish_interaction),
    "ridge": TermCall(
        "ridge",
        (1, None),
        {"sp": _number(0, strictly=False), "df": _number(0, strictly=True)},
        finish=_finish_ridge,
        columns=True,
    ),
    "lasso": TermCall("lasso", (1, None), {"sp": _number(0, strictly=False)}, columns=True),
    "grouplasso": TermCall(
        "grouplasso",
        (1, None),
        {"sp": _number(0, strictly=False), "groups": _groups},
        finish=_finish_groups,
        columns=True,
    ),
    "deep": TermCall(
        "deep",
        (1, None),
        {"net": _name, "orthogonalize": _one_of(True, False, "all")},
        finish=_finish_deep,
        takes_arrays=True,
    ),
    "offset": TermCall("offset", (1, 1), each=True),
}


def calls_of(kind: str) -> dict[str, TermCall]:
    """The calls of a kind of term that comes with the package."""
    return {name: call for name, call in TERM_CALLS.items() if call.kind == kind}


def check_orders(name: str, options: Mapping[str, Any], features: list[str]) -> str | None:
    """What is wrong with `D`, `orders`, and the lengths of `F` and `df`, or None.

    `D` must not exceed the number of features; `F=(10, 5)` has one entry per order of interaction;
    `df=(15, 8, 5)` one per order, main effects first where there are any.
    """
    count, listed = len(features), list_features(features)
    if "D" in options and "orders" in options:
        return f"`{name}()` takes `D` or `orders`, not both."
    if "D" in options and not is_automatic_order(options) and not 2 <= options["D"] <= count:
        return (
            f"`D` of `{name}()` must lie between 2 and its number of features.\n"
            f"    Received: D={options['D']} with {count} features ({listed})."
        )
    orders = _written_orders(options, count)
    if max(orders) > count:
        return (
            f"`orders` of `{name}()` must not exceed its number of features.\n"
            f"    Received: orders={options['orders']!r} with {count} features ({listed})."
        )
    return _check_ranks(name, options, orders) or _check_df(name, options, orders)


def list_features(features: list[str]) -> str:
    """Features as messages list them, the first six."""
    more = ", ..." if len(features) > 6 else ""
    return ", ".join(f"`{feature}`" for feature in features[:6]) + more


def _check_ranks(name: str, options: Mapping[str, Any], orders: tuple[int, ...]) -> str | None:
    rank = options.get("F")
    if not isinstance(rank, tuple) or len(rank) == len(orders):
        return None
    return (
        f"`F` of `{name}()` needs one number per order of interaction "
        f"({len(orders)}: {_listed(orders)}).\n    Received: F={rank!r}."
    )


def _check_df(name: str, options: Mapping[str, Any], orders: tuple[int, ...]) -> str | None:
    given = options.get("df")
    all_orders = (1, *orders) if options.get("main", True) else orders
    for value in given.values() if isinstance(given, dict) else (given,):
        if isinstance(value, tuple) and len(value) != len(all_orders):
            return (
                f"`df` of `{name}()` needs one number per order "
                f"({len(all_orders)}: {_listed(all_orders)}).\n    Received: df={value!r}."
            )
    return None


def sort_orders(options: Mapping[str, Any]) -> dict[str, Any]:
    """The same options with `orders` in rising order, and the tuples of `F` and `df` moved alike."""
    orders = options.get("orders")
    if not isinstance(orders, tuple):
        return dict(options)
    moves = sorted(range(len(orders)), key=orders.__getitem__)

    def move(value: Any) -> Any:
        if isinstance(value, dict):
            return {feature: move(each) for feature, each in value.items()}
        if not isinstance(value, tuple):
            return value
        main = len(value) - len(orders)
        return value[:main] + tuple(value[main + place] for place in moves)

    moved = {option: move(options[option]) for option in ("orders", "F", "df") if option in options}
    return {**options, **moved}


def interaction_orders(options: Mapping[str, Any], count: int) -> tuple[int, ...]:
    """Orders of interaction that a term asks for, rising: `orders`, or 2..D.

    D is 3 where it is not given (`afm` and `fm` give 2), or the number of features if that is less.
    Where the data chooses it these are all that it may choose.
    """
    return tuple(sorted(_written_orders(options, count)))


def _written_orders(options: Mapping[str, Any], count: int) -> tuple[int, ...]:
    if "orders" in options:
        given = options["orders"]
        return given if isinstance(given, tuple) else (given,)
    highest = _HIGHEST_ORDER if is_automatic_order(options) else options.get("D", _USUAL_ORDER)
    # That a D which was given is not larger, `check_orders` sees to.
    return tuple(range(2, min(highest, count) + 1))


def is_automatic_order(options: Mapping[str, Any]) -> bool:
    """Whether the data chooses up to which order there are interactions."""
    return options.get("D") == AUTO


def _listed(orders: tuple[int, ...]) -> str:
    return ", ".join(f"order {order}" for order in orders)
