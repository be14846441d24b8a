"""What a term specification asks of single features and orders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ahofm_keras.formula import TermSpec
from ahofm_keras.terms.smoothing import DEFAULT_DF
from ahofm_keras.terms.tensors import default_margin_df, margin_degrees
from ahofm_keras.transforms import Expression

DEFAULT_RANK = 5


def option_of(spec: TermSpec, option: str, feature: Expression) -> Any:
    """An option's value for one feature: the value itself, or its entry in a dict."""
    value = spec.options.get(option)
    if not isinstance(value, dict):
        return value
    return value.get(feature.arguments[0] if feature.is_column else str(feature))


def largest_df(spec: TermSpec) -> list[float]:
    """Degrees of freedom that a term asks of each feature's basis, over all its orders."""
    if spec.kind == "te":
        return [df or default_margin_df(len(spec.features)) for df in margin_degrees(spec)]
    asked = [option_of(spec, "df", feature) for feature in spec.features]
    return [float(max(df) if isinstance(df, tuple) else df or DEFAULT_DF) for df in asked]


def df_by_order(spec: TermSpec, feature: Expression, orders: tuple[int, ...]) -> dict[int, float | None]:
    """Degrees of freedom that an interaction asks of a feature in each order."""
    df = option_of(spec, "df", feature)
    if isinstance(df, tuple):
        return dict(zip(orders, df[-len(orders) :], strict=True))
    return dict.fromkeys(orders, df)


def ranks(options: Mapping[str, Any], orders: tuple[int, ...]) -> list[tuple[int, int]]:
    """Each order of an interaction with its number of factors."""
    rank = options.get("F", DEFAULT_RANK)
    ranks = rank if isinstance(rank, tuple) else (rank,) * len(orders)
    return list(zip(orders, ranks, strict=True))
