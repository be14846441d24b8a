"""Explainable boosting machines, histogram boosting and LightGBM: no predictive distributions."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from comparison.encoding import as_categories
from comparison.fitted import Fitted, rmse
from comparison.problems import Split, split

SOME_BAGS = 4
MOST_PAIRS = 45


def ebm(rows: Split, **settings: Any) -> Fitted:
    """interpret takes texts as they are, and levels that it never saw."""
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    kind = ExplainableBoostingClassifier if rows.family == "bernoulli" else ExplainableBoostingRegressor
    if rows.family == "poisson":
        settings["objective"] = "poisson_deviance"
    # One core for everybody: several bags at once would be several cores.
    model = kind(random_state=rows.seed, n_jobs=1, **settings)
    model.fit(rows.train[rows.features], rows.y)
    return Fitted(lambda data: mean_of(model, rows, data[rows.features]))


def mean_of(model: Any, rows: Split, features: pd.DataFrame) -> np.ndarray:
    """The predicted mean: of a classifier the probability of 1."""
    if rows.family == "bernoulli":
        return model.predict_proba(features)[:, 1]
    return model.predict(features)


def ebm_some_bags(rows: Split) -> Fitted:
    return ebm(rows, outer_bags=SOME_BAGS)


def ebm_candidates(p: int) -> list[dict[str, Any]]:
    """Defaults; (nearly) all pairs; less smoothing of the early rounds."""
    pairs = min(p * (p - 1) // 2, MOST_PAIRS)
    return [{}, {"interactions": pairs}, {"smoothing_rounds": 75, "interaction_smoothing_rounds": 25}]


def ebm_tuned(rows: Split) -> Fitted:
    """Candidates are compared with a few bags; the best is fitted with the default number."""
    inner = split(rows.train, rows.response, rows.seed)

    def error(settings: dict[str, Any]) -> float:
        fitted = ebm(inner, outer_bags=SOME_BAGS, **settings)
        return rmse(fitted.mean(inner.test), inner.test[rows.response])

    best = min(ebm_candidates(len(rows.features)), key=error)
    return Fitted(ebm(rows, **best).mean, setting=str(best))


def boosting(rows: Split, **settings: Any) -> Fitted:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = (
        HistGradientBoostingClassifier if rows.family == "bernoulli" else HistGradientBoostingRegressor
    )
    if rows.family == "poisson":
        settings["loss"] = "poisson"
    model = kind(random_state=rows.seed, **settings)
    model.fit(as_categories(rows, rows.train), rows.y)
    return Fitted(lambda data: mean_of(model, rows, as_categories(rows, data)))


def lightgbm(rows: Split) -> Fitted:
    from lightgbm import LGBMClassifier, LGBMRegressor

    settings = {"random_state": rows.seed, "n_jobs": 1, "verbose": -1}
    if rows.family == "poisson":
        settings["objective"] = "poisson"
    model = (LGBMClassifier if rows.family == "bernoulli" else LGBMRegressor)(**settings)
    model.fit(as_categories(rows, rows.train), rows.y)
    return Fitted(lambda data: mean_of(model, rows, as_categories(rows, data)))


BOOSTING_GRID = {
    "learning_rate": (0.03, 0.1),
    "max_leaf_nodes": (7, 31),
    "min_samples_leaf": (5, 20),
}


def boosting_tuned(rows: Split) -> Fitted:
    """Each candidate stops where the validation rows stop it; the best is refitted with its rounds."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    inner = split(rows.train, rows.response, rows.seed)
    train, held_out = as_categories(inner, inner.train), as_categories(inner, inner.test)
    tried = []
    for values in product(*BOOSTING_GRID.values()):
        settings = dict(zip(BOOSTING_GRID, values, strict=True))
        model = HistGradientBoostingRegressor(
            max_iter=3000, early_stopping=True, n_iter_no_change=50, random_state=rows.seed, **settings
        )
        y = inner.test[rows.response]
        model.fit(train, inner.y, X_val=held_out, y_val=y)
        tried.append((rmse(model.predict(held_out), y), {**settings, "max_iter": model.n_iter_}))
    best = min(tried, key=lambda pair: pair[0])[1]
    return Fitted(boosting(rows, early_stopping=False, **best).mean, setting=str(best))
