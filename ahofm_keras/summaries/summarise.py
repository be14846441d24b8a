"""`summary`: what a statistician reads of a fitted model in ten seconds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ahofm_keras.decomposition.parts import check_readable
from ahofm_keras.model import AdditiveModel
from ahofm_keras.summaries.figures import Figures, read_figures
from ahofm_keras.summaries.linear import LinearCoefficients
from ahofm_keras.summaries.page import page_html, page_text
from ahofm_keras.summaries.terms import TermRows
from ahofm_keras.summaries.wald import coefficient_tests


@dataclass(frozen=True, eq=False)
class Summary:
    """A fitted model in tables; prints itself, in a notebook as a page.

    Args:
        coefficients: a row per parametric coefficient, in the user's units, with `estimate`, `se`,
            `statistic` (t, or z where the dispersion is known) and `p_value`.
        terms: one row per term, of an interaction one per order, labelled as in `predict(type="terms")`:

            - `kind` (`"linear"`, `"smooth"`, `"tensor"`, `"interaction"`) and `order`;
            - `k_min`, `k_max`: size of the basis, over the features;
            - `df_min`, `df_max`, `lambda_asked_min`, `lambda_asked_max`: degrees of freedom that were
              asked of a feature (of a factor), and the lambda that gives them to it alone;
            - `edf`: effective degrees of freedom reached, of all features and factors together;
            - `lambda_min`, `lambda_max`: smoothing reached, over features and factors that are in use;
            - `factors` of `factors_asked` and `features` of `features_asked` that are in use;
            - `atoms`: number of values with a function of their own; `atoms_edf`: the part of the edf
              that these have in a smooth or tensor product;
            - `share`: of the variance of the link over the product of the training margins;
            - `pruned`: whether the fit switched it off;
            - `statistic`, `ref_df`, `p_value`: an approximate test that it is zero, see `summary`;
            - `k_by_margin`, `df_by_margin`, `lambda_asked_by_margin`, `lambda_by_margin`: of a smooth or
              tensor product a tuple with one figure per margin, in the order of its features.
        figures: of the fit as a whole, by name; None where not known. `orders` has the highest order
            reached of each term with `D="auto"`.
    """

    coefficients: pd.DataFrame
    terms: pd.DataFrame
    figures: Figures

    def __str__(self) -> str:
        return page_text(self.coefficients, self.terms, self.figures)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return page_html(self.coefficients, self.terms, self.figures)


def summary(model: AdditiveModel) -> Summary:
    """Coefficients, terms and figures of a fitted model, with approximate p-values.

    The intercept is that of the model where linear columns are 0 and smooths are centred. Standard
    errors are those of the posterior (mgcv's Bayesian ones). Tests take the smoothing as given, so
    p-values are approximate:

    - a linear term: the Wald test of all its columns;
    - a smooth or tensor product at fixed smoothing: as in mgcv, the Wald test of fractional rank of the
      function (Wood, 2013, Biometrika 100, 221-228); a random effect: the test of its variance (Wood,
      2013, Biometrika 100, 1005-1010);
    - one whose smoothing and shrinkage the variational solver chose: the test of its variance, for
      functions of 3 degrees of freedom per margin, whatever was chosen. Without an effect p-values below
      0.05 are about as rare as they should be;
    - an order of an interaction: the Wald test of the function, linearised in the coefficients of its
      factors, at points of the product of the training margins. It is also conditional on the factors
      that the fit chose, and too optimistic where factors were not pruned (`"bcd"`, `"adam"`: without
      an interaction one p-value in five was below 0.05). Read the share of the variance first.

    A term that the fit switched off is marked `pruned` and has no p-value. Without an interaction the
    variational solver switches its orders off.

    Args:
        model: fitted. Without a posterior (a fit from a dataset) there are no standard errors, degrees
            of freedom and tests.

    Raises:
        NotFittedError: a model that was never fitted.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> data = pd.DataFrame({"x": rng.uniform(size=200), "z": rng.normal(size=200)})
        >>> data["y"] = np.sin(6 * data.x) + data.z + 0.1 * rng.normal(size=200)
        >>> model = AdditiveModel("y ~ z + s(x)", data)
        >>> history = model.fit(data, verbose=0)
        >>> summary(model).terms["kind"].to_dict()
        {'z': 'linear', 's(x)': 'smooth'}
    """
    check_readable(model)
    figures = read_figures(model)
    residual_df = None if model.family.dispersion_known else figures["residual_df"]
    rows = TermRows(model, residual_df, figures["rows"] or model.design.rows)
    terms = rows.frame()
    figures["posterior"] = model.has_posterior
    figures["dispersion_known"] = model.family.dispersion_known
    figures["shares"] = float(terms["share"].sum())
    figures["orders"] = _orders(model, terms)
    return Summary(_coefficients(rows.block, model, residual_df), terms, figures)


def _orders(model: AdditiveModel, terms: pd.DataFrame) -> dict[str, int]:
    """The highest order in use, 1 for none, of each term that leaves it to the data."""
    found: dict[str, int] = {}
    for term in model.design.only.terms:
        orders = model.design.layout.only.orders_of(term)
        if any(order.optional for order in orders):
            used = (order.order for order in orders if not terms.loc[order.label, "pruned"])
            found[term.label] = max(used, default=1)
    return found


def _coefficients(
    block: LinearCoefficients, model: AdditiveModel, residual_df: float | None
) -> pd.DataFrame:
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
