"""The terms that a formula may call: how many features they take, and which keyword arguments.

`TERM_CALLS` holds the calls of the terms that come with the package; `register_term` adds others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ahofm_keras.formula import checks
from ahofm_keras.formula.checks import Check
from ahofm_keras.formula.margins import (
    KNOT_OPTIONS,
    check_margins,
    margin_option,
    order_by_margin,
    said_of_margin,
)
from ahofm_keras.formula.orders import check_orders, list_features, sort_orders
from ahofm_keras.shapes import SHAPES, is_bent
from ahofm_keras.transforms import Expression, point

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


_TRUTH = checks.one_of(True, False)
_BY: Mapping[str, Check] = {
    "by": checks.column_option,
    "reference": checks.level_name,
    "id": checks.identifier,
}
_RANK = checks.or_auto(checks.or_tuple(checks.whole(1)))
_AFM = {
    "F": _RANK,
    "df": checks.or_dict(checks.or_tuple(checks.number(0, strictly=True))),
    "k": checks.or_dict(checks.whole(2)),
    "bs": checks.or_dict(checks.one_of(*AXIS_BASES)),
    "knots": checks.or_dict(checks.knots),
    "m": checks.or_dict(checks.degree_and_difference),
    "atoms": checks.or_dict(checks.atoms),
    "main": _TRUTH,
    "center": _TRUTH,
}
_FM = {"F": _RANK, "sp": checks.number(0, strictly=False), "main": _TRUTH}
_ORDERS = {"D": checks.or_auto(checks.whole(2)), "orders": checks.orders}
_TENSOR = {
    "d": checks.dimensions,
    "k": checks.or_margins(checks.whole(2)),
    "df": checks.or_margins(checks.number(0, strictly=True)),
    "bs": checks.or_margins(checks.one_of(*BASES, LINEAR)),
    "knots": checks.or_numbers("knots", checks.knots),
    "m": checks.or_numbers("m", checks.degree_and_difference),
    "atoms": checks.or_numbers("atoms", checks.atoms),
    "sp": checks.or_margins(checks.number(0, strictly=False), may_miss=False),
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
            "k": checks.whole(2),
            "df": checks.number(0, strictly=True),
            "bs": checks.one_of(*BASES, *CURVE_BASES),
            "knots": checks.knots,
            "m": checks.degree_and_difference,
            "atoms": checks.atoms,
            "sp": checks.or_several(checks.number(0, strictly=False)),
            "shape": checks.one_of(*SHAPES),
            **_BY,
            "pc": checks.point,
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
        {"sp": checks.number(0, strictly=False), "df": checks.number(0, strictly=True)},
        finish=_finish_ridge,
        columns=True,
    ),
    "lasso": TermCall("lasso", (1, None), {"sp": checks.number(0, strictly=False)}, columns=True),
    "grouplasso": TermCall(
        "grouplasso",
        (1, None),
        {"sp": checks.number(0, strictly=False), "groups": checks.groups},
        finish=_finish_groups,
        columns=True,
    ),
    "deep": TermCall(
        "deep",
        (1, None),
        {"net": _name, "orthogonalize": checks.one_of(True, False, "all")},
        finish=_finish_deep,
        takes_arrays=True,
    ),
    "offset": TermCall("offset", (1, 1), each=True),
}


def calls_of(kind: str) -> dict[str, TermCall]:
    """The calls of a kind of term that comes with the package."""
    return {name: call for name, call in TERM_CALLS.items() if call.kind == kind}
