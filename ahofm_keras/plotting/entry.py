"""`plot`: one name for all pictures."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ahofm_keras.decomposition import Effect, Explanation
from ahofm_keras.diagnostics import Check
from ahofm_keras.errors import DataError
from ahofm_keras.plotting.check import plot_check
from ahofm_keras.plotting.effects import effect_data, plot_effect
from ahofm_keras.plotting.history import plot_history
from ahofm_keras.plotting.page import page_data, plot_page
from ahofm_keras.plotting.waterfall import plot_explanation


def plot(model: Any, *features: str, data: Any = None, **options: Any) -> Any:
    """Draw a model, or the effect of some of its features.

    `plot(model)` is a page: main effects on one scale, the strongest pairs, and from four features that
    interact on the interaction map with the strongest triples. `plot(model, "x1")` is a curve, or points
    where `x1` is a category; `plot(model, "x1", "x2")` is a surface, three features are slices of one.
    What `effect()`, `explain()`, `check()` and `fit()` return is drawn too.

    Args:
        model: fitted; or an effect, an explanation, a check, or the history of a fit.
        features: up to three names.
        data: rows for rug, residuals or purification, by default those of the fit.
        options: with features those of `plot_effect`: `ax`, `level`, `rug`, `residuals`, `mask`, `log`,
            `trim`, `points`, `at`, `purify`. For a page also `figure` (to draw on), `curves` and
            `surfaces`: how many main effects (12) and pairs (6) there are at most; what is left out is
            named below. Of a model with several predictors `parameter` names the one that is drawn: by
            default a page has strips for each, and an effect is that on the first.

    Returns:
        Axes; an array of them for slices and histories; for a page a dict from labels (`x1`, `x1:x2`,
        `map`, `triples`) to axes, of several predictors one by parameter.

    Raises:
        DataError: an unknown feature, an order that the model does not have.
        NotFittedError: a model that was never fitted.

    The data behind it is `plot_data(...)` with the same arguments, those of the drawing left out.
    """
    if isinstance(model, Explanation):
        return plot_explanation(model, **options)
    if isinstance(model, Check):
        return plot_check(model, **options)
    if hasattr(model, "history") and hasattr(model, "epoch"):
        return plot_history(model, **options)
    if features or isinstance(model, Effect):
        return plot_effect(model, *features, data=data, **options)
    _check_page(options)
    return plot_page(model, data=data, **options)


def plot_data(model: Any, *features: str, data: Any = None, **options: Any) -> Any:
    """The data behind `plot`: a frame, and for a page a dict from labels to frames.

    Args:
        model: fitted, or an effect.
        features: up to three names.
        data: rows to purify on.
        options: of `effect_data`; for a page also `curves` and `surfaces`.
    """
    if features or isinstance(model, Effect):
        found: pd.DataFrame = effect_data(model, *features, data=data, **options)
        return found
    _check_page(options)
    return page_data(model, data=data, **options)


def _check_page(options: dict[str, Any]) -> None:
    for name in ("ax", "at", "points"):
        if options.get(name) is not None:
            raise DataError(f"`{name}` goes with the names of features; a page takes `figure`.")
