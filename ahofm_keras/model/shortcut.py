"""`fit`: from a formula and data to the fitted model in one line."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Any

from ahofm_keras.model.additive import AdditiveModel
from ahofm_keras.model.arguments import check_unknown

# Arguments that `fit` below takes by position, or that only loading a file may give.
_OWN = {"self", "formula", "data", "family", "state", "x"}


def fit(formula: str, data: Any, family: Any = "gaussian", **arguments: Any) -> AdditiveModel:
    """Build a model from a formula, fit it, and return it.

    The same as `AdditiveModel(formula, data, family)` and then `fit(data)`, for those who want the model
    and not the history of the fit.

    Args:
        formula: e.g. `"y ~ s(x1) + ahofm(x1, x2, x3)"`; `"y ~ ahofm(.)"` takes all other columns.
        data: data frame or dict of columns that the model learns its bases from and is fitted to.
        family: of the response.
        arguments: of `AdditiveModel` (`extrapolation`, `df_kind`, ...) and of `AdditiveModel.fit`
            (`solver`, `sample_weight`, `verbose`, ...), by name. `seed` is that of both.

    Raises:
        FormulaError, DataError: naming the place in the formula, the column or the argument.

    Example:
        >>> import numpy as np
        >>> import pandas as pd
        >>> rng = np.random.default_rng(0)
        >>> data = pd.DataFrame({"x": rng.uniform(size=200)})
        >>> data["y"] = np.sin(6 * data.x) + 0.1 * rng.normal(size=200)
        >>> fit("y ~ s(x)", data, verbose=0, extrapolation="linear").fit_result.rows
        200
    """
    constructor, fitting = _names(AdditiveModel.__init__), _names(AdditiveModel.fit)
    check_unknown(arguments, [*constructor, *fitting], "fit()")
    build = {name: value for name, value in arguments.items() if name in constructor}
    model = AdditiveModel(formula, data, family, **build)
    model.fit(data, **{name: value for name, value in arguments.items() if name not in constructor})
    return model


def _names(function: Any) -> list[str]:
    """The arguments of a function that have a name, without those that `fit` gives itself."""
    parameters = signature(function).parameters.values()
    return [p.name for p in parameters if p.kind is not Parameter.VAR_KEYWORD and p.name not in _OWN]
