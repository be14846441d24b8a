"""What `te()` and `ti()` ask of their margins."""

from __future__ import annotations

from collections.abc import Sequence

from ahofm_keras.formula import TermSpec
from ahofm_keras.formula.margins import margin_option
from ahofm_keras.tensors import count_products, tensor_shape
from ahofm_keras.terms.features import Feature

# A layer and its penalty still work with so many; what is beyond is a slip, or a case for `ahofm()`.
MOST_PRODUCTS = 10_000
# As many as mgcv's `te()` of two features has coefficients.
_DEFAULT_DF = 25.0


def default_margin_df(margins: int) -> float:
    """Degrees of freedom of a margin where none are asked for."""
    return float(_DEFAULT_DF ** (1 / margins))


def margin_degrees(spec: TermSpec) -> list[float | None]:
    """Degrees of freedom that a tensor product asks of each margin, None where it does not say.

    A single df is split evenly: the product of the margins' df is the df that was asked for.
    """
    count, df = len(spec.features), spec.options.get("df")
    if df is None or isinstance(df, tuple):
        return [margin_option(spec.options, "df", place) for place in range(count)]
    if df <= 1:
        raise spec.error(
            f"`df` of `{spec.label}` must be above 1: it is split evenly over the margins, each of "
            f"which needs more than 1.\n    Received: df={df:g}."
        )
    return [float(df ** (1 / count))] * count


def check_products(spec: TermSpec, features: Sequence[Feature]) -> None:
    """Raise a `FormulaError` where a tensor product has more functions than any solver can take."""
    widths, pure = [len(feature.eigenvalues) for feature in features], spec.options["pure"]
    count = count_products(widths, pure)
    if count > MOST_PRODUCTS:
        listed = " x ".join(map(str, tensor_shape(widths, pure)))
        names = ", ".join(str(feature) for feature in spec.features)
        raise spec.error(
            f"`{spec.label}` has {count:,} coefficients ({listed}), more than {MOST_PRODUCTS:,}. Choose "
            f"a smaller `k` or merge levels; or write `ahofm({names})`, whose size is the sum of its "
            "features' and not their product."
        )
