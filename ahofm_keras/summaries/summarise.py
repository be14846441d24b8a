"""`summary`: what a statistician reads of a fitted model in ten seconds."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from ahofm_keras.decomposition.parts import predictors_of
from ahofm_keras.model import AdditiveModel
from ahofm_keras.summaries.figures import Figures, read_figures
from ahofm_keras.summaries.page import page_html, page_text
from ahofm_keras.summaries.sections import Section, read_section


@dataclass(frozen=True, eq=False)
class Summary:
    """A fitted model in tables; prints itself, in a notebook as a page.

    Args:
        sections: one per predictor.
        figures: of the fit as a whole, by name; None where not known. `orders` has the highest order
            reached of each term with `D="auto"`.

    Attributes:
        coefficients: a row per parametric coefficient, in the user's units, with `estimate`, `se`,
            `statistic` (t, or z where the dispersion is known) and `p_value`.
        terms: one row per term, of an interaction one per order, labelled as in `predict(type="terms")`:

            - `kind` (`"linear"`, `"smooth"`, `"tensor"`, `"interaction"`, `"ridge"`, `"lasso"`, `"group
              lasso"`) and `order`;
            - `k_min`, `k_max`: size of the basis, over the features;
            - `df_min`, `df_max`, `lambda_asked_min`, `lambda_asked_max`: degrees of freedom that were
              asked of a feature (of a factor), and the lambda that gives them to it alone;
            - `edf`: effective degrees of freedom reached, of all features and factors together;
            - `lambda_min`, `lambda_max`: smoothing reached, over features and factors that are in use;
            - `factors` of `factors_asked` and `features` of `features_asked` that are in use;
            - `columns` of a penalised linear term; `nonzero`, how many of their coefficients are not 0;
            - `atoms`: number of values with a function of their own; `atoms_edf`: the part of the edf
              that these have in a smooth or tensor product;
            - `share`: of the variance of the link over the product of the training margins;
            - `pruned`: whether the fit switched it off;
            - `statistic`, `ref_df`, `p_value`: an approximate test that it is zero, see `summary`;
            - `k_by_margin`, `df_by_margin`, `lambda_asked_by_margin`, `lambda_by_margin`: of a smooth or
              tensor product a tuple with one figure per margin, in the order of its features.

            Of several predictors both have the parameter as a first level of their index.
        constants: a row per parameter without terms, with its `estimate` and the `lower` and `upper` end
            of its 95 % interval, in its own units; only of models with several predictors.
    """

    sections: tuple[Section, ...]
    figures: Figures

    @property
    def coefficients(self) -> pd.DataFrame:
        return self._together("coefficients")

    @property
    def terms(self) -> pd.DataFrame:
        return self._together("terms")

    @property
    def constants(self) -> pd.DataFrame:
        known = {s.parameter: s.constant for s in self.sections if s.constant is not None}
        columns = ["estimate", "lower", "upper"]
        frame = pd.DataFrame(list(known.values()), list(known), columns, float)
        return frame.rename_axis("parameter")

    def _together(self, what: str) -> pd.DataFrame:
        if len(self.sections) == 1:
            frame: pd.DataFrame = getattr(self.sections[0], what)
            return frame
        frames = {section.parameter: getattr(section, what) for section in self.sections}
        return pd.concat({name: own for name, own in frames.items() if len(own)}, names=["parameter"])

    def __str__(self) -> str:
        return page_text(self.sections, self.figures)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return page_html(self.sections, self.figures)


def summary(model: AdditiveModel, parameter: str | None = None) -> Summary:
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
        parameter: of the family whose predictor alone is summarised, by default all of them, a section
            each.

    Raises:
        NotFittedError: a model that was never fitted.

    Example:
        >>> import numpy as np
        >>> import pandas as pd
        >>> rng = np.random.default_rng(0)
        >>> data = pd.DataFrame({"x": rng.uniform(size=200), "z": rng.normal(size=200)})
        >>> data["y"] = np.sin(6 * data.x) + data.z + 0.1 * rng.normal(size=200)
        >>> model = AdditiveModel("y ~ z + s(x)", data)
        >>> history = model.fit(data, verbose=0)
        >>> summary(model).terms["kind"].to_dict()
        {'z': 'linear', 's(x)': 'smooth'}
    """
    views = predictors_of(model, parameter)
    model = views[0] if len(views) == 1 else model
    figures = read_figures(model)
    residual_df = None if model.family.dispersion_known else figures["residual_df"]
    rows = figures["rows"] or model.design.rows
    sections = tuple(read_section(view, rows, residual_df) for view in views)
    figures["posterior"] = model.has_posterior
    figures["dispersion_known"] = model.family.dispersion_known
    figures["shares"] = sections[0].shares
    figures["orders"] = {label: top for own in sections for label, top in own.orders.items()}
    return Summary(sections, figures)
