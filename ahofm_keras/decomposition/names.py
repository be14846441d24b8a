"""Names that a user gives -> variables of a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from numbers import Integral
from typing import Any

from ahofm_keras.decomposition.parts import Parts
from ahofm_keras.errors import DataError, did_you_mean
from ahofm_keras.terms.groups import Subset


def find_subset(parts: Parts, features: tuple[str, ...]) -> Subset:
    """The variables of given names, in the order given; `"x1:x2"` stands for two.

    Raises:
        DataError: an unknown or repeated name, more of them than the model's products have, or features
            that stand in no term together.
    """
    for name in features:
        if not isinstance(name, str):
            raise DataError(f"Features are given by name. Received: {name!r}.")
    known = known_names(parts)
    subset = tuple(known[name] for name in _with_points(parts, features, known))
    if not subset:
        raise DataError(f"Name at least one feature. The model has: {_listed(_labels(parts))}.")
    listed = ", ".join(f"`{parts.variables[variable].label}`" for variable in subset)
    if len(set(subset)) < len(subset):
        raise DataError(f"A feature stands twice in {listed}.")
    if parts.parameter is not None:
        _check_used(parts, subset)
    if len(subset) > parts.largest_order:
        raise DataError(
            f"The model has interactions of order {parts.largest_order} at most; "
            f"{len(subset)} features were given: {listed}."
        )
    if not parts.has(subset):
        raise _not_together(parts, subset, listed)
    return subset


def _with_points(parts: Parts, features: tuple[str, ...], known: Mapping[str, int]) -> list[str]:
    """Names of variables; those of all coordinates of a point are that of the point.

    Where the model has the coordinates as features of their own too, these are meant if some term holds
    them together.
    """
    points = [variable for variable in parts.variables if variable.is_point]
    coordinates = {name for variable in points for name in variable.coordinates}
    names = [part for name in features for part in _split(name, {*known, *coordinates}, parts)]
    for variable in points:
        own = [name for name in names if name in variable.coordinates]
        if set(own) < set(variable.coordinates):
            continue
        if set(own) <= set(known) and parts.has(tuple(known[name] for name in own)):
            continue
        place = names.index(own[0])
        rest = [name for name in names if name not in own]
        names = [*rest[:place], variable.label, *rest[place:]]
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise unknown_feature(unknown, _labels(parts))
    return names


def known_names(parts: Parts) -> dict[str, int]:
    """Variables by label; also by the bare name of their column, categories as `C(name)`."""
    found = {}
    for place, variable in enumerate(parts.variables):
        if variable.is_category:
            found[f"C({variable.label})"] = place
        if variable.expression.is_column:
            found[variable.expression.arguments[0]] = place
    return found | {variable.label: place for place, variable in enumerate(parts.variables)}


def _split(name: str, known: Collection[str], parts: Parts) -> list[str]:
    """The names of which a text is made: itself, or several with colons between them."""
    pieces = name.split(":")
    best: list[list[str] | None] = [[]]
    for stop in range(1, len(pieces) + 1):
        found = None
        # A name may hold a colon itself; the longest one that fits is meant.
        for start in range(stop):
            text, before = ":".join(pieces[start:stop]), best[start]
            if text in known and before is not None and found is None:
                found = [*before, text]
        best.append(found)
    result = best[-1]
    if result is None:
        unknown = next((piece for piece in pieces if piece not in known), name)
        raise unknown_feature(unknown, _labels(parts))
    return result


def _check_used(parts: Parts, subset: Subset) -> None:
    """Raise where a feature is in other predictors of the model only."""
    missing = [variable for variable in subset if not parts.has((variable,))]
    if missing:
        own = [parts.variables[v].label for v in range(len(parts.variables)) if parts.has((v,))]
        has = f"which has: {_listed(own)}" if own else "which is constant"
        others = ", ".join(f"`{name}`" for name in parts.model.whole().design.predictors)
        label = parts.variables[missing[0]].label
        raise DataError(
            f"`{label}` is not in the predictor of `{parts.parameter}`, {has}. Name another one with "
            f"`parameter=`: {others}."
        )


def name_parameter(table: Any, parameter: str | None) -> Any:
    """A frame or series with the parameter that it is of in `attrs`, where there are several."""
    if parameter is not None:
        table.attrs["parameter"] = parameter
    return table


def check_order(parts: Parts, order: Any) -> None:
    """Raise where the model has no products of that many functions."""
    check_count("order", order, 1, none=False)
    if order <= parts.largest_order:
        return
    if parts.parameter is None:
        raise DataError(
            f"The model has no interactions of order {order}: its highest order is "
            f"{parts.largest_order}."
        )
    whole = parts.model.whole()
    having = [n for n in whole.design.predictors if Parts(whole, n).largest_order >= order]
    others = f" With `parameter=` those of {_listed(having)} are read." if having else ""
    raise DataError(
        f"The predictor of `{parts.parameter}` has no interactions of order {order}: its highest order "
        f"is {parts.largest_order}.{others}"
    )


def check_count(name: str, value: Any, least: int, none: bool = True) -> None:
    """Raise where an argument is no whole number from `least` on, nor None where that is allowed."""
    if value is None and none:
        return
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        allowed = ", or None" if none else ""
        raise DataError(
            f"`{name}` must be a whole number from {least} on{allowed}. Received: {value!r}."
        )


def unknown_feature(name: str, labels: list[str], whole: str = "model") -> DataError:
    """The error for a name that no variable of a model or effect has, with the nearest one."""
    points = [label for label in labels if name in label.split(", ")]
    hint = f" It is a coordinate of `{points[0]}`: name all of them." if points else ""
    hint = hint or did_you_mean(name, labels)
    return DataError(f"The {whole} has no feature `{name}`.{hint} It has: {_listed(labels)}.")


def _not_together(parts: Parts, subset: Subset, listed: str) -> DataError:
    first = parts.variables[subset[0]].label
    partners = [
        variable.label
        for place, variable in enumerate(parts.variables)
        if place != subset[0] and parts.has((subset[0], place))
    ]
    shown = f"`{first}` interacts with: {_listed(partners)}" if partners else f"`{first}` has none"
    return DataError(f"The model has no interaction of {listed}: no term holds them all. {shown}.")


def _labels(parts: Parts) -> list[str]:
    sums = (term.weight_function for term in parts.model.design.only.terms)
    axes = [own.points for own in sums if own is not None]
    return [*(variable.label for variable in parts.variables), *dict.fromkeys(axes)]


def _listed(labels: list[str]) -> str:
    return ", ".join(f"`{label}`" for label in labels[:10]) + (", ..." if len(labels) > 10 else "")
