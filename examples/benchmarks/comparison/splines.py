"""pyGAM, statsmodels' GLMGam, and scikit-learn's splines with ridge regression."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from comparison.encoding import as_codes, as_dummies, numbers, strongest_pairs
from comparison.fitted import Fitted
from comparison.problems import Split

LEVEL = 0.95


def pygam(rows: Split, search: bool = False, pairs: int = 0) -> Fitted:
    """A spline of every number, a factor of every text.

    Args:
        rows: to fit.
        search: whether lambda is searched on pyGAM's own grid by its own criterion.
        pairs: number of tensor products `te` of the strongest pairs, with 6 functions a margin.
    """
    from pygam import LinearGAM, f, s, te
    from pygam.terms import TermList

    place = {name: j for j, name in enumerate(rows.features)}
    terms = [f(j) if name in rows.texts else s(j) for name, j in place.items()]
    chosen = strongest_pairs(rows, numbers(rows, distinct=True), pairs) if pairs else []
    terms += [te(place[a], place[b], n_splines=[6, 6]) for a, b in chosen]
    model = LinearGAM(TermList(*terms))
    x, y = as_codes(rows, rows.train).to_numpy(float), rows.y.to_numpy(float)
    if search:
        model.gridsearch(x, y, progress=False)
    else:
        model.fit(x, y)

    def spread(data: pd.DataFrame) -> np.ndarray:
        low, high = model.prediction_intervals(as_codes(rows, data).to_numpy(float), width=LEVEL).T
        # Its intervals are those of a t distribution, here so near a normal one that it stands for it.
        left = len(y) - model.statistics_["edof"]
        return (high - low) / (2 * stats.t.ppf((1 + LEVEL) / 2, left))

    return Fitted(lambda data: model.predict(as_codes(rows, data).to_numpy(float)), spread)


def pygam_candidates(rows: Split) -> list[dict[str, Any]]:
    return [{"search": True, "pairs": pairs} for pairs in (0, 3, 6)]


class UnitRange:
    """Numbers on [0, 1] by their training range, others clipped to it: GLMGam refuses to extrapolate.

    Its penalties are integrals over x, so that one alpha for all features needs one unit too. A number
    with few values is a linear column, and one that repeats another is left out.
    """

    FEW = 6

    def __init__(self, rows: Split) -> None:
        self.rows = rows
        names = numbers(rows, distinct=True)
        self.sizes = {name: rows.train[name].nunique() for name in names}
        self.smooth = [name for name in names if self.sizes[name] >= self.FEW]
        self.linear = [name for name in names if self.sizes[name] < self.FEW]
        self.low, self.high = rows.train[names].min(), rows.train[names].max()

    def _unit(self, data: pd.DataFrame, names: list[str]) -> np.ndarray:
        low, high = self.low[names], self.high[names]
        return ((data[names] - low) / (high - low)).clip(0, 1).to_numpy(float)

    def smooth_columns(self, data: pd.DataFrame) -> np.ndarray:
        return self._unit(data, self.smooth)

    def linear_columns(self, data: pd.DataFrame) -> np.ndarray:
        parts = [np.ones((len(data), 1)), self._unit(data, self.linear), as_dummies(self.rows, data)]
        return np.hstack(parts)


def glmgam(rows: Split, functions: int = 10, alpha: float = 0.0) -> Fitted:
    """B-splines of every number; without a penalty, as GLMGam has it unless told otherwise."""
    from statsmodels.gam.api import BSplines, GLMGam

    unit = UnitRange(rows)
    smoother = BSplines(
        unit.smooth_columns(rows.train),
        df=[min(functions, unit.sizes[name]) for name in unit.smooth],
        degree=[3] * len(unit.smooth),
    )
    model = GLMGam(
        rows.y.to_numpy(float),
        exog=unit.linear_columns(rows.train),
        smoother=smoother,
        alpha=[alpha] * len(unit.smooth),
    )
    result = model.fit()

    def mean(data: pd.DataFrame) -> np.ndarray:
        linear, smooth = unit.linear_columns(data), unit.smooth_columns(data)
        return np.asarray(result.predict(exog=linear, exog_smooth=smooth))

    def spread(data: pd.DataFrame) -> np.ndarray:
        linear, smooth = unit.linear_columns(data), unit.smooth_columns(data)
        frame = result.get_prediction(exog=linear, exog_smooth=smooth).summary_frame()
        return np.sqrt(frame["mean_se"].to_numpy() ** 2 + result.scale)

    return Fitted(mean, spread)


def glmgam_candidates(rows: Split) -> list[dict[str, Any]]:
    """Penalties of the integrated squared second derivatives; GLMGam has no interactions."""
    alphas = [0.0, *np.logspace(-6, 2, 9)]
    return [{"functions": k, "alpha": float(a)} for k, a in product((10, 20), alphas)]


def ridge(rows: Split, knots: int = 5, pairs: bool = False, alpha: float = 1.0) -> Fitted:
    """A spline basis of every number, indicators of every text; with `pairs` all products of two.

    Products of two functions of one feature are among them; they cost little and do no harm.
    """
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, SplineTransformer

    # Without the first function of each basis, which the others and the intercept make up.
    basis = SplineTransformer(n_knots=knots, include_bias=not pairs)
    products = PolynomialFeatures(2, interaction_only=True, include_bias=False)
    columns = make_column_transformer(
        (make_pipeline(basis, products) if pairs else basis, numbers(rows)),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), rows.texts),
    )
    model = make_pipeline(columns, Ridge(alpha=alpha)).fit(rows.train[rows.features], rows.y)
    return Fitted(lambda data: model.predict(data[rows.features]))


def ridge_candidates(rows: Split) -> list[dict[str, Any]]:
    bases = [{"knots": 5}, {"knots": 10}, {"knots": 20}, {"knots": 5, "pairs": True}]
    return [{**basis, "alpha": alpha} for basis in bases for alpha in (1e-3, 1e-2, 1e-1, 1.0, 10.0)]
