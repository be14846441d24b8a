"""`by=` and smooths of a number and a category: what formulas ask as terms that are multiplied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ahofm_keras.errors import warn
from ahofm_keras.formula import TermSpec
from ahofm_keras.formula.options import CURVE_BASES
from ahofm_keras.terms.base import TERMS, Term
from ahofm_keras.terms.blocks import Sources
from ahofm_keras.terms.by_features import LEVELS, NUMBER, SLOPE, SUM, Level
from ahofm_keras.terms.features import Request, feature_values, find_levels
from ahofm_keras.terms.learning import CURVES, Learning, bare
from ahofm_keras.terms.scaled import ScaledTerm
from ahofm_keras.terms.smooth import SmoothTerm
from ahofm_keras.transforms import Expression

# Curves with a smoothing of their own take long where there are many.
_MANY_LEVELS = 100
_CODING = "coding"


def is_factor_smooth(spec: TermSpec) -> bool:
    """Whether a smooth is one of a number and a category."""
    return spec.kind == "s" and (len(spec.features) == 2 or spec.options.get("bs") in CURVE_BASES)


def by_parts(spec: TermSpec, learning: Learning) -> list[TermSpec]:
    """The specifications that one with `by=`, or a smooth of a number and a category, stands for.

    Of a number that is itself; of a category one per level, or without the reference level.
    """
    if is_factor_smooth(spec):
        return [_as_by(spec, learning)]
    by = spec.by
    if by is None or _CODING in spec.options:
        return [spec]
    if not learning.is_category(by):
        if spec.options.get("reference", False) is not False:
            raise spec.error(f"`reference` is a level of a category, and `{by}` holds numbers.")
        return [_coded(spec, NUMBER)]
    levels = _levels_of(by, spec, learning)
    reference = _reference(spec, levels, learning)
    if len(levels) > _MANY_LEVELS:
        feature = spec.features[0]
        warn(
            f"`by={by}` has {len(levels):,} levels, each with its own curve and smoothing: expect long "
            f'fits. `s({feature}, {by}, bs="fs")` has one smoothing for all.'
        )
    _warn_of_missing_means(spec, learning)
    return [
        replace(_coded(spec, Level(level), len(levels)), named=f"{spec.label}[{level}]")
        for level in levels
        if reference is None or level != reference
    ]


def learn_scaled(spec: TermSpec, learning: Learning) -> Term:
    """A term with what multiplies it."""
    coding = spec.options[_CODING]
    position = learning.pool.position(spec.options["by"], Request("by", coding=coding), spec)
    if spec.options.get("bs") == "re" and spec.call == "s" and coding == LEVELS:
        return _random_slopes(spec, position, learning)
    random = coding == LEVELS
    plain = {name: value for name, value in spec.options.items() if name != "sp" or not random}
    if coding in (LEVELS, SUM):
        plain = {**plain, "bs": None, "atoms": False}
        plain = {name: value for name, value in plain.items() if value is not None}
    inner = TERMS[spec.kind].learn(replace(spec, options=plain), learning)
    sources = Sources(tuple(learning.pool.features), {})
    block = inner.linear_block(sources)
    if block is None:
        raise spec.error(f"`{spec.call}()` cannot take `by`.")
    constant = _has_constant(spec, learning, random)
    ridge = 1 / learning.rows if random else None
    term = ScaledTerm(inner.label, inner.name, inner, position, constant, (), block.fixed, ridge)
    # As many degrees of freedom as asked for, of the rows that each function is learned from.
    columns = term.linear_block(sources)
    assert columns is not None
    smoothing = np.asarray(block.smoothing) / (1.0 if block.fixed else columns.unit**2)
    if random:
        return _with_ridges(term, spec, float(smoothing[0]), len(columns.penalties), learning)
    return term.with_smoothing(tuple(smoothing.tolist()), block.fixed)


def _coded(spec: TermSpec, coding: Any, curves: int = 1) -> TermSpec:
    return replace(spec, options={**spec.options, _CODING: coding, CURVES: curves})


def _levels_of(by: Expression, spec: TermSpec, learning: Learning) -> tuple[Any, ...]:
    levels = find_levels(by, feature_values(by, learning.columns, spec), learning.levels)
    if len(levels) < 2:
        raise spec.error(f"`by={by}` has one level in the data: leave it out.")
    return levels


def _reference(spec: TermSpec, levels: Sequence[Any], learning: Learning) -> Any:
    """The level that others are differences to; None where each has its own function."""
    asked = spec.options.get("reference")
    if asked is False and not isinstance(levels[0], bool | np.bool_):
        return None
    if asked is None:
        assert spec.by is not None
        ordered = spec.by.is_column and spec.by.arguments[0] in learning.ordered
        return levels[0] if ordered else None
    if asked not in levels:
        listed = ", ".join(map(repr, levels[:6])) + (", ..." if len(levels) > 6 else "")
        raise spec.error(
            f"`reference` must be a level of `{spec.by}`: {listed}.\n    Received: reference={asked!r}."
        )
    return asked


def _warn_of_missing_means(spec: TermSpec, learning: Learning) -> None:
    """Curves of levels have mean zero: levels without means of their own all share one."""
    assert spec.by is not None
    if not _is_held(spec.by, learning):
        warn(
            f"`{spec.label}` has a curve per level of `{spec.by}`, each with mean zero, and no term has "
            f"the means of the levels: add `{spec.by}` or `s({spec.by})` to the formula."
        )


def _is_held(by: Expression, learning: Learning) -> bool:
    """Whether another term has the main effect of a by-variable."""
    return any(
        by in term.features
        and (TERMS[term.kind].is_main_effect(term) or term.options.get("main", term.kind == "ahofm"))
        for term in learning.formula.terms
    ) or any(
        is_factor_smooth(term) and term.options["bs"] != "re" and by in term.features
        for term in learning.formula.terms
    )


def _has_constant(spec: TermSpec, learning: Learning, random: bool) -> bool:
    """Whether the function is not centred: no other term has what the constant would stand for."""
    if random:
        return True
    by, coding = spec.options["by"], spec.options[_CODING]
    if isinstance(coding, Level) or spec.options.get("pure") is True or "pc" in spec.options:
        return False
    if coding == NUMBER and _is_held(by, learning):
        return False
    if coding == SUM and any(
        by in term.features and TERMS[term.kind].is_main_effect(term) for term in learning.formula.terms
    ):
        return False
    first = by not in learning.multiplied
    learning.multiplied.add(by)
    return first


# Numbers and categories -----------------------------------------------------------------------------


def _as_by(spec: TermSpec, learning: Learning) -> TermSpec:
    """A smooth of a number and a category, as one of the number by the category."""
    bs = spec.options["bs"]
    categories = [feature for feature in spec.features if learning.is_category(feature)]
    if not categories or (bs != "re" and len(categories) == 2):
        found = "two numbers" if not categories else "two categories"
        raise spec.error(
            f'`{spec.label}` with bs="{bs}" needs a number and a category.\n    Received: {found}.'
        )
    by = categories[0]
    levels = _levels_of(by, spec, learning)
    other = next(feature for feature in spec.features if feature != by)
    coding = SUM if bs == "sz" else LEVELS
    options = {**spec.options, "by": by, _CODING: coding, CURVES: len(levels)}
    label = f"{spec.call}({', '.join(str(bare(feature)) for feature in spec.features)})"
    return replace(spec, features=(other,), options=options, named=label)


def _random_slopes(spec: TermSpec, position: int, learning: Learning) -> ScaledTerm:
    """x b_g with b_g normal: one ridge penalty on the slopes of all levels, or on pairs of levels."""
    feature = spec.features[0]
    if learning.is_category(feature):
        request = Request("re", center=False)
    else:
        request = Request("by", coding=SLOPE)
    place = learning.pool.position(feature, request, spec)
    given = spec.options.get("sp")
    smoothing = _level_smoothing(spec, position, learning) if given is None else float(given)
    if given is None and not learning.is_category(feature):
        smoothing *= learning.pool.features[place].basis.axis[1] ** 2
    df = learning.smoother.reached(position, smoothing)
    inner = SmoothTerm(spec.label, learning.name(spec.label), place, smoothing, df, given is not None)
    return ScaledTerm(
        inner.label,
        inner.name,
        inner,
        position,
        False,
        (smoothing,),
        given is not None,
        1 / learning.rows,
    )


def _level_smoothing(spec: TermSpec, position: int, learning: Learning) -> float:
    """Lambda of random effects of the levels, as for `s(g)`."""
    wanted = [spec.options.get("df")]
    return learning.smoother.smoothing([position], wanted, spec, False)[0]


def _with_ridges(
    term: ScaledTerm, spec: TermSpec, curve: float, count: int, learning: Learning
) -> ScaledTerm:
    """Lambdas of the curves, of their constants and of what else the penalty leaves free."""
    given = spec.options.get("sp")
    if given is None:
        level = _level_smoothing(replace(spec, options={}), term.by, learning)
        return term.with_smoothing((curve, *[level] * (count - 1)), False)
    found = given if isinstance(given, tuple) else (given,) * count
    if len(found) != count:
        raise spec.error(
            f"`sp` of `{spec.label}` needs one number, or {count}: of the curves, of the means of the "
            f"levels and of {count - 2} more that the penalty leaves free.\n    Received: sp={given!r}."
        )
    return term.with_smoothing(tuple(map(float, found)), True)
