"""What a term specification asks of single features and orders."""

from __future__ import annotations

from typing import Any

from ahofm_keras.formula import TermSpec
from ahofm_keras.formula.margins import KNOT_OPTIONS
from ahofm_keras.formula.options import DEFAULT_M, DISTANCES, STEP_M
from ahofm_keras.transforms import Expression

BASIS_OPTIONS = ("bs", *KNOT_OPTIONS)


def option_of(spec: TermSpec, option: str, feature: Expression) -> Any:
    """An option's value for one feature: the value itself, or its entry in a dict."""
    value = spec.options.get(option)
    if not isinstance(value, dict):
        return value
    return value.get(feature.arguments[0] if feature.is_column else str(feature))


def basis_options(spec: TermSpec, feature: Expression) -> dict[str, Any]:
    """What an interaction says of the basis of one of its features.

    One k, m, or way to place knots is that of the features with knots: it says nothing of levels.
    """
    said = {option: option_of(spec, option, feature) for option in BASIS_OPTIONS}
    if said["bs"] == "re":
        return {"bs": "re"}
    return {option: value for option, value in said.items() if value is not None}


def basis_form(bs: str | None, m: tuple[int, int] | None) -> tuple[str, int, int]:
    """Kind of a basis with knots, degree of its pieces, order of the differences of its penalty."""
    degree, difference = m or (STEP_M if bs == "step" else DEFAULT_M)
    return "cp" if bs == "cp" else "ps", degree, difference


def with_own_smooth(spec: TermSpec, feature: Expression, smooth: TermSpec | None) -> dict[str, Any]:
    """What an interaction says of the basis of a feature; what it does not say, as the feature's `s()`.

    Args:
        spec: of the interaction.
        feature: one of its features, no category.
        smooth: the `s()` of the feature, if the formula has one.
    """
    said = basis_options(spec, feature)
    # Levels have neither knots nor a number of functions: nothing of them goes with what splines have.
    if smooth is None or (said and "re" in (said.get("bs"), smooth.options.get("bs"))):
        return said
    # Factors are of splines or levels.
    if smooth.options.get("bs") in ("mrf", *DISTANCES):
        return said
    before = {option: smooth.options[option] for option in BASIS_OPTIONS if option in smooth.options}
    return {**before, **said}


def df_by_order(spec: TermSpec, feature: Expression, orders: tuple[int, ...]) -> dict[int, float | None]:
    """Degrees of freedom that an interaction asks of a feature in each order."""
    df = option_of(spec, "df", feature)
    if isinstance(df, tuple):
        return dict(zip(orders, df[-len(orders) :], strict=True))
    return dict.fromkeys(orders, df)
