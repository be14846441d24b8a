"""What a summary says of one predictor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from ahofm_keras.model.formulas import right_side
from ahofm_keras.summaries.linear import LinearCoefficients
from ahofm_keras.summaries.terms import TermRows
from ahofm_keras.summaries.wald import coefficient_tests

# Level of the interval of a parameter that is constant.
LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Section:
    """Coefficients and terms of one predictor.

    Args:
        parameter: of the family; None where the model has one predictor.
        link: its link in words.
        formula: as the user wrote it; of a further parameter without the response.
        coefficients: a row per parametric coefficient.
        terms: one row per term, of an interaction one per order.
        orders: the highest order reached, 1 for none, of each term with `D="auto"`.
        constant: of a parameter without terms its value, and the ends of its 95 % interval, in its own
            units; the ends are NaN without a posterior. None of one that has terms.
    """

    parameter: str | None
    link: str
    formula: str
    coefficients: pd.DataFrame
    terms: pd.DataFrame
    orders: dict[str, int]
    constant: tuple[float, float, float] | None

    @property
    def shares(self) -> float:
        """Sum of the shares of all terms."""
        return float(self.terms["share"].sum())

    @property
    def heading(self) -> str:
        """What is said of it beside other sections begins with this."""
        return "" if self.parameter is None else f"{self.parameter}: "


def read_section(model: Any, rows: int, residual_df: float | None) -> Section:
    """The section of one predictor.

    Args:
        model: fitted, of one predictor, or a view of one of several.
        rows: of the fit.
        residual_df: degrees of freedom of the residuals; None where the dispersion is known.
    """
    found = TermRows(model, residual_df, rows)
    terms = found.frame()
    return Section(
        model.of_parameter,
        model.family.link if model.of_parameter is None else _link_words(model),
        right_side(model.formula) if _is_further(model) else model.formula,
        _coefficients(found.block, model, residual_df),
        terms,
        _orders(model, terms),
        None if model.design.only.terms or model.of_parameter is None else _constant(model),
    )


def _link_words(model: Any) -> str:
    return str(model.whole().family.link_words(model.of_parameter))


def _is_further(model: Any) -> bool:
    """Whether this is a parameter beside the first, which has the response in its formula."""
    return model.of_parameter not in (None, next(iter(model.whole().design.predictors)))


def _constant(model: Any) -> tuple[float, float, float]:
    """The value of a parameter without terms, and the ends of its interval."""
    block = LinearCoefficients(model)
    known = model.has_posterior and len(block.labels)
    error = np.sqrt(block.covariance.diagonal()[:1]) if known else np.full(1, np.nan)
    link, reach = np.array([model.intercept]), stats.norm.ppf((1 + LEVEL) / 2) * error
    low, high = model.family.mean_interval(link - reach, link + reach)
    value = model.family.inverse_link(link, np)
    return float(value[0]), float(low[0]), float(high[0])


def _orders(model: Any, terms: pd.DataFrame) -> dict[str, int]:
    """The highest order in use, 1 for none, of each term that leaves it to the data."""
    found: dict[str, int] = {}
    for term in model.design.only.terms:
        orders = model.design.layout.only.orders_of(term)
        if any(order.optional for order in orders):
            used = (order.order for order in orders if not terms.loc[order.label, "pruned"])
            found[term.label] = max(used, default=1)
    return found


def _coefficients(block: LinearCoefficients, model: Any, residual_df: float | None) -> pd.DataFrame:
    """Intercept and linear terms."""
    # Inside the model and in the user's units there are as many of these.
    count = model.design.layout.only.unpenalised
    estimate = block.values[:count]
    frame = pd.DataFrame({"estimate": estimate}, pd.Index(block.labels[:count], dtype=object))
    frame[["se", "statistic", "p_value"]] = np.nan
    if model.has_posterior:
        frame["se"] = np.sqrt(np.maximum(block.covariance.diagonal()[:count], 0.0))
        tests = coefficient_tests(estimate, frame["se"].to_numpy(), residual_df)
        frame["statistic"], frame["p_value"] = tests
    return frame.rename_axis("coefficient")
